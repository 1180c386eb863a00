"""The tools as the capability model writes them down: their names by toolset, and what they open with.

Written by hand, so that a manifest which says something else does not prove itself.
"""

from __future__ import annotations


def words(text: str) -> list[str]:
    return text.split()


INSPECT = words("""
    list_sessions list_windows list_panes get_server_info get_session_info get_window_info get_pane_info
    capture_pane capture_since snapshot_pane search_panes find_pane_by_position wait_for_text
    get_tmux_variables show_option show_environment show_hooks call_read_tools_batch
""")
MANAGE = words("""
    rename_session rename_window select_window select_pane select_layout resize_window resize_pane
    move_window swap_pane set_pane_title enter_copy_mode exit_copy_mode wait_for_channel signal_channel
    set_mouse_enabled set_history_limit
""")
EXECUTE = words("""
    create_session create_window split_window respawn_pane run_shell_command send_keys send_keys_batch
    paste_text set_synchronize_panes
""")
TEARDOWN = words("clear_pane_scrollback kill_pane kill_window kill_session")
BY_TOOLSET = {"inspect": INSPECT, "manage": MANAGE, "execute": EXECUTE, "teardown": TEARDOWN}
ALL = [*INSPECT, *MANAGE, *EXECUTE, *TEARDOWN]

CREATE = set(words("create_session create_window split_window"))
CONTENT_READS = set(
    words("capture_pane capture_since snapshot_pane search_panes wait_for_text call_read_tools_batch")
)
PANE_INPUT = set(words("send_keys send_keys_batch paste_text"))
PANE_COMMAND = set(words("run_shell_command respawn_pane"))
WAITS = set(words("wait_for_text wait_for_channel run_shell_command"))

METADATA = "Inspect tmux metadata; accepts no client-supplied executable input."
OUTPUT = (
    "Read pane output; accepts no client-supplied executable input. "
    "Returned content may be sensitive or untrusted."
)
ENVIRONMENT = (
    "Read the tmux environment; accepts no client-supplied executable input. "
    "Returned values may contain secrets."
)
CONFIGURATION = (
    "Read configured tmux commands; accepts no client-supplied executable input. "
    "Returned values may contain executable configuration."
)
CHANGE = "Change tmux state; no client-supplied executable input."
SPAWN = "Start a pane's configured process; accepts no command payload."
INPUT = "Send input to a pane's program; a shell that receives it runs it with your user's permissions."
COMMAND = "Run a shell command in a pane with your user's permissions."
DELETE = "Delete tmux state; accepts no command payload."

CONFIGURATION_READS = {"show_option", "show_hooks", "get_tmux_variables"}
OPENERS = {
    **dict.fromkeys(INSPECT, METADATA),
    **dict.fromkeys(CONTENT_READS, OUTPUT),
    "show_environment": ENVIRONMENT,
    **dict.fromkeys(CONFIGURATION_READS, CONFIGURATION),
    **dict.fromkeys(MANAGE, CHANGE),
    **dict.fromkeys(CREATE, SPAWN),
    **dict.fromkeys(PANE_INPUT, INPUT),
    **dict.fromkeys(PANE_COMMAND, COMMAND),
    "set_synchronize_panes": CHANGE,
    **dict.fromkeys(TEARDOWN, DELETE),
}
