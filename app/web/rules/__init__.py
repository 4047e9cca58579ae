"""Answer rules: the list, changing and trying them."""
