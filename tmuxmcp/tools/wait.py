"""wait_for_text, the tool: what a client may ask, and what it is told."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tmuxmcp import limits
from tmuxmcp.terminal import matching
from tmuxmcp.terminal.clock import effective_timeout
from tmuxmcp.terminal.cursor import Cursor
from tmuxmcp.terminal.handle import Handle
from tmuxmcp.terminal.wait import Outcome, Wait, Wanted
from tmuxmcp.tools import Call
from tmuxmcp.tools.parameters import OfPane, Timeout

Pattern = Annotated[str, Meta(max_length=limits.PATTERN_CHARACTERS)]
Patterns = Annotated[list[Pattern], Meta(min_length=1, max_length=limits.PATTERNS)]


class WaitForText(OfPane, kw_only=True):
    cursor: (
        Annotated[str, Meta(description="from an earlier result: match all output since then")] | UnsetType
    ) = UNSET
    run: (
        Annotated[str, Meta(description="from run_shell_command: wait for that command's end")] | UnsetType
    ) = UNSET
    patterns: Patterns | UnsetType = UNSET
    stop: Annotated[Patterns, Meta(description="patterns that end the wait as `stopped`")] | UnsetType = UNSET
    regex: bool = False
    match_case: bool = False
    quiet_for: (
        Annotated[float, Meta(gt=0, le=limits.TIMEOUT_SECONDS, description="seconds of silence")] | UnsetType
    ) = UNSET
    timeout: Timeout = limits.WAIT_TIMEOUT_SECONDS


class WaitResult(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How a wait ended. Times are in seconds."""

    outcome: Outcome
    matched_index: int | UnsetType = UNSET
    """Which of `patterns` (or of `stop`) matched first."""
    matched_lines: list[str] = []
    tail: str = ""
    """The last lines of new output."""
    matched_before_wait: bool = False
    """Whether a pattern was on the screen before."""
    alternate_screen: bool = False
    exit_status: int | UnsetType = UNSET
    elapsed_seconds: float
    effective_timeout: float
    cursor: str | UnsetType = UNSET
    note: str | UnsetType = UNSET


async def wait_for_text(call: Call, args: WaitForText) -> WaitResult:
    """Waits for new output that matches (RE2 if `regex`, line by line), for silence of `quiet_for` seconds,
    for the end of `run`, or else for any output. To go on waiting, pass the returned `cursor`."""
    call.touched.append(args.pane_id)
    timeout = effective_timeout(args.timeout, call.settings.wait_max_seconds)
    wanted = Wanted(
        patterns=_matcher(args.patterns, args),
        stop=_matcher(args.stop, args),
        quiet_for=None if args.quiet_for is UNSET else args.quiet_for,
        run=None if args.run is UNSET else Handle.decode(args.run),
    )
    cursor = None if args.cursor is UNSET else Cursor.decode(args.cursor)
    wait = Wait(call.terminal, args.pane_id, wanted, deadline=call.arrived + timeout, progress=call.progress)
    waited = await wait.until(cursor)
    result = WaitResult(
        outcome=waited.outcome,
        matched_lines=[_short(line.rstrip()) for line in waited.lines],
        tail="\n".join(_short(line) for line in waited.tail),
        matched_before_wait=waited.before,
        alternate_screen=waited.alternate,
        elapsed_seconds=round(call.terminal.clock.now() - call.arrived, 3),
        effective_timeout=timeout,
    )
    if waited.pattern is not None:
        result.matched_index = waited.pattern
    if waited.status is not None:
        result.exit_status = waited.status
    if waited.cursor is not None:
        result.cursor = waited.cursor.encode()
    if waited.note:
        result.note = waited.note
    return result


def _matcher(patterns: list[str] | UnsetType, args: WaitForText) -> matching.Matcher | None:
    if patterns is UNSET:
        return None
    return matching.compile(patterns, regex=args.regex, match_case=args.match_case)


def _short(line: str) -> str:
    return line if len(line) <= limits.SHOWN_CHARACTERS else f"{line[: limits.SHOWN_CHARACTERS]}..."
