from __future__ import annotations

import contextlib
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmuxmcp import __version__
from tmuxmcp.errors import StartupError
from tmuxmcp.settings import SETTINGS, Setting, Settings, SocketSelector, resolve

EXAMPLES: dict[str, tuple[str, Any]] = {
    "socket": ("name:work", SocketSelector("name", "work")),
    "tmux_config": ("/etc/tmux.conf", "/etc/tmux.conf"),
    "existing_server": ("refuse", "refuse"),
    "toolsets": ("inspect, teardown", ("inspect", "teardown")),
    "tools": ("kill_pane,send_keys", ("kill_pane", "send_keys")),
    "exclude_tools": ("send_keys", ("send_keys",)),
    "suppress_history": ("0", False),
    "wait_max_seconds": ("2.5", 2.5),
    "audit": ("path:/tmp/a b", "/tmp/a b"),
    "tmux_bin": ("/opt/tmux/bin/tmux", "/opt/tmux/bin/tmux"),
}
"""A value for each setting that is not its default, as it is written and as it is understood."""

SPELLINGS = [(setting.field, name) for setting in SETTINGS for name in (setting.flag, *setting.variables)]


def resolve_one(spelling: str, value: str) -> Settings:
    return resolve([spelling, value], {}) if spelling.startswith("--") else resolve([], {spelling: value})


def refusal(argv: list[str], environ: dict[str, str]) -> str:
    with pytest.raises(StartupError) as caught:
        resolve(argv, environ)
    return caught.value.message


def test_nothing_given_is_the_documented_default() -> None:
    settings = resolve([], {"PATH": "/bin", "LIBTMUX_SOMETHING_ELSE": "1"})
    assert settings == Settings()
    assert (str(settings.socket), settings.tmux_config, settings.existing_server) == (
        "name:tmuxmcp",
        "minimal",
        "adopt",
    )
    assert (settings.toolsets, settings.tools, settings.exclude_tools) == (None, (), ())
    assert (settings.suppress_history, settings.wait_max_seconds) == (True, 30.0)
    assert (settings.audit, settings.tmux_bin) == ("stderr", "tmux")


def test_every_setting_has_an_example() -> None:
    fields = {setting.field for setting in SETTINGS}
    assert set(EXAMPLES) == fields == set(Settings.__struct_fields__) - {"check", "spellings"}


def test_the_variables_of_libtmux_mcp_are_known() -> None:
    assert {setting.libtmux for setting in SETTINGS} - {None} == {
        "LIBTMUX_SOCKET",
        "LIBTMUX_TMUX_CONFIG",
        "LIBTMUX_TOOLSETS",
        "LIBTMUX_TOOLS",
        "LIBTMUX_EXCLUDE_TOOLS",
        "LIBTMUX_SUPPRESS_HISTORY",
        "LIBTMUX_MCP_WAIT_MAX_SECONDS",
    }


@pytest.mark.parametrize(("field", "spelling"), SPELLINGS)
def test_each_spelling_sets_its_setting_and_nothing_else(field: str, spelling: str) -> None:
    text, value = EXAMPLES[field]
    settings = resolve_one(spelling, text)
    assert settings == Settings(**{field: value}, spellings={field: spelling})
    assert settings.spelling(field) == spelling


def test_a_message_names_our_variable_when_nothing_was_given() -> None:
    assert Settings().spelling("wait_max_seconds") == "TMUXMCP_WAIT_MAX_SECONDS"


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.field)
def test_a_flag_beats_the_environment(setting: Setting) -> None:
    text, value = EXAMPLES[setting.field]
    settings = resolve([f"{setting.flag}={text}"], dict.fromkeys(setting.variables, "overridden?"))
    assert getattr(settings, setting.field) == value


@pytest.mark.parametrize(
    ("text", "form", "value", "shown"),
    [
        ("work", "name", "work", "name:work"),
        ("name:a.b_c-1", "name", "a.b_c-1", "name:a.b_c-1"),
        ("name:inherit", "name", "inherit", "name:inherit"),
        ("x" * 64, "name", "x" * 64, "name:" + "x" * 64),
        ("inherit", "inherit", "", "inherit"),
        ("path:/run/user/1/tmux é", "path", "/run/user/1/tmux é", "path:/run/user/1/tmux é"),
    ],
)
def test_socket_selectors(text: str, form: str, value: str, shown: str) -> None:
    socket = resolve([], {"TMUXMCP_SOCKET": text}).socket
    assert (socket.form, socket.value, str(socket)) == (form, value, shown)


@pytest.mark.parametrize(
    ("field", "values"),
    {
        "socket": [
            "",
            "name:",
            "a/b",
            "a b",
            "a:b",
            ".",
            "name:..",
            "x" * 65,
            "é",
            "path:",
            "path:rel",
            "/abs",
            "a\n",
        ],
        "tmux_config": ["", "none", "tmux.conf", "~/.tmux.conf", "/a\nb", "/a\udc80"],
        "existing_server": ["", "Adopt", "yes"],
        "toolsets": [",", "inspect,,manage", "inspect,"],
        "tools": ["a,", " , "],
        "exclude_tools": [",a"],
        "suppress_history": ["", "true", "2", " 1"],
        "wait_max_seconds": [
            "",
            "0.9",
            "120.1",
            "nan",
            "inf",
            "-5",
            "1e1",
            "0x10",
            "３０",
            "30s",
            "9" * 5000,
        ],
        "audit": ["", "stdout", "/abs", "path:rel", "path:", "path:/a\x7f"],
        "tmux_bin": ["", "./tmux", "bin/tmux", "tmux -v", "~/tmux", "/a\nb"],
    }.items(),
)
def test_bad_values_are_refused_with_the_valid_ones(field: str, values: list[str]) -> None:
    setting = next(setting for setting in SETTINGS if setting.field == field)
    for value in values:
        for name in setting.variables:
            message = refusal([], {name: value})
            assert message.startswith(f"{name} is ")
            assert setting.accepts in message
            assert message.isascii()
            assert len(message) < 500
        assert refusal([f"{setting.flag}={value}"], {}).startswith(f"{setting.flag} is ")


