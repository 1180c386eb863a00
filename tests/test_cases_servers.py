"""Servers and environments: what went wrong between agents and terminals, case by case, through a client."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp.types import TextResourceContents

from tests.conftest import TMUX
from tests.session import (
    PROGRAM,
    Place,
    Result,
    Session,
    connected,
    meanwhile,
    own_session,
    place,
    said,
    together,
    until,
)


@pytest.fixture(scope="module")
async def session() -> AsyncIterator[Session]:
    async with own_session() as session:
        yield session


async def capabilities(session: Session) -> Result:
    (content,) = (await session.client.read_resource("tmux://capabilities", cache_mode="bypass")).contents
    assert isinstance(content, TextResourceContents)
    document: Result = json.loads(content.text)
    return document


def server_pid(session: Session) -> int:
    return int(session.tmux("display-message", "-p", "#{pid}"))


async def test_c89_no_tmux_server_yet() -> None:
    """Everything can be asked before a tmux server runs, and asking starts none."""
    with place() as made:
        async with connected(made) as session:
            assert len((await session.client.list_tools()).tools) == 47
            assert await session.call("list_sessions") == {"sessions": []}
            assert await session.call("list_windows") == {"windows": []}
            assert await session.call("list_panes") == {"panes": []}
            assert (await session.call("search_panes", pattern="x"))["matches"] == []
            assert (await session.call("get_server_info"))["running"] is False
            for tool, arguments, code in (
                ("show_option", {"name": "status", "scope": "session"}, "no_server"),
                ("signal_channel", {"channel": "x"}, "no_server"),
                ("run_shell_command", {"pane_id": "%0", "command": "true"}, "not_found"),
                ("wait_for_text", {"pane_id": "%0"}, "not_found"),
                ("kill_session", {"session": "$0"}, "not_found"),
            ):
                refusal = await session.refusal(tool, **arguments)
                assert refusal["code"] == code
                assert "create_session" in refusal["message"]
            assert not made.socket.exists()
            assert said(await session.run(await session.pane(), "echo up")) == ("completed", 0, "up")


def program(directory: Path, text: str) -> str:
    """A program that stands in for tmux."""
    path = directory / "tmux"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("tmux", ["missing", "not on PATH", "no program", "too old", "something else"])
async def test_c89_tmux_that_cannot_be_used(tmux: str) -> None:
    """Without a usable tmux a client connects and lists tools; each call names the cause and the remedy."""
    with place() as made:
        unusable: dict[str, tuple[dict[str, str | None], str]] = {
            "missing": ({"TMUXMCP_TMUX_BIN": "/nonexistent/tmux"}, "/nonexistent/tmux"),
            "not on PATH": ({"TMUXMCP_TMUX_BIN": None, "PATH": "/nonexistent"}, "tmux"),
            "no program": ({"TMUXMCP_TMUX_BIN": str(made.work)}, str(made.work)),
            "too old": ({"TMUXMCP_TMUX_BIN": program(made.work, "echo tmux 2.9a")}, "2.9a"),
            "something else": ({"TMUXMCP_TMUX_BIN": program(made.home, "echo 1; exit 1")}, "tmux"),
        }
        environ, cause = unusable[tmux]
        async with connected(made, **environ) as session:
            assert len((await session.client.list_tools()).tools) == 47
            document = await capabilities(session)
            assert document["tmux_usable"] is False
            assert any(cause in warning for warning in document["warnings"])
            for tool, arguments in (
                ("list_sessions", {}),
                ("create_session", {}),
                ("run_shell_command", {"pane_id": "%0", "command": "true"}),
                ("wait_for_text", {"pane_id": "%0"}),
            ):
                refusal = await session.refusal(tool, **arguments)
                assert refusal["code"] == "tmux_unusable"
                assert cause in refusal["message"]
                assert "TMUXMCP_TMUX_BIN" in refusal["message"]


async def test_c91_a_server_that_is_started_inside_tmux() -> None:
    """The tmux around the server is out of reach: its sessions are not seen, and not touched."""
    with place() as outside, place() as made:
        outside.tmux("new-session", "-d", "-s", "private", start=True)
        pid = outside.tmux("display-message", "-p", "#{pid}").strip()
        environ = {
            "TMUX": f"{outside.socket},{pid},0",
            "TMUX_PANE": "%0",
            "TMUX_TMPDIR": str(outside.directory),
        }
        async with connected(made, **environ) as session:
            assert "pane %0 of another tmux server" in (session.client.instructions or "")
            assert await session.call("list_sessions") == {"sessions": []}
            created = await session.call("create_session", name="mine")
            pane = created["pane_id"]
            names = said(await session.run(pane, f"{TMUX} list-sessions -F '#{{session_name}}'"))
            assert names == ("completed", 0, "mine")
            assert "is_caller" not in await session.call("get_pane_info", pane_id=pane)
            await session.call("kill_session", session="mine")
        assert outside.tmux("list-sessions", "-F", "#{session_name}") == "private\n"


async def test_c92_a_server_in_a_pane_of_the_same_tmux() -> None:
    """What holds the server itself is not ended by a direct call, however it is named; all else is."""
    with place() as made:
        made.tmux("new-session", "-d", "-s", "home", start=True)
        pid = made.tmux("display-message", "-p", "#{pid}").strip()
        async with connected(made, TMUX=f"{made.socket},{pid},0", TMUX_PANE="%0") as session:
            assert (await session.call("get_pane_info", pane_id="%0"))["is_caller"] is True
            for tool, arguments in (
                ("kill_pane", {"pane_id": "%0"}),
                ("kill_window", {"window_id": "@0"}),
                ("kill_session", {"session": "$0"}),
                ("kill_session", {"session": "home"}),
                ("respawn_pane", {"pane_id": "%0", "kill": True}),
            ):
                refusal = await session.refusal(tool, **arguments)
                assert refusal["code"] == "self_kill_refused"
                assert "this MCP server itself runs in" in refusal["message"]
            for tool in ("kill_pane", "kill_window", "kill_session", "respawn_pane", "send_keys"):
                refusal = await session.refusal(tool)
                assert refusal["code"] == "invalid_argument"
                assert "is missing" in refusal["message"]
            beside = await session.call("split_window", pane_id="%0")
            gone = await session.call("kill_pane", pane_id=beside["pane_id"])
            assert gone["pane_ids"] == [beside["pane_id"]]
        assert made.tmux("list-panes", "-a", "-F", "#{pane_id}") == "%0\n"


async def test_c93_the_tmux_server_dies_during_calls() -> None:
    """Each call under way ends at once and says so; afterwards everything can begin anew."""
    async with own_session() as session:
        ran, waiting = await session.pane(), await session.pane()
        await session.prompt(ran)
        await session.prompt(waiting)
        died: list[float] = []

        async def kill() -> None:
            await session.runs(ran, "sleep")
            await until(lambda: any("wait-for" in client for client in session.place.clients()))
            os.kill(server_pid(session), signal.SIGKILL)
            died.append(time.monotonic())

        async def outcome(tool: str, **arguments: object) -> str:
            answer = await session.call(tool, timeout=30, **arguments)
            assert time.monotonic() - died[0] < 5
            return str(answer["outcome"])

        calls = together(
            outcome("run_shell_command", pane_id=ran, command="sleep 60"),
            outcome("wait_for_text", pane_id=waiting, patterns=["never"]),
            outcome("wait_for_channel", channel="never"),
        )
        assert await meanwhile(calls, kill()) == ["server_gone"] * 3
        assert await session.call("list_sessions") == {"sessions": []}
        assert (await session.refusal("capture_pane", pane_id=ran))["code"] == "not_found"
        assert said(await session.run(await session.pane(), "echo anew")) == ("completed", 0, "anew")


async def test_c93_the_tmux_server_dies_between_calls() -> None:
    """A server that is gone is as good as none: what was there is not found, and a new one can be started."""
    async with own_session() as session:
        pid, pane = server_pid(session), await session.pane()
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not _alive(pid))
        refusal = await session.refusal("run_shell_command", pane_id=pane, command="true")
        assert refusal["code"] == "not_found"
        assert "create_session" in refusal["message"]
        assert said(await session.run(await session.pane(), "echo anew")) == ("completed", 0, "anew")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_pane_that_goes_during_a_wait(session: Session) -> None:
    """A wait ends when what it waits on is gone, and says which."""
    pane = await session.pane()
    await session.prompt(pane)
    waited = await meanwhile(
        session.call("wait_for_text", pane_id=pane, patterns=["never"], timeout=30),
        session.call("send_keys", pane_id=pane, text="exit", enter=True),
    )
    assert waited["outcome"] == "pane_gone"
    assert waited["elapsed_seconds"] < 10


@pytest.mark.parametrize(
    "layout", ["vertical", "-o", "", "tiled;", "bb62,80x24,0,0{40x24,0,0,0,39x24,41,0,1}", "x" * 900]
)
async def test_c97_a_layout_that_is_none(session: Session, layout: str) -> None:
    """tmux never sees a layout that it may crash on; the refusal names those that there are."""
    pid = server_pid(session)
    refusal = await session.refusal("select_layout", window_id="@0", layout=layout)
    assert refusal["code"] == "invalid_argument"
    assert "even-horizontal" in refusal["message"]
    assert server_pid(session) == pid


async def test_c98_a_flood_is_respawned(session: Session) -> None:
    """A pane can be restarted amid a flood of output; no client of ours lags behind, since none stays."""
    pid, pane = server_pid(session), await session.pane()
    await session.prompt(pane)
    await session.call("send_keys", pane_id=pane, text="yes 0123456789", enter=True)
    await session.shows(pane, "0123456789\n" * 40)
    assert session.tmux("list-clients") == ""
    await session.call("respawn_pane", pane_id=pane, kill=True)
    assert said(await session.run(pane, "echo calm")) == ("completed", 0, "calm")
    assert server_pid(session) == pid


HOSTILE = """
set -g base-index 5
set -g pane-base-index 3
set -g default-command 'echo hostile; exec sh'
set -g remain-on-exit on
set -g mouse on
set -g status on
set -g history-limit 7
set -g set-titles on
set -s command-alias[100] 'list-sessions=run-shell "touch HIT"'
set-hook -g after-new-session 'run-shell "touch HIT"'
set-hook -g after-send-keys 'run-shell "touch HIT"'
"""


def hostile(made: Place) -> Path:
    """A configuration that gets in the way; the file that it makes when it is heeded."""
    hit = made.directory / "hit"
    (made.home / ".tmux.conf").write_text(HOSTILE.replace("HIT", str(hit)))
    return hit


async def test_c100_the_users_configuration_on_our_socket() -> None:
    """A tmux server that we start heeds the packaged configuration only."""
    with place() as made:
        hit = hostile(made)
        async with connected(made) as session:
            created = await session.call("create_session", name="clean")
            (window,) = (await session.call("list_windows", session="clean"))["windows"]
            assert window["index"] == 0
            assert said(await session.run(created["pane_id"], "seq 100")) == (
                "completed",
                0,
                "\n".join(map(str, range(1, 101))),
            )
            option = await session.call("show_option", name="mouse", scope="session")
            assert option["value"] == "off"
            assert (await session.call("get_server_info"))["configuration_provenance"] == "minimal"
        assert not hit.exists()


async def test_c100_the_users_configuration_when_it_is_asked_for() -> None:
    """With the user's configuration things still work, and it is disclosed that it is in force."""
    with place() as made:
        hit = hostile(made)
        async with connected(made, TMUXMCP_TMUX_CONFIG="user") as session:
            for tool in (await session.client.list_tools()).tools:
                assert tool.annotations is not None
                assert (tool.annotations.read_only_hint, tool.annotations.destructive_hint) == (False, True)
            created = await session.call("create_session", name="theirs")
            (window,) = (await session.call("list_windows", session="theirs"))["windows"]
            assert window["index"] == 5
            assert said(await session.run(created["pane_id"], "echo works")) == ("completed", 0, "works")
            assert (await capabilities(session))["configuration_provenance"] == "user"
        assert await until(hit.exists)


