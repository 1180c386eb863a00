"""Rows of a target or of the whole server, page by page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tmuxmcp import limits
from tmuxmcp.errors import NoServer, NotFound, ServerGone
from tmuxmcp.terminal import rows
from tmuxmcp.tmux.command import Command, command, target
from tmuxmcp.tmux.records import Template
from tmuxmcp.tools import Call
from tmuxmcp.tools.parameters import Target

Limit = Annotated[int, Meta(ge=1, le=1000)]
Offset = Annotated[int, Meta(ge=0, le=1_000_000)]


def listing(name: str, place: Target | None) -> Command:
    """list-windows or list-panes of a target, or of the whole server."""
    if place is None:
        return command(name, "-a")
    whole_session = name == "list-panes" and place.kind == "session"
    return command(name, *(["-s"] if whole_session else []), "-t", target(place.id))


async def listed(
    call: Call, template: Template, asked: Command, place: Target | None
) -> list[dict[str, str]]:
    """The answers of a listing; none when no target is named and there is no server, or no session in it."""
    client = call.terminal.client
    aim = [] if place is None else [command("has-session", "-t", target(place.id))]
    try:
        return await client.rows(*aim, listing=asked, template=template)
    except (NoServer, ServerGone, NotFound):
        # A server that has lost its last session can still be on its way out.
        if place is not None:
            raise
        return []


def page(
    kind: rows.Kind[rows.Row], answers: Sequence[Mapping[str, str]], offset: int, limit: int
) -> tuple[list[rows.Row], int | UnsetType]:
    """The rows from `offset` on, as many as fit into a result, and where the next page begins."""
    found = [kind.read(answer) for answer in answers[offset : offset + limit]]
    kept = found[: fits(found)]
    end = offset + len(kept)
    return kept, end if end < len(answers) else UNSET


def fits(items: Sequence[msgspec.Struct]) -> int:
    """How many of the items fit into a result: at least the first one, however large it is."""
    sizes = accumulate(len(msgspec.json.encode(item)) for item in items)
    return max(sum(size <= limits.CONTENT_BYTES for size in sizes), min(1, len(items)))
