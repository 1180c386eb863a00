"""The inspect tools: they read tmux state and what panes show, and change nothing."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tmuxmcp import limits
from tmuxmcp.errors import InvalidArgument, NotFound
from tmuxmcp.terminal import capture, environment, matching, options, rows, search, variables
from tmuxmcp.terminal.capture import Captured, Since, Snapshot
from tmuxmcp.terminal.rows import Pane, Session, Window
from tmuxmcp.terminal.serverinfo import ServerInfo, describe
from tmuxmcp.terminal.targets import session_target
from tmuxmcp.tmux.command import command, target
from tmuxmcp.tmux.records import Template
from tmuxmcp.tools import Call, batch
from tmuxmcp.tools.listing import Limit, Offset, Pages, fits, listed, listing
from tmuxmcp.tools.parameters import (
    Arguments,
    InSession,
    MaxBytes,
    MaxLines,
    OfPane,
    OfWindow,
    PaneId,
    SessionName,
    Target,
    WindowId,
    target_of,
)
from tmuxmcp.tools.wait import wait_for_text as wait_for_text

Line = Annotated[int, Meta(ge=-1_000_000, le=10_000)]


class Result(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What a tool returns; a field that has its default is left out."""


# Sessions, windows and panes


class Sessions(Result, kw_only=True):
    sessions: list[Session]


async def list_sessions(call: Call, args: Arguments) -> Sessions:
    """List all sessions; none while no tmux server runs."""
    answers = await listed(call, rows.SESSION.template, command("list-sessions"), None)
    return Sessions(sessions=[rows.SESSION.read(answer) for answer in answers])


class ListWindows(Arguments, kw_only=True):
    session: SessionName | UnsetType = UNSET
    limit: Limit = limits.LIST_ROWS
    offset: Offset = 0


class Windows(Result, kw_only=True):
    windows: list[Window]
    next_offset: int | UnsetType = UNSET


async def list_windows(call: Call, args: ListWindows) -> Windows:
    """List windows of a session, or of all: a linked window once for each session it is in."""
    place = await target_of(call, session=args.session)
    pages = Pages(rows.WINDOW, "list-windows", ("session_id", "index"))
    windows, more = await pages.page(call, place, args.offset, args.limit)
    return Windows(windows=windows, next_offset=more)


class ListPanes(Arguments, kw_only=True):
    session: SessionName | UnsetType = UNSET
    window_id: WindowId | UnsetType = UNSET
    limit: Limit = limits.LIST_ROWS
    offset: Offset = 0


class Panes(Result, kw_only=True):
    panes: list[Pane]
    next_offset: int | UnsetType = UNSET


async def list_panes(call: Call, args: ListPanes) -> Panes:
    """List panes of a session, a window or all, each once, with program, path and size."""
    place = await target_of(call, session=args.session, window_id=args.window_id)
    kind = rows.pane_kind(call.terminal.client)
    pages = Pages(kind, "list-panes", ("pane_id",))
    panes, more = await pages.page(call, place, args.offset, args.limit)
    return Panes(panes=panes, next_offset=more)


async def get_session_info(call: Call, args: InSession) -> Session:
    """One session's row of list_sessions."""
    client = call.terminal.client
    session = await rows.session_row(client, await session_target(client, args.session))
    call.touched.append(session.session_id)
    return session


async def get_window_info(call: Call, args: OfWindow) -> Window:
    """One window's row of list_windows."""
    return await _one(call, rows.WINDOW, args.window_id)


async def get_pane_info(call: Call, args: OfPane) -> Pane:
    """One pane's row of list_panes; snapshot_pane adds its screen."""
    return await _one(call, rows.pane_kind(call.terminal.client), args.pane_id)


class Position(Arguments, kw_only=True):
    window_id: WindowId
    corner: Literal["top-left", "top-right", "bottom-left", "bottom-right"]


async def find_pane_by_position(call: Call, args: Position) -> Pane:
    """The pane in a corner of a window; in a zoomed window it is the zoomed one."""
    call.touched.append(args.window_id)
    kind = rows.pane_kind(call.terminal.client)
    row, column = args.corner.split("-")
    there = f"#{{&&:#{{pane_at_{row}}},#{{pane_at_{column}}}}}"
    # Hidden panes of a zoomed window keep their place; floating ones, from tmux 3.7 on, may cover a corner.
    rank = "#{?pane_floating_flag,0,#{?window_zoomed_flag,#{pane_active},1}}"
    template = Template(**kind.template.fields, there=there, rank=rank)
    aim = target(args.window_id)
    answers = await call.terminal.client.rows(
        command("has-session", "-t", aim), listing=command("list-panes", "-t", aim), template=template
    )
    corner = [answer for answer in answers if answer["there"] == "1"]
    if not corner:
        raise NotFound(f"No pane of window {args.window_id} is in that corner.", target=args.window_id)
    return kind.read(max(corner, key=lambda answer: answer["rank"]))


