"""The vendored scripts are exactly what was checked in, and every static file is one of ours."""

import hashlib
from pathlib import Path

STATIC = Path(__file__).parents[2] / "static"
VENDOR = STATIC / "vendor"


def listed() -> dict[str, str]:
    lines = (VENDOR / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def test_every_vendored_file_has_the_recorded_digest():
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VENDOR.iterdir()}
    found.pop("SHA256SUMS")
    assert found == listed()


def test_vendored_scripts_come_with_their_licence():
    assert "Zero-Clause BSD" in (VENDOR / "LICENSE-htmx.txt").read_text(encoding="utf-8")


def test_no_static_file_names_another_host():
    for path in STATIC.rglob("*"):
        if path.is_file() and "vendor" not in path.parts:
            text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
            assert "://" not in text, path
