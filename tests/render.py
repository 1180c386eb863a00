"""What a tmux pane of a given width shows of a program's bytes, written down without any tmux.

The reference for `run_shell_command`: the text that `capture-pane -p -J` gives for lines that the program
wrote. Known are printing characters of any width, CR, LF, BS, TAB, automatic wrapping, and of the escape
sequences those that everyday programs use: colours, titles, cursor moves, erasing to the end of the line and
clearing the screen. Anything else raises, so that a case never passes because two unknowns looked alike.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

TAB_STOP = 8

_SEQUENCE = re.compile(
    r"\x1b\[(?P<parameters>[0-9;:?]*)(?P<final>[@-~])"
    r"|\x1b\](?P<title>[^\x07\x1b]*)(?:\x07|\x1b\\)"
    r"|\x1b(?P<escape>[78=>]|\(B)"
)

_UNWRITTEN = None
"""A cell that nothing was written to: a space when something stands right of it, else nothing."""
_CONTINUED = ""
"""A further cell of a wide character or of a tab."""


def keeps_tabs(version: str) -> bool:
    """Whether the tmux of this version (``3.3a``) has tabs in the text of its panes: see `Screen`."""
    return [int(number) for number in re.findall(r"\d+", version)][:2] >= [3, 6]


def width_of(character: str) -> int:
    """Return the number of cells of a character: 0, 1 or 2. Ambiguous width counts as 1."""
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


@dataclass
class Row:
    """One row of cells. `wrapped` when its text goes on in the next row."""

    cells: list[str | None] = field(default_factory=list)
    wrapped: bool = False

    def __str__(self) -> str:
        return "".join(" " if cell is _UNWRITTEN else cell for cell in self.cells)

    def put(self, column: int, character: str, width: int) -> None:
        """Write a character. A wide one whose first half it covers is gone, its second half a space."""
        self.cells += [_UNWRITTEN] * (column + width - len(self.cells))
        after = column + width
        if self.cells[column] == _CONTINUED or "\t" in self.cells[column:after]:
            raise ValueError("a character over a tab or half of a wide one: what tmux shows varies")
        if self.cells[after : after + 1] == [_CONTINUED]:
            self.cells[after] = " "
        self.cells[column:after] = [character] + [_CONTINUED] * (width - 1)

    def is_blank(self, start: int, end: int) -> bool:
        return all(cell in (_UNWRITTEN, " ") for cell in self.cells[start:end])


class Screen:
    """A screen of `width` columns and `height` rows that never forgets what scrolled off.

    With `tabs`, a tab over blank cells stays a tab in the text, as tmux has it from 3.6 on.
    """

    def __init__(self, width: int, height: int = 50, *, tabs: bool = False) -> None:
        self.width = width
        self.height = height
        self.tabs = tabs
        self.rows = [Row()]
        self.top = 0  # The first visible row; those above are history.
        self.row = 0
        self.column = 0  # Equals `width` after the last column was written: the next character wraps.

    def feed(self, text: str) -> None:
        position = 0
        while position < len(text):
            character = text[position]
            if character == "\x1b":
                match = _SEQUENCE.match(text, position)
                if match is None:
                    raise ValueError(f"unknown escape sequence {text[position : position + 12]!r}")
                self._sequence(match)
                position = match.end()
                continue
            if character >= " " and character != "\x7f":
                self._print(character)
            else:
                self._control(character)
            position += 1

    def lines(self) -> list[str]:
        """Return the text of all rows, wrapped ones joined."""
        lines = [""]
        for row in self.rows:
            lines[-1] += str(row)
            if not row.wrapped:
                lines.append("")
        return lines[:-1] if len(lines) > 1 and lines[-1] == "" else lines

    def _print(self, character: str) -> None:
        width = width_of(character)
        if width == 0:
            self._combine(character)
            return
        if self.column > self.width - width:
            self.rows[self.row].wrapped = True
            self._down()
            self.column = 0
        self.rows[self.row].put(self.column, character, width)
        self.column += width

    def _combine(self, character: str) -> None:
        cells = self.rows[self.row].cells
        cells += [_UNWRITTEN] * (self.column - len(cells))
        column = self.column - 1
        while column > 0 and cells[column] == _CONTINUED:
            column -= 1
        if cells[self.column : self.column + 1] == [_CONTINUED] or "\t" in cells[column : column + 1]:
            raise ValueError("a combining character at a tab or inside a wide one: what tmux shows varies")
        if column >= 0:
            cells[column] = (cells[column] or " ") + character

    def _control(self, character: str) -> None:
        match character:
            case "\r":
                self.column = 0
            case "\n" | "\v" | "\f":
                self._down()
            case "\b" if self.column > 0:
                self.column -= 1
            case "\b":
                if self.row > self.top and self.rows[self.row - 1].wrapped:
                    self.row -= 1
                    self.column = self.width - 1
            case "\t":
                if self.column < self.width - 1:
                    stop = min((self.column // TAB_STOP + 1) * TAB_STOP, self.width - 1)
                    if self.tabs and self.rows[self.row].is_blank(self.column, stop):
                        self.rows[self.row].put(self.column, "\t", stop - self.column)
                    self.column = stop
            case "\0" | "\a" | "\x7f":
                pass
            case _:
                raise ValueError(f"unknown control character {character!r}")

    def _sequence(self, match: re.Match[str]) -> None:
        """Obey a sequence, if it does the same on every tmux and whatever was on the screen before."""
        row = self.rows[self.row]
        at_home = self.row == self.top and self.column == 0
        match match["final"], match["parameters"]:
            case (None, _) | ("m", _):
                pass
            case "h" | "l", parameters if parameters.startswith("?"):
                pass
            case "A", parameters:
                self.row = max(self.top, self.row - int(parameters or 1))
                self.column = min(self.column, self.width - 1)
            case "K", "" | "0" if self.column == 0 and not row.wrapped:
                row.cells.clear()
                if self.row > 0:
                    self.rows[self.row - 1].wrapped = False
            case "K", "" | "0" if self.column >= len(row.cells):
                pass
            case "H", "":
                self.row, self.column = self.top, 0
            case ("J", "" | "0" | "2") if at_home:
                self._clear()
            case "J", "3":
                del self.rows[: self.top]
                self.row -= self.top
                self.top = 0
            case _:
                raise ValueError(f"unknown escape sequence {match[0]!r} at column {self.column}")

    def _clear(self) -> None:
        """Push the rows of the screen that hold something out of sight, as tmux does."""
        while len(self.rows) > self.top and not self.rows[-1].cells:
            self.rows.pop()
        self.top = self.row = len(self.rows)
        self.rows.append(Row())

    def _down(self) -> None:
        self.row += 1
        self.top = max(self.top, self.row - self.height + 1)
        if self.row == len(self.rows):
            self.rows.append(Row())


def render(data: bytes, width: int, height: int = 50, *, tabs: bool = False) -> str:
    """Return the text that a program shows which writes `data` (UTF-8) to a fresh screen.

    It ends with a newline when the cursor is left on an empty row.
    """
    screen = Screen(width, height, tabs=tabs)
    screen.feed(data.decode())
    return "\n".join(screen.lines())
