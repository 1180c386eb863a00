"""Reading panes: a range of rows, what is new since a cursor, the screen as it is.

Content is text of rows with their trailing blanks taken off: tmux cannot tell a blank that was
written from one that was erased, and some versions pad. Everything is read in one tmux process, so
that state and content belong together; only `capture_since` takes a second one where the first did
not reach back far enough.
"""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, Struct, UnsetType

from tmuxmcp import limits
from tmuxmcp.terminal.cursor import Cursor
from tmuxmcp.terminal.excerpts import Excerpts
from tmuxmcp.terminal.kept import Kept, keep_head, keep_tail
from tmuxmcp.terminal.place import Place, Reason, Suspect, locate, reason, suspect
from tmuxmcp.terminal.stream import ALL_ROWS, Ask, State, Stream
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.command import Arg, command, target
from tmuxmcp.tmux.records import Template, new_nonce

READ_BYTES: Final = 256_000_000
"""What tmux may answer to one read; how much is asked for is bounded by `ALL_ROWS`."""
READ_SECONDS: Final = 15.0
_NEAR: Final = 300
"""Rows printed since a cursor up to which not all of the history is read."""
_MARGIN: Final = 100
"""Rows that may be printed between two looks at a history."""


class Captured(Struct, omit_defaults=True):
    """What capture_pane returns."""

    content: str
    lines: int
    truncated: bool = False
    dropped_lines: int = 0
    dropped_bytes: int = 0


class Since(Struct, omit_defaults=True):
    """What capture_since returns. `content` holds ended lines only, `partial` the one that is not."""

    content: str
    lines: int
    cursor: str
    partial: str = ""
    missed: int | UnsetType = UNSET
    missed_at_least: int | UnsetType = UNSET
    reason: Reason | UnsetType = UNSET
    truncated: bool = False
    dropped_lines: int = 0
    dropped_bytes: int = 0
    rewritten: str = ""
    alternate_screen: bool = False


class Snapshot(Struct, omit_defaults=True):
    """What snapshot_pane returns."""

    content: str
    lines: int
    cursor_x: int
    cursor_y: int
    width: int
    height: int
    history_size: int
    title: str
    command: str
    path: str
    in_mode: bool = False
    mode: str = ""
    scroll_position: int | UnsetType = UNSET
    alternate_screen: bool = False
    dead: bool = False
    dead_status: int | UnsetType = UNSET
    truncated: bool = False
    dropped_lines: int = 0
    dropped_bytes: int = 0


_BOTTOM: Final = 32_767
"""The lowest row that tmux takes for a number: no screen is that high."""
_EXTENT: Final = Template(history_size="#{history_size}", height="#{pane_height}")


async def capture_pane(
    client: Client,
    pane_id: str,
    *,
    start_line: int = 0,
    end_line: int | None = None,
    max_lines: int = limits.CAPTURE_LINES,
    max_bytes: int = limits.CONTENT_BYTES,
    join_wrapped: bool = True,
    escapes: bool = False,
) -> Captured:
    """Read rows `start_line` to `end_line`; 0 is the first visible one, negative ones are the history.

    Without `end_line` the range ends with the screen, and empty rows below the text are left out.
    With `join_wrapped` a line that was wrapped counts as one. Of more than `ALL_ROWS` rows the first are
    not read; they count as dropped lines, not as dropped bytes. Raises `NotFound`.
    """
    nonce = new_nonce()
    end = _BOTTOM if end_line is None else end_line
    start = max(start_line, min(0, end) - ALL_ROWS)
    flags = [flag for flag, on in (("-p", True), ("-J", join_wrapped), ("-e", escapes)) if on]
    printed = await client.call(
        command("has-session", "-t", target(pane_id)),
        _EXTENT.ask(command("display-message", "-t", target(pane_id)), nonce),
        command("capture-pane", *flags, "-t", target(pane_id), *_range(start, end_line)),
        timeout=READ_SECONDS,
        max_output=READ_BYTES,
    )
    state = {name: int(value) for name, value in _EXTENT.parse_one(printed, nonce).items()}
    first, last = -state["history_size"], state["height"] - 1
    if start_line > end or end < first or start_line > last:
        return Captured("", 0)
    lines = _trimmed(printed.partition(f"{nonce}>\n")[2], at_end=end >= last)
    kept = keep_tail(lines, max_lines, max_bytes)
    dropped_lines = kept.dropped_lines + max(0, start - max(start_line, first))
    return Captured(
        content="\n".join(kept.lines),
        lines=len(kept.lines),
        truncated=bool(dropped_lines or kept.dropped_bytes),
        dropped_lines=dropped_lines,
        dropped_bytes=kept.dropped_bytes,
    )


