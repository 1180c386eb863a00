"""The protocol: what went wrong between clients and servers, case by case, in raw frames."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.peer import LEGACY, MODERN, Peer
from tests.session import Place, place, server
from tmuxmcp import manifest, resources

ROWS = manifest.load(resources.manifest_text())
SOON = 2.0
"""Seconds that nothing here may take; on a machine that has nothing else to do it takes a tenth."""


@contextmanager
def connected(made: Place, *, era: str = LEGACY, **environ: str | None) -> Iterator[Peer]:
    errors = os.open(made.errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with Peer(server(made, **environ), era=era, stderr=errors) as peer:
        peer.open()
        yield peer


@pytest.fixture(scope="module")
def module_place() -> Iterator[Place]:
    with place() as made:
        yield made


@pytest.fixture(scope="module")
def shared(module_place: Place) -> Iterator[Peer]:
    with connected(module_place) as peer:
        yield peer


def result(peer: Peer, tool: str, **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = peer.result(peer.call(tool, arguments))
    assert not answer.get("isError"), answer
    structured: dict[str, Any] = answer["structuredContent"]
    return structured


def until(condition: Any) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it did not come to this"
        time.sleep(0.01)


def runs(made: Place, pane: str, program: str) -> bool:
    return made.tmux("display-message", "-p", "-t", pane, "#{pane_current_command}").strip() == program


@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_c102_nothing_but_frames_on_standard_output(era: str) -> None:
    """Whatever is called and sent, and however it ends, each line is one JSON-RPC frame."""
    with place() as made, connected(made, era=era) as peer:
        pane = result(peer, "create_session")["pane_id"]
        ids = []
        for name in ROWS:
            ids.append(peer.call(name, {}))
            ids.append(peer.call(name, {"pane_id": pane, "text": "\ud800"}))
            ids.append(peer.call(name, {"nonsense": [None]}))
        peer.send(b"{nonsense\n")
        peer.send(b"\xff\xfe\n")
        ids.append(peer.call("run_shell_command", {"pane_id": pane, "command": "echo to stdout; cat"}))
        seen: set[object] = set()
        while len(seen) < len(ids) - 1:
            frame = peer.receive()
            assert frame["jsonrpc"] == "2.0"
            seen |= {frame.get("id")} & set(ids)
        until(lambda: runs(made, pane, "cat"))
        peer.process.terminate()
        for frame in peer.rest():
            assert frame["jsonrpc"] == "2.0"
        peer.end()


@pytest.mark.parametrize("sign", ["end of input", signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("busy", [True, False], ids=["busy", "idle"])
def test_c103_the_end(sign: str | signal.Signals, busy: bool) -> None:
    """The process ends soon after its client or its terminal, leaves no tmux client, keeps the sessions."""
    with place() as made, connected(made) as peer:
        pane = result(peer, "create_session", name="kept")["pane_id"]
        if busy:
            peer.call("run_shell_command", {"pane_id": pane, "command": "sleep 60"})
            peer.call("wait_for_text", {"pane_id": pane, "timeout": 60})
            peer.call("wait_for_channel", {"channel": "never", "timeout": 60})
            until(lambda: runs(made, pane, "sleep"))
        if isinstance(sign, signal.Signals):
            peer.process.send_signal(sign)
        else:
            peer.close_input()
        status, took = peer.end()
        assert took < SOON
        assert status == (0 if sign == "end of input" else status)
        until(lambda: not made.clients())
        assert made.tmux("list-sessions", "-F", "#{session_name}") == "kept\n"
        assert runs(made, pane, "sleep") is busy


PARENT = """
import subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for line in sys.stdin:
    child.stdin.write(line.encode())
    child.stdin.flush()
