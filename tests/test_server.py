"""The server between the SDK and the tools, in both eras of the protocol."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.lowlevel
import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent

from tests import fake_service
from tests.fake_service import SECRET, waiting
from tests.peer import LEGACY, MODERN, Peer, module
from tmuxmcp import server
from tmuxmcp.errors import NoServer
from tmuxmcp.server import CALLS, CAPABILITIES, Service

Era = Literal["auto", "legacy"]


@pytest.fixture(params=["legacy", "auto"], ids=[LEGACY, MODERN])
def era(request: pytest.FixtureRequest) -> Era:
    era: Era = request.param
    return era


@pytest.fixture
def events(tmp_path: Path) -> Path:
    return tmp_path / "audit"


def read(events: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in events.read_text().splitlines()]


@asynccontextmanager
async def connected(service: Service, era: Era = "auto") -> AsyncIterator[Client]:
    async with Client(server.build(service), mode=era) as client:
        yield client


def text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def until(condition: Any) -> None:
    with anyio.fail_after(20):
        while not condition():
            await anyio.lowlevel.checkpoint()


async def test_the_list_is_the_surface_in_manifest_order(era: Era) -> None:
    async with connected(fake_service.service(), era) as client:
        listed = (await client.list_tools()).tools
        assert client.instructions == "What to know."
    names = ["list_sessions", "capture_pane", "wait_for_text", "call_read_tools_batch", "send_keys"]
    assert [tool.name for tool in listed] == names
    capture = listed[1]
    assert capture.title == "Read a pane"
    assert capture.description == (
        "Read pane output; accepts no client-supplied executable input. Returned content may be sensitive or "
        "untrusted. Read a pane."
    )
    assert capture.input_schema["required"] == ["pane_id"]
    assert capture.output_schema == {
        "type": "object",
        "properties": {"content": {"type": "string"}, "lines": {"type": "integer"}},
    }
    assert capture.annotations is not None
    assert capture.annotations.model_dump(exclude_none=True) == {
        "read_only_hint": True,
        "destructive_hint": False,
        "idempotent_hint": True,
        "open_world_hint": True,
    }
    assert capture.meta == {
        "io.github.tmuxmcp/toolset": "inspect",
        "io.github.tmuxmcp/process-reach": "none",
        "io.github.tmuxmcp/tmux-effect": ["observe"],
        "io.github.tmuxmcp/output-classes": ["terminal-content"],
        "io.github.tmuxmcp/may-expose-secrets": True,
        "io.github.tmuxmcp/may-return-untrusted-content": True,
    }
    batch = listed[3].input_schema["properties"]["operations"]["items"]["properties"]["tool"]
    assert batch == {"type": "string", "enum": ["list_sessions", "capture_pane"]}


async def test_hints_are_those_that_are_advertised() -> None:
    async with connected(fake_service.service(ambient="active")) as client:
        for tool in (await client.list_tools()).tools:
            assert tool.annotations is not None
            assert list(tool.annotations.model_dump(exclude_none=True).values()) == [False, True, False, True]


async def test_there_is_one_page() -> None:
    async with connected(fake_service.service()) as client:
        for listing in (client.list_tools, client.list_resources, client.list_resource_templates):
            with pytest.raises(MCPError) as refused:
                await listing(cursor="next")
            assert refused.value.code == -32602


async def test_a_result_is_the_same_json_twice(era: Era, events: Path) -> None:
    async with connected(fake_service.service(audit=str(events)), era) as client:
        result = await client.call_tool("list_sessions")
        assert result.structured_content == {"sessions": [{"session_id": "$0", "name": "ä"}]}
        assert text(result) == '{"sessions":[{"session_id":"$0","name":"ä"}]}'
        assert result.is_error is False
        assert (await client.call_tool("capture_pane", {"pane_id": "%1"})).structured_content == {
            "content": "in %1\n",
            "lines": 1,
        }
    first, second = read(events)
    assert isinstance(first["request_id"], int)
    assert (first["tool"], first["outcome"], first["grounds"]) == ("list_sessions", "ok", "TOOLSETS")
    assert (second["targets"], second["client"]["name"]) == (["%1"], "mcp")


async def test_an_error_is_one_compact_json_text(era: Era, events: Path) -> None:
    async with connected(fake_service.service(audit=str(events)), era) as client:
        for kind in ("busy", "grouped"):
            result = await client.call_tool("send_keys", {"pane_id": "%1", "text": kind})
            assert text(result) == (
                '{"code":"pane_busy","message":"vim runs in it. Use send_keys.","details":{"program":"vim"}}'
            )
            assert result.is_error
            assert result.structured_content is None
    assert [event["outcome"] for event in read(events)] == ["pane_busy", "pane_busy"]


async def test_refused_arguments_are_an_error_without_their_values(era: Era, events: Path) -> None:
    async with connected(fake_service.service(audit=str(events)), era) as client:
        result = await client.call_tool("send_keys", {"pane_id": SECRET, "text": SECRET})
        missing = await client.call_tool("capture_pane")
    assert json.loads(text(result))["code"] == json.loads(text(missing))["code"] == "invalid_argument"
    assert json.loads(text(missing))["details"]["field"] == "pane_id"
    assert [event["outcome"] for event in read(events)] == ["invalid_argument", "invalid_argument"]
    assert SECRET not in text(result) + events.read_text()


async def test_a_defect_is_told_without_values(
    era: Era, events: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with connected(fake_service.service(audit=str(events)), era) as client:
        result = await client.call_tool("send_keys", {"pane_id": "%77", "text": SECRET})
    error = json.loads(text(result))
    assert (error["code"], result.is_error) == ("internal_error", True)
    assert "send_keys failed by a defect of tmuxmcp (ValueError at fake_service.py:" in error["message"]
    (event,) = read(events)
    assert event["outcome"] == "internal_error"
    told = capfd.readouterr().err
    assert "defect in send_keys: ValueError at server.py:" in told
    assert told.count("\n") == 1
    for each in (text(result), told, events.read_text()):
        assert SECRET not in each


@pytest.mark.parametrize(
    ("name", "outcome", "words", "data"),
    [
        ("kill_session", "not_enabled", "(toolset teardown) is not enabled", {"toolset": "teardown"}),
        ("send_key", "unknown_tool", "Names like it: send_keys.", None),
        (SECRET * 200, "unknown_tool", "tools/list has the names", None),
    ],
)
async def test_what_is_not_offered_is_a_protocol_error(
    era: Era, events: Path, name: str, outcome: str, words: str, data: dict[str, str] | None
) -> None:
    async with connected(fake_service.service(audit=str(events)), era) as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool(name, {})
    assert refused.value.code == -32602
    assert words in refused.value.message
    assert refused.value.data == (data and {"tool": name, **data})
    (event,) = read(events)
    assert event["outcome"] == outcome


async def test_a_cancelled_call_is_recorded_once(era: Era, events: Path) -> None:
    async with connected(fake_service.service(audit=str(events)), era) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "wait_for_text", {"pane_id": "%1"})
            await until(lambda: waiting)
            tasks.cancel_scope.cancel()
        await until(lambda: not waiting)
        assert (await client.call_tool("list_sessions")).is_error is False
    assert [event["outcome"] for event in read(events)] == ["cancelled", "ok"]


@pytest.mark.filterwarnings("ignore:ping is removed")
async def test_calls_beyond_the_bound_wait_in_order_and_nothing_else_does(events: Path) -> None:
    async with connected(fake_service.service(audit=str(events)), "legacy") as client:
        async with anyio.create_task_group() as tasks:
            for n in range(CALLS + 2):
                tasks.start_soon(client.call_tool, "wait_for_text", {"pane_id": f"%{n}"})
            await until(lambda: len(waiting) == CALLS)
            with anyio.fail_after(5):
                await client.send_ping()
                await client.list_tools()
                await client.read_resource(CAPABILITIES)
            assert len(waiting) == CALLS
            tasks.cancel_scope.cancel()
        await until(lambda: not waiting)
        assert (await client.call_tool("list_sessions")).is_error is False
    assert [event["outcome"] for event in read(events)] == ["cancelled"] * (CALLS + 2) + ["ok"]


class Clock:
    """Time that passes only in sleeps."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds
        await anyio.lowlevel.checkpoint()


