"""What tmux does with each argument position, and what makes a caller's value literal there.

The table was measured on tmux 3.2a to 3.8. A value may only reach a position that has a row, and is
rendered by the row's kind. Positions that run a shell on tmux's side (`run-shell`, `pipe-pane`),
that take whole formats or that are only safe as constants have no row at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tmuxmcp.errors import InternalError, InvalidArgument
from tmuxmcp.tmux.names import CLIENT_NAME, check_key

MAX_SIZE: Final = 10_000
"""The largest width or height in cells: resize-window's own limit, the smallest of tmux's."""

LAYOUTS: Final = ("even-horizontal", "even-vertical", "main-horizontal", "main-vertical", "tiled")
"""Layout names that every supported tmux knows. Layout strings are never passed: some crash the server."""

MIRRORED_LAYOUTS: Final = ("main-horizontal-mirrored", "main-vertical-mirrored")
"""Layout names that tmux knows from 3.5 on. An unknown name crashes tmux 3.3a: check the server's version."""

_ID: Final = re.compile(r"[$@%][0-9]+")
_OPTION: Final = re.compile(r"@?[A-Za-z0-9_-]+(\[[0-9]+\])?")
_VARIABLE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_BUFFER: Final = re.compile(r"[A-Za-z0-9_.-]+")


def escape_format(value: str) -> str:
    """The text that tmux's format expansion turns back into exactly `value` (3.2a to 3.8).

    Every `#` is doubled, except a run of them directly before `[`, which tmux keeps as it is.
    """
    return re.sub(r"#+(?!\[)(?!#)", lambda run: run.group() * 2, value)


def _refuse(what: str, remedy: str) -> InvalidArgument:
    return InvalidArgument(f"{what}. {remedy}")


def _matching(pattern: re.Pattern[str], what: str, remedy: str) -> Callable[[str], str]:
    def kind(value: str) -> str:
        if not pattern.fullmatch(value):
            raise _refuse(f"This is not {what}", remedy)
        return value

    return kind


def _printable(value: str) -> str:
    if any(character < " " or "\x7f" <= character <= "\x9f" for character in value):
        raise _refuse("The value holds a control character", "Remove it.")
    return value


def _target(value: str) -> str:
    """An id, or ``=name`` / ``=name:`` with a name that the `=` makes exact."""
    if _ID.fullmatch(value):
        return value
    name = value[1:-1] if value.endswith(":") else value[1:]
    if not value.startswith("=") or not name or name[0] == "$" or ":" in name or "." in name:
        raise _refuse("This is not an id of tmux or an exact session name", "Use an id such as $1, @1 or %1.")
    if CLIENT_NAME.fullmatch(name):
        raise _refuse("tmux would take this session name for one of its clients", "Use the session's id ($N).")
    return _printable(value)


def _placement(value: str) -> str:
    """Where a window goes: a session, with an index or without (``$1:``, ``=name:3``)."""
    session, colon, index = value.rpartition(":")
    if not colon or (index and not re.fullmatch(r"[0-9]{1,9}", index)):
        raise _refuse("This is not a place for a window", "Name the session and an index from 0 on.")
    return f"{_target(session)}:{index}"


def _number(low: int, high: int) -> Callable[[str], str]:
    def kind(value: str) -> str:
        if not re.fullmatch(r"-?[0-9]{1,10}", value) or not low <= int(value) <= high:
            raise _refuse("This number is out of range", f"Use {low} to {high}.")
        return str(int(value))

    return kind


def _pane_size(value: str) -> str:
    """Cells, or a percentage of the pane that is split (``30%``)."""
    if value.endswith("%"):
        return _number(1, 99)(value[:-1]) + "%"
    return _number(1, MAX_SIZE)(value)


def _layout(value: str) -> str:
    if value not in (*LAYOUTS, *MIRRORED_LAYOUTS):
        raise _refuse("This is not a layout name of tmux", f"Use one of {', '.join(LAYOUTS)}.")
    return value


