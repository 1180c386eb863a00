"""Lines for the transport: frames of every shape, whole and broken, and what must be answered to each."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

METHODS = (
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "initialize",
    "logging/setLevel",
    "completion/complete",
    "notifications/initialized",
    "notifications/cancelled",
    "no/such",
    "",
    "rpc.é",
)
PARAMS: tuple[Any, ...] = (
    {},
    {"name": "list_sessions"},
    {"name": "list_sessions", "arguments": {}},
    {"name": "list_sessions", "arguments": None},
    {"name": "list_sessions", "arguments": []},
    {"name": "list_sessions", "arguments": {"x": {"y": [[]]}}},
    {"name": "get_server_info", "arguments": {}, "_meta": {"progressToken": 1.5}},
    {"name": "get_server_info", "_meta": {"progressToken": [1]}},
    {"name": "get_server_info", "_meta": 7},
    {"name": 7},
    {"name": "no_such_tool", "arguments": {}},
    {"name": "\ud800", "arguments": {"\ud800": "\ud800"}},
    {"uri": "tmux://capabilities"},
    {"uri": "file:///etc/passwd"},
    {"uri": 7},
    {"cursor": "x"},
    {"cursor": 7},
    {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    {"protocolVersion": 7, "capabilities": [], "clientInfo": None},
    {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}},
    {"level": "debug"},
    {"requestId": "nobody"},
    {"requestId": None},
    [],
    [1],
    "x",
    7,
    None,
    True,
)


class Line(NamedTuple):
    """A line to send. `id` is of a request that must be answered under it, exactly once.

    Without an id, `nameless` says whether an error without an id must come; None when one may.
    """

    data: bytes
    id: int | str | None = None
    nameless: bool | None = False


class Lines:
    """Makes lines. Ids are never used twice."""

    def __init__(self, choice: random.Random) -> None:
        self._choice = choice
        self._numbers = count(10_000_000)  # beyond those of the client's own requests

    def make(self) -> Line:
        kinds: tuple[tuple[Callable[[], Line], int], ...] = (
            (self._request, 10),
            (self._notification, 3),
            (self._response, 2),
            (self._wrong, 4),
            (self._broken, 4),
            (self._noise, 2),
            (self._deep, 1),
        )
        (make,) = self._choice.choices([make for make, _ in kinds], [weight for _, weight in kinds])
        return make()

    def pieces(self, data: bytes) -> list[bytes]:
        """The data as it may arrive: in pieces."""
        cuts = sorted(self._choice.randrange(len(data) + 1) for _ in range(self._choice.choice((0, 0, 1, 3))))
        return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]

    def _id(self) -> int | str:
        number = next(self._numbers)
        return self._choice.choice(
            (number, f"s{number}", -number, 2**53 + number, f"é {number}", f"{number}x")
        )

    def _frame(self, **members: Any) -> dict[str, Any]:
        params = self._choice.choice(PARAMS)
        frame = {"jsonrpc": "2.0", "method": self._choice.choice(METHODS), "params": params, **members}
        if self._choice.random() < 0.1:
            del frame["params"]
        items = list(frame.items())
        self._choice.shuffle(items)
        return dict(items)

    def _request(self) -> Line:
        id = self._id()
        return Line(_line(self._frame(id=id)), id)

    def _notification(self) -> Line:
        frame = self._frame()
        # A notification is never answered; params that are no object make it no message.
        return Line(_line(frame), nameless=not isinstance(frame.get("params"), dict | None))

    def _response(self) -> Line:
        members: dict[str, Any] = self._choice.choice(
            ({"result": {}}, {"error": {"code": 1, "message": "x"}})
        )
        return Line(_line({"jsonrpc": "2.0", "id": self._id(), **members}))

    def _wrong(self) -> Line:
        """A message that is wrong in a member from which it takes its answer."""
        id = self._id()
        frame = self._frame(id=id)
        match self._choice.randrange(5):
            case 0:
                frame["jsonrpc"] = self._choice.choice(("1.0", 2.0, None, [], "2.0 "))
            case 1:
                frame["method"] = self._choice.choice((7, None, [], {}))
            case 2:
                frame["id"] = self._choice.choice((None, 1.5, True, [], {}))
                return Line(_line(frame), nameless=True)
            case 3:
                del frame["jsonrpc"]
            case _:
                return Line(_line([frame]), nameless=True)
        return Line(_line(frame), id)

    def _broken(self) -> Line:
        """A message that was damaged on its way; it may still be one."""
        data = bytearray(_line(self._frame(id=f"broken {next(self._numbers)}"))[:-1])
        for _ in range(self._choice.choice((1, 2, 8))):
            at = self._choice.randrange(len(data))
            match self._choice.randrange(3):
                case 0:
                    data[at] = self._choice.randrange(256)
                case 1:
                    del data[at:]
                    data += b"}"
                case _:
                    data[at:at] = bytes([self._choice.randrange(256)])
        return Line(bytes(data).replace(b"\n", b" ") + b"\n", nameless=None)

    def _noise(self) -> Line:
        data = self._choice.randbytes(self._choice.choice((1, 30, 3000))).replace(b"\n", b"")
        return Line(data + b"\n", nameless=None)

    def _deep(self) -> Line:
        id, depth = self._id(), self._choice.choice((50, 2000, 200_000))
        head = json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call"}).encode()[:-1]
        deep = b"[" * depth + b"]" * depth
        call = b', "params": {"name": "list_sessions", "arguments": {"x": ' + deep + b"}}}\n"
        return Line(head + call, id if depth < 1000 else None, nameless=False if depth < 1000 else None)


def _line(frame: object) -> bytes:
    return json.dumps(frame).encode() + b"\n"
