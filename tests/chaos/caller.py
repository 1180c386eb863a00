"""A client made of raw frames that makes many calls at once, and accounts for every frame that it gets.

What a client must never see is written down in `Caller.wrong`: a line that is no frame, an answer to no
request or a second one, a result that is not what its text says, an `internal_error`, a call that is not
answered in time.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NamedTuple, Self

import anyio

from tests.peer import LEGACY
from tmuxmcp import errors

SLACK = 20.0
"""Seconds that a call may take beyond its own timeout: tmux's five, cleaning up, a machine that is busy."""
ENDED = 10.0
"""Seconds from the end of the connection to the end of the process. It promises one; machines are busy."""


def _codes(kind: type[errors.ToolError]) -> set[str]:
    return {kind.code}.union(*map(_codes, kind.__subclasses__()))


CODES = frozenset(_codes(errors.ToolError))


class Answer(NamedTuple):
    """What became of a call.

    `outcome` is the result's own, or ``ok``; the code of a refusal; the number of a protocol error;
    ``cancelled``, ``closed`` or ``unanswered`` when there was no answer.
    """

    outcome: str
    result: dict[str, Any]
    seconds: float


@dataclass
class Pending:
    """A request that was sent."""

    id: int | str
    what: str
    began: float
    deadline: float
    moving: anyio.Event = field(default_factory=anyio.Event)
    """Set by the first progress."""
    over: anyio.Event = field(default_factory=anyio.Event)
    answer: Answer | None = None