async def get_server_info(call: Call, args: Arguments) -> ServerInfo:
    """The tmux server: whether it runs, its socket, version, and the command with which a person attaches."""
    ambient = (await call.found()).ambient.state
    return await describe(call.terminal.client, call.settings.tmux_bin, ambient)


# What panes show


class CapturePane(Arguments, kw_only=True):
    pane_id: PaneId
    start_line: Annotated[Line, Meta(description="0: top row of the screen; <0: history")] = 0
    end_line: Line | UnsetType = UNSET
    max_lines: MaxLines = limits.CAPTURE_LINES
    max_bytes: MaxBytes = limits.CONTENT_BYTES
    join_wrapped: bool = True
    escapes: bool = False


async def capture_pane(call: Call, args: CapturePane) -> Captured:
    """Read rows of a pane: the screen, or history from a negative start_line; the last max_lines are kept.

    To follow output, capture_since is exact.
    """
    call.touched.append(args.pane_id)
    return await capture.capture_pane(
        call.terminal.client,
        args.pane_id,
        start_line=args.start_line,
        end_line=None if args.end_line is UNSET else args.end_line,
        max_lines=args.max_lines,
        max_bytes=args.max_bytes,
        join_wrapped=args.join_wrapped,
        escapes=args.escapes,
    )


class CaptureSince(Arguments, kw_only=True):
    pane_id: PaneId
    cursor: str | UnsetType = UNSET
    max_lines: MaxLines = limits.CAPTURE_LINES
    max_bytes: MaxBytes = limits.CONTENT_BYTES


async def capture_since(call: Call, args: CaptureSince) -> Since:
    """Read what a pane printed since a cursor, no line twice, and get a new one; without, the last lines."""
    call.touched.append(args.pane_id)
    cursor = None if args.cursor is UNSET else args.cursor
    return await capture.capture_since(
        call.terminal.client, args.pane_id, cursor, max_lines=args.max_lines, max_bytes=args.max_bytes
    )


class SnapshotPane(Arguments, kw_only=True):
    pane_id: PaneId
    max_lines: MaxLines = limits.CAPTURE_LINES
    escapes: bool = False


async def snapshot_pane(call: Call, args: SnapshotPane) -> Snapshot:
    """Read a pane's screen with cursor, size, mode and program in one instant: for full-screen programs."""
    call.touched.append(args.pane_id)
    return await capture.snapshot_pane(
        call.terminal.client, args.pane_id, max_lines=args.max_lines, escapes=args.escapes
    )


class SearchPanes(Arguments, kw_only=True):
    pattern: Annotated[str, Meta(min_length=1, max_length=limits.PATTERN_CHARACTERS)]
    regex: bool = False
    match_case: bool = False
    session: SessionName | UnsetType = UNSET
    window_id: WindowId | UnsetType = UNSET
    history_lines: Annotated[int, Meta(ge=0, le=100_000)] = 0
    context_lines: Annotated[int, Meta(ge=0, le=20)] = 0
    max_matches: Limit = limits.SEARCH_MATCHES
    offset: Offset = 0


class Matches(Result, kw_only=True):
    matches: list[search.Match]
    panes_searched: int
    truncated: bool = False
    next_offset: int | UnsetType = UNSET


async def search_panes(call: Call, args: SearchPanes) -> Matches:
    """Find lines on the screens of all panes, or of a session's or window's, and in `history_lines` rows
    above; a wrapped line is one. regex: RE2."""
    place = await target_of(call, session=args.session, window_id=args.window_id)
    found = await search.search(
        call.terminal.client,
        matching.compile([args.pattern], regex=args.regex, match_case=args.match_case),
        listing("list-panes", place),
        aim=None if place is None else command("has-session", "-t", target(place.id)),
        history_lines=args.history_lines,
        context_lines=args.context_lines,
        max_matches=args.max_matches,
        offset=args.offset,
    )
    return Matches(
        matches=found.matches,
        panes_searched=found.panes_searched,
        truncated=found.more,
        next_offset=args.offset + len(found.matches) if found.more else UNSET,
    )


# Configuration


class GetVariables(Arguments, kw_only=True):
    names: Annotated[
        list[Annotated[str, Meta(pattern="^[A-Za-z][A-Za-z0-9_]*$")]],
        Meta(min_length=1, max_length=limits.VARIABLE_NAMES),
    ]
    session: SessionName | UnsetType = UNSET
    window_id: WindowId | UnsetType = UNSET
    pane_id: PaneId | UnsetType = UNSET


