"""The table of a team's settings in README.md, made of the settings: `python -m tests.settings_table --write`."""

from __future__ import annotations

import json
import sys

from pydantic.fields import FieldInfo

from app.team_oidc import Oidc
from app.team_settings import StoreSettings, TeamSettings
from tests.drive import ROOT

HEAD = "| setting | unless told | meaning |\n|---|---|---|\n"
README = ROOT / "README.md"


def table() -> str:
    """One row for each setting, in the order of the code; those of a table of its own beside it."""
    fields: dict[str, FieldInfo] = {}
    for name, known in TeamSettings.model_fields.items():
        fields[name] = known
        for of, inside in (("oidc", Oidc), ("store", StoreSettings)):
            if name == of:
                fields |= {f"{of}.{inner}": one for inner, one in inside.model_fields.items()}
    rows = []
    for name, known in fields.items():
        value = list(known.default) if isinstance(known.default, tuple) else known.default
        plain = (
            name not in {"limits", "catalogue", "store"} and known.default is not None and known.default_factory is None
        )
        default = f"`{json.dumps(value, default=str)}`" if plain else ""
        meaning = " ".join((known.description or "").split())
        rows.append(f"| `{name}` | {'required' if known.is_required() else default} | {meaning} |\n")
    return HEAD + "".join(rows)


def written(text: str) -> str:
    """README.md with this table in the place of the one that it has."""
    before, _, after = text.partition(HEAD)
    lines = after.splitlines(keepends=True)
    rest = next(at for at, line in enumerate(lines) if not line.startswith("|"))
    return before + table() + "".join(lines[rest:])


if __name__ == "__main__":
    if "--write" in sys.argv:
        README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table(), end="")
