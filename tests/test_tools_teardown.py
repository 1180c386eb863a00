"""What the teardown tools end, what they say is gone, and what they refuse. tmux itself is the witness."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.calls import Tools
from tests.conftest import TMUX
from tests.sinks import IDS, Server
from tmuxmcp.errors import InvalidArgument, NotFound, ProvenanceUnknown, SelfKill
from tmuxmcp.settings import Settings
from tmuxmcp.terminal.panes import Terminal
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.command import command
from tmuxmcp.tmux.runner import ProcessRunner
from tmuxmcp.tmux.socket import Socket

KILLS = [("kill_pane", "pane_id"), ("kill_window", "window_id"), ("kill_session", "session")]
ALL = [("clear_pane_scrollback", "pane_id"), *KILLS]


@pytest.fixture
def server(socket_path: Path) -> Server:
    return Server(socket_path)


@pytest.fixture
def tools(server: Server) -> Tools:
    return Tools(server.terminal)


Ids = dict[str, str]


async def session(server: Server, name: str) -> Ids:
    return await made(server, "new-session", "-s", name)


async def made(server: Server, new: str, *args: str) -> Ids:
    """What `new` created: its ids, `session` being the session's."""
    answer = await server.tmux(
        new, "-d", "-P", "-F", "#{session_id} #{window_id} #{pane_id}", *args, "exec cat"
    )
    return dict(zip(("session", "window_id", "pane_id"), answer.split(), strict=True))


@pytest.fixture
async def base(server: Server) -> Ids:
    """A session that the tests leave alone, so that the server stays."""
    row = (
        await server.client.start(command("new-session", "-d", "-s", "base", "exec cat"), template=IDS)
    ).row
    return {"session": row["session_id"], "window_id": row["window_id"], "pane_id": row["pane_id"]}


async def there(server: Server, what: str) -> set[str]:
    """The ids of all panes, windows or sessions."""
    listing = ("list-sessions",) if what == "session" else ("list-panes", "-a")
    return set((await server.tmux(*listing, "-F", f"#{{{what}_id}}")).split())


async def test_a_pane_among_others(server: Server, tools: Tools, base: Ids) -> None:
    split = await made(server, "split-window", "-t", base["pane_id"])
    gone = await tools("kill_pane", pane_id=split["pane_id"])
    assert gone == {"pane_ids": [split["pane_id"]], "server_exited": False}
    assert tools.touched == [split["pane_id"]]
    assert await there(server, "pane") == {base["pane_id"]}


async def test_the_last_pane_of_a_window(server: Server, tools: Tools, base: Ids) -> None:
    window = await made(server, "new-window", "-t", "base:")
    gone = await tools("kill_pane", pane_id=window["pane_id"])
    assert gone == {
        "pane_ids": [window["pane_id"]],
        "window_ids": [window["window_id"]],
        "server_exited": False,
    }
    assert tools.touched == [window["pane_id"], window["window_id"]]


async def test_the_last_pane_of_a_session(server: Server, tools: Tools, base: Ids) -> None:
    other = await session(server, "other")
    gone = await tools("kill_pane", pane_id=other["pane_id"])
    assert (gone["session_ids"], gone["server_exited"]) == ([other["session"]], False)
    assert await there(server, "session") == {base["session"]}


async def test_a_window_with_its_panes(server: Server, tools: Tools, base: Ids) -> None:
    window = await made(server, "new-window", "-t", "base:")
    split = await made(server, "split-window", "-t", window["pane_id"])
    gone = await tools("kill_window", window_id=window["window_id"])
    assert set(gone["pane_ids"]) == {window["pane_id"], split["pane_id"]}
    assert gone["window_ids"] == [window["window_id"]]
    assert "session_ids" not in gone


async def test_a_window_goes_from_every_session_that_has_it(server: Server, tools: Tools, base: Ids) -> None:
    other = await session(server, "other")
    await server.tmux("link-window", "-d", "-s", other["window_id"], "-t", "base:7")
    gone = await tools("kill_window", window_id=other["window_id"])
    assert gone == {
        "pane_ids": [other["pane_id"]],
        "window_ids": [other["window_id"]],
        "session_ids": [other["session"]],
        "server_exited": False,
    }
    assert await there(server, "window") == {base["window_id"]}


