"""Several reads in one call, and how their results share the room that one result has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from tmuxmcp import limits
from tmuxmcp.errors import TooLarge, ToolError
from tmuxmcp.terminal.kept import keep_tail
from tmuxmcp.tools import Nested
from tmuxmcp.tools.parameters import Arguments

_LEAST: Final = 1000
"""Bytes that every outcome has room for, whatever the others take: enough for any error."""
_SAID: Final = 80
"""Bytes in which a result says what was cut."""


class Operation(Arguments, kw_only=True):
    tool: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)


class Reads(Arguments, kw_only=True):
    operations: Annotated[list[Operation], Meta(min_length=1, max_length=limits.READ_OPERATIONS)]
    on_error: Literal["continue", "stop"] = "continue"


class Outcome(Struct, omit_defaults=True, kw_only=True):
    """What one operation came to: the tool's own result, or its error as ``{code, message, details}``."""

    tool: str
    result: dict[str, Any] | UnsetType = UNSET
    error: dict[str, Any] | UnsetType = UNSET


class Results(Struct, omit_defaults=True, kw_only=True):
    results: list[Outcome]
    stopped_at: int | UnsetType = UNSET


async def run(
    nested: Nested, operations: Sequence[tuple[str, Mapping[str, Any]]], *, stop_on_error: bool
) -> list[Outcome]:
    """Call the tools in order, and make what they return fit into one result."""
    outcomes: list[Outcome] = []
    for index, (tool, arguments) in enumerate(operations):
        outcome = Outcome(tool=tool)
        outcomes.append(outcome)
        try:
            outcome.result = await nested(index, tool, _within_share(tool, arguments, len(operations)))
        except ToolError as error:
            outcome.error = _told(error)
            if stop_on_error:
                break
    fit(outcomes, limits.CONTENT_BYTES)
    return outcomes


def fit(outcomes: Sequence[Outcome], max_bytes: int) -> None:
    """Cut outcomes until all of them are at most `max_bytes` of JSON.

    What cannot be cut is kept whole in order, or becomes a `too_large` error; pane output then shares
    what is left, and loses its beginning.
    """
    cut = sorted((outcome for outcome in outcomes if _can_be_cut(outcome)), key=_size)
    whole = [outcome for outcome in outcomes if not _can_be_cut(outcome)]
    left = max_bytes
    for count, outcome in enumerate(whole, 1):
        size, room = _size(outcome), left - _LEAST * (len(whole) - count + len(cut))
        if size > room:
            outcome.result = UNSET
            outcome.error = _told(
                TooLarge(
                    f"This result has {size} bytes, and the batch has room for {max(0, room)} more. Call "
                    f"{outcome.tool} by itself, or ask for less.",
                    bytes=size,
                )
            )
        left -= _size(outcome)
    for count, outcome in enumerate(cut):
        share = left // (len(cut) - count)
        if _size(outcome) > share:
            _cut(outcome, share)
        left -= _size(outcome)


def _within_share(tool: str, arguments: Mapping[str, Any], count: int) -> Mapping[str, Any]:
    """Ask capture_since for no more than fits: what it has returned once, its cursor leaves behind."""
    given = arguments.get("max_bytes", limits.CONTENT_BYTES)
    if tool != "capture_since" or not isinstance(given, int) or given < 1:
        return arguments
    # A line break and a quotation mark take two bytes in JSON.
    return {**arguments, "max_bytes": min(given, (limits.CONTENT_BYTES // count - _LEAST) // 2)}


def _can_be_cut(outcome: Outcome) -> bool:
    result = outcome.result
    return isinstance(result, dict) and "content" in result and "cursor" not in result


def _cut(outcome: Outcome, max_bytes: int) -> None:
    assert isinstance(outcome.result, dict)
    before = outcome.result
    content = before["content"]
    lines = content.split("\n")
    # JSON takes more bytes for some characters than the content has.
    growth = len(msgspec.json.encode(content)) / max(1, len(content.encode()))
    room = int(len(content.encode()) - (_size(outcome) - max_bytes + _SAID) / growth)
    while _size(outcome) > max_bytes:
        kept = keep_tail(lines, len(lines), max(0, room))
        outcome.result = {
            **before,
            "content": "\n".join(kept.lines),
            "lines": len(kept.lines),
            "truncated": True,
            "dropped_lines": before.get("dropped_lines", 0) + kept.dropped_lines,
            "dropped_bytes": before.get("dropped_bytes", 0) + kept.dropped_bytes,
        }
        if room <= 0:
            break
        room -= room // 16 + 1


def _size(outcome: Outcome) -> int:
    return len(msgspec.json.encode(outcome)) + 1


def _told(error: ToolError) -> dict[str, Any]:
    return {"code": error.code, "message": error.message, "details": error.details}
