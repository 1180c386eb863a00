"""What is found at startup: a tmux server or none, what is configured around it, and whether tmux works.

Which tools are offered depends only on whether a server is there, and that is known at once. The
rest takes tmux processes, has a deadline, and decides nothing but hints and disclosure.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
from typing import Final

import anyio
import msgspec

from tmuxmcp.errors import StartupError, TmuxUnusable, ToolError
from tmuxmcp.settings import Settings
from tmuxmcp.surface import ServerState
from tmuxmcp.tmux.ambient import Ambient, probe
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.socket import Socket

DEADLINE: Final = 2.0
"""Seconds for everything that `look` asks tmux; so long may the first tools/list wait."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of tmux when the first tool is offered."""

    server_state: ServerState
    ambient: Ambient
    tmux_version: str | None = None
    problem: str | None = None
    """Why tmux is unusable, if it is: then every call will answer so."""


def glance(settings: Settings, pinned: Socket) -> Found:
    """What can be told without a tmux process. Raises `StartupError` when a server is there but refused."""
    problem = None
    if os.path.isabs(settings.tmux_config) and not os.access(settings.tmux_config, os.R_OK):
        # tmux would start without a word, and with none of it.
        raise StartupError(
            f"{settings.spelling('tmux_config')} is {settings.tmux_config}, which cannot be read. Name an "
            "existing file, minimal or user."
        )
    if shutil.which(settings.tmux_bin) is None:
        problem = (
            f"The program {settings.tmux_bin} was not found. Install tmux, or set TMUXMCP_TMUX_BIN to its "
            "absolute path: the PATH of this process may be shorter than your shell's."
        )
    if not listens(pinned.path):
        return Found(server_state="absent", ambient=Ambient("unknown", server_exists=False), problem=problem)
    if settings.existing_server == "refuse":
        raise StartupError(
            f"A tmux server is on {pinned.path} already, and {settings.spelling('existing_server')} is "
            "refuse. Select another socket, set adopt to work on that server as it is, or end it."
        )
    return Found(server_state="existing", ambient=Ambient("unknown", server_exists=True), problem=problem)


def listens(path: str) -> bool:
    """Whether something takes connections on a socket. Answers at once, whatever that something does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knocking:
        knocking.setblocking(False)
        try:
            knocking.connect(path)
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
            return False
        except OSError as error:  # a full queue, a socket of another user: something is there
            return error.errno != errno.ENOTSOCK
    return True


async def look(client: Client, glanced: Found) -> Found:
    """Ask tmux, within `DEADLINE`. Whatever tmux does is not an error here: it is what was found."""
    version: str | None = None
    ambient = glanced.ambient
    problem: str | None = None
    try:
        with anyio.fail_after(DEADLINE):
            version = str(await client.version())
            ambient = await probe(client, DEADLINE)
            if not ambient.server_exists:
                _check_place(client.socket)
    except TimeoutError:
        problem = (
            f"tmux did not answer within {DEADLINE:g} seconds. The tmux server on {client.socket.path} may "
            "hang, or what listens there is no tmux: end it, or select another socket with TMUXMCP_SOCKET."
        )
    except ToolError as error:
        problem = error.message
    except Exception as error:  # noqa: BLE001  (what answers like no tmux at all must not end the process)
        problem = (
            f"{client.binary} does not answer like tmux ({type(error).__name__}). Check TMUXMCP_TMUX_BIN."
        )
    return msgspec.structs.replace(glanced, ambient=ambient, tmux_version=version, problem=problem)


def _check_place(pinned: Socket) -> None:
    """Whether a server could make its socket. tmux makes its own directory, but not that of a chosen path."""
    directory = os.path.dirname(pinned.path)
    if pinned.form != "path" and not os.path.exists(directory):
        directory = os.path.dirname(directory)
    if not os.access(directory, os.W_OK | os.X_OK):
        raise TmuxUnusable(
            f"No socket can be made in {directory}: it does not exist, or this user may not write there. "
            "Create it, or select another socket with TMUXMCP_SOCKET."
        )