@pytest.mark.parametrize("value", ["1", "120", "30.0", "0120"])
def test_wait_ceiling_takes_its_whole_range(value: str) -> None:
    assert resolve([], {"LIBTMUX_MCP_WAIT_MAX_SECONDS": value}).wait_max_seconds == float(value)


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_list_is_a_decision(text: str) -> None:
    settings = resolve(["--tools", text], {"TMUXMCP_TOOLSETS": text})
    assert (settings.toolsets, settings.tools) == ((), ())
    assert settings.spellings == {"toolsets": "TMUXMCP_TOOLSETS", "tools": "--tools"}


def test_a_name_written_twice_counts_once() -> None:
    assert resolve(["--tools", "b, a,b"], {}).tools == ("b", "a")


def test_both_names_of_one_setting_may_agree_but_not_differ() -> None:
    agreed = resolve([], {"TMUXMCP_SOCKET": "name:a", "LIBTMUX_SOCKET": "a"})
    assert agreed.socket == SocketSelector("name", "a")
    assert agreed.spelling("socket") == "TMUXMCP_SOCKET"
    message = refusal([], {"TMUXMCP_TOOLSETS": "", "LIBTMUX_TOOLSETS": "inspect"})
    assert "TMUXMCP_TOOLSETS and LIBTMUX_TOOLSETS" in message
    assert "inspect, manage, execute, teardown" in message


def test_unknown_names_are_refused_with_the_valid_set() -> None:
    message = refusal([], {"TMUXMCP_TOOLSET": "inspect"})
    assert message.startswith("TMUXMCP_TOOLSET is no setting")
    assert "Did you mean TMUXMCP_TOOLSETS?" in message
    assert all(setting.variable in message for setting in SETTINGS)
    assert "Did you mean" not in refusal([], {"TMUXMCP_": ""})


def test_the_relays_variables_are_let_stand() -> None:
    assert resolve([], {"TMUXMCP_RELAY_ANYTHING": "x"}) == Settings()
    assert "TMUXMCP_RELAY" in refusal([], {"TMUXMCP_RELAY": "x"})


@pytest.mark.parametrize("prefix", ["LIBTMUX_", "TMUXMCP_"])
@pytest.mark.parametrize("suffix", ["SAFETY", "READ_ONLY"])
def test_retired_switches_name_their_replacement(prefix: str, suffix: str) -> None:
    message = refusal([], {prefix + suffix: ""})
    assert message.startswith(f"{prefix}{suffix} is set")
    assert "TMUXMCP_TOOLSETS" in message
    assert "inspect, manage, execute and teardown" in message


@pytest.mark.parametrize(
    ("name", "replacement"),
    [("LIBTMUX_SOCKET_PATH", "TMUXMCP_SOCKET=path:/"), ("LIBTMUX_TMUX_BIN", "TMUXMCP_TMUX_BIN")],
)
def test_retired_names_name_their_replacement(name: str, replacement: str) -> None:
    message = refusal([], {name: "/some/where"})
    assert message.startswith(f"{name} is set")
    assert replacement in message


def test_inherit_reads_the_users_configuration() -> None:
    assert resolve(["--socket", "inherit"], {}).tmux_config == "user"


@pytest.mark.parametrize("config", ["minimal", "user", "/etc/tmux.conf"])
def test_inherit_and_a_configuration_are_refused(config: str) -> None:
    message = refusal(["--tmux-config", config], {"LIBTMUX_SOCKET": "inherit"})
    assert "--tmux-config" in message
    assert "LIBTMUX_SOCKET is inherit" in message


@pytest.mark.parametrize(
    "argv",
    [
        ["--read-only"],
        ["serve"],
        ["--sock", "a"],
        ["--tools"],
        ["--toolsets", "inspect", "--toolsets", "manage"],
    ],
)
def test_unusable_arguments_are_startup_errors(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert argv[0] in refusal(argv, {})
    assert capsys.readouterr() == ("", "")


def test_check_is_a_flag_only() -> None:
    assert resolve(["--check"], {}).check
    assert "TMUXMCP_CHECK" in refusal([], {"TMUXMCP_CHECK": "1"})


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        resolve(["--version"], {})
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"tmuxmcp {__version__}\n"


def test_help_names_every_flag_and_variable(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        resolve(["--help"], {})
    words = re.split(r"[\s\[\],.]+", capsys.readouterr().out)
    for setting in SETTINGS:
        assert {setting.flag, *setting.variables} <= set(words)


@given(
    st.dictionaries(st.sampled_from([name for setting in SETTINGS for name in setting.variables]), st.text()),
    st.lists(st.sampled_from(["--socket", "--tools", "--check"]) | st.text()),
)
def test_anything_is_settings_or_a_startup_error(environ: dict[str, str], argv: list[str]) -> None:
    argv = [each for each in argv if not each.startswith(("-h", "--he", "--v"))]
    with contextlib.suppress(StartupError):
        assert isinstance(resolve(argv, environ), Settings)