async def test_progress_is_sent_once_a_second_and_only_when_asked_for(era: Era) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with connected(fake_service.service(clock=Clock()), era) as client:
        arguments = {"pane_id": "%1", "timeout": 3.5}
        assert not (await client.call_tool("wait_for_text", arguments)).is_error
        assert not (await client.call_tool("wait_for_text", arguments, progress_callback=tell)).is_error
        await until(lambda: len(told) == 4)
    assert told == [(0, 3.5, "0"), (1, 3.5, "1"), (2, 3.5, "2"), (3, 3.5, "3")]


async def test_a_batch_records_each_operation(era: Era, events: Path) -> None:
    operations = [{"tool": "list_sessions"}, {"tool": "capture_pane", "arguments": {"pane_id": "%5"}}]
    async with connected(fake_service.service(audit=str(events)), era) as client:
        result = await client.call_tool("call_read_tools_batch", {"operations": operations})
        assert result.structured_content == {
            "results": [{"sessions": [{"session_id": "$0", "name": "ä"}]}, {"content": "in %5\n", "lines": 1}]
        }
        inner = [{"tool": "capture_pane", "arguments": {"pane_id": SECRET}}]
        refused = await client.call_tool("call_read_tools_batch", {"operations": inner})
        assert json.loads(text(refused))["details"]["field"] == "pane_id"
        outside = await client.call_tool("call_read_tools_batch", {"operations": [{"tool": "send_keys"}]})
        assert json.loads(text(outside))["details"]["accepted"] == ["list_sessions", "capture_pane"]
    batch = "call_read_tools_batch"
    assert [(event["tool"], event.get("operation"), event["outcome"]) for event in read(events)] == [
        ("list_sessions", 0, "ok"),
        ("capture_pane", 1, "ok"),
        (batch, None, "ok"),
        ("capture_pane", 0, "invalid_argument"),
        (batch, None, "invalid_argument"),
        (batch, None, "invalid_argument"),
    ]
    assert read(events)[1]["targets"] == ["%5"]


