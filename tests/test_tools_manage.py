"""What the manage tools change, read back from tmux itself, and what they refuse before tmux sees it."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.calls import Tools
from tests.conftest import TMUX
from tests.sinks import IDS, Server
from tmuxmcp.errors import DuplicateName, InvalidArgument, InvalidName, NoServer, NotFound, ServerGone
from tmuxmcp.settings import Settings
from tmuxmcp.tmux.client import Version
from tmuxmcp.tmux.command import Arg, command

HOSTILE = [
    "",
    "#(touch x)",
    "#{pid}",
    "#S",
    "a\nb",
    "\x1b]0;x\x07",
    "a\\b",
    "$HOME",
    "\ud800",
    "a\0b",
    "x" * 1001,
]
HOSTILE_NAMES = [*HOSTILE, "-x", "--", "=x", "$0", "@0", "%0", "!", "{last}", "+1"]
PLAIN = [
    "plain",
    "a;",
    ";",
    "a b ",
    "it's",
    'q"q',
    "日本 😀",
    "👩‍👩‍👧",
    "\u200bx",
    "~",
    "*",
    "x%y",
    "a[b]",
    "0",
]


@pytest.fixture
def server(socket_path: Path) -> Server:
    return Server(socket_path)


@pytest.fixture
def tools(server: Server) -> Tools:
    return Tools(server.terminal)


@pytest.fixture(autouse=True)
async def base(server: Server) -> None:
    """Session ``base`` ($0) of 80x24 cells: window @0 with pane %0."""
    size = ("-x", Arg("-x", "80"), "-y", Arg("-y", "24"))
    await server.client.start(command("new-session", "-d", "-s", "base", *size, "exec cat"), template=IDS)
    await server.tmux("resize-window", "-t", "@0", "-x", "80", "-y", "24")
    await server.tmux("set-option", "-w", "-u", "-t", "@0", "window-size")


async def told(server: Server, format: str, target: str = "%0") -> str:
    return (await server.tmux("display-message", "-p", "-t", target, format)).removesuffix("\n")


async def made(server: Server, new: str, *args: str) -> str:
    """The id of the pane that `new` created."""
    return (await server.tmux(new, "-d", "-P", "-F", "#{pane_id}", *args, "exec cat")).strip()


# Names


@pytest.mark.parametrize("name", PLAIN)
async def test_names_are_kept_as_written(server: Server, tools: Tools, name: str) -> None:
    assert (await tools("rename_session", session="base", new_name=name))["name"] == name
    assert tools.touched == ["$0"]
    assert (await tools("rename_window", window_id="@0", new_name=name))["name"] == name
    assert (await tools("set_pane_title", pane_id="%0", title=name))["title"] == name
    assert await told(server, "#{session_name}|#{window_name}|#{pane_title}") == f"{name}|{name}|{name}"
    again = await tools("rename_session", session="$0", new_name=name)
    assert (again["session_id"], again["name"]) == ("$0", name)
    assert (await tools("rename_session", session=name, new_name="base"))["name"] == "base"


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: ascii(name[:12]))
async def test_names_that_are_none_are_refused(server: Server, tools: Tools, name: str) -> None:
    before = await told(server, "#{session_name}|#{window_name}|#{pane_title}")
    with pytest.raises(InvalidArgument):
        await tools("rename_session", session="base", new_name=name)
    with pytest.raises(InvalidArgument):
        await tools("rename_window", window_id="@0", new_name=name)
    if name in HOSTILE:
        with pytest.raises(InvalidArgument):
            await tools("set_pane_title", pane_id="%0", title=name)
    assert await told(server, "#{session_name}|#{window_name}|#{pane_title}") == before


@pytest.mark.parametrize("name", ["a:b", "a.b", "/dev/pts/0", "client-1"])
async def test_a_session_name_is_no_target(tools: Tools, name: str) -> None:
    with pytest.raises(InvalidName):
        await tools("rename_session", session="base", new_name=name)
    assert (await tools("rename_window", window_id="@0", new_name=name))["name"] == name


async def test_a_name_that_is_taken(server: Server, tools: Tools) -> None:
    await made(server, "new-session", "-s", "other")
    with pytest.raises(DuplicateName) as caught:
        await tools("rename_session", session="other", new_name="base")
    assert caught.value.details["session_id"] == "$0"


async def test_a_title_leaves_the_focus_alone(server: Server, tools: Tools) -> None:
    pane = await made(server, "split-window", "-t", "%0")
    await tools("set_pane_title", pane_id=pane, title="there")
    assert await told(server, "#{pane_active}") == "1"


async def test_a_renamed_window_keeps_its_name(server: Server, tools: Tools) -> None:
    await server.tmux("set-option", "-w", "-t", "@0", "automatic-rename", "on")
    await tools("rename_window", window_id="@0", new_name="mine")
    assert await told(server, "#{automatic-rename}") == "0"


# Arrangement


async def test_the_current_window(server: Server, tools: Tools) -> None:
    pane = await made(server, "new-window", "-t", "base:")
    window = await told(server, "#{window_id}", pane)
    for _ in range(2):
        assert (await tools("select_window", window_id=window))["active"]
        assert await told(server, "#{window_id}", "=base:") == window
    assert tools.touched == [window]


async def test_the_active_pane(server: Server, tools: Tools) -> None:
    pane = await made(server, "split-window", "-t", "%0")
    for _ in range(2):
        assert (await tools("select_pane", pane_id=pane))["active"]
        assert await told(server, "#{pane_id}", "@0") == pane


async def test_a_layout(server: Server, tools: Tools) -> None:
    pane = await made(server, "split-window", "-t", "%0")
    sizes = "#{pane_width}x#{pane_height}"
    for layout, size in [("even-horizontal", "x24"), ("even-vertical", "80x"), ("even-vertical", "80x")]:
        row = await tools("select_layout", window_id="@0", layout=layout)
        assert row["panes"] == 2
        assert size in await told(server, sizes, pane)
    await tools("select_layout", window_id="@0", layout="tiled")


@pytest.mark.parametrize("layout", ["main-horizontal-mirrored", "main-vertical-mirrored"])
async def test_a_layout_of_newer_versions(server: Server, tools: Tools, layout: str) -> None:
    if await server.client.version() < Version(3, 5):
        with pytest.raises(InvalidArgument, match="Choose another one"):
            await tools("select_layout", window_id="@0", layout=layout)
    else:
        await tools("select_layout", window_id="@0", layout=layout)
    assert await told(server, "#{window_panes}") == "1"


@pytest.mark.parametrize(
    "layout", ["zzz", "vertical", "", "#x", "-o", " ", "tiled ", "b25f,80x24,0,0,0", "t", "E"]
)
async def test_a_layout_that_tmux_does_not_know(server: Server, tools: Tools, layout: str) -> None:
    with pytest.raises(InvalidArgument):
        await tools("select_layout", window_id="@0", layout=layout)
    assert await told(server, "#{window_panes}") == "1"


@contextmanager
def attached(server: Server, columns: int, rows: int) -> Iterator[None]:
    """A person who watches, with a terminal of this size."""
    argv = [TMUX, "-S", server.client.socket.path, "attach-session", "-t", "=base"]
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def drain() -> None:
        with suppress(OSError):
            while os.read(ours, 65536):
                pass

    reader = threading.Thread(target=drain, daemon=True)
    environ = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=environ) as client:
        os.close(theirs)
        reader.start()
        try:
            yield
        finally:
            client.terminate()
            client.wait()
            reader.join()
            os.close(ours)


async def test_a_size_is_pinned_until_it_follows_again(server: Server, tools: Tools) -> None:
    with attached(server, 100, 30):
        with anyio.fail_after(10):
            while await told(server, "#{window_width}x#{window_height}") != "100x30":
                await anyio.sleep(0.02)
        for _ in range(2):
            row = await tools("resize_window", window_id="@0", width=70, height=20)
            assert (row["width"], row["height"], row["size_pinned"]) == (70, 20, True)
        row = await tools("resize_window", window_id="@0", height=22)
        assert (row["width"], row["height"]) == (70, 22)
        for _ in range(2):
            row = await tools("resize_window", window_id="@0", follow_client=True)
            assert (row["width"], row["height"]) == (100, 30)
            assert "size_pinned" not in row
    assert await told(server, "#{window_width}x#{window_height}") == "100x30"


async def test_without_a_client_a_window_keeps_its_size(tools: Tools) -> None:
    await tools("resize_window", window_id="@0", width=70, height=20)
    row = await tools("resize_window", window_id="@0", follow_client=True)
    assert (row["width"], row["height"]) == (70, 20)


async def test_a_window_is_told_with_its_true_size(server: Server, tools: Tools) -> None:
    for _ in range(3):
        await made(server, "split-window", "-t", "%0")
    row = await tools("resize_window", window_id="@0", width=1, height=1)
    size = await told(server, "#{window_width}x#{window_height}", "@0")
    assert f"{row['width']}x{row['height']}" == size != "1x1"


async def test_a_pane_is_told_with_its_true_size(server: Server, tools: Tools) -> None:
    await made(server, "split-window", "-t", "%0")
    row = await tools("resize_pane", pane_id="%0", height=5)
    assert (row["width"], row["height"]) == (80, 5)
    row = await tools("resize_pane", pane_id="%0", width=10_000, height=10_000)
    assert f"{row['width']}x{row['height']}" == await told(server, "#{pane_width}x#{pane_height}") != "80x5"
    assert row["height"] < 24


async def test_zoom_is_a_state_and_no_toggle(server: Server, tools: Tools) -> None:
    pane = await made(server, "split-window", "-t", "%0")
    flags = "#{window_zoomed_flag} #{pane_active} #{pane_height}"
    for id in ("%0", "%0", pane, pane, "%0"):
        row = await tools("resize_pane", pane_id=id, zoom=True)
        assert (row["zoomed"], row["height"]) == (True, 24)
        assert await told(server, flags, id) == "1 1 24"
    assert "zoomed" not in await tools("resize_pane", pane_id=pane, zoom=False)
    assert await told(server, flags) == "1 1 24"
    for _ in range(2):
        assert "zoomed" not in await tools("resize_pane", pane_id="%0", zoom=False)
        assert (await told(server, flags)).startswith("0 1")
    await tools("resize_pane", pane_id="%0", zoom=True)
    assert (await tools("resize_pane", pane_id="%0", zoom=False, height=6))["height"] == 6


async def test_the_only_pane_needs_no_zoom(tools: Tools) -> None:
    row = await tools("resize_pane", pane_id="%0", zoom=True)
    assert (row["width"], row["height"]) == (80, 24)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("resize_window", {"window_id": "@0"}),
        ("resize_window", {"window_id": "@0", "width": 80, "follow_client": True}),
        ("resize_window", {"window_id": "@0", "width": 0}),
        ("resize_window", {"window_id": "@0", "width": 10_001}),
        ("resize_window", {"window_id": "@0", "height": -1}),
        ("resize_window", {"window_id": "@0", "height": "50%"}),
        ("resize_window", {"window_id": "@0", "height": None}),
        ("resize_pane", {"pane_id": "%0"}),
        ("resize_pane", {"pane_id": "%0", "zoom": True, "width": 10}),
        ("resize_pane", {"pane_id": "%0", "width": 1.5}),
        ("resize_pane", {"pane_id": "%0", "width": True}),
        ("move_window", {"window_id": "@0"}),
        ("move_window", {"window_id": "@0", "index": -1}),
        ("swap_pane", {"pane_id": "%0"}),
        ("enter_copy_mode", {"pane_id": "%0", "scroll_up": 2**31}),
        ("enter_copy_mode", {"pane_id": "%0", "scroll_up": 0}),
        ("set_history_limit", {"lines": 99}),
        ("set_history_limit", {"lines": 1_000_001}),
        ("set_history_limit", {}),
        ("set_mouse_enabled", {"enabled": "on"}),
        ("select_window", {"window_id": "@"}),
        ("select_pane", {"pane_id": "0"}),
        ("select_pane", {"pane_id": "%0 "}),
        ("wait_for_channel", {"channel": "c", "timeout": 0}),
        ("wait_for_channel", {"channel": "c", "timeout": float("nan")}),
        ("wait_for_channel", {"channel": "c", "timeout": 3601}),
        ("wait_for_channel", {"channel": ""}),
        ("signal_channel", {"channel": "a\nb"}),
        ("signal_channel", {"channel": "-S"}),
    ],
)
async def test_what_makes_no_sense_is_refused(
    server: Server, tools: Tools, tool: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(InvalidArgument):
        await tools(tool, **arguments)
    assert await told(server, "#{window_width}x#{window_height} #{pane_in_mode}") == "80x24 0"


async def indexes(server: Server) -> dict[str, str]:
    listing = await server.tmux("list-windows", "-a", "-F", "#{window_id} #{session_name}:#{window_index}")
    return dict(line.split(" ", 1) for line in listing.splitlines())


async def test_a_window_moves(server: Server, tools: Tools) -> None:
    await made(server, "new-session", "-s", "other")
    await made(server, "new-window", "-t", "base:")
    assert await indexes(server) == {"@0": "base:0", "@1": "other:0", "@2": "base:1"}
    row = await tools("move_window", window_id="@2", session="other")
    assert (row["session"], row["index"]) == ("other", 1)
    row = await tools("move_window", window_id="@2", session="$0", index=7)
    assert (row["session"], row["index"]) == ("base", 7)
    for _ in range(2):
        row = await tools("move_window", window_id="@2", index=9)
        assert (row["session"], row["index"]) == ("base", 9)
    row = await tools("move_window", window_id="@2", session="base", index=9)
    assert row["index"] == 9
    assert await indexes(server) == {"@0": "base:0", "@1": "other:0", "@2": "base:9"}
    assert await told(server, "#{window_id}", "=base:") == "@0"
    with pytest.raises(InvalidArgument) as caught:
        await tools("move_window", window_id="@2", index=0)
    assert caught.value.details["index"] == "0"
    for session in ("nowhere", "$99", "oth"):
        with pytest.raises(NotFound):
            await tools("move_window", window_id="@2", session=session)


async def test_a_window_moves_where_counting_starts_at_one(server: Server, tools: Tools) -> None:
    await server.tmux("set-option", "-g", "base-index", "1")
    await made(server, "new-window", "-t", "base:")
    row = await tools("move_window", window_id="@0", session="base")
    assert row["index"] == 2


async def test_panes_change_places(server: Server, tools: Tools) -> None:
    split = await made(server, "split-window", "-t", "%0")
    away = await made(server, "new-window", "-t", "base:")
    rows = (await tools("swap_pane", pane_id="%0", with_pane_id=split))["panes"]
    assert [(row["pane_id"], row["index"]) for row in rows] == [("%0", 1), (split, 0)]
    assert tools.touched == ["%0", split]
    rows = (await tools("swap_pane", pane_id="%0", with_pane_id=away))["panes"]
    assert [row["window_id"] for row in rows] == ["@1", "@0"]
    assert await told(server, "#{window_id}") == "@1"
    rows = (await tools("swap_pane", pane_id="%0", with_pane_id="%0"))["panes"]
    assert [row["pane_id"] for row in rows] == ["%0", "%0"]
    for pair in (("%0", "%99"), ("%99", "%0")):
        with pytest.raises(NotFound):
            await tools("swap_pane", pane_id=pair[0], with_pane_id=pair[1])


# Copy mode


async def test_copy_mode(server: Server, tools: Tools) -> None:
    sink = await server.sink(says="line\\n" * 100)
    pane = sink.pane_id
    row = await tools("enter_copy_mode", pane_id=pane)
    assert row["in_mode"]
    assert "scroll_position" not in row
    assert (await tools("enter_copy_mode", pane_id=pane, scroll_up=10))["scroll_position"] == 10
    assert (await tools("enter_copy_mode", pane_id=pane, scroll_up=7))["scroll_position"] == 17
    history = int(await told(server, "#{history_size}", pane))
    assert (await tools("enter_copy_mode", pane_id=pane, scroll_up=10_000))["scroll_position"] == history
    for _ in range(2):
        assert "in_mode" not in await tools("exit_copy_mode", pane_id=pane)
        assert await told(server, "#{pane_in_mode}", pane) == "0"
    await server.tmux("clock-mode", "-t", pane)
    assert (await tools("enter_copy_mode", pane_id=pane, scroll_up=3))["scroll_position"] == 3
    assert "in_mode" not in await tools("exit_copy_mode", pane_id=pane)


# Channels


async def test_a_signal_and_a_wait(tools: Tools) -> None:
    assert await tools("signal_channel", channel="go;") == {"outcome": "sent"}
    waited = await tools("wait_for_channel", channel="go;", timeout=10)
    assert (waited["outcome"], waited["effective_timeout"]) == ("signaled", 10)
    assert 0 <= waited["elapsed_seconds"] < 5
    waited = await tools("wait_for_channel", channel="go;", timeout=0.2)
    assert waited["outcome"] == "timeout"
    assert 0.2 <= waited["elapsed_seconds"] < 2


async def test_a_wait_is_cut_to_the_ceiling(server: Server) -> None:
    tools = Tools(server.terminal, Settings(toolsets=("manage",), wait_max_seconds=1))
    waited = await tools("wait_for_channel", channel="c", timeout=3600)
    assert (waited["outcome"], waited["effective_timeout"]) == ("timeout", 1)


# Options


async def test_the_mouse(server: Server, tools: Tools) -> None:
    await made(server, "new-session", "-s", "other")
    for _ in range(2):
        assert await tools("set_mouse_enabled", enabled=True) == {"scope": "server", "enabled": True}
        assert await told(server, "#{mouse}") == "1"
    for session in ("base", "$0"):
        assert await tools("set_mouse_enabled", session=session, enabled=False) == {
            "scope": "session",
            "session_id": "$0",
            "enabled": False,
        }
    assert await told(server, "#{mouse}", "=other:") == "1"
    for enabled, exempt in ((True, {"exempt_sessions": ["$0"]}), (False, {})):
        said = await tools("set_mouse_enabled", enabled=enabled)
        assert said == {"scope": "server", "enabled": enabled, **exempt}


async def test_the_history_limit(server: Server, tools: Tools) -> None:
    follows = await server.client.version() >= Version(3, 7)
    split = await made(server, "split-window", "-t", "%0")
    await made(server, "new-session", "-s", "other")
    limits = "#{S:#{W:#{P:#{history_limit} }}}"
    for _ in range(2):
        said = await tools("set_history_limit", lines=700)
        unchanged = {} if follows else {"unchanged_panes": ["%0", split, "%2"]}
        assert said == {"scope": "server", "lines": 700, **unchanged}
        assert ("700" in await told(server, limits)) == follows
    new = await made(server, "new-window", "-t", "=other:")
    assert await told(server, "#{history_limit}", new) == "700"
    said = await tools("set_history_limit", session="base", lines=300)
    unchanged = {} if follows else {"unchanged_panes": ["%0", split]}
    assert said == {"scope": "session", "session_id": "$0", "lines": 300, **unchanged}
    said = await tools("set_history_limit", lines=700)
    assert said["exempt_sessions"] == ["$0"]
    assert said["unchanged_panes"] == (["%0", split] if follows else ["%0", split, "%2"])


# All of them

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("rename_session", {"session": "$0", "new_name": "new"}),
    ("rename_window", {"window_id": "@0", "new_name": "new"}),
    ("select_window", {"window_id": "@0"}),
    ("select_pane", {"pane_id": "%0"}),
    ("select_layout", {"window_id": "@0", "layout": "tiled"}),
    ("resize_window", {"window_id": "@0", "width": 90}),
    ("resize_window", {"window_id": "@0", "follow_client": True}),
    ("resize_pane", {"pane_id": "%0", "height": 5}),
    ("resize_pane", {"pane_id": "%0", "zoom": True}),
    ("move_window", {"window_id": "@0", "session": "$0", "index": 3}),
    ("swap_pane", {"pane_id": "%0", "with_pane_id": "%0"}),
    ("set_pane_title", {"pane_id": "%0", "title": "new"}),
    ("enter_copy_mode", {"pane_id": "%0", "scroll_up": 1}),
    ("exit_copy_mode", {"pane_id": "%0"}),
    ("signal_channel", {"channel": "c"}),
    ("wait_for_channel", {"channel": "c"}),
    ("set_mouse_enabled", {"session": "$0", "enabled": True}),
    ("set_history_limit", {"session": "$0", "lines": 500}),
]


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
async def test_one_process_for_each_call(
    server: Server, tools: Tools, tool: str, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    await tools("signal_channel", channel="c")
    started = []
    run = server.client.runner.run

    async def counted(argv: Any, **how: Any) -> Any:
        started.append(argv)
        return await run(argv, **how)

    monkeypatch.setattr(server.client.runner, "run", counted)
    await tools(tool, **arguments)
    assert len(started) == 1


@pytest.mark.parametrize(("tool", "arguments"), [call for call in CALLS if "channel" not in call[1]])
async def test_what_does_not_exist(
    server: Server, tools: Tools, tool: str, arguments: dict[str, Any]
) -> None:
    missing = {"session": "$99", "window_id": "@99", "pane_id": "%99"}
    arguments = {name: missing.get(name, value) for name, value in arguments.items()}
    before = await told(server, "#{session_name} #{window_width} #{window_layout} #{pane_in_mode} #{mouse}")
    with pytest.raises(NotFound):
        await tools(tool, **arguments)
    if "session" in arguments:
        for session in ("bas", "b*", "=base", "base:0", "@0", "{last}"):
            with pytest.raises((NotFound, InvalidArgument)):
                await tools(tool, **{**arguments, "session": session})
    now = await told(server, "#{session_name} #{window_width} #{window_layout} #{pane_in_mode} #{mouse}")
    assert now == before


async def exited(server: Server) -> None:
    with anyio.fail_after(10), suppress(NoServer):
        while True:
            with suppress(ServerGone):
                await server.tmux("list-sessions")


async def test_without_a_server(server: Server, tools: Tools) -> None:
    await server.tmux("kill-server")
    await exited(server)
    for tool, arguments in CALLS:
        with pytest.raises(NoServer if "channel" in arguments else NotFound):
            await tools(tool, **arguments)
    for tool, arguments in (("set_mouse_enabled", {"enabled": True}), ("set_history_limit", {"lines": 500})):
        with pytest.raises(NoServer):
            await tools(tool, **arguments)
