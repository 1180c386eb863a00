"""A pane on a private tmux server, for tests of the control loop."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from tests.conftest import TMUX
from tmuxmcp.terminal.keyboard import Keyboard, Stroke
from tmuxmcp.terminal.panes import Terminal
from tmuxmcp.terminal.run import Runner
from tmuxmcp.terminal.watch import Ending
from tmuxmcp.tmux.client import MINIMAL_CONFIG, Client
from tmuxmcp.tmux.runner import ProcessRunner
from tmuxmcp.tmux.socket import resolve


class Pane:
    """One pane, and the parts of the control loop that drive it."""

    def __init__(self, client: Client, id: str = "%0") -> None:
        self.id = id
        self.client = client
        self.terminal = Terminal(client)
        self.keyboard = Keyboard(self.terminal)

    async def run(self, command: str, timeout: float = 20, *, in_history: bool = False) -> Ending:
        """Run a command in the pane."""
        deadline = anyio.current_time() + timeout
        return await Runner(self.terminal, self.keyboard, self.id).run(
            command, deadline=deadline, in_history=in_history
        )

    async def type(self, text: str = "", *keys: str) -> None:
        """Type into the pane as somebody else would."""
        await self.keyboard.type(self.id, Stroke(text=text, keys=keys))

    def tmux(self, *args: str) -> str:
        """Run a tmux command directly."""
        argv = [self.client.binary, "-u", "-N", "-S", self.client.socket.path, *args]
        return subprocess.run(
            argv, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
        ).stdout

    async def program(self, *names: str) -> None:
        """Wait until one of these programs has the pane's terminal."""
        name = ""
        try:
            with anyio.fail_after(20):
                while (
                    name := self.tmux("display-message", "-p", "#{pane_current_command}").strip()
                ) not in names:
                    await anyio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"{name} has the terminal, none of {names}") from None

    async def screen(self, *holds: str) -> str:
        """The screen's text, once it holds all of these."""
        return await self.until(lambda screen: all(text in screen for text in holds))

    async def until(self, condition: Callable[[str], bool]) -> str:
        """The screen's text, once it fulfils the condition."""
        screen = ""
        try:
            with anyio.fail_after(20):
                while not condition(screen := self.tmux("capture-pane", "-p", "-J", "-t", self.id)):
                    await anyio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"The screen stayed:\n{screen}") from None
        return screen


@asynccontextmanager
async def pane(
    socket_path: Path, shell: str, *, rc: str = "", options: str = "", size: str = "200x50"
) -> AsyncIterator[Pane]:
    """A pane that runs `shell` with an empty home directory, `rc` as its start-up file.

    `options` are lines for the tmux configuration.
    """
    home = socket_path.parent / "home"
    home.mkdir()
    for name in (".bashrc", ".zshrc", ".mkshrc", ".kshrc", ".shrc"):
        (home / name).write_text(rc)
    (home / ".config/fish").mkdir(parents=True)
    # Without this directory fish reads every manual page of the system, in the background.
    (home / ".local/share/fish/generated_completions").mkdir(parents=True)
    (home / ".config/fish/config.fish").write_text(f"set fish_greeting\n{rc}")
    config = socket_path.parent / "tmux.conf"
    config.write_text(f"source-file {MINIMAL_CONFIG}\nset -g default-command {Path(shell).name}\n{options}")
    environment = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "SHELL": shell,
        "LC_ALL": "C.UTF-8",
        "ENV": str(home / ".shrc"),
    }
    width, height = size.split("x")
    subprocess.run(
        [TMUX, "-S", socket_path, "-f", config, "new-session", "-d", "-x", width, "-y", height],
        env=environment,
        cwd=home,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    runner = ProcessRunner(environment)
    with anyio.fail_after(90):
        yield _pane(runner, socket_path)


def _pane(runner: ProcessRunner, socket_path: Path) -> Pane:
    made = Pane(Client(runner, resolve(f"path:{socket_path}", {}), TMUX))
    made.terminal.made(made.id)
    return made
