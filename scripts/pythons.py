"""The Pythons that can be had here: those that are installed, and newer ones of Debian's.

A Python of Debian's is unpacked with its libraries, as tmux is in scripts/tmux_versions.py; nothing is
installed. Its program loads the libraries of this system unless it is told otherwise, so a script of a few
words takes its place and starts it with its own.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from scripts.tmux_versions import Unavailable, unpack

OLDEST = (3, 11)
NEWEST = (3, 15)
SUITE = "sid"
UNPACKED = ((3, 14), (3, 15))
"""What to take from Debian when it is not installed."""


def installed() -> dict[tuple[int, int], str]:
    """The installed Pythons that we support, on PATH and of pyenv; of each minor version the first found."""
    found: dict[tuple[int, int], str] = {sys.version_info[:2]: sys.executable}
    for minor in range(OLDEST[1], NEWEST[1] + 1):
        for program in _candidates(f"python3.{minor}"):
            if _works(program):
                found.setdefault((3, minor), program)
    return found


def unpacked(version: tuple[int, int], cache: Path) -> str:
    """Debian's Python of a version, in the cache. Raises `Unavailable`."""
    name = "python{}.{}".format(*version)
    program = cache / name / "usr" / "bin" / name
    if not _works(str(program)):
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix=".work-") as directory:
            root = unpack(SUITE, Path(directory), name)
            shutil.rmtree(cache / name, ignore_errors=True)
            root.rename(cache / name)
        _take_its_place(program)
        if not _works(str(program)):
            raise Unavailable(f"{SUITE}'s {name} does not start here")
    return str(program)


def _take_its_place(program: Path) -> None:
    """Put a script where the program is, which starts it with the libraries that were unpacked with it."""
    loader = next(program.parents[1].glob("lib/*-linux-*/ld-linux*"), None)
    if loader is None:
        raise Unavailable(f"{program.name} comes without a program loader")
    real = program.parents[1] / "libexec" / program.name
    real.parent.mkdir(exist_ok=True)
    program.rename(real)
    start = f'"{loader}" --argv0 "$0" --library-path "{loader.parent}" "{real}" "$@"'
    program.write_text(f"#!/bin/sh\nexec {start}\n")
    program.chmod(0o755)


def _candidates(name: str) -> Iterator[str]:
    on_path = shutil.which(name)
    if on_path is not None:
        yield on_path
    for directory in sorted((Path.home() / ".pyenv" / "versions").glob("*/bin")):
        yield str(directory / name)


def _works(program: str) -> bool:
    """Whether a program is a Python that starts here: pyenv's stand-ins on PATH are not always."""
    try:
        done = subprocess.run([program, "-c", "import ctypes, ssl, venv"], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0
