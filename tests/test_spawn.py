"""New sessions, windows and panes, and new programs in old panes, on a real tmux."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.calls import Tools
from tests.sinks import Server, until
from tmuxmcp.errors import (
    DuplicateName,
    InvalidArgument,
    InvalidDirectory,
    InvalidName,
    NoSpace,
    NotFound,
    PaneGone,
    SelfKill,
)
from tmuxmcp.terminal.cursor import Cursor
from tmuxmcp.terminal.panes import Terminal
from tmuxmcp.terminal.spawn import start_directory
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.fake import FakeRunner, Invocation, Reply
from tmuxmcp.tmux.runner import Output
from tmuxmcp.tmux.socket import resolve

pytestmark = pytest.mark.anyio

STRANGE = (
    "a;",
    "#(touch hit)",
    "#{pid}",
    "##[x] #",
    "$HOME ${x} `id`",
    "'\"\\",
    "-x",
    "日本 😀",
    " a ",
    "a\nb\tc",
    "%H %%",
)
"""Names of directories that some way to tmux changes, or runs."""


@pytest.fixture
def server(socket_path: Path) -> Server:
    return Server(socket_path)


@pytest.fixture
def tools(server: Server) -> Tools:
    return Tools(server.terminal)


@pytest.fixture
def strange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.chdir(tmp_path)
    directories = [tmp_path / name for name in STRANGE]
    for directory in directories:
        directory.mkdir()
    return directories


async def test_a_session_is_what_was_asked_for(server: Server, tools: Tools) -> None:
    made = await tools("create_session", name="work", window_name="build", width=123, height=45)
    assert (made["name"], made["width"], made["height"]) == ("work", 123, 45)
    assert made["attach_command"] == f"tmux -N -S {server.client.socket.path} attach"
    assert made["path"] == os.getcwd()
    window = await shown(
        server, made["pane_id"], "#{session_id} #{window_id} #{window_name} #{window_width}x#{window_height}"
    )
    assert window == f"{made['session_id']} {made['window_id']} build 123x45"
    assert tools.touched == [made["session_id"], made["window_id"], made["pane_id"]]
    assert server.terminal.memory(made["pane_id"]).created > 0


async def test_a_session_without_wishes(server: Server, tools: Tools) -> None:
    made = await tools("create_session")
    assert (made["width"], made["height"]) == (200, 50)
    assert made["name"] == await shown(server, made["pane_id"], "#{session_name}")


async def test_a_taken_name_tells_whose_it_is(tools: Tools) -> None:
    first = await tools("create_session", name="work")
    with pytest.raises(DuplicateName) as caught:
        await tools("create_session", name="work")
    assert caught.value.details == {"name": "work", "session_id": first["session_id"]}
    assert first["session_id"] in caught.value.message


@pytest.mark.parametrize("name", ["", "a:b", "a.b", "$1", "=x", "#(touch hit)", "a\nb"])
async def test_names_that_tmux_would_change_are_refused(server: Server, tools: Tools, name: str) -> None:
    with pytest.raises(InvalidName):
        await tools("create_session", name=name)
    made = await tools("create_session")
    if name not in ("a:b", "a.b"):
        with pytest.raises(InvalidName):
            await tools("create_window", session=made["session_id"], name=name)
        with pytest.raises(InvalidName):
            await tools("create_session", window_name=name)
    assert await server.tmux("list-windows", "-a", "-F", "#{window_id}") == f"{made['window_id']}\n"


async def test_names_that_look_dangerous_are_kept(server: Server, tools: Tools) -> None:
    for name in ("a;", "a b", "日本 😀", "'\"", "x{y}", "~", "a -x", "&|<>`"):
        made = await tools("create_session", name=name, window_name=name)
        assert made["name"] == name
        assert await shown(server, made["pane_id"], "#{window_name}") == name
        window = await tools("create_window", session=name, name=name)
        assert window["session_id"] == made["session_id"]
        assert await shown(server, window["pane_id"], "#{window_name}") == name


async def test_programs_start_in_the_directory(server: Server, tools: Tools, strange: list[Path]) -> None:
    """Whatever its name: nothing expands it, and the program itself says that it is there."""
    made = await tools("create_session")
    for directory in strange:
        there = {"start_directory": str(directory)}
        results = [
            await tools("create_session", **there),
            await tools("create_window", session=made["session_id"], **there),
            await tools("split_window", pane_id=made["pane_id"], **there),
        ]
        for result in results:
            assert result["path"] == str(directory)
            assert await cwd(server, result["pane_id"]) == str(directory)
            await server.tmux("kill-pane", "-t", result["pane_id"])
    await anyio.sleep(0.1)
    assert not list(directory.parent.rglob("hit"))


async def test_respawned_programs_start_in_the_directory(
    server: Server, tools: Tools, strange: list[Path], tmp_path: Path
) -> None:
    made = await tools("create_session")
    for number, directory in enumerate(strange):
        out = tmp_path / f"out{number}"
        command = f"pwd > '{out}~'; mv '{out}~' '{out}'; exec cat"
        row = await tools(
            "respawn_pane",
            pane_id=made["pane_id"],
            command=command,
            start_directory=str(directory),
            kill=True,
        )
        assert row["path"] == str(directory)
        await until(out.exists)
        assert out.read_text() == f"{directory}\n"
    assert not list(tmp_path.rglob("hit"))


async def test_without_a_directory_programs_start_in_ours(
    server: Server, tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await tools("create_session", start_directory="/usr")
    monkeypatch.chdir(tmp_path)
    for result in (
        await tools("create_window", session=made["session_id"]),
        await tools("split_window", pane_id=made["pane_id"]),
        await tools("respawn_pane", pane_id=made["pane_id"], kill=True),
    ):
        assert result["path"] == str(tmp_path)
        assert await cwd(server, result["pane_id"]) == str(tmp_path)


async def test_a_symlink_leads_there(server: Server, tools: Tools, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    made = await tools("create_session", start_directory=str(tmp_path / "link"))
    assert os.path.samefile(made["path"], tmp_path / "real")
    row = await tools(
        "respawn_pane", pane_id=made["pane_id"], start_directory=str(tmp_path / "link"), kill=True
    )
    assert os.path.samefile(row["path"], tmp_path / "real")


async def test_unusable_directories_are_refused(
    server: Server, tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    made = await tools("create_session")
    windows = await server.tmux("list-panes", "-a", "-F", "#{pane_id} #{pane_pid}")
    for value, why in (
        ("", "relative"),
        ("here", "relative"),
        ("./here", "relative"),
        ("~no-such-user/x", "user"),
        (str(tmp_path / "missing"), "No such file"),
        (str(tmp_path / "file"), "not a directory"),
        (str(tmp_path / "file/x"), "Not a directory"),
        ("/" + "x" * 5000, "too long"),
    ):
        for name, target in (
            ("create_session", {}),
            ("create_window", {"session": made["session_id"]}),
            ("split_window", {"pane_id": made["pane_id"]}),
            ("respawn_pane", {"pane_id": made["pane_id"], "kill": True}),
        ):
            with pytest.raises(InvalidDirectory, match=why):
                await tools(name, **target, start_directory=value)
    assert await server.tmux("list-panes", "-a", "-F", "#{pane_id} #{pane_pid}") == windows


def test_a_tilde_is_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert start_directory("~") == str(tmp_path)
    assert start_directory("~/x") == str(tmp_path / "x")
    me = pwd.getpwuid(os.getuid())
    assert start_directory(f"~{me.pw_name}") == me.pw_dir


def test_a_vanished_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").mkdir()
    monkeypatch.chdir(tmp_path / "x")
    (tmp_path / "x").rmdir()
    with pytest.raises(InvalidDirectory, match="start_directory"):
        start_directory(None)


@pytest.mark.parametrize(
    ("direction", "place", "size"),
    [
        ("below", "0,26", (201, 25)),
        ("above", "0,0", (201, 25)),
        ("right", "101,0", (100, 51)),
        ("left", "0,0", (100, 51)),
    ],
)
async def test_a_new_pane_is_where_it_should_be(
    server: Server, tools: Tools, direction: str, place: str, size: tuple[int, int]
) -> None:
    made = await tools("create_session", width=201, height=51)
    pane = await tools("split_window", pane_id=made["pane_id"], direction=direction)
    assert await shown(server, pane["pane_id"], "#{pane_left},#{pane_top}") == place
    assert await shown(server, made["pane_id"], "#{pane_active}") == "1"
    assert (pane["width"], pane["height"]) == size


async def test_sizes_of_new_panes(server: Server, tools: Tools) -> None:
    made = await tools("create_session", width=200, height=50)
    pane = await tools("split_window", pane_id=made["pane_id"], size=10)
    assert (pane["width"], pane["height"]) == (200, 10)
    pane = await tools("split_window", pane_id=pane["pane_id"], direction="left", percent=25, select=True)
    assert (pane["width"], pane["height"]) == (50, 10)
    assert await shown(server, pane["pane_id"], "#{pane_active}") == "1"
    with pytest.raises(InvalidArgument, match="one of them"):
        await tools("split_window", pane_id=made["pane_id"], size=10, percent=10)
    tiny = await tools("split_window", pane_id=made["pane_id"], size=1)
    with pytest.raises(NoSpace, match="resize_window"):
        await tools("split_window", pane_id=tiny["pane_id"])


async def test_windows_open_behind_unless_selected(server: Server, tools: Tools) -> None:
    made = await tools("create_session", name="work")
    behind = await tools("create_window", session="work")
    assert await shown(server, behind["pane_id"], "#{window_active}") == "0"
    before = await tools("create_window", session=made["session_id"], select=True)
    assert await shown(server, before["pane_id"], "#{window_active}") == "1"
    assert {behind["session_id"], before["session_id"]} == {made["session_id"]}


async def test_a_missing_target_is_not_found(tools: Tools) -> None:
    for there in ("no server", "a server"):
        for name, target in (
            ("create_window", {"session": "nothing"}),
            ("create_window", {"session": "$99"}),
            ("split_window", {"pane_id": "%99"}),
            ("respawn_pane", {"pane_id": "%99", "kill": True}),
        ):
            with pytest.raises(NotFound):
                await tools(name, **target)
        await tools("create_session", name=there)


async def test_a_cursor_is_the_beginning_of_the_output(server: Server, tools: Tools) -> None:
    made = await tools("create_session")
    row = await tools("respawn_pane", pane_id=made["pane_id"], command="echo one; exec cat", kill=True)
    for result in (
        made,
        row,
        await tools("create_window", session=made["session_id"]),
        await tools("split_window", pane_id=made["pane_id"]),
    ):
        cursor = Cursor.decode(result["cursor"])
        assert (f"%{cursor.pane}", cursor.row, cursor.prints) == (result["pane_id"], 0, ())


async def test_respawn_needs_kill_while_the_program_runs(server: Server, tools: Tools) -> None:
    made = await tools("create_session")
    pid = await shown(server, made["pane_id"], "#{pane_pid}")
    with pytest.raises(InvalidArgument, match="kill=true"):
        await tools("respawn_pane", pane_id=made["pane_id"])
    assert await shown(server, made["pane_id"], "#{pane_pid}") == pid
    server.terminal.memory(made["pane_id"]).prompted = True
    row = await tools("respawn_pane", pane_id=made["pane_id"], kill=True)
    assert str(row["pid"]) == await shown(server, made["pane_id"], "#{pane_pid}") != pid
    assert not server.terminal.memory(made["pane_id"]).prompted
    assert tools.touched == [made["pane_id"]]


async def test_a_dead_pane_is_revived(server: Server, tools: Tools) -> None:
    made = await tools("create_session")
    await server.tmux("set-option", "-w", "-t", made["window_id"], "remain-on-exit", "on")
    await tools("respawn_pane", pane_id=made["pane_id"], command="echo out; exit 3", kill=True)
    # Not its status: tmux 3.3a can lose that.
    await until_shown(server, made["pane_id"], "#{pane_dead}", "1")
    row = await tools("respawn_pane", pane_id=made["pane_id"], command="exec cat -; '#{pid}';")
    assert "dead" not in row
    await until_shown(server, made["pane_id"], "#{pane_current_command}", "cat")


async def test_a_command_may_end_at_once(server: Server, tools: Tools) -> None:
    made = await tools("create_session")
    keeper = await tools("create_window", session=made["session_id"])
    row = await tools("respawn_pane", pane_id=made["pane_id"], command="true", kill=True)
    assert row["path"] == os.getcwd()
    assert await shown(server, keeper["pane_id"], "#{pane_dead}") == "0"


async def test_a_pane_that_closes_at_once_is_told() -> None:
    made = answers(pid="1", start_time="2", pane_id="%3", window_width="200", window_height="50")
    tools = faked(made, Output(1, b"", "can't find pane: %3\n"))
    with pytest.raises(PaneGone, match="default-command") as caught:
        await tools("create_session")
    assert caught.value.details == {"pane_id": "%3"}


async def test_a_size_that_tmux_ignored_is_set_afterwards() -> None:
    there = {"pane_id": "%3", "window_id": "@3", "pane_current_path": os.getcwd()}
    tools = faked(
        answers(**there, pid="1", start_time="2", window_width="80", window_height="23"),
        answers(**there, window_width="200", window_height="50"),
    )
    made = await tools("create_session")
    assert (made["width"], made["height"]) == (200, 50)
    runner = tools.terminal.client.runner
    assert isinstance(runner, FakeRunner)
    assert "resize-window -t @3 -x 200 -y 50 ;" in " ".join(runner.calls[1].argv)


async def test_our_own_pane_is_not_respawned(
    server: Server, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await tools("create_session")
    pid = await shown(server, made["pane_id"], "#{pid}")
    monkeypatch.setenv("TMUX", f"{server.client.socket.path},{pid},0")
    monkeypatch.setenv("TMUX_PANE", made["pane_id"])
    before = await shown(server, made["pane_id"], "#{pane_pid}")
    with pytest.raises(SelfKill):
        await tools("respawn_pane", pane_id=made["pane_id"], kill=True)
    assert await shown(server, made["pane_id"], "#{pane_pid}") == before


async def test_a_new_server_begins_without_memories(server: Server, tools: Tools) -> None:
    first = await tools("create_session")
    server.terminal.remember(first["pane_id"], "old")
    await server.tmux("kill-server")
    second = await tools("create_session")
    assert second["pane_id"] == first["pane_id"]
    assert not server.terminal.memory(second["pane_id"]).typed


async def test_creation_takes_one_process(server: Server, tools: Tools) -> None:
    made = await tools("create_session")
    count = 0
    run = server.client.runner.run

    async def counted(*args: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        return await run(*args, **options)

    server.client.runner.run = counted  # type: ignore[method-assign]
    await tools("create_session")
    await tools("create_window", session=made["session_id"])
    pane = await tools("split_window", pane_id=made["pane_id"])
    await tools("respawn_pane", pane_id=pane["pane_id"], kill=True)
    assert count == 4 if os.path.exists("/proc/self/cwd") else count <= 12


def faked(*replies: Reply) -> Tools:
    """Tools whose tmux gives these replies."""
    return Tools(Terminal(Client(FakeRunner(*replies), resolve("path:/s", {}), "tmux")))


def answers(**values: str) -> Callable[[Invocation], str]:
    """A reply with a row of these values, by the names of tmux's formats; the rest is 0."""

    def reply(call: Invocation) -> str:
        (asked,) = (arg for arg in call.argv if re.fullmatch(r"([0-9a-f]{16})<.*\1>", arg))
        return re.sub(r"#\{(\w+)\}", lambda name: values.get(name[1], "0"), asked) + "\n"

    return reply


async def shown(server: Server, pane_id: str, format: str) -> str:
    return (await server.tmux("display-message", "-p", "-t", pane_id, format)).removesuffix("\n")


async def until_shown(server: Server, pane_id: str, format: str, value: str) -> None:
    with anyio.fail_after(20):
        while await shown(server, pane_id, format) != value:
            await anyio.sleep(0.01)


async def cwd(server: Server, pane_id: str) -> str:
    """The working directory of a pane's program, as the system tells it."""
    return await shown(server, pane_id, "#{pane_current_path}")