def _range(start: int, end: int | None) -> tuple[str | Arg, ...]:
    first: tuple[str | Arg, ...] = ("-S", Arg("-S", str(start)))
    return first if end is None else (*first, "-E", Arg("-E", str(end)))


def _trimmed(captured: str, *, at_end: bool) -> list[str]:
    """The lines of a capture without trailing blanks, and `at_end` without the empty ones below the text."""
    lines = [line.rstrip(" ") for line in captured.removesuffix("\n").split("\n")]
    while at_end and lines and not lines[-1]:
        lines.pop()
    return lines


_SCREEN: Final = Template(
    cursor_x="#{cursor_x}",
    cursor_y="#{cursor_y}",
    width="#{pane_width}",
    height="#{pane_height}",
    history_size="#{history_size}",
    in_mode="#{pane_in_mode}",
    mode="#{pane_mode}",
    scroll_position="#{scroll_position}",
    alternate="#{alternate_on}",
    dead="#{pane_dead}",
    dead_status="#{pane_dead_status}",
    title="#{pane_title}",
    command="#{pane_current_command}",
    path="#{pane_current_path}",
)


async def snapshot_pane(
    client: Client,
    pane_id: str,
    *,
    max_lines: int = limits.CAPTURE_LINES,
    max_bytes: int = limits.CONTENT_BYTES,
    escapes: bool = False,
) -> Snapshot:
    """Read the screen row by row, and its state, in one instant.

    In copy mode it is the program's screen, not the part of the history that a person scrolled to.
    Raises `NotFound`.
    """
    nonce = new_nonce()
    printed = await client.call(
        command("has-session", "-t", target(pane_id)),
        _SCREEN.ask(command("display-message", "-t", target(pane_id)), nonce),
        command("capture-pane", "-p", *(["-e"] if escapes else []), "-t", target(pane_id)),
    )
    row = _SCREEN.parse_one(printed, nonce)
    kept = keep_tail(_trimmed(printed.partition(f"{nonce}>\n")[2], at_end=True), max_lines, max_bytes)
    return Snapshot(
        content="\n".join(kept.lines),
        lines=len(kept.lines),
        cursor_x=int(row["cursor_x"]),
        cursor_y=int(row["cursor_y"]),
        width=int(row["width"]),
        height=int(row["height"]),
        history_size=int(row["history_size"]),
        title=row["title"],
        command=row["command"],
        path=row["path"],
        in_mode=row["in_mode"] != "0",
        mode=row["mode"],
        scroll_position=int(row["scroll_position"]) if row["scroll_position"] else UNSET,
        alternate_screen=row["alternate"] == "1",
        dead=row["dead"] == "1",
        dead_status=int(row["dead_status"]) if row["dead_status"] else UNSET,
        truncated=bool(kept.dropped_lines or kept.dropped_bytes),
        dropped_lines=kept.dropped_lines,
        dropped_bytes=kept.dropped_bytes,
    )


async def capture_since(
    client: Client,
    pane_id: str,
    cursor: str | None = None,
    *,
    max_lines: int = limits.CAPTURE_LINES,
    max_bytes: int = limits.CONTENT_BYTES,
) -> Since:
    """Read the lines that were ended since a cursor, oldest first, and the cursor to go on from.

    Nothing is skipped to stay within `max_lines` and `max_bytes`: when `truncated`, the rest is read by
    the next call, with the cursor that this one returns. Only a single line longer than `max_bytes` is
    cut, which `dropped_bytes` says. `missed` is 0 when it is proven that no line is missing before
    these. Otherwise `missed_at_least` and `reason` say that lines may be, and how many surely are; the
    first line can then be the rest of a longer one. On the alternate screen nothing is read, and nothing
    is lost: the lines come when the program leaves it.

    Without a cursor: the last lines, `max_lines` of them at most.

    Raises `NotFound`, and `InvalidCursor` for a cursor that is damaged or belongs to another pane,
    program or tmux server.
    """
    if cursor is None:
        return await _last(client, pane_id, max_lines, max_bytes)
    since = Cursor.decode(cursor)
    stream, place = await find(client, pane_id, since)
    if place is None or stream.state.alternate:
        return Since("", 0, cursor, alternate_screen=True)
    return _since(since, stream, place, max_lines, max_bytes)


