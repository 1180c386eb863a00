"""Invariants 6 to 9 of the capability model: what can be called, and what becomes of what a client sends."""

from __future__ import annotations

import json
import re
import string
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from mcp import MCPError

from tests import offer
from tests.bench import Bench
from tests.inventory import ALL, BY_TOOLSET, INSPECT, PANE_COMMAND, PANE_INPUT, WAITS
from tests.offer import COMBINATIONS, NO_SERVER, TOOLSETS, Offer, said
from tests.tracing import Recorder
from tmuxmcp import limits
from tmuxmcp.audit import PAYLOAD_SINKS
from tmuxmcp.errors import MatchBudget, TmuxTimeout, ToolError
from tmuxmcp.settings import Settings
from tmuxmcp.surface import ServerState
from tmuxmcp.terminal.matching import Matcher
from tmuxmcp.tmux.fake import FakeRunner
from tmuxmcp.tmux.runner import Output
from tmuxmcp.tools import Function

few = hypothesis_settings(max_examples=25)
BATCH = "call_read_tools_batch"
META = "io.github.tmuxmcp/"


@pytest.fixture(scope="session")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an audit record."""
    return tmp_path_factory.mktemp("audit") / "record"


def names_of(*toolsets: str) -> list[str]:
    return [name for toolset in TOOLSETS if toolset in toolsets for name in BY_TOOLSET[toolset]]


# 6. What is excluded is neither listed nor callable; sixteen exact surfaces; the order is fixed. (CM-3)


@pytest.mark.parametrize("toolsets", COMBINATIONS, ids="+".join)
async def test_invariant_6_all_sixteen_combinations_are_exact(toolsets: tuple[str, ...]) -> None:
    for order in (toolsets, toolsets[::-1]):
        listed = [tool["name"] for tool in await Offer(Settings(toolsets=order)).tools()]
        assert listed == names_of(*toolsets)


@given(offer.settings, offer.server_states)
@example(Settings(), "existing")
@example(Settings(), "absent")
@few
async def test_invariant_6_what_is_off_is_neither_listed_nor_callable(
    chosen: Settings, state: ServerState
) -> None:
    runner = FakeRunner(default=NO_SERVER)
    offered = Offer(chosen, server_state=state, runner=runner)
    listed = [tool["name"] for tool in await offered.tools()]
    assert listed == [name for name in ALL if name in listed]
    assert not set(chosen.exclude_tools) & set(listed)
    default = TOOLSETS if state == "absent" else TOOLSETS[:3]
    wanted = {*names_of(*(default if chosen.toolsets is None else chosen.toolsets)), *chosen.tools}
    aggregates = {BATCH, "send_keys_batch"}
    assert wanted - set(chosen.exclude_tools) - aggregates == set(listed) - aggregates
    for name in set(ALL) - set(listed):
        with pytest.raises(MCPError) as refused:
            await offered.call(name, {})
        assert refused.value.code == -32602
        assert refused.value.data == {"tool": name, "toolset": offer.rows()[name].toolset}
    assert runner.calls == []
    assert [tool["name"] for tool in await Offer(chosen, server_state=state).tools()] == listed


async def test_invariant_6_what_is_listed_can_be_called() -> None:
    offered = Offer()
    for tool in await offered.tools():
        answer = said(await offered.call(tool["name"], {"no_such_parameter": 1}))
        assert answer["code"] == "invalid_argument", tool["name"]


@given(st.lists(st.sampled_from([name for name in INSPECT if name != BATCH]), min_size=1, max_size=6))
@few
async def test_invariant_6_an_exclusion_reaches_into_aggregates(excluded: list[str]) -> None:
    runner = FakeRunner(default=NO_SERVER)
    offered = Offer(Settings(tools=("show_environment",), exclude_tools=tuple(excluded)), runner=runner)
    for name in excluded:
        answer = await offered.call(BATCH, {"operations": [{"tool": name, "arguments": {}}]})
        assert said(answer)["code"] == "invalid_argument"
    assert runner.calls == []
    typing = Offer(Settings(exclude_tools=("send_keys",)))
    assert not {"send_keys", "send_keys_batch"} & set(typing.surface.tools)


# 7. The read batch: not itself, nothing that waits, nothing beyond its classes; capped; child events. (CM-3)


@given(offer.settings)
@few
async def test_invariant_7_the_enum_is_the_eligible_part_of_the_surface(chosen: Settings) -> None:
    listed = {tool["name"]: tool for tool in await Offer(chosen).tools()}
    eligible = [
        name
        for name in INSPECT
        if name in listed
        and name not in {BATCH, *WAITS}
        and (name != "show_environment" or name in chosen.tools)
    ]
    toolsets = TOOLSETS if chosen.toolsets is None else chosen.toolsets
    wanted = ("inspect" in toolsets or BATCH in chosen.tools) and BATCH not in chosen.exclude_tools
    assert (BATCH in listed) == (wanted and bool(eligible))
    if BATCH not in listed:
        return
    batch = listed[BATCH]
    operations = batch["inputSchema"]["properties"]["operations"]
    assert operations["items"]["properties"]["tool"]["enum"] == eligible
    assert (operations["minItems"], operations["maxItems"]) == (1, 16)
    classes = META + "output-classes"
    assert set(batch["_meta"][classes]) == {
        each for name in eligible for each in listed[name]["_meta"][classes]
    }
    for flag in (META + "may-expose-secrets", META + "may-return-untrusted-content"):
        assert batch["_meta"][flag] == any(listed[name]["_meta"][flag] for name in eligible)
    assert batch["annotations"]["openWorldHint"] == any(
        listed[name]["annotations"]["openWorldHint"] for name in eligible
    )


def test_invariant_7_what_waits_is_marked_and_not_nested() -> None:
    rows = offer.rows()
    assert {name for name, row in rows.items() if row.self_bounded} == WAITS
    assert {name for name, row in rows.items() if row.nested} == {BATCH, "send_keys_batch"}
    assert not {*WAITS, BATCH} & set(rows[BATCH].nested)
    assert rows["send_keys_batch"].nested == ("send_keys",)


@given(st.lists(st.sampled_from(["list_sessions", "list_panes", "get_pane_info", "show_hooks"]), max_size=18))
@few
async def test_invariant_7_the_count_is_capped_and_each_operation_recorded(
    record: Path, tools: list[str]
) -> None:
    record.unlink(missing_ok=True)
    offered = Offer(audit=str(record))
    answer = await offered.call(BATCH, {"operations": [{"tool": name} for name in tools]})
    *children, batch = map(json.loads, record.read_text().splitlines())
    assert (batch["tool"], "batch" in batch) == (BATCH, False)
    if not 1 <= len(tools) <= 16:
        assert said(answer)["code"] == batch["outcome"] == "invalid_argument"
        assert children == []
        return
    assert [(each["tool"], each["batch"], each["operation"]) for each in children] == [
        (name, BATCH, index) for index, name in enumerate(tools)
    ]
    assert [each["tool"] for each in said(answer)["results"]] == tools


@given(st.lists(st.integers(0, 200_000), min_size=1, max_size=16))
@few
async def test_invariant_7_the_results_together_are_bounded(sizes: list[int]) -> None:
    left = list(sizes)
    capture = offer.functions()["capture_pane"]

    async def large(call: object, args: object) -> Any:
        content = "\n".join("x" * 99 for _ in range(left.pop(0) // 100))
        return capture.result(content=content, lines=content.count("\n") + 1, truncated=False)

    offered = Offer(replaced={"capture_pane": Function(large, *capture[1:])})
    operation = {"tool": "capture_pane", "arguments": {"pane_id": "%0"}}
    answer = await offered.call(BATCH, {"operations": [operation] * len(sizes)})
    assert len(said(answer)["results"]) == len(sizes)
    assert offer.size(said(answer)) <= limits.CONTENT_BYTES + len('{"results":[]}')


# 8. Variable names, patterns, buffers. (bounded operations)

GRAMMAR = re.compile("[A-Za-z][A-Za-z0-9_]*")
WORDS = st.text(string.ascii_letters + string.digits + "_", min_size=1)


@given(st.one_of(st.text(), WORDS.map("{}}}#(x)".format), WORDS.map("E:{}".format), WORDS.map("{}\n".format)))
async def test_invariant_8_variables_are_identifiers(name: str) -> None:
    runner = FakeRunner(default=NO_SERVER)
    offered = Offer(runner=runner)
    arguments = {"names": [name], "pane_id": "%0"}
    code = said(await offered.call("get_tmux_variables", arguments))["code"]
    batch = await offered.call(
        BATCH, {"operations": [{"tool": "get_tmux_variables", "arguments": arguments}]}
    )
    if not GRAMMAR.fullmatch(name):
        assert code == "invalid_argument"
        # What no argument may hold is refused with the whole batch.
        (told,) = [each["error"] for each in said(batch).get("results", [{"error": said(batch)}])]
        assert told["code"] == "invalid_argument"
        assert runner.calls == []
    for call in runner.calls:
        assert f"#{{{name}}}" in " ".join(call.argv)


async def test_invariant_8_one_tmux_process_for_each_variable(bench: Bench) -> None:
    before = bench.processes
    names = ["pane_id", "pane_width", "window_name"]
    await bench.tools("get_tmux_variables", names=names, pane_id="%0")
    assert bench.processes - before == len(names)


async def test_invariant_8_patterns_are_bounded_in_size() -> None:
    offered = Offer()
    tools = {tool["name"]: tool["inputSchema"]["properties"] for tool in await offered.tools()}
    regexes = {
        (name, parameter)
        for name, row in offer.rows().items()
        for parameter, sink in row.sinks.items()
        if sink == "regex" and name != BATCH
    }
    assert regexes == {("search_panes", "pattern"), ("wait_for_text", "patterns"), ("wait_for_text", "stop")}
    for name, parameter in regexes:
        schema = tools[name][parameter]
        assert schema.get("items", schema)["maxLength"] == 1000
        long: str | list[str] = "x" * 1001
        if schema["type"] == "array":
            assert schema["maxItems"] == 16
            long = [str(long)]
        answer = await offered.call(
            name, {"pane_id": "%0", parameter: long} if "pane_id" in tools[name] else {parameter: long}
        )
        assert said(answer)["code"] == "invalid_argument"


async def test_invariant_8_matching_is_bounded_in_time() -> None:
    class Slow:
        """A pattern each of whose searches takes a moment."""

        programsize = 1

        def search(self, text: bytes, pos: int = 0, endpos: int | None = None) -> None:
            threading.Event().wait(0.01)

    began = anyio.current_time()
    with pytest.raises(MatchBudget), anyio.fail_after(10):
        await Matcher([Slow()]).search_lines(["x"] * 100_000, budget=0.3)
    assert anyio.current_time() - began < 2


async def test_invariant_8_no_pattern_backtracks() -> None:
    """Python's own engine takes minutes for these."""
    from tmuxmcp.terminal import matching

    for pattern in (r"(a+)+$", r"(a*)*b", r"(a|aa)+$", r"^(\w+\s?)*$"):
        matcher = matching.compile([pattern], regex=True, match_case=True)
        with anyio.fail_after(5):
            await matcher.search_lines(["a" * 40 + "!"] * 20)


