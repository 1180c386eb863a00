"""Where a cursor's place is in a stream that was read later.

While the history has not been full, the lines before the place only have to confirm the row that the
cursor names. Otherwise they are looked for in all that tmux holds, and they count only if enough of
them stand nowhere else: lines that look alike prove nothing.

What no reader of a terminal can tell: text that was printed and wiped between two reads, when what
stands there afterwards is the same, line for line, as what stood there before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from tmuxmcp.terminal.cursor import BLANK, PRINT_BYTES, Cursor, fingerprint, packed
from tmuxmcp.terminal.stream import State, Stream

Reason = Literal["cleared", "trimmed", "resized"]
"""Why lines may be missing: wiped off, dropped from a full history, or wrapped anew beyond recognition."""

# How many lines that stand nowhere else make a place certain: one where the row's number says the same,
# more where the place was searched for, or where the screen is known to be wiped and written anew.
_WITNESSES: Final = 1
_WITNESSES_SEARCHED: Final = 4
# Or this many lines in one sequence, that many of them different, when the sequence stands nowhere else.
_SEQUENCE: Final = 16
_SEQUENCE_KINDS: Final = 4

_SPLITS: Final = 3
"""How often tmux may have split one line.

When a program goes to the alternate screen, tmux forgets that the last row of the history runs on into
the screen (seen on 3.3a).
"""


class Place(NamedTuple):
    """Where a cursor's place is in a stream."""

    line: int
    """The index of the line that begins there."""
    certain: bool
    """Whether every line printed since stands from there on."""
    lost: bool = False
    """Whether none of the lines before the place is there any more: all that was read came later."""
    missing: int = 0
    """How many lines from the place on are gone for certain."""
    rewritten: tuple[int, ...] = ()
    """Lines before the place that the program has written over since."""


def locate(cursor: Cursor, stream: Stream, *, all_read: bool) -> Place | None:
    """Find a cursor's place in a stream; None when more has to be read to tell, unless it is `all_read`.

    Raises `InvalidCursor` when the cursor does not belong to the stream.
    """
    cursor.check(stream.state)
    all_read = all_read or not stream.top
    field = _Field(stream, cursor.width)
    index = _same_row(cursor, stream)
    place = _unchanged(cursor, field, index, all_read)
    if place is None or not place.certain:
        # A few lines that look alike, found anywhere, must not hide the place above which some changed.
        place = _written_over(cursor, field, index, all_read) or place
    return place or (_lost(cursor, stream) if all_read else None)


class Suspect(NamedTuple):
    """A place that is the right one if a full history dropped no more than it must have."""

    place: Place
    others: Sequence[range]
    """The rows of the lines before it that were in the history, as they would be if it dropped more."""
    telling: frozenset[int]
    """Those of these lines that tell the place from others."""

    def may_be_among(self, lines: Iterable[str]) -> bool:
        """Whether the lines in one of the `others` may be those before the place."""
        return 2 * len(self.telling & {fingerprint(line) for line in lines}) >= len(self.telling)


def suspect(cursor: Cursor, stream: Stream) -> Suspect | None:
    """A cursor's place in the newest rows of a full history; None when only all of it can tell.

    A full history drops a whole chunk of rows at once, so there are few rows in which a place can be.
    """
    state = stream.state
    as_before = (cursor.width, cursor.history_limit) == (state.width, state.history_limit)
    if not state.may_drop or not as_before or cursor.wiped:
        return None
    rows = [row for row in range(cursor.row % state.chunk, cursor.row + 1, state.chunk) if row <= state.row]
    index = stream.line_at(rows[-1]) if rows else None
    if index is None or rows[0] < cursor.span:  # near the top, lines before the place are gone
        return None
    field = _Field(stream, cursor.width)
    match = field.match(cursor.prints, index)
    telling = field.unique.intersection(cursor.prints[: cursor.kept])
    if match is None or match.compared < len(cursor.prints) or len(telling) < _WITNESSES_SEARCHED:
        return None
    if not _can_have_moved(cursor, stream, index, match.start):
        return None
    others = [range(row - cursor.span, row - cursor.kept_span) for row in rows[:-1]]
    return Suspect(Place(index, certain=True), others, frozenset(telling))


def reason(cursor: Cursor, state: State) -> Reason:
    """What most probably became of lines that are missing, or why none can be proven to be there."""
    if state.may_drop:
        return "trimmed"
    return "resized" if cursor.width != state.width else "cleared"


def _same_row(cursor: Cursor, stream: Stream) -> int | None:
    """The line in the row that the cursor names: the right one unless rows were dropped or wrapped anew."""
    if cursor.width != stream.state.width or stream.state.may_drop:
        return None
    return stream.line_at(cursor.row)


