"""The surface: what is offered, on what grounds, what is not, and why."""

from __future__ import annotations

from itertools import chain, combinations
from types import MappingProxyType
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmuxmcp import manifest, surface
from tmuxmcp.errors import StartupError
from tmuxmcp.manifest import CONSERVATIVE, TOOLSETS
from tmuxmcp.resources import manifest_text
from tmuxmcp.settings import Settings, SocketSelector
from tmuxmcp.surface import Ambient, ServerState, Surface

ROWS = manifest.load(manifest_text())
NAMES = list(ROWS)
READS = list(ROWS["call_read_tools_batch"].nested)
ELIGIBLE = [name for name in READS if name != "show_environment"]
COMBINATIONS = list(chain.from_iterable(combinations(TOOLSETS, size) for size in range(5)))
ALL_FOUR = "TMUXMCP_TOOLSETS=inspect,manage,execute,teardown"


def resolve(
    toolsets: str | None = None,
    tools: str = "",
    exclude: str = "",
    server_state: ServerState = "absent",
    ambient: Ambient = "quiet",
    settings: Settings | None = None,
) -> Surface:
    chosen = msgspec.structs.replace(
        settings or Settings(),
        toolsets=None if toolsets is None else tuple(toolsets.split(",") if toolsets else ()),
        tools=tuple(tools.split()),
        exclude_tools=tuple(exclude.split()),
    )
    return surface.resolve(ROWS, chosen, server_state=server_state, ambient=ambient)


def in_toolsets(*toolsets: str) -> list[str]:
    return [name for name in NAMES if ROWS[name].toolset in toolsets]


# Which tools.


@pytest.mark.parametrize("toolsets", COMBINATIONS, ids="+".join)
def test_all_sixteen_combinations_of_toolsets(toolsets: tuple[str, ...]) -> None:
    found = resolve(",".join(toolsets))
    assert list(found.tools) == in_toolsets(*toolsets)
    assert found.toolsets == toolsets
    assert {tool.grounds for tool in found.tools.values()} <= {"TOOLSETS"}
    assert [off.name for off in found.off] == [toolset for toolset in TOOLSETS if toolset not in toolsets]
    assert found.command_capable == ("execute" in toolsets)
    for name in found.refused:
        assert ROWS[name].toolset in found.explain(name)


def test_toolsets_are_a_set() -> None:
    assert resolve("teardown,inspect") == resolve("inspect,teardown")


def test_by_default_all_four_toolsets_where_no_tmux_server_is_there() -> None:
    found = resolve()
    assert list(found.tools) == NAMES
    assert found.off == ()
    assert {tool.grounds for tool in found.tools.values()} == {"default"}
    assert [name for name, tool in found.tools.items() if tool.needs_own_server] == in_toolsets("teardown")


OTHERS: list[tuple[Settings, ServerState, str]] = [
    (Settings(), "existing", "a tmux server was there at startup"),
    (Settings(), "started", "a tmux server was there at startup"),
    (Settings(tmux_config="user"), "absent", "the tmux configuration is not the minimal one"),
    (Settings(tmux_config="/etc/x.conf"), "absent", "the tmux configuration is not the minimal one"),
    (
        Settings(socket=SocketSelector("inherit")),
        "absent",
        "the socket is inherit, not the default name:tmuxmcp",
    ),
    (Settings(socket=SocketSelector("path", "/x")), "absent", "the socket is path:/x, not the default"),
    (Settings(socket=SocketSelector("name", "b")), "absent", "the socket is name:b, not the default"),
]


@pytest.mark.parametrize(("settings", "server_state", "why"), OTHERS)
def test_teardown_has_to_be_asked_for_elsewhere(
    settings: Settings, server_state: ServerState, why: str
) -> None:
    found = resolve(settings=settings, server_state=server_state)
    assert list(found.tools) == in_toolsets("inspect", "manage", "execute")
    (off,) = found.off
    assert off.name == "teardown"
    assert off.reason.startswith(why)
    assert off.remedy == f"Set {ALL_FOUR} and restart this MCP server."
    assert found.explain("kill_pane") == (
        f"kill_pane (toolset teardown) is not enabled: {off.reason}. {off.remedy}"
    )


@pytest.mark.parametrize(("settings", "server_state", "why"), OTHERS)
def test_teardown_that_was_asked_for_is_on_everywhere(
    settings: Settings, server_state: ServerState, why: str
) -> None:
    asked = resolve("inspect,manage,execute,teardown", settings=settings, server_state=server_state)
    assert list(asked.tools) == NAMES
    named = resolve(tools="kill_pane", settings=settings, server_state=server_state)
    assert list(named.tools) == [*in_toolsets("inspect", "manage", "execute"), "kill_pane"]
    assert why not in named.explain("kill_pane")
    for found in (asked, named):
        assert not any(tool.needs_own_server for tool in found.tools.values())


