"""The evidence for every `destructive = false` in the manifest: the tool observes, or only adds.

Everything that tmux tells about a server is written down before and after the call.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.calls import Tools
from tests.sinks import Server
from tmuxmcp.errors import ToolError

pytestmark = pytest.mark.anyio

State = dict[str, str]
"""What is on a server: every session, window and pane, every pane's text, every setting."""

PANE = (
    "#{pane_id} #{window_id} #{session_id} #{session_name} #{session_created} #{session_group} "
    "#{window_name} #{window_index} #{window_active} #{window_zoomed_flag} "
    "#{pane_active} #{pane_pid} #{pane_tty} #{pane_title} #{pane_dead} #{pane_in_mode} #{pane_synchronized} "
    "#{pane_input_off} #{pane_start_command} #{history_limit}"
)
SETTINGS = (
    ("show-options", "-s"),
    ("show-options", "-g"),
    ("show-options", "-gw"),
    ("show-hooks", "-g"),
    ("show-environment", "-g"),
    ("list-keys",),
    ("list-buffers", "-F", "#{buffer_name} #{buffer_sample}"),
)


async def state(server: Server) -> State:
    found: State = {}
    for name, *args in SETTINGS:
        found[" ".join((name, *args))] = await server.tmux(name, *args)
    for line in (await server.tmux("list-panes", "-a", "-F", PANE)).splitlines():
        pane, window, session, _ = line.split(maxsplit=3)
        found[pane] = line
        found[f"{pane} text"] = (
            await server.tmux("capture-pane", "-p", "-J", "-S", "-", "-t", pane)
        ).rstrip()
        found[f"{pane} options"] = await server.tmux("show-options", "-p", "-t", pane)
        found[f"{window} options"] = await server.tmux("show-options", "-w", "-t", window)
        found[f"{session} options"] = await server.tmux("show-options", "-t", session)
        found[f"{session} environment"] = await server.tmux("show-environment", "-t", session)
    return found


