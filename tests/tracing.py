"""Where the values of a call went: into which position of which tmux command, and what tmux does there."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tmuxmcp.manifest import Sink
from tmuxmcp.tmux.fake import Invocation
from tmuxmcp.tmux.runner import Output, Runner

POSITIONS: Final[Mapping[str, Mapping[str, Any]]] = tomllib.loads(
    Path(__file__).with_name("tmux_positions.toml").read_text()
)
OURS: Final = "Zq7"
"""What stands in every text to look for, and nowhere else."""
STRENGTH: Final[Sequence[Sink]] = (
    *("none", "regex", "tmux-lookup", "tmux-state-value", "pane-input"),
    *("process-argv", "shell-command", "tmux-format"),
)
"""From what does least to what does most with a value."""
_SINKS: Final[Mapping[str, Sink]] = {
    "lookup": "tmux-lookup",
    "state": "tmux-state-value",
    "input": "pane-input",
    "shell": "shell-command",
}
_FLAGS: Final = re.compile("-[A-Za-z]+")
_CLIENT_OPTIONS: Final = {"-u": 0, "-N": 0, "-S": 1, "-f": 1}
_TYPED_COMMAND: Final = re.compile("eval ['\"]")


class Recorder:
    """A runner that passes calls on and keeps them in `calls`."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.calls: list[Invocation] = []

    async def run(self, argv: Sequence[str], **how: Any) -> Output:
        env = how.get("env")
        self.calls.append(
            Invocation(
                tuple(argv),
                how.get("stdin", b""),
                how.get("cwd"),
                None if env is None else dict(env),
                how["timeout"],
                how["max_output"],
            )
        )
        return await self._runner.run(argv, **how)


class Unknown(AssertionError):
    """A value stands where nothing is known about what becomes of it."""


class Place(NamedTuple):
    """One text in one position of one command; `kind` as tmux_positions.toml has it, None if it has not."""

    command: str
    position: str
    kind: str | None
    text: str

    @property
    def expanded(self) -> bool:
        return self.kind is not None and self.kind.endswith(" expanded")

    @property
    def sink(self) -> Sink:
        """What finally interprets a value here. Raises `Unknown`."""
        if self.kind is None:
            raise Unknown(f"{self.command} {self.position}: {self.text!r}")
        sink = _SINKS[self.kind.split()[0]]
        # What is typed reaches a shell as a command when we wrap it into one.
        typed = sink == "pane-input" and _TYPED_COMMAND.search(self.text)
        return "shell-command" if typed else sink


def places(call: Invocation) -> Iterator[Place]:
    """Everything that one process was given, by its position. Commands within commands are taken apart."""
    for name, value in (call.env or {}).items():
        yield Place("environment", name, None, value)
    words = list(call.argv[1:])
    if not call.argv[0].endswith("tmux"):
        yield from (Place(call.argv[0], "argument", None, word) for word in words)
        return
    while words and words[0] in _CLIENT_OPTIONS:
        del words[: 1 + _CLIENT_OPTIONS[words[0]]]
    stdin = call.stdin.decode("utf-8", "replace")
    yield from _commands((_unescaped(word) for word in words), stdin, call.cwd)


def _unescaped(word: str) -> str | None:
    """An argument as tmux takes it; None for the separator of commands."""
    if word == ";":
        return None
    return f"{word[:-2]};" if word.endswith("\\;") else word


def _commands(words: Iterable[str | None], stdin: str, cwd: str | None) -> Iterator[Place]:
    command: list[str] = []
    for word in [*words, None]:
        if word is not None:
            command.append(word)
        elif command:
            yield from _command(command[0], command[1:], stdin, cwd)
            command = []


def _command(name: str, words: list[str], stdin: str, cwd: str | None) -> Iterator[Place]:
    before = words[: words.index("--")] if "--" in words else words
    flags = "".join(word[1:] for word in before if _FLAGS.fullmatch(word))
    variant = next((f"{name} -{flag}" for flag in flags if f"{name} -{flag}" in POSITIONS), name)
    known = POSITIONS.get(variant, {})
    kinds: list[str] = known.get("words", [])
    given: list[tuple[str, str | None, str]] = []
    taken: list[str] = []
    while words:
        word = words.pop(0)
        if word == "--":
            taken += words
            break
        if word in known and words:
            given.append((word, known[word], words.pop(0)))
        elif taken or not _FLAGS.fullmatch(word):
            taken.append(word)
    if name == "send-keys" and "H" in flags:
        taken = [bytes.fromhex("".join(taken)).decode("utf-8", "replace")]
    for index, word in enumerate(taken):
        given.append((f"word {index + 1}", kinds[min(index, len(kinds) - 1)] if kinds else None, word))
    if cwd is not None and "cwd" in known:
        given.append(("cwd", known["cwd"], cwd))
    if stdin and "stdin" in known:
        given.append(("stdin", known["stdin"], stdin))
    for position, kind, text in given:
        if kind == "script":
            left = "" if position == "stdin" else stdin
            for line in text.splitlines():
                yield from _commands((None if word == ";" else word for word in shlex.split(line)), left, cwd)
        elif kind is not None and ":" in kind and ":" in text:
            target, _, index_text = text.rpartition(":")
            yield Place(variant, position, kind.partition(":")[0], target)
            yield Place(variant, f"{position} index", kind.partition(":")[2], index_text)
        else:
            yield Place(variant, position, kind and kind.partition(":")[0], text)


def holds(text: str, value: str | int | float) -> bool:
    """Whether a text holds a value: a word of ours anywhere in it, others and numbers only as a whole."""
    if isinstance(value, str) and OURS in value:
        return value in text
    before = "[\\w.-]" if isinstance(value, str) else "[\\w.]"
    return re.search(rf"(?<!{before}){re.escape(str(value))}(?![\w.-])", text) is not None


def traced(calls: Iterable[Invocation], value: str | int | float) -> list[Place]:
    """Where a value went. Raises `Unknown` where it was given to a process in a way that is not known."""
    found = []
    for call in calls:
        inside = list(places(call))
        here = [place for place in inside if holds(place.text, value)]
        given = (*call.argv, call.stdin.decode("utf-8", "replace"), call.cwd or "")
        if not here and any(holds(text, value) for text in given):
            raise Unknown(f"{value!r} stands somewhere in {call}")
        found += here
    return found


def strongest(sinks: Iterable[Sink]) -> Sink:
    return max(sinks, key=STRENGTH.index, default="none")
