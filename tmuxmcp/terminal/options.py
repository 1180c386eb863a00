"""Options and hooks, as tmux lists them.

Names are looked up in tmux's listings and never handed to it: tmux would expand a format in a name, take
an unambiguous beginning for the whole, and answer from another scope than the one asked for. Listings
quote each value on one line, so that an option's text cannot be confused with another option.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from tmuxmcp.errors import NotFound
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.command import Command, command, target
from tmuxmcp.tmux.quoting import unquote
from tmuxmcp.tmux.records import new_nonce

Scope = Literal["server", "session", "window", "pane"]
HookScope = Literal["session", "window", "pane"]

_LINE: Final = re.compile(r"(?P<name>[^\s\[\]]+)(?:\[(?P<element>\d+)\])?(?: (?P<value>.*))?")
_ELEMENT: Final = re.compile(r"(?P<name>.+?)\[(?P<element>\d{1,9})\]")


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """An option's value: of a list, its elements, one a line."""

    name: str
    value: str
    inherited: bool
    """Whether the value is a wider scope's, because the target has none of its own."""


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """One command of a hook; tmux runs those of one hook in the order of their index."""

    name: str
    index: int
    scope: HookScope
    command: str


class _Entry(NamedTuple):
    """One line of a listing; `element` is None for what is no list, and for a list without elements."""

    name: str
    element: int | None
    value: str


async def option(client: Client, name: str, scope: Scope, id: str | None) -> Option:
    """The value that holds for `id` (None: server-wide), in one tmux process.

    Raises `NotFound` for a target or an option that does not exist in this scope: the beginning of a
    name is no name.
    """
    element = _ELEMENT.fullmatch(name)
    base, wanted = (element["name"], int(element["element"])) if element else (name, None)
    levels = [
        list(_entries(text)) for text in await _listings(client, "show-options", _levels(scope, id), id)
    ]
    for depth, entries in enumerate(levels):
        # A list that is set in one scope hides all elements of the wider one.
        found = [entry for entry in entries if entry.name == base]
        if wanted is not None and found:
            found = [entry for entry in found if entry.element == wanted]
            if not found:
                raise NotFound(f"{base} has no element {wanted}. Leave out the index to see all of them.")
        if found:
            return Option(name=name, value="\n".join(entry.value for entry in found), inherited=depth > 0)
    hint = _suggestion(base, {entry.name for entries in levels for entry in entries})
    raise NotFound(
        f"No option of exactly this name is set in the {scope} scope.{hint} Names are not completed, and an "
        "option may belong to another scope; hooks are shown by show_hooks.",
        scope=scope,
    )


def _levels(scope: Scope, id: str | None) -> Sequence[tuple[str, ...]]:
    """The flags of the listings in which an option can be set, from the nearest on."""
    if scope == "server":
        return (("-s",),)
    if scope == "session":
        return (("-g",),) if id is None else ((), ("-g",))
    own = {"window": (("-w",),), "pane": (("-p",), ("-w",))}[scope]
    return (("-gw",),) if id is None else (*own, ("-gw",))


def _suggestion(beginning: str, names: Iterable[str]) -> str:
    whole = sorted(name for name in names if beginning and name.startswith(beginning))
    return f" Do you mean {' or '.join(whole[:3])}?" if whole else ""


async def hooks(client: Client, name: str | None, scope: HookScope | None, id: str | None) -> list[Hook]:
    """The hooks that are set on `id` itself, which `scope` says the kind of; without an id, server-wide.

    Raises `NotFound` for a target that does not exist, and for a name that is no hook's.
    """
    own: Mapping[HookScope | None, tuple[str, ...]] = {"session": (), "window": ("-w",), "pane": ("-p",)}
    # The global listings name every hook there is, set or not; those of panes are among those of windows.
    levels = [("-g",), ("-gw",), *([] if id is None else [own[scope]])]
    texts = await _listings(client, "show-hooks", levels, id)
    known = {entry.name for text in texts for entry in _entries(text, quoted=False)}
    if name is not None and name not in known:
        raise NotFound(
            f"There is no hook of exactly this name.{_suggestion(name, known)} Names are not completed."
        )
    shown: list[tuple[HookScope, str]] = [("session", texts[0]), ("window", texts[1])]
    if scope is not None:
        shown = [(scope, texts[2])] if id is not None else [shown[0 if scope == "session" else 1]]
    return [
        Hook(name=entry.name, index=entry.element, scope=each, command=entry.value)
        for each, text in shown
        for entry in _entries(text, quoted=False)
        if entry.element is not None and name in (None, entry.name)
    ]


async def _listings(
    client: Client, name: str, levels: Sequence[tuple[str, ...]], id: str | None
) -> list[str]:
    """What tmux lists for each level, in one process. Levels that are not global are of `id`."""
    cut = new_nonce()
    commands: list[Command] = [] if id is None else [command("has-session", "-t", target(id))]
    for flags in levels:
        is_global = any("g" in flag or flag == "-s" for flag in flags)
        aim = () if id is None or is_global else ("-t", target(id))
        commands += [command(name, *flags, *aim), command("display-message", "-p", cut)]
    texts = (await client.call(*commands)).split(f"{cut}\n")
    return texts[: len(levels)]


def _entries(text: str, *, quoted: bool = True) -> Iterator[_Entry]:
    for line in text.split("\n"):
        if match := _LINE.fullmatch(line):
            element, value = match["element"], match["value"] or ""
            number = None if element is None else int(element)
            yield _Entry(match["name"], number, unquote(value) if quoted else value)
