"""Codex's app server: the interface for editors, by which tools can be called without a model."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

Json = dict[str, Any]

PATIENCE = 90.0
"""Seconds until a session that has not ended is ended."""


class AppServer:
    """A conversation with it, in lines of JSON."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._requests = 0
        self._ask("initialize", clientInfo={"name": "clients", "title": "clients", "version": "1"})
        self._send({"method": "initialized"})
        self._thread: str = self._ask("thread/start")["thread"]["id"]

    def tools(self, server: str) -> list[str]:
        """The names of a server's tools."""
        found = {each["name"]: each for each in self._ask("mcpServerStatus/list")["data"]}
        return list(found[server]["tools"])

    def call(self, server: str, tool: str, arguments: Json) -> Json:
        """The structured result of a tool. Raises when the tool refuses."""
        target = {"threadId": self._thread, "server": server}
        result = self._ask("mcpServer/tool/call", **target, tool=tool, arguments=arguments)
        if result["isError"]:
            raise RuntimeError(f"{tool}: {result['content']}")
        content: Json = result["structuredContent"]
        return content

    def read(self, server: str, uri: str) -> Json:
        """The JSON document that a resource is."""
        target = {"threadId": self._thread, "server": server}
        (content,) = self._ask("mcpServer/resource/read", **target, uri=uri)["contents"]
        document: Json = json.loads(content["text"])
        return document

    def _ask(self, method: str, **params: object) -> Json:
        self._requests += 1
        self._send({"id": self._requests, "method": method, "params": params})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if message.get("id") == self._requests and "method" not in message:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                result: Json = message["result"]
                return result
        raise RuntimeError(f"the app server ended before it answered {method}")

    def _send(self, message: Json) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()


@contextmanager
def session(program: str, environment: Mapping[str, str], directory: Path) -> Iterator[AppServer]:
    """Start it in a directory, and end it."""
    process = subprocess.Popen(
        [program, "app-server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd=directory,
        text=True,
    )
    with process:
        timer = Timer(PATIENCE, process.kill)
        timer.start()
        try:
            yield AppServer(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
            timer.cancel()
