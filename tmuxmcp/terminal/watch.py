"""How a command ends: looks at its pane until the closing mark is there, or cannot come any more.

A command that is interrupted leaves no closing mark; then the prompt that came back is asked for the
status. Nothing else is concluded from what the screen looks like.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import Literal, NamedTuple

from tmuxmcp import limits
from tmuxmcp.errors import ServerGone, TmuxFailed, TmuxTimeout
from tmuxmcp.terminal import prompts, shells
from tmuxmcp.terminal.capture import read
from tmuxmcp.terminal.clock import Progress, Ticker
from tmuxmcp.terminal.cursor import Cursor, Mark
from tmuxmcp.terminal.foreground import foreground, mode_of_prompt
from tmuxmcp.terminal.panes import REPLACED, Discipline, Look, State, Terminal
from tmuxmcp.terminal.processes import lives
from tmuxmcp.terminal.shells import Dialect, Marks
from tmuxmcp.terminal.witness import Witness
from tmuxmcp.tmux.command import Command

Outcome = Literal["completed", "timed_out", "shell_exited", "pane_gone", "server_gone", "not_started"]
Reason = Literal["cleared", "trimmed"]


class Ending(NamedTuple):
    """How far a command came. `text` is its output, each line ended as the command ended it."""

    outcome: Outcome
    status: int | None = None
    text: str = ""
    reason: Reason | None = None
    """Why the beginning of the output is missing: wiped off the screen, or dropped from a full history."""
    marks: Marks | None = None
    state: State | None = None
    running: bool = False
    note: str = ""
    cursor: Cursor | None = None
    """The place in the pane's output that `text` goes up to."""
    lost: bool = False
    """Whether the pane went before what it printed last could be read."""
    left: Look | None = None
    """The pane with the prompt that the shell showed after the command."""


Ask = Callable[[Marks, Dialect], Awaitable[None]]


class Reading(Enum):
    """What became of a line that is to read the command from the lines that follow it."""

    READY = "it waits for them"
    IGNORED = "the shell did not take it"
    REPLACED = "the pane has another program by now"
    FAILED = "it could not be started"
    LATE = "it did not say that it is ready before the deadline"


# Rows of history that a look takes along with the screen, so that what a background job prints after
# the closing mark does not move it out of sight between two looks.
ROWS_BACK = 100
# How long the screen must have been still before a prompt is believed to be back, with and without
# the terminal's mode as a witness; and before a line is believed not to have been accepted.
_STILL_SECONDS = 0.15
_STILL_BLIND_SECONDS = 1.0
_IGNORED_SECONDS = 1.0
_GLANCE_SECONDS = 0.002
_LEAST = 0.3
"""The part of a command's time that it rests from looks at the least, so that they cost it little."""
_SETTLING_SECONDS = 0.25

_UNREAD = "Somebody interrupted the line before the shell had read it."
_UNCERTAIN = "It was interrupted, and where it would have begun is wiped off: perhaps it never ran."
_GARBLED = "Somebody typed while the command was sent to the shell, so it was not run. Run it again."
_SILENT = "tmux does not answer, so how far the command came is not known."