async def test_c100_the_users_own_server() -> None:
    """On the user's server hooks and aliases are counted, hints are careful, and teardown is off."""
    with place() as made:
        hostile(made)
        directory = made.directory / f"tmux-{os.getuid()}"
        directory.mkdir(mode=0o700)
        made.socket = directory / "default"
        made.tmux("-f", str(made.home / ".tmux.conf"), "new-session", "-d", "-s", "theirs", start=True)
        environ = {"TMUXMCP_SOCKET": "inherit", "TMUX_TMPDIR": str(made.directory), "TMUXMCP_TOOLSETS": None}
        async with connected(made, **environ) as session:
            tools = (await session.client.list_tools()).tools
            assert "kill_session" not in [tool.name for tool in tools]
            for tool in tools:
                assert tool.annotations is not None
                assert (tool.annotations.read_only_hint, tool.annotations.destructive_hint) == (False, True)
            document = await capabilities(session)
            assert (document["server_state"], document["configuration_provenance"]) == ("existing", "unknown")
            assert document["ambient"] == {"state": "active", "hooks": 2, "aliases": 1}
            assert any("inherited" in warning for warning in document["warnings"])
            assert [row["session"] for row in (await session.call("list_panes"))["panes"]] == ["theirs"]


# Errors that people meet


