"""Models that draft answers to sampling: which there are, and letting one write."""
