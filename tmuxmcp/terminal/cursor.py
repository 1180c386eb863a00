"""A cursor: a place in a pane's output that outlives our process.

The place is the beginning of the line that was unfinished. tmux numbers rows from the oldest one that
it still holds, so the number alone does not keep: a full history drops its oldest tenth at once, a
program or a person clears it, a new width wraps every line anew. So a cursor also carries fingerprints
of the lines before its place; `tmuxmcp.terminal.place` finds them again.
"""

from __future__ import annotations

import base64
import hashlib
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, NoReturn

from tmuxmcp import limits
from tmuxmcp.errors import InvalidCursor
from tmuxmcp.terminal.clock import now_ms
from tmuxmcp.terminal.stream import Ask, State, Stream
from tmuxmcp.tmux.command import Command

PRINTS: Final = 96
"""Lines before the place that are fingerprinted, at most: where they look alike."""
TELLING_PRINTS: Final = 16
TELLING_KEPT: Final = 6
"""Lines that stand nowhere else in what was read, and such lines of the history, which nothing can write
over: with so many of them the others can be left out. Each line makes a cursor longer."""
SPAN: Final = 400
"""Rows that these lines may take together."""
BEGUN: Final = 32
"""Characters of the line at the place that are fingerprinted."""
PRINT_BYTES: Final = 3
BLANK: Final = 0
"""The fingerprint of a line of blanks, and of no other."""

_VERSION: Final = 1
_HEAD: Final = struct.Struct(">BB IQIIIIIHH HBHHBI HQ")
_CHECK_BYTES: Final = 4


