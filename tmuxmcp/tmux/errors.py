"""tmux's words on stderr, turned into typed errors that say what happened and what to do next.

The texts were collected from tmux 3.2a to 3.8; where versions differ, each spelling has its row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

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
    TmuxTimeout,
    TmuxUnusable,
    ToolError,
    TooLarge,
)
from tmuxmcp.tmux.runner import Output

_SHOWN_CHARACTERS: Final = 200

Build = Callable[["re.Match[str]", str], ToolError]


def _no_server(_: re.Match[str], socket: str) -> ToolError:
    return NoServer(f"No tmux server runs on {socket}. create_session starts one.", socket=socket)


def _server_gone(_: re.Match[str], socket: str) -> ToolError:
    return ServerGone(
        f"The tmux server on {socket} ended, or broke the connection, during the call. Its sessions are gone with it; "
        "look with list_sessions, and begin anew with create_session.",
        socket=socket,
    )


def _unusable(cause: str, remedy: str) -> Build:
    return lambda match, socket: TmuxUnusable(f"{cause.format(*match.groups())} {remedy}".strip(), socket=socket)


def _not_found(match: re.Match[str], _: str) -> ToolError:
    what, name = match.group(1), match.group(2)
    return NotFound(f"There is no {what} {name}. List the {what}s to see what exists.", kind=what, target=name)


def _invalid(cause: str, remedy: str) -> Build:
    return lambda match, _: InvalidArgument(f"{cause.format(*match.groups())} {remedy}")


_TEXTS: Final[tuple[tuple[str, Build], ...]] = (
    (r"no server running on |error connecting to .* \((?:No such file or directory|Connection refused)\)", _no_server),
    (r"server exited unexpectedly|lost server|server exited", _server_gone),
    (
        r"error connecting to (.*) \(Permission denied\)",
        _unusable("The socket {0} belongs to another user.", "Choose a socket of your own with TMUXMCP_SOCKET."),
    ),
    (
        r"access not allowed",
        _unusable(
            "The tmux server on this socket belongs to another user, who has not let us in.",
            "Choose another TMUXMCP_SOCKET, or have its owner run `tmux server-access -a`.",
        ),
    ),
    (
        r"error connecting to (.*) \(File name too long\)",
        _unusable("The socket path {0} is longer than the system takes.", "Choose a shorter one with TMUXMCP_SOCKET."),
    ),
    (
        r"(?:error connecting to|error creating|couldn't create (?:directory|socket)|create \S+ failed:?) (.*)",
        _unusable("tmux cannot use its socket: {0}.", "Check the directory, or choose another TMUXMCP_SOCKET."),
    ),
    (
        r"directory (.*) has unsafe permissions",
        _unusable("tmux refuses {0}, because others can enter it.", "Run chmod 700 on it, or set TMUX_TMPDIR."),
    ),
    (
        r"protocol version mismatch",
        _unusable(
            "The tmux server on this socket is of another version than the tmux program.",
            "End that server, or set TMUXMCP_TMUX_BIN to a tmux of its version.",
        ),
    ),
    (
        r"invalid LC_ALL, LC_CTYPE or LANG|need UTF-8 locale",
        _unusable("tmux finds no UTF-8 locale.", "Install C.UTF-8 or set LC_ALL to a UTF-8 locale."),
    ),
    (r"open terminal failed", _unusable("tmux wanted a terminal.", "This is a defect of tmuxmcp; please report it.")),
    (r"can't find (session|window|pane): (.*)", _not_found),
    (r"no such (session|window|pane): (.*)", _not_found),
    (r"no current target|no (?:current )?session", lambda *_: NotFound("The tmux server has no sessions.")),
    (r"no current client", lambda *_: NotFound("No client is attached, or the target does not exist.")),
    (
        r"(?:invalid|unknown|ambiguous) option: (.*)",
        lambda match, _: NotFound(
            f"tmux has no option {match.group(1)} here. Write its full name, and check the scope.",
            kind="option",
            target=match.group(1),
        ),
    ),
    (
        r"unknown variable: (.*)",
        lambda match, _: NotFound(f"There is no variable {match.group(1)}.", kind="variable", target=match.group(1)),
    ),
    (
        r"(?:unknown buffer:?|no buffer:?) (.*)|no buffers?",
        lambda *_: NotFound("The paste buffer is gone: something else on this server removed it. Try again."),
    ),
    (
        r"duplicate session: (.*)",
        lambda match, _: DuplicateName(
            f"A session named {match.group(1)} exists already. Use it, or choose another name.", name=match.group(1)
        ),
    ),
    (
        r"invalid (session|window)(?: name)?:",
        lambda match, _: InvalidName(f"tmux refuses this {match.group(1)} name. Use letters, digits, '_' and '-'."),
    ),
    (r"(?:size or position )?no space for (?:a )?new pane|create pane failed: pane too small", lambda *_: NoSpace(
        "There is no room for another pane in this window. Make the window larger with resize_window, split a larger "
        "pane, or create a window."
    )),
    (r"target pane has exited|pane .* (?:is dead|has exited)", lambda *_: PaneDead(
        "The pane's program has ended. Start it anew with respawn_pane."
    )),
    (r"not in a mode", lambda *_: PaneInMode("The pane is not in copy mode. enter_copy_mode puts it there.")),
    (
        r"respawn (?:pane|window) failed: .* still active",
        lambda *_: TmuxFailed("The pane's program still runs. Pass kill=true to end it and start anew."),
    ),
    (r"index in use: (.*)|index (\d+) in use", lambda match, _: InvalidArgument(
        "A window with that index exists. Choose another index, or leave it out."
    )),
    (
        r"(?:invalid|malformed|can't set) layout.*",
        _invalid("tmux does not take this layout here.", "Use one of the layout names."),
    ),
    (
        r"(width|height|size|lines|position) (invalid|too small|too large)",
        _invalid("The {0} is {1}.", "Use a number of cells that fits."),
    ),
    (
        r"value is (invalid|too small|too large):|(?:bad|unknown) value:",
        _invalid("tmux refuses the value of this option.", "See tmux's manual for what it takes."),
    ),
    (
        r"failed to send command|command too long|too many arguments|message too large",
        lambda *_: TooLarge("The command is longer than tmux takes at once. Send less; paste_text takes 4 MB."),
    ),
)
_PATTERNS: Final = tuple((re.compile(pattern), build) for pattern, build in _TEXTS)


def translate(output: Output, socket: str) -> ToolError | None:
    """The error that a finished tmux client reports, or None when it succeeded.

    Versions 3.3a to 3.7 answer ``access not allowed`` with return code 0. A client that a signal
    ended reports that as `TmuxTimeout` never: it is `ServerGone` only when tmux says so.
    """
    text = output.stderr.strip()
    if output.returncode == 0 and not (text and not output.stdout and "access not allowed" in text):
        return None
    for pattern, build in _PATTERNS:
        if (match := pattern.search(text)) is not None:
            return build(match, socket)
    shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
    if not shown:
        shown = f"it ended with {output.returncode} and without a word"
    return TmuxFailed(f"tmux refused: {shown}", returncode=output.returncode)
