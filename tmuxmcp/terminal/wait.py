"""wait_for_text: wait inside the server until a pane prints something, falls silent, or a command ends.

Only what comes after the call, or after a cursor, counts. On the main screen that is the pane's
stream, so text that scrolls by between two looks, is wrapped, or is printed again after `clear` is
found, and a new prompt is new though it looks like the old one. The echo of what this process typed
is not output. On the alternate screen it is the rows that changed.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple, cast

from tmuxmcp.errors import InvalidCursor, NoServer, NotFound, ServerGone, TmuxFailed, TmuxTimeout
from tmuxmcp.terminal import prompts, shells
from tmuxmcp.terminal.capture import find, nearby
from tmuxmcp.terminal.clock import Progress, Ticker, no_progress
from tmuxmcp.terminal.cursor import Cursor, Mark
from tmuxmcp.terminal.echo import Echo
from tmuxmcp.terminal.foreground import foreground, mode_of_prompt
from tmuxmcp.terminal.handle import Handle
from tmuxmcp.terminal.matching import Matcher
from tmuxmcp.terminal.panes import REPLACED, Discipline, Look, State, Terminal
from tmuxmcp.terminal.place import Place
from tmuxmcp.terminal.stream import Ask, Stream
from tmuxmcp.terminal.witness import Witness

Outcome = Literal[
    "matched", "any_output", "stopped", "quiet", "run_completed", "timeout", "pane_gone", "server_gone"
]

TAIL_LINES: Final = 20
"""Lines of new output that a result shows, whatever came of the wait."""
_MATCHED_LINES: Final = 20
# Rows of history in each look: enough for the lines that a cursor is found by, and for the closing mark
# of a command to stay in sight.
_ROWS_BACK: Final = 100
_INTERRUPTED_SECONDS: Final = 0.5


class Wanted(NamedTuple):
    """What a wait ends with, besides its time. Without any of it, any output ends it."""

    patterns: Matcher | None = None
    stop: Matcher | None = None
    quiet_for: float | None = None
    run: Handle | None = None


class Waited(NamedTuple):
    """How a wait ended. `cursor` is where to go on: all lines before it were looked at."""

    outcome: Outcome
    pattern: int | None = None
    lines: Sequence[str] = ()
    tail: Sequence[str] = ()
    before: bool = False
    """Whether a pattern was on the screen already when the wait began."""
    alternate: bool = False
    status: int | None = None
    cursor: Cursor | None = None
    note: str = ""


class Wait:
    """One wait on one pane."""

    def __init__(
        self,
        terminal: Terminal,
        pane_id: str,
        wanted: Wanted,
        *,
        deadline: float,
        progress: Progress = no_progress,
    ) -> None:
        self._terminal = terminal
        self._clock = terminal.clock
        self._pane_id = pane_id
        self._wanted = wanted
        self._deadline = deadline
        self._progress = progress
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._partial = ""
        self._painted: list[str] = []
        self._before = False
        self._ask: Ask | None = None
        """What was asked along with the last look."""

    async def until(self, cursor: Cursor | None = None) -> Waited:
        """Wait. Raises `NotFound` and `InvalidCursor` at the start, and `MatchBudget` at any time."""
        begun = self._clock.now()
        ticker = Ticker(self._clock, self._deadline)
        mark = Mark(self._pane_id)
        look = await self._terminal.look(
            self._pane_id, None if self._wanted.run else _ROWS_BACK, along=mark.commands
        )
        here = mark.parse(look.told)[0]
        if self._wanted.run:
            self._wanted.run.check(look.state)
        self._cursor = cursor or here
        self._printed = self._cursor.printed
        self._echo = Echo(self._terminal.memory(self._pane_id), self._cursor.taken)
        if cursor is None and look.state.alternate:
            self._painted = await self._rows()
        self._before = await self._was_there(look, cursor)
        server = look.state.server
        witness = Witness(look.state)
        fresh = cursor is not None
        try:
            while True:
                try:
                    if fresh and (ended := await self._look_for(look)):
                        return ended
                    if ended := await self._end_of_run(look, ticker.quiet):
                        return ended
                    if look.state.dead:
                        return self._ended("pane_gone", look, status=look.state.dead_status, note=_DEAD)
                    if self._wanted.quiet_for is not None and ticker.quiet >= self._wanted.quiet_for:
                        return self._ended("quiet", look)
                    if self._clock.now() >= self._deadline:
                        return self._ended("timeout", look)
                    await self._progress(self._clock.now() - begun)
                    stirred = await ticker.rest(lambda: witness.still, until=self._quiet_at(ticker))
                    # Then there is something new most likely: so that is read along.
                    self._ask = nearby(self._pane_id, self._cursor) if stirred else None
                    last = look
                    with witness.looking():
                        look = await self._terminal.look(
                            self._pane_id,
                            _ROWS_BACK,
                            along=self._ask.commands if self._ask else (),
                            timeout=self._terminal.patience(self._deadline),
                        )
                    fresh = (look.state, look.text) != (last.state, last.text)
                    if fresh:
                        ticker.changed()
                except (TmuxTimeout, TmuxFailed):
                    if self._clock.now() >= self._deadline:
                        return self._ended("timeout", look, note=_SILENT)
                    ticker.changed()  # Nobody looked, so nothing is known of any silence.
        except (NotFound, NoServer, ServerGone, InvalidCursor) as error:
            if isinstance(error, InvalidCursor) and self._cursor is cursor:
                raise
            # A cursor that was good belongs to what is not there any more.
            outcome = await self._terminal.gone(server)
            note = _GONE[outcome]
            if isinstance(error, InvalidCursor) and outcome == "pane_gone":
                note = REPLACED
            return Waited(
                outcome, tail=self._shown_tail(), before=self._before, cursor=self._cursor, note=note
            )

    def _quiet_at(self, ticker: Ticker) -> float:
        """When the wait for silence ends, if it stays quiet until then."""
        if self._wanted.quiet_for is None:
            return math.inf
        return self._clock.now() + self._wanted.quiet_for - ticker.quiet

    def _ended(self, outcome: Outcome, look: Look, **rest: Any) -> Waited:
        return Waited(
            outcome,
            tail=self._shown_tail(),
            before=self._before,
            alternate=look.state.alternate,
            cursor=self._cursor,
            **rest,
        )

    def _shown_tail(self) -> Sequence[str]:
        partial = [line for line in self._partial.split("\n") if not shells.is_mark(line)]
        return [*self._tail, *(partial if self._partial.strip() else [])][-TAIL_LINES:]

    async def _rows(self) -> list[str]:
        return (await self._terminal.look(self._pane_id)).text.split("\n")

    async def _was_there(self, look: Look, cursor: Cursor | None) -> bool:
        """Whether a pattern is on the screen, or just above it, from before the cursor or the wait."""
        if self._wanted.patterns is None:
            return False
        lines = look.text.rstrip("\n").split("\n")
        if cursor is not None and not look.state.alternate:
            stream, place = await self._read()
            lines = stream.lines[max(0, place.line - _ROWS_BACK) : place.line]
        return bool(await self._wanted.patterns.search_lines(lines, limit=1))

    async def _look_for(self, look: Look) -> Waited | None:
        """Match what is new in the pane, and remember how far it was looked at."""
        lines = await (self._painted_over() if look.state.alternate else self._printed_since(look))
        if self._wanted == _ANYTHING and any(line.text[line.old :].strip() for line in lines):
            return self._ended("any_output", look)
        for outcome, matcher in (("stopped", self._wanted.stop), ("matched", self._wanted.patterns)):
            if matcher is None or not lines:
                continue
            hits = await matcher.search_lines([line.text for line in lines])
            if new := [hit for hit in hits if hit.end > lines[hit.line].old]:
                matched = list(dict.fromkeys(lines[hit.line].shown for hit in new))[:_MATCHED_LINES]
                return self._ended(cast(Outcome, outcome), look, pattern=new[0].pattern, lines=matched)
        return None

    async def _painted_over(self) -> list[_Line]:
        """The rows of the alternate screen that are not as they were."""
        rows, before = await self._rows(), self._painted
        self._painted = rows
        changed = [row for at, row in enumerate(rows) if at >= len(before) or row != before[at]]
        self._tail.clear()
        self._tail.extend(row.rstrip() for row in rows if row.strip())
        self._partial = ""
        return [_Line(*self._echo.without(row), row) for row in changed if row.strip()]

    async def _printed_since(self, look: Look) -> list[_Line]:
        """The lines that were ended since the cursor, and the one that is not; the cursor moves on."""
        stream, place = await self._read(self._ask.parse(look.told)[0] if self._ask else None)
        old = self._printed if place.line < len(stream.lines) and not place.lost else 0
        end = max(place.line, stream.unfinished)
        texts = [stream.lines[at] for at in place.rewritten]
        lines = [_Line(text, 0, text) for text in texts]
        lines += [
            self._line(text, old if at == place.line else 0, broken=_is_full(text, look.state.width))
            for at, text in enumerate(stream.lines[place.line : end], place.line)
        ]
        self._tail.extend(line.text.rstrip() for line in lines if not shells.is_mark(line.text))
        self._cursor = Cursor.at(stream, end)
        # The unfinished line will be looked at again: until it has ended, its echo is not used up.
        used = self._echo.used()
        rest = self._line(stream.partial(end), old if end == place.line else 0, broken=True)
        self._echo.restore(used)
        self._printed = old if end == place.line else 0
        self._partial = rest.text
        return [line for line in [*lines, rest] if line.text and not shells.is_mark(line.text)]

    def _line(self, text: str, old: int, *, broken: bool) -> _Line:
        """A line of which the first `old` characters were there before, without what we typed into it."""
        return _Line(*self._echo.without(text, old, broken=broken), text)

    async def _read(self, seen: Stream | None = None) -> tuple[Stream, Place]:
        stream, place = await find(self._terminal.client, self._pane_id, self._cursor, seen)
        return stream, place or Place(stream.unfinished, certain=False)

    async def _end_of_run(self, look: Look, quiet: float) -> Waited | None:
        """Whether the command that is waited for has ended."""
        run = self._wanted.run
        if run is None:
            return None
        if closing := run.marks.closing(look.text):
            return self._ended("run_completed", look, status=int(closing["status"]))
        if look.state.dead:
            return self._ended("run_completed", look, status=look.state.dead_status, note=_DEAD)
        if quiet >= _INTERRUPTED_SECONDS and _is_prompt(look.state):
            return await self._end_without_mark(run)
        return None

    async def _end_without_mark(self, run: Handle) -> Waited | None:
        """Whether the shell that ran the command is at its prompt again, and no closing mark is in sight."""
        look = await self._terminal.look(self._pane_id, None)
        if closing := run.marks.closing(look.text):
            return self._ended("run_completed", look, status=int(closing["status"]))
        process = await foreground(look.state, self._terminal.client.runner)
        if process is None or look.state.alternate:
            return None
        if (opening := run.marks.opening(look.text)) is None:
            # The line that was typed may not have been taken yet.
            gone = process.pid == look.state.pid and not run.marks.typed(look.text)
            return self._ended("run_completed", look, note=_NO_MARKS) if gone else None
        below = look.text[opening.end() :]
        # A builtin that reads keys or a line can have the terminal as a prompt has it.
        over = prompts.follows_interrupt(below) or shells.any_closing(below, opening["pid"])
        if over and process.pid == int(opening["pid"]):
            return self._ended("run_completed", look, note=_INTERRUPTED)
        return None


def _is_prompt(state: State) -> bool:
    """Whether the terminal is in the mode of a shell's prompt."""
    name, discipline = shells.shell(state.program), Discipline.of(state.tty)
    return name is not None and discipline is not None and mode_of_prompt(name, discipline)


def _is_full(text: str, width: int) -> bool:
    """Whether a line ends at the right edge of the pane, or one column before."""
    return len(text) >= width - 1 and (len(text) + 1) % width <= 1


_ANYTHING: Final = Wanted()
_DEAD: Final = (
    "The pane's program has ended; the pane is kept. tmux can have lost what the program printed last."
)
_GONE: Final = {
    "pane_gone": "The pane closed. What was printed last may be missing. list_panes shows the others.",
    "server_gone": "The tmux server has ended: it does when its last pane closes. What was printed last may "
    "be missing. create_session starts a server.",
}
_SILENT: Final = "tmux does not answer, so what the pane printed lately is not known."
_NO_MARKS: Final = (
    "The shell is at its prompt, and the command's marks are not in the pane any more (cleared, or beyond "
    "its history): it has ended, with a status that is not known."
)
_INTERRUPTED: Final = "The shell is back at its prompt, but the command was interrupted and left no status."


class _Line(NamedTuple):
    """A line to match; only matches that end after its first `old` characters are new."""

    text: str
    old: int
    shown: str
    """With the echo of what was typed."""
