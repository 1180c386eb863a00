"""A client made of raw frames: it can send what no SDK would, and sees each byte that the server writes."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
PATIENCE = 20.0
"""Seconds until a wait for something that must happen is a failure."""

_META = "io.modelcontextprotocol/"


class Peer:
    """Starts `argv` on pipes, or on the given descriptors, and talks to it in lines of JSON."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        era: str = LEGACY,
        env: dict[str, str] | None = None,
    ) -> None:
        self.era = era
        self._ids = 0
        self._buffer = b""
        child_in, self.to_server = (stdin, -1) if stdin is not None else os.pipe()
        self.from_server, child_out = (-1, stdout) if stdout is not None else os.pipe()
        environ = {**os.environ, **(env or {})}
        self.process = subprocess.Popen(argv, stdin=child_in, stdout=child_out, stderr=stderr, env=environ)
        for fd in (child_in, child_out, stderr):
            if fd is not None:
                os.close(fd)

    def send(self, frame: object) -> None:
        """Send an object as one line, or bytes as they are."""
        data = frame if isinstance(frame, bytes) else json.dumps(frame).encode() + b"\n"
        while data:
            data = data[os.write(self.to_server, data) :]

    def request(
        self, method: str, params: dict[str, Any] | None = None, *, id: int | str | None = None
    ) -> int | str:
        """Send a request and return its id."""
        self._ids += 1
        params = dict(params or {})
        if self.era == MODERN:
            meta = {_META + "protocolVersion": MODERN, _META + "clientCapabilities": {}}
            params["_meta"] = {
                **params.get("_meta", {}),
                **meta,
                _META + "clientInfo": {"name": "peer", "version": "1"},
            }
        id = self._ids if id is None else id
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return id

    def call(self, tool: str, arguments: dict[str, Any] | None = None, **meta: Any) -> int | str:
        """Send a tools/call and return its id."""
        params: dict[str, Any] = {"name": tool, "_meta": meta} if meta else {"name": tool}
        return self.request("tools/call", params if arguments is None else {**params, "arguments": arguments})

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def receive(self, patience: float = PATIENCE) -> Any:
        """The next frame. Whatever else the server writes is an error."""
        deadline = time.monotonic() + patience
        while b"\n" not in self._buffer:
            if not select.select([self.from_server], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"no frame within {patience} s")
            data = os.read(self.from_server, 1 << 20)
            if not data:
                raise EOFError(f"the server closed its output after {self._buffer!r}")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    def answer(self, id: int | str) -> Any:
        """The answer to `id`, past any other frame."""
        while (frame := self.receive()).get("id") != id:
            pass
        return frame

    def result(self, id: int | str) -> Any:
        return self.answer(id)["result"]

    def open(self) -> Any:
        """Open the connection as the era asks for and return the server's answer."""
        if self.era == MODERN:
            return self.result(self.request("server/discover"))
        client = {
            "protocolVersion": self.era,
            "capabilities": {},
            "clientInfo": {"name": "peer", "version": "1"},
        }
        result = self.result(self.request("initialize", client))
        self.notify("notifications/initialized")
        return result

    def rest(self) -> list[Any]:
        """Every frame until the server closes its output."""
        frames = []
        while True:
            try:
                frames.append(self.receive())
            except EOFError:
                return frames

    def close_input(self) -> None:
        os.close(self.to_server)
        self.to_server = -1

    def close_output(self) -> None:
        os.close(self.from_server)
        self.from_server = -1

    def end(self) -> tuple[int, float]:
        """Wait for the process: its exit status, and how long it took."""
        began = time.monotonic()
        return self.process.wait(PATIENCE), time.monotonic() - began

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        for fd in (self.to_server, self.from_server):
            if fd >= 0:
                os.close(fd)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def module(name: str, *arguments: str) -> list[str]:
    """The argv that runs a module of the tests as a server."""
    return [sys.executable, "-m", f"tests.{name}", *arguments]