class Cursor(NamedTuple):
    """A place in one program's output in one pane of one tmux server. Rows are those of `Stream`."""

    server_pid: int
    server_start: int
    pane: int
    pane_pid: int
    row: int
    history_size: int
    history_limit: int
    width: int
    height: int
    span: int = 0
    """The rows of the lines that `prints` stands for."""
    kept: int = 0
    """How many of those, from the first, were in the history, where nothing can be written over."""
    kept_span: int = 0
    """The rows of those that were not."""
    last_span: int = 0
    """The rows of the nearest one."""
    begun_size: int = 0
    """How many characters of the line at the place are fingerprinted."""
    begun: int = BLANK
    """Their fingerprint."""
    printed: int = 0
    """Characters of the unfinished line that had been printed already, up to 65,535."""
    taken: int = 0
    """When the cursor was taken, in milliseconds of the wall clock."""
    prints: tuple[int, ...] = ()
    """Fingerprints of the lines before the place, the nearest one last."""
    alternate: bool = False
    wiped: bool = False
    """Whether lines before the place were cleared at some time: it may happen again."""

    @classmethod
    def at(cls, stream: Stream, index: int, *, wiped: bool = False, taken: int | None = None) -> Cursor:
        """The place where line `index` of a stream begins."""
        row = stream.row_of(index)
        first = index
        # What was read may begin in the middle of a line.
        top = 1 if stream.top else 0
        times, history = Counter(stream.lines), stream.state.history_size
        telling = telling_kept = 0
        while first > top and index - first < PRINTS and row - stream.starts[first - 1] <= SPAN:
            if telling >= TELLING_PRINTS and (telling_kept >= TELLING_KEPT or not history):
                break
            first -= 1
            telling += times[stream.lines[first]] == 1
            telling_kept += times[stream.lines[first]] == 1 and stream.row_of(first + 1) <= history
        kept = first
        while kept < index and stream.row_of(kept + 1) <= stream.state.history_size:
            kept += 1
        begun = "".join(stream.lines[index : index + 1])[:BEGUN].rstrip(" ")
        return cls._of(stream.state, row)._replace(
            span=row - stream.row_of(first),
            kept=kept - first,
            kept_span=row - stream.row_of(kept),
            last_span=row - stream.row_of(max(first, index - 1)),
            begun_size=len(begun),
            begun=fingerprint(begun),
            printed=min(len(stream.partial(index)), 0xFFFF) if index == stream.unfinished else 0,
            taken=now_ms() if taken is None else taken,
            prints=tuple(fingerprint(line) for line in stream.lines[first:index]),
            wiped=wiped,
        )

    @classmethod
    def fresh(cls, row: Mapping[str, str]) -> Cursor:
        """The place where the output of a new pane's program begins.

        `row` is `tmuxmcp.terminal.stream.STATE`, asked for in the invocation that made the pane: tmux
        reads nothing of the program's output before that invocation ends.
        """
        state = State.parse(dict(row))
        return cls._of(state, state.row)

    @classmethod
    def _of(cls, state: State, row: int) -> Cursor:
        return cls(
            server_pid=state.server_pid,
            server_start=state.server_start,
            pane=int(state.pane_id[1:]),
            pane_pid=state.pane_pid,
            row=row,
            history_size=state.history_size,
            history_limit=state.history_limit,
            width=state.width,
            height=state.height,
            taken=now_ms(),
            alternate=state.alternate,
        )

    def encode(self) -> str:
        """Write it as an opaque ASCII text of at most `limits.TOKEN_BYTES` bytes."""
        *head, prints, alternate, wiped = self
        body = _HEAD.pack(_VERSION, alternate | wiped << 1, *head) + packed(prints)
        return _text(body + _check(body))

    @classmethod
    def decode(cls, text: str) -> Cursor:
        """Read what `encode` wrote. Raises `InvalidCursor` when it is damaged or something else."""
        try:
            # A longer text is none of ours, and base64 takes nothing but ASCII.
            padded = text[: limits.TOKEN_BYTES + 1] + "=" * (-len(text) % 4)
            raw = base64.b64decode(padded, altchars=b"-_", validate=True)
        except ValueError:
            raw = b""
        body, check = raw[:-_CHECK_BYTES], raw[-_CHECK_BYTES:]
        if len(body) < _HEAD.size or _check(body) != check or _text(raw) != text:
            _refuse("is damaged, or is no cursor")
        version, flags, *head = _HEAD.unpack_from(body)
        if version != _VERSION:
            _refuse("was made by another version of tmuxmcp")
        tail = body[_HEAD.size :]
        pieces = (tail[at : at + PRINT_BYTES] for at in range(0, len(tail), PRINT_BYTES))
        prints = tuple(int.from_bytes(piece, "big") for piece in pieces)
        return cls._make([*head, prints, bool(flags & 1), bool(flags & 2)])

    def check(self, state: State) -> None:
        """Raise `InvalidCursor` unless the cursor belongs to that stream."""
        if self.pane != int(state.pane_id[1:]):
            _refuse(f"belongs to pane %{self.pane}, not to {state.pane_id}")
        if (self.server_pid, self.server_start) != (state.server_pid, state.server_start):
            _refuse("belongs to a tmux server that has ended; pane ids start over in a new one")
        ended = state.dead and state.pane_pid == 0
        if self.pane_pid != state.pane_pid and not ended:
            _refuse(f"belongs to a program that pane {state.pane_id} ran before it was respawned")

    def begins(self, line: str) -> bool:
        """Whether a line can be the one at the place, by how it begins."""
        return fingerprint(line[: self.begun_size]) == self.begun

    @property
    def may_drop(self) -> bool:
        """`State.may_drop` when the cursor was taken."""
        return self.history_size + self.height > self.history_limit - max(1, self.history_limit // 10)


class Mark:
    """Takes a cursor in the invocation that acts, before it acts.

    Put `commands` after ``has-session`` and before the commands that act; `parse` gives the cursor and
    what those printed. For respawn-pane they go behind it: the cursor is one of the new program then.
    """

    def __init__(self, pane_id: str) -> None:
        self._ask = Ask(pane_id, rows_back=PRINTS)
        self._taken = now_ms()

    @property
    def commands(self) -> tuple[Command, ...]:
        return self._ask.commands

    def parse(self, printed: str) -> tuple[Cursor, str]:
        """Raises `TmuxFailed` when the answer is damaged."""
        stream, rest = self._ask.parse(printed)
        return Cursor.at(stream, stream.unfinished, taken=self._taken), rest


def fingerprint(line: str) -> int:
    """A number of 24 bits for a line; trailing blanks do not count, as some versions of tmux pad lines."""
    text = line.rstrip(" ")
    return zlib.crc32(text.encode()) & 0xFFFFFF or 1 if text else BLANK


def packed(prints: Iterable[int]) -> bytes:
    """Fingerprints in `PRINT_BYTES` each."""
    return b"".join(each.to_bytes(PRINT_BYTES, "big") for each in prints)


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def _check(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECK_BYTES, person=b"tmuxmcp cursor").digest()


def _refuse(what: str) -> NoReturn:
    raise InvalidCursor(
        f"The cursor {what}, so it does not say from where to read. "
        "Call capture_since without a cursor to get a new one."
    )