async def test_a_shell_that_does_not_get_ready(session: Session) -> None:
    """A run whose shell is not ready in time says that nothing was typed, why, and what to do."""
    profile = session.place.home / ".bash_profile"
    profile.write_text("echo 'still starting'; sleep 30\n")
    try:
        pane = await session.pane()
        answer = await session.run(pane, "echo never", timeout=1)
    finally:
        profile.unlink()
    assert answer["outcome"] == "not_started"
    assert answer["still_running"] is False
    assert "Nothing was typed" in answer["note"]
    assert "still starting" in answer["note"]
    assert "snapshot_pane" in answer["note"]
    assert "never" not in session.screen(pane)


async def test_a_socket_directory_that_cannot_be_written() -> None:
    """Where no socket can be made, creating a session says so and names the setting."""
    with place() as made:
        locked = made.directory / "locked"
        locked.mkdir(mode=0o500)
        # Root may write anywhere but on file systems that take no files.
        path = "/sys/s" if os.geteuid() == 0 else f"{locked}/s"
        async with connected(made, TMUXMCP_SOCKET=f"path:{path}") as session:
            assert len((await session.client.list_tools()).tools) == 47
            refusal = await session.refusal("create_session")
            assert refusal["code"] == "tmux_unusable"
            assert path in refusal["message"]
            assert "TMUXMCP_SOCKET" in refusal["message"]


