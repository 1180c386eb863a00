"""run_shell_command: one command in a pane's current shell, with its exact output and status.

`tmuxmcp.terminal.shells` says what is typed, `tmuxmcp.terminal.watch` how the end is seen. Here is
when: the pane is looked at until its shell is at its prompt, then the line is typed, once.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import anyio
from anyio import CancelScope

from tmuxmcp.errors import (
    NoServer,
    NotFound,
    PaneBusy,
    PaneDead,
    PaneInMode,
    PaneInputOff,
    PaneSynchronized,
    ServerGone,
    ToolError,
)
from tmuxmcp.terminal import prompts, shells
from tmuxmcp.terminal.clock import Progress, Ticker, no_progress
from tmuxmcp.terminal.foreground import Readiness, foreground, readiness
from tmuxmcp.terminal.keyboard import Keyboard, Stroke
from tmuxmcp.terminal.panes import REPLACED, Look, Open, State, Terminal
from tmuxmcp.terminal.shells import Dialect, Marks, Script
from tmuxmcp.terminal.watch import ROWS_BACK, Ending, Reading, Watch
from tmuxmcp.tmux.client import TIMEOUT


class _Job(NamedTuple):
    command: str
    deadline: float
    in_history: bool
    progress: Progress


_LEAVING_SECONDS = 0.2
_EMPTY_PROMPT_SECONDS = 0.2
_STUCK_SECONDS = 1.0


class Runner:
    """Runs commands in one pane, one at a time."""

    def __init__(self, terminal: Terminal, keyboard: Keyboard, pane_id: str) -> None:
        self._terminal = terminal
        self._keyboard = keyboard
        self._pane_id = pane_id
        self._memory = terminal.memory(pane_id)

    async def run(
        self, command: str, *, deadline: float, in_history: bool, progress: Progress = no_progress
    ) -> Ending:
        """Run `command` once, and return at `deadline` (of the terminal's clock) at the latest.

        Raises `NotFound`, `PaneBusy`, `PaneDead`, `PaneInMode` and `PaneSynchronized`; then nothing
        was typed.
        """
        with anyio.move_on_after(deadline - self._terminal.clock.now()) as turn:
            await self._memory.run.acquire()
        if turn.cancelled_caught:
            return Ending("not_started", note="Other commands had the pane for the whole time.")
        try:
            return await self._run(_Job(command, deadline, in_history, progress))
        finally:
            self._memory.run.release()

    async def _run(self, job: _Job) -> Ending:
        if (left := await self._left_at_prompt()) and (ending := await self._run_at(left, job, still=True)):
            return ending
        before = await self._until_prompt(job.deadline)
        if before is None:
            program = (await self._terminal.look(self._pane_id)).state.program
            note = f"Nothing was typed: {program[:80]!r} has the terminal, and {Readiness.NOT_YET.value}."
            return Ending("not_started", note=note)
        ending = await self._run_at(before, job)
        assert ending is not None
        return ending

    async def _run_at(self, before: Look, job: _Job, *, still: bool = False) -> Ending | None:
        """Run the command at a prompt; with `still` only if it is still there as it was seen, else None."""
        watch: Watch | None = None
        try:
            prompt = await self._without_rest(before, job.deadline)
            if prompt is None:
                return Ending("not_started", note=_NOT_TAKEN)
            dialect = await self._dialect(prompt, job.deadline)
            if dialect is None:
                return Ending("not_started", note=f"{prompt.state.program} did not answer as a shell does.")
            marks = Marks.new()
            script = shells.script(job.command, dialect, marks, in_history=job.in_history)
            watch = Watch(self._terminal, prompt, marks, dialect, job.deadline, job.progress)
            ending = await self._attempt(script, watch, job.deadline, still=prompt.state if still else None)
        except (NotFound, NoServer, ServerGone):
            return await self._gone(before.state, watch.seen if watch else "")
        if ending:
            self._memory.left = ending.left
            if ending.left:
                self._memory.shown_prompt = ending.left.last_line
            self._memory.open = Open(marks, prompt.last_line) if ending.running else None
        return ending

    async def _left_at_prompt(self) -> Look | None:
        """The pane as the last command left it, if all that can be told without tmux is still so.

        Then what is typed next need not wait for a look.
        """
        left, self._memory.left = self._memory.left, None
        if left is None or self._memory.untaken or shells.shell(left.state.program) is None:
            return None
        if shells.is_unfinished(left.last_line) and left.last_line != self._memory.prompt:
            return None
        try:
            ready = await readiness(left.state, self._terminal.client.runner, starting=False)
        except PaneBusy:
            return None
        return left if ready is Readiness.PROMPT else None

    async def _gone(self, before: State, text: str) -> Ending:
        outcome = await self._terminal.gone(before.server)
        return Ending(outcome, text=text, lost=True, note=_CLOSED if outcome == "pane_gone" else _ENDED)

    async def _until_prompt(self, deadline: float) -> Look | None:
        """Wait until a command can be typed; None when the deadline came first."""
        clock = self._terminal.clock
        begun = clock.now()
        ticker = Ticker(clock, deadline)
        seen = None
        while True:
            rows_back = ROWS_BACK if self._memory.open else 0
            look = await self._terminal.look(
                self._pane_id, rows_back, timeout=self._terminal.patience(deadline)
            )
            look.state.check_accepts_input()
            if look.state.synchronized:
                raise PaneSynchronized(
                    f"Pane {self._pane_id} is synchronised with the other panes of {look.state.window_id}: "
                    "each would run the command, so nothing was typed. Turn it off with "
                    "set_synchronize_panes, or use send_keys.",
                    pane_id=self._pane_id,
                    window_id=look.state.window_id,
                )
            starting = not self._memory.prompted and not look.text.strip()
            starting = starting or self._terminal.is_starting(self._pane_id)
            # A program that was just told to quit is given the time to.
            starting = starting or clock.now() - begun < _LEAVING_SECONDS
            if look != seen:
                ticker.changed()
            long_still, nothing_open = ticker.quiet > _STUCK_SECONDS, self._memory.open is None
            # A process of ours was killed between its line and the command.
            stuck = long_still and shells.is_reading(look.text)
            blank = long_still and not stuck and nothing_open and self._memory.prompted
            runner = self._terminal.client.runner
            ready = await readiness(look.state, runner, starting=starting, blank=blank)
            # The mode can be a moment ahead of the prompt, which a later look is compared with.
            shown = look.state.cursor_x > 0 or (nothing_open and ticker.quiet > _EMPTY_PROMPT_SECONDS)
            waits = ready is Readiness.PROMPT and shown and self._has_taken(look, ticker.quiet)
            if waits and await self._is_over(look):
                self._memory.prompted, self._memory.open = True, None
                self._memory.shown_prompt = look.last_line
                return look
            if clock.now() >= deadline:
                return None
            if look != seen:
                seen = look
            elif stuck:
                await self._release()
            await ticker.rest()

    async def _is_over(self, look: Look) -> bool:
        """Whether a command whose time was up has ended, and it is not that which reads like a prompt."""
        if self._memory.open is None:
            return True
        marks, prompt, interrupted = self._memory.open
        opening = marks.opening(look.text)
        if opening is None or marks.closing(look.text) or prompts.alike(look.last_line, prompt):
            return True
        process = await foreground(look.state, self._terminal.client.runner)
        another_shell = process is None or process.pid != int(opening["pid"])
        return another_shell or interrupted or prompts.follows_interrupt(look.text[opening.end() :])

    def _has_taken(self, look: Look, quiet: float) -> bool:
        """Whether the shell has begun with the line that was typed last: of a run that was cancelled, or by
        another call.

        Until then the prompt is there as before, and what is typed next could be read by that line's command.
        """
        unread = self._memory.untaken and self._memory.untaken not in look.text
        if (unread or self._memory.entered == look.state.row) and quiet <= _STUCK_SECONDS:
            return False
        self._memory.untaken, self._memory.entered = "", None
        return True

    async def _attempt(
        self, script: Script, watch: Watch, deadline: float, *, still: State | None
    ) -> Ending | None:
        """Type the command, and once more if the shell did not take its line. None as `_run_at` says."""
        for attempt in range(2):
            async with self._memory.typing:
                self._memory.untaken = script.marks.nonce
                try:
                    typed = await self._type_line(
                        script.line,
                        watch.dialect,
                        still if attempt == 0 else None,
                        self._terminal.patience(deadline),
                    )
                except (PaneDead, PaneInMode, PaneInputOff, PaneSynchronized):
                    self._memory.untaken = ""
                    raise
                if typed is None:
                    self._memory.untaken = ""
                    return None
                reading = await self._send(script, watch) if script.payload else Reading.READY
            if reading is Reading.REPLACED:
                return Ending("shell_exited", note=REPLACED)
            if reading is Reading.FAILED:
                return Ending("not_started", note=_NO_READER)
            if reading is Reading.LATE:
                return Ending("not_started", note="The shell was not ready to read the command in time.")
            if reading is Reading.READY:
                ending = await watch.until_closed(typed, self._ask, ignored_ends=attempt == 0)
                if ending is not None:
                    if not ending.running:
                        self._memory.untaken = ""
                    return ending
            # The line went into an unfinished one (an open quote, say). Interrupted, it ran nothing.
            if await self._interrupt(deadline) is None:
                break
        return Ending("not_started", note=_NOT_TAKEN)

    async def _without_rest(self, before: Look, deadline: float) -> Look | None:
        """Drop the first lines of an unfinished command, which what is typed would become the rest of."""
        if not shells.is_unfinished(before.last_line):
            self._memory.prompt = ""
            return before
        if before.last_line == self._memory.prompt:
            return before
        after = await self._interrupt(deadline)
        if after is not None:
            self._memory.prompt = after.last_line
        return after

    async def _interrupt(self, deadline: float) -> Look | None:
        """Interrupt an unfinished line, and wait for the prompt; None when that takes too long."""
        before = await self._terminal.look(self._pane_id)
        await self._keyboard.type(self._pane_id, Stroke(keys=("C-c",)))
        self._memory.untaken = ""
        ticker = Ticker(self._terminal.clock, deadline)
        while ticker.quiet < _LEAVING_SECONDS and await self._terminal.look(self._pane_id) == before:
            await ticker.rest()
        return await self._until_prompt(deadline)

    async def _send(self, script: Script, watch: Watch) -> Reading:
        """Send the command to the reader. Without it, the reader is told to go, whatever happens to us."""
        sent = False
        try:
            reading = await watch.until_ready()
            if reading is Reading.READY:
                self._terminal.remember(self._pane_id, *script.shown)
                await self._keyboard.type(self._pane_id, Stroke(text=script.payload))
                sent = True
            return reading
        finally:
            if not sent:
                with CancelScope(shield=True), suppress(ToolError):
                    await self._release()

    async def _release(self) -> None:
        """End a reader that waits in vain.

        Enter would be a carriage return, which ksh93's terminal mode does not turn into a line's end.
        """
        await self._keyboard.type(self._pane_id, Stroke(text=shells.GIVE_UP))

    async def _type_line(
        self,
        line: str,
        dialect: Dialect | None = None,
        still: State | None = None,
        timeout: float = TIMEOUT,
    ) -> State | None:
        """Type one line and Enter, in place of what somebody left unfinished at the prompt.

        With `still` only if the pane is still so, else None.
        """
        self._terminal.remember(self._pane_id, line)
        stroke = Stroke(text=line, before=shells.clear_keys(dialect), keys=("Enter",), bracketed=True)
        if still is not None:
            return await self._keyboard.type_if_still(still, stroke, timeout=timeout)
        return (await self._keyboard.type(self._pane_id, stroke, timeout=timeout)).state

    async def _ask(self, marks: Marks, dialect: Dialect) -> None:
        async with self._memory.typing:
            await self._type_line(f" {shells.ask_status(dialect, marks)}", dialect)

    async def _dialect(self, before: Look, deadline: float) -> Dialect | None:
        """The grammar of the pane's shell; one that another program carries is asked."""
        name = shells.shell(before.state.program)
        if name is not None:
            return shells.dialect(name)
        clock = self._terminal.clock
        marks = Marks.new()
        async with self._memory.typing:
            await self._type_line(shells.ask_dialect(marks))
        ticker = Ticker(clock, deadline)
        while clock.now() < deadline:
            look = await self._terminal.look(self._pane_id, ROWS_BACK)
            if (dialect := marks.dialect(look.text)) is not None:
                return dialect
            await ticker.rest()
        return None


_NO_READER = (
    "The shell could not start `sh`, which reads a command that is long, has several lines or not only "
    "ASCII: see with snapshot_pane what it said. Its PATH may lack it."
)
_NOT_TAKEN = "The shell did not take the line that was typed."
_CLOSED = (
    "The pane closed: the command ended its shell (exit, exec, a failure under set -e), or somebody killed "
    "the pane. What was printed last, and the status, are lost. In a subshell, `( ... )`, exit ends only it."
)
# tmux leaves its socket behind whether it was killed or its last session ended.
_ENDED = (
    "The tmux server has ended. It ends by itself when its last pane closes: by exit, exec, or a failure "
    "under set -e in that pane's own shell, for example. What was printed last, and the status, are lost. "
    "create_session starts a server; in a subshell, `( ... )`, exit ends only it."
)
