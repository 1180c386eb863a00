"""Every limit, in one place. A name ends in its unit; sizes in bytes are of UTF-8 text.

A value beyond a limit is refused with the limit in the message, except where a comment says that
it is clamped and reported. The ceiling on waits is a setting: `tmuxmcp.settings.Settings`.
"""

from __future__ import annotations

# What a client may send.
FRAME_BYTES = 8 * 1024 * 1024
"""One inbound JSON-RPC frame."""
COMMAND_BYTES = 256 * 1024
"""The command of run_shell_command."""
SEND_KEYS_TEXT_BYTES = 64 * 1024
"""The text of one send_keys operation."""
KEYS = 128
"""Key names of one send_keys operation."""
PASTE_BYTES = 4 * 1024 * 1024
"""The text of paste_text."""
PATTERN_CHARACTERS = 1000
"""One pattern of wait_for_text or search_panes."""
PATTERNS = 16
"""Patterns in one call."""
VARIABLE_NAMES = 32
"""Names in one get_tmux_variables call; each costs a tmux process."""
READ_OPERATIONS = 16
"""Operations in one call_read_tools_batch."""
SEND_OPERATIONS = 32
"""Operations in one send_keys_batch."""
DELAY_MS = 5000
"""The pause before one operation of send_keys_batch. All together stay within the wait ceiling."""

# What a client may ask to receive. Content is cut to its tail, and the result says what was cut.
CONTENT_BYTES = 48_000
"""Terminal content in one result, unless the call says otherwise."""
CAPTURE_LINES = 500
"""Lines of terminal content in one result, unless the call says otherwise."""
CAPTURE_LINES_MAX = 100_000
"""The most lines that a call may ask for."""
CONTENT_BYTES_MAX = 1_000_000
"""The most content that a call may ask for."""
SHOWN_CHARACTERS = 500
"""Characters of one line that wait_for_text shows; what it looks at is not cut."""
LIST_ROWS = 100
"""Rows of list_windows and list_panes, unless the call says otherwise."""
SEARCH_MATCHES = 100
"""Matches of search_panes, unless the call says otherwise."""
INSTRUCTIONS_BYTES = 2048
"""The instructions in the answer to initialize."""
TOKEN_BYTES = 512
"""A cursor or a run handle."""

# Time.
TIMEOUT_SECONDS = 3600.0
"""The longest timeout that may be asked for. From the wait ceiling on it is clamped and reported."""
WAIT_TIMEOUT_SECONDS = 10.0
"""The timeout of a wait that names none."""
RUN_TIMEOUT_SECONDS = 30.0
"""The timeout of run_shell_command when it names none."""
WAIT_MAX_SECONDS_RANGE = (1.0, 120.0)
"""What the wait ceiling can be set to, both ends included."""
TICK_MIN_SECONDS = 0.010
"""The pause between two looks at a pane that has just changed."""
TICK_MAX_SECONDS = 0.075
"""The pause between two looks at a pane that has been quiet for TICK_GROWTH_SECONDS."""
TICK_GROWTH_SECONDS = 5.0
"""How long a quiet pane takes from the shortest tick to the longest."""
LOOK_SECONDS = 0.5
"""The longest time without a look at a pane that is known to have printed nothing meanwhile."""
PROGRESS_SECONDS = 1.0
"""The least time between two progress notifications of one call."""

# One tmux invocation.
TMUX_MESSAGE_BYTES = 16_364
"""All arguments together, each with its NUL: measured; they travel as one message of 16,384 bytes
(MAX_IMSGSIZE) with two headers."""
TMUX_ARGUMENTS = 1000
"""Their number: tmux 3.7 refuses more."""

# Panes.
SESSION_WIDTH = 200
"""Columns of a session created without a width."""
SESSION_HEIGHT = 50
"""Rows of a session created without a height."""
HISTORY_LINES_RANGE = (100, 1_000_000)
"""What set_history_limit accepts, both ends included."""
