#!/usr/bin/env python3
"""Put several tmux versions side by side, so that the tests can run against each of them.

Every version ends as one executable, CACHE/VERSION/tmux, and standard output gets one line
"VERSION  PATH" for each, oldest first: the installed one, and those of Debian's suites. A tmux that
cannot be had is skipped with a line on standard error and exit code 0: the versions move, and a
mirror may be down. What is there already is not fetched again.

The packages of a newer Debian need its C library, so each tmux is unpacked together with the
libraries it depends on and patched to load those. Nothing is installed, root is not needed, and the
mirror is the one that this system's own apt sources name. Programs in the panes use the system's
libraries.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

INSTALLED = "installed"
SUITES = ("bookworm", "trixie", "trixie-backports", "sid")
"""Debian's suites: tmux 3.3a, 3.5a, 3.7c (while backports has it) and whatever is newest."""

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
DEFAULT_CACHE = Path(__file__).resolve().parent.parent / ".cache" / "tmux"


class Unavailable(Exception):
    """This tmux cannot be had here and now; the message says why."""


def output(*argv: str | Path) -> str:
    """The standard output of a program that must succeed."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=300
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{argv[0]} did not run: {error}") from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        reason = next(
            (line for line in lines if line.startswith("E: ")), lines[-1] if lines else "no message"
        )
        raise Unavailable(f"{argv[0]} failed with status {done.returncode}: {reason}")
    return done.stdout


def version(*tmux: str | Path) -> str:
    """``3.5a`` for a tmux that starts here."""
    answer = output(*tmux, "-V").split()
    if len(answer) != 2 or answer[0] != "tmux":
        raise Unavailable(f"{tmux[-1]} -V says {' '.join(answer)!r}")
    return answer[1]


def age(found: str) -> tuple[list[int], str]:
    """A key that sorts versions oldest first."""
    return [int(number) for number in re.findall(r"\d+", found)], found


def release() -> str:
    """The code name of this system's Debian release."""
    try:
        found = re.search(r'^VERSION_CODENAME="?(\w+)', Path("/etc/os-release").read_text(), re.MULTILINE)
    except OSError:
        found = None
    if found is None:
        raise Unavailable("this system is no release of Debian")
    return found[1]


def mirror() -> str:
    """The archive that this system gets its own release's packages from."""
    codename = release()
    fields = "$(RELEASE) $(REPO_URI)"
    targets = output("apt-get", "indextargets", "--format", fields, "Created-By: Packages", "Component: main")
    for line in targets.splitlines():
        suite, uri = line.split(maxsplit=1)
        if suite == codename:
            return uri
    raise Unavailable(f"the apt sources of this system name no archive for {codename!r}")


def unpack(suite: str, work: Path, *packages: str) -> Path:
    """Download packages of a suite with all they depend on; the directory they are unpacked in."""
    archives = work / "cache" / "archives"
    for directory in (archives / "partial", work / "lists" / "partial"):
        directory.mkdir(parents=True)
    (work / "status").touch()  # nothing counts as installed, so every dependency is downloaded
    source, needed = mirror(), dict.fromkeys((suite.removesuffix("-backports"), suite))
    (work / "sources.list").write_text(
        "".join(f"deb [signed-by={KEYRING}] {source} {each} main\n" for each in needed)
    )
    private = {
        "Dir::Etc::sourcelist": work / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::State": work,
        "Dir::State::lists": work / "lists",
        "Dir::State::status": work / "status",
        "Dir::Cache": work / "cache",
        "APT::Sandbox::User": "",
        "APT::Update::Error-Mode": "any",
        "Acquire::Languages": "none",
        "Acquire::Retries": "2",
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in private.items())]
    output(*apt, "update")
    output(*apt, "install", "--download-only", "--no-install-recommends", *packages)
    root = work / "root"
    for package in sorted(archives.glob("*.deb")):
        output("dpkg-deb", "--extract", package, root)
    return root


def assemble(root: Path, work: Path, cache: Path) -> str:
    """Make ``CACHE/VERSION/`` of an unpacked tmux and its libraries; its version."""
    made = work / "made"
    tmux, library = made / "tmux", made / "lib"
    library.mkdir(parents=True)
    shutil.copy2(root / "usr/bin/tmux", tmux)
    for file in (*root.glob("lib/*-linux-*/*.so*"), *root.glob("usr/lib/*-linux-*/*.so*")):
        shutil.copy2(file, library, follow_symlinks=False)
    loader = next(library.glob("ld-linux*"), None)
    if loader is None:
        raise Unavailable("its C library brings no program loader")
    load = (loader, "--library-path", library)
    found = version(*load, tmux)
    target = cache / found
    # The interpreter of an ELF file is an absolute path. An RPATH, unlike a RUNPATH, also serves the
    # libraries that the libraries need.
    patchelf = (*load, root / "usr/bin/patchelf")
    output(*patchelf, "--set-interpreter", target / "lib" / loader.name, tmux)
    output(*patchelf, "--force-rpath", "--set-rpath", "$ORIGIN/lib", tmux)
    shutil.rmtree(target, ignore_errors=True)
    made.rename(target)
    return found


def link_installed(cache: Path) -> str:
    """Make ``CACHE/VERSION/tmux`` lead to the installed tmux; its version."""
    installed = shutil.which("tmux")
    if installed is None:
        raise Unavailable("no tmux is on the PATH")
    found = version(installed)
    tmux = cache / found / "tmux"
    tmux.parent.mkdir(exist_ok=True)
    tmux.unlink(missing_ok=True)
    tmux.symlink_to(installed)
    return found


def provide(source: str, cache: Path) -> str:
    """See to it that the cache has the tmux of a source; its version.

    The cache remembers a source's version by a symbolic link ``CACHE/.SOURCE`` to the version's directory.
    """
    link = cache / f".{source}"
    try:
        found = link.readlink().name
        if version(link / "tmux") == found:
            return found
    except (OSError, Unavailable):
        pass  # not there, or moved here from elsewhere: make it anew
    if source == INSTALLED:
        found = link_installed(cache)
    else:
        with tempfile.TemporaryDirectory(dir=cache, prefix=".work-") as directory:
            work = Path(directory)
            found = assemble(unpack(source, work, f"tmux/{source}", "patchelf"), work, cache)
    version(cache / found / "tmux")
    link.unlink(missing_ok=True)
    link.symlink_to(found)
    return found


def wanted() -> list[str]:
    """The sources to ask: a suite whose tmux is the installed one need not be fetched."""
    try:
        codename = release() if shutil.which("tmux") else None
    except Unavailable:
        codename = None
    return [INSTALLED, *(suite for suite in SUITES if suite != codename)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "cache", nargs="?", type=Path, default=DEFAULT_CACHE, help="default: .cache/tmux in this checkout"
    )
    cache: Path = parser.parse_args().cache.resolve()
    cache.mkdir(parents=True, exist_ok=True)
    versions: set[str] = set()
    for source in wanted():
        try:
            versions.add(provide(source, cache))
        except (Unavailable, OSError) as reason:
            print(f"tmux of {source}: skipped: {reason}", file=sys.stderr)
    for found in sorted(versions, key=age):
        print(f"{found:<6}  {cache / found / 'tmux'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
