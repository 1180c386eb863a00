"""Rows of a target or of the whole server, page by page."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Rows that come in pages: of `kind`, listed by a command, and told apart by the fields `identity`.

    The identity's values are numbers and ids.
    """

    kind: rows.Kind[rows.Row]
    command: str
    identity: tuple[str, ...]

    async def page(
        self, call: Call, place: Target | None, offset: int, limit: int
    ) -> tuple[list[rows.Row], int | UnsetType]:
        """The rows from `offset` on, as many as fit into a result, and where the next page begins.

        Each row takes tmux some time to fill in, most of all a pane's program and directory. So of a list
        that was long when it was asked for last, only the first rows are asked for in full.
        """
        asked = listing(self.command, place)
        long, this = call.terminal.long_lists, " ".join([self.command, place.id if place else ""])
        first = next((count for count in _FIRST if offset + limit <= count), None) if this in long else None
        keys, answers = await self._ask(call, place, asked, first)
        if not answers.keys() >= set(keys[offset : offset + limit]):  # a window has a number beyond
            keys, answers = await self._ask(call, place, asked, None)
        if len(keys) > _FIRST[0]:
            long.add(this)
        else:
            long.discard(this)
        found = [self.kind.read(answers[key]) for key in keys[offset : offset + limit]]
        kept = found[: fits(found)]
        end = offset + len(kept)
        return kept, end if end < len(keys) else UNSET

    async def _ask(
        self, call: Call, place: Target | None, asked: Command, first: int | None
    ) -> tuple[list[str], dict[str, dict[str, str]]]:
        """The identities of all rows, in tmux's order, and all rows in full, or the `first` ones."""
        template, in_order, in_full = self.kind.template, new_nonce(), new_nonce()
        order = Template(key=" ".join(template.fields[field] for field in self.identity))
        if first is None:
            told = await _told(call, place, template.ask(asked, in_full))
        else:
            some = template.ask(_among_first(asked, first), in_full)
            told = await _told(call, place, order.ask(asked, in_order), some)
        found = template.parse(told, in_full)
        answers = {" ".join(row[field] for field in self.identity): row for row in found}
        keys = answers if first is None else dict.fromkeys(row["key"] for row in order.parse(told, in_order))
        return list(keys), answers


_FIRST: Final = (100, 300, 900)
"""The windows up to such a number are asked for in full, unless a page goes beyond them."""


def _among_first(asked: Command, count: int) -> Command:
    """The same listing, of the windows whose number is not beyond `count`: most often the first so many."""
    return command(asked.name, "-f", f"#{{e|<=:#{{window_index}},{count}}}", *asked.args)


def _aim(place: Target | None) -> list[Command]:
    return [] if place is None else [command("has-session", "-t", target(place.id))]


def fits(items: Sequence[msgspec.Struct]) -> int:
    """How many of the items fit into a result: at least the first one, however large it is."""
    sizes = accumulate(len(msgspec.json.encode(item)) for item in items)
    return max(sum(size <= limits.CONTENT_BYTES for size in sizes), min(1, len(items)))
