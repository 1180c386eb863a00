"""The audit record: one JSON object on one line for each call that a client makes.

It says what ran and on what grounds, and never what a result held. Values that reach a program
(pane input, shell commands, process arguments) appear as their length and a digest whose key is
drawn at random for each process: equal values can be told to be equal within one process, and a
short command cannot be looked up by its digest. This covers the record only; the same text can
still stand in the pane, in the shell's history and in the client's transcript.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias

from tmuxmcp import stderr
from tmuxmcp.errors import InvalidArgument, ToolError
from tmuxmcp.manifest import Row, Sink
from tmuxmcp.tmux.runner import Output, Runner

LINE_BYTES = 4096
"""A longer event loses its arguments, then its tmux commands, and says so."""
SHOWN_CHARACTERS = 200
"""Of one string that is shown."""
SHOWN_OF_CALLER = 64
"""Characters of what a client calls itself and its request."""
SHOWN_ITEMS = 32
"""Of one list; how many more there were is said."""

PAYLOAD_SINKS: frozenset[Sink] = frozenset({"pane-input", "shell-command", "process-argv"})
ID = re.compile(r"=?([$@%][0-9]{1,20}):?")
SCRIPT = re.compile(r"[a-z]+(?:-[a-z]+)+(?=$| )")
CLIENT_OPTIONS_WITH_VALUE = frozenset({"-S", "-f", "-L"})


Fields: TypeAlias = "dict[str, Sink | Fields]"
"""Sinks by field; the fields of a list's items below the list's name."""


@dataclass
class Entry:
    """One call under way. The server sets `outcome` and adds the ids that it resolved to `targets`.

    `decoded` says that the arguments were found to be of the tool's schema, so that text is where it belongs.
    """

    audit: Audit
    name: str
    arguments: object
    row: Row | None
    grounds: str | None
    caller: Mapping[str, object]
    outcome: str = "ok"
    decoded: bool = True
    targets: list[str] = field(default_factory=list)
    ran: dict[tuple[str, ...], int] = field(default_factory=dict)

    @contextmanager
    def child(self, index: int, name: str, arguments: object, row: Row | None) -> Iterator[Entry]:
        """One operation of a batch: an event of its own, on the batch's grounds."""
        caller = {**self.caller, "batch": self.name, "operation": index}
        with self.audit.entry(Entry(self.audit, name, arguments, row, self.grounds, caller)) as entry:
            yield entry


_current: ContextVar[Entry | None] = ContextVar("tmuxmcp_audit_entry", default=None)


class AuditedRunner:
    """A runner that notes, in the entry of the call under way, the tmux commands it starts a process for."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    async def run(self, argv: Sequence[str], **how: Any) -> Output:
        entry = _current.get()
        if entry is not None:
            for command in _commands(argv):
                entry.ran[command] = entry.ran.get(command, 0) + 1
        return await self.runner.run(argv, **how)


def _commands(argv: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The commands of a tmux invocation, each as its name and the ids it is aimed at.

    if-shell is named with the first command that it may run, since tmux, not we, decides whether it does.
    """
    words = iter(argv[1:])
    name: str | None = None
    ids: list[str] = []
    literal = False
    for word in words:
        if name is None:
            if not word.startswith("-"):
                name = word
            elif word in CLIENT_OPTIONS_WITH_VALUE:
                next(words, None)
        elif word == ";":
            yield (name, *ids)
            name, ids, literal = None, [], False
        elif word == "--":
            literal = True
        elif word in ("-t", "-s") and not literal and (found := ID.fullmatch(next(words, ""))):
            ids.append(found[1])
        elif name == "if-shell" and (script := SCRIPT.match(word)):
            name = f"if-shell {script[0]}"
    if name is not None:
        yield (name, *ids)