"""


def test_c103_a_client_that_is_killed() -> None:
    """The process ends as well when its client is killed and can tell it nothing."""
    client = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    call = {"name": "wait_for_channel", "arguments": {"channel": "never", "timeout": 60}}
    frames = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    with place() as made:
        made.tmux("new-session", "-d", "-s", "kept", start=True)
        argv = [sys.executable, "-c", PARENT, *server(made)]
        pipe = subprocess.PIPE
        with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as parent:
            assert parent.stdin is not None
            parent.stdin.write("".join(json.dumps(frame) + "\n" for frame in frames))
            parent.stdin.flush()
            try:
                until(made.clients)
            finally:
                parent.kill()
            killed = time.monotonic()
            # Standard error is open until the server, which got it from its client, has ended too.
            parent.communicate(timeout=20)
            assert time.monotonic() - killed < SOON
        until(lambda: not made.clients())
        assert made.tmux("list-sessions", "-F", "#{session_name}") == "kept\n"


def test_c106_other_calls_during_a_long_one(shared: Peer, module_place: Place) -> None:
    """While one call waits, everything else is answered without delay."""
    first = result(shared, "create_session")["pane_id"]
    second = result(shared, "create_session")["pane_id"]
    result(shared, "run_shell_command", pane_id=second, command="true")
    waiting = shared.call("wait_for_text", {"pane_id": first, "patterns": ["never"], "timeout": 25})
    running = shared.call("run_shell_command", {"pane_id": first, "command": "sleep 25", "timeout": 25})
    until(lambda: runs(module_place, first, "sleep"))
    call = "tools/call"
    for method, params in (
        ("ping", {}),
        ("tools/list", {}),
        (call, {"name": "list_sessions"}),
        (call, {"name": "run_shell_command", "arguments": {"pane_id": second, "command": "echo meanwhile"}}),
        (call, {"name": "send_keys", "arguments": {"pane_id": first, "text": "typed ahead"}}),
    ):
        asked = time.monotonic()
        id = shared.request(method, params)
        frame = shared.receive()
        assert frame["id"] == id
        assert "result" in frame
        assert time.monotonic() - asked < SOON
    for id in (waiting, running):
        shared.notify("notifications/cancelled", {"requestId": id})
    assert shared.result(shared.request("ping")) == {}


def test_c107_schemas_that_every_client_takes(shared: Peer) -> None:
    """Each schema is a flat object with types, and nothing that clients are known to refuse."""

    def walk(schema: dict[str, Any], where: str) -> None:
        assert not schema.keys() & {"$ref", "$defs", "anyOf", "oneOf", "allOf", "not", "const"}, where
        assert isinstance(schema["type"], str), where
        assert ("properties" in schema) is (schema["type"] == "object"), where
        assert "required" not in schema or schema["required"], where
        assert set(schema.get("required", ())) <= set(schema.get("properties", ())), where
        if schema["type"] == "array":
            walk(schema["items"], f"{where}[]")
        for name, inner in schema.get("properties", {}).items():
            walk(inner, f"{where}.{name}")

    tools = shared.result(shared.request("tools/list"))["tools"]
    assert [tool["name"] for tool in tools] == list(ROWS)
    for tool in tools:
        schema = tool["inputSchema"]
        assert schema["type"] == "object"
        open_ended = {"call_read_tools_batch"}  # its operations' arguments are another tool's
        if tool["name"] not in open_ended:
            walk(schema, tool["name"])
        assert "$ref" not in json.dumps(tool)


def test_c110_what_the_list_costs(shared: Peer) -> None:
    """All tools together stay within the budget of a model's context, and of a frame."""
    answer = shared.result(shared.request("tools/list"))
    facing = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in answer["tools"]]
    assert len(facing) == 47
    assert len(json.dumps(facing, separators=(",", ":"), ensure_ascii=False).encode()) <= 26_000
    assert len(json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode()) <= 60_000


def test_c112_the_start() -> None:
    """The first answer comes hardly later than an import of the SDK alone takes."""

    def best(begin: Any) -> float:
        times = []
        for _ in range(2):
            begun = time.monotonic()
            begin()
            times.append(time.monotonic() - begun)
        return min(times)

    def initialize() -> None:
        with place() as made, connected(made):
            pass

    sdk = [sys.executable, "-c", "import anyio, mcp.server.lowlevel, mcp.types"]
    assert best(initialize) < best(lambda: subprocess.run(sdk, check=True)) + 1


def test_c114_a_tool_that_is_not_offered() -> None:
    """It is not listed, and calling it names its toolset and the setting; an unknown name is just that."""
    with (
        place() as made,
        connected(made, TMUXMCP_TOOLSETS="inspect", TMUXMCP_EXCLUDE_TOOLS="list_panes") as peer,
    ):
        names = [tool["name"] for tool in peer.result(peer.request("tools/list"))["tools"]]
        inspect = [name for name, row in ROWS.items() if row.toolset == "inspect" and name != "list_panes"]
        assert names == inspect
        for name, setting in (("kill_session", "TMUXMCP_TOOLSETS"), ("list_panes", "TMUXMCP_EXCLUDE_TOOLS")):
            error = peer.answer(peer.call(name, {"session": "x"}))["error"]
            assert error["code"] == -32602
            assert error["data"] == {"tool": name, "toolset": ROWS[name].toolset}
            assert setting in error["message"]
        read = {"tool": "list_panes", "arguments": {}}
        refused = peer.result(peer.call("call_read_tools_batch", {"operations": [read]}))
        assert refused["isError"] is True
        error = peer.answer(peer.call("kill_everything", {}))["error"]
        assert error["code"] == -32602
        assert "kill_everything" in error["message"]


@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("TMUXMCP_TOOLSETS", "inspct", ["inspct", "inspect", "manage", "execute", "teardown"]),
        ("TMUXMCP_TOOLS", "list_pane", ["list_pane", "list_panes"]),
        ("TMUXMCP_EXCLUDE_TOOLS", "kill", ["kill_session"]),
        ("TMUXMCP_TOOLSET", "inspect", ["TMUXMCP_TOOLSET ", "TMUXMCP_TOOLSETS"]),
        ("TMUXMCP_SOCKET", "no/such", ["no/such", "name:NAME", "inherit", "path:"]),
        ("LIBTMUX_SAFETY", "readonly", ["LIBTMUX_SAFETY", "TMUXMCP_TOOLSETS"]),
    ],
)
def test_c114_a_setting_with_a_typo(variable: str, value: str, named: list[str]) -> None:
    """The process does not start, and says which values there are; nothing is on standard output."""
    with place() as made:
        argv = server(made, **{variable: value})
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "tmuxmcp did not start" in done.stderr
    for text in named:
        assert text in done.stderr


def test_the_environment_is_ours_alone(module_place: Place, shared: Peer) -> None:
    """Panes get no setting of the server, and no trace of a tmux around it."""
    pane = result(shared, "create_session")["pane_id"]
    told = result(shared, "run_shell_command", pane_id=pane, command="env")["output"]
    names = {line.partition("=")[0] for line in told.splitlines()}
    assert not [name for name in names if name.startswith(("TMUXMCP_", "LIBTMUX_"))]
    assert f"TMUX={module_place.socket}," in told
