"""The manage tools: they change how sessions, windows and panes are named, arranged and shown."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tmuxmcp import limits
from tmuxmcp.errors import DuplicateName, InvalidArgument, TmuxFailed, ToolError
from tmuxmcp.terminal import channels, rows, session_options
from tmuxmcp.terminal.clock import effective_timeout
from tmuxmcp.terminal.rows import Pane, Session, Window
from tmuxmcp.terminal.session_options import Setting
from tmuxmcp.terminal.targets import session_target
from tmuxmcp.tmux.command import Arg, Command, command, target
from tmuxmcp.tmux.names import check_name
from tmuxmcp.tmux.records import Template
from tmuxmcp.tools import Call
from tmuxmcp.tools.parameters import (
    Arguments,
    InSession,
    OfPane,
    OfWindow,
    PaneId,
    SessionName,
    Timeout,
)
from tmuxmcp.tools.size import resize_pane as resize_pane
from tmuxmcp.tools.size import resize_window as resize_window
from tmuxmcp.tools.size import select_layout as select_layout


async def _change(call: Call, kind: rows.Kind[rows.Row], id: str, *changes: Command) -> rows.Row:
    call.touched.append(id)
    return await rows.changed(call.terminal.client, kind, id, *changes)


# Names


class RenameSession(InSession, kw_only=True):
    new_name: str


async def rename_session(call: Call, args: RenameSession) -> Session:
    """Ids stay, so targets by id still hold."""
    client = call.terminal.client
    new_name = check_name("session", args.new_name)
    session = await session_target(client, args.session)
    # A target by name is gone once it is renamed.
    question = rows.ask(rows.SESSION, session if session[0] == "$" else f"={new_name}:")
    aim = target(session)
    try:
        printed = await client.call(
            command("has-session", "-t", aim),
            command("rename-session", "-t", aim, "--", Arg("NAME", new_name)),
            question.command,
        )
    except DuplicateName as error:
        with suppress(ToolError):
            error.details["session_id"] = (await rows.session_row(client, f"={new_name}:")).session_id
        raise
    row = question.answer(printed)
    call.touched.append(row.session_id)
    return row


class RenameWindow(OfWindow, kw_only=True):
    new_name: str


async def rename_window(call: Call, args: RenameWindow) -> Window:
    """The window keeps the name: tmux renames it no more by its program."""
    new_name = Arg("NAME", check_name("window", args.new_name))
    rename = command("rename-window", "-t", target(args.window_id), "--", new_name)
    return await _change(call, rows.WINDOW, args.window_id, rename)


class SetPaneTitle(OfPane, kw_only=True):
    title: str


async def set_pane_title(call: Call, args: SetPaneTitle) -> Pane:
    """The pane's program may set another one."""
    title = Arg("-T", check_name("title", args.title))
    kind = rows.pane_kind(call.terminal.client)
    return await _change(
        call, kind, args.pane_id, command("select-pane", "-t", target(args.pane_id), "-T", title)
    )


# Arrangement


async def select_window(call: Call, args: OfWindow) -> Window:
    """Shows it to whoever watches its session."""
    select = command("select-window", "-t", target(args.window_id))
    return await _change(call, rows.WINDOW, args.window_id, select)


async def select_pane(call: Call, args: OfPane) -> Pane:
    """Gives it the focus within its window; select_window shows the window."""
    kind = rows.pane_kind(call.terminal.client)
    return await _change(call, kind, args.pane_id, command("select-pane", "-t", target(args.pane_id)))


class MoveWindow(OfWindow, kw_only=True):
    session: SessionName | UnsetType = UNSET
    index: Annotated[int, Meta(ge=0, le=10_000)] | UnsetType = UNSET


async def move_window(call: Call, args: MoveWindow) -> Window:
    """To another session, to an `index`, or both; without `index` to the first free one. A session whose
    last window goes ends."""
    client = call.terminal.client
    if args.session is not UNSET:
        session = await session_target(client, args.session)
    elif args.index is not UNSET:
        # No target of tmux stands for "the session that this window is in".
        session = (await rows.window_row(client, args.window_id)).session_id
    else:
        raise InvalidArgument("There is nowhere to move to. Give a session, an index or both.")
    place = f"{session.removesuffix(':')}:{'' if args.index is UNSET else args.index}"
    move = command("move-window", "-d", "-s", Arg("-s", args.window_id), "-t", Arg("-t", place))
    try:
        return await _change(
            call, rows.WINDOW, args.window_id, command("has-session", "-t", target(session)), move
        )
    except TmuxFailed as error:
        if "same index" not in error.message:
            raise
        return await rows.window_row(client, args.window_id)


class SwapPane(OfPane, kw_only=True):
    with_pane_id: PaneId


class SwappedPanes(msgspec.Struct, kw_only=True):
    """Both panes where they are now, in the order of the arguments."""

    panes: list[Pane]


async def swap_pane(call: Call, args: SwapPane) -> SwappedPanes:
    """Exchanges the places of two panes, of one window or of two; programs and ids go along."""
    call.touched.extend([args.pane_id, args.with_pane_id])
    kind = rows.pane_kind(call.terminal.client)
    ids = (args.pane_id, args.with_pane_id)
    questions = [rows.ask(kind, id) for id in ids]
    printed = await call.terminal.client.call(
        *(command("has-session", "-t", target(id)) for id in ids),
        command("swap-pane", "-d", "-s", Arg("-s", args.pane_id), "-t", target(args.with_pane_id)),
        *(question.command for question in questions),
    )
    return SwappedPanes(panes=[question.answer(printed) for question in questions])


