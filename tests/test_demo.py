"""The demo, run as a person runs it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import TMUX

STEPS = 10
ROOT = Path(__file__).parent.parent


def demo(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "TMUXMCP_TMUX_BIN": TMUX, **environ}
    argv = [sys.executable, "-m", "scripts.demo", *arguments]
    return subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False)


def socket(told: str) -> Path:
    """The socket that the demo said one could attach to."""
    (path,) = set(re.findall(r"-N -S (\S+) attach", told))
    return Path(path)


def test_every_step_comes_out_as_expected() -> None:
    ran = demo()
    assert (ran.returncode, ran.stderr) == (0, "")
    assert re.findall(r"^ ?(\d+)\. ", ran.stdout, re.MULTILINE) == [str(n) for n in range(1, STEPS + 1)]
    assert f"All {STEPS} steps came out as expected" in ran.stdout
    assert not socket(ran.stdout).parent.exists()


@pytest.fixture
def kept() -> Iterator[list[Path]]:
    """Sockets whose servers and directories are removed."""
    sockets: list[Path] = []
    yield sockets
    for path in sockets:
        subprocess.run([TMUX, "-N", "-S", path, "kill-server"], check=False)
        while path.parent.exists():  # The shells that end with the server may still write there.
            shutil.rmtree(path.parent, ignore_errors=True)


def test_a_session_that_is_kept(kept: list[Path]) -> None:
    ran = demo(KEEP="1")
    assert ran.returncode == 0
    kept.append(socket(ran.stdout))
    listed = subprocess.run(
        [TMUX, "-N", "-S", kept[0], "list-sessions", "-F", "#{session_name}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert listed.stdout == "demo\n"
    assert f"-N -S {kept[0]} kill-server; rm -r {kept[0].parent}\n" in ran.stdout


def test_a_step_that_does_not_come_out_as_expected(tmp_path: Path) -> None:
    """The demo says what was wrong, fails, and leaves nothing behind."""
    broken = tmp_path / "tmux"
    broken.write_text(f'#!/bin/sh\ncase $* in *load-buffer*) exit 3;; esac\nexec {TMUX} "$@"\n')
    broken.chmod(0o755)
    ran = demo("--keep", TMUXMCP_TMUX_BIN=str(broken))
    assert ran.returncode == 1
    assert "\n 3. Run a build" in ran.stdout
    assert ran.stderr.startswith("\nNot as expected: run_shell_command answered: ")
    assert not socket(ran.stdout).parent.exists()


def test_no_tmux() -> None:
    ran = demo(TMUXMCP_TMUX_BIN="/nonexistent/tmux")
    assert ran.returncode == 1
    assert "/nonexistent/tmux" in ran.stderr
    assert "Traceback" not in ran.stderr