@pytest.mark.parametrize("by", ["id", "name"])
async def test_a_session_with_its_windows(server: Server, tools: Tools, base: Ids, by: str) -> None:
    other = await session(server, 'it\'s; "q" 日本;')
    window = await made(server, "new-window", "-t", f"{other['session']}:")
    gone = await tools("kill_session", session=other["session"] if by == "id" else 'it\'s; "q" 日本;')
    assert set(gone["pane_ids"]) == {other["pane_id"], window["pane_id"]}
    assert set(gone["window_ids"]) == {other["window_id"], window["window_id"]}
    assert gone["session_ids"] == [other["session"]]
    assert set(tools.touched) == {*gone["pane_ids"], *gone["window_ids"], other["session"]}
    assert await there(server, "session") == {base["session"]}


async def test_what_another_session_shares_stays(server: Server, tools: Tools, base: Ids) -> None:
    grouped = (await server.tmux("new-session", "-d", "-P", "-F", "#{session_id}", "-t", "=base")).strip()
    own = await session(server, "own")
    await server.tmux("link-window", "-d", "-s", base["window_id"], "-t", "own:7")
    assert await tools("kill_session", session=grouped) == {"session_ids": [grouped], "server_exited": False}
    gone = await tools("kill_session", session="own")
    assert (gone["pane_ids"], gone["window_ids"]) == ([own["pane_id"]], [own["window_id"]])
    assert await there(server, "pane") == {base["pane_id"]}


@pytest.mark.parametrize(("tool", "parameter"), KILLS)
async def test_the_server_exits_with_its_last_session(
    server: Server, tools: Tools, base: Ids, tool: str, parameter: str
) -> None:
    for _ in range(5):
        ids = await session_after_exit(server)
        gone = await tools(tool, **{parameter: ids[parameter]})
        assert (gone["session_ids"], gone["server_exited"]) == ([ids["session"]], True)


async def session_after_exit(server: Server) -> Ids:
    row = (await server.client.start(command("new-session", "-d", "exec cat"), template=IDS)).row
    for other in await there(server, "session") - {row["session_id"]}:
        await server.tmux("kill-session", "-t", other)
    return {"session": row["session_id"], "window_id": row["window_id"], "pane_id": row["pane_id"]}


async def test_a_server_that_stays_when_empty_does_not_exit(server: Server, tools: Tools, base: Ids) -> None:
    await server.tmux("set-option", "-s", "exit-empty", "off")
    gone = await tools("kill_session", session="base")
    assert (gone["session_ids"], gone["server_exited"]) == ([base["session"]], False)
    assert (await server.tmux("list-sessions")).strip() == ""


async def test_history_above_the_screen(server: Server, tools: Tools, base: Ids) -> None:
    sink = await server.sink(says="line\n" * 100)
    history = int(await server.tmux("display-message", "-p", "-t", sink.pane_id, "#{history_size}"))
    assert history > 50
    await server.tmux("copy-mode", "-t", sink.pane_id)
    cleared = await tools("clear_pane_scrollback", pane_id=sink.pane_id)
    assert cleared == {"pane_id": sink.pane_id, "lines": history, "server_exited": False}
    assert await tools("clear_pane_scrollback", pane_id=sink.pane_id) == {**cleared, "lines": 0}
    after = await server.tmux("display-message", "-p", "-t", sink.pane_id, "#{history_size} #{pane_in_mode}")
    assert after.split() == ["0", "0"]
    assert "line" in await server.tmux("capture-pane", "-p", "-t", sink.pane_id)


@pytest.mark.parametrize(("tool", "parameter"), ALL)
async def test_what_does_not_exist(server: Server, tools: Tools, tool: str, parameter: str) -> None:
    missing = {"pane_id": "%99", "window_id": "@99", "session": "$99"}[parameter]
    with pytest.raises(NotFound):  # no server yet
        await tools(tool, **{parameter: missing})
    ids = await session_after_exit(server)
    with pytest.raises(NotFound):
        await tools(tool, **{parameter: missing})
    assert await there(server, "pane") == {ids["pane_id"]}


