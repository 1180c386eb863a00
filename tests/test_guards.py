"""The pane that this process lives in is known, and refusals are decided where tmux acts."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from tests.conftest import TMUX
from tmuxmcp.errors import NoServer, ProvenanceUnknown, SelfKill, ServerGone, ToolError
from tmuxmcp.terminal.guards import Caller, Guard, Scope, caller, caller_pane, foreign_server, self_kill
from tmuxmcp.tmux.client import Client, Server
from tmuxmcp.tmux.command import Arg, command, target
from tmuxmcp.tmux.records import Template
from tmuxmcp.tmux.runner import ProcessRunner
from tmuxmcp.tmux.socket import Socket

IDS = Template(session="#{session_id}", window="#{window_id}", pane="#{pane_id}", server="#{pid}")
ANSWER = Template(refused="#{@refused}")

REPORT = """
import asyncio, os, sys
from tmuxmcp.terminal.guards import caller_pane
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.runner import ProcessRunner
from tmuxmcp.tmux.socket import Socket
for name in sys.argv[4:]:
    if name == "daemon":
        if os.fork():
            os._exit(0)
        os.setsid()
    else:
        del os.environ[name]
while "daemon" in sys.argv and os.getppid() != 1:
    pass
client = Client(ProcessRunner(), Socket("path", "path:" + sys.argv[2], sys.argv[2]), sys.argv[1])
found = asyncio.run(caller_pane(client, os.environ))
with open(sys.argv[3] + "~", "w") as file:
    file.write(str(found))
