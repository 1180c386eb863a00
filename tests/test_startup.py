"""What is found at startup, and that finding it never waits for a tmux that hangs."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from tmuxmcp import settings, startup
from tmuxmcp.errors import StartupError
from tmuxmcp.settings import Settings
from tmuxmcp.startup import Found, glance, listens, look
from tmuxmcp.tmux import socket as tmux_socket
from tmuxmcp.tmux.ambient import Ambient
from tmuxmcp.tmux.client import Client, find_binary
from tmuxmcp.tmux.runner import ProcessRunner


@pytest.fixture
def mute(socket_path: Path) -> Iterator[Path]:
    """A socket where something listens and never answers."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(socket_path))
        listening.listen(1)
        yield socket_path
    socket_path.unlink()


def start(path: Path, *more: str) -> None:
    subprocess.run(
        ["tmux", "-S", path, "-f", "/dev/null", "new-session", "-d", "-s", "a", "exec cat", *more],
        check=True,
        stdin=subprocess.DEVNULL,
    )


def configured(path: Path, **environ: str) -> Settings:
    return settings.resolve([], {"TMUXMCP_SOCKET": f"path:{path}", **environ})


async def found_on(path: Path, **environ: str) -> Found:
    """What `glance` and then `look` find."""
    chosen = configured(path, **environ)
    pinned = tmux_socket.resolve(str(chosen.socket), {})
    client = Client(ProcessRunner(), pinned, find_binary(chosen.tmux_bin), chosen.tmux_config)
    return await look(client, glance(chosen, pinned))


def test_a_server_listens(socket_path: Path) -> None:
    assert not listens(str(socket_path))
    start(socket_path)
    assert listens(str(socket_path))


def test_a_file_or_a_socket_left_behind_does_not_listen(socket_path: Path) -> None:
    socket_path.write_text("")
    assert not listens(str(socket_path))
    assert not listens(f"{socket_path}/below")
    socket_path.unlink()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(socket_path))
    assert not listens(str(socket_path))
    socket_path.unlink()


def test_what_never_answers_listens_all_the_same(mute: Path) -> None:
    assert [listens(str(mute)) for _ in range(20)] == [True] * 20


async def test_no_server_is_there(socket_path: Path) -> None:
    found = await found_on(socket_path)
    assert (found.server_state, found.ambient.state, found.problem) == ("absent", "quiet", None)
    assert found.tmux_version
    assert (await found_on(socket_path, TMUXMCP_TMUX_CONFIG="user")).ambient.state == "unknown"
    assert not socket_path.exists()


async def test_a_server_is_there(socket_path: Path) -> None:
    start(socket_path, ";", "set-hook", "-g", "after-list-keys", "display-message x")
    found = await found_on(socket_path)
    assert (found.server_state, found.ambient, found.problem) == (
        "existing",
        Ambient("active", True, 1),
        None,
    )


def test_a_server_that_is_there_can_be_refused(mute: Path) -> None:
    chosen = configured(mute, TMUXMCP_EXISTING_SERVER="refuse")
    with pytest.raises(StartupError, match="TMUXMCP_EXISTING_SERVER is refuse"):
        glance(chosen, tmux_socket.resolve(str(chosen.socket), {}))


async def test_what_hangs_is_given_up(mute: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "DEADLINE", 0.2)
    with anyio.fail_after(2):
        found = await found_on(mute)
    assert (found.server_state, found.ambient.state) == ("existing", "unknown")
    assert found.problem
    assert str(mute) in found.problem


@pytest.mark.parametrize(
    ("program", "words"),
    [("/nonexistent/tmux", "TMUXMCP_TMUX_BIN"), ("/bin/true", "not a tmux"), ("/bin/cat", "not a tmux")],
)
async def test_a_program_that_is_no_tmux_is_a_problem_with_a_remedy(
    socket_path: Path, program: str, words: str
) -> None:
    found = await found_on(socket_path, TMUXMCP_TMUX_BIN=program)
    assert found.problem
    assert words in found.problem
    assert found.ambient.state == "unknown"


def test_a_missing_program_is_known_at_once(socket_path: Path) -> None:
    chosen = configured(socket_path, TMUXMCP_TMUX_BIN="no-such-tmux")
    problem = glance(chosen, tmux_socket.resolve(str(chosen.socket), {})).problem
    assert problem
    assert "no-such-tmux" in problem


async def test_a_place_without_room_for_a_socket_is_a_problem(tmp_path: Path) -> None:
    found = await found_on(tmp_path / "missing" / "s")
    assert found.problem
    assert "missing" in found.problem
    assert not os.listdir(tmp_path)
