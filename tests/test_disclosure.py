"""The startup record, the capabilities document and the instructions say what is offered, and no more."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from scripts import claims
from tmuxmcp import disclosure, limits, manifest, resources, settings, surface
from tmuxmcp.manifest import TOOLSETS
from tmuxmcp.settings import Settings
from tmuxmcp.startup import Found
from tmuxmcp.surface import Surface
from tmuxmcp.terminal.serverinfo import ServerInfo
from tmuxmcp.tmux import socket as tmux_socket
from tmuxmcp.tmux.ambient import Ambient
from tmuxmcp.tmux.socket import Socket

ROWS = manifest.load(resources.manifest_text())
QUIET = Found(server_state="absent", ambient=Ambient("quiet", False), tmux_version="3.5a")
ACTIVE = Found(server_state="existing", ambient=Ambient("active", True, 2, 1), tmux_version="3.5a")
UNKNOWN = Found(
    server_state="existing", ambient=Ambient("unknown", True), problem="tmux is missing. Install it."
)
SERVER = "TMUXMCP_TOOLSETS=inspect,manage,execute,teardown"


class Case:
    """One configuration, resolved as at startup."""

    def __init__(self, environ: Mapping[str, str] | None = None, found: Found = QUIET) -> None:
        self.environ = dict(environ or {})
        self.settings: Settings = settings.resolve([], self.environ)
        self.socket: Socket = tmux_socket.resolve(str(self.settings.socket), self.environ)
        self.found = found
        self.surface: Surface = surface.resolve(
            ROWS, self.settings, server_state=found.server_state, ambient=found.ambient.state
        )

    def record(self) -> dict[str, Any]:
        return disclosure.record(self.settings, self.socket, self.surface, self.found)

    def capabilities(self, server: ServerInfo | None = None) -> dict[str, Any]:
        return disclosure.capabilities(self.record(), self.surface, server)

    def instructions(self) -> str:
        return disclosure.instructions(self.settings, self.socket, self.surface, self.found, self.environ)


def test_the_record_of_a_first_start() -> None:
    record = Case().record()
    path = tmux_socket.resolve("name:tmuxmcp", {}).path
    assert record["socket"] == "name:tmuxmcp"
    assert record["socket_form"] == "name"
    assert record["resolved_socket_path"] == path
    assert record["attach_command"] == f"tmux -N -S {path} attach"
    assert record["server_state"] == "absent"
    assert record["tmux_config"] == "minimal"
    assert record["configuration_provenance"] == "unknown"
    assert record["ambient"] == {"state": "quiet", "hooks": 0, "aliases": 0}
    assert record["toolsets"] == list(TOOLSETS)
    assert record["tool_count"] == 47
    assert record["off"] == []
    assert record["command_capable"] is True
    assert record["host_command_tools"] == 0
    assert record["tmux_usable"] is True
    assert record["warnings"] == []
    assert json.loads(json.dumps(record)) == record


def test_the_record_of_a_second_start_says_what_is_off_and_how_to_get_it() -> None:
    record = Case(found=ACTIVE).record()
    assert record["server_state"] == "existing"
    assert record["configuration_provenance"] == "unknown"
    assert record["ambient"] == {"state": "active", "hooks": 2, "aliases": 1}
    assert record["toolsets"] == ["inspect", "manage", "execute"]
    (off,) = record["off"]
    assert off["name"] == "teardown"
    assert SERVER in off["remedy"]
    assert any("unknown provenance" in warning for warning in record["warnings"])


def test_the_record_warns_of_an_inherited_socket() -> None:
    record = Case({"TMUXMCP_SOCKET": "inherit"}).record()
    assert record["socket_form"] == "inherit"
    assert any("inherited" in warning for warning in record["warnings"])


def test_an_attach_command_is_quoted_and_names_the_configured_program() -> None:
    environ = {"TMUXMCP_SOCKET": "path:/tmp/it's here", "TMUXMCP_TMUX_BIN": "/opt/tmux 3/tmux"}
    command = Case(environ).record()["attach_command"]
    assert command == """'/opt/tmux 3/tmux' -N -S '/tmp/it'"'"'s here' attach"""


def test_without_execute_nothing_is_command_capable() -> None:
    assert Case({"TMUXMCP_TOOLSETS": "inspect,manage,teardown"}).record()["command_capable"] is False
    assert (
        Case({"TMUXMCP_TOOLSETS": "", "TMUXMCP_TOOLS": "create_session"}).record()["command_capable"] is False
    )
    assert Case({"TMUXMCP_TOOLSETS": "", "TMUXMCP_TOOLS": "send_keys"}).record()["command_capable"] is True


def test_unusable_tmux_is_said_with_its_remedy() -> None:
    case = Case(found=UNKNOWN)
    assert case.record()["tmux_usable"] is False
    assert "Install it." in case.record()["warnings"][0]
    assert "Install it." in case.instructions()
    assert case.record()["ambient"] == {"state": "unknown"}


def test_capabilities_are_the_record_the_server_now_and_every_tool() -> None:
    case = Case()
    document = case.capabilities(
        ServerInfo(
            running=True,
            socket=case.socket.selector,
            socket_form=case.socket.form,
            resolved_socket_path=case.socket.path,
            attach_command=case.socket.attach_command("tmux"),
            tmux_version="3.5a",
            pid=7,
            sessions=2,
            server_state="started",
            configuration_provenance="minimal",
            ambient="quiet",
        )
    )
    assert document["startup_server_state"] == "absent"
    assert document["server_state"] == "started"
    assert document["configuration_provenance"] == "minimal"
    assert (document["running"], document["pid"], document["sessions"]) == (True, 7, 2)
    for key in case.record().keys() - {"event", "server_state", "configuration_provenance"}:
        assert document[key] == case.record()[key]
    assert [tool["name"] for tool in document["tools"]] == list(ROWS)
    assert json.loads(json.dumps(document)) == document


def test_capabilities_hold_public_columns_only() -> None:
    document = Case().capabilities()
    kill = next(tool for tool in document["tools"] if tool["name"] == "kill_session")
    assert kill == {
        "name": "kill_session",
        "title": "Kill a session",
        "toolset": "teardown",
        "grounds": "default",
        "tmux_effect": ["delete"],
        "process_reach": "none",
        "output_classes": ["tmux-metadata"],
        "may_expose_secrets": False,
        "may_return_untrusted_content": False,
        "self_bounded": False,
        "default_enabled": True,
        "hints": {
            "advertised": (
                direct := {
                    "readOnlyHint": False,
                    "destructiveHint": True,
                    "idempotentHint": False,
                    "openWorldHint": False,
                }
            ),
            "direct": direct,
        },
    }
    assert not {"sinks", "amplifies", "hooks"} & {key for tool in document["tools"] for key in tool}


@pytest.mark.parametrize(
    ("found", "words"), [(ACTIVE, "2 hooks and 1 command aliases"), (UNKNOWN, "ruled out")]
)
def test_conservative_hints_are_explained(found: Found, words: str) -> None:
    document = Case(found=found).capabilities()
    assert words in document["hints"]
    for tool in document["tools"]:
        assert tool["hints"]["advertised"] == {
            "readOnlyHint": False,
            "destructiveHint": True,
            "idempotentHint": False,
            "openWorldHint": True,
        }
        assert tool["hints"]["direct"]["readOnlyHint"] is (tool["toolset"] == "inspect")


def test_quiet_hints_say_that_hooks_can_come_later() -> None:
    document = Case().capabilities()
    assert "can add some" in document["hints"]


def test_an_aggregate_names_what_it_can_call_here() -> None:
    case = Case({"TMUXMCP_EXCLUDE_TOOLS": "capture_pane"})
    document = case.capabilities()
    batch = next(tool for tool in document["tools"] if tool["name"] == "call_read_tools_batch")
    assert "list_panes" in batch["nested"]
    assert "capture_pane" not in batch["nested"]


def configurations() -> Iterator[Case]:
    inside = {"TMUX": "/tmp/tmux-1000/default,1,0", "TMUX_PANE": "%3"}
    sockets: list[dict[str, str]] = [
        {},
        {"TMUXMCP_SOCKET": "inherit", **inside},
        {"TMUXMCP_SOCKET": "path:/" + "s" * 100, "TMUXMCP_TMUX_BIN": "/" + "b" * 5000, **inside},
        {"TMUXMCP_SOCKET": "path:/tmp/" + "'" * 90, "TMUXMCP_TMUX_BIN": "/" + "\u00e9" * 190, **inside},
    ]
    toolsets = [None, *(",".join(some) for n in range(5) for some in itertools.combinations(TOOLSETS, n))]
    for environ, selected, found in itertools.product(sockets, toolsets, (QUIET, ACTIVE, UNKNOWN)):
        chosen = {} if selected is None else {"TMUXMCP_TOOLSETS": selected}
        yield Case(environ | chosen, found)
    yield Case({"TMUXMCP_TOOLSETS": "", "TMUXMCP_TOOLS": ",".join(ROWS)}, UNKNOWN)


def test_instructions_hold_what_must_be_said_in_every_configuration() -> None:
    for case in configurations():
        text = case.instructions()
        assert len(text.encode()) <= limits.INSTRUCTIONS_BYTES
        assert str(case.settings.socket) in text
        assert "they can watch" in text
        assert " attach" in text or "tmux://capabilities" in text
        assert "Enabled toolsets:" in text
        assert all(toolset in text for toolset in case.surface.toolsets)
        assert "run commands with this user's permissions" in text
        assert "not an OS sandbox and does not constrain other MCP tools" in text
        if not any(tool.row.toolset == "teardown" for tool in case.surface.tools.values()):
            assert "teardown toolset is not enabled" in text
            assert "TMUXMCP_TOOLSETS=" in text
        if "TMUX" in case.environ:
            assert "pane %3" in text
        assert claims.claims(text) == []
        assert claims.claims(json.dumps(case.record()).replace(", ", "\n\n")) == []


def test_an_ordinary_configuration_loses_no_advice() -> None:
    text = Case({"TMUX": "/tmp/tmux-1000/default,1,0", "TMUX_PANE": "%3"}, ACTIVE).instructions()
    for words in (
        "call run_shell_command rather than send_keys and capture_pane",
        "call wait_for_text with its run",
        "do not poll",
        "capture_since with the last cursor",
        "create_session",
    ):
        assert words in text


def test_advice_names_offered_tools_only() -> None:
    for tool in ROWS:
        case = Case({"TMUXMCP_EXCLUDE_TOOLS": tool})
        advice = case.instructions().partition("follow instructions")[2]
        assert f"{tool} " not in advice.replace("rather than send_keys and capture_pane", "")


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"TMUX": "{path},1,0", "TMUX_PANE": "%3"}, "runs in pane %3 of that tmux server"),
        (
            {"TMUX": "/tmp/other,1,0", "TMUX_PANE": "%3"},
            "of another tmux server (/tmp/other), which these tools cannot",
        ),
        ({"TMUX": "/tmp/a\nb,1,0", "TMUX_PANE": "%3"}, "of another tmux server, which these tools cannot"),
        ({"TMUX": "/tmp/other,1,0", "TMUX_PANE": "%3; x"}, None),
        ({"TMUX_PANE": "%3"}, None),
        ({}, None),
    ],
)
def test_the_pane_of_this_process_is_named(environ: dict[str, str], words: str | None) -> None:
    path = tmux_socket.resolve("name:tmuxmcp", {}).path
    case = Case({name: value.replace("{path}", path) for name, value in environ.items()})
    text = case.instructions()
    assert words in text if words else "This MCP server runs in pane" not in text
