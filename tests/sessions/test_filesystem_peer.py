"""npm's `@modelcontextprotocol/server-filesystem`: a second reference server, which asks for roots and obeys them."""

from pathlib import Path

import pytest

from app.core.options import Root
from app.core.targets import StdioTarget
from app.sessions import Session
from tests import drive, peers

pytestmark = pytest.mark.peers


@pytest.mark.requirement("R5-20", "R5-29", "R5-30")
async def test_files_are_listed_read_and_kept_inside_the_roots(session: Session, tmp_path: Path):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / "note.txt").write_text(f"a note in {folder.name}\n", encoding="utf-8")
    session.roots = [Root(uri=first.as_uri(), name="first")]
    command, *args = peers.filesystem_stdio()
    await drive.connected(session, StdioTarget(command=command, args=(*args, str(second)), env=peers.node_env()))
    names = {tool["name"] for tool in session.tools.items}
    assert {"read_text_file", "list_directory", "list_allowed_directories"} <= names
    await drive.until(session, lambda: any(ask.kind == "roots" and ask.settled for ask in session.inbox.settled))

    async def allowed() -> str:
        call = await drive.call_tool(session, "list_allowed_directories")
        return str((await session.result(call))["content"][0]["text"])

    told = await allowed()
    while str(first) not in told:
        # It has our answer, and takes it up in its own time.
        told = await allowed()
    assert str(second) not in told
    read = await drive.call_tool(session, "read_text_file", {"path": str(first / "note.txt")})
    assert (await session.result(read))["content"][0]["text"] == "a note in first\n"
    refused = await drive.call_tool(session, "read_text_file", {"path": str(second / "note.txt")})
    result = await session.result(refused)
    assert refused.state == "done" and result["isError"] is True and "denied" in result["content"][0]["text"].lower()
    missing = await drive.call_tool(session, "read_text_file", {})
    assert missing.error is not None or (await session.result(missing))["isError"] is True

    await session.set_roots([Root(uri=second.as_uri())])
    told = await allowed()
    while str(second) not in told:
        told = await allowed()
    read = await drive.call_tool(session, "read_text_file", {"path": str(second / "note.txt")})
    assert (await session.result(read))["content"][0]["text"] == "a note in second\n"
    assert [finding for finding in drive.findings(session) if finding.level == "must"] == []
