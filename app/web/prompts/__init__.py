"""The prompts of the server: their list, and the page of each with its form."""