def _unchanged(cursor: Cursor, field: _Field, index: int | None, all_read: bool) -> Place | None:
    """Find the lines before the place as they were: in the row that the cursor names, else anywhere."""
    whole = len(cursor.prints)
    if index is not None:
        match = field.match(cursor.prints, index)
        if match is not None and match.compared == whole:
            needed = _WITNESSES_SEARCHED if cursor.wiped else _WITNESSES
            return Place(index, field.proves(match, needed) or field.proves_by_order(cursor.prints))
    if not all_read or not cursor.prints:
        return None
    found = field.find(cursor.prints)
    plausible = [each for each in found if _can_have_moved(cursor, field.stream, each.end, each.start)]
    # With another width the row says nothing, but all that was there may still be at the very top.
    all_of_it = cursor.width != field.stream.state.width and cursor.span == cursor.row and not cursor.wiped
    proven = [
        each
        for each in plausible
        if field.proves(each, _WITNESSES_SEARCHED)
        or (all_of_it and each.start == 0 and each.compared == whole and field.proves(each, _WITNESSES))
    ]
    if len(found) == 1 and found[0].compared == whole and field.proves_by_order(cursor.prints):
        proven = plausible
    if len(proven) == 1:
        return Place(proven[0].end, certain=True)
    # Of several places that look alike the last one, so that nothing is read twice.
    return Place(max(each.end for each in found), certain=False) if found else None


def _can_have_moved(cursor: Cursor, stream: Stream, line: int, top: int) -> bool:
    """Whether a place that was searched for is where rows can have moved to without a line being lost.

    Programs print the same lines again. So what was found counts only where a full history that drops a
    tenth at a time can have left it, or, when the history was cleared, at the very top, where `top` is the
    first line found. And the line that was begun at the place has to begin as it did.
    """
    state = stream.state
    moved = cursor.row - stream.row_of(line)
    begun = "".join(stream.lines[line : line + 1])
    if cursor.width != state.width:
        return not state.may_drop or cursor.begins(begun)
    if not state.may_drop:
        return top <= 1 + _SPLITS and cursor.begins(begun)
    return moved == 0 or (moved > 0 and moved % state.chunk == 0 and cursor.begins(begun))


def _written_over(cursor: Cursor, field: _Field, index: int | None, all_read: bool) -> Place | None:
    """Find the place when lines before it changed that were on the screen: those in the history cannot."""
    if index is not None and (place := _changed_above(cursor, field, index)):
        return place
    stream = field.stream
    if not all_read or cursor.width != stream.state.width:
        return None
    found = field.find(cursor.prints[: cursor.kept])
    found = [each for each in found if field.proves(each, _WITNESSES_SEARCHED)]
    if len(found) != 1:
        return None
    index = stream.line_at(stream.row_of(found[0].end) + cursor.kept_span)
    place = None if index is None else _changed_above(cursor, field, index)
    if index is None or place is None or _can_have_moved(cursor, stream, index, found[0].start):
        return place
    return place._replace(certain=False)


def _changed_above(cursor: Cursor, field: _Field, index: int) -> Place | None:
    """The place at line `index`, if all that changed before it were lines on the screen."""
    screen = field.match(cursor.prints[cursor.kept :], index, changes=True)
    if screen is None or screen.compared < len(cursor.prints) - cursor.kept:
        return None
    history = field.match(cursor.prints[: cursor.kept], screen.start)
    if history is None or not field.proves(screen, _WITNESSES_SEARCHED, history):
        return None
    return _above(field, screen)


def _above(field: _Field, screen: _Match) -> Place:
    """The place below lines that were on the screen and of which some changed.

    Those directly before the place are read again, as new lines. When none is as it was, the screen was
    wiped, and lines that had not been read may have been on it.
    """
    if not screen.changed:
        return Place(screen.end, certain=True)
    if all(field.prints[at] == BLANK for at in range(screen.start, screen.end) if at not in screen.changed):
        return Place(min(screen.changed), certain=False)
    line = screen.end
    while line - 1 in screen.changed:
        line -= 1
    return Place(line, certain=True, rewritten=tuple(sorted(at for at in screen.changed if at < line)))


