"""The count of hooks and aliases, on real servers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tmuxmcp.tmux.ambient import Ambient, probe
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.runner import ProcessRunner
from tmuxmcp.tmux.socket import Socket


class Server:
    """A tmux server with one session, and a client of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.client = Client(ProcessRunner(), Socket("path", f"path:{path}", str(path)), "tmux")

    def tmux(self, *words: str) -> None:
        subprocess.run(
            ["tmux", "-S", self.path, "-f", "/dev/null", *words], check=True, stdin=subprocess.DEVNULL
        )


@pytest.fixture
def server(socket_path: Path) -> Server:
    started = Server(socket_path)
    started.tmux("new-session", "-d", "-s", "a", "exec cat")
    return started


async def test_a_server_without_any_is_quiet(server: Server) -> None:
    assert await probe(server.client) == Ambient("quiet", True)


async def test_a_server_without_sessions_is_quiet(server: Server) -> None:
    server.tmux("set-option", "-s", "exit-empty", "off", ";", "kill-session", "-t", "a")
    assert await probe(server.client) == Ambient("quiet", True)


@pytest.mark.parametrize(
    "where",
    [
        ("-g", "after-list-panes"),
        ("-g", "session-created"),
        ("-g", "-w", "window-renamed"),
        ("-t", "=a:", "after-list-panes"),
        ("-w", "-t", "=a:", "window-renamed"),
        ("-p", "-t", "=a:", "pane-exited"),
    ],
    ids=" ".join,
)
async def test_a_hook_is_found_in_every_scope(server: Server, where: tuple[str, ...]) -> None:
    server.tmux("set-hook", *where, "display-message x")
    assert await probe(server.client) == Ambient("active", True, 1)


@pytest.mark.parametrize(
    "alias", ["zoom=resize-pane -Z", "list-panes=display-message x", "splitp=new-window"]
)
async def test_an_alias_beyond_those_of_tmux_is_found(server: Server, alias: str) -> None:
    server.tmux("set-option", "-s", "command-alias[100]", alias)
    assert await probe(server.client) == Ambient("active", True, 0, 1)


async def test_looking_runs_no_hook(server: Server, tmp_path: Path) -> None:
    server.tmux("set-hook", "-g", "after-show-options", f"run-shell 'touch {tmp_path}/show-options'")
    server.tmux("set-hook", "-g", "after-list-panes", f"run-shell 'touch {tmp_path}/list-panes'")
    assert await probe(server.client) == Ambient("active", True, 2)
    server.tmux("wait-for", "-S", "done", ";", "wait-for", "done")
    assert list(tmp_path.iterdir()) == []


async def test_hundreds_of_panes_fit(server: Server) -> None:
    for _ in range(200):
        server.tmux("new-window", "-d", "-t", "=a:", "exec cat")
    server.tmux("set-hook", "-p", "-t", "=a:200", "pane-exited", "display-message x")
    assert await probe(server.client) == Ambient("active", True, 1)


async def test_without_a_server_the_minimal_configuration_makes_the_next_one_quiet(socket_path: Path) -> None:
    absent = Server(socket_path)
    assert await probe(absent.client) == Ambient("quiet", False)
    absent.client.config = "user"
    assert await probe(absent.client) == Ambient("unknown", False)
