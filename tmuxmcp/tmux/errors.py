"""tmux's words on stderr, turned into typed errors that say what happened and what to do next.

The texts were collected from tmux 3.2a to 3.8. Where versions differ, a pattern covers every spelling.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from tmuxmcp.errors import (
    DuplicateName,
    InvalidArgument,
    InvalidName,
    NoServer,
    NoSpace,
    NotFound,
    PaneDead,
    PaneInMode,
    ServerGone,
    TmuxFailed,
    TmuxUnusable,
    TooLarge,
    ToolError,
)
from tmuxmcp.tmux.runner import Output

_SHOWN_CHARACTERS: Final = 200
_ABOUT_THE_SERVER: Final = (NoServer, ServerGone, TmuxUnusable)


class _Text(NamedTuple):
    """What tmux says, and what we say: `message` is filled from the named groups and `{socket}`.

    The groups become the error's details too.
    """

    pattern: str
    error: type[ToolError]
    message: str


_TEXTS: Final = (
    _Text(
        r"no server running on|error connecting to .* \((No such file or directory|Connection refused)\)",
        NoServer,
        "No tmux server runs on {socket}. create_session starts one.",
    ),
    _Text(
        r"server exited|lost server",
        ServerGone,
        "The tmux server on {socket} ended during the call, and its sessions with it. Look with "
        "list_sessions, and begin anew with create_session.",
    ),
    _Text(
        r"error connecting to .* \(Permission denied\)",
        TmuxUnusable,
        "The socket {socket} belongs to another user. Choose a socket of your own with TMUXMCP_SOCKET.",
    ),
    _Text(
        r"access not allowed",
        TmuxUnusable,
        "The tmux server on {socket} belongs to another user, who has not let this one in. Choose another "
        "TMUXMCP_SOCKET, or have its owner run tmux server-access -a.",
    ),
    _Text(
        r"File name too long",
        TmuxUnusable,
        "The socket path {socket} is longer than the system takes. Choose a shorter TMUXMCP_SOCKET.",
    ),
    _Text(
        r"directory (?P<directory>.*) has unsafe permissions",
        TmuxUnusable,
        "tmux refuses {directory}, because others can enter it. Run chmod 700 on it, or choose another place "
        "with TMUX_TMPDIR.",
    ),
    _Text(
        r"(error connecting to|error creating|couldn't create (directory|socket)) (?P<cause>.*)",
        TmuxUnusable,
        "tmux cannot use its socket: {cause}. Check that its directory exists and is yours, or choose "
        "another TMUXMCP_SOCKET.",
    ),
    _Text(
        r"protocol version mismatch",
        TmuxUnusable,
        "The tmux server on {socket} is of another version than the tmux program. End that server, or set "
        "TMUXMCP_TMUX_BIN to a tmux of its version.",
    ),
    _Text(
        r"invalid LC_ALL, LC_CTYPE or LANG|need UTF-8 locale",
        TmuxUnusable,
        "tmux finds no UTF-8 locale. Install the locale C.UTF-8, or set LC_ALL to a UTF-8 locale.",
    ),
    _Text(
        r"(can't find|no such) (?P<kind>session|window|pane): (?P<target>.*)",
        NotFound,
        "There is no {kind} {target}. List the {kind}s to see which exist.",
    ),
    _Text(
        r"no current (target|session|window|pane)|no sessions",
        NotFound,
        "The tmux server has no session. create_session makes one.",
    ),
    _Text(
        r"(invalid|unknown|ambiguous) option: (?P<target>.*)",
        NotFound,
        "tmux has no option {target} in this scope. Write its full name, and check the scope.",
    ),
    _Text(
        r"unknown variable: (?P<target>.*)",
        NotFound,
        "There is no environment variable {target} here. show_environment without names lists what is there.",
    ),
    _Text(
        r"no buffers?\b|unknown buffer",
        NotFound,
        "The paste buffer is gone: something else on this tmux server removed it. Try again.",
    ),
    _Text(
        r"duplicate session: (?P<name>.*)",
        DuplicateName,
        "A session named {name} exists already. Work in it, or choose another name.",
    ),
    _Text(
        r"invalid (?P<kind>session|window)( name)?:",
        InvalidName,
        "tmux refuses this {kind} name. Use letters, digits, '_' and '-'.",
    ),
    _Text(
        r"no space for (a )?new pane|pane too small",
        NoSpace,
        "There is no room for another pane. Enlarge the window with resize_window, split a larger pane, or "
        "create a window.",
    ),
    _Text(
        r"target pane has exited",
        PaneDead,
        "The pane's program has ended. respawn_pane starts one anew.",
    ),
    _Text(
        r"no current client",
        PaneInMode,
        "The pane is in a mode, where keys need an attached client. exit_copy_mode leaves it.",
    ),
    _Text(
        r"not in a mode",
        InvalidArgument,
        "The pane is not in copy mode. enter_copy_mode puts it there.",
    ),
    _Text(
        r"respawn (pane|window) failed: .* still active",
        InvalidArgument,
        "The pane's program still runs. Pass kill=true to end it first.",
    ),
    _Text(
        r"index in use: (?P<index>\d+)|index (?P<other_index>\d+) in use",
        InvalidArgument,
        "There is a window with this index already. Choose another one, or leave it out.",
    ),
    _Text(
        r"(invalid|malformed|can't set) layout",
        InvalidArgument,
        "tmux cannot apply this layout here. Use one of tmux's own layout names.",
    ),
    _Text(
        r"(?P<what>width|height|size|lines|position) (is )?(?P<fault>invalid|too small|too large)",
        InvalidArgument,
        "tmux finds the {what} {fault} here. Give a number of cells that fits the window.",
    ),
    _Text(
        r"value is (invalid|too small|too large):|(bad|unknown) value:",
        InvalidArgument,
        "tmux does not take this value for the option. Its manual says which ones it takes.",
    ),
    _Text(
        r"failed to send command|command too long",
        TooLarge,
        "The command is longer than tmux takes at once. Send less; for text, paste_text takes the most.",
    ),
)
_PATTERNS: Final = tuple((re.compile(text.pattern), text) for text in _TEXTS)


def translate(output: Output, socket: str) -> ToolError | None:
    """The error that a finished tmux client reports, or None when it succeeded.

    `socket` is the path to name in it. tmux 3.3a to 3.7 say ``access not allowed`` with return code 0.
    """
    said = output.stderr.strip("\n")
    if output.returncode == 0 and said != "access not allowed":
        return None
    for pattern, text in _PATTERNS:
        if match := pattern.search(said):
            details = {name: value for name, value in match.groupdict().items() if value is not None}
            if issubclass(text.error, _ABOUT_THE_SERVER):
                details["socket"] = socket
            return text.error(text.message.format_map({**details, "socket": socket}), **details)
    if not said:
        said = f"it ended with {output.returncode} and said nothing"
    shown = said if len(said) <= _SHOWN_CHARACTERS else f"{said[:_SHOWN_CHARACTERS]}..."
    return TmuxFailed(f"tmux refused the command: {shown}", returncode=output.returncode)
