"""Pictures of every page with frozen clock and ids, so that two commits can be compared pixel by pixel."""
