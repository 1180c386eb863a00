"""JSON-RPC messages as lines of JSON, both ways."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn

import msgspec
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)


class Refused(Exception):
    """A line that is no message; `error` is the answer to it."""

    def __init__(self, code: int, message: str, id: RequestId | None = None) -> None:
        super().__init__(message)
        self.error = JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=message))


def parse(line: bytes) -> JSONRPCMessage:
    """Read one line. Raises `Refused` with the answer that JSON-RPC asks for.

    An answer carries the request's id wherever that can be told, since a client would otherwise wait
    for ever.
    """
    try:
        frame = _decode(line)
    except RecursionError:
        raise Refused(INVALID_REQUEST, "The message is nested too deeply.") from None
    except (ValueError, msgspec.DecodeError):
        raise Refused(PARSE_ERROR, "The line is not JSON in UTF-8.") from None
    if not isinstance(frame, dict):
        batch = (
            "Batches are not supported: send each" if isinstance(frame, list) else "Send each message as an"
        )
        raise Refused(INVALID_REQUEST, f"{batch} object on a line of its own.")
    if "method" not in frame and ("result" in frame or "error" in frame):
        try:
            return jsonrpc_message_adapter.validate_python(frame, by_name=False)
        except ValueError:
            raise Refused(INVALID_REQUEST, "The response is not a JSON-RPC 2.0 response.") from None
    id, method, params = frame.get("id"), frame.get("method"), frame.get("params")
    if "id" in frame and not _is_id(id):
        raise Refused(INVALID_REQUEST, "A request's id must be a string or an integer.")
    if frame.get("jsonrpc") != "2.0":
        raise Refused(INVALID_REQUEST, 'The member jsonrpc must be "2.0".', id)
    if not isinstance(method, str):
        raise Refused(INVALID_REQUEST, "The member method must be a string.", id)
    if params is not None and not isinstance(params, dict):
        raise Refused(INVALID_REQUEST, "The member params must be an object.", id)
    if id is None:
        return JSONRPCNotification.model_construct(jsonrpc="2.0", method=method, params=params)
    return JSONRPCRequest.model_construct(jsonrpc="2.0", id=id, method=method, params=params)


def _decode(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        # A lone surrogate or 1e999 is JSON all the same: read on, so that the answer can name the field.
        return json.loads(line.decode(), parse_constant=_no_constant)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)
    return isinstance(value, int) and not isinstance(value, bool)


def encode(message: JSONRPCMessage) -> bytes:
    """Render one message as one line."""
    if isinstance(message, JSONRPCResponse):
        frame: dict[str, Any] = {"jsonrpc": "2.0", "id": message.id, "result": message.result}
    else:
        frame = message.model_dump(by_alias=True, exclude_unset=True)
    return _dump(frame) + b"\n"


def compact(value: object) -> str:
    """Render a value as JSON without blanks; what has no form in JSON as its text."""
    return _dump(value).decode()


def _dump(value: object) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=str)
    except UnicodeEncodeError:  # a lone surrogate, as in a file name that is not UTF-8
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode(
            "utf-8", "replace"
        )


class Lines:
    """Cuts a stream into lines. A line of more than `limit` bytes is None, at once, and is not kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """The lines that `data` completes, without their newlines."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            fits = self._add(end)
            if not self._skipping:
                yield b"".join(self._parts) if fits else None
            self._parts, self._size, self._skipping = [], 0, False
        if not self._add(rest) and not self._skipping:
            self._parts, self._skipping = [], True
            yield None

    def rest(self) -> bytes:
        """What came after the last newline."""
        return b"".join(self._parts)

    def _add(self, part: bytes) -> bool:
        self._size += len(part)
        if self._skipping or self._size > self._limit:
            return False
        self._parts.append(part)
        return True
