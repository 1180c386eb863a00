"""Run a subset of the tests on the oldest and the newest of what the server stands on, and print a table.

* each tmux that can be had (scripts/tmux_versions.py), on the Python of .venv
* each Python that can be had (scripts/pythons.py), with the newest dependencies that pip finds for it
* the oldest Python with the oldest dependencies that pyproject.toml allows

``make test-compat`` runs everything, ``make test-compat ARGS="tmux 3.13"`` what has one of these words in its
name. What cannot be had is said in the table. The exit status is 1 when a test failed.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from scripts import matrix, pythons
from scripts.matrix import Result
from scripts.tmux_versions import Unavailable

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "compat"
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "hatchling", "editables")
"""What the tests need besides the dependencies of the package."""

_NAMES = (
    *("arguments", "capture", "cases", "cursor", "keyboard", "matching", "program", "schema_lint", "server"),
    *("snapshots", "spawn", "transport", "wait"),
    *(f"tools_{each}" for each in ("configuration", "execute", "inspect", "manage", "teardown")),
)
SUBSET = (
    ["tests/tmux", *(f"tests/test_{name}.py" for name in _NAMES)],
    ["tests/test_run.py", "-k", "bash or zsh"],
)
"""What depends on tmux, the shells, the SDK or Python, in as many runs."""


class Environment(NamedTuple):
    """Something to run the tests in."""

    name: str
    python: str
    requirements: tuple[str, ...] = ()
    """What is installed in a virtual environment of its own; nothing when `python` has it all."""
    tmux: Path | None = None


def environments() -> Iterator[Environment]:
    """All that can be had here."""
    for version, program in matrix.versions():
        yield Environment(f"tmux {version}", sys.executable, tmux=program)
    found = pythons.installed()
    for wanted in pythons.UNPACKED:
        if wanted not in found:
            try:
                found[wanted] = pythons.unpacked(wanted, CACHE)
            except Unavailable as reason:
                print("Python {}.{}: skipped: {}".format(*wanted, reason), file=sys.stderr)
    allowed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for _, python in sorted(found.items()):
        yield Environment(f"Python {version_of(python)}", python, tuple(allowed))
    # Each range is NAME>=OLDEST or NAME>=OLDEST,<END.
    oldest = [each.partition(",")[0].replace(">=", "==") for each in allowed]
    first = found[min(found)]
    yield Environment(f"Python {version_of(first)}, {', '.join(oldest)}", first, tuple(oldest))


def version_of(python: str) -> str:
    code = "import platform; print(platform.python_version())"
    done = subprocess.run([python, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def prepare(environment: Environment) -> str:
    """The Python of an environment, with what it asks for. Raises `Unavailable`."""
    if not environment.requirements:
        return environment.python
    target = CACHE / re.sub(r"[^\w.]+", "-", environment.name).lower()
    shutil.rmtree(target, ignore_errors=True)
    python = str(target / "bin" / "python")
    _must(environment.python, "-m", "venv", "--without-pip", str(target))
    # Our own pip installs there: Debian's Python has none. A dependency without a wheel is not built.
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "install", "-q")
    _must(*pip, "--no-input", "--only-binary=:all:", *TOOLS, *environment.requirements)
    _must(*pip, "--no-input", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    return python


def _must(*argv: str) -> None:
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise Unavailable(errors[-1] if errors else done.stderr.strip()[-300:])


def run(environment: Environment, python: str) -> Result:
    """Run the subset."""
    results = [
        matrix.run(environment.name, ["-n", "2", *part], tmux=environment.tmux, python=python)
        for part in SUBSET
    ]
    columns = zip(*(result[1:] for result in results), strict=True)
    return Result(environment.name, *(sum(column) for column in columns))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="default: everything")
    words = parser.parse_args().words
    rows: list[str] = []
    failed = False
    for environment in environments():
        if words and not any(word in environment.name for word in words):
            continue
        try:
            result = run(environment, prepare(environment))
        except Unavailable as reason:
            rows.append(f"| {environment.name} | not run: {reason} |")
        else:
            rows.append(result.row)
            failed |= bool(result.failed or not result.passed)
        print(rows[-1], flush=True)
    print("\n| | passed | failed | skipped | time |\n| --- | --- | --- | --- | --- |")
    print("\n".join(rows))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
