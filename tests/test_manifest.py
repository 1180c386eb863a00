"""The manifest as it is, and what the loader refuses."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.inventory import CONTENT_READS, CREATE, EXECUTE, INSPECT, MANAGE, OPENERS, TEARDOWN
from tmuxmcp import manifest
from tmuxmcp.errors import StartupError
from tmuxmcp.manifest import Row
from tmuxmcp.resources import manifest_text

TEXT = manifest_text()
TABLES: list[dict[str, Any]] = tomllib.loads(TEXT)["tool"]
ROWS = manifest.load(TEXT)


def names(holds: Callable[[Row], object]) -> set[str]:
    return {row.name for row in ROWS.values() if holds(row)}


# What the rows say.


def test_the_47_tools_stand_in_order_in_their_toolsets() -> None:
    assert list(ROWS) == [*INSPECT, *MANAGE, *EXECUTE, *TEARDOWN]
    assert names(lambda row: row.toolset == "inspect") == set(INSPECT)
    assert names(lambda row: row.toolset == "manage") == set(MANAGE)
    assert names(lambda row: row.toolset == "execute") == set(EXECUTE)
    assert names(lambda row: row.toolset == "teardown") == set(TEARDOWN)
    assert len({row.title for row in ROWS.values()}) == len(ROWS) == 47


def test_the_direct_hints() -> None:
    assert names(lambda row: row.hints.read_only) == set(INSPECT)
    assert names(lambda row: not row.hints.destructive) == {*INSPECT, *CREATE}
    assert names(lambda row: row.hints.open_world) == {*EXECUTE, *CONTENT_READS}
    assert names(lambda row: not row.hints.idempotent) == (
        {
            *EXECUTE,
            *TEARDOWN,
            "move_window",
            "swap_pane",
            "enter_copy_mode",
            "wait_for_channel",
            "signal_channel",
        }
        - {"set_synchronize_panes"}
    )


def test_reach_and_effect() -> None:
    assert names(lambda row: row.reach == "configured-process") == CREATE
    assert names(lambda row: row.reach == "pane-command") == {"run_shell_command", "respawn_pane"}
    assert names(lambda row: row.reach == "pane-input") == {"send_keys", "send_keys_batch", "paste_text"}
    assert names(lambda row: row.reach == "host-command") == set()
    assert names(lambda row: row.effect == ("observe",)) == set(INSPECT)
    assert names(lambda row: row.effect == ("delete",)) == set(TEARDOWN)
    assert names(lambda row: row.effect == ("change", "delete")) == {"respawn_pane"}


@pytest.mark.parametrize(
    ("name", "effect", "reach", "output", "hints"),
    [
        ("run_shell_command", "change", "pane-command", "terminal-content", "false true false true"),
        ("send_keys", "change", "pane-input", "tmux-metadata", "false true false true"),
        ("create_window", "change", "configured-process", "tmux-metadata", "false false false true"),
        ("respawn_pane", "change+delete", "pane-command", "tmux-metadata", "false true false true"),
        ("set_synchronize_panes", "change", "none", "tmux-metadata", "false true true true"),
        ("rename_window", "change", "none", "tmux-metadata", "false true true false"),
        ("set_history_limit", "change", "none", "tmux-metadata", "false true true false"),
        ("clear_pane_scrollback", "delete", "none", "tmux-metadata", "false true false false"),
        ("kill_session", "delete", "none", "tmux-metadata", "false true false false"),
        ("capture_pane", "observe", "none", "terminal-content", "true false true true"),
        ("snapshot_pane", "observe", "none", "tmux-metadata+terminal-content", "true false true true"),
        ("show_environment", "observe", "none", "process-environment", "true false true false"),
        (
            "get_tmux_variables",
            "observe",
            "none",
            "tmux-metadata+configured-command",
            "true false true false",
        ),
    ],
)
def test_the_rows_that_the_capability_model_prints(
    name: str, effect: str, reach: str, output: str, hints: str
) -> None:
    row = ROWS[name]
    assert ("+".join(row.effect), row.reach, "+".join(row.output)) == (effect, reach, output)
    said = (row.hints.read_only, row.hints.destructive, row.hints.idempotent, row.hints.open_world)
    assert " ".join(str(hint).lower() for hint in said) == hints


def test_the_flags() -> None:
    assert names(lambda row: row.self_bounded) == {"wait_for_text", "wait_for_channel", "run_shell_command"}
    assert names(lambda row: row.amplifies_future_input) == {"set_synchronize_panes"}
    assert names(lambda row: not row.may_trigger_configured_hooks) == {"wait_for_channel", "signal_channel"}
    assert names(lambda row: not row.default_enabled) == set()
    assert names(lambda row: row.server != "terminal") == set()
    assert names(lambda row: row.may_expose_secrets) <= names(lambda row: row.may_return_untrusted_content)


def test_aggregates_name_what_they_nest() -> None:
    assert names(lambda row: row.nested) == {"call_read_tools_batch", "send_keys_batch"}
    assert ROWS["send_keys_batch"].nested == ("send_keys",)
    own = {"call_read_tools_batch", "wait_for_text"}
    assert ROWS["call_read_tools_batch"].nested == tuple(name for name in INSPECT if name not in own)


def test_where_executable_input_lands() -> None:
    def parameters(sink: str) -> set[str]:
        return {
            f"{row.name}.{name}" for row in ROWS.values() for name in row.sinks if row.sinks[name] == sink
        }

    assert parameters("shell-command") == {"run_shell_command.command", "respawn_pane.command"}
    assert parameters("pane-input") == {
        *(f"send_keys.{name}" for name in ("text", "keys", "enter")),
        *(f"send_keys_batch.operations.{name}" for name in ("text", "keys", "enter")),
        *(f"paste_text.{name}" for name in ("text", "enter")),
    }
    assert parameters("tmux-format") == parameters("process-argv") == set()
    assert {parameter.rpartition(".")[2] for parameter in parameters("regex")} == {
        "pattern",
        "patterns",
        "stop",
        "arguments",
    }


def test_every_claim_of_no_destruction_names_its_own_test() -> None:
    evidence = [row.evidence for row in ROWS.values() if not row.hints.destructive]
    assert len(set(evidence)) == len(evidence) == 21
    assert all(f"test_{row.name}_" in row.evidence for row in ROWS.values() if row.evidence)


# What descriptions begin with.


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_each_opener_is_the_sentence_of_its_kind_and_says_what_the_flags_say(row: Row) -> None:
    text = manifest.opener(row)
    assert text.startswith(OPENERS[row.name])
    assert bool(re.search(r"sensitive|secret", text)) == row.may_expose_secrets
    assert ("untrusted" in text) == row.may_return_untrusted_content
    assert text.endswith(row.notice)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("set_synchronize_panes", r"Duplicates subsequent pane input to every pane in the window"),
        ("set_history_limit", r"Takes a bounded whole number.* no version is claimed to be loss-free"),
        ("respawn_pane", r"Ends the pane's program and discards its screen and history"),
        ("call_read_tools_batch", r"Allowing it allows every tool in its enum"),
        ("send_keys_batch", r"Allowing it allows send_keys"),
    ],
)
def test_mandatory_lines(name: str, line: str) -> None:
    assert re.search(line, manifest.opener(ROWS[name]))


@given(st.text(), st.text())
def test_a_description_is_the_opener_and_the_first_paragraph_on_one_line(first: str, rest: str) -> None:
    row = ROWS["list_sessions"]
    text = manifest.description(row, "Which sessions\n    there are.\n\n    Not this.")
    assert text == f"{manifest.opener(row)} Which sessions there are."
    assert manifest.description(row, "") == manifest.opener(row)
    free = manifest.description(row, f"{first}\n\n{rest}")
    assert free.startswith(manifest.opener(row))
    assert "\n" not in free


# What the loader refuses.


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def load_with(name: str, columns: dict[str, Any]) -> manifest.Manifest:
    """The manifest with some columns of one row replaced; None takes a column away."""
    lines = []
    for table in TABLES:
        lines.append("[[tool]]")
        row = {**table, **columns} if table["name"] == name else table
        lines += [f"{column} = {toml(value)}" for column, value in row.items() if value is not None]
    return manifest.load("\n".join(lines))


def hints(name: str, **changes: object) -> dict[str, object]:
    (table,) = (table for table in TABLES if table["name"] == name)
    return {**table["hints"], **changes}


def test_the_unchanged_rows_pass() -> None:
    assert load_with("kill_pane", {}) == ROWS


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("kill_pane", {"title": " "}, "title: must be a text"),
    ("kill_pane", {"title": None}, "title: Object missing required field `title`"),
    ("kill_pane", {"tier": 3}, "tier: Object contains unknown field `tier`"),
    ("kill_pane", {"hints": {"read_only": False}}, "hints.destructive: Object missing required field"),
    ("kill_pane", {"hints": hints("kill_pane", destructive=1)}, "hints.destructive: Expected `bool`"),
    ("kill_pane", {"toolset": "wipe"}, "toolset: Invalid enum value 'wipe', must be one of inspect, manage"),
    ("kill_pane", {"server": "other"}, "server: Invalid enum value 'other', must be one of terminal"),
    ("kill_pane", {"sinks": {"pane_id": "id"}}, "sinks[...]: Invalid enum value 'id', must be one of none"),
    ("kill_pane", {"sinks": {"socket_name": "none"}}, "sinks: must be keyed by parameters"),
    ("kill_pane", {"sinks": {"a.socket": "none"}}, "sinks: must be keyed by parameters"),
    ("kill_pane", {"effect": ["change"]}, "effect: must be delete in teardown"),
    ("kill_pane", {"effect": []}, "effect: must be delete in teardown"),
    ("kill_pane", {"toolset": "manage"}, "effect: must be change in manage"),
    ("kill_pane", {"output": []}, "output: must be some of"),
    ("kill_pane", {"output": ["tmux-metadata"] * 2}, "output: must be some of"),
    ("kill_pane", {"evidence": "tests/test_x.py::test_y"}, "evidence: must be"),
    ("kill_pane", {"opener": "manage"}, "opener: must be teardown with"),
    ("capture_pane", {"evidence": None}, "evidence: must be"),
    ("capture_pane", {"evidence": "yes"}, "evidence: must be"),
    ("capture_pane", {"may_expose_secrets": False}, "may_expose_secrets: must be true"),
    ("capture_pane", {"may_return_untrusted_content": False}, "may_return_untrusted_content: must be true"),
    ("capture_pane", {"opener": "inspect-metadata"}, "opener: must be inspect-pane-output"),
    ("capture_pane", {"reach": "pane-input"}, "toolset: must be execute"),
    ("show_option", {"sinks": {"name": "tmux-format"}}, "sinks: must be not executable"),
    ("show_option", {"sinks": {"name": "tmux-state-value"}}, "sinks: must be none, tmux-lookup or regex"),
    ("rename_window", {"sinks": {"new_name": "tmux-format"}}, "sinks: must be not executable"),
    ("rename_window", {"reach": "pane-command"}, "toolset: must be execute"),
    ("create_window", {"sinks": {"start_directory": "tmux-format"}}, "sinks: must be not executable"),
    ("create_window", {"sinks": {"command": "shell-command"}}, "sinks: must be not executable"),
    ("send_keys", {"sinks": {"text": "tmux-format"}}, "sinks: must be pane-input with"),
    ("send_keys", {"sinks": {"pane_id": "tmux-lookup"}}, "sinks: must be pane-input with"),
    ("send_keys", {"reach": "none"}, "toolset: must be execute"),
    ("run_shell_command", {"reach": "host-command"}, "reach: must be anything else"),
    ("run_shell_command", {"sinks": {"command": "pane-input"}}, "sinks: must be process-argv or shell"),
    ("set_synchronize_panes", {"amplifies_future_input": None}, "toolset: must be execute"),
    ("set_synchronize_panes", {"notice": None}, "notice: must be given"),
    ("send_keys_batch", {"notice": None}, "notice: must be given"),
    ("send_keys_batch", {"nested": ["send_keys", "paste_text"]}, "nested: must be at most one tool"),
    ("send_keys_batch", {"nested": ["send_key"]}, "nested: send_key is not a tool"),
    ("send_keys_batch", {"nested": ["run_shell_command"]}, "nested: must be without run_shell_command"),
    ("send_keys_batch", {"nested": ["send_keys_batch"]}, "nested: must be without send_keys_batch"),
    ("send_keys_batch", {"nested": ["kill_pane"]}, "nested: must be without kill_pane"),
    ("call_read_tools_batch", {"nested": ["wait_for_text"]}, "nested: must be without wait_for_text"),
]


@pytest.mark.parametrize(("name", "columns", "problem"), REFUSED)
def test_a_contradiction_is_refused_with_row_and_column(
    name: str, columns: dict[str, Any], problem: str
) -> None:
    with pytest.raises(StartupError) as caught:
        load_with(name, columns)
    assert caught.value.message.startswith(f"tools.toml: {name}: {problem}")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Kill", "Kill: name: must be a lower-case identifier"),
        ("kill_window", "kill_window: name: stands twice"),
        (7, "row 45: name: Expected `str`, got `int`"),
        (None, "row 45: name: Object missing required field `name`"),
    ],
)
def test_a_name_that_names_no_single_tool_is_refused(name: object, problem: str) -> None:
    with pytest.raises(StartupError) as caught:
        load_with("kill_pane", {"name": name})
    assert caught.value.message.startswith(f"tools.toml: {problem}")


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("hint", manifest.Hints.__struct_fields__)
def test_no_hint_can_be_turned_around(name: str, hint: str) -> None:
    if hint == "idempotent" and ROWS[name].reach == "none" and ROWS[name].toolset in ("manage", "execute"):
        # Whether repeating such a change adds anything follows from the change alone.
        return
    turned = not getattr(ROWS[name].hints, hint)
    with pytest.raises(StartupError, match=f"^tools.toml: {name}: hints.{hint}: must be"):
        load_with(name, {"hints": hints(name, **{hint: turned})})


@given(st.sampled_from(sorted(ROWS)), st.sets(st.sampled_from(get_args(manifest.Sink)), max_size=3))
def test_no_accepted_row_claims_less_than_its_sinks(name: str, sinks: set[str]) -> None:
    try:
        row = load_with(name, {"sinks": {sink.replace("-", "_"): sink for sink in sinks}})[name]
    except StartupError:
        return
    assert "tmux-format" not in sinks
    if row.reach in ("none", "configured-process"):
        assert sinks <= {"none", "tmux-lookup", "tmux-state-value", "regex"}
    else:
        assert row.hints == manifest.CONSERVATIVE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tool = [", "tools.toml: not valid TOML"),
        ("", "tools.toml: holds [[tool]] rows and nothing else"),
        ("tool = 3", "tools.toml: holds [[tool]] rows and nothing else"),
        ("version = 1\n" + TEXT, "tools.toml: holds [[tool]] rows and nothing else"),
        ('tool = ["x"]', "tools.toml: row 1: Expected `object`, got `str`"),
    ],
)
def test_a_file_of_another_shape_is_refused(text: str, message: str) -> None:
    with pytest.raises(StartupError) as caught:
        manifest.load(text)
    assert caught.value.message.startswith(message)
