"""Sessions by exact name, as targets that tmux cannot read in any other way."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from tmuxmcp.errors import InvalidArgument, NoServer, NotFound
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.command import command
from tmuxmcp.tmux.names import CLIENT_NAME
from tmuxmcp.tmux.records import Template

_ID: Final = re.compile(r"\$[0-9]+")
_NAMES: Final = Template(session_id="#{session_id}", name="#{session_name}")


async def session_target(client: Client, session: str) -> str:
    """The value of `-t` for a session given by its id or its exact name: ``$N`` or ``=name:``.

    It is taken by every command, whether that wants a session, a window or a pane. Whether the session
    exists is for the invocation that uses it to check.

    A name that tmux would not take literally costs a look at the sessions, and is refused: with
    `InvalidArgument` that tells its id, or with `NotFound`.
    """
    if _ID.fullmatch(session):
        return session
    if not _is_ambiguous(session):
        return f"={session}:"
    try:
        rows = await client.rows(listing=command("list-sessions"), template=_NAMES)
    except NoServer as error:
        raise NotFound(f"{error.message} So the target does not exist.", **error.details) from None
    for row in rows:
        if row["name"] == session:
            id = row["session_id"]
            raise InvalidArgument(
                f"tmux does not take this session's name literally in a target. Use its id, {id}.",
                session_id=id,
            )
    raise NotFound("There is no session of this name. list_sessions shows which exist.")


def _is_ambiguous(name: str) -> bool:
    return (
        not name
        or name[0] in "$@%"
        or ":" in name
        or "." in name
        or any(unicodedata.category(character) == "Cc" for character in name)
        or CLIENT_NAME.fullmatch(name) is not None
    )
