"""What a pane has printed and tmux still holds: history and screen as one stream of logical lines.

A row is one line of cells, counted from the oldest row of the history. A logical line is what the
program wrote up to a line break; where it was wrapped it spans several rows. On the alternate
screen the stream is the main one underneath, which tmux keeps until the program leaves.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tmuxmcp.errors import TmuxFailed
from tmuxmcp.tmux.command import Arg, Command, command, target
from tmuxmcp.tmux.records import Template, new_nonce

ALL_ROWS: Final = 100_000
"""The most rows of history that one read takes."""
FARTHER: Final = 5000
"""Rows that are read before all of them are."""

STATE = Template(
    server_pid="#{pid}",
    server_start="#{start_time}",
    pane_id="#{pane_id}",
    pane_pid="#{pane_pid}",
    dead="#{pane_dead}",
    width="#{pane_width}",
    height="#{pane_height}",
    cursor_x="#{cursor_x}",
    cursor_y="#{cursor_y}",
    history_size="#{history_size}",
    history_limit="#{history_limit}",
    alternate="#{alternate_on}",
    saved_x="#{alternate_saved_x}",
    saved_y="#{alternate_saved_y}",
)
"""What says which stream it is, and where it stands."""


class State(NamedTuple):
    """A pane's stream at one instant. The cursor is the main screen's, also on the alternate screen."""

    server_pid: int
    server_start: int
    pane_id: str
    pane_pid: int
    dead: bool
    width: int
    height: int
    cursor_x: int
    cursor_y: int
    history_size: int
    history_limit: int
    alternate: bool

    @classmethod
    def parse(cls, row: dict[str, str]) -> State:
        """Read a row of `STATE`."""
        number = {name: int(value or 0) for name, value in row.items() if name != "pane_id"}
        alternate = bool(number["alternate"])
        # A program can enter the alternate screen without saving the cursor: tmux says UINT_MAX then.
        saved = alternate and number["saved_y"] < number["height"]
        return cls(
            server_pid=number["server_pid"],
            server_start=number["server_start"],
            pane_id=row["pane_id"],
            pane_pid=number["pane_pid"],  # 0 for a dead pane on tmux 3.8
            dead=bool(number["dead"]),
            width=number["width"],
            height=number["height"],
            cursor_x=number["saved_x" if saved else "cursor_x"],
            cursor_y=number["saved_y" if saved else "cursor_y"],
            history_size=number["history_size"],
            history_limit=number["history_limit"],
            alternate=alternate,
        )

    @property
    def row(self) -> int:
        """The cursor's row."""
        return self.history_size + self.cursor_y

    @property
    def may_drop(self) -> bool:
        """Whether tmux may have dropped rows already: a full history loses a tenth of its limit at once.

        After that it is full up to that tenth, of which a window made higher takes rows back.
        """
        return self.history_size + self.height > self.history_limit - self.chunk

    @property
    def chunk(self) -> int:
        """How many rows a full history drops at once."""
        return max(1, self.history_limit // 10)


@dataclass(frozen=True)
class Stream:
    """The newest rows of a pane, from row `top` on, as one tmux invocation saw them."""

    state: State
    lines: list[str]
    """Logical lines. The first one lacks its beginning when `top` is in the middle of it."""
    starts: list[int]
    """The row in which each of them begins."""
    end: int
    """The row after the last one."""

    @property
    def top(self) -> int:
        """The first row that was read: 0 when all of them were."""
        return self.starts[0]

    @property
    def unfinished(self) -> int:
        """The index of the line that holds the cursor: all lines before it have been ended."""
        index = max(0, bisect_right(self.starts, self.state.row) - 1)
        if self.state.dead:
            # tmux has moved the cursor down for its own note that the pane is dead.
            while index > 0 and not self.lines[index - 1].strip():
                index -= 1
        return index

    def row_of(self, index: int) -> int:
        """The row in which line `index` begins; that after the last row when there is no such line."""
        return self.starts[index] if index < len(self.starts) else self.end

    def line_at(self, row: int) -> int | None:
        """The index of the line that begins in `row`."""
        index = bisect_right(self.starts, row) - 1
        if index >= 0 and self.starts[index] == row:
            return index
        return len(self.starts) if row == self.end else None

    def partial(self, index: int) -> str:
        """The text from line `index` on, empty lines at its end left out. Blanks count up to the cursor."""
        lines = [line.rstrip(" ") for line in self.lines[index:]]
        while lines and not lines[-1]:
            lines.pop()
        if self.state.dead:
            return "\n".join(lines).lstrip("\n")
        if len(lines) == 1 and index == self.unfinished:
            rows = self.state.row - self.starts[index]
            cells = rows * self.state.width + self.state.cursor_x - _width(lines[0])
            lines[0] += self.lines[index][len(lines[0]) :][: max(0, cells)]
        return "\n".join(lines)


@dataclass(frozen=True)
class Ask:
    """The tmux commands that read a pane's stream, and the reading of what they print.

    They read `rows_back` rows of the history along with the screen. When the history has more than `near`
    rows, they read `FARTHER` more for as many more, and beyond that `ALL_ROWS`.
    """

    pane_id: str
    rows_back: int
    near: int | None = None
    _nonce: str = field(default_factory=new_nonce)
    _cut: str = field(default_factory=new_nonce)

    @property
    def commands(self) -> tuple[Command, ...]:
        """Commands to put after the ``has-session`` of an invocation and before those that act."""
        cut = command("display-message", "-p", self._cut)
        saved = f"capture-pane -p -a -q -t '{self.pane_id}'"
        return (
            command("display-message", "-t", target(self.pane_id), "-p", STATE.format(self._nonce)),
            self._capture("-J"),
            cut,
            self._capture("-N"),
            cut,
            command(
                *("if-shell", "-F", "-t", target(self.pane_id), "#{alternate_on}"),
                f"{saved} -J ; display-message -p {self._cut} ; {saved} -N ; display-message -p {self._cut}",
            ),
        )

    def _capture(self, flag: str) -> Command:
        """Capture with wrapped rows joined (-J) or row by row with all that was written (-N)."""
        if self.near is None:
            start = Arg("-S", str(-self.rows_back))
            return command("capture-pane", "-p", flag, "-t", target(self.pane_id), "-S", start)
        capture = f"capture-pane -p {flag} -t '{self.pane_id}' -S"
        far = f"if-shell -F -t '{self.pane_id}' \"{_at_most(self.near + FARTHER)}\""
        return command(
            *("if-shell", "-F", "-t", target(self.pane_id), _at_most(self.near)),
            f"{capture} {-self.rows_back}",
            f'{far} "{capture} {-self.rows_back - FARTHER}" "{capture} {-ALL_ROWS}"',
        )

    def parse(self, printed: str) -> tuple[Stream, str]:
        """The stream, and what the commands after ours printed.

        Raises `TmuxFailed` when the answer is damaged.
        """
        pieces = printed.split(f"{self._cut}\n")
        rows = STATE.parse(pieces[0], self._nonce)
        if len(rows) != 1 or len(pieces) not in (3, 5):
            raise TmuxFailed("tmux's answer is damaged: it does not hold one look at the pane. Try again.")
        state = State.parse(rows[0])
        joined = _rows(pieces[0].partition(f"{self._nonce}>\n")[2])
        cells = _rows(pieces[1])
        first = state.history_size + state.height - len(cells)
        stream = Stream(state, joined, line_starts(joined, cells, first), first + len(cells))
        if len(pieces) == 5:
            stream = _underneath(stream, cells, _rows(pieces[2]), _rows(pieces[3]))
        return stream, pieces[-1]


def _at_most(rows: int) -> str:
    return f"#{{e|<=:#{{history_size}},{rows}}}"


def _width(text: str) -> int:
    """How many cells a text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.category(character) in ("Mn", "Me", "Cf") for character in text)


def _rows(captured: str) -> list[str]:
    return captured.removesuffix("\n").split("\n")


def line_starts(lines: list[str], rows: list[str], first: int) -> list[int]:
    """Find the rows in which the joined lines begin: each line is the text of its rows in a sequence."""
    if lines == rows:
        return list(range(first, first + len(rows)))
    starts: list[int] = []
    at = 0
    for line in lines:
        # From 3.4 on, -N alone also gives the blanks of cells that nothing was written to.
        if at < len(rows) and rows[at].startswith(line) and not rows[at][len(line) :].strip(" "):
            starts.append(first + at)
            at += 1
            continue
        if (
            line.strip(" ")
            and at < len(rows)
            and not rows[at].strip(" ")
            and not line.startswith(rows[at] or "\0")
        ):
            at += 1  # An emptied row that the line above was wrapped into.
        starts.append(first + min(at, len(rows) - 1))
        taken = 0
        while at < len(rows):
            text = rows[at].rstrip(" ")
            if line.startswith(text, taken):
                after = line[taken + len(text) : taken + len(rows[at])]
                taken += len(after) - len(after.lstrip(" "))
            at += 1
            taken += len(text)
            if taken >= len(line):
                break
    return starts


def _underneath(stream: Stream, rows: list[str], saved: list[str], saved_rows: list[str]) -> Stream:
    """The main stream of a pane that shows the alternate screen: its history, and the screen tmux saved."""
    size = stream.state.history_size
    kept = bisect_right(stream.starts, size - 1)
    lines, starts = stream.lines[:kept], stream.starts[:kept]
    if lines:
        # The last line of the history may run on into the screen that is not this stream's.
        lines[-1] = "".join(rows[starts[-1] - stream.top : size - stream.top])
    starts += line_starts(saved, saved_rows, size)
    return Stream(stream.state, lines + saved, starts, size + len(saved_rows))
