"""Where everything is measured: one tmux server that all products share, and the floor beneath them."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

SESSION = "bench"
HISTORY = 50_000
"""Lines that a pane keeps, so that no product fails for a short history."""


class Pane(NamedTuple):
    id: str
    tty: str


class Scene:
    """A tmux server on the default socket of a directory of its own: a socket that every product can find.

    Its first pane shows a text; `bash` and `fill` add more.
    """

    text = "the text that is on the screen"

    def __init__(self, directory: Path) -> None:
        sockets = directory / f"tmux-{os.getuid()}"
        sockets.mkdir(mode=0o700)
        self.directory = directory
        self.socket = sockets / "default"
        self.environ = {
            **os.environ,
            "HOME": str(directory),
            "TMUX_TMPDIR": str(directory),
            "SHELL": shutil.which("bash") or "/bin/sh",
            "LC_ALL": "C.UTF-8",
            "TERM": "screen",
        }
        config = directory / "tmux.conf"
        config.write_text(
            f"set -g history-limit {HISTORY}\nset -g status off\nset -wg automatic-rename off\n"
        )
        size = ("-x", "120", "-y", "40")
        shown = f"echo {self.text}; exec cat"
        self.tmux("-f", str(config), "new-session", "-d", "-s", SESSION, *size, shown)
        self.first = self._pane("display-message", "-p", "-t", f"{SESSION}:")
        until(lambda: self.text in self.tmux("capture-pane", "-p", "-t", self.first.id))

    def argv(self, *arguments: str) -> list[str]:
        return ["tmux", "-S", str(self.socket), *arguments]

    def tmux(self, *arguments: str) -> str:
        argv = self.argv(*arguments)
        return subprocess.run(argv, env=self.environ, check=True, capture_output=True, text=True).stdout

    def spawn(self) -> float:
        """Seconds of the floor: one tmux process that answers one question."""
        argv = self.argv("display-message", "-p", "ok")
        began = time.perf_counter()
        subprocess.run(argv, env=self.environ, check=True, capture_output=True)
        return time.perf_counter() - began

    def pane(self, command: str) -> Pane:
        """The pane of a new window in which this runs."""
        return self._pane("new-window", "-d", "-P", "-t", f"{SESSION}:", "-F", command=command)

    def bash(self) -> Pane:
        """The pane of a new window with bash at its prompt."""
        pane = self.pane("bash --norc --noprofile")
        until(lambda: self.tmux("capture-pane", "-p", "-t", pane.id).strip())
        return pane

    def lines(self, pane: Pane, count: int) -> None:
        """Let a pane with bash print this many lines, and wait until it has."""
        end = f"printed {count} lines"
        self.tmux("send-keys", "-t", pane.id, f"seq {count}; echo 'printed' {count} lines", "Enter")
        until(lambda: end in self.tmux("capture-pane", "-p", "-t", pane.id))

    def panes(self) -> list[str]:
        return self.tmux("list-panes", "-a", "-F", "#{pane_id}").split()

    def fill(self, count: int) -> None:
        """Have this many panes: the first one and new ones, each in a window of its own."""
        for pane in self.panes():
            if pane != self.first.id:
                self.tmux("kill-pane", "-t", pane)
        for _ in range(count - 1):
            self.pane("exec cat")

    def server_pid(self) -> int:
        return int(self.tmux("display-message", "-p", "#{pid}"))

    def end(self) -> None:
        self.tmux("kill-server")

    def _pane(self, *asked: str, command: str = "") -> Pane:
        words = [*asked, "#{pane_id} #{pane_tty}", *([command] if command else [])]
        return Pane(*self.tmux(*words).split())


def until(condition: Callable[[], object], patience: float = 60) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("what the measurement waits for did not happen")
        time.sleep(0.01)
