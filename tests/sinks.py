"""Panes that write down, byte for byte, what reaches their program."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path

import anyio

from tests.conftest import TMUX
from tmuxmcp.terminal.panes import Terminal
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.command import command, target
from tmuxmcp.tmux.records import Template
from tmuxmcp.tmux.runner import ProcessRunner
from tmuxmcp.tmux.socket import Socket

IDS = Template(session_id="#{session_id}", window_id="#{window_id}", pane_id="#{pane_id}")

RAW = "stty raw -echo"
"""A terminal that passes every byte on, and at once."""


class Sink:
    """A pane whose program writes what it reads to a file."""

    def __init__(self, pane_id: str, window_id: str, file: Path) -> None:
        self.pane_id = pane_id
        self.window_id = window_id
        self._file = file
        self._taken = 0

    async def take(self, size: int) -> bytes:
        """The next bytes: `size` of them, and any that came too many."""
        await until(lambda: self._file.stat().st_size - self._taken >= size, self._show)
        data = self._file.read_bytes()[self._taken :]
        self._taken += len(data)
        return data

    def _show(self) -> str:
        return f"{self.pane_id} read {self._file.read_bytes()[self._taken :][-300:]!r}"


class Server:
    """A private tmux server, and the terminal that drives it."""

    def __init__(self, socket_path: Path) -> None:
        self.directory = Path(tempfile.mkdtemp(dir=socket_path.parent))
        socket = Socket("path", f"path:{socket_path}", str(socket_path))
        self.client = Client(ProcessRunner(), socket, TMUX)
        self.terminal = Terminal(self.client)
        self._numbers = count()

    async def sink(self, *, mode: str = RAW, says: str = "", split: str = "") -> Sink:
        """A new pane with a program that reads: in a session of its own, or split off the pane `split`.

        `mode` is the shell command that sets the terminal up, and `says` what the program prints first.
        """
        file = self.directory / f"sink{next(self._numbers)}"
        out = shlex.quote(str(file))
        run = f"{mode}; printf {shlex.quote(says)}; : > {out}; exec cat > {out}"
        if split:
            new = command("split-window", "-d", "-t", target(split), run)
            row = (await self.client.rows(listing=new, template=IDS))[0]
        else:
            row = (await self.client.start(command("new-session", "-d", run), template=IDS)).row
        sink = Sink(row["pane_id"], row["window_id"], file)
        await until(file.exists, sink._show)
        return sink

    async def tmux(self, name: str, *args: str) -> str:
        """Run one tmux command."""
        return await self.client.call(command(name, *args))

    async def buffers(self) -> list[str]:
        """The names of the paste buffers that there are."""
        return (await self.tmux("list-buffers", "-F", "#{buffer_name}")).splitlines()


async def until(condition: Callable[[], bool], show: Callable[[], str] = lambda: "") -> None:
    """Wait for a condition that is due soon."""
    try:
        with anyio.fail_after(20):
            while not condition():
                await anyio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"it did not come true: {show()}") from None
