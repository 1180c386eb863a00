"""The inspect tools on a real tmux: what they tell, and what they answer about what is not there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.bench import Bench, Counting
from tests.calls import Tools
from tmuxmcp.errors import InvalidArgument, NoServer, NotFound, ServerGone
from tmuxmcp.tmux.runner import Output


@pytest.fixture
def nobody(socket_path: Path) -> Tools:
    """The tools where no tmux server runs."""
    return Bench(socket_path, Counting()).tools


def ids(result: dict[str, Any]) -> list[str]:
    ((_, rows),) = ((name, value) for name, value in result.items() if isinstance(value, list))
    return [row.get("pane_id") or row.get("window_id") or row["session_id"] for row in rows]


# Sessions, windows and panes


async def test_lists(bench: Bench) -> None:
    bench.tmux("new-session", "-d", "-s", "b", "exec cat", ";", "split-window", "-t", "=b:", "exec cat")
    assert ids(await bench.tools("list_sessions")) == ["$0", "$1"]
    assert ids(await bench.tools("list_windows")) == ["@0", "@1"]
    assert ids(await bench.tools("list_windows", session="b")) == ["@1"]
    assert ids(await bench.tools("list_panes")) == ["%0", "%1", "%2"]
    assert ids(await bench.tools("list_panes", session="b")) == ["%1", "%2"]
    assert ids(await bench.tools("list_panes", session="$0")) == ["%0"]
    assert ids(await bench.tools("list_panes", window_id="@1")) == ["%1", "%2"]


async def test_one_row_of_each(bench: Bench) -> None:
    for session in ("a", "$0"):
        (row,) = (await bench.tools("list_sessions"))["sessions"]
        assert await bench.tools("get_session_info", session=session) == row
        assert bench.tools.touched == ["$0"]
    (row,) = (await bench.tools("list_windows"))["windows"]
    assert await bench.tools("get_window_info", window_id="@0") == row
    assert bench.tools.touched == ["@0"]
    (row,) = (await bench.tools("list_panes"))["panes"]
    assert await bench.tools("get_pane_info", pane_id="%0") == row
    assert bench.tools.touched == ["%0"]


async def test_every_read_is_one_tmux_process(bench: Bench) -> None:
    bench.tmux("split-window", "-d", "-t", "%0", "exec cat")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list_sessions", {}),
        ("list_windows", {"session": "a"}),
        ("list_panes", {}),
        ("get_server_info", {}),
        ("get_session_info", {"session": "a"}),
        ("get_window_info", {"window_id": "@0"}),
        ("get_pane_info", {"pane_id": "%0"}),
        ("capture_pane", {"pane_id": "%0"}),
        ("snapshot_pane", {"pane_id": "%0"}),
        ("find_pane_by_position", {"window_id": "@0", "corner": "top-left"}),
        ("get_tmux_variables", {"names": ["pane_id"], "pane_id": "%0"}),
        ("show_option", {"name": "mode-keys", "scope": "pane", "pane_id": "%0"}),
        ("show_environment", {"session": "a"}),
        ("show_hooks", {"session": "a"}),
    ]
    for name, arguments in calls:
        before = bench.processes
        await bench.tools(name, **arguments)
        assert (name, bench.processes - before) == (name, 1)


async def test_a_window_in_two_sessions_has_two_rows_and_its_panes_one(bench: Bench) -> None:
    bench.tmux("new-session", "-d", "-s", "b", "exec cat", ";", "link-window", "-s", "=a:0", "-t", "=b:5")
    rows = (await bench.tools("list_windows"))["windows"]
    assert [(row["window_id"], row["session"], row["index"]) for row in rows] == [
        ("@0", "a", 0),
        ("@1", "b", 0),
        ("@0", "b", 5),
    ]
    assert sorted(ids(await bench.tools("list_panes"))) == ["%0", "%1"]
    rows = (await bench.tools("list_panes", session="b"))["panes"]
    assert [(row["pane_id"], row["session"]) for row in rows] == [("%1", "b"), ("%0", "b")]


async def test_a_window_linked_twice_into_one_session(bench: Bench) -> None:
    bench.tmux("link-window", "-s", "=a:0", "-t", "=a:7")
    assert [row["index"] for row in (await bench.tools("list_windows", session="a"))["windows"]] == [0, 7]
    assert ids(await bench.tools("list_panes", session="a")) == ["%0"]


async def test_sessions_of_a_group(bench: Bench) -> None:
    bench.tmux("new-session", "-d", "-t", "=a", "-s", "g")
    rows = (await bench.tools("list_sessions"))["sessions"]
    assert [(row["name"], row["group"], row["active_pane_id"]) for row in rows] == [
        ("a", "a", "%0"),
        ("g", "a", "%0"),
    ]
    assert ids(await bench.tools("list_panes")) == ["%0"]
    assert (await bench.tools("get_session_info", session="g"))["session_id"] == "$1"


async def test_indexes_are_those_that_a_person_sees(bench: Bench) -> None:
    bench.tmux("set-option", "-g", "base-index", "1", ";", "set-option", "-gw", "pane-base-index", "5")
    bench.tmux("new-session", "-d", "-s", "b", "exec cat")
    assert (await bench.tools("list_windows", session="b"))["windows"][0]["index"] == 1
    assert (await bench.tools("list_panes", session="b"))["panes"][0]["index"] == 5


async def test_pages(bench: Bench) -> None:
    for _ in range(4):
        bench.tmux("new-window", "-d", "-t", "=a:", "exec cat")
    seen: list[str] = []
    offset = 0
    while True:
        page = await bench.tools("list_panes", limit=2, offset=offset)
        assert len(page["panes"]) <= 2
        seen += ids(page)
        if "next_offset" not in page:
            break
        offset = page["next_offset"]
    assert seen == ["%0", "%1", "%2", "%3", "%4"]
    assert "next_offset" not in await bench.tools("list_windows", limit=5)
    assert (await bench.tools("list_windows", limit=4))["next_offset"] == 4
    assert await bench.tools("list_windows", offset=99) == {"windows": []}


async def test_a_page_of_huge_rows_is_smaller(bench: Bench) -> None:
    for _ in range(4):
        bench.tmux("new-window", "-d", "-t", "=a:", "exec cat")
    for number in range(5):
        bench.tmux("rename-window", "-t", f"@{number}", "x" * 12_000)
    page = await bench.tools("list_windows")
    assert len(page["windows"]) == 3
    assert page["next_offset"] == 3
    assert len((await bench.tools("list_windows", offset=3))["windows"]) == 2


async def test_two_hundred_panes(bench: Bench) -> None:
    bench.tmux(*(("new-window", "-d", "-t", "=a:", "exec cat", ";") * 100)[:-1])
    bench.tmux(*(("new-window", "-d", "-t", "=a:", "exec cat", ";") * 99)[:-1])
    first = await bench.tools("list_panes")
    assert first["next_offset"] == 100
    rest = await bench.tools("list_panes", offset=100)
    assert "next_offset" not in rest
    assert ids(first) + ids(rest) == [f"%{number}" for number in range(200)]
    assert (await bench.tools("search_panes", pattern="nothing"))["panes_searched"] == 200


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("list_windows", {"session": "nope"}),
        ("list_panes", {"session": "$9"}),
        ("list_panes", {"window_id": "@9"}),
        ("get_session_info", {"session": "nope"}),
        ("get_window_info", {"window_id": "@9"}),
        ("get_pane_info", {"pane_id": "%9"}),
        ("capture_pane", {"pane_id": "%9"}),
        ("capture_since", {"pane_id": "%9"}),
        ("snapshot_pane", {"pane_id": "%9"}),
        ("search_panes", {"pattern": "x", "session": "nope"}),
        ("search_panes", {"pattern": "x", "window_id": "@9"}),
        ("find_pane_by_position", {"window_id": "@9", "corner": "top-left"}),
        ("get_tmux_variables", {"names": ["pane_id"], "pane_id": "%9"}),
        ("show_option", {"name": "mode-keys", "scope": "window", "window_id": "@9"}),
        ("show_environment", {"session": "nope"}),
        ("show_hooks", {"pane_id": "%9"}),
    ],
)
async def test_a_target_that_does_not_exist_is_not_found(
    bench: Bench, tool: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(NotFound):
        await bench.tools(tool, **arguments)
    await bench.end()
    with pytest.raises(NotFound):
        await bench.tools(tool, **arguments)


async def test_without_a_server(nobody: Tools) -> None:
    assert await nobody("list_sessions") == {"sessions": []}
    assert await nobody("list_windows") == {"windows": []}
    assert await nobody("list_panes") == {"panes": []}
    assert await nobody("search_panes", pattern="x") == {"matches": [], "panes_searched": 0}
    for tool, arguments in (
        ("show_option", {"name": "status", "scope": "session"}),
        ("show_environment", {}),
        ("show_hooks", {}),
        ("get_tmux_variables", {"names": ["pid"]}),
    ):
        with pytest.raises(NoServer):
            await nobody(tool, **arguments)
    info = await nobody("get_server_info")
    assert info["running"] is False
    assert info["server_state"] == "absent"
    assert info["sessions"] == 0
    assert info["attach_command"].endswith(" attach")
    assert re.match(r"\d+\.\d+", info["tmux_version"])
    assert "pid" not in info


class Exiting:
    """A tmux whose server is just exiting whenever it is asked for something, and gone when asked again."""

    def __init__(self) -> None:
        self.gone = False

    async def run(self, argv: Sequence[str], **how: Any) -> Output:
        if argv[-1] == "-V":
            return Output(0, b"tmux 3.5a", "")
        self.gone = not self.gone
        return Output(1, b"", "server exited unexpectedly" if self.gone else "no server running on /nowhere")


async def test_a_server_on_its_way_out_has_no_sessions() -> None:
    tools = Bench.faked(Exiting()).tools
    assert await tools("list_sessions") == {"sessions": []}
    assert await tools("list_panes") == {"panes": []}
    assert (await tools("search_panes", pattern="x"))["panes_searched"] == 0
    assert not (await tools("get_server_info"))["running"]
    with pytest.raises(ServerGone):
        await Bench.faked(Exiting()).tools("get_pane_info", pane_id="%0")


async def test_without_a_session(bench: Bench) -> None:
    bench.tmux("set-option", "-s", "exit-empty", "off", ";", "kill-session", "-t", "=a")
    assert await bench.tools("list_sessions") == {"sessions": []}
    assert await bench.tools("list_windows") == {"windows": []}
    assert await bench.tools("list_panes") == {"panes": []}
    assert (await bench.tools("search_panes", pattern="x"))["panes_searched"] == 0
    assert (await bench.tools("get_server_info"))["sessions"] == 0
    assert (await bench.tools("get_tmux_variables", names=["pid"]))["variables"]["pid"].isdigit()
    assert (await bench.tools("show_option", name="escape-time", scope="server"))["value"].isdigit()


@pytest.mark.parametrize(
    "name", ["build", "b*", "build-e2", "", "build-e2e:", "build-e2e.0", "/dev/null", "$x", "@0"]
)
async def test_a_session_is_found_by_its_whole_name_only(bench: Bench, name: str) -> None:
    bench.tmux("rename-session", "-t", "=a", "build-e2e")
    with pytest.raises(NotFound):
        await bench.tools("get_session_info", session=name)
    assert (await bench.tools("get_session_info", session="build-e2e"))["session_id"] == "$0"


@pytest.mark.parametrize("name", ["x*", "[x]", "a b", "é😀", "{last}", "+1", "-x", "~", "!", "0"])
async def test_a_session_of_an_unusual_name_is_found(bench: Bench, name: str) -> None:
    bench.tmux("rename-session", "-t", "=a", "--", name)
    assert (await bench.tools("get_session_info", session=name))["name"] == name
    assert ids(await bench.tools("list_panes", session=name)) == ["%0"]
    assert (await bench.tools("show_environment", session=name))["variables"] is not None


@pytest.mark.parametrize("name", ["$1x", "@0", "%0"])
async def test_a_name_that_tmux_may_take_otherwise_is_refused_with_the_id(bench: Bench, name: str) -> None:
    bench.tmux("rename-session", "-t", "=a", "--", name)
    with pytest.raises(InvalidArgument, match=r"its id, \$0") as refused:
        await bench.tools("get_session_info", session=name)
    assert refused.value.details == {"session_id": "$0"}


async def test_two_targets_are_refused(bench: Bench) -> None:
    with pytest.raises(InvalidArgument, match="session and window_id"):
        await bench.tools("list_panes", session="", window_id="@0")


async def test_get_server_info(bench: Bench) -> None:
    info = await bench.tools("get_server_info")
    assert info == {
        "running": True,
        "socket": f"path:{bench.path}",
        "socket_form": "path",
        "resolved_socket_path": str(bench.path),
        "attach_command": f"tmux -N -S {bench.path} attach",
        "tmux_version": bench.tmux("display-message", "-p", "#{version}").strip(),
        "pid": int(bench.tmux("display-message", "-p", "#{pid}")),
        "started": info["started"],
        "sessions": 1,
        "server_state": "existing",
        "configuration_provenance": "unknown",
        "ambient": "quiet",
    }
    bench.client.own = await bench.client.server()
    assert (await bench.tools("get_server_info"))["server_state"] == "started"


# Corners


async def corners(bench: Bench) -> list[dict[str, Any]]:
    return [
        await bench.tools("find_pane_by_position", window_id="@0", corner=f"{row}-{column}")
        for row in ("top", "bottom")
        for column in ("left", "right")
    ]


async def test_corners(bench: Bench) -> None:
    bench.tmux("split-window", "-d", "-h", "-t", "%0", "exec cat")
    bench.tmux("split-window", "-d", "-v", "-t", "%0", "exec cat")
    found = await corners(bench)
    assert [row["pane_id"] for row in found] == ["%0", "%1", "%2", "%1"]
    assert found[0] == await bench.tools("get_pane_info", pane_id="%0")
    bench.tmux("set-option", "-w", "-t", "@0", "pane-border-status", "top")
    found = await corners(bench)
    assert [row["pane_id"] for row in found] == ["%0", "%1", "%2", "%1"]
    bench.tmux("resize-pane", "-Z", "-t", "%2")
    found = await corners(bench)
    assert [row["pane_id"] for row in found] == ["%2"] * 4
