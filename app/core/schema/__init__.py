"""JSON Schema: references, the cost of a check, the check itself, and its verdict in words."""
