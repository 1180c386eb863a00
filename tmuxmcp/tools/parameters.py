"""Parameters that many tools share, and the targets that they name."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tmuxmcp import limits
from tmuxmcp.arguments import WORDS
from tmuxmcp.errors import InvalidArgument
from tmuxmcp.terminal.targets import session_target
from tmuxmcp.tools import Call

PaneId = Annotated[
    str,
    Meta(pattern="^%[0-9]+$", extra={WORDS: "the id of a pane, such as %0 (list_panes shows them)"}),
]
WindowId = Annotated[
    str,
    Meta(pattern="^@[0-9]+$", extra={WORDS: "the id of a window, such as @0 (list_windows shows them)"}),
]
SessionName = Annotated[str, Meta(description="$N or exact name")]

MaxLines = Annotated[int, Meta(ge=1, le=limits.CAPTURE_LINES_MAX)]
MaxBytes = Annotated[int, Meta(ge=1, le=limits.CONTENT_BYTES_MAX)]
Timeout = Annotated[float, Meta(gt=0, le=limits.TIMEOUT_SECONDS, description="seconds")]


class Arguments(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The arguments of a tool; a parameter that may be absent is `UNSET` then, or has a default."""


class InSession(Arguments, kw_only=True):
    session: SessionName


class OfWindow(Arguments, kw_only=True):
    window_id: WindowId


class OfPane(Arguments, kw_only=True):
    pane_id: PaneId


class Target(NamedTuple):
    """What a call is about: `id` is what tmux's `-t` takes."""

    kind: Literal["session", "window", "pane"]
    id: str


async def target_of(
    call: Call,
    *,
    session: str | UnsetType = UNSET,
    window_id: str | UnsetType = UNSET,
    pane_id: str | UnsetType = UNSET,
) -> Target | None:
    """The one target that is given, or None. Raises `InvalidArgument` when there are several."""
    values = {"session": session, "window_id": window_id, "pane_id": pane_id}
    given = [name for name, value in values.items() if value is not UNSET]
    if len(given) > 1:
        raise InvalidArgument(f"{' and '.join(given)} are given: name one target.", accepted=given)
    found: Target | None = None
    if session is not UNSET:
        found = Target("session", await session_target(call.terminal.client, session))
    elif window_id is not UNSET:
        found = Target("window", window_id)
    elif pane_id is not UNSET:
        found = Target("pane", pane_id)
    if found is not None and not found.id.startswith("="):
        call.touched.append(found.id)
    return found
