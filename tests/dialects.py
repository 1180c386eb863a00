"""How to write the same thing in different shells."""

from __future__ import annotations

import enum
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

Quote = Callable[[str], str]


class Compare(enum.Enum):
    """What of a result has to equal the reference; the exit status always has to."""

    OUTPUT = "output"
    MESSAGES = "messages"  # The output, but not how a line of the shell's own names the shell and the place.
    STATUS = "status"  # The status only.


Entry = str | tuple[str, Compare] | tuple[str, Compare, int]
"""A command, how to compare it, and how many background jobs it starts."""


def messages(commands: Iterable[str]) -> Iterator[Entry]:
    return ((command, Compare.MESSAGES) for command in commands)


def words(text: str) -> list[str]:
    return text.split()


def lines(text: str) -> list[str]:
    """One command a line."""
    return text.strip("\n").split("\n")


def blocks(text: str) -> list[str]:
    """Commands with a line "%" between them."""
    return text.strip("\n").split("\n%\n")


@dataclass
class Shell:
    """How to write things in one shell, and the randomness to choose what."""

    name: str
    random: random.Random
    width: int
    height: int
    quotes: tuple[Quote, ...] = field(init=False)
    show: str = field(init=False)
    """A command that prints one argument of any length and a newline."""

    def __post_init__(self) -> None:
        fish = self.name == "fish"
        self.quotes = (
            (fish_single, fish_double, backslashed)
            if fish
            else (single, double, backslashed)
            if self.name == "dash"
            else (single, double, backslashed, dollar_single)
        )
        self.show = "print -r --" if self.name in ("ksh", "mksh") else r"printf '%s\n'"

    @property
    def quote(self) -> Quote:
        """The plainest quoting."""
        return self.quotes[0]


def single(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def double(text: str) -> str:
    return '"' + "".join(f"\\{each}" if each in '"\\$`' else each for each in text) + '"'


def dollar_single(text: str) -> str:
    escapes = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t"}
    return "$'" + "".join(escapes.get(each, each) for each in text) + "'"


def backslashed(text: str) -> str:
    def one(each: str) -> str:
        if each == "\n":
            return "'\n'"
        return each if each.isalnum() or not each.isascii() else f"\\{each}"

    return "".join(map(one, text))


def fish_single(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_double(text: str) -> str:
    return '"' + "".join(f"\\{each}" if each in '"\\$' else each for each in text) + '"'
