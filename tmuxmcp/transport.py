"""The stdio transport: one JSON-RPC message on one line, and nothing else on standard output.

The SDK's own transport dies without cleaning up on SIGTERM, hangs on SIGINT, does not notice that its
client stopped reading, and leaves a malformed request without an answer. Here every end of a
connection (end of input, a signal, a client that has gone) takes one way: the SDK sees the end of its
input and cancels the calls in flight, answers that still fit are written, and the process ends within
`GRACE_SECONDS`, whatever a thread or a handler is stuck in.

Nothing here waits for the client to read, so that a client that stops reading stops nothing else.
"""

from __future__ import annotations

import asyncio
import faulthandler
import fcntl
import os
import select
import signal
import socket
import stat
import threading
import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import NoReturn, Self

import anyio
import anyio.lowlevel
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from tmuxmcp import limits, stderr
from tmuxmcp.frames import Lines, Refused, encode, parse

GRACE_SECONDS = 0.8
"""From the first sign of the end to the end of the process."""
DRAIN_SECONDS = 0.2
"""For calls in flight at the end of input, so that ``printf ... | tmuxmcp`` gets its answers."""
REQUESTS = 10_000
"""Requests without an answer. Each costs memory, and a client that stopped reading can send more for ever."""
BUSY = -32010
"""Error code for a request beyond `REQUESTS`; in the range that JSON-RPC leaves to servers."""

_CHUNK = 1 << 16
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

Inbound = MemoryObjectReceiveStream[SessionMessage | Exception]
"""The stream that the SDK reads from."""


def run(serve: Serve) -> NoReturn:
    """Serve this process's standard streams until the connection ends, then end the process.

    `serve` is given the streams for `mcp.server.lowlevel.Server.run`. The exit status is 0 when the
    client or a signal ended the connection, else 1. Threads that are still at work are not waited for.
    """
    status = 1
    try:
        stdin, stdout = claim()
        anyio.run(partial(Connection(stdin, stdout).run, serve))
        status = 0
    except BaseException:  # noqa: BLE001  (whatever it is, the process ends here, and says why)
        for line in traceback.format_exc().splitlines():
            stderr.write_line(line)
    finally:
        os._exit(status)


def claim() -> tuple[int, int]:
    """Take the wire away from fds 0 and 1 and return private duplicates, closed on exec.

    What this process or a child prints afterwards lands on standard error, and a child that reads
    gets end of file. Raises `OSError` when there is no standard output to answer on.
    """
    stdout = _private(1)
    while (null := os.open(os.devnull, os.O_RDWR)) <= stderr.FD:
        pass  # a standard stream that was missing: keep its number from the next socket
    stdin = _private(0)
    os.dup2(null, 0)
    os.dup2(stderr.FD, 1)
    os.close(null)
    return stdin, stdout


def _private(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, stderr.FD + 1)


def _can_wait(fd: int) -> bool:
    """Whether readiness can be waited for. Files and devices cannot be polled everywhere."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


class Wire:
    """A descriptor to write on without waiting for its reader. Only a file or a terminal is waited for."""

    def __init__(self, fd: int) -> None:
        own = _opened_anew(fd)
        self.fd = fd = fd if own is None else own
        self._may_block = own is None
        self._can_wait = _can_wait(fd)
        self._socket = socket.socket(fileno=fd) if stat.S_ISSOCK(os.fstat(fd).st_mode) else None
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)

    def write(self, data: memoryview) -> int:
        """Write what fits now; 0 when nothing does. Raises `OSError` when nobody reads any more."""
        try:
            if self._socket is not None:
                return self._socket.send(data, socket.MSG_DONTWAIT)
            if not self._can_wait or not self._may_block:
                return os.write(self.fd, data)
            # O_NONBLOCK would hold for everyone who shares the pipe. If it polls writable, PIPE_BUF fits.
            return os.write(self.fd, data[: select.PIPE_BUF]) if self._poll.poll(0) else 0
        except BlockingIOError:
            return 0

    async def closed(self) -> None:
        """Wait until the reader has gone; for ever where that cannot be told."""
        if self._can_wait:
            # Nobody writes to the writing end of a pipe: it becomes readable when its last reader closes.
            await anyio.wait_readable(self.fd)
            gone = select.POLLERR | select.POLLHUP | select.POLLNVAL
            if any(event & gone for _, event in self._poll.poll(0)):
                return
        await anyio.sleep_forever()


def _opened_anew(pipe: int) -> int | None:
    """A pipe's writing end with an O_NONBLOCK of its own, in place of this one; None where there is no way.

    Then a large frame takes a few writes, and its reader wakes up as often.
    """
    if not stat.S_ISFIFO(os.fstat(pipe).st_mode):
        return None
    try:
        own = os.open(f"/proc/self/fd/{pipe}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    os.close(pipe)
    return own


class Outbound:
    """The stream that the SDK writes to. `send` queues a frame and never waits for the client.

    `taken` is called for each frame that the client has taken, with the id it answers; `lost` once
    nobody reads any more, and from then on frames are dropped.
    """

    def __init__(
        self, wire: Wire, taken: Callable[[RequestId | None], None], lost: Callable[[], None]
    ) -> None:
        self._wire = wire
        self._taken = taken
        self._lost = lost
        self._queue: deque[tuple[memoryview, RequestId | None]] = deque()
        self._blocked = anyio.Event()
        self._open = True

    @property
    def empty(self) -> bool:
        """Whether the client has taken all that was sent, or never will."""
        return not self._queue

    async def send(self, item: SessionMessage) -> None:
        """Send the SDK's message."""
        self.put(item.message)

    def put(self, message: JSONRPCMessage) -> None:
        """Queue one message and write as much of the queue as the client takes now."""
        answered = message.id if isinstance(message, (JSONRPCResponse, JSONRPCError)) else None
        if self._open:
            self._queue.append((memoryview(encode(message)), answered))
            self._flush()

    def _flush(self) -> None:
        try:
            while self._queue:
                data, answered = self._queue[0]
                if not (written := self._wire.write(data)):
                    self._blocked.set()
                    return
                if written < len(data):
                    self._queue[0] = (data[written:], answered)
                else:
                    self._queue.popleft()
                    self._taken(answered)
        except OSError:
            self._open = False
            self._queue.clear()
            self._lost()

    async def pump(self) -> None:
        """Write on whenever the client reads again."""
        while True:
            await self._blocked.wait()
            self._blocked = anyio.Event()
            await anyio.wait_writable(self._wire.fd)
            self._flush()

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.aclose()