os.rename(sys.argv[3] + "~", sys.argv[3])
"""


def client_on(path: Path) -> Client:
    return Client(ProcessRunner(), Socket("path", f"path:{path}", str(path)), TMUX)


@pytest.fixture
async def client(socket_path: Path) -> AsyncIterator[Client]:
    client = client_on(socket_path)
    yield client
    with suppress(NoServer, ServerGone):
        await client.call(command("kill-server"))


async def new_session(client: Client, name: str, *more: str) -> dict[str, str]:
    new = command("new-session", "-d", "-s", Arg("-s", name), *more, "exec cat")
    return (await client.start(new, template=IDS)).row


async def report(client: Client, tmp_path: Path, *options: str) -> tuple[str, str]:
    """What a process in a new pane says about where it lives, and that pane."""
    script, found = tmp_path / "report.py", tmp_path / "found"
    script.write_text(REPORT)
    found.unlink(missing_ok=True)
    root = Path(__file__).parent.parent
    line = (
        f"PYTHONPATH={root} {sys.executable} {script} {TMUX} {client.socket.path} {found} {' '.join(options)}"
    )
    listing = command("new-window", "-d", f"{line}; exec cat")
    pane = (await client.rows(listing=listing, template=IDS))[0]["pane"]
    with anyio.fail_after(20):
        while not found.exists():
            await anyio.sleep(0.05)
    return found.read_text(), pane


async def test_a_process_knows_its_pane_by_its_environment(client: Client, tmp_path: Path) -> None:
    await new_session(client, "base")
    said, pane = await report(client, tmp_path, "daemon")
    assert said == pane


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="the system has no /proc")
async def test_a_process_knows_its_pane_by_its_parents(client: Client, tmp_path: Path) -> None:
    await new_session(client, "base")
    said, pane = await report(client, tmp_path, "TMUX", "TMUX_PANE")
    assert said == pane


async def test_a_process_without_both_knows_nothing(client: Client, tmp_path: Path) -> None:
    await new_session(client, "base")
    said, _ = await report(client, tmp_path, "daemon", "TMUX")
    assert said == "None"


async def test_the_environment_counts_for_the_pinned_server_only(client: Client, tmp_path: Path) -> None:
    ids = await new_session(client, "base")
    path, link = client.socket.path, tmp_path / "link"
    link.symlink_to(path)
    server, pane = ids["server"], ids["pane"]

    async def found(tmux: str, pane: str) -> str | None:
        return await caller_pane(client, {"TMUX": tmux, "TMUX_PANE": pane})

    assert await found(f"{path},{server},0", pane) == pane
    assert await found(f"{link},{server},0", pane) == pane
    assert await found(f"{path},{int(server) + 1},0", pane) is None
    assert await found(f"{path}x,{server},0", pane) is None
    assert await found(f"{path},{server},0", f"{pane}0") is None
    for junk in ("", "%", "0", "%0}", "%x", "@0", "%0,"):
        assert await found(f"{path},{server},0", junk) is None
    for junk in ("", ",", ",,", path, f"{path},,", f"{path},#{{pid}},0"):
        assert await found(junk, pane) is None


async def test_no_server_holds_no_pane(client: Client) -> None:
    assert await caller_pane(client, {"TMUX": f"{client.socket.path},1,0", "TMUX_PANE": "%0"}) is None


def test_finding_the_caller_asks_no_tmux() -> None:
    socket = Socket("path", "path:/tmp/a,b", "/tmp/a,b")
    found = caller(socket, {"TMUX": "/tmp/a,b,12,0", "TMUX_PANE": "%3"})
    assert (found.server_pid, found.pane_number) == ("12", "3")
    assert caller(socket, {})[:2] == ("", "")
    assert "%" not in found.format


@pytest.fixture
async def two(client: Client) -> dict[str, str]:
    """Session `mine` holds us in its first window, beside another pane; session `other` does not."""
    ids = await new_session(client, "mine")
    beside = await client.rows(
        listing=command("split-window", "-d", "-t", target(ids["pane"]), "exec cat"), template=IDS
    )
    other = await new_session(client, "other")
    return {**ids, "beside": beside[0]["pane"], "other": other["session"], "other_window": other["window"]}


async def refused(client: Client, ids: dict[str, str], scope: Scope, id: str) -> bool:
    """Whether tmux would refuse to end `id`; an act that is not refused leaves its mark."""
    us = Caller(ids["server"], ids["pane"][1:])
    guard = Guard(self_kill(us, "kill_it", scope, id))
    act = command("set-option", "-t", target(ids["other"]), "@acted", Arg("FLAG", "on"))
    answer = Template(refused=guard.format, acted="#{@acted}")
    rows = await client.rows(
        command("set-option", "-u", "-t", target(ids["other"]), "@acted"),
        guard.command(id, act),
        listing=command("display-message", "-t", target(id)),
        template=Template(refused=guard.format),
    )
    acted = await client.rows(listing=command("display-message", "-t", target(ids["other"])), template=answer)
    answered = rows[0]["refused"]
    assert acted[0]["acted"] == ("" if answered else "on")
    if answered:
        with pytest.raises(SelfKill) as caught:
            guard.check(answered)
        assert caught.value.details == {"target": id}
    return bool(answered)


async def test_what_holds_us_is_refused_and_nothing_else(client: Client, two: dict[str, str]) -> None:
    assert await refused(client, two, "pane", two["pane"])
    assert await refused(client, two, "window", two["window"])
    assert await refused(client, two, "session", two["session"])
    assert await refused(client, two, "session", "=mine:")
    assert not await refused(client, two, "pane", two["beside"])
    assert not await refused(client, two, "window", two["other_window"])
    assert not await refused(client, two, "session", two["other"])


async def test_a_window_in_two_sessions_outlives_either(client: Client, two: dict[str, str]) -> None:
    await client.call(command("link-window", "-d", "-s", two["window"], "-t", f"{two['other']}:7"))
    assert not await refused(client, two, "session", two["session"])
    assert not await refused(client, two, "session", two["other"])
    assert await refused(client, two, "window", two["window"])
    await client.call(
        command("kill-session", "-t", target(two["other"])), command("new-session", "-d", "-s", "o")
    )
    rows = await client.rows(listing=command("list-sessions"), template=IDS)
    two = {**two, "other": rows[-1]["session"]}
    assert await refused(client, two, "session", two["session"])


async def test_a_window_twice_in_one_session_ends_with_it(client: Client, two: dict[str, str]) -> None:
    await client.call(command("link-window", "-d", "-s", two["window"], "-t", f"{two['session']}:7"))
    assert await refused(client, two, "session", two["session"])


async def test_a_session_group_shares_its_windows(client: Client, two: dict[str, str]) -> None:
    group = (await client.rows(listing=command("new-session", "-d", "-t", "=mine"), template=IDS))[0][
        "session"
    ]
    assert not await refused(client, two, "session", two["session"])
    assert not await refused(client, two, "session", group)
    await client.call(command("kill-session", "-t", target(two["session"])))
    assert await refused(client, two, "session", group)


async def test_the_first_refusal_that_holds_is_raised(client: Client) -> None:
    await new_session(client, "base")
    server = await client.server()
    us = Caller("0", "0")
    cases: list[tuple[Server | None, type[ToolError] | None]] = [
        (server, None),
        (None, ProvenanceUnknown),
        (Server(server.pid + 1, server.start_time), ProvenanceUnknown),
        (Server(server.pid, server.start_time - 1), ProvenanceUnknown),
    ]
    for own, error in cases:
        guard = Guard(
            foreign_server(own, "kill_pane", "TMUXMCP_TOOLSETS=teardown"), self_kill(us, "k", "pane", "%0")
        )
        rows = await client.rows(listing=command("display-message"), template=Template(refused=guard.format))
        if error is None:
            guard.check(rows[0]["refused"])
        else:
            with pytest.raises(error, match="TMUXMCP_TOOLSETS=teardown"):
                guard.check(rows[0]["refused"])


@pytest.mark.parametrize(
    "value",
    ["a'b", 'it\'s "q" $HOME', "#{pid}", "a\nb\tc", ";", "a;", "\\", "{x}", "%if", "~", "日本 😀", ""],
)
async def test_a_guarded_act_keeps_its_values(client: Client, value: str, tmp_path: Path) -> None:
    ids = await new_session(client, "base")
    guard = Guard(foreign_server(await client.server(), "respawn_pane", ""))
    out = tmp_path / "out"
    line = f"printf %s {quoted(value)} > {out}~; mv {out}~ {out}; exec cat"
    act = command("respawn-pane", "-k", "-t", target(ids["pane"]), "--", Arg("COMMAND", line))
    await client.call(guard.command(ids["pane"], act))
    with anyio.fail_after(10):
        while not out.exists():
            await anyio.sleep(0.02)
    assert out.read_text() == value


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
