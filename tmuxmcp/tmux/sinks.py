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
"""Layout names that tmux knows from 3.5 on; see `layouts`."""

_ID: Final = re.compile(r"[$@%][0-9]+")


def escape_format(value: str) -> str:
    """The text that tmux's format expansion turns back into exactly `value` (3.2a to 3.8).

    Every `#` is doubled, except a run of them directly before `[`, which tmux keeps as it is.
    """
    return re.sub(r"#+(?!\[)(?!#)", lambda run: run.group() * 2, value)


def layouts(version: tuple[int, int, str]) -> tuple[str, ...]:
    """The layout names that a server of this version knows; an unknown one crashes tmux 3.3a."""
    return (*LAYOUTS, *MIRRORED_LAYOUTS) if version >= (3, 5, "") else LAYOUTS


Kind = Callable[[str], str]
"""Checks a value and renders it, or raises `InvalidArgument` with the remedy."""


def _matching(pattern: str, remedy: str) -> Kind:
    compiled = re.compile(pattern)

    def kind(value: str) -> str:
        if not compiled.fullmatch(value):
            raise InvalidArgument(remedy)
        return value

    return kind


def _number(low: int, high: int) -> Kind:
    def kind(value: str) -> str:
        if not re.fullmatch(r"-?[0-9]{1,10}", value) or not low <= int(value) <= high:
            raise InvalidArgument(f"The number is out of range. Give a whole number from {low} to {high}.")
        return str(int(value))

    return kind


def _literal(value: str) -> str:
    return value


def _printable(value: str) -> str:
    if any(character < " " or "\x7f" <= character <= "\x9f" for character in value):
        raise InvalidArgument("The value holds a control character. Remove it.")
    return value


def _target(value: str) -> str:
    """An id, or ``=name`` / ``=name:`` with a name that the `=` makes exact."""
    if _ID.fullmatch(value):
        return value
    name = value.removeprefix("=").removesuffix(":")
    if not value.startswith("=") or not name or name[0] in "$@%" or ":" in name or "." in name:
        raise InvalidArgument("This is no id of tmux, such as $1, @1 or %1, and no exact session name.")
    if CLIENT_NAME.fullmatch(name):
        raise InvalidArgument(
            "tmux would take this session name for one of its clients. Use the session's id."
        )
    return _printable(value)


def _placement(value: str) -> str:
    """Where a window goes: a session, and an index or the next free one (``=name:3``, ``$1:``)."""
    session, colon, index = value.rpartition(":")
    if not colon or not re.fullmatch(r"[0-9]{0,9}", index):
        raise InvalidArgument("This is no place for a window. Name a session, and an index from 0 on.")
    return f"{_target(session)}:{index}"


def _pane_size(value: str) -> str:
    """Cells, or a share of the pane that is split (``30%``)."""
    if value.endswith("%"):
        return _number(1, 99)(value[:-1]) + "%"
    return _cells(value)


def _absolute(value: str) -> str:
    if not value.startswith("/"):
        raise InvalidArgument("The directory is relative. Give a path that begins with /.")
    return escape_format(value)


def _name(value: str) -> str:
    if not value:
        raise InvalidArgument("The name is empty. Give one.")
    return escape_format(_printable(value))


def _title(value: str) -> str:
    return escape_format(_printable(value))


def _variable(value: str) -> str:
    return f"#{{{_variable_name(value)}}}"


_cells = _number(1, MAX_SIZE)
_line = _number(-10_000_000, 10_000_000)
_flag = _matching("on|off", "Write on or off.")
_layout = _matching("|".join((*LAYOUTS, *MIRRORED_LAYOUTS)), f"Choose one of {', '.join(LAYOUTS)}.")
_option = _matching(
    r"(@[A-Za-z0-9_-]+|[a-z][a-z0-9-]*)(\[[0-9]+\])?",
    "This is no option of tmux. Write its full name, such as history-limit.",
)
_variable_name = _matching(
    "[A-Za-z][A-Za-z0-9_]*", "This is no variable of tmux. Write its name, such as pane_id."
)
_environment = _matching(
    r"[^=\x00-\x1f\x7f-][^=\x00-\x1f\x7f]*", "This is no name of an environment variable."
)
_buffer = _matching(r"[A-Za-z0-9_.-]+", "A buffer name consists of letters, digits, '_', '.' and '-'.")
_hex_byte = _matching("[0-9a-f]{2}", "A byte is two hexadecimal digits.")


def _channel(value: str) -> str:
    if not value or value.startswith("-"):
        raise InvalidArgument("A channel name is not empty and does not begin with '-'.")
    return _printable(value)


_BUFFER_COMMANDS: Final = ("load-buffer", "paste-buffer", "delete-buffer", "save-buffer", "show-buffer")
_TARGET_COMMANDS: Final = (
    *("has-session", "list-windows", "list-panes", "display-message", "capture-pane", "if-shell"),
    *("show-options", "show-hooks", "show-environment", "set-option"),
    *("rename-session", "rename-window", "select-window", "select-pane", "select-layout"),
    *("resize-window", "resize-pane", "swap-pane", "split-window", "respawn-pane", "copy-mode"),
    *("send-keys", "paste-buffer", "clear-history", "kill-pane", "kill-window", "kill-session"),
)

SINKS: Final[dict[tuple[str, str], Kind]] = {
    **{(name, "-t"): _target for name in _TARGET_COMMANDS},
    **{(name, "-b"): _buffer for name in _BUFFER_COMMANDS},
    **{
        (name, flag): _cells
        for name in ("new-session", "resize-window", "resize-pane")
        for flag in ("-x", "-y")
    },
    ("new-session", "-s"): _name,
    ("new-session", "-n"): _name,
    ("new-window", "-n"): _name,
    ("new-window", "-t"): _placement,
    ("move-window", "-s"): _target,
    ("move-window", "-t"): _placement,
    ("swap-pane", "-s"): _target,
    ("split-window", "-l"): _pane_size,
    ("respawn-pane", "-c"): _absolute,
    ("respawn-pane", "COMMAND"): _literal,
    ("rename-session", "NAME"): _name,
    ("rename-window", "NAME"): _name,
    ("select-pane", "-T"): _title,
    ("select-layout", "LAYOUT"): _layout,
    ("display-message", "VARIABLE"): _variable,
    ("show-options", "NAME"): _option,
    ("show-hooks", "NAME"): _option,
    ("show-environment", "NAME"): _environment,
    ("set-option", "FLAG"): _flag,
    ("set-option", "LINES"): _number(0, 10_000_000),
    ("capture-pane", "-S"): _line,
    ("capture-pane", "-E"): _line,
    ("send-keys", "KEY"): check_key,
    ("send-keys", "TEXT"): _literal,
    ("send-keys", "HEX"): _hex_byte,
    ("send-keys", "-N"): _number(1, 10_000),
    ("wait-for", "CHANNEL"): _channel,
}
"""(command, position) -> the kind of value that may stand there. A flag's value stands at the flag."""


def render(command: str, position: str, value: str) -> str:
    """The argv element that makes tmux take `value` literally at `position` of `command`.

    Raises `InvalidArgument` for a value that cannot stand there. A position without a row raises
    `InternalError`: that is a defect of the caller, never the user's doing.
    """
    kind = SINKS.get((command, position))
    if kind is None:
        raise InternalError(f"No value may stand at {position} of {command}. This is a defect of tmuxmcp.")
    if "\x00" in value:
        raise InvalidArgument("The value holds a NUL character, which no argument can carry. Remove it.")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidArgument("The value holds a lone surrogate, which is not text. Send valid Unicode.")
    return kind(value)
