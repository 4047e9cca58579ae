"""People without an account: whoever has the link to one ask, and the phones of a room."""