class Caller:
    """One ``python -m tmuxmcp`` and the client that talks to it."""

    def __init__(self, argv: Sequence[str], *, cwd: str, stderr: int, deadline: float = SLACK) -> None:
        self.wrong: list[str] = []
        self.calls = 0
        self.outcomes: Counter[str] = Counter()
        self.nameless = 0
        """Refusals that could not name the request that they are about."""
        self._slack = deadline
        self._ids = 0
        self._waiting: dict[int | str, Pending] = {}
        self._cancelled: set[int | str] = set()
        self._reads = anyio.Event()
        self._reads.set()
        self._sending = anyio.Lock()
        child_in, self.to_server = os.pipe()
        self.from_server, child_out = os.pipe()
        self.process = subprocess.Popen(argv, stdin=child_in, stdout=child_out, stderr=stderr, cwd=cwd)
        os.close(child_in)
        os.close(child_out)
        for fd in (self.to_server, self.from_server):
            os.set_blocking(fd, False)

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._receive)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close_input()
        if kind is not None and self.process.poll() is None:
            self.process.kill()
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)
        self.close_output()
        if not await self.ended():
            self.process.kill()
        self.process.wait()

    async def open(self) -> bool:
        """Shake hands, as the client of a person does; whether the server is there."""
        client = {"name": "chaos", "version": "1"}
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client}
        pending = await self.request("initialize", params)
        answer = await self.answer(pending)
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer.outcome == "ok"

    async def call(self, tool: str, /, **arguments: Any) -> Answer:
        """Call a tool and wait for the answer."""
        return await self.answer(await self.begin(tool, **arguments))

    async def begin(self, tool: str, /, **arguments: Any) -> Pending:
        """Call a tool without waiting for its answer."""
        self.calls += 1
        timeout = arguments.get("timeout", 30)
        patient = min(float(timeout), 120.0) if isinstance(timeout, (int, float)) else 0.0
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": f"p{self._ids + 1}"}}
        return await self.request("tools/call", params, seconds=patient, what=tool)

    async def request(
        self,
        method: str,
        params: dict[str, Any],
        *,
        seconds: float = 0.0,
        what: str = "",
        id: int | str | None = None,
    ) -> Pending:
        """Send a request whose answer may take `seconds` and the slack."""
        self._ids += 1
        pending = self.expect(self._ids if id is None else id, what or method, seconds)
        await self.send({"jsonrpc": "2.0", "id": pending.id, "method": method, "params": params})
        return pending

    def expect(self, id: int | str, what: str, seconds: float = 0.0) -> Pending:
        """Expect one answer under this id."""
        now = time.monotonic()
        self._waiting[id] = Pending(id, what, now, now + seconds + self._slack)
        return self._waiting[id]

    def tolerate(self, id: int | str) -> None:
        """Pass over one answer under this id."""
        self._cancelled.add(id)

    async def answer(self, pending: Pending) -> Answer:
        """Wait for an answer."""
        with anyio.move_on_after(pending.deadline - time.monotonic()):
            await pending.over.wait()
        if pending.answer is None:
            self._end(pending, "unanswered", {})
            seconds = time.monotonic() - pending.began
            self.wrong.append(f"{pending.what}: no answer in {seconds:.0f} s")
        assert pending.answer is not None
        return pending.answer

    async def cancel(self, pending: Pending) -> None:
        """Cancel a request. An answer that was on its way is passed over."""
        if pending.answer is None:
            self.tolerate(pending.id)
            self._end(pending, "cancelled", {})
        await self.send(
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": pending.id, "reason": "chaos"},
            }
        )

    async def send(self, frame: object) -> None:
        """Send an object as one line, or bytes as they are; nothing once the server has gone."""
        data = memoryview(frame if isinstance(frame, bytes) else json.dumps(frame).encode() + b"\n")
        async with self._sending:
            while data and self.to_server >= 0:
                try:
                    data = data[os.write(self.to_server, data) :]
                except BlockingIOError:
                    await anyio.wait_writable(self.to_server)
                except BrokenPipeError:
                    return

    def stop_reading(self) -> None:
        """Read no more frames."""
        self._reads = anyio.Event()

    def read_on(self) -> None:
        self._reads.set()

    def close_input(self) -> None:
        """Let the server see the end of its input."""
        if self.to_server >= 0:
            os.close(self.to_server)
            self.to_server = -1

    def close_output(self) -> None:
        """Be a client that nobody can write to."""
        if self.from_server >= 0:
            anyio.notify_closing(self.from_server)
            os.close(self.from_server)
            self.from_server = -1

    async def ended(self) -> bool:
        """Whether the process ends within `ENDED`."""
        with anyio.move_on_after(ENDED, shield=True):
            while self.process.poll() is None:
                await anyio.sleep(0.01)
        return self.process.returncode is not None

    async def _receive(self) -> None:
        buffer = b""
        while data := await self._some():
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                self._take(line)
        if buffer:
            self.wrong.append(f"the server ended in the middle of a line: {buffer[:100]!r}")
        for pending in tuple(self._waiting.values()):
            self._end(pending, "closed", {})

    async def _some(self) -> bytes:
        """The next bytes; none at the end."""
        while self.from_server >= 0:
            await self._reads.wait()
            if self.from_server < 0:
                break
            with suppress(BlockingIOError, anyio.ClosedResourceError):
                await anyio.wait_readable(self.from_server)
                if self._reads.is_set():
                    return os.read(self.from_server, 1 << 16)
        return b""

    def _take(self, line: bytes) -> None:
        try:
            frame = json.loads(line)
            assert isinstance(frame, dict)
            assert frame["jsonrpc"] == "2.0"
        except (ValueError, KeyError, AssertionError):
            self.wrong.append(f"not a frame: {line[:200]!r}")
            return
        if frame.get("method") == "notifications/progress":
            token = str(frame["params"]["progressToken"])
            if token[1:].isdigit() and (pending := self._waiting.get(int(token[1:]))):
                pending.moving.set()
        elif "method" in frame:
            self.wrong.append(f"an unexpected message: {line[:200]!r}")
        elif frame["id"] is None:
            self.nameless += 1
        elif (pending := self._waiting.get(frame["id"])) is not None:
            self._end(pending, *self._told(pending.what, frame))
        elif frame["id"] in self._cancelled:
            self._cancelled.discard(frame["id"])
        else:
            self.wrong.append(f"an answer to no request: {line[:200]!r}")

    def _told(self, what: str, frame: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        if "error" in frame:
            return str(frame["error"]["code"]), frame["error"]
        result: dict[str, Any] = frame["result"]
        if "content" not in result:
            return "ok", result
        (block,) = result["content"]
        said: dict[str, Any] = json.loads(block["text"])
        if not result["isError"]:
            if said != result.get("structuredContent"):
                self.wrong.append(f"{what}: the text is not the structured content")
            return str(said.get("outcome", "ok")), said
        if said.keys() != {"code", "message", "details"} or "structuredContent" in result:
            self.wrong.append(f"{what}: a refusal with the members {sorted(said)}")
        if said["code"] not in CODES or said["code"] == "internal_error":
            self.wrong.append(f"{what}: {said['code']}: {said['message']}")
        return said["code"], said

    def _end(self, pending: Pending, outcome: str, result: dict[str, Any]) -> None:
        del self._waiting[pending.id]
        pending.answer = Answer(outcome, result, time.monotonic() - pending.began)
        self.outcomes[f"{pending.what}: {outcome}"] += 1
        pending.over.set()
