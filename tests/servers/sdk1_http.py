"""The server of sdk1.py over HTTP: `sdk1_http.py http [--json] [--stateless]` or `sdk1_http.py sse`."""

import sys

import anyio
from sdk1 import server
from web_record import serve


@server.tool()
async def hold() -> str:
    """Never answers."""
    await anyio.sleep_forever()
    return ""


if __name__ == "__main__":
    server.settings.json_response = "--json" in sys.argv
    server.settings.stateless_http = "--stateless" in sys.argv
    serve(server.sse_app() if sys.argv[1] == "sse" else server.streamable_http_app())
