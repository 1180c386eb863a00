"""The settings: flags and environment, resolved once, before any tool exists.

Each setting has one name in three spellings: the flag ``--tmux-config``, the variable
``TMUXMCP_TMUX_CONFIG`` and, for what libtmux-mcp knows too, ``LIBTMUX_TMUX_CONFIG``. A flag beats the
environment. Whatever is doubtful ends the start with a `StartupError` that says what to write
instead: a setting that is silently ignored could offer more tools, or another tmux server, than the
operator meant.
"""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, NoReturn

import msgspec

from tmuxmcp import __version__, limits
from tmuxmcp.errors import StartupError

PREFIX = "TMUXMCP_"
RELAY_PREFIX = "TMUXMCP_RELAY_"
"""Variables of the relay program; this program lets them stand."""


class SocketSelector(msgspec.Struct, frozen=True):
    """Which tmux server: a socket name, the one that `tmux` itself would take, or an absolute path."""

    form: Literal["name", "inherit", "path"]
    value: str = ""

    def __str__(self) -> str:
        return self.form if self.form == "inherit" else f"{self.form}:{self.value}"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator decided. Toolset and tool names are as written: `surface` knows the valid ones."""

    socket: SocketSelector = SocketSelector("name", "tmuxmcp")
    tmux_config: str = "minimal"
    """For a tmux server that we start: `minimal`, `user` or an absolute path; `user` with `inherit`."""
    existing_server: Literal["adopt", "refuse"] = "adopt"
    toolsets: tuple[str, ...] | None = None
    """None when not set: then the default depends on the socket and on what is found there."""
    tools: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()
    suppress_history: bool = True
    wait_max_seconds: float = 30.0
    audit: str = "stderr"
    """`stderr`, `off` or the absolute path of a file."""
    tmux_bin: str = "tmux"
    check: bool = False
    """Print the startup record and exit, instead of serving."""
    spellings: dict[str, str] = {}
    """For each setting that was given: the flag or variable that gave it."""

    def spelling(self, field: str) -> str:
        """The flag or variable that a message about a setting should name: the one in use, if any."""
        return self.spellings.get(field, PREFIX + field.upper())


def resolve(argv: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Settings from the arguments (without the program's name) and the environment.

    Raises `StartupError`. `--help` and `--version` print and raise `SystemExit`.
    """
    _refuse_unknown(environ)
    flags = vars(_parser().parse_args(argv))
    values: dict[str, Any] = {}
    spellings: dict[str, str] = {}
    for setting in SETTINGS:
        given = _given(setting, flags[setting.field], environ)
        if given is not None:
            spellings[setting.field], values[setting.field] = given
    settings = Settings(**values, check=flags["check"], spellings=spellings)
    if settings.socket.form != "inherit":
        return settings
    if "tmux_config" in spellings:
        raise StartupError(
            f"{spellings['tmux_config']} is set, but {spellings['socket']} is inherit: tmux reads its own "
            f"configuration on the inherited socket. Remove {spellings['tmux_config']}, or select another "
            "socket: name:NAME or path:/absolute/path."
        )
    return msgspec.structs.replace(settings, tmux_config="user")


class Setting(NamedTuple):
    """One setting in all its spellings. `parse` raises `ValueError` for what is not in `accepts`."""

    field: str
    parse: Callable[[str], Any]
    metavar: str
    accepts: str
    meaning: str
    libtmux: str | None = None

    @property
    def flag(self) -> str:
        return "--" + self.field.replace("_", "-")

    @property
    def variable(self) -> str:
        return PREFIX + self.field.upper()

    @property
    def variables(self) -> tuple[str, ...]:
        return (self.variable,) if self.libtmux is None else (self.variable, self.libtmux)


def _absolute(text: str) -> str:
    # Control characters and undecodable bytes would not survive the records that this path is shown in.
    if not text.startswith("/") or re.search(r"[\x00-\x1f\x7f\ud800-\udfff]", text):
        raise ValueError
    return text


def _socket(text: str) -> SocketSelector:
    if text == "inherit":
        return SocketSelector("inherit")
    if text.startswith("path:"):
        return SocketSelector("path", _absolute(text.removeprefix("path:")))
    name = text.removeprefix("name:")
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name) or name in {".", ".."}:
        raise ValueError
    return SocketSelector("name", name)


def _tmux_config(text: str) -> str:
    return text if text in {"minimal", "user"} else _absolute(text)


def _existing_server(text: str) -> str:
    if text not in {"adopt", "refuse"}:
        raise ValueError
    return text


def _names(text: str) -> tuple[str, ...]:
    if not text.strip():
        return ()
    names = [name.strip() for name in text.split(",")]
    if "" in names:
        raise ValueError
    return tuple(dict.fromkeys(names))


def _suppress_history(text: str) -> bool:
    if text not in {"0", "1"}:
        raise ValueError
    return text == "1"


def _wait_max_seconds(text: str) -> float:
    least, most = limits.WAIT_MAX_SECONDS_RANGE
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) or not least <= float(text) <= most:
        raise ValueError
    return float(text)


def _audit(text: str) -> str:
    if text in {"stderr", "off"}:
        return text
    if not text.startswith("path:"):
        raise ValueError
    return _absolute(text.removeprefix("path:"))


def _tmux_bin(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9._+-]+", text) else _absolute(text)


