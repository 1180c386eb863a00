"""run_shell_command, the tool: what a client may ask, and what it is told."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tmuxmcp import limits
from tmuxmcp.errors import TooLarge
from tmuxmcp.terminal.clock import effective_timeout
from tmuxmcp.terminal.handle import Handle
from tmuxmcp.terminal.kept import keep_tail
from tmuxmcp.terminal.keyboard import Keyboard
from tmuxmcp.terminal.run import Runner
from tmuxmcp.terminal.watch import Outcome, Reason
from tmuxmcp.tools import Call
from tmuxmcp.tools.parameters import MaxBytes, MaxLines, OfPane, Timeout


class RunShellCommand(OfPane, kw_only=True):
    command: str
    timeout: Timeout = limits.RUN_TIMEOUT_SECONDS
    max_lines: MaxLines = limits.CAPTURE_LINES
    max_bytes: MaxBytes = limits.CONTENT_BYTES
    suppress_history: Annotated[bool, Meta(description="keep it out of the shell's history")] | UnsetType = (
        UNSET
    )


class CommandResult(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How a command ended, and what it printed. Times are in seconds."""

    outcome: Outcome
    exit_status: int | UnsetType = UNSET
    output: str
    """Its last lines, without the final line break."""
    lines: int
    truncated: bool
    """Whether lines that the command printed are missing from `output`."""
    dropped_lines: int
    """How many; with `reason`, at least so many."""
    reason: Reason | UnsetType = UNSET
    elapsed_seconds: float
    effective_timeout: float
    still_running: bool
    run: str | UnsetType = UNSET
    cursor: str | UnsetType = UNSET
    note: str | UnsetType = UNSET


_DROPPED: Final = "All of it is still in the pane: see capture_pane with a negative start_line."


async def run_shell_command(call: Call, args: RunShellCommand) -> CommandResult:
    """Runs once in the pane's current shell (cd and export last; also over ssh), waits, returns exact
    output and exit_status. After `timed_out` the command goes on: wait_for_text with `run`. Answer
    prompts with send_keys meanwhile."""
    if len(args.command.encode()) > limits.COMMAND_BYTES:
        raise TooLarge(
            f"The command is longer than {limits.COMMAND_BYTES} bytes. Write it to a file with paste_text or "
            "several commands, and run that."
        )
    call.touched.append(args.pane_id)
    clock = call.terminal.clock
    timeout = effective_timeout(args.timeout, call.settings.wait_max_seconds)
    suppress = call.settings.suppress_history if args.suppress_history is UNSET else args.suppress_history
    runner = Runner(call.terminal, Keyboard(call.terminal), args.pane_id)
    ending = await runner.run(
        args.command, deadline=call.arrived + timeout, in_history=not suppress, progress=call.progress
    )
    lines = ending.text.removesuffix("\n").split("\n") if ending.text else []
    kept = keep_tail(lines, args.max_lines, args.max_bytes)
    result = CommandResult(
        outcome=ending.outcome,
        output="\n".join(kept.lines),
        lines=len(kept.lines),
        truncated=bool(kept.dropped_lines or kept.dropped_bytes or ending.reason or ending.lost),
        dropped_lines=kept.dropped_lines,
        elapsed_seconds=round(clock.now() - call.arrived, 3),
        effective_timeout=timeout,
        still_running=ending.running,
    )
    if ending.status is not None:
        result.exit_status = ending.status
    if ending.reason:
        result.reason = ending.reason
    if ending.running and ending.marks and ending.state:
        result.run = Handle.of(ending.marks, ending.state).encode()
    if ending.cursor:
        result.cursor = ending.cursor.encode()
    if ending.note:
        result.note = ending.note
    elif (kept.dropped_lines or kept.dropped_bytes) and not ending.reason:
        result.note = _DROPPED
    return result
