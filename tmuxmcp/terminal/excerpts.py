"""Pieces of a pane's history, read in one invocation."""

from __future__ import annotations

from collections.abc import Sequence

from tmuxmcp.errors import TmuxFailed
from tmuxmcp.tmux.command import Arg, Command, command, target
from tmuxmcp.tmux.records import Template, new_nonce

_SIZE = Template(history_size="#{history_size}")


class Excerpts:
    """Reads ranges of rows, counted as in `tmuxmcp.terminal.stream` when the history had `history_size`.

    Rows that were printed since shift what is read by their number, to later rows.
    """

    def __init__(self, pane_id: str, history_size: int, ranges: Sequence[range]) -> None:
        self._pane_id = pane_id
        self._history_size = history_size
        self._ranges = ranges
        self._nonce, self._cut = new_nonce(), new_nonce()

    @property
    def commands(self) -> list[Command]:
        """Commands to put after the ``has-session`` of an invocation."""
        aim = target(self._pane_id)
        commands = [_SIZE.ask(command("display-message", "-t", aim), self._nonce)]
        for rows in self._ranges:
            ends = (str(rows[0] - self._history_size), str(rows[-1] - self._history_size))
            flags = ("-S", Arg("-S", ends[0]), "-E", Arg("-E", ends[1]))
            commands.append(command("capture-pane", "-p", "-J", "-t", aim, *flags))
            commands.append(command("display-message", "-p", self._cut))
        return commands

    def parse(self, printed: str) -> tuple[int, list[list[str]]]:
        """How many rows were printed since, and the lines in each range, the wrapped ones joined.

        The number is negative when rows were dropped, whatever was printed.
        """
        size = int(_SIZE.parse_one(printed, self._nonce)["history_size"])
        pieces = printed.partition(f"{self._nonce}>\n")[2].split(f"{self._cut}\n")
        if len(pieces) != len(self._ranges) + 1:
            raise TmuxFailed("tmux's answer is damaged: it lacks a part of the pane's history. Try again.")
        return size - self._history_size, [piece.split("\n") for piece in pieces[:-1]]
