"""What `make test-team` needs beside Python: nginx, HAProxy and openssl for the proxy, bwrap for the sandbox, and
PostgreSQL.

The set-up of that target. What is missing is installed from the packages of Debian where that may be done, by root and
with apt-get; elsewhere it is said, and the tests that need it say at the end of the run that they did not run.
"""

import os
import shutil
import subprocess
import sys

from tests import postgres

WANTED = {"nginx": "nginx-light", "openssl": "openssl", "bwrap": "bubblewrap", "haproxy": "haproxy"}
"""Each program, and the package of Debian that has it."""


def missing() -> list[str]:
    """The packages of what is not here."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    lacking = [package for program, package in WANTED.items() if shutil.which(program, path=path) is None]
    return lacking if postgres.programs() is not None else [*lacking, "postgresql"]


def install(packages: list[str]) -> str:
    """Install packages; why that did not work, or nothing."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return "this is no Debian" if apt is None else "only root may install"
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        done = subprocess.run([apt, "-q", *words], env=quiet, capture_output=True, text=True, check=False)
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["apt-get failed"])[-1]
    return ""


def main() -> int:
    lacking = missing()
    if lacking:
        print(f"Installing {' '.join(lacking)} for the tests of a team")
        why = install(lacking)
        if lacking := missing():
            names = " ".join(lacking)
            print(f"THIS MACHINE LACKS {names} ({why}): what they are needed for is not shown.", file=sys.stderr)
            print(
                f"Debian: apt-get install {names}; elsewhere: nginx, HAProxy, openssl, bubblewrap and PostgreSQL.",
                file=sys.stderr,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
