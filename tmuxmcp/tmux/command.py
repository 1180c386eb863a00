"""tmux commands as data, and their one rendering to argv.

A `Command` is built from constants of ours (plain strings) and caller-controlled values (`Arg`,
naming the position they stand in). `argv` passes every `Arg` through the sink table, so a value
in a position that the table does not know cannot reach tmux.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tmuxmcp.tmux import sinks


class Arg(NamedTuple):
    """A caller-controlled value at a named position (`-t`, `NAME`, ...) of a command."""

    position: str
    value: str


class Command(NamedTuple):
    """One tmux command. Plain strings in `args` are constants of ours."""

    name: str
    args: tuple[str | Arg, ...] = ()


def command(name: str, *args: str | Arg) -> Command:
    """Build a command: ``command("rename-window", "-t", target("@1"), "--", Arg("NAME", name))``."""
    return Command(name, args)


def target(id: str) -> Arg:
    """The value of a `-t` flag: an id (`$1`, `@1`, `%1`) or an exact session name (``=name:``)."""
    return Arg("-t", id)


def argv(commands: Iterable[Command]) -> list[str]:
    """Render commands to the argv that follows the client's own options.

    An element that ends in `;` would end the command there on every tmux, so its last `;` is
    escaped; the lone `;` elements between the commands are the only separators.
    """
    out: list[str] = []
    for each in commands:
        if out:
            out.append(";")
        out.append(each.name)
        for arg in each.args:
            text = arg if isinstance(arg, str) else sinks.render(each.name, arg.position, arg.value)
            out.append(f"{text[:-1]}\\;" if text.endswith(";") else text)
    return out