async def test_invariant_8_buffers_are_namespaced_and_cleaned_up(bench: Bench) -> None:
    recorder = Recorder(bench.client.runner)
    bench.client.runner = recorder
    bench.tmux("set-buffer", "-b", "mine", "value")
    bench.tmux("set-option", "-g", "remain-on-exit", "on")
    bench.tmux("new-window", "-d", "true")
    await bench.until(lambda: bench.tmux("display-message", "-p", "-t", "%1", "#{pane_dead}") == "1\n")
    for pane in ("%0", "%1", "%9"):
        for tool, arguments in (
            ("send_keys", {"text": "text"}),
            ("send_keys_batch", {"operations": [{"pane_id": pane, "text": "text", "enter": True}]}),
            ("paste_text", {"text": "text", "enter": True}),
            ("run_shell_command", {"command": "true", "timeout": 1}),
        ):
            given = arguments if tool == "send_keys_batch" else {"pane_id": pane, **arguments}
            try:
                await bench.tools(tool, **given)
            except ToolError:
                assert pane != "%0" or tool == "run_shell_command"
    assert bench.tmux("list-buffers", "-F", "#{buffer_name}") == "mine\n"
    names = {
        name
        for call in recorder.calls
        for text in call.argv
        for name in re.findall(r"(?:^|-b )((?:tmuxmcp|buffer)\S*)", text)
    }
    assert names
    assert all(re.fullmatch(r"tmuxmcp-(\d+-\d+-\d+|enter-[0-9a-f]+)", name) for name in names)