Serve = Callable[[Inbound, Outbound], Awaitable[None]]


class Connection:
    """One client on a pair of descriptors: reads, answers what is no message, and ends in one way."""

    def __init__(self, stdin: int, stdout: int) -> None:
        self._stdin = stdin
        self._open: set[RequestId] = set()
        self._taken_one = anyio.Event()
        self._inbox, self.inbound = anyio.create_memory_object_stream[SessionMessage | Exception](
            float("inf")
        )
        self._wire = Wire(stdout)
        self.outbound = Outbound(self._wire, self._taken, self.end)

    async def run(self, serve: Serve) -> None:
        """Serve until the client, a signal or `serve` itself ends it."""
        self._on_signals()
        async with anyio.create_task_group() as tasks:
            for task in (self._read, self._watch, self.outbound.pump):
                tasks.start_soon(task)
            await serve(self.inbound, self.outbound)
            await self._drained(lambda: self.outbound.empty)
            tasks.cancel_scope.cancel()

    def end(self) -> None:
        """Let the SDK see the end of its input. From here on the process has `GRACE_SECONDS`."""
        _end_soon()
        self._inbox.close()

    def _on_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for each in _SIGNALS:
            if signal.getsignal(each) is not signal.SIG_IGN:  # nohup means it
                # The loop wakes up even if another thread was given the signal; the handler runs even if
                # the loop itself is what is stuck.
                loop.add_signal_handler(each, self.end)
                signal.signal(each, lambda number, frame: _end_soon())

    async def _watch(self) -> None:
        await self._wire.closed()
        self.end()

    async def _read(self) -> None:
        fd = self._stdin if _can_wait(self._stdin) else _relay(self._stdin)
        lines = Lines(limits.FRAME_BYTES)
        while data := await _read_some(fd):
            for line in lines.feed(data):
                self._receive(line)
        self._receive(lines.rest())
        _end_soon()
        await self._drained(lambda: not self._open)
        self.end()

    def _receive(self, line: bytes | None) -> None:
        try:
            if line is None:
                raise Refused(INVALID_REQUEST, f"The message is longer than {limits.FRAME_BYTES} bytes.")
            if line.strip():
                message = parse(line)
                self._account(message)
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    self._inbox.send_nowait(SessionMessage(message))
        except Refused as refusal:
            self.outbound.put(refusal.error)

    def _account(self, message: JSONRPCMessage) -> None:
        """Keep the ids of the requests that wait for an answer."""
        if isinstance(message, JSONRPCRequest):
            if message.id in self._open:
                # Under that id the client would take this for the answer to its first request.
                raise Refused(INVALID_REQUEST, "The request has the id of one that is still in flight.")
            if len(self._open) >= REQUESTS:
                much = f"{REQUESTS} requests wait for their answers. Wait for some of them, or cancel some."
                raise Refused(BUSY, much, message.id)
            self._open.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            # A cancelled request is never answered. The SDK takes "7" for 7 here.
            id = cancelled_request_id_from_params(message.params)
            if id is not None:
                self._open -= {id, str(id), coerce_request_id(id)}

    def _taken(self, answered: RequestId | None) -> None:
        if answered is not None:
            self._open.discard(answered)
        self._taken_one.set()

    async def _drained(self, done: Callable[[], bool]) -> None:
        with anyio.move_on_after(DRAIN_SECONDS):
            while not done():
                self._taken_one = anyio.Event()
                await self._taken_one.wait()


def _end_soon() -> None:
    """End the process in `GRACE_SECONDS` even if the event loop, a thread or a cleanup is stuck by then.

    Safe in a signal handler. The report of where each thread is stuck goes to fd 0, the null device:
    a full standard error would hold it, and with it the end.
    """
    if _ending.acquire(blocking=False):
        faulthandler.dump_traceback_later(GRACE_SECONDS, exit=True, file=0)


_ending = threading.Lock()


def _relay(source: int) -> int:
    """The reading end of a pipe into which a thread copies `source`."""
    readable, writable = os.pipe()

    def relay() -> None:
        with suppress(OSError), os.fdopen(writable, "wb", buffering=0) as pipe:
            while True:
                select.select([source], [], [])  # a terminal may have been made non-blocking by others
                if not (data := os.read(source, _CHUNK)):
                    return
                pipe.write(data)

    threading.Thread(target=relay, name="tmuxmcp stdin", daemon=True).start()
    return readable


async def _read_some(fd: int) -> bytes:
    """The next bytes; none at the end, and an unreadable descriptor has ended."""
    while True:
        await anyio.wait_readable(fd)
        try:
            return os.read(fd, _CHUNK)
        except BlockingIOError:
            continue
        except OSError:
            return b""