SETTINGS = (
    Setting(
        "socket",
        _socket,
        "SOCKET",
        "name:NAME or just NAME (1 to 64 of A-Z a-z 0-9 . _ -), inherit, or path:/absolute/path",
        "the tmux server to work on, for the whole life of this process (default: name:tmuxmcp)",
        libtmux="LIBTMUX_SOCKET",
    ),
    Setting(
        "tmux_config",
        _tmux_config,
        "CONFIG",
        "minimal, user, or an absolute path",
        "the configuration of a tmux server that this process starts; not with an inherited socket "
        "(default: minimal)",
        libtmux="LIBTMUX_TMUX_CONFIG",
    ),
    Setting(
        "existing_server",
        _existing_server,
        "WHAT",
        "adopt or refuse",
        "what to do when a tmux server is already there (default: adopt, and say so)",
    ),
    Setting(
        "toolsets",
        _names,
        "LIST",
        "a comma list of inspect, manage, execute, teardown; it may be empty",
        "the toolsets to offer (default: inspect,manage,execute; teardown too when no tmux server is there "
        "yet on the default socket)",
        libtmux="LIBTMUX_TOOLSETS",
    ),
    Setting(
        "tools",
        _names,
        "LIST",
        "a comma list of tool names; it may be empty",
        "tools to offer in addition (default: none)",
        libtmux="LIBTMUX_TOOLS",
    ),
    Setting(
        "exclude_tools",
        _names,
        "LIST",
        "a comma list of tool names; it may be empty",
        "tools not to offer, whatever selects them (default: none)",
        libtmux="LIBTMUX_EXCLUDE_TOOLS",
    ),
    Setting(
        "suppress_history",
        _suppress_history,
        "0|1",
        "0 or 1",
        "ask shells not to remember the commands of run_shell_command; best effort (default: 1)",
        libtmux="LIBTMUX_SUPPRESS_HISTORY",
    ),
    Setting(
        "wait_max_seconds",
        _wait_max_seconds,
        "SECONDS",
        "a number from {:g} to {:g}".format(*limits.WAIT_MAX_SECONDS_RANGE),
        "the longest that one call may wait; longer timeouts are cut to it (default: 30)",
        libtmux="LIBTMUX_MCP_WAIT_MAX_SECONDS",
    ),
    Setting(
        "audit",
        _audit,
        "WHERE",
        "stderr, off, or path:/absolute/file",
        "where the record of each call goes (default: stderr)",
    ),
    Setting(
        "tmux_bin",
        _tmux_bin,
        "PROGRAM",
        "an absolute path, or the name of a program on PATH",
        "the tmux to use (default: tmux)",
    ),
)

_TOOLSETS = "TMUXMCP_TOOLSETS, a set of inspect, manage, execute and teardown"
_RETIRED = {
    "LIBTMUX_SOCKET_PATH": f"The replacement is {PREFIX}SOCKET=path:/absolute/socket.",
    "LIBTMUX_TMUX_BIN": f"The replacement is {PREFIX}TMUX_BIN.",
    **dict.fromkeys(
        ("LIBTMUX_SAFETY", f"{PREFIX}SAFETY"),
        f"The replacement is {_TOOLSETS}: write inspect for readonly, inspect,manage,execute for mutating, "
        "inspect,manage,execute,teardown for destructive.",
    ),
    **dict.fromkeys(
        ("LIBTMUX_READ_ONLY", f"{PREFIX}READ_ONLY"),
        f"The replacement is {_TOOLSETS}: write inspect for the tools that only look.",
    ),
}


def _given(setting: Setting, flag: list[str] | None, environ: Mapping[str, str]) -> tuple[str, Any] | None:
    """The spelling that decides a setting, and its value; None when no spelling is there."""
    if flag is not None:
        if len(flag) > 1:
            raise StartupError(f"{setting.flag} is given {len(flag)} times. Give it once.")
        return setting.flag, _parse(setting, setting.flag, flag[0])
    found = [(name, _parse(setting, name, environ[name])) for name in setting.variables if name in environ]
    if len(found) > 1 and found[0][1] != found[1][1]:
        raise StartupError(
            f"{found[0][0]} and {found[1][0]} are two names of one setting and differ. Remove one of them. "
            f"Valid: {setting.accepts}."
        )
    return found[0] if found else None


def _parse(setting: Setting, spelling: str, text: str) -> Any:
    try:
        return setting.parse(text)
    except ValueError:
        shown = ascii(text if len(text) <= 100 else text[:100] + "...")
        raise StartupError(f"{spelling} is {shown}. Valid: {setting.accepts}.") from None


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    for name, replacement in _RETIRED.items():
        if name in environ:
            raise StartupError(f"{name} is set, but is no setting of tmuxmcp. {replacement}")
    known = [setting.variable for setting in SETTINGS]
    for name in sorted(environ):
        if name.startswith(PREFIX) and not name.startswith(RELAY_PREFIX) and name not in known:
            suffixes = [setting.field.upper() for setting in SETTINGS]
            close = difflib.get_close_matches(name.removeprefix(PREFIX), suffixes, n=1)
            hint = f" Did you mean {PREFIX}{close[0]}?" if close else ""
            raise StartupError(f"{name} is no setting of tmuxmcp.{hint} Valid: {', '.join(known)}.")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise StartupError(f"{message}. Run {self.prog} --help for the flags.")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="tmuxmcp",
        description="Serve tmux to an MCP client on standard input and output.",
        epilog="Each setting is a flag or an environment variable, read once at the start; the flag wins.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.add_argument("--check", action="store_true", help="print the startup record and exit")
    for setting in SETTINGS:
        parser.add_argument(
            setting.flag,
            action="append",
            metavar=setting.metavar,
            help=f"{setting.meaning}. Values: {setting.accepts}. "
            f"Environment: {' or '.join(setting.variables)}",
        )
    return parser
