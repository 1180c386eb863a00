"""A private tmux server with one session, and the tools on it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import anyio

from tests.calls import Tools
from tests.conftest import TMUX
from tmuxmcp.settings import Settings
from tmuxmcp.startup import listens
from tmuxmcp.terminal.panes import Terminal
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.runner import Output, ProcessRunner, Runner
from tmuxmcp.tmux.socket import Socket


class Counting:
    """A runner that counts the tmux processes that it starts, but for the look at the program's version.

    `printed` is what the last one printed.
    """

    def __init__(self) -> None:
        self._runner = ProcessRunner()
        self.processes = 0
        self.printed = b""

    async def run(self, argv: object, **how: object) -> Output:
        assert isinstance(argv, list)
        self.processes += argv[-1] != "-V"
        output = await self._runner.run(argv, **how)  # type: ignore[arg-type]
        self.printed = output.stdout
        return output


class Bench:
    """`tools` calls a tool by its name; `tmux` runs a tmux command directly."""

    def __init__(self, path: Path, runner: Runner) -> None:
        self.path = path
        self.client = Client(runner, Socket("path", f"path:{path}", str(path)), TMUX)
        self.tools = Tools(Terminal(self.client))

    @classmethod
    def faked(cls, runner: Runner) -> Bench:
        """One whose tmux is scripted."""
        return cls(Path("/nowhere"), runner)

    @property
    def counting(self) -> Counting:
        assert isinstance(self.client.runner, Counting)
        return self.client.runner

    @property
    def processes(self) -> int:
        return self.counting.processes

    def with_settings(self, settings: Settings) -> Tools:
        """The tools as other settings offer them."""
        return Tools(Terminal(self.client), settings)

    def tmux(self, *words: str) -> str:
        argv = [TMUX, "-u", "-S", str(self.path), "-f", "/dev/null", *words]
        return subprocess.run(
            argv, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL
        ).stdout

    async def end(self) -> None:
        """End the server, and wait until nothing listens any more."""
        self.tmux("kill-server")
        await self.until(lambda: not listens(str(self.path)))

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something outside is so."""
        with anyio.fail_after(20):
            while not condition():
                await anyio.sleep(0.01)
