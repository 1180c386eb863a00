"""A client of a private socket, and a session on it."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from tmuxmcp.errors import NoServer, ServerGone
from tmuxmcp.tmux.client import Client, Version
from tmuxmcp.tmux.command import Arg, command
from tmuxmcp.tmux.records import Template
from tmuxmcp.tmux.runner import ProcessRunner
from tmuxmcp.tmux.socket import Socket

IDS = Template(session="#{session_id}", window="#{window_id}", pane="#{pane_id}")


@pytest.fixture
async def client(socket_path: Path) -> AsyncIterator[Client]:
    client = Client(ProcessRunner(), Socket("path", f"path:{socket_path}", str(socket_path)), tmux_program())
    yield client
    with suppress(NoServer, ServerGone):
        await client.call(command("kill-server"))


@pytest.fixture
async def ids(client: Client) -> dict[str, str]:
    """The ids of a session named ``base``, whose pane runs `cat`."""
    size = ("-x", Arg("-x", "80"), "-y", Arg("-y", "24"))
    new = command("new-session", "-d", "-s", Arg("-s", "base"), *size, "exec cat")
    return (await client.start(new, template=IDS)).row


@pytest.fixture
async def version(client: Client) -> Version:
    return await client.version()


def tmux_program() -> str:
    found = shutil.which("tmux")
    assert found is not None
    return found
