"""How an open page stays true: the stream of a tab, and what of its page is sent anew when something changes."""
