"""Calls: the list, the card, what came back, rounds, comparing two, composing one by hand, taking one along."""
