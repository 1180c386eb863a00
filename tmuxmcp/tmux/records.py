"""Formats that tmux fills in, and the exact reading of what comes back.

Any byte may be in a title, a path or an option, and tmux escapes neither separators nor newlines
(3.4 and 3.5a even rewrite control characters). So fields are cut at a random text made for one
call, which no value can hold; what other commands or hooks print between the rows falls through.
"""

from __future__ import annotations

import secrets

from tmuxmcp.errors import NotFound, TmuxFailed
from tmuxmcp.tmux.command import Command


def new_nonce() -> str:
    """A text that nothing on the tmux server can hold yet: 64 random bits in lower-case hexadecimal."""
    return secrets.token_hex(8)


class Template:
    """Named tmux formats that are asked for together: ``Template(pane_id="#{pane_id}")``."""

    def __init__(self, **fields: str) -> None:
        self.fields = fields

    def format(self, nonce: str) -> str:
        """The text for `-F` of list-* and new-*, and for display-message -p."""
        return f"{nonce}<" + f"{nonce}|".join(self.fields.values()) + f"{nonce}>"

    def ask(self, listing: Command, nonce: str) -> Command:
        """`listing` (list-*, display-message, new-session, new-window, split-window) answering with rows."""
        if listing.name == "display-message":
            return Command(listing.name, (*listing.args, "-p", self.format(nonce)))
        flags = ("-P", "-F") if listing.name in ("new-session", "new-window", "split-window") else ("-F",)
        return Command(listing.name, (*flags, self.format(nonce), *listing.args))

    def parse_one(self, text: str, nonce: str) -> dict[str, str]:
        """The one row in `text`. Raises `NotFound` without one: what it was asked for went meanwhile.

        display-message says nothing about a target that is gone, and answers rc 0 (3.2a to 3.8).
        """
        rows = self.parse(text, nonce)
        if not rows:
            raise NotFound("The target went away during the call. List what exists now.")
        return rows[0]

    def parse(self, text: str, nonce: str) -> list[dict[str, str]]:
        """The rows in `text`, in tmux's order, whatever stands before, between and after them."""
        begin, cut, end = (f"{nonce}{mark}" for mark in "<|>")
        rows = [
            dict(zip(self.fields, row.partition(end)[0].split(cut), strict=False))
            for row in text.split(begin)[1:]
        ]
        whole = all(len(row) == len(self.fields) for row in rows)
        if not whole or text.count(nonce) != len(rows) * (len(self.fields) + 1):
            raise TmuxFailed("tmux's answer is damaged: a row lacks fields that were asked for. Try again.")
        return rows
