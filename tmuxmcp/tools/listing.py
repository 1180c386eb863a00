"""Rows of a target or of the whole server, page by page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, Final, Generic

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tmuxmcp import limits
from tmuxmcp.errors import NoServer, NotFound, ServerGone
from tmuxmcp.terminal import rows
from tmuxmcp.tmux.command import Command, command, target
from tmuxmcp.tmux.records import Template, new_nonce
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
    nonce = new_nonce()
    return template.parse(await _told(call, place, template.ask(asked, nonce)), nonce)


async def _told(call: Call, place: Target | None, *asked: Command) -> str:
    """What listings print; nothing when no target is named and there is no server, or no session in it."""
    try:
        return await call.terminal.client.call(*_aim(place), *asked)
    except (NoServer, ServerGone, NotFound):
        # A server that has lost its last session can still be on its way out.
        if place is not None:
            raise
        return ""


@dataclass(frozen=True)
class Pages(Generic[rows.Row]):
    """Rows that come in pages: of `kind`, listed by a command, and told apart by the fields `identity`."""

    kind: rows.Kind[rows.Row]
    command: str
    identity: tuple[str, ...]

    async def page(
        self, call: Call, place: Target | None, offset: int, limit: int
    ) -> tuple[list[rows.Row], int | UnsetType]:
        """The rows from `offset` on, as many as fit into a result, and where the next page begins.

        Each row takes tmux some time to fill in, most of all a pane's program and directory. So where there
        are many windows, only the first ones are asked for in full, and the order of all.
        """
        asked, template = listing(self.command, place), self.kind.template
        order = Template(**{field: template.fields[field] for field in self.identity})
        first = next((count for count in _FIRST if offset + limit <= count), None)
        in_order, in_full = new_nonce(), new_nonce()
        told = await _told(
            call,
            place,
            order.ask(asked, in_order),
            template.ask(asked if first is None else _among_first(asked, first), in_full),
        )
        keys = list(dict.fromkeys(map(self._key, order.parse(told, in_order))))
        answers = {self._key(answer): answer for answer in template.parse(told, in_full)}
        wanted = keys[offset : offset + limit]
        if not answers.keys() >= set(wanted):  # a session's windows have numbers far apart
            every = await call.terminal.client.rows(*_aim(place), listing=asked, template=template)
            answers = {self._key(answer): answer for answer in every}
        found = [self.kind.read(answers[key]) for key in wanted if key in answers]
        kept = found[: fits(found)]
        end = offset + len(kept)
        return kept, end if end < len(keys) else UNSET

    def _key(self, answer: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(answer[field] for field in self.identity)


_FIRST: Final = (100, 300, 900)
"""So many windows of each session are asked for in full, unless a page goes beyond them."""


def _among_first(asked: Command, count: int) -> Command:
    """The same listing of the first windows of each session; of all where there are no more than so many."""
    few, low = f"#{{e|<=:#{{session_windows}},{count}}}", f"#{{e|<=:#{{window_index}},{count}}}"
    return command(asked.name, "-f", f"#{{||:{few},{low}}}", *asked.args)


def _aim(place: Target | None) -> list[Command]:
    return [] if place is None else [command("has-session", "-t", target(place.id))]


def fits(items: Sequence[msgspec.Struct]) -> int:
    """How many of the items fit into a result: at least the first one, however large it is."""
    sizes = accumulate(len(msgspec.json.encode(item)) for item in items)
    return max(sum(size <= limits.CONTENT_BYTES for size in sizes), min(1, len(items)))
