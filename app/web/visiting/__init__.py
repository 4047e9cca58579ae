"""The public demo: strangers try Parley for half an hour, each with one session and the bundled server."""