@pytest.mark.parametrize(
    "session",
    ["bas", "b*", "base:", "=base", "", ":", ".", "$", "@0", "%0", "!", "+", "{last}", "base:0", "base.0"],
)
async def test_only_the_exact_name_is_a_target(server: Server, tools: Tools, base: Ids, session: str) -> None:
    with pytest.raises((NotFound, InvalidArgument)):
        await tools("kill_session", session=session)
    assert await there(server, "session") == {base["session"]}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("kill_pane", {}),
        ("kill_window", {}),
        ("kill_session", {}),
        ("clear_pane_scrollback", {}),
        ("kill_pane", {"pane_id": "@0"}),
        ("kill_pane", {"pane_id": "%0\n"}),
        ("kill_pane", {"pane_id": "%0;"}),
        ("kill_pane", {"pane_id": "{last}"}),
        ("kill_window", {"window_id": "@"}),
        ("kill_window", {"window_id": "base:0"}),
        ("kill_pane", {"pane_id": "%0", "all": True}),
    ],
)
async def test_no_target_but_an_id(
    server: Server, tools: Tools, base: Ids, tool: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(InvalidArgument):
        await tools(tool, **arguments)
    assert await there(server, "pane") == {base["pane_id"]}


async def test_it_does_not_end_itself(
    server: Server, tools: Tools, base: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = await session(server, "mine")
    beside = await made(server, "split-window", "-t", mine["pane_id"])
    pid = (await server.client.server()).pid
    monkeypatch.setenv("TMUX", f"{server.client.socket.path},{pid},0")
    monkeypatch.setenv("TMUX_PANE", mine["pane_id"])
    for tool, parameter in KILLS:
        with pytest.raises(SelfKill, match=f"^{tool} was refused"):
            await tools(tool, **{parameter: mine[parameter]})
    with pytest.raises(SelfKill):
        await tools("kill_session", session="mine")
    await tools("clear_pane_scrollback", pane_id=mine["pane_id"])
    assert await there(server, "pane") == {mine["pane_id"], beside["pane_id"], base["pane_id"]}
    await tools("kill_pane", pane_id=beside["pane_id"])
    await tools("kill_session", session="base")
    assert await there(server, "pane") == {mine["pane_id"]}


BY_DEFAULT = Settings()
"""On the default socket, before any tmux server is there, teardown is on without being asked for."""


@pytest.mark.parametrize(("tool", "parameter"), ALL)
async def test_by_default_it_deletes_on_its_own_server_only(
    server: Server, socket_path: Path, base: Ids, tool: str, parameter: str
) -> None:
    ids = await session(server, "one")
    other_process = Client(ProcessRunner(), Socket("path", f"path:{socket_path}", str(socket_path)), TMUX)
    foreign = Tools(Terminal(other_process), BY_DEFAULT)
    with pytest.raises(ProvenanceUnknown) as caught:
        await foreign(tool, **{parameter: ids[parameter]})
    assert "TMUXMCP_TOOLSETS=inspect,manage,execute,teardown" in caught.value.message
    with pytest.raises(NotFound):
        await foreign(tool, **{parameter: "$99" if parameter == "session" else ids[parameter][0] + "99"})
    assert ids["pane_id"] in await there(server, "pane")
    await Tools(Terminal(other_process))(tool, **{parameter: ids[parameter]})
    ids = await session(server, "two")
    await Tools(server.terminal, BY_DEFAULT)(tool, **{parameter: ids[parameter]})


async def test_a_server_that_took_the_place_of_ours_is_not_ours(
    server: Server, socket_path: Path, base: Ids
) -> None:
    tools = Tools(server.terminal, BY_DEFAULT)
    assert (await tools("kill_session", session="base"))["server_exited"]
    with anyio.fail_after(10):
        # On its way out it may still take a session.
        while (
            b"no server"
            not in (await anyio.run_process([TMUX, "-S", socket_path, "has-session"], check=False)).stderr
        ):
            await anyio.sleep(0.02)
    await anyio.run_process([TMUX, "-S", socket_path, "new-session", "-d", "cat"])
    with pytest.raises(ProvenanceUnknown):
        await tools("kill_pane", pane_id="%0")
    assert await there(server, "pane") == {"%0"}


@pytest.mark.parametrize(("tool", "parameter"), ALL)
async def test_one_process_for_each_call(
    server: Server, tools: Tools, base: Ids, tool: str, parameter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await session(server, "one")
    started = []
    run = server.client.runner.run

    async def counted(argv: Any, **how: Any) -> Any:
        started.append(argv)
        return await run(argv, **how)

    monkeypatch.setattr(server.client.runner, "run", counted)
    await tools(tool, **{parameter: ids[parameter]})
    assert len(started) == 1


async def test_a_hook_that_prints_is_no_answer(server: Server, tools: Tools, base: Ids) -> None:
    await server.tmux("set-hook", "-g", "after-kill-pane", "display-message -p '%0 @0 $0'")
    await server.tmux("set-hook", "-g", "after-display-message", "list-sessions")
    split = await made(server, "split-window", "-t", base["pane_id"])
    gone = await tools("kill_pane", pane_id=split["pane_id"])
    assert gone == {"pane_ids": [split["pane_id"]], "server_exited": False}
