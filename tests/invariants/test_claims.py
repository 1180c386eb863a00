"""Invariants 1 to 5 of the capability model: what rows and descriptions claim.

They hold of the manifest always, and of what is advertised when nothing around tmux adds to a call.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import tomllib
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings

from tests import offer
from tests.inventory import (
    ALL,
    BY_TOOLSET,
    CONTENT_READS,
    CREATE,
    EXECUTE,
    INSPECT,
    MANAGE,
    OPENERS,
    PANE_COMMAND,
    PANE_INPUT,
    TEARDOWN,
)
from tests.offer import TOOLSETS, Offer
from tmuxmcp import manifest, resources, surface
from tmuxmcp.settings import Settings
from tmuxmcp.tools import Call

ROOT = Path(__file__).resolve().parent.parent.parent
HINTS = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}
FORMAT = "tmux-format"
EXECUTABLE = {"pane-input", "shell-command", "process-argv", FORMAT}
SOCKETS = {"socket", "socket_name", "socket_path"}

few = hypothesis_settings(max_examples=15)
"""A whole surface takes some time to list."""


async def advertised(chosen: Settings = offer.EVERYTHING, **how: Any) -> dict[str, dict[str, Any]]:
    return {tool["name"]: tool for tool in await Offer(chosen, **how).tools()}


def direct(name: str) -> dict[str, bool]:
    hints = offer.rows()[name].hints
    return {sent: getattr(hints, hint) for hint, sent in HINTS.items()}


async def claimed() -> Iterator[tuple[str, dict[str, bool]]]:
    """The hints of every tool, as its row has them and as they are advertised when all is quiet."""
    listed = await advertised()
    assert list(listed) == list(offer.rows()) == ALL
    return ((name, hints) for name in ALL for hints in (direct(name), listed[name]["annotations"]))


# 1. Registered tool names equal manifest names, one to one; hints and titles are explicit. (CM-4, CM-5)


def is_tool(member: object) -> bool:
    """Whether it is a function of the form that a tool has."""
    if not inspect.iscoroutinefunction(member) or member.__name__.startswith("_"):
        return False
    types = list(typing.get_type_hints(member).values())
    return (
        len(types) == 3 and types[0] is Call and all(issubclass(each, msgspec.Struct) for each in types[1:])
    )


def test_invariant_1_each_function_is_a_row_and_each_row_a_function() -> None:
    assert list(offer.rows()) == list(offer.functions()) == ALL
    for toolset in TOOLSETS:
        module = importlib.import_module(f"tmuxmcp.tools.{toolset}")
        registered = {name for name, _ in inspect.getmembers(module, is_tool)}
        assert registered == {name for name, row in offer.rows().items() if row.toolset == toolset}
        assert registered == set(BY_TOOLSET[toolset])


async def test_invariant_1_hints_and_titles_are_explicit() -> None:
    tables = tomllib.loads(resources.manifest_text())["tool"]
    listed = await advertised()
    assert [table["name"] for table in tables] == list(listed)
    for table, tool in zip(tables, listed.values(), strict=True):
        assert set(table["hints"]) == set(HINTS)
        assert set(tool["annotations"]) == set(HINTS.values())
        assert {type(hint) for hint in (*table["hints"].values(), *tool["annotations"].values())} == {bool}
        assert tool["title"] == table["title"] != ""


# 2. Inspect tools are read-only, of reach none, without executable sinks; no other tool is read-only.
# (CM-2, CM-5)


def test_invariant_2_inspect_tools_interpret_nothing_that_a_client_sends() -> None:
    for name in INSPECT:
        row = offer.rows()[name]
        assert (row.toolset, row.reach, row.effect) == ("inspect", "none", ("observe",)), name
        assert not EXECUTABLE & set(row.sinks.values()), name
        assert set(row.sinks.values()) <= {"none", "tmux-lookup", "regex"}, name


async def test_invariant_2_what_is_read_only_is_an_inspect_tool() -> None:
    for name, hints in await claimed():
        assert hints["readOnlyHint"] == (name in INSPECT), name
    for name, tool in (await advertised()).items():
        if name in INSPECT:
            assert tool["_meta"]["io.github.tmuxmcp/process-reach"] == "none"
            assert tool["_meta"]["io.github.tmuxmcp/tmux-effect"] == ["observe"]


# 3. No tool has host-command reach, and no schema selects a socket. (CM-1, CM-6)


@given(offer.settings, offer.server_states)
@few
async def test_invariant_3_no_tool_runs_a_command_on_the_host(
    chosen: Settings, state: surface.ServerState
) -> None:
    assert "host-command" in get_args(manifest.Reach)  # reserved for what is prohibited
    assert all(row.reach != "host-command" for row in offer.rows().values())
    offered = Offer(chosen, server_state=state)
    reaches = [tool["_meta"]["io.github.tmuxmcp/process-reach"] for tool in await offered.tools()]
    assert reaches.count("host-command") == offered.record()["host_command_tools"] == 0


def test_invariant_3_a_tool_of_that_reach_would_be_counted() -> None:
    offered = Offer()
    forbidden = msgspec.structs.replace(offer.rows()["kill_pane"], reach="host-command")
    tool = msgspec.structs.replace(offered.surface.tools["kill_pane"], row=forbidden)
    offered.surface = msgspec.structs.replace(offered.surface, tools={"kill_pane": tool})
    assert offered.record()["host_command_tools"] == 1


def properties(schema: Mapping[str, Any]) -> Iterator[str]:
    for name, each in schema.get("properties", {}).items():
        yield name
        yield from properties(each)
    if "items" in schema:
        yield from properties(schema["items"])


async def test_invariant_3_no_schema_selects_a_socket() -> None:
    for name, tool in (await advertised()).items():
        found = set(properties(tool["inputSchema"]))
        assert not SOCKETS & found, name
        assert not [each for each in found if "socket" in each], name
        # What the schema shows is what the sinks classify: no input is left out.
        sinks = offer.rows()[name].sinks
        assert {each.partition(".")[0] for each in sinks} == set(tool["inputSchema"]["properties"]), name


# 4. Hints: input and commands, changes, creation, deletion, terminal content; formats; evidence. (CM-2, CM-4)


async def test_invariant_4_what_delivers_input_or_commands_has_the_cautious_hints() -> None:
    for name, hints in await claimed():
        if name in PANE_INPUT | PANE_COMMAND:
            assert hints == direct(name)
            assert (hints["destructiveHint"], hints["idempotentHint"], hints["openWorldHint"]) == (
                True,
                False,
                True,
            ), name
    reach = {name: row.reach for name, row in offer.rows().items()}
    assert {name for name in ALL if reach[name] == "pane-input"} == PANE_INPUT
    assert {name for name in ALL if reach[name] == "pane-command"} == PANE_COMMAND


async def test_invariant_4_only_observing_and_adding_are_not_destructive() -> None:
    for name, hints in await claimed():
        assert hints["destructiveHint"] == (name not in {*INSPECT, *CREATE}), name
        if name in TEARDOWN:
            assert (hints["destructiveHint"], hints["openWorldHint"]) == (True, False), name
        if name in MANAGE:
            assert hints["openWorldHint"] is False, name


async def test_invariant_4_terminal_content_is_open_world() -> None:
    for name, hints in await claimed():
        assert hints["openWorldHint"] == (name in {*EXECUTE, *CONTENT_READS}), name
    for name, row in offer.rows().items():
        if "terminal-content" in row.output:
            assert row.hints.open_world, name
            assert row.may_expose_secrets, name
            assert row.may_return_untrusted_content, name


async def test_invariant_4_what_takes_no_executable_input_has_no_sink_for_it() -> None:
    for name, tool in (await advertised()).items():
        sinks = set(offer.rows()[name].sinks.values())
        assert FORMAT not in sinks, name
        first = tool["description"].split(". ")[0]
        if re.search(r"no (client-supplied executable input|command payload)", first):
            assert not EXECUTABLE & sinks, name
        else:
            assert name in PANE_INPUT | PANE_COMMAND
    for name in CREATE:
        assert not EXECUTABLE & set(offer.rows()[name].sinks.values()), name


def test_invariant_4_every_claim_of_no_destruction_has_its_own_test() -> None:
    claims = {name: row for name, row in offer.rows().items() if not row.hints.destructive}
    assert set(claims) == {*INSPECT, *CREATE}
    for name, row in claims.items():
        file, _, test = row.evidence.partition("::")
        found = {
            node.name: node
            for node in ast.parse((ROOT / file).read_text()).body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert test in found, row.evidence
        assert not found[test].decorator_list, f"{row.evidence} may be skipped"
        called = {
            node.value
            for node in ast.walk(found[test])
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert name in called, f"{row.evidence} does not call {name}"
        assert test in (f"test_{name}_observes", f"test_{name}_adds")
    evidence = [row.evidence for row in claims.values()]
    assert len(set(evidence)) == len(evidence)


@pytest.mark.parametrize("ambient", ["active", "unknown"])
async def test_invariant_4_without_evidence_about_the_whole_call_hints_are_conservative(
    ambient: surface.Ambient,
) -> None:
    conservative = dict(zip(HINTS.values(), (False, True, False, True), strict=True))
    for name, tool in (await advertised(server_state="existing", ambient=ambient)).items():
        assert tool["annotations"] == conservative, name


# 5. Each description begins with its opener, exactly; mandatory lines follow. (CM-7)

MANDATORY = {
    "set_synchronize_panes": "Duplicates subsequent pane input to every pane in the window, so one send_keys "
    "reaches them all.",
    "set_history_limit": "Takes a bounded whole number of lines. Tested per tmux version: existing panes "
    "follow the new limit on 3.7 and later only, and no version is claimed to be loss-free.",
    "respawn_pane": "Ends the pane's program and discards its screen and history.",
    "call_read_tools_batch": "Allowing it allows every tool in its enum.",
    "send_keys_batch": "Allowing it allows send_keys.",
}


async def test_invariant_5_each_description_begins_with_its_opener() -> None:
    for name, tool in (await advertised()).items():
        row, text = offer.rows()[name], tool["description"]
        assert text.startswith(f"{OPENERS[name]} "), name
        # What the opener does not say of the results, the next sentence does.
        said = manifest.opener(row)
        assert text.startswith(f"{said} "), name
        assert bool(re.search(r"sensitive|secret", said)) == row.may_expose_secrets, name
        assert ("untrusted" in said) == row.may_return_untrusted_content, name
        if name in MANDATORY:
            assert said.endswith(f" {MANDATORY[name]}"), name


async def test_invariant_5_the_history_limit_is_bounded() -> None:
    lines = (await advertised())["set_history_limit"]["inputSchema"]["properties"]["lines"]
    assert (lines["type"], lines["minimum"], lines["maximum"]) == ("integer", 100, 1_000_000)
