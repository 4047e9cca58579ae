"""Sessions and servers: the first page, the form that connects, saved targets, consent to start a command."""