async def test_invariant_8_a_call_that_fails_midway_leaves_no_buffer(bench: Bench) -> None:
    class Stuck(Recorder):
        """tmux gets no further than to the buffer, and does not answer in time."""

        async def run(self, argv: Sequence[str], **how: Any) -> Output:
            if "load-buffer" not in argv:
                return await super().run(argv, **how)
            at = argv.index("load-buffer")
            await super().run(argv[: argv.index(";", at)], **how)
            assert "tmuxmcp-" in bench.tmux("list-buffers", "-F", "#{buffer_name}")
            raise TmuxTimeout("tmux did not answer.")

    bench.tmux("set-buffer", "-b", "mine", "value")
    bench.client.runner = Stuck(bench.client.runner)
    for tool in ("send_keys", "paste_text"):
        with pytest.raises(TmuxTimeout):
            await bench.tools(tool, pane_id="%0", text="text")
    assert bench.tmux("list-buffers", "-F", "#{buffer_name}") == "mine\n"


# 9. Command-bearing arguments are redacted in the audit record and in refusals. (redaction)

PAYLOADS = [
    (name, parameter)
    for name, parameters in {
        "respawn_pane": ["command"],
        "run_shell_command": ["command"],
        "send_keys": ["text", "keys", "enter"],
        "send_keys_batch": ["operations.text", "operations.keys", "operations.enter"],
        "paste_text": ["text", "enter"],
    }.items()
    for parameter in parameters
]


