"""Search of many panes for one pattern, in what they show and in their history."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from tmuxmcp import limits
from tmuxmcp.errors import NoServer, NotFound, ServerGone
from tmuxmcp.terminal import matching
from tmuxmcp.terminal.matching import Matcher
from tmuxmcp.terminal.stream import line_starts
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.command import Arg, Command, command, target
from tmuxmcp.tmux.records import Template, new_nonce

TEXT_CHARACTERS: Final = 2000
"""Of a matching line that are shown: those around the match."""

_PANES_AT_ONCE: Final = 30
"""Panes that one tmux process reads: their commands are 800 arguments, and tmux takes 1000."""
_ROWS_AT_ONCE: Final = 50_000
_READ_BYTES: Final = 256_000_000
_READ_SECONDS: Final = 15.0

_EXTENT: Final = Template(pane_id="#{pane_id}", height="#{pane_height}", history_size="#{history_size}")


class Match(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line that matches: all the rows that it was wrapped into count as one."""

    pane_id: str
    line: int
    """The row in which it begins, as capture_pane's start_line counts: 0 is the first visible one."""
    text: str
    """Without its trailing blanks, and only what is around the match of a very long one (`cut`)."""
    cut: bool = False
    before: list[str] = []
    after: list[str] = []


class Found(NamedTuple):
    """What a search found: `more` when it was ended by a limit, with other matches left."""

    matches: list[Match]
    panes_searched: int
    more: bool


class _Pane(NamedTuple):
    """The rows of one pane that were read, as logical lines, and the row in which each begins."""

    pane_id: str
    lines: list[str]
    rows: list[int]


async def search(
    client: Client,
    matcher: Matcher,
    panes: Command,
    *,
    aim: Command | None,
    history_lines: int,
    context_lines: int,
    max_matches: int,
    offset: int,
) -> Found:
    """Search the panes that the command `panes` lists, in its order, from the oldest row to the newest.

    `aim` is the check that their session or window exists. Without a server there is no pane. Each chunk of
    panes costs one tmux process, so the panes of one chunk are read in one instant; a pane that ends
    meanwhile is passed over. Raises `NotFound`, and `MatchBudget` when matching takes too long.
    """
    listed = await _list(client, panes, aim)
    deadline = time.monotonic() + matching.BUDGET_SECONDS
    matches: list[Match] = []
    searched = skipped = size = 0
    for chunk in _chunks(listed, history_lines):
        read = await _read(client, chunk, history_lines)
        lines = [line for pane in read for line in pane.lines]
        wanted = max_matches - len(matches) + offset - skipped + 1
        left = max(0.01, deadline - time.monotonic())
        hits = iter(await matcher.search_lines(lines, budget=left, limit=wanted))
        first = 0
        hit = next(hits, None)
        for pane in read:
            searched += 1
            while hit is not None and hit.line < first + len(pane.lines):
                if skipped < offset:
                    skipped += 1
                else:
                    match = _match(pane, hit.line - first, (hit.start, hit.end), context_lines)
                    size += _size(match)
                    if len(matches) == max_matches or (size > limits.CONTENT_BYTES and matches):
                        return Found(matches, searched, more=True)
                    matches.append(match)
                hit = next(hits, None)
            first += len(pane.lines)
    return Found(matches, searched, more=False)


async def _list(client: Client, panes: Command, aim: Command | None) -> list[dict[str, str]]:
    try:
        rows = await client.rows(*([] if aim is None else [aim]), listing=panes, template=_EXTENT)
    except (NoServer, ServerGone, NotFound):
        if aim is not None:
            raise
        return []
    # The panes of a window that several sessions are linked to are listed for each of them.
    return list({row["pane_id"]: row for row in rows}.values())


def _chunks(panes: Sequence[dict[str, str]], history_lines: int) -> Iterator[list[str]]:
    chunk: list[str] = []
    rows = 0
    for pane in panes:
        more = int(pane["height"]) + min(history_lines, int(pane["history_size"]))
        if chunk and (len(chunk) == _PANES_AT_ONCE or rows + more > _ROWS_AT_ONCE):
            yield chunk
            chunk, rows = [], 0
        chunk.append(pane["pane_id"])
        rows += more
    if chunk:
        yield chunk


async def _read(client: Client, pane_ids: Sequence[str], history_lines: int) -> list[_Pane]:
    """Read panes in one tmux process; one more for each that is gone by now."""
    nonce, cut = new_nonce(), new_nonce()
    left = list(pane_ids)
    while left:
        commands: list[Command] = []
        for pane_id in left:
            capture = ("-t", target(pane_id), "-S", Arg("-S", str(-history_lines)))
            commands += [
                _EXTENT.ask(command("display-message", "-t", target(pane_id)), nonce),
                command("capture-pane", "-p", "-J", *capture),
                command("display-message", "-p", cut),
                command("capture-pane", "-p", "-N", *capture),
                command("display-message", "-p", cut),
            ]
        try:
            printed = await client.call(*commands, timeout=_READ_SECONDS, max_output=_READ_BYTES)
        except NotFound as error:
            gone = error.details.get("target")
            if gone not in left:
                raise
            left.remove(gone)
            continue
        return _parse(printed, nonce, cut)
    return []


def _parse(printed: str, nonce: str, cut: str) -> list[_Pane]:
    panes = []
    pieces = printed.split(f"{cut}\n")
    for joined, cells in zip(pieces[:-1:2], pieces[1::2], strict=True):
        extent = _EXTENT.parse_one(joined, nonce)
        lines = joined.partition(f"{nonce}>\n")[2].removesuffix("\n").split("\n")
        rows = cells.removesuffix("\n").split("\n")
        begins = line_starts(lines, rows, int(extent["height"]) - len(rows))
        lines = [line.rstrip(" ") for line in lines]
        while lines and not lines[-1]:
            lines.pop()
        panes.append(_Pane(extent["pane_id"], lines, begins))
    return panes


def _match(pane: _Pane, index: int, span: tuple[int, int], context_lines: int) -> Match:
    text = pane.lines[index]
    if cut := len(text) > TEXT_CHARACTERS:
        start = max(0, min(span[0] - TEXT_CHARACTERS // 4, len(text) - TEXT_CHARACTERS))
        text = text[start : start + TEXT_CHARACTERS]
    before = pane.lines[max(0, index - context_lines) : index]
    after = pane.lines[index + 1 : index + 1 + context_lines]
    return Match(
        pane_id=pane.pane_id,
        line=pane.rows[index],
        text=text,
        cut=cut,
        before=[line[:TEXT_CHARACTERS] for line in before],
        after=[line[:TEXT_CHARACTERS] for line in after],
    )


def _size(match: Match) -> int:
    return sum(len(text.encode()) for text in (match.text, *match.before, *match.after))