@pytest.fixture
async def server(socket_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server with two sessions, of which one has two windows, and one of those two panes.

    The working directory has a name that runs a command wherever tmux takes it for a format.
    """
    hostile = tmp_path / "#(touch hit)"
    hostile.mkdir()
    monkeypatch.chdir(hostile)
    made = Server(socket_path)
    first = await made.sink(mode="true", says="some\\ntext\\n")
    await made.sink(split=first.pane_id)
    await made.tmux("new-window", "-d", "-n", "other", "-t", "$0:", "exec cat")
    await made.sink()
    await made.tmux("set-option", "-w", "-t", first.window_id, "@mine", "value")
    # A shell would print its prompt while another pane is made.
    await made.tmux("set-option", "-g", "default-command", "exec cat")
    await made.tmux("set-environment", "-t", "$0", "MINE", "value")
    await made.tmux("set-buffer", "-b", "mine", "value")
    return made


async def adds(server: Server, tool: str, **arguments: Any) -> None:
    """Assert that a call makes one pane, and leaves all that was there as it was."""
    before = await state(server)
    made = await Tools(server.terminal)(tool, **arguments)
    after = await state(server)
    assert {key: after.get(key) for key in before} == before
    new = {key.split()[0] for key in after.keys() - before.keys()}
    assert new <= {made["pane_id"], made["window_id"], made["session_id"]}
    assert made["pane_id"] in new
    assert not list(Path.cwd().parent.rglob("hit"))


async def test_create_session_adds(server: Server) -> None:
    await adds(server, "create_session")
    await adds(server, "create_session", name="a;", window_name="kill-server;", width=10, height=5)
    await adds(server, "create_session", start_directory=str(Path.cwd()))


async def test_create_window_adds(server: Server) -> None:
    await adds(server, "create_window", session="$0")
    await adds(server, "create_window", session="$1", name="kill-server;", start_directory=str(Path.cwd()))


async def test_split_window_adds(server: Server) -> None:
    await adds(server, "split_window", pane_id="%0")
    await adds(server, "split_window", pane_id="%1", direction="left", percent=30)
    await adds(server, "split_window", pane_id="%0", size=3, start_directory=str(Path.cwd()))


RUNS = "#(touch hit)"
"""What runs a command where tmux takes it for a format."""


async def observes(server: Server, tool: str, *calls: dict[str, Any]) -> None:
    """Assert that calls leave everything as it was, those that are refused as well."""
    before = await state(server)
    answers = 0
    for arguments in calls:
        with suppress(ToolError):
            await Tools(server.terminal)(tool, **arguments)
            answers += 1
    assert answers > 0
    assert await state(server) == before
    assert not list(Path.cwd().parent.rglob("hit"))


async def test_list_sessions_observes(server: Server) -> None:
    await observes(server, "list_sessions", {})


async def test_list_windows_observes(server: Server) -> None:
    await observes(server, "list_windows", {}, {"session": "$0"}, {"session": RUNS}, {"limit": 1})


async def test_list_panes_observes(server: Server) -> None:
    await observes(server, "list_panes", {}, {"session": "$0"}, {"session": RUNS}, {"window_id": "@0"})


async def test_get_server_info_observes(server: Server) -> None:
    await observes(server, "get_server_info", {})


async def test_get_session_info_observes(server: Server) -> None:
    await observes(server, "get_session_info", {"session": "$0"}, {"session": RUNS}, {"session": "-x;"})


async def test_get_window_info_observes(server: Server) -> None:
    await observes(server, "get_window_info", {"window_id": "@0"}, {"window_id": "@"}, {"window_id": RUNS})


async def test_get_pane_info_observes(server: Server) -> None:
    await observes(server, "get_pane_info", {"pane_id": "%0"}, {"pane_id": "%9"}, {"pane_id": RUNS})


async def test_capture_pane_observes(server: Server) -> None:
    pane: dict[str, Any] = {"pane_id": "%0"}
    await observes(
        server,
        "capture_pane",
        *(pane, {**pane, "start_line": -100, "end_line": 5}, {**pane, "start_line": RUNS}),
        *({**pane, "escapes": True, "join_wrapped": False}, {"pane_id": RUNS}),
    )


async def test_capture_since_observes(server: Server) -> None:
    cursor = (await Tools(server.terminal)("capture_since", pane_id="%0"))["cursor"]
    pane = {"pane_id": "%0"}
    await observes(server, "capture_since", pane, {**pane, "cursor": cursor}, {**pane, "cursor": RUNS})


async def test_snapshot_pane_observes(server: Server) -> None:
    await observes(server, "snapshot_pane", {"pane_id": "%0"}, {"pane_id": "%0", "escapes": True})


async def test_search_panes_observes(server: Server) -> None:
    await observes(
        server,
        "search_panes",
        *({"pattern": "text"}, {"pattern": RUNS}, {"pattern": "-x;"}, {"pattern": "t.*t", "regex": True}),
        *({"pattern": "t", "history_lines": 100, "session": "$0"}, {"pattern": "t", "session": RUNS}),
    )


async def test_find_pane_by_position_observes(server: Server) -> None:
    await observes(server, "find_pane_by_position", {"window_id": "@0", "corner": "bottom-right"})


async def test_wait_for_text_observes(server: Server) -> None:
    brief: dict[str, Any] = {"pane_id": "%0", "timeout": 0.2}
    await observes(
        server,
        "wait_for_text",
        *(brief, {**brief, "patterns": [RUNS, "-x;"]}, {**brief, "patterns": ["t.*t"], "regex": True}),
        *({**brief, "quiet_for": 0.1}, {**brief, "cursor": RUNS}, {**brief, "run": RUNS}),
    )


async def test_get_tmux_variables_observes(server: Server) -> None:
    names = ["pane_title", "window_layout", "session_path"]
    await observes(
        server,
        "get_tmux_variables",
        *({"names": names, "pane_id": "%0"}, {"names": names, "session": "$0"}, {"names": ["pid"]}),
        *({"names": [RUNS], "pane_id": "%0"}, {"names": [f"pid}}{RUNS}"], "pane_id": "%0"}),
    )


async def test_show_option_observes(server: Server) -> None:
    await observes(
        server,
        "show_option",
        *({"name": "status", "scope": "session"}, {"name": "@mine", "scope": "window", "window_id": "@0"}),
        *({"name": RUNS, "scope": "session"}, {"name": "status", "scope": "session", "session": RUNS}),
    )


async def test_show_environment_observes(server: Server) -> None:
    await observes(
        server, "show_environment", {}, {"session": "$0"}, {"names": [RUNS, "-x;", "MINE"]}, {"session": RUNS}
    )


async def test_show_hooks_observes(server: Server) -> None:
    await observes(server, "show_hooks", {}, {"name": RUNS}, {"session": "$0"}, {"pane_id": "%0"})


async def test_call_read_tools_batch_observes(server: Server) -> None:
    read = {"tool": "capture_pane", "arguments": {"pane_id": "%0"}}
    hostile = {"tool": "show_hooks", "arguments": {"name": RUNS}}
    await observes(
        server,
        "call_read_tools_batch",
        *({"operations": [read, hostile, read]}, {"operations": [hostile, read], "on_error": "stop"}),
        {"operations": [{"tool": "kill_session", "arguments": {"session": "$0"}}]},
    )