def test_invariant_9_these_are_the_arguments_that_bear_commands() -> None:
    assert {(name, parameter) for name, parameter in PAYLOADS} == {
        (name, parameter)
        for name, row in offer.rows().items()
        for parameter, sink in row.sinks.items()
        if sink in PAYLOAD_SINKS
    }
    assert {name for name, _ in PAYLOADS} == PANE_INPUT | PANE_COMMAND


secrets = st.text(string.ascii_letters + string.digits + " -;'\"$#{}é", min_size=12, max_size=30).map(
    "s3cr3t {}".format
)


@pytest.mark.parametrize(("name", "parameter"), PAYLOADS)
@given(secret=secrets)
@few
async def test_invariant_9_no_payload_is_recorded_or_told_in_a_refusal(
    record: Path, name: str, parameter: str, secret: str
) -> None:
    record.unlink(missing_ok=True)
    offered = Offer(audit=str(record))
    holder, _, field = parameter.rpartition(".")
    shapes: list[Any] = [secret, [secret], [[secret]], {secret: secret}, {"text": secret}, [{secret: 1}]]
    pane = {"pane_id": "%0"}
    for shape in shapes:
        for shaped in ({field: shape}, {f"{field}s": shape}, {secret: shape}, {**pane, field: shape}):
            arguments = {holder: [{**pane, **shaped}]} if holder else shaped
            for sent in (
                arguments,
                {**arguments, "timeout": secret},
                {**arguments, **pane, "pane_id": shape},
            ):
                answer = await offered.call(name, sent)
                if said(answer).get("code") == "invalid_argument":
                    assert "s3cr3t" not in json.dumps(answer, ensure_ascii=False)
    assert "s3cr3t" not in record.read_text()
