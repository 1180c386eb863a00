"""Make deliberate faults, one at a time, and see that a test fails for each.

``make test-mutants`` copies the repository, makes each fault of `tests.faults` in the copy, and runs there
the tests that have to catch it. Words on the command line choose among the faults.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.faults import FAULTS, Fault

ROOT = Path(__file__).resolve().parent.parent


def copy(directory: Path) -> Path:
    """A copy of the files of the repository, under a version control of its own."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, directory / name)
    subprocess.run(["git", "init", "-q"], cwd=directory, check=True)
    return directory


def run(directory: Path, where: Sequence[str], names: str) -> subprocess.CompletedProcess[str]:
    """Run tests in a copy of the repository."""
    argv = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", names, *where]
    environ = {**os.environ, "PYTHONPATH": str(directory), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(argv, cwd=directory, env=environ, capture_output=True, text=True)


def fate(fault: Fault, directory: Path) -> str:
    """What became of a fault: `caught`, or why it was not. The copy is as before then."""
    touched = {edit.file: (directory / edit.file).read_text() for edit in fault.edits}
    try:
        for edit in fault.edits:
            edit.apply(directory)
        done = run(directory, [fault.where], fault.tests)
    finally:
        for file, text in touched.items():
            (directory / file).write_text(text)
    if done.returncode == 1 and "= FAILURES =" in done.stdout and "= ERRORS =" not in done.stdout:
        return "caught"
    return "survived" if done.returncode == 0 else f"no test ran:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


def fates(faults: Sequence[Fault]) -> Iterator[tuple[Fault, str]]:
    """Try faults in as many copies as there are processors. Raises `SystemExit` when tests fail without."""
    workers = max(2, os.cpu_count() or 1)
    with tempfile.TemporaryDirectory(prefix="tmuxmcp-mutants-") as scratch:
        free: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            (Path(scratch) / str(number)).mkdir()
            free.put(copy(Path(scratch) / str(number)))
        first = free.get()
        named = " or ".join(sorted({fault.tests for fault in faults}))
        done = run(first, sorted({fault.where for fault in faults}), named)
        if done.returncode:
            raise SystemExit(f"The tests fail as they are:\n{done.stdout[-4000:]}{done.stderr[-2000:]}")
        free.put(first)

        def one(fault: Fault) -> str:
            directory = free.get()
            try:
                return fate(fault, directory)
            finally:
                free.put(directory)

        with ThreadPoolExecutor(workers) as pool:
            yield from zip(faults, pool.map(one, faults), strict=True)


def main(wanted: Sequence[str]) -> int:
    faults = [fault for fault in FAULTS if all(word in f"{fault.tests} {fault.what}" for word in wanted)]
    caught = 0
    for fault, end in fates(faults):
        caught += end == "caught"
        print(f"{end.partition(':')[0]:12} {fault.tests:14} {fault.what}", flush=True)
        if end not in ("caught", "survived"):
            print(end)
    print(f"{caught}/{len(faults)} caught")
    return 0 if caught == len(faults) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
