"""`parley open FILE`: a recording, gzipped or not, is there when the browser is; what is none is said at once."""

import gzip
from pathlib import Path

import pytest

from app.recordings.lines import frame_line, header_line
from app.recordings.nouns import Frame, Header
from tests.cli.test_command_line import Start, fails, parley
from tests.web.asgi import TOKEN

__all__ = ["parley"]


def test_a_recording_is_opened_from_the_command_line(parley: Start, tmp_path: Path):
    raw = b'{"jsonrpc":"2.0","method":"notifications/x"}'
    text = header_line(Header(1, "Parley 2.0", 1763403306.0, title="Yesterday")) + frame_line(
        Frame(3, 1763403306.5, "in", len(raw), 1, raw)
    )
    file = tmp_path / "yesterday.jsonl.gz"
    file.write_bytes(gzip.compress(text))
    one = parley("--no-open", "--data-dir", str(tmp_path / "data"), "open", str(file), PARLEY_TOKEN=TOKEN)
    one.says(r"&next=/r/rec-")
    assert [each["title"] for each in one.script("GET", "/recordings")["recordings"]] == ["Yesterday"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["open"], 2, "the file of a recording is missing"),
        (["open", "/no/such/file"], 1, "cannot be read"),
        (["open", __file__], 1, "is no recording of Parley"),
    ],
)
def test_what_is_no_recording_is_said_in_one_sentence(arguments: list[str], code: int, words: str):
    left, said = fails(*arguments)
    assert left == code
    assert words in said
    assert said.count("\n") <= 1
