"""Findings by rule: what the protocol says of a message, as pure functions that return remarks."""