def test_a_tool_that_the_operator_named_is_not_on_by_default_alone() -> None:
    found = resolve(tools="kill_pane capture_pane")
    assert {name for name, tool in found.tools.items() if tool.grounds == "TOOLS"} == {
        "kill_pane",
        "capture_pane",
    }
    assert not found.tools["kill_pane"].needs_own_server
    assert found.tools["kill_window"].needs_own_server


def test_the_narrow_surface_of_the_recipe() -> None:
    found = resolve("", tools="list_sessions create_session run_shell_command capture_since")
    assert list(found.tools) == ["list_sessions", "capture_since", "create_session", "run_shell_command"]
    assert {tool.grounds for tool in found.tools.values()} == {"TOOLS"}
    assert found.command_capable


def test_an_exclusion_wins_over_every_inclusion() -> None:
    found = resolve("inspect,teardown", tools="kill_session", exclude="kill_session")
    assert "kill_session" not in found.tools
    assert found.explain("kill_session") == (
        "kill_session (toolset teardown) is not enabled: TMUXMCP_EXCLUDE_TOOLS names it. "
        "Remove it from TMUXMCP_EXCLUDE_TOOLS and restart this MCP server."
    )


def test_a_tool_outside_the_defaults_needs_to_be_asked_for() -> None:
    rare = {**ROWS, "kill_pane": msgspec.structs.replace(ROWS["kill_pane"], default_enabled=False)}
    by_default = surface.resolve(rare, Settings(), server_state="absent", ambient="quiet")
    assert list(by_default.tools) == [name for name in NAMES if name != "kill_pane"]
    assert "it is not on by default. Add it to TMUXMCP_TOOLS" in by_default.explain("kill_pane")
    for asked in (Settings(toolsets=TOOLSETS), Settings(tools=("kill_pane",))):
        assert "kill_pane" in surface.resolve(rare, asked, server_state="absent", ambient="quiet").tools


def test_rows_of_another_server_are_no_tools_here() -> None:
    other = {**ROWS, "kill_pane": msgspec.structs.replace(ROWS["kill_pane"], server="relay")}
    found = surface.resolve(other, Settings(), server_state="absent", ambient="quiet")
    assert "kill_pane" not in {**found.tools, **found.refused}
    with pytest.raises(StartupError, match="TMUXMCP_TOOLS names 'kill_pane'"):
        surface.resolve(other, Settings(tools=("kill_pane",)), server_state="absent", ambient="quiet")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            Settings(toolsets=("inspct",)),
            "TMUXMCP_TOOLSETS names 'inspct', {} Did you mean inspect? Valid: inspect, ",
        ),
        (
            Settings(toolsets=("Mine",)),
            "TMUXMCP_TOOLSETS names 'Mine', {} Valid: inspect, manage, execute, teardown.",
        ),
        (
            Settings(tools=("capture",)),
            "TMUXMCP_TOOLS names 'capture', {} Did you mean capture_pane? Valid: list_",
        ),
        (
            Settings(tools=("é" * 101,)),
            "TMUXMCP_TOOLS names '" + "\\xe9" * 100 + "...', {} Valid: list_sessions, ",
        ),
        (Settings(exclude_tools=("inspect",)), "TMUXMCP_EXCLUDE_TOOLS names 'inspect', {} "),
        (
            Settings(exclude_tools=("zzz",), spellings={"exclude_tools": "--exclude-tools"}),
            "--exclude-tools names 'zzz', {} Valid: list_sessions, ",
        ),
    ],
)
def test_an_unknown_name_ends_the_start_with_the_valid_ones(settings: Settings, message: str) -> None:
    with pytest.raises(StartupError) as caught:
        surface.resolve(ROWS, settings, server_state="absent", ambient="quiet")
    assert caught.value.message.startswith(message.format("which does not exist."))


# Aggregates.


def nested(found: Surface, name: str = "call_read_tools_batch") -> list[str]:
    return list(found.tools[name].row.nested)


def test_the_read_batch_leaves_the_environment_out_unless_it_is_named() -> None:
    found = resolve()
    assert nested(found) == ELIGIBLE
    assert found.tools["call_read_tools_batch"].row == msgspec.structs.replace(
        ROWS["call_read_tools_batch"], nested=tuple(ELIGIBLE)
    )
    named = resolve(tools="show_environment").tools["call_read_tools_batch"].row
    assert list(named.nested) == READS
    assert named.output == get_args(manifest.Output)
    assert manifest.opener(named) == manifest.opener(ROWS["call_read_tools_batch"])


