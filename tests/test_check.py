"""``python -m tmuxmcp --check``, and starts that fail: one clear message, no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tmuxmcp", *arguments],
        env=os.environ | environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=20,
    )


def check(path: Path, status: int = 0, **environ: str) -> dict[str, Any]:
    done = run("--check", TMUXMCP_SOCKET=f"path:{path}", **environ)
    assert (done.returncode, done.stderr) == (status, "")
    (line,) = done.stdout.splitlines()
    record: dict[str, Any] = json.loads(line)
    return record


def start(path: Path, *more: str) -> None:
    subprocess.run(
        ["tmux", "-S", path, "-f", "/dev/null", "new-session", "-d", "exec cat", *more],
        check=True,
        stdin=subprocess.DEVNULL,
    )


def test_without_a_server(socket_path: Path) -> None:
    record = check(socket_path)
    assert record["event"] == "startup"
    assert (record["server_state"], record["tmux_usable"]) == ("absent", True)
    assert record["ambient"]["state"] == "quiet"
    assert record["tmux_version"]
    assert record["resolved_socket_path"] == str(socket_path)
    assert record["host_command_tools"] == 0
    assert not socket_path.exists()


def test_with_a_server(socket_path: Path) -> None:
    start(socket_path, ";", "set-hook", "-g", "after-list-keys", "display-message x")
    record = check(socket_path)
    assert (record["server_state"], record["configuration_provenance"]) == ("existing", "unknown")
    assert record["ambient"] == {"state": "active", "hooks": 1, "aliases": 0}


def test_the_default_socket_is_the_one_of_the_product(socket_path: Path) -> None:
    done = run("--check", TMUX_TMPDIR=str(socket_path.parent))
    record = json.loads(done.stdout)
    assert record["socket"] == "name:tmuxmcp"
    assert record["resolved_socket_path"] == f"{socket_path.parent}/tmux-{os.getuid()}/tmuxmcp"
    assert record["toolsets"] == ["inspect", "manage", "execute", "teardown"]
    assert record["tool_count"] == 47


@pytest.mark.parametrize("program", ["/nonexistent/tmux", "/bin/false"])
def test_an_unusable_tmux_is_status_1_and_says_what_to_do(socket_path: Path, program: str) -> None:
    record = check(socket_path, status=1, TMUXMCP_TMUX_BIN=program)
    assert record["tmux_usable"] is False
    assert record["tool_count"] == 43
    assert any("TMUXMCP_TMUX_BIN" in warning for warning in record["warnings"])


@pytest.mark.parametrize(
    ("arguments", "environ", "words"),
    [
        ([], {"TMUXMCP_TOOLSETS": "inspct"}, ["inspct", "inspect, manage, execute, teardown"]),
        ([], {"TMUXMCP_EXCLUDE_TOOLS": "kill_server"}, ["kill_server", "kill_session"]),
        ([], {"TMUXMCP_SOKET": "x"}, ["TMUXMCP_SOKET", "TMUXMCP_SOCKET"]),
        ([], {"LIBTMUX_SAFETY": "readonly"}, ["LIBTMUX_SAFETY", "TMUXMCP_TOOLSETS"]),
        (["--socket", "path:/" + "s" * 200], {}, ["longer than"]),
        (["--nonsense"], {}, ["--nonsense"]),
    ],
)
def test_a_wrong_setting_is_status_2_and_one_message(
    arguments: list[str], environ: Mapping[str, str], words: list[str]
) -> None:
    for more in ([], ["--check"]):
        done = run(*arguments, *more, **environ)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("tmuxmcp did not start.\n\n")
        assert "Traceback" not in done.stderr
        assert all(word in done.stderr for word in words)


def test_a_server_that_is_there_can_be_refused(socket_path: Path) -> None:
    start(socket_path)
    done = run("--check", TMUXMCP_SOCKET=f"path:{socket_path}", TMUXMCP_EXISTING_SERVER="refuse")
    assert done.returncode == 2
    assert str(socket_path) in done.stderr


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_need_nothing_else(flag: str) -> None:
    done = run(flag)
    assert (done.returncode, done.stderr) == (0, "")
    assert "tmuxmcp" in done.stdout


def test_settings_are_judged_before_the_sdk_is_imported() -> None:
    code = (
        "import sys; from tmuxmcp.__main__ import main; sys.argv = ['tmuxmcp', '--toolsets', 'x'];"
        "assert main() == 2; assert not [name for name in sys.modules if name.partition('.')[0] == 'mcp']"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
