"""Findings by rule: the catalogue has them all as data, and the modules beside it decide, as pure functions."""