async def test_the_one_resource(era: Era) -> None:
    async with connected(fake_service.service(), era) as client:
        (resource,) = (await client.list_resources()).resources
        assert (str(resource.uri), resource.mime_type) == (CAPABILITIES, "application/json")
        assert (await client.list_resource_templates()).resource_templates == []
        (content,) = (await client.read_resource(CAPABILITIES)).contents
        assert content.model_dump(exclude_none=True)["text"] == '{"name":"tmuxmcp"}'
        with pytest.raises(MCPError) as refused:
            await client.read_resource("tmux://panes")
        assert refused.value.code == -32602


async def test_a_resource_that_fails_leaks_nothing(era: Era, capfd: pytest.CaptureFixture[str]) -> None:
    errors = [ValueError(SECRET), NoServer("No tmux server runs.")]

    async def capabilities() -> Mapping[str, Any]:
        raise errors.pop(0)

    async with connected(fake_service.service(capabilities=capabilities), era) as client:
        for words in ("failed by a defect", "No tmux server runs."):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(CAPABILITIES)
            assert refused.value.code == -32603
            assert words in refused.value.message
            assert SECRET not in refused.value.message
    assert SECRET not in capfd.readouterr().err


def test_what_the_sdk_logs_is_one_line_without_what_it_was_about(capfd: pytest.CaptureFixture[str]) -> None:
    logger = logging.Logger("mcp")
    logger.addHandler(server.Log())
    try:
        raise ValueError(SECRET)
    except ValueError:
        logger.exception("the handler for %r raised", "tools/call")
    assert capfd.readouterr().err == "mcp: the handler for 'tools/call' raised (ValueError)\n"


async def test_a_silent_tmux_server_holds_up_the_list_and_no_call() -> None:
    asked, answered = anyio.Event(), anyio.Event()

    async def look() -> None:
        asked.set()
        await answered.wait()

    async with connected(fake_service.service(advertised=look)) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.list_tools)
        await asked.wait()
        # After a success the client would ask for the list itself, to check the result.
        assert (await client.call_tool("send_keys", {"pane_id": "%1", "text": "busy"})).is_error
        answered.set()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_sdk_client_over_stdio(mode: Era) -> None:
    command, *arguments = module("fake_service")
    program = StdioServerParameters(command=command, args=arguments)
    async with Client(stdio_client(program), mode=mode) as client:
        assert client.server_info is not None
        assert client.server_info.name == "tmuxmcp"
        assert len((await client.list_tools()).tools) == 5
        result = await client.call_tool("capture_pane", {"pane_id": "%1"})
        assert result.structured_content == {"content": "in %1\n", "lines": 1}


@pytest.mark.parametrize("version", [LEGACY, MODERN])
def test_what_no_sdk_client_sends(version: str) -> None:
    with Peer(module("fake_service"), era=version) as peer:
        assert peer.open()["instructions"] == "What to know."
        malformed: list[dict[str, Any]] = [
            {"arguments": {}},
            {"name": "send_keys", "arguments": []},
            {"name": 1},
        ]
        for params in malformed:
            assert peer.answer(peer.request("tools/call", params))["error"]["code"] == -32602
        result = peer.result(peer.call("send_keys", {"pane_id": "%1", "text": "\ud800"}))
        assert json.loads(result["content"][0]["text"])["details"] == {"field": "text"}
        big = peer.result(peer.call("capture_pane", {"pane_id": "%1", "lines": 10**400}))
        assert json.loads(big["content"][0]["text"])["details"]["field"] == "lines"