class Audit:
    """Where events go: `stderr`, `off`, or the absolute path of a file.

    A file is opened for each event, so that it can be moved away at any time; it is created with
    mode 0600 and must be a regular file, not a link. A call never fails because its event could
    not be written: the first failure of a row is one line on standard error. Events for a standard
    error that nobody reads are counted in `lost` of the next one that could be written.
    """

    def __init__(self, destination: str) -> None:
        self._path = destination if destination.startswith("/") else None
        self._off = destination == "off"
        self._key = secrets.token_bytes(32)
        self._lost = 0

    @contextmanager
    def call(
        self,
        name: str,
        arguments: object,
        *,
        row: Row | None,
        grounds: str | None,
        client: Mapping[str, str],
        request_id: str | int,
    ) -> Iterator[Entry]:
        """Record one tools/call. `row` is None for a name that the manifest does not know."""
        caller = {
            "client": {key: value[:SHOWN_OF_CALLER] for key, value in client.items()},
            "request_id": request_id[:SHOWN_OF_CALLER] if isinstance(request_id, str) else request_id,
        }
        with self.entry(Entry(self, name, arguments, row, grounds, caller)) as entry:
            yield entry

    @contextmanager
    def entry(self, entry: Entry) -> Iterator[Entry]:
        """Time an entry, give it its outcome when it ends by an exception, and write it."""
        began = time.monotonic()
        outer = _current.set(entry)
        try:
            yield entry
        except ToolError as error:
            entry.outcome = error.code
            entry.decoded = not isinstance(error, InvalidArgument)
            raise
        except Exception:
            entry.outcome = "internal_error" if entry.outcome == "ok" else entry.outcome
            entry.decoded = False
            raise
        except BaseException:
            entry.outcome, entry.decoded = "cancelled", False
            raise
        finally:
            _current.reset(outer)
            if not self._off:
                self._write(self._event(entry, time.monotonic() - began))

    def _event(self, entry: Entry, seconds: float) -> dict[str, Any]:
        row = entry.row
        event: dict[str, Any] = {
            "event": "call",
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "tool": row.name if row else self._digest(entry.name),
        }
        if row:
            event |= {"toolset": row.toolset, "tmux_effect": list(row.effect), "process_reach": row.reach}
        if entry.grounds:
            event["grounds"] = entry.grounds
        event |= entry.caller
        event |= {"duration_ms": round(seconds * 1000, 1), "outcome": entry.outcome}
        event["targets"] = _first(list(dict.fromkeys(entry.targets)))
        event["tmux"] = _first([_command(key, count) for key, count in entry.ran.items()])
        sinks = _tree(row.sinks) if row else {}
        event["arguments"] = self._shown(
            {} if entry.arguments is None else entry.arguments, sinks, entry.decoded
        )
        return event

    def _shown(self, value: object, sink: Sink | Fields, decoded: bool) -> Any:
        """A value as the record shows it. Until the arguments are decoded, any text may stand anywhere."""
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(sink, str) and sink in PAYLOAD_SINKS:
            return self._digest(value)
        if isinstance(value, list):
            return [
                self._digest(item) if isinstance(item, list) else self._shown(item, sink, decoded)
                for item in _first(value)
            ]
        if isinstance(sink, dict):
            return self._fields(value, sink, decoded) if isinstance(value, Mapping) else self._digest(value)
        if isinstance(value, (int, float)) and abs(value) < 2**53:
            return value
        if isinstance(value, str) and (decoded or ID.fullmatch(value)):
            return value if len(value) <= SHOWN_CHARACTERS else value[:SHOWN_CHARACTERS] + "…"
        return self._digest(value)

    def _fields(self, value: Mapping[str, object], sinks: Fields, decoded: bool) -> dict[str, Any]:
        shown = {
            name: self._shown(value[name], sink, decoded) for name, sink in sinks.items() if name in value
        }
        # Not even the names of fields outside the schema: a client may have put anything there.
        return shown | {"unknown_fields": len(value) - len(shown)} if len(value) > len(shown) else shown

    def _digest(self, value: object) -> dict[str, Any]:
        """Length in bytes and keyed digest: of a string, or of another value's JSON."""
        try:
            text = value if isinstance(value, str) else json.dumps(value)
        except (RecursionError, TypeError, ValueError):
            return {"type": type(value).__name__}
        data = text.encode("utf-8", "surrogatepass")
        return {
            "length": len(data),
            "digest": hashlib.blake2b(data, digest_size=16, key=self._key).hexdigest(),
        }

    def _write(self, event: dict[str, Any]) -> None:
        if self._lost:
            event["lost"] = self._lost
        line = json.dumps(event, separators=(",", ":"))
        for long in ("arguments", "tmux", "targets"):
            if len(line) < LINE_BYTES:
                break
            event[long] = "omitted: too long"
            line = json.dumps(event, separators=(",", ":"))
        written = stderr.write_line(line) if self._path is None else self._append(self._path, line)
        self._lost = 0 if written else self._lost + 1

    def _append(self, path: str, line: str) -> bool:
        try:
            _append(path, line.encode() + b"\n")
        except OSError as error:
            if not self._lost:
                stderr.write_line(
                    f"tmuxmcp: no audit event could be written to {path} ({error.strerror}). Calls go on; "
                    "the events until it can be written again are only counted."
                )
            return False
        return True


def _tree(sinks: Mapping[str, Sink]) -> Fields:
    tree: Fields = {}
    for path, sink in sinks.items():
        name, _, inner = path.partition(".")
        if inner:
            items = tree.setdefault(name, {})
            assert isinstance(items, dict)
            items[inner] = sink
        else:
            tree[name] = sink
    return tree


def _append(path: str, data: bytes) -> None:
    """Append to a regular file in one write. Raises `OSError`."""
    # Without O_NONBLOCK a FIFO that nobody reads would hold the call.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    fd = os.open(path, flags, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if os.write(fd, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(fd)


def _first(items: list[Any]) -> list[Any]:
    more = len(items) - SHOWN_ITEMS
    return items if more <= 0 else [*items[:SHOWN_ITEMS], f"and {more} more"]


def _command(key: tuple[str, ...], count: int) -> dict[str, Any]:
    shown: dict[str, Any] = {"command": key[0]}
    if len(key) > 1:
        shown["targets"] = list(key[1:])
    if count > 1:
        shown["count"] = count
    return shown