def _since(since: Cursor, stream: Stream, place: Place, max_lines: int, max_bytes: int) -> Since:
    end = max(place.line, stream.unfinished)
    lines = [line.rstrip(" ") for line in stream.lines[place.line : end]]
    kept = keep_head(lines, max_lines, max_bytes)
    at = place.line + len(kept.lines)
    why = reason(since, stream.state)
    result = _result(kept, max_bytes, stream.partial(at) if at == end else "")
    result.truncated = at < end or kept.dropped_bytes > 0
    rewritten = [stream.lines[index].rstrip(" ") for index in place.rewritten]
    left = max_bytes - len(result.content.encode()) - len(result.partial.encode())
    result.rewritten = "\n".join(keep_tail(rewritten, len(rewritten), left).lines)
    if place.certain:
        result.missed = 0
    elif place.lost or kept.lines:
        result.reason = why
        result.missed_at_least = place.missing
    else:
        # Nothing to show and nothing proven: the question stays open until there is.
        result.cursor = since.encode()
        return result
    moved = place.lost or stream.row_of(place.line) != since.row
    result.cursor = Cursor.at(stream, at, wiped=since.wiped or (moved and why == "cleared")).encode()
    return result


async def _last(client: Client, pane_id: str, max_lines: int, max_bytes: int) -> Since:
    stream = await read(client, pane_id, max_lines + _NEAR)
    if stream.top and stream.unfinished - 1 < max_lines:
        stream = await read(client, pane_id)
    end = stream.unfinished
    lines = [line.rstrip(" ") for line in stream.lines[(1 if stream.top else 0) : end]]
    kept = keep_tail(lines[max(0, len(lines) - max_lines) :], max_lines, max_bytes)
    result = _result(kept, max_bytes, stream.partial(end))
    result.cursor = Cursor.at(stream, end).encode()
    result.truncated = bool(kept.dropped_lines or kept.dropped_bytes)
    result.dropped_lines = kept.dropped_lines
    result.alternate_screen = stream.state.alternate
    return result


def _result(kept: Kept, max_bytes: int, partial: str) -> Since:
    content = "\n".join(kept.lines)
    shown = keep_tail([partial], 1, max_bytes - len(content.encode()))
    return Since(
        content,
        len(kept.lines),
        cursor="",
        partial="".join(shown.lines),
        dropped_bytes=kept.dropped_bytes + shown.dropped_bytes,
    )


def nearby(pane_id: str, cursor: Cursor) -> Ask:
    """Asks for the rows in which a cursor's place is, when little has been printed since."""
    return Ask(pane_id, cursor.span + _NEAR)


async def find(
    client: Client, pane_id: str, cursor: Cursor, seen: Stream | None = None
) -> tuple[Stream, Place | None]:
    """Read as much of a pane as it takes to find a cursor's place, in at most two tmux processes.

    What was `seen` in the rows `nearby` is not read again when it is enough. On the alternate screen not all
    is read; then there may be no place yet. Raises `NotFound` and `InvalidCursor`.
    """
    if seen is not None and (found := await _in(client, cursor, seen)):
        return seen, found
    near = cursor.span + _NEAR
    stream = await read(client, pane_id, near, cursor.row - cursor.span + near - 1)
    place = await _in(client, cursor, stream)
    if place is None and not stream.state.alternate:
        stream = await read(client, pane_id)
        place = locate(cursor, stream, all_read=True)
    return stream, place


async def _in(client: Client, cursor: Cursor, stream: Stream) -> Place | None:
    """A cursor's place in the newest rows of a pane."""
    place = locate(cursor, stream, all_read=False)
    if place is None and (suspected := suspect(cursor, stream)):
        doubtful = await _is_doubtful(client, stream.state, suspected)
        return suspected.place._replace(certain=not doubtful)
    return place


async def _is_doubtful(client: Client, state: State, suspected: Suspect) -> bool:
    """Whether a suspected place may be elsewhere, for all that a second look can tell."""
    if not suspected.others:
        return False
    # What is printed between the two looks moves the lines up: so more is read, above them.
    ranges = [range(rows[0] - _MARGIN, rows[-1] + 1) for rows in suspected.others]
    excerpts = Excerpts(state.pane_id, state.history_size, ranges)
    printed = await client.call(
        command("has-session", "-t", target(state.pane_id)), *excerpts.commands, timeout=READ_SECONDS
    )
    moved, pieces = excerpts.parse(printed)
    return not 0 <= moved <= _MARGIN or any(suspected.may_be_among(lines) for lines in pieces)


async def read(client: Client, pane_id: str, rows_back: int = ALL_ROWS, near: int | None = None) -> Stream:
    """Read a pane's stream as `Ask` says, in one tmux process. Raises `NotFound`."""
    ask = Ask(pane_id, rows_back, near)
    printed = await client.call(
        command("has-session", "-t", target(pane_id)),
        *ask.commands,
        timeout=READ_SECONDS,
        max_output=READ_BYTES,
    )
    return ask.parse(printed)[0]