# Copy mode


class EnterCopyMode(OfPane, kw_only=True):
    scroll_up: Annotated[int, Meta(ge=1, le=10_000, description="lines")] | UnsetType = UNSET


class ScrolledPane(Pane, frozen=True, kw_only=True, omit_defaults=True):
    """A pane in copy mode; `scroll_position` counts the lines that it shows above the screen's own."""

    scroll_position: int = 0


async def enter_copy_mode(call: Call, args: EnterCopyMode) -> ScrolledPane:
    """Shows history to the person who watches; the pane takes no input meanwhile. To read history, use
    capture_pane."""
    pane = target(args.pane_id)
    changes = [command("copy-mode", "-t", pane)]
    if args.scroll_up is not UNSET:
        count = Arg("-N", str(args.scroll_up))
        changes.append(command("send-keys", "-t", pane, "-X", "-N", count, "scroll-up"))
    kind = rows.pane_kind(call.terminal.client)
    scrolled = rows.Kind(
        kind.name,
        Template(**kind.template.fields, scroll_position="#{scroll_position}"),
        lambda answer: ScrolledPane(
            **msgspec.structs.asdict(kind.read(answer)), scroll_position=int(answer["scroll_position"] or 0)
        ),
    )
    return await _change(call, scrolled, args.pane_id, *changes)


async def exit_copy_mode(call: Call, args: OfPane) -> Pane:
    """Leaves every mode, so that the pane takes input again."""
    kind = rows.pane_kind(call.terminal.client)
    return await _change(call, kind, args.pane_id, command("copy-mode", "-q", "-t", target(args.pane_id)))


# Channels

Channel = Annotated[str, Meta(min_length=1, max_length=200)]


class WaitForChannel(Arguments, kw_only=True):
    channel: Channel
    timeout: Timeout = limits.WAIT_TIMEOUT_SECONDS


class ChannelWait(msgspec.Struct, kw_only=True):
    """How a wait ended. Times are in seconds."""

    outcome: channels.Outcome
    elapsed_seconds: float
    effective_timeout: float


async def wait_for_channel(call: Call, args: WaitForChannel) -> ChannelWait:
    """Waits for `tmux wait-for -S channel` or signal_channel. One signal that comes before is remembered; a
    second one before the wait erases the first."""
    clock = call.terminal.clock
    timeout = effective_timeout(args.timeout, call.settings.wait_max_seconds)

    async def tick() -> None:
        await call.progress(clock.now() - call.arrived, timeout)

    left = max(0.0, call.arrived + timeout - clock.now())
    outcome = await call.terminal.channels.wait(args.channel, left, tick)
    return ChannelWait(
        outcome=outcome, elapsed_seconds=round(clock.now() - call.arrived, 3), effective_timeout=timeout
    )


class SignalChannel(Arguments, kw_only=True):
    channel: Channel


class ChannelSignal(msgspec.Struct, kw_only=True):
    outcome: Literal["sent"]


async def signal_channel(call: Call, args: SignalChannel) -> ChannelSignal:
    """Wakes all who wait on the channel; else one signal is kept for the next wait, and a second one erases
    it."""
    await call.terminal.channels.signal(args.channel)
    return ChannelSignal(outcome="sent")


# Options


class Holds(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Where a setting holds now: in one session, or server-wide except for `exempt_sessions`, which have a
    value of their own."""

    scope: Literal["server", "session"]
    session_id: str = ""
    exempt_sessions: list[str] = []


class SetMouseEnabled(Arguments, kw_only=True):
    session: SessionName | UnsetType = UNSET
    enabled: bool


class Mouse(Holds, kw_only=True, omit_defaults=True):
    enabled: bool


async def set_mouse_enabled(call: Call, args: SetMouseEnabled) -> Mouse:
    """Whether clicks and the wheel of whoever watches go to tmux; without `session` for all."""
    setting = await session_options.set_mouse(
        call.terminal.client, None if args.session is UNSET else args.session, args.enabled
    )
    return Mouse(**_where(call, setting), enabled=args.enabled)


class SetHistoryLimit(Arguments, kw_only=True):
    session: SessionName | UnsetType = UNSET
    lines: Annotated[int, Meta(ge=limits.HISTORY_LINES_RANGE[0], le=limits.HISTORY_LINES_RANGE[1])]


class HistoryLimit(Holds, kw_only=True, omit_defaults=True):
    """`lines` holds for new panes; of those there are, `unchanged_panes` have another limit."""

    lines: int
    unchanged_panes: list[str] = []


async def set_history_limit(call: Call, args: SetHistoryLimit) -> HistoryLimit:
    """Rows of history for new panes of the session, or of all; `unchanged_panes` keep their old limit."""
    setting = await session_options.set_history_limit(
        call.terminal.client, None if args.session is UNSET else args.session, args.lines
    )
    unchanged = [id for id, lines in setting.history_limits.items() if lines != args.lines]
    return HistoryLimit(**_where(call, setting), lines=args.lines, unchanged_panes=unchanged)


def _where(call: Call, setting: Setting) -> dict[str, Any]:
    if setting.session_id is None:
        return {"scope": "server", "exempt_sessions": setting.exempt_sessions}
    call.touched.append(setting.session_id)
    return {"scope": "session", "session_id": setting.session_id}
