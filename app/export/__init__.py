"""What leaves Parley as a file or a text: pure functions over what the core knows."""
