"""The environment that tmux gives to new panes, read from its quoted form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.command import command, target
from tmuxmcp.tmux.quoting import unescape

_ENTRY: Final = re.compile(
    r'unset (?P<removed>[^\n=]+);\n|(?P<name>[^\n="]+)="(?P<value>(?:[^"\\]|\\.)*)"; export (?P=name);\n',
    re.DOTALL,
)


class Variable(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A variable with its value, or one that new panes of the session do not get (`removed`)."""

    name: str
    value: str | UnsetType = UNSET
    removed: bool = False


async def environment(client: Client, session: str | None) -> list[Variable]:
    """What a session itself sets and removes, or the global environment, in one tmux process.

    `session` is a target. Raises `NotFound`, and `NoServer` where no session is named.
    """
    if session is None:
        return list(parse(await client.call(command("show-environment", "-s", "-g"))))
    aim = target(session)
    return list(
        parse(
            await client.call(command("has-session", "-t", aim), command("show-environment", "-s", "-t", aim))
        )
    )


def parse(text: str) -> Iterator[Variable]:
    """Read ``NAME="value"; export NAME;`` and ``unset NAME;``, a line each but for line breaks in a value."""
    at = 0
    while at < len(text):
        if match := _ENTRY.match(text, at):
            at = match.end()
            if removed := match["removed"]:
                yield Variable(name=removed, removed=True)
            else:
                yield Variable(name=match["name"], value=unescape(match["value"]))
        else:
            at = text.find("\n", at) + 1 or len(text)