def _lost(cursor: Cursor, stream: Stream) -> Place:
    state = stream.state
    if not cursor.row:
        return Place(0, certain=False)
    if not state.may_drop:
        return Place(1 if stream.top else 0, certain=False, lost=True)
    # The top line may be what is left of one that was read. The place may even be right below it; but not
    # if the line that was begun there is not, and no whole number of drops spares it.
    as_before = (cursor.width, cursor.history_limit) == (state.width, state.history_limit)
    spared = cursor.row // state.chunk * state.chunk > cursor.row - max(1, cursor.last_span)
    gone = as_before and not spared and not any(cursor.begins(line) for line in stream.lines[: 2 + _SPLITS])
    return Place(1, certain=False, lost=True, missing=int(gone))


class _Match(NamedTuple):
    """A piece of a stream compared with the last `compared` lines of a sequence."""

    start: int
    end: int
    compared: int
    changed: frozenset[int] = frozenset()


class _Field:
    """The fingerprints of a stream's lines, to find a run of lines in that was wrapped at `width`."""

    def __init__(self, stream: Stream, width: int) -> None:
        self.stream = stream
        self._row_width = min(width, stream.state.width)
        self.prints = [fingerprint(line) for line in stream.lines]
        self.unique = {each for each, times in Counter(self.prints).items() if times == 1} - {BLANK}

    def match(self, wanted: Sequence[int], end: int, *, changes: bool = False) -> _Match | None:
        """Compare the lines before `end` with `wanted`, from the last one up; None when they differ.

        At the very top of what tmux holds, the beginning of `wanted` may be gone. With `changes` lines
        that differ are taken down instead.
        """
        at = end
        changed: set[int] = set()
        for count, print in enumerate(reversed(wanted)):
            if at == 0:
                return None if self.stream.top else _Match(0, end, count, frozenset(changed))
            pieces = next((pieces for pieces in range(1, _SPLITS + 2) if self._is(print, at - pieces, at)), 0)
            if not pieces and count and self._is_rest(at):
                return _Match(at, end, count, frozenset(changed))
            if not pieces:
                if not changes:
                    return None
                changed.add(at - 1)
            at -= pieces or 1
        return None if self.stream.top and at == 0 else _Match(at, end, len(wanted), frozenset(changed))

    def _is(self, print: int, start: int, end: int) -> bool:
        """Whether a line, or one that tmux has split into these, has that fingerprint."""
        if end - start == 1:
            return self.prints[start] == print
        return (
            start >= 0
            and self._fills_row(start)
            and fingerprint("".join(self.stream.lines[start:end])) == print
        )

    def _is_rest(self, end: int) -> bool:
        """Whether the lines before `end`, the first of all, can be what is left of a longer one."""
        return (
            not self.stream.top and end <= 1 + _SPLITS and all(self._fills_row(at) for at in range(end - 1))
        )

    def _fills_row(self, index: int) -> bool:
        """Whether a line can go on in the next row. Wide characters take two cells."""
        return 2 * len(self.stream.lines[index]) >= self._row_width - 1

    def find(self, wanted: Sequence[int]) -> list[_Match]:
        """The pieces that equal `wanted`, or at the very top the end of it; its beginning is gone then.

        Of more than two the first and the last, since there can be as many as lines.
        """
        if not wanted:
            return []
        ends = {*range(1, min(len(wanted) + _SPLITS, len(self.prints)) + 1), *self._ends(wanted)}
        found = [match for end in sorted(ends) if (match := self.match(wanted, end))]
        if any(match.compared == len(wanted) for match in found):
            return found
        # The bytes are not found where tmux has split a line.
        return [
            match
            for end in range(1, len(self.prints) + 1)
            if self.prints[end - 1] == wanted[-1] or (end > 1 and self._fills_row(end - 2))
            if (match := self.match(wanted, end))
        ]

    def _ends(self, wanted: Sequence[int]) -> Iterator[int]:
        text, pattern = packed(self.prints), packed(wanted)
        first, last = text.find(pattern), text.rfind(pattern)
        while first % PRINT_BYTES and first >= 0:
            first = text.find(pattern, first + 1)
        while last % PRINT_BYTES and last >= 0:
            last = text.rfind(pattern, 0, last + len(pattern) - 1)
        return (at // PRINT_BYTES + len(wanted) for at in {first, last} if at >= 0)

    def proves(self, match: _Match, witnesses: int, *more: _Match) -> bool:
        """Whether that many lines of what was found as it was stand nowhere else, so that it is no other."""
        lines = (
            at for each in (match, *more) for at in range(each.start, each.end) if at not in each.changed
        )
        return sum(self.prints[at] in self.unique for at in lines) >= witnesses

    def proves_by_order(self, wanted: Sequence[int]) -> bool:
        """Whether a sequence that was found once is too long and varied to be another that looks the same."""
        return len(wanted) >= _SEQUENCE and len(set(wanted)) >= _SEQUENCE_KINDS
