"""What carries frames to one server and back: a child process, or HTTP in two kinds."""
