"""Which process a terminal's input goes to, and whether a shell sits there at its prompt."""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from tmuxmcp.errors import PaneBusy, ToolError
from tmuxmcp.terminal import shells
from tmuxmcp.terminal.panes import Discipline, State
from tmuxmcp.terminal.processes import lives
from tmuxmcp.tmux.runner import Runner


class Process(NamedTuple):
    """The leader of a terminal's foreground process group.

    Without `args` it has ended, and the rest of its group has the terminal: the pager at the end of a
    pipeline, say. Then tmux gives the pane's shell as its program.
    """

    pid: int
    args: list[str]

    @property
    def interactive(self) -> bool:
        """Whether these are the arguments of an interactive shell, not of one that runs a script."""
        options = self.args[1:]
        return "-i" in options or all(each.startswith("-") and "c" not in each for each in options)


def group_of(pid: int) -> int:
    """The foreground process group of a process's terminal, or 0 where only `ps` tells."""
    with suppress(ValueError, IndexError):
        return int(_stat(pid)[5])
    return 0


def computes(pid: int) -> bool:
    """Whether a process is at work at this moment, where the system says it: then it waits for no input."""
    return _stat(pid)[:1] == ["R"]


def _stat(pid: int) -> list[str]:
    """What Linux says of a process without another one: the fields of stat, from the third one on."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return []


async def foreground(state: State, runner: Runner) -> Process | None:
    """The foreground process of a pane, or None when the system does not say."""
    group = group_of(state.pid)
    with suppress(OSError):
        if group:
            line = Path(f"/proc/{group}/cmdline").read_bytes().decode(errors="replace")
            return Process(group, line.removesuffix("\0").split("\0") if line else [])
    if not group:
        for pid, _, group, args in await _processes(state, runner):
            if pid == group:
                return Process(pid, args)
    return Process(group, []) if group > 0 and not lives(group) else None


async def _processes(state: State, runner: Runner) -> list[tuple[int, int, int, list[str]]]:
    """The processes on a pane's terminal: id, process group, the terminal's foreground group, arguments."""
    terminal = state.tty.removeprefix("/dev/")
    argv = ["ps", "-ww", "-o", "pid=,pgid=,tpgid=,args=", "-t", terminal]
    try:
        output = await runner.run(argv, timeout=2.0, max_output=1_000_000)
    except ToolError:
        return []
    rows = (row.split() for row in output.stdout.decode(errors="replace").splitlines())
    return [(int(pid), int(own), int(group), args) for pid, own, group, *args in rows]


class Readiness(Enum):
    """Whether a command can be typed now."""

    PROMPT = "the shell is at its prompt"
    NOT_YET = (
        "the shell is still starting, runs something of its own, or waits for input. Look with "
        "snapshot_pane; answer with send_keys, or wait with wait_for_text and call again"
    )


def mode_of_prompt(name: str, discipline: Discipline) -> bool:
    """Whether the terminal is in the mode in which this shell waits for a line.

    Line editors read single characters and echo them themselves; without one the terminal does both.
    """
    if discipline.canonical:
        return not shells.has_editor(name)
    return discipline.edits and not discipline.echo


async def readiness(state: State, runner: Runner, *, starting: bool, blank: bool = False) -> Readiness:
    """Look whether the pane's shell is at its prompt, without typing.

    The line editors of bash, zsh, fish and mksh take the terminal out of canonical mode while they
    sit at the prompt. Other shells may have no line editor; for them the foreground process has to
    be an interactive shell that has printed something on the cursor's row, unless a `blank` row is as good:
    a background job may have printed since the prompt. Raises `PaneBusy` when
    another program has the terminal, unless the pane's shell may be `starting` up through it.
    """
    name = shells.shell(state.program)
    discipline = Discipline.of(state.tty)
    canonical = discipline is None or discipline.canonical
    if name is not None:
        process = await foreground(state, runner)
        if process is not None and not process.args:
            if starting:
                return Readiness.NOT_YET
            raise busy(state, await _rest(process.pid, state, runner))
        if discipline is not None and not canonical:
            return Readiness.PROMPT if mode_of_prompt(name, discipline) else Readiness.NOT_YET
        if process is not None and not process.interactive:
            if starting:
                return Readiness.NOT_YET
            raise busy(state, " ".join(process.args[:3]))
        if shells.has_editor(name) and discipline is not None:
            return Readiness.NOT_YET
        return Readiness.PROMPT if state.cursor_x or blank else Readiness.NOT_YET
    if shells.carries_shell(state.program) and not state.alternate:
        return Readiness.NOT_YET if canonical or not state.cursor_x else Readiness.PROMPT
    if starting:
        return Readiness.NOT_YET
    raise busy(state, state.program)


async def _rest(group: int, state: State, runner: Runner) -> str:
    """What runs in a process group whose leader has ended."""
    found = (args for _, own, _, args in await _processes(state, runner) if own == group)
    return " ".join(next(found, ["a pipeline"])[:3])


def busy(state: State, program: str) -> PaneBusy:
    """The refusal that names what runs in the pane."""
    return PaneBusy(
        f"Pane {state.pane_id} is running {program[:80]!r}, not a shell at its prompt, so nothing was "
        "typed. Wait for its end with wait_for_text (and the `run` of the call that started it), talk to it "
        "with send_keys (C-c interrupts), or use another "
        "pane.",
        pane_id=state.pane_id,
        program=program[:80],
    )