class Watch:
    """Watches one command in one pane."""

    def __init__(
        self,
        terminal: Terminal,
        before: Look,
        marks: Marks,
        dialect: Dialect,
        deadline: float,
        progress: Progress,
    ) -> None:
        self._terminal = terminal
        self._clock = terminal.clock
        self._before = before
        self._pane_id = before.state.pane_id
        self._marks = marks
        self.dialect = dialect
        self._deadline = deadline
        self._progress = progress
        self._witness = Witness(before.state)
        self._last: Look | None = None

    @property
    def seen(self) -> str:
        """What the command had printed at the last look, as far as that reached back."""
        text = self._last.text if self._last else ""
        opening = self._marks.opening(text)
        return text[opening.end() :].rstrip("\n") if opening else ""

    async def until_ready(self) -> Reading:
        """Wait until the reader says that it takes the command.

        The terminal's mode tells when it is worth a look; only the reader's own word counts, because a
        shell can be seen in that mode on its way.
        """
        ticker = Ticker(self._clock, self._deadline)
        while self._clock.now() < self._deadline:
            discipline = Discipline.of(self._before.state.tty)
            hint = discipline is not None and discipline.canonical and not discipline.echo
            if not hint and ticker.quiet < 25 * _GLANCE_SECONDS:
                await self._clock.sleep(_GLANCE_SECONDS / 2)
                continue
            look = await self._look(ROWS_BACK)
            if self._marks.ready in look.text:
                return Reading.READY
            if self._is_replaced(look):
                return Reading.REPLACED
            if self._marks.closing(look.text):
                return Reading.FAILED
            if ticker.quiet >= _IGNORED_SECONDS and self._ignored(look):
                return Reading.IGNORED
            await ticker.rest()
        return Reading.LATE

    async def until_closed(self, typed: State, ask: Ask, *, ignored_ends: bool) -> Ending | None:
        """Wait for the end of the command; None when its line was not taken (only with `ignored_ends`)."""
        begun = self._clock.now()
        ticker = Ticker(self._clock, self._deadline)
        interrupted: tuple[str, Reason | None] | None = None
        unread = False
        self._last = None
        while True:
            if self._last is not None:  # Most commands have ended when tmux comes to the first look.
                await self._rest(ticker, (self._clock.now() - begun) * _LEAST)
            place = Mark(self._pane_id)
            try:
                with self._witness.looking():
                    look = await self._look(ROWS_BACK, along=place.commands)
            except (TmuxTimeout, TmuxFailed):
                if self._clock.now() < self._deadline:
                    await ticker.rest()
                    continue
                return Ending("timed_out", marks=self._marks, state=typed, running=True, note=_SILENT)
            cursor = place.parse(look.told)[0]
            look = look._replace(told="")
            last: Look | None = self._last
            self._last = look
            if self._marks.closing(look.text):
                await self._settle()
                if self._marks.given_up in look.text:
                    return Ending("not_started", note=_GARBLED)
                if unread and self._marks.opening(look.text) is None:
                    return Ending("not_started", note=_UNREAD)
                return (await self._closed(look, typed, interrupted))._replace(cursor=cursor)
            if look != last:
                ticker.changed()
            # tmux can tell that the program has ended a moment before it tells how, and 3.3a forgets to.
            if look.state.dead and (look.state.dead_status is not None or ticker.quiet > _STILL_SECONDS):
                text, reason = await self._output(look, typed)
                note = "The shell has ended; its pane is kept. tmux can have lost what was printed last."
                return Ending(
                    "shell_exited",
                    look.state.dead_status,
                    _DEAD.sub("", text),
                    reason,
                    self._marks,
                    look.state,
                    note=note,
                    cursor=cursor,
                )
            if self._is_replaced(look):
                return Ending("shell_exited", state=look.state, note=REPLACED, cursor=cursor)
            still = ticker.quiet
            if interrupted is None and still >= _STILL_SECONDS and await self._prompt_is_back(look, still):
                whole = await self._terminal.look(self._pane_id, None)
                if self._marks.closing(whole.text):
                    return (await self._closed(whole, typed))._replace(cursor=cursor)
                unread = self._is_unread(whole, typed)
                text, reason = await self._output(whole, typed)
                right = bool(self._before.right)
                interrupted = prompts.cut(text, self._before.text, right=right), reason
                name = shells.shell(look.state.program)
                await ask(self._marks, shells.dialect(name) if name else self.dialect)
                ticker.changed()
                continue
            if ignored_ends and ticker.quiet >= _IGNORED_SECONDS and self._ignored(look):
                return None
            if self._clock.now() >= self._deadline:
                text, reason = await self._output(look, typed)
                return Ending(
                    "timed_out",
                    text=text,
                    reason=reason,
                    marks=self._marks,
                    state=look.state,
                    running=True,
                    note=_held(look.state),
                    cursor=cursor,
                )
            await self._progress(self._clock.now() - begun)

    async def _look(self, rows_back: int, *, along: Sequence[Command] = ()) -> Look:
        """Look at the pane. Raises `ServerGone` when its id is one of another tmux server by now."""
        timeout = self._terminal.patience(self._deadline)
        look = await self._terminal.look(self._pane_id, rows_back, along=along, timeout=timeout)
        if look.state.server != self._before.state.server:
            raise ServerGone("The tmux server has ended, and another one is on its socket.")
        return look

    def _is_unread(self, look: Look, typed: State) -> bool:
        """Whether the line stands in this whole pane as it was typed, and no opening mark below it."""
        if self._marks.opening(look.text) or not self._marks.typed(look.text):
            return False
        state = look.state
        return state.width == typed.width and not state.trimmed and state.history_size >= typed.history_size

    def _is_replaced(self, look: Look) -> bool:
        return not look.state.dead and look.state.pid != self._before.state.pid

    async def _closed(
        self, look: Look, typed: State, interrupted: tuple[str, Reason | None] | None = None
    ) -> Ending:
        """The ending that the closing mark tells; `interrupted` is the output when the mark was asked for."""
        closing = self._marks.closing(look.text)
        assert closing is not None
        opening = self._marks.opening(look.text)
        asked = opening is None or self._marks.typed(look.text[opening.end() : closing.start()])
        text, reason = interrupted if interrupted and asked else await self._output(look, typed)
        if opening is None or opening["pid"] == closing["pid"]:
            ended = Ending("completed", int(closing["status"]), text, reason, self._marks, look.state)
            if interrupted and opening is None and reason != "trimmed":
                # What was asked for may be the status of the command before.
                ended = ended._replace(status=None, note=_UNCERTAIN)
            return ended._replace(left=look if look.state.cursor_x else None)
        # The shell that answers is the one that had started ours. When it was a command of ours that
        # started it, the closing mark of that command has just told how our shell ended.
        status = closing["status"]
        if outer := shells.any_closing(look.text[opening.end() : closing.start()], closing["pid"]):
            status, text = outer["status"], text[: text.find(f"\n{outer.group()}")]
        note = "The shell that ran the command has ended; the one that had started it is back."
        return Ending("shell_exited", int(status), text, reason, self._marks, look.state, note=note)

    async def _output(self, look: Look, typed: State) -> tuple[str, Reason | None]:
        """What stands between the marks, from a look that may have to be taken again from further back."""
        if look.state.alternate and not self._marks.closing(look.text):
            # A full-screen program covers the output; tmux keeps what is underneath.
            stream = await read(self._terminal.client, self._pane_id)
            underneath = "\n".join(stream.lines)
            covered = self._marks.opening(underneath)
            return (underneath[covered.end() :].rstrip("\n") if covered else ""), None
        if self._marks.opening(look.text) is None:
            rows = look.state.row - typed.row + ROWS_BACK
            whole = look.state.trimmed or rows < 0 or rows > look.state.history_size
            look = await self._terminal.look(self._pane_id, None if whole else rows)
            if self._marks.opening(look.text) is None and not whole:
                look = await self._terminal.look(self._pane_id, None)
        opening, closing = self._marks.opening(look.text), self._marks.closing(look.text)
        reason: Reason | None = None
        if opening is None or (closing and opening.end() > closing.start()):
            reason = "trimmed" if look.state.trimmed else "cleared"
            if reason == "cleared" and look.state.history_size >= typed.history_size:
                # The history is whole, so it was the screen that was painted over.
                look = await self._terminal.look(self._pane_id)
                closing = self._marks.closing(look.text)
        start = opening.end() if opening and not reason else 0
        text = (
            look.text[start : closing.start()].removesuffix("\n")
            if closing
            else look.text[start:].rstrip("\n")
        )
        if reason:
            # What was on the screen before is among it.
            text = "\n".join(line for line in text.split("\n") if not shells.is_mark(line))
        return text, reason

    async def _prompt_is_back(self, look: Look, still: float) -> bool:
        """Whether the shell seems to wait for its next command, though the closing mark is not there."""
        program, before = look.state.program, self._before
        # The cursor is right behind a prompt; behind output it is at the beginning of the next row.
        alike = look.state.cursor_x > 0 and prompts.alike(look.last_line, before.last_line)
        name = shells.shell(program)
        if name is None:
            return alike and program == before.state.program and still >= _STILL_BLIND_SECONDS
        discipline = Discipline.of(look.state.tty)
        if discipline is None or not mode_of_prompt(name, discipline):
            return False
        if discipline.canonical and still < _STILL_BLIND_SECONDS:
            return False
        if shells.carries_shell(before.state.program):
            return True
        opening = self._marks.opening(look.text)
        if opening is None:
            # Wiped off; or the shell has not begun with the line yet.
            return alike and still >= _STILL_BLIND_SECONDS
        ours = int(opening["pid"])
        if not lives(ours):
            return True
        # Another shell at its prompt while the first one lives was started by the command and still runs.
        process = await foreground(look.state, self._terminal.client.runner)
        alike = alike or prompts.follows_interrupt(look.text)
        return alike and (process is None or process.pid == ours)

    def _ignored(self, look: Look) -> bool:
        """Whether the typed line became part of something unfinished, for whose rest the shell asks.

        A prompt that looks like the first one is no such sign: there the line ran, and its marks went
        where they cannot be seen.
        """
        if not self._marks.typed(look.text) or self._marks.nonce in look.text:
            return False
        if self._marks.typed(look.last_line):
            return False  # The shell has not come to it yet.
        alike = prompts.alike(look.last_line, self._before.last_line)
        if not shells.is_unfinished(look.last_line) or (
            alike and not shells.is_unfinished(self._before.last_line)
        ):
            return False
        name = shells.shell(look.state.program)
        discipline = Discipline.of(look.state.tty)
        return name is not None and discipline is not None and mode_of_prompt(name, discipline)

    async def _settle(self) -> None:
        """Give a local shell the moment that it needs to be at its prompt after the closing mark.

        What is typed before that is shown twice: by the terminal, and again by the line editor.
        """
        name = shells.shell(self._before.state.program)
        end = min(self._clock.now() + _SETTLING_SECONDS, self._deadline)
        while name is not None and shells.has_editor(name) and self._clock.now() < end:
            discipline = Discipline.of(self._before.state.tty)
            if discipline is None or mode_of_prompt(name, discipline):
                return
            await self._clock.sleep(_GLANCE_SECONDS / 2)

    async def _rest(self, ticker: Ticker, least: float) -> None:
        """Rest until the next look, for `least` seconds or an ordinary pause.

        It is taken early when something was printed that the last look may not have seen, no more comes, and
        the terminal is not in the mode in which commands run; and late while nothing is printed at all.
        """
        begun, pause, quiet = self._clock.now(), ticker.pause(), ticker.quiet
        soon = min(_GLANCE_SECONDS, max(_GLANCE_SECONDS / 4, least / 3))
        glance = soon if quiet < 0.2 else 5 * _GLANCE_SECONDS
        # A prompt that came back is believed when it has been still for long enough: not later than then.
        due = min((each - quiet for each in (_STILL_SECONDS, _IGNORED_SECONDS) if each > quiet), default=1.0)
        latest = max(pause, min(limits.LOOK_SECONDS, self._deadline - begun, due))
        before = read = self._witness.reads()
        ran = False
        while True:
            rested = self._clock.now() - begun
            if rested >= latest or (rested >= pause and not self._witness.still):
                return
            await self._clock.sleep(max(0.0, min(glance, latest - rested)))
            last, read = read, self._witness.reads()
            runs = self._runs()
            lull = ran if read is None else last == read and (read != before or not self._witness.sure)
            if lull and not runs and self._clock.now() - begun >= min(pause, least):
                return
            ran = ran or runs

    def _runs(self) -> bool:
        """Whether the terminal is in the mode in which the shell has commands run."""
        name = shells.shell(self._before.state.program)
        discipline = Discipline.of(self._before.state.tty) if name and shells.has_editor(name) else None
        return discipline is not None and discipline.canonical


def _held(state: State) -> str:
    """Who has the terminal when the time is up, where that is not the shell itself."""
    if shells.shell(state.program):
        return ""
    painted = " and has painted the whole screen: see it with snapshot_pane" if state.alternate else ""
    return (
        f"{state.program[:80]!r} has the terminal{painted}. Answer it with send_keys, or wait for its end "
        "with wait_for_text and `run`."
    )


# What tmux writes into the last row of a dead pane, and the empty rows above it.
_DEAD = re.compile(r"\s*\nPane is dead [^\n]*\Z")
