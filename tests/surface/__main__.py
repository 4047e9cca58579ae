"""`python -m tests.surface` walks and prints what it saw; with `--write` it adds what is new to `surface.json`.

Adding is merging: a type that came once stays allowed, since some depend on which of two things comes first. To take
something out, edit the file, and have a reason.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.browser.parley import running
from tests.surface import GOLDEN
from tests.surface.journey import walk
from tests.surface.shapes import merge


def merged(known: dict[str, Any], seen: dict[str, Any]) -> dict[str, Any]:
    """Both, route by route and answer by answer."""
    answers: dict[str, dict[str, Any]] = {route: dict(kinds) for route, kinds in known["answers"].items()}
    for route, kinds in seen["answers"].items():
        there = answers.setdefault(route, {})
        for kind, shape in kinds.items():
            there[kind] = merge(there.get(kind), shape)
    events = {each: sorted({*known["events"].get(each, ()), *names}) for each, names in seen["events"].items()}
    return {"answers": answers, "events": events}


def main(arguments: list[str]) -> int:
    with running("--room", "127.0.0.1:0") as parley:
        seen = walk(parley).as_json()
    if arguments == ["--write"]:
        known = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {"answers": {}, "events": {}}
        seen = merged(known, seen)
    text = json.dumps(seen, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    if arguments == ["--write"]:
        GOLDEN.write_text(text, encoding="utf-8")
        print(f"{GOLDEN.name}: {len(seen['answers'])} routes")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
