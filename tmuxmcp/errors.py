"""Every error that tmuxmcp raises on purpose.

A `ToolError` becomes an ``isError`` result ``{code, message, details}``; its message says what
happened, why, and what to do next. A `StartupError` ends the process before it serves.
Foreign errors are translated at one boundary each: tmux's words in `tmuxmcp.tmux.errors`,
operating system errors in `tmuxmcp.tmux.runner`, argument errors in `tmuxmcp.arguments`.
"""

from __future__ import annotations

from typing import Any, ClassVar


class TmuxmcpError(Exception):
    """Root of the tree."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class StartupError(TmuxmcpError):
    """A setting or a manifest row is unusable: the process must not serve."""


class ToolError(TmuxmcpError):
    """A call could not do what was asked. `code` is stable, `details` are JSON values."""

    code: ClassVar[str] = "error"


class InvalidArgument(ToolError):
    """An argument is missing, unknown, of the wrong type or out of range."""

    code = "invalid_argument"


class InvalidName(InvalidArgument):
    """A name that would not read back byte-equal, or that can be taken for something else."""

    code = "invalid_name"


class InvalidDirectory(InvalidArgument):
    """A start directory that is missing, relative or not a directory."""

    code = "invalid_directory"


class NotFound(ToolError):
    """The named session, window, pane, buffer, option or variable does not exist."""

    code = "not_found"


class NoServer(ToolError):
    """No tmux server runs on the pinned socket, and this call needs one. Of a named target: `not_found`."""

    code = "no_server"


class ServerGone(ToolError):
    """The tmux server ended while the call was under way."""

    code = "server_gone"


class PaneGone(ToolError):
    """The pane existed when the call began and does not any more."""

    code = "pane_gone"


class TmuxUnusable(ToolError):
    """tmux is missing, too old, not executable, or its socket cannot be used."""

    code = "tmux_unusable"


class TmuxTimeout(ToolError):
    """A tmux process did not answer within its deadline."""

    code = "tmux_timeout"


class TmuxFailed(ToolError):
    """tmux refused, in words that no other error of this tree stands for."""

    code = "tmux_failed"


class TooLarge(ToolError):
    """A text, a command line or an answer is beyond a limit of tmux or of ours."""

    code = "too_large"


class NoSpace(ToolError):
    """There is no room for another pane in the window."""

    code = "no_space"


class DuplicateName(ToolError):
    """A session of that name exists; its id is in the details."""

    code = "duplicate_name"


class PaneBusy(ToolError):
    """The pane's foreground program is not a shell at its prompt."""

    code = "pane_busy"


class PaneDead(ToolError):
    """The pane's program has ended; the pane is kept by remain-on-exit."""

    code = "pane_dead"


class PaneInMode(ToolError):
    """The pane is in a tmux mode (copy mode) that would swallow what is typed."""

    code = "pane_in_mode"


class PaneInputOff(ToolError):
    """Somebody has switched the pane's input off."""

    code = "pane_input_off"


class PaneSynchronized(ToolError):
    """The pane's window duplicates input to all of its panes."""

    code = "pane_synchronized"


class SelfKill(ToolError):
    """The target holds the pane that this server process lives in."""

    code = "self_kill_refused"


class ProvenanceUnknown(ToolError):
    """A tool that is on by default only for a tmux server of ours met another one."""

    code = "provenance_unknown"


class InvalidCursor(ToolError):
    """A cursor or run handle is damaged, or belongs to another pane, program or tmux server."""

    code = "invalid_cursor"


class InvalidPattern(ToolError):
    """A pattern is too long or not in RE2's syntax."""

    code = "invalid_pattern"


class MatchBudget(ToolError):
    """Matching used up its time or memory budget."""

    code = "match_budget_exceeded"


class InternalError(ToolError):
    """A defect of tmuxmcp. The message never holds an argument's value."""

    code = "internal_error"