def _directory(value: str) -> str:
    if not value.startswith("/"):
        raise _refuse("The directory is not absolute", "Give a path that begins with /.")
    return escape_format(value)


def _literal(value: str) -> str:
    return value


_option = _matching(_OPTION, "the name of a tmux option", "Use its full name, such as history-limit or @mine.")
_variable = _matching(_VARIABLE, "the name of a tmux variable", "Use letters, digits and _, such as pane_id.")
_buffer = _matching(_BUFFER, "a buffer name", "Use letters, digits, '_', '.' and '-'.")
_hex_byte = _matching(re.compile(r"[0-9a-f]{2}"), "a byte in hexadecimal", "Use two digits.")
_flag = _matching(re.compile("on|off"), "on or off", "Use one of the two.")
_environment = _matching(re.compile(r"[^=\x00-\x1f\x7f-]([^=\x00-\x1f\x7f])*"), "a variable name", "Omit '='.")


def _format_name(value: str) -> str:
    return escape_format(_printable(value))


def _variable_format(value: str) -> str:
    return f"#{{{_variable(value)}}}"


def _channel(value: str) -> str:
    if not value:
        raise _refuse("The channel name is empty", "Give a name.")
    return _printable(value)


Kind = Callable[[str], str]
_ROWS: Final[tuple[tuple[str, str, Kind], ...]] = (
    ("new-session", "-s", _format_name),
    ("new-session new-window", "-n", _format_name),
    ("rename-session rename-window", "NAME", _format_name),
    ("select-pane", "-T", _format_name),
    ("respawn-pane", "-c", _directory),
    ("respawn-pane", "COMMAND", _literal),
    ("show-options show-hooks", "NAME", _option),
    ("display-message", "VARIABLE", _variable_format),
    ("show-environment", "NAME", _environment),
    ("set-option", "FLAG", _flag),
    ("set-option", "LINES", _number(0, 1_000_000)),
    ("capture-pane", "-S", _number(-2_000_000, 2_000_000)),
    ("capture-pane", "-E", _number(-2_000_000, 2_000_000)),
    ("new-session resize-window resize-pane", "-x", _number(1, MAX_SIZE)),
    ("new-session resize-window resize-pane", "-y", _number(1, MAX_SIZE)),
    ("split-window", "-l", _pane_size),
    ("select-layout", "LAYOUT", _layout),
    ("send-keys", "KEY", check_key),
    ("send-keys", "TEXT", _literal),
    ("send-keys", "HEX", _hex_byte),
    ("send-keys", "-N", _number(1, 10_000)),
    ("set-buffer load-buffer paste-buffer delete-buffer save-buffer show-buffer", "-b", _buffer),
    ("wait-for", "CHANNEL", _channel),
    (
        "has-session list-windows list-panes display-message capture-pane show-options show-hooks show-environment "
        "set-option rename-session rename-window select-window select-pane select-layout resize-window resize-pane "
        "swap-pane copy-mode send-keys paste-buffer if-shell split-window respawn-pane clear-history kill-pane "
        "kill-window kill-session",
        "-t",
        _target,
    ),
    ("move-window swap-pane", "-s", _target),
    ("move-window new-window", "-t", _placement),
)

SINKS: Final[dict[tuple[str, str], Kind]] = {
    (name, position): kind for names, position, kind in _ROWS for name in names.split()
}
"""(command, position) -> what checks and renders a value there."""


def render(command: str, position: str, value: str) -> str:
    """The argv element that makes tmux take `value` literally at `position` of `command`.

    Raises `InvalidArgument` for a value that has no place there, and `InternalError` for a position
    without a row: that is a defect of the caller, never the user's doing.
    """
    kind = SINKS.get((command, position))
    if kind is None:
        raise InternalError(f"No caller's value may stand at {position} of {command}; this is a defect of tmuxmcp.")
    if "\x00" in value:
        raise _refuse("The value holds a NUL character, which no argument can carry", "Remove it.")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise _refuse("The value holds a lone surrogate, which is not text", "Send valid Unicode.")
    return kind(value)
