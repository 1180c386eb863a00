"""The whole program over standard input and output, on tmux servers of its own."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peer import LEGACY, MODERN, Peer
from tmuxmcp import manifest, resources

ROWS = manifest.load(resources.manifest_text())
CONSERVATIVE = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": False,
    "openWorldHint": True,
}
SECRET = "hunter2-s3cr3t"


class Program(Peer):
    """``python -m tmuxmcp`` on one socket, with its standard error and audit record in files."""

    def __init__(self, path: Path, *, era: str = LEGACY, **environ: str) -> None:
        self.errors = path.with_name("stderr")
        self.audit = path.with_name("audit")
        said = os.open(self.errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        env = {"TMUXMCP_SOCKET": f"path:{path}", "TMUXMCP_AUDIT": f"path:{self.audit}", **environ}
        super().__init__([sys.executable, "-m", "tmuxmcp"], era=era, env=env, stderr=said)

    def tools(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self.result(self.request("tools/list"))["tools"]
        return listed

    def capabilities(self) -> dict[str, Any]:
        (content,) = self.result(self.request("resources/read", {"uri": "tmux://capabilities"}))["contents"]
        document: dict[str, Any] = json.loads(content["text"])
        return document

    def do(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; its structured result, or its error."""
        result = self.result(self.call(tool, arguments))
        answer: dict[str, Any] = json.loads(result["content"][0]["text"])
        assert result.get("structuredContent", answer) == answer
        return answer

    def record(self) -> dict[str, Any]:
        (line,) = [line for line in self.errors.read_text().splitlines() if '"event":"startup"' in line]
        record: dict[str, Any] = json.loads(line)
        return record

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.audit.read_text().splitlines()]


@pytest.fixture
def mute(socket_path: Path) -> Iterator[Path]:
    """A socket where something listens and never answers."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(socket_path))
        listening.listen(8)
        yield socket_path
    socket_path.unlink()


@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_a_client_gets_the_whole_surface(socket_path: Path, era: str) -> None:
    with Program(socket_path, era=era) as program:
        opened = program.open()
        assert f"tmux -N -S {socket_path} attach" in opened["instructions"]
        listed = program.tools()
        expected = [name for name, row in ROWS.items() if row.toolset != "teardown"]
        assert [tool["name"] for tool in listed] == expected
        for tool in listed:
            row = ROWS[tool["name"]]
            assert tool["description"].startswith(manifest.OPENERS[row.opener])
            assert tool["annotations"]["readOnlyHint"] is (row.toolset == "inspect")
        document = program.capabilities()
        assert [tool["name"] for tool in document["tools"]] == expected
        assert (document["running"], document["server_state"]) == (False, "absent")
        record = program.record()
        assert record["resolved_socket_path"] == str(socket_path)
        assert record["tool_count"] == len(expected)
        assert record.items() <= (document | {"event": "startup"}).items()


def test_the_state_of_the_server_follows_what_happens(socket_path: Path) -> None:
    with Program(socket_path) as program:
        program.open()
        created = program.do("create_session", name="work")
        assert created["attach_command"] == f"tmux -N -S {socket_path} attach"
        document = program.capabilities()
        assert (document["running"], document["server_state"]) == (True, "started")
        assert document["configuration_provenance"] == "minimal"
        assert document["startup_server_state"] == "absent"
    with Program(socket_path) as second:
        second.open()
        document = second.capabilities()
        assert (document["server_state"], document["configuration_provenance"]) == ("existing", "unknown")
        assert document["ambient"]["state"] == "quiet"


@pytest.fixture
def default_socket(socket_path: Path) -> Iterator[dict[str, str]]:
    """The environment in which the default socket is one of the test's own."""
    yield {"TMUX_TMPDIR": str(socket_path.parent), "TMUXMCP_SOCKET": "name:tmuxmcp"}
    own = socket_path.parent / f"tmux-{os.getuid()}" / "tmuxmcp"
    subprocess.run(["tmux", "-N", "-S", own, "kill-server"], stderr=subprocess.DEVNULL, check=False)