def test_the_read_batch_claims_what_it_can_call() -> None:
    metadata = resolve("", tools="call_read_tools_batch list_sessions get_server_info").tools
    row = metadata["call_read_tools_batch"].row
    assert row.nested == ("list_sessions", "get_server_info")
    assert row.output == ("tmux-metadata",)
    assert (row.may_expose_secrets, row.may_return_untrusted_content) == (False, True)
    assert metadata["call_read_tools_batch"].hints == manifest.Hints(
        read_only=True, destructive=False, idempotent=True, open_world=False
    )
    content = resolve("", tools="call_read_tools_batch capture_pane").tools["call_read_tools_batch"]
    assert content.row.output == ("terminal-content",)
    assert content.hints.open_world


def test_an_exclusion_reaches_into_the_read_batch() -> None:
    found = resolve(tools="show_environment", exclude="show_environment capture_pane")
    assert nested(found) == [name for name in ELIGIBLE if name != "capture_pane"]


@pytest.mark.parametrize(
    ("found", "batch", "remedy"),
    [
        (resolve(exclude="send_keys"), "send_keys_batch", "Enable one of: send_keys."),
        (resolve("", tools="send_keys_batch"), "send_keys_batch", "Enable one of: send_keys."),
        (
            resolve("", tools="call_read_tools_batch"),
            "call_read_tools_batch",
            "Enable one of: list_sessions, ",
        ),
        (
            resolve("", tools="call_read_tools_batch wait_for_text send_keys"),
            "call_read_tools_batch",
            "Enable one of: list_sessions, ",
        ),
        (
            resolve("inspect", exclude=" ".join(ELIGIBLE)),
            "call_read_tools_batch",
            "Enable one of: list_sessions, ",
        ),
    ],
)
def test_an_aggregate_that_could_call_nothing_is_not_offered(found: Surface, batch: str, remedy: str) -> None:
    assert batch not in found.tools
    off = found.refused[batch]
    assert off in found.off
    assert (off.name, off.reason) == (batch, "no tool that it could call is enabled")
    assert off.remedy.startswith(remedy)


# Hints.


@pytest.mark.parametrize("ambient", get_args(Ambient))
def test_direct_hints_are_advertised_only_where_nothing_can_add_to_a_call(ambient: Ambient) -> None:
    for name, tool in resolve(ambient=ambient).tools.items():
        assert tool.hints == (ROWS[name].hints if ambient == "quiet" else CONSERVATIVE)
        assert tool.row.hints == ROWS[name].hints


# Names that cannot be called.


def test_the_remedy_is_in_the_spelling_in_use() -> None:
    flag = Settings(spellings={"toolsets": "--toolsets"})
    assert "Set --toolsets=inspect,teardown and restart" in resolve("teardown", settings=flag).explain(
        "capture_pane"
    )
    assert surface.enabling(Settings(), TOOLSETS[::-1]) == ALL_FOUR


def test_an_unknown_name_gets_names_like_it() -> None:
    found = resolve("inspect")
    assert found.explain("kill_sesion").startswith(
        "There is no tool 'kill_sesion'. Names like it: kill_session"
    )
    assert found.explain("\x1b[31m") == "There is no tool '\\x1b[31m'. tools/list has the names."


@given(st.text(max_size=300))
def test_an_unknown_name_is_shown_short_and_printable(name: str) -> None:
    shown = resolve().explain(f"{name}?")
    assert shown.isprintable()
    assert len(shown) < 1500


# Any selection.

SUBSETS = st.lists(st.sampled_from(NAMES), unique=True, max_size=8)


@given(
    st.none() | st.lists(st.sampled_from(TOOLSETS), unique=True),
    SUBSETS,
    SUBSETS,
    st.sampled_from(get_args(ServerState)),
)
def test_any_selection(
    toolsets: list[str] | None, tools: list[str], exclude: list[str], server_state: ServerState
) -> None:
    def found() -> Surface:
        wanted = None if toolsets is None else ",".join(toolsets)
        return resolve(wanted, " ".join(tools), " ".join(exclude), server_state)

    by_default = TOOLSETS if server_state == "absent" else TOOLSETS[:3]
    expanded = in_toolsets(*(by_default if toolsets is None else toolsets))
    selected = {*expanded, *tools} - set(exclude)
    batches = {name for name in selected if ROWS[name].nested}
    offered = set(found().tools)

    assert selected - batches == offered - batches
    assert offered <= selected
    for name in batches:
        callable_inside = selected & set(ROWS[name].nested) - ({"show_environment"} - set(tools))
        assert (name in offered) == bool(callable_inside)
        assert name not in offered or set(nested(found(), name)) == callable_inside

    assert [*found().tools] == [name for name in NAMES if name in offered]
    assert [*found().refused] == [name for name in NAMES if name not in offered]
    assert all(found().explain(name).startswith(f"{name} (toolset ") for name in found().refused)
    assert found() == found()


def test_the_surface_is_frozen() -> None:
    found = resolve()
    assert isinstance(found.tools, MappingProxyType)
    assert isinstance(found.refused, MappingProxyType)
    with pytest.raises(AttributeError, match="immutable"):
        found.tools = {}  # type: ignore[misc]
