"""Both halves of the tests: `python -m tests.halves [arguments of pytest]`, which `make test` runs.

They are two runs of pytest, because Playwright holds an event loop in its process, and other tests start one of their
own. One after the other: at the same time they are a quarter quicker, but on two cores six workers make a browser so
slow that what a person sees at once comes after a minute.
"""

import sys
from collections.abc import Sequence

from tests import again

WORKERS = 3
"""Of each half, also on two cores: half of the time a test waits for something."""
FIRST = ["--ignore=tests/browser", "--ignore=tests/old_peers", "--ignore=tests/team", "--ignore=tests/isolation"]
FIRST += ["--ignore=tests/scale"]
BROWSER = ["tests/browser", "--ignore-glob=*/test_team*.py"]
NOTHING_TO_RUN = 5
"""What pytest ends with when no test was chosen, as by a `-k` that names only tests of the other half."""


def main(arguments: Sequence[str]) -> int:
    """Run both; 0 when neither failed and one had something to run, else what the first that failed ended with."""
    workers = ["-n", str(WORKERS), "--dist", "worksteal"]
    codes = [again.run([*workers, *half, *arguments]) for half in (FIRST, BROWSER)]
    failed = [code for code in codes if code not in {0, NOTHING_TO_RUN}]
    return failed[0] if failed else min(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