async def test_a_missing_socket_directory() -> None:
    """It is told at the start, and by the call that would need it."""
    with place() as made:
        async with connected(made, TMUXMCP_SOCKET="path:/nonexistent/directory/s") as session:
            (warning,) = (await capabilities(session))["warnings"]
            refusal = await session.refusal("create_session")
            for text in (warning, refusal["message"]):
                assert "/nonexistent/directory" in text
                assert "TMUXMCP_SOCKET" in text


async def test_an_audit_file_that_cannot_grow() -> None:
    """A full disk costs the record one line on standard error, and no call."""
    with place() as made:
        limited = ("sh", "-c", 'ulimit -f 16; exec "$@"', "sh", *PROGRAM)
        async with connected(made, *limited) as session:
            for _ in range(40):
                await session.call("list_sessions")
            assert said(await session.run(await session.pane(), "echo on")) == ("completed", 0, "on")
        assert made.audit.stat().st_size <= 16 * 1024
        (line,) = [line for line in made.errors.read_text().splitlines() if not line.startswith("{")]
        assert f"no audit event could be written to {made.audit} (" in line
        assert "Calls go on" in line


async def test_an_audit_device_that_is_full() -> None:
    """The same for a device that takes nothing."""
    with place() as made:
        async with connected(made, TMUXMCP_AUDIT="path:/dev/full") as session:
            for _ in range(3):
                await session.call("list_sessions")
        (line,) = [line for line in made.errors.read_text().splitlines() if not line.startswith("{")]
        assert "/dev/full" in line
        assert "Calls go on" in line
