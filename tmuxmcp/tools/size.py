"""The manage tools that size windows and panes. Their results tell the size that tmux gave."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tmuxmcp.errors import InvalidArgument
from tmuxmcp.terminal import rows
from tmuxmcp.terminal.guards import choose
from tmuxmcp.terminal.rows import Pane, Window
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.command import Arg, command, target
from tmuxmcp.tmux.records import Template
from tmuxmcp.tmux.sinks import MAX_SIZE, MIRRORED_LAYOUTS
from tmuxmcp.tools import Call
from tmuxmcp.tools.parameters import OfPane, OfWindow

Cells = Annotated[int, Meta(ge=1, le=MAX_SIZE)]


class SelectLayout(OfWindow, kw_only=True):
    layout: Literal[
        "even-horizontal",
        "even-vertical",
        "main-horizontal",
        "main-vertical",
        "tiled",
        "main-horizontal-mirrored",
        "main-vertical-mirrored",
    ]


async def select_layout(call: Call, args: SelectLayout) -> Window:
    """The mirrored ones need tmux 3.5."""
    if args.layout in MIRRORED_LAYOUTS:
        version = await call.terminal.client.version()
        if version < (3, 5):  # An unknown layout ends the server of tmux 3.3a.
            raise InvalidArgument(f"tmux {version} has no layout {args.layout}. Choose another one.")
    select = command("select-layout", "-t", target(args.window_id), Arg("LAYOUT", args.layout))
    call.touched.append(args.window_id)
    return await rows.changed(call.terminal.client, rows.WINDOW, args.window_id, select)


class ResizeWindow(OfWindow, kw_only=True):
    width: Cells | UnsetType = UNSET
    height: Cells | UnsetType = UNSET
    follow_client: bool = False


class SizedWindow(Window, frozen=True, kw_only=True, omit_defaults=True):
    """A window with its true size; `size_pinned` says that it does not follow clients that are attached."""

    size_pinned: bool = False


_SIZED_WINDOW = rows.Kind(
    "window",
    Template(**rows.WINDOW.template.fields, window_size="#{window-size}"),
    lambda answer: SizedWindow(
        **msgspec.structs.asdict(rows.WINDOW.read(answer)), size_pinned=answer["window_size"] == "manual"
    ),
)


async def resize_window(call: Call, args: ResizeWindow) -> SizedWindow:
    """A width or height pins the size: attached terminals no longer change it, until `follow_client`."""
    size = _size(args.width, args.height)
    if bool(size) == args.follow_client:
        raise InvalidArgument("Give either a width or height, or follow_client=true.")
    window = target(args.window_id)
    changes = [command("resize-window", "-t", window, *size)]
    if args.follow_client:
        changes = [
            # The option alone takes effect later, and only for a window that a client shows.
            choose(args.window_id, "#{session_attached}", command("resize-window", "-A", "-t", window)),
            command("set-option", "-w", "-u", "-t", window, "window-size"),
        ]
    call.touched.append(args.window_id)
    return await rows.changed(call.terminal.client, _SIZED_WINDOW, args.window_id, *changes)


class ResizePane(OfPane, kw_only=True):
    width: Cells | UnsetType = UNSET
    height: Cells | UnsetType = UNSET
    zoom: bool | UnsetType = UNSET


class SizedPane(Pane, frozen=True, kw_only=True, omit_defaults=True):
    """A pane with its true size; `zoomed` if it fills its window, with the others hidden."""

    zoomed: bool = False


_ZOOMED = "#{&&:#{window_zoomed_flag},#{pane_active}}"


async def resize_pane(call: Call, args: ResizePane) -> SizedPane:
    """Its neighbours give way as far as they can: see the row for the size it got. A width or height ends
    a zoom."""
    size = _size(args.width, args.height)
    if not size and args.zoom is UNSET:
        raise InvalidArgument("There is nothing to change. Give a width, a height or zoom.")
    if size and args.zoom:
        raise InvalidArgument("A zoomed pane has the size of its window. Give either a size or zoom=true.")
    pane = target(args.pane_id)
    toggle = command("resize-pane", "-Z", "-t", pane)
    changes = []
    if args.zoom is True:
        others = "#{&&:#{window_zoomed_flag},#{?pane_active,0,1}}"
        changes = [
            choose(args.pane_id, others, toggle),
            choose(args.pane_id, "#{window_zoomed_flag}", otherwise=toggle),
        ]
    elif args.zoom is False:
        changes = [choose(args.pane_id, _ZOOMED, toggle)]
    if size:
        changes.append(command("resize-pane", "-t", pane, *size))
    call.touched.append(args.pane_id)
    client = call.terminal.client
    return await rows.changed(client, _sized_pane_kind(client), args.pane_id, *changes)


def _sized_pane_kind(client: Client) -> rows.Kind[SizedPane]:
    kind = rows.pane_kind(client)
    return rows.Kind(
        kind.name,
        Template(**kind.template.fields, zoomed=_ZOOMED),
        lambda answer: SizedPane(**msgspec.structs.asdict(kind.read(answer)), zoomed=answer["zoomed"] == "1"),
    )


def _size(width: int | UnsetType, height: int | UnsetType) -> tuple[str | Arg, ...]:
    return (
        *(() if width is UNSET else ("-x", Arg("-x", str(width)))),
        *(() if height is UNSET else ("-y", Arg("-y", str(height)))),
    )
