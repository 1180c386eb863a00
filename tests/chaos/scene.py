"""A private tmux socket that others use too, and the search for what we left behind on it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import anyio

from tests.chaos.caller import Caller
from tests.conftest import TMUX
from tests.session import Place, place, server

PATIENCE = 15.0
"""Seconds for what must come, or go, by itself."""
OTHERS = "others"
"""The session, the paste buffer and the channel that are not ours."""


class Process(NamedTuple):
    """One row of the process list."""

    pid: int
    parent: int
    line: str


def processes() -> list[Process]:
    argv = ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="]
    listed = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=True).stdout
    rows = (line.split(maxsplit=2) for line in listed.splitlines())
    return [Process(int(row[0]), int(row[1]), row[2]) for row in rows if len(row) == 3]


async def until(condition: Callable[[], object], patience: float = PATIENCE) -> bool:
    """Look until the condition is true; whether it became so."""
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            return False
        await anyio.sleep(0.02)
    return True


class Scene:
    """A socket with a session, a waiting client, a paste buffer and options of others on it."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.temporary = place.directory / "tmp"
        self.temporary.mkdir()
        self.notes = place.directory / "notes"
        """Where what runs in panes leaves its traces."""
        self.notes.mkdir()
        self.servers: set[int] = set()
        """The process ids of all tmux servers that were here."""
        self._waits: subprocess.Popen[bytes] | None = None
        self._before = ""

    def tmux(self, *arguments: str, check: bool = True) -> str:
        return self.place.tmux(*arguments, check=check)

    def settle_others(self) -> None:
        """Start a tmux server with what others use, and remember how it is."""
        argv = [TMUX, "-f", "/dev/null", "-S", str(self.place.socket), "new-session", "-d"]
        environment = {
            name: value for name, value in self.place.environment().items() if not name.startswith("TMUXMCP_")
        }
        subprocess.run(
            [*argv, "-s", OTHERS, "-n", OTHERS, "echo theirs; exec cat"], env=environment, check=True
        )
        self.tmux("set-buffer", "-b", OTHERS, "their text")
        self.tmux("set-option", "-g", "@others", "#{theirs}")
        self.tmux("set-option", "-g", "display-time", "3000")
        self._waits = subprocess.Popen([TMUX, "-N", "-S", str(self.place.socket), "wait-for", OTHERS])
        self.note_server()
        while "theirs" not in self.tmux("capture-pane", "-p", "-t", f"={OTHERS}:"):
            time.sleep(0.01)
        self._before = self._of_others()

    def note_server(self) -> int:
        """Remember the tmux server that is there now."""
        pid = int(self.tmux("display-message", "-p", "#{pid}"))
        self.servers.add(pid)
        return pid

    def caller(self, *wrapped: str, **environ: str | None) -> Caller:
        """A server of ours, started through the program `wrapped`."""
        argv = [*wrapped, *server(self.place, **{"TMPDIR": str(self.temporary), **environ})]
        # Its record of the start must not be lost when descriptors are few.
        errors = os.open(self.place.errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            return Caller(argv, cwd=str(self.place.work), stderr=errors)
        finally:
            os.close(errors)

    def kill_server(self) -> None:
        """Kill the tmux server that is there, by its process id."""
        os.kill(self.note_server(), signal.SIGKILL)
        self.others_ended()

    def others_ended(self) -> None:
        """Their session is gone by what was done to the tmux server, not by us."""
        self._before = ""

    async def leftovers(self) -> list[str]:
        """What is still there that was ours, after a while in which it may go."""
        found: list[str] = []

        def clean() -> bool:
            found[:] = [*(f"process {line}" for line in self.clients()), *self._files(), *self._on_server()]
            return not found

        await until(clean)
        return found

    def clients(self) -> Iterator[str]:
        """The command lines of tmux clients that are at work here, without those of others."""
        socket, theirs = str(self.place.socket), self._waits.pid if self._waits else 0
        for process in processes():
            if socket in process.line and process.pid not in {*self.servers, theirs}:
                yield process.line

    def _files(self) -> Iterator[str]:
        for path in self.temporary.iterdir():
            yield f"temporary file {path.name}"
        known = {"s", "home", "work", "audit", "stderr", "tmp", "notes"}
        for path in self.place.directory.iterdir():
            if path.name not in known:
                yield f"file {path.name}"

    def _on_server(self) -> Iterator[str]:
        if not self.tmux("list-sessions", check=False):
            return
        self.note_server()
        for name in self.tmux("list-buffers", "-F", "#{buffer_name}").splitlines():
            if name != OTHERS:
                yield f"buffer {name}"
        for scope in ("-s", "-g", "-gw"):
            for option in self.tmux("show-options", scope).splitlines():
                if option.startswith("@") and not option.startswith(("@others ", "@tmuxmcp minimal")):
                    yield f"option {option}"
        for hook in self.tmux("show-hooks", "-g").splitlines():
            if " " in hook:
                yield f"hook {hook}"
        for variable in self.tmux("show-environment", "-g").splitlines():
            if variable.startswith(("TMUXMCP_", "LIBTMUX_")):
                yield f"variable {variable}"
        if self._before and (now := self._of_others()) != self._before:
            yield f"others: {self._before!r} became {now!r}"
        if self._before and self._waits and self._waits.poll() is not None:
            yield "others: their wait has ended"

    def _of_others(self) -> str:
        pane, shown = f"={OTHERS}:", "#{pane_id} #{pane_pid} #{pane_dead} #{pane_in_mode} #{window_layout}"
        return "".join(
            [
                self.tmux("list-panes", "-s", "-t", f"={OTHERS}", "-F", f"{shown} #{{window_name}}"),
                self.tmux("capture-pane", "-p", "-t", pane),
                self.tmux("show-options", "-t", pane),
                self.tmux("show-options", "-w", "-t", pane),
                self.tmux("show-options", "-p", "-t", pane),
                self.tmux("show-buffer", "-b", OTHERS),
                self.tmux("show-options", "-gv", "@others"),
                self.tmux("show-options", "-gv", "display-time"),
            ]
        )

    def close(self) -> None:
        """End what was started here."""
        if self._waits is not None:
            self._waits.kill()
            self._waits.wait()
        for pid in self.servers:
            for number in (signal.SIGCONT, signal.SIGTERM):
                # A process id that is not a tmux server's any more is left alone.
                if any(each.pid == pid and str(self.place.socket) in each.line for each in processes()):
                    with suppress(ProcessLookupError):
                        os.kill(pid, number)


@contextmanager
def scene() -> Iterator[Scene]:
    """A scene in a directory of its own; everything on it is ended afterwards."""
    with place() as made:
        set_up = Scene(made)
        try:
            yield set_up
        finally:
            set_up.close()