class Variables(Result, kw_only=True):
    variables: dict[str, str]


async def get_tmux_variables(call: Call, args: GetVariables) -> Variables:
    """Read tmux format variables of a target, such as pane_width; without one only version, pid, socket_path,
    start_time and host.
    """
    variables.check(
        args.names, targeted=not all(each is UNSET for each in (args.session, args.window_id, args.pane_id))
    )
    place = await target_of(call, session=args.session, window_id=args.window_id, pane_id=args.pane_id)
    id = None if place is None else place.id
    return Variables(
        variables={
            name: await variables.variable(call.terminal.client, name, id)
            for name in dict.fromkeys(args.names)
        }
    )


class ShowOption(Arguments, kw_only=True):
    name: Annotated[str, Meta(pattern=r"^@?[A-Za-z0-9_-]+(\[[0-9]+\])?$")]
    scope: options.Scope
    session: SessionName | UnsetType = UNSET
    window_id: WindowId | UnsetType = UNSET
    pane_id: PaneId | UnsetType = UNSET


async def show_option(call: Call, args: ShowOption) -> options.Option:
    """Read an option by its exact name; without a target, server-wide. A list has an element a line."""
    place = await target_of(call, session=args.session, window_id=args.window_id, pane_id=args.pane_id)
    _check_scope(args.scope, place)
    return await options.option(
        call.terminal.client, args.name, args.scope, None if place is None else place.id
    )


class ShowHooks(Arguments, kw_only=True):
    name: str | UnsetType = UNSET
    scope: options.HookScope | UnsetType = UNSET
    session: SessionName | UnsetType = UNSET
    window_id: WindowId | UnsetType = UNSET
    pane_id: PaneId | UnsetType = UNSET


class Hooks(Result, kw_only=True):
    hooks: list[options.Hook]


async def show_hooks(call: Call, args: ShowHooks) -> Hooks:
    """List the hooks set on a target itself or, without one, server-wide, and the tmux commands they run."""
    place = await target_of(call, session=args.session, window_id=args.window_id, pane_id=args.pane_id)
    scope = None if args.scope is UNSET else args.scope
    if place is not None and scope is None:
        scope = place.kind
    _check_scope(scope, place)
    name = None if args.name is UNSET else args.name
    return Hooks(
        hooks=await options.hooks(call.terminal.client, name, scope, None if place is None else place.id)
    )


class ShowEnvironment(Arguments, kw_only=True):
    session: SessionName | UnsetType = UNSET
    names: Annotated[list[str], Meta(min_length=1, max_length=100)] | UnsetType = UNSET


class Environment(Result, kw_only=True):
    variables: list[environment.Variable]
    missing: list[str] = []
    """Of the `names`: those that there are not."""
    left_out: list[str] = []
    """Variables that did not fit into the result; `names` reads them."""


async def show_environment(call: Call, args: ShowEnvironment) -> Environment:
    """Read what new panes get: the global environment, or what a session itself sets and removes."""
    place = await target_of(call, session=args.session)
    found = await environment.environment(call.terminal.client, None if place is None else place.id)
    missing: list[str] = []
    if args.names is not UNSET:
        there = {variable.name: variable for variable in found}
        names = list(dict.fromkeys(args.names))
        found = [there[name] for name in names if name in there]
        missing = [name for name in names if name not in there]
    fitting = fits(found)
    left_out = [variable.name for variable in found[fitting:]]
    return Environment(variables=found[:fitting], missing=missing, left_out=left_out)


# Several at once


async def call_read_tools_batch(call: Call, args: batch.Reads) -> batch.Results:
    """Make several reads in order, in one call. Results share 48 kB; pane output beyond is cut, and said."""
    operations = [(operation.tool, operation.arguments) for operation in args.operations]
    results = await batch.run(call.nested, operations, stop_on_error=args.on_error == "stop")
    stopped = args.on_error == "stop" and results[-1].error is not UNSET
    return batch.Results(results=results, stopped_at=len(results) - 1 if stopped else UNSET)


async def _one(call: Call, kind: rows.Kind[rows.Row], id: str) -> rows.Row:
    call.touched.append(id)
    return await rows.row(call.terminal.client, kind, id)


def _check_scope(scope: str | None, place: Target | None) -> None:
    if place is None or scope == place.kind:
        return
    field = "session" if place.kind == "session" else f"{place.kind}_id"
    needed = {"server": "no target", "session": "session", "window": "window_id", "pane": "pane_id"}[
        scope or "server"
    ]
    raise InvalidArgument(f"With scope {scope}, {field} is not the target: give {needed}.", field=field)
