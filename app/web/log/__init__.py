"""The log of messages, and the log that the server itself writes."""
