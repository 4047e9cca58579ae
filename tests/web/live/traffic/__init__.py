"""A page of its own, as anybody would add one: how many messages there were."""