def test_the_default_socket_has_teardown_until_a_server_is_there(
    socket_path: Path, default_socket: dict[str, str]
) -> None:
    with Program(socket_path, **default_socket) as program:
        program.open()
        assert "kill_session" in [tool["name"] for tool in program.tools()]
        created = program.do("create_session")
        with Program(socket_path, **default_socket) as second:
            opened = second.open()
            assert "TMUXMCP_TOOLSETS=inspect,manage,execute,teardown" in opened["instructions"]
            assert "kill_session" not in [tool["name"] for tool in second.tools()]
            refused = second.answer(second.call("kill_session", {"session": created["session_id"]}))
            assert refused["error"]["code"] == -32602
            assert "TMUXMCP_TOOLSETS=inspect,manage,execute,teardown" in refused["error"]["message"]
        assert program.do("kill_session", session=created["session_id"])["server_exited"] is True


def test_nothing_but_the_list_waits_for_a_tmux_that_hangs(mute: Path) -> None:
    with Program(mute) as program:
        program.open()
        listing, ping = program.request("tools/list"), program.request("ping")
        assert program.receive()["id"] == ping
        listed = program.result(listing)["tools"]
        assert len(listed) == 43
        assert all(tool["annotations"] == CONSERVATIVE for tool in listed)
        assert program.record()["tmux_usable"] is False


def test_without_tmux_everything_but_the_calls_works(socket_path: Path) -> None:
    with Program(socket_path, TMUXMCP_TMUX_BIN="/nonexistent/tmux") as program:
        assert "/nonexistent/tmux" in program.open()["instructions"]
        assert all(tool["annotations"] == CONSERVATIVE for tool in program.tools())
        assert program.do("list_sessions")["code"] == "tmux_unusable"
        assert program.capabilities()["tmux_usable"] is False


def test_every_call_is_recorded_and_no_payload_is(socket_path: Path) -> None:
    with Program(socket_path) as program:
        program.open()
        pane = program.do("create_session")["pane_id"]
        program.do("send_keys", pane_id=pane, text=SECRET)
        program.do("run_shell_command", pane_id=pane, command=[SECRET], comand=SECRET)
        program.do(
            "call_read_tools_batch", operations=[{"tool": "get_pane_info", "arguments": {"pane_id": pane}}]
        )
        program.answer(program.call(SECRET, {SECRET: SECRET}))
        program.answer(program.call("kill_pane", {"pane_id": pane}))
        events = program.events()
        assert SECRET not in program.audit.read_text()
        assert SECRET not in program.errors.read_text()
    created, typed, refused, inner, batch, unknown, off = events
    assert (created["tool"], created["outcome"], created["client"]["name"]) == (
        "create_session",
        "ok",
        "peer",
    )
    assert pane in created["targets"]
    assert "new-session" in [each["command"] for each in created["tmux"]]
    assert (typed["tool"], typed["outcome"], typed["targets"]) == ("send_keys", "ok", [pane])
    assert typed["arguments"]["text"]["length"] == len(SECRET)
    assert (refused["outcome"], refused["tmux"]) == ("invalid_argument", [])
    assert (inner["tool"], inner["batch"], inner["operation"]) == ("get_pane_info", batch["tool"], 0)
    assert (unknown["outcome"], off["outcome"], off["tool"]) == ("unknown_tool", "not_enabled", "kill_pane")


def test_a_client_that_never_reads_standard_error_is_served_all_the_same(socket_path: Path) -> None:
    reading, writing = os.pipe()
    argv = [sys.executable, "-m", "tmuxmcp"]
    with Peer(argv, env={"TMUXMCP_SOCKET": f"path:{socket_path}"}, stderr=writing) as peer:
        peer.open()
        for _ in range(300):
            peer.result(peer.call("list_sessions", {}))
        assert select.select([reading], [], [], 0)[0]
        assert os.read(reading, 1 << 17).count(b"\n") < 300
    os.close(reading)


def test_the_console_script_is_the_same_program() -> None:
    script = Path(sys.executable).with_name("tmuxmcp")
    told = subprocess.run([script, "--version"], capture_output=True, text=True, check=True).stdout
    assert (
        told
        == subprocess.run(
            [sys.executable, "-m", "tmuxmcp", "--version"], capture_output=True, text=True, check=True
        ).stdout
    )
