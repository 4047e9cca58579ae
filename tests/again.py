"""A run of pytest whose failures get a second look: `python -m tests.again [arguments of pytest]`.

On a crowded machine a test that waits for a real process or a browser fails now and then, and one such test of ten
thousand must not cost a whole day's work. So what failed, if it is little, runs once more, alone. What fails then too
is a failure; what passes is named at the end as shaky, and is a fault to mend: of the test or, as often, of Parley.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

MOST = 5
"""Failures that get a second look. More are no accident."""
FAILED = 1
"""What pytest ends with when tests failed; anything else is not about tests."""


def run(arguments: Sequence[str]) -> int:
    """What pytest ends with; 0 also when all that failed passes alone, which is then said."""
    with tempfile.TemporaryDirectory(prefix="parley-again-") as folder:
        pytest = [sys.executable, "-m", "pytest", "-o", f"cache_dir={folder}"]
        code = subprocess.run([*pytest, *arguments], check=False).returncode
        failed = _failed(Path(folder))
        if code != FAILED or not 0 < len(failed) <= MOST:
            return code
        print(f"\nOnce more, alone: {len(failed)} that failed", flush=True)
        code = subprocess.run([*pytest, *arguments, "-n", "0", "--last-failed"], check=False).returncode
    if code == 0:
        print("\nSHAKY: failed beside other tests and passed alone. Each is a fault to mend:", *failed, sep="\n  ")
    return code


def _failed(cache: Path) -> list[str]:
    """The ids of what failed, as pytest has left them."""
    try:
        return sorted(json.loads((cache / "v" / "cache" / "lastfailed").read_text()))
    except OSError:
        return []


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
