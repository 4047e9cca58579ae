"""The server of sdk2.py over HTTP: `sdk2_http.py http [--json] [--stateless]` or `sdk2_http.py sse`."""

import sys

import anyio
from sdk2 import server
from web_record import serve


@server.tool()
async def hold() -> str:
    """Never answers."""
    await anyio.sleep_forever()
    return ""


if __name__ == "__main__":
    if sys.argv[1] == "sse":
        serve(server.sse_app())
    else:
        serve(server.streamable_http_app(json_response="--json" in sys.argv, stateless_http="--stateless" in sys.argv))
