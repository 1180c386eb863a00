"""Which process a terminal's input goes to, and whether a shell sits there at its prompt."""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from tmuxmcp.errors import PaneBusy, ToolError
from tmuxmcp.terminal import shells
from tmuxmcp.terminal.panes import Discipline, State
from tmuxmcp.tmux.runner import Runner


class Process(NamedTuple):
    """The leader of a terminal's foreground process group."""

    pid: int
    args: list[str]

    @property
    def interactive(self) -> bool:
        """Whether these are the arguments of an interactive shell, not of one that runs a script."""
        options = self.args[1:]
        return "-i" in options or all(each.startswith("-") and "c" not in each for each in options)


async def foreground(state: State, runner: Runner) -> Process | None:
    """The foreground process of a pane, or None when the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        # Linux says it without a process: field 8 of stat is the terminal's foreground group.
        stat = Path(f"/proc/{state.pid}/stat").read_text(errors="replace")
        pid = int(stat.rpartition(")")[2].split()[5])
        line = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        return Process(pid, line.removesuffix("\0").split("\0"))
    with suppress(ToolError):
        terminal = state.tty.removeprefix("/dev/")
        output = await runner.run(
            ["ps", "-o", "pid=,tpgid=,args=", "-t", terminal], timeout=2.0, max_output=1_000_000
        )
        for row in output.stdout.decode(errors="replace").splitlines():
            leader, group, *args = row.split()
            if leader == group:
                return Process(int(leader), args)
    return None


class Readiness(Enum):
    """Whether a command can be typed now."""

    PROMPT = "the shell is at its prompt"
    NOT_YET = "the shell is still starting, runs something of its own, or waits for input"


def mode_of_prompt(name: str, discipline: Discipline) -> bool:
    """Whether the terminal is in the mode in which this shell waits for a line.

    Line editors read single characters and echo them themselves; without one the terminal does both.
    """
    if discipline.canonical:
        return not shells.has_editor(name)
    return not discipline.echo


async def readiness(state: State, runner: Runner, *, starting: bool) -> Readiness:
    """Look whether the pane's shell is at its prompt, without typing.

    The line editors of bash, zsh, fish and mksh take the terminal out of canonical mode while they
    sit at the prompt. Other shells may have no line editor; for them the foreground process has to
    be an interactive shell that has printed something on the cursor's row. Raises `PaneBusy` when
    another program has the terminal, unless the pane's shell may be `starting` up through it.
    """
    name = shells.shell(state.program)
    discipline = Discipline.of(state.tty)
    canonical = discipline is None or discipline.canonical
    if name is not None:
        if discipline is not None and not canonical:
            return Readiness.PROMPT if mode_of_prompt(name, discipline) else Readiness.NOT_YET
        process = await foreground(state, runner)
        if process is not None and not process.interactive and not starting:
            raise busy(state, " ".join(process.args[:3]))
        if shells.has_editor(name) and discipline is not None:
            return Readiness.NOT_YET
        return Readiness.PROMPT if state.cursor_x else Readiness.NOT_YET
    if shells.carries_shell(state.program) and not state.alternate:
        return Readiness.NOT_YET if canonical or not state.cursor_x else Readiness.PROMPT
    if starting:
        return Readiness.NOT_YET
    raise busy(state, state.program)


def busy(state: State, program: str) -> PaneBusy:
    """The refusal that names what runs in the pane."""
    return PaneBusy(
        f"Pane {state.pane_id} is running {program[:80]!r}, not a shell at its prompt, so nothing was "
        "typed. Wait for it with wait_for_text, talk to it with send_keys (C-c interrupts), or use another "
        "pane.",
        pane_id=state.pane_id,
        program=program[:80],
    )
