"""The web: who is asking, pages, actions, the stream. The only package that knows HTTP requests and HTML."""
