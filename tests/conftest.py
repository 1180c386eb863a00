"""What all tests share: an environment of their own, whoever runs them, and sockets of their own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from tests.bench import Bench

SHELLS = ("bash", "zsh", "fish", "dash", "mksh", "ksh")
"""The shells that the tests cover."""

TMUX = os.environ.pop("TMUXMCP_TEST_TMUX", None) or shutil.which("tmux") or "tmux"
"""The tmux program that the tests run: another version's with TMUXMCP_TEST_TMUX=/path/to/tmux."""

for name in list(os.environ):
    if name in {"TMUX", "TMUX_PANE", "TMUX_TMPDIR"} or name.startswith(("TMUXMCP_", "LIBTMUX_")):
        del os.environ[name]

for sign in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(sign) is signal.SIG_IGN:
        # As a job in the background has it, and so would have what it starts: there it is the default now.
        signal.signal(sign, lambda number, frame: None)

# Examples differ in what the machine does meanwhile, not only in their size.
hypothesis.settings.register_profile("tmuxmcp", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("tmuxmcp")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def socket_path() -> Iterator[Path]:
    """Where no tmux server listens yet. One that is there after the test is ended."""
    # Not below pytest's own temporary directory: a socket path holds 103 bytes.
    with tempfile.TemporaryDirectory(prefix="tmuxmcp-", dir="/tmp", ignore_cleanup_errors=True) as directory:
        path = Path(directory).resolve() / "s"
        yield path
        if path.exists():
            subprocess.run(
                [TMUX, "-N", "-S", path, "kill-server"],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )


@pytest.fixture
def bench(socket_path: Path) -> Bench:
    """A tmux server with the session `a`, whose one pane runs `cat`, and the tools on it."""
    from tests.bench import Bench, Counting

    bench = Bench(socket_path, Counting())
    bench.tmux("new-session", "-d", "-s", "a", "-n", "w", "-x", "80", "-y", "24", "exec cat")
    return bench


def installed(shell: str) -> str:
    """The path of a shell; the test is skipped where there is none."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    return path


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    """The path of each shell in turn."""
    return installed(request.param)
