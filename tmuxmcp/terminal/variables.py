"""The tmux format variables that a client may name, and their values."""

from __future__ import annotations

from typing import Final

from tmuxmcp.errors import InvalidArgument
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.command import Arg, command, target

SERVER_VARIABLES: Final = ("version", "pid", "socket_path", "start_time", "host")
"""Those that mean something without a target."""


def _names(prefix: str, names: str) -> set[str]:
    return {f"{prefix}_{name}" for name in names.split()}


VARIABLES: Final = frozenset(
    {
        *SERVER_VARIABLES,
        *("host_short", "uid", "user", "config_files", "server_sessions", "next_session_id", "sixel_support"),
        *(
            "active_window_index",
            "last_window_index",
            "alternate_on",
            "alternate_saved_x",
            "alternate_saved_y",
        ),
        *("cursor_x", "cursor_y", "cursor_flag", "cursor_shape", "cursor_colour", "cursor_blinking"),
        *("cursor_very_visible", "scroll_region_lower", "scroll_region_upper", "scroll_position"),
        *(
            "insert_flag",
            "keypad_flag",
            "keypad_cursor_flag",
            "origin_flag",
            "wrap_flag",
            "bracket_paste_flag",
        ),
        *("mouse_all_flag", "mouse_any_flag", "mouse_button_flag", "mouse_sgr_flag", "mouse_standard_flag"),
        *("synchronized_output_flag", "rectangle_toggle", "copy_cursor_x", "copy_cursor_y", "search_present"),
        *("selection_active", "selection_present", "selection_start_x", "selection_start_y"),
        *("selection_end_x", "selection_end_y", "search_count", "search_count_partial", "search_timed_out"),
        *_names("history", "all_bytes bytes limit size added collected generation"),
        *_names(
            "client",
            "activity cell_height cell_width colours control_mode created discarded flags height key_table "
            "last_session name pid prefix readonly session termfeatures termname termtype theme tty uid user "
            "utf8 width written",
        ),
        *_names(
            "session",
            "active activity activity_flag alert alerts attached attached_list bell_flag created group "
            "group_attached group_attached_list group_list group_many_attached group_size grouped id "
            "last_attached many_attached marked name path silence_flag stack windows",
        ),
        *_names(
            "window",
            "active active_clients active_clients_list active_sessions active_sessions_list activity "
            "activity_flag bell_flag bigger cell_height cell_width end_flag flags height id index last_flag "
            "layout linked linked_sessions linked_sessions_list marked_flag name offset_x offset_y panes "
            "raw_flags silence_flag stack_index start_flag visible_layout width zoomed_flag",
        ),
        *_names(
            "pane",
            "active at_bottom at_left at_right at_top bg bottom command_duration command_end_time "
            "command_running command_start_time command_status current_command current_path dead dead_signal "
            "dead_status dead_time fg flags floating_flag height id in_mode index input_off key_mode last "
            "last_output_time last_prompt_time left marked marked_set modal_flag mode output_generation path "
            "pb_progress pb_state pid pipe pipe_pid private_modes right start_command start_command_list "
            "start_path synchronized tabs title top tty unseen_changes unzoomed_height unzoomed_width width "
            "x y z zoomed_flag",
        ),
    }
)
"""The variables of tmux 3.2a to 3.8 that describe a server, client, session, window or pane.

For a name that is none of its variables, tmux answers with an option or with an environment variable of
the server, so nothing else is asked for. Left out are those that hold a pane's text or what a person
copied or searched for, and those that only have a value while tmux runs a hook, a menu or a list.
"""


def check(names: list[str], *, targeted: bool) -> None:
    """Raises `InvalidArgument` that names what cannot be asked for, as far as it is a name at all."""
    known = VARIABLES if targeted else SERVER_VARIABLES
    # A name that is none of tmux's may be anything, and is told by its place.
    wrong = [
        name if name in VARIABLES else f"names[{at}]" for at, name in enumerate(names) if name not in known
    ]
    if not wrong:
        return
    shown = ", ".join(wrong)
    if targeted:
        raise InvalidArgument(
            f"{shown} cannot be read: only tmux's own variables about servers, clients, sessions, windows "
            "and panes can, such as pane_id or window_layout. Options are read with show_option, the text of "
            "a pane with capture_pane.",
            field="names",
        )
    raise InvalidArgument(
        f"{shown} cannot be read without a target. Give session, window_id or pane_id; without one there are "
        f"{', '.join(SERVER_VARIABLES)}.",
        field="names",
        accepted=list(SERVER_VARIABLES),
    )


async def variable(client: Client, name: str, id: str | None) -> str:
    """The value of one variable for a target, in one tmux process: nothing else can be in the answer.

    A variable that the running tmux does not know is empty. Raises `NotFound`.
    """
    ask = Arg("VARIABLE", name)
    if id is None:
        printed = await client.call(command("display-message", "-p", ask))
    else:
        printed = await client.call(
            command("has-session", "-t", target(id)), command("display-message", "-p", "-t", target(id), ask)
        )
    return printed.removesuffix("\n")
