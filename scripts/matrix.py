"""Run the tests on every tmux version that can be had, and print a table of versions and results.

``make test-tmux`` fetches the versions (see scripts/tmux_versions.py) and runs this. Arguments go to
pytest: ``make test-tmux ARGS="tests/test_run.py -k bash"``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from scripts.tmux_versions import DEFAULT_CACHE

# These test the package, the documents and the manifest: no other tmux can change their results.
_APART = ("test_packaging", "test_generated", "test_claims", "test_settings", "test_manifest", "test_surface")


class Result(NamedTuple):
    """How the tests went in one environment."""

    name: str
    passed: int
    failed: int
    skipped: int
    seconds: float

    @property
    def row(self) -> str:
        return f"| {self.name} | {self.passed} | {self.failed} | {self.skipped} | {self.seconds:.0f} s |"


def versions() -> list[tuple[str, Path]]:
    """The versions that are there, oldest first, as (version, program)."""
    listed = subprocess.run(
        [sys.executable, "-m", "scripts.tmux_versions", str(DEFAULT_CACHE)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    pairs = [line.split(maxsplit=1) for line in listed.stdout.splitlines()]
    return [(version, Path(path)) for version, path in pairs]


def run(name: str, arguments: list[str], *, tmux: Path | None = None, python: str = sys.executable) -> Result:
    """Run the tests on this Python, with this tmux first on PATH."""
    print(f"== {name}", flush=True)
    begun = time.monotonic()
    path = os.environ["PATH"] if tmux is None else f"{tmux.parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    command = [python, "-m", "pytest", "-rN", "--tb=short", *arguments]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    lines = done.stdout.splitlines()
    summary = lines[-1] if lines else ""
    found = re.findall(r"(\d+) (passed|failed|skipped|errors?)", summary)
    counts = {what: int(number) for number, what in found}
    failed = counts.get("failed", 0) + counts.get("error", 0) + counts.get("errors", 0)
    if done.returncode and not failed:
        failed = 1
    if failed:
        print(done.stdout)
    return Result(name, counts.get("passed", 0), failed, counts.get("skipped", 0), time.monotonic() - begun)


def main() -> int:
    arguments = sys.argv[1:] or ["-n", "2", *(f"--ignore=tests/{name}.py" for name in _APART)]
    results = [run(f"tmux {version}", arguments, tmux=program) for version, program in versions()]
    print("| | passed | failed | skipped | time |\n| --- | --- | --- | --- | --- |")
    print("\n".join(result.row for result in results))
    return any(result.failed or not result.passed for result in results)


if __name__ == "__main__":
    sys.exit(main())
