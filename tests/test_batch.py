"""call_read_tools_batch: several reads, each as if called alone, in the room of one result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from tests.bench import Bench
from tests.calls import MANIFEST
from tmuxmcp import limits
from tmuxmcp.errors import InvalidArgument, NotFound
from tmuxmcp.settings import Settings
from tmuxmcp.tools import batch


def op(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def size(results: object) -> int:
    return len(msgspec.json.encode(results))


async def fill(bench: Bench, lines: int) -> str:
    """Have the pane print numbered lines of 100 characters, and return a cursor from before that."""
    bench.tmux("resize-window", "-t", "@0", "-x", "120", "-y", "24")
    program = f"read x; seq -f '%0100.0f' {lines}; printf END; exec cat"
    bench.tmux("respawn-pane", "-k", "-t", "%0", program)
    cursor: str = (await bench.tools("capture_since", pane_id="%0"))["cursor"]
    bench.tmux("send-keys", "-t", "%0", "Enter")
    await bench.until(lambda: "END" in bench.tmux("capture-pane", "-p", "-t", "%0"))
    return cursor


async def test_each_result_is_what_the_tool_returns(bench: Bench) -> None:
    operations = [
        op("list_panes", limit=1),
        op("get_pane_info", pane_id="%0"),
        op("capture_pane", pane_id="%0"),
        op("show_option", name="mouse", scope="session"),
        {"tool": "list_sessions"},
    ]
    answer = await bench.tools("call_read_tools_batch", operations=operations)
    assert answer == {
        "results": [
            {"tool": each["tool"], "result": await bench.tools(each["tool"], **each.get("arguments", {}))}
            for each in operations
        ]
    }


async def test_an_error_is_what_the_tool_answers_and_the_rest_goes_on(bench: Bench) -> None:
    operations = [op("get_pane_info", pane_id="%9"), op("get_pane_info"), op("list_sessions")]
    first, second, third = (await bench.tools("call_read_tools_batch", operations=operations))["results"]
    with pytest.raises(NotFound) as alone:
        await bench.tools("get_pane_info", pane_id="%9")
    assert first == {
        "tool": "get_pane_info",
        "error": {"code": "not_found", "message": alone.value.message, "details": alone.value.details},
    }
    assert second["error"]["code"] == "invalid_argument"
    assert third["result"]["sessions"]


async def test_it_stops_at_an_error_when_asked_to(bench: Bench) -> None:
    operations = [op("list_sessions"), op("get_pane_info", pane_id="%9"), op("list_sessions")]
    answer = await bench.tools("call_read_tools_batch", operations=operations, on_error="stop")
    assert ["error" in each for each in answer["results"]] == [False, True]
    assert answer["stopped_at"] == 1
    answer = await bench.tools("call_read_tools_batch", operations=operations[:1], on_error="stop")
    assert "stopped_at" not in answer


@pytest.mark.parametrize(
    "tool", ["wait_for_text", "show_environment", "call_read_tools_batch", "kill_pane", "x"]
)
async def test_what_cannot_be_nested_is_refused_before_anything_runs(bench: Bench, tool: str) -> None:
    before = bench.processes
    with pytest.raises(InvalidArgument, match=r"operations\[1\].tool"):
        await bench.tools("call_read_tools_batch", operations=[op("list_sessions"), op(tool)])
    assert bench.processes == before


async def test_the_environment_where_the_operator_names_it(bench: Bench) -> None:
    tools = bench.with_settings(Settings(tools=("show_environment",)))
    answer = await tools("call_read_tools_batch", operations=[op("show_environment", names=["PATH"])])
    assert answer["results"][0]["result"]["variables"][0]["name"] == "PATH"


async def test_the_number_of_operations_is_bounded(bench: Bench) -> None:
    for count in (0, limits.READ_OPERATIONS + 1):
        with pytest.raises(InvalidArgument):
            await bench.tools("call_read_tools_batch", operations=[op("list_sessions")] * count)


async def test_pane_output_shares_the_room_and_loses_its_beginning(bench: Bench) -> None:
    await fill(bench, 1000)
    long = op("capture_pane", pane_id="%0", start_line=-2000, max_lines=1000)
    operations = [long, op("get_pane_info", pane_id="%0"), long, op("snapshot_pane", pane_id="%0")]
    answer = await bench.tools("call_read_tools_batch", operations=operations)
    assert 46_000 < size(answer["results"]) <= limits.CONTENT_BYTES
    first, info, second, screen = (each["result"] for each in answer["results"])
    assert abs(first["lines"] - second["lines"]) < 5
    assert first["truncated"]
    lines = first["content"].split("\n")
    assert len(lines) == first["lines"]
    assert lines[-2:] == [f"{1000:0100}", "END"]
    assert first["lines"] + first["dropped_lines"] == 1002
    assert info == await bench.tools("get_pane_info", pane_id="%0")
    assert screen == await bench.tools("snapshot_pane", pane_id="%0")


async def test_capture_since_is_asked_for_less_so_that_nothing_is_lost(bench: Bench) -> None:
    cursor = await fill(bench, 1000)
    since = op("capture_since", pane_id="%0", cursor=cursor, max_lines=1000)
    results = (await bench.tools("call_read_tools_batch", operations=[since, since]))["results"]
    assert size(results) <= limits.CONTENT_BYTES
    first = results[0]["result"]
    assert first["truncated"]
    rest = await bench.tools("capture_since", pane_id="%0", cursor=first["cursor"])
    assert rest["missed"] == 0
    last, following = first["content"].split("\n")[-1], rest["content"].split("\n")[0]
    assert int(following) == int(last) + 1


async def test_a_result_that_cannot_be_cut_is_told_to_be_too_large() -> None:
    sizes = {"list_panes": 30_000, "list_windows": 40_000, "list_sessions": 10}

    async def nested(index: int, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {"rows": "x" * sizes[name]}

    outcomes = await batch.run(nested, [(name, {}) for name in sizes], stop_on_error=False)
    first, second, third = outcomes
    assert first.result == {"rows": "x" * 30_000}
    assert isinstance(second.error, dict)
    assert second.error["code"] == "too_large"
    assert "Call list_windows by itself" in second.error["message"]
    assert third.result == {"rows": "x" * 10}
    assert size(outcomes) <= limits.CONTENT_BYTES


@pytest.mark.parametrize("count", [1, 2, 16])
@pytest.mark.parametrize("text", ["x", '"', "\x1b", "é", "\n", "日"])
async def test_whatever_is_read_fits(count: int, text: str) -> None:
    async def nested(index: int, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {"content": text * 48_000, "lines": 1}

    outcomes = await batch.run(nested, [("capture_pane", {})] * count, stop_on_error=False)
    assert limits.CONTENT_BYTES * 0.8 < size(outcomes) <= limits.CONTENT_BYTES
    for outcome in outcomes:
        assert isinstance(outcome.result, dict)
        assert outcome.result["truncated"]


def test_every_tool_that_can_be_nested_reads_only() -> None:
    for name in MANIFEST["call_read_tools_batch"].nested:
        assert MANIFEST[name].hints.read_only
        assert not MANIFEST[name].self_bounded
