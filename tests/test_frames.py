"""Lines of JSON to messages and back: what JSON-RPC asks for in answer to what is no message."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from tmuxmcp.frames import Lines, Refused, compact, encode, parse


def refusal(line: bytes) -> tuple[int, object]:
    with pytest.raises(Refused) as refused:
        parse(line)
    error = refused.value.error
    return error.error.code, error.id


@pytest.mark.parametrize(
    ("line", "code", "id"),
    [
        (b"{", PARSE_ERROR, None),
        (b"nonsense", PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"} x', PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}', PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":-Infinity}}', PARSE_ERROR, None),
        (b"[" * 100_000 + b"]" * 100_000, INVALID_REQUEST, None),
        (b"[]", INVALID_REQUEST, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', INVALID_REQUEST, None),
        (b"1", INVALID_REQUEST, None),
        (b"null", INVALID_REQUEST, None),
        (b"{}", INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', INVALID_REQUEST, 7),
        (b'{"id":"a","method":"ping"}', INVALID_REQUEST, "a"),
        (b'{"jsonrpc":"2.0","id":7}', INVALID_REQUEST, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":1}', INVALID_REQUEST, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}', INVALID_REQUEST, 7),
        (b'{"jsonrpc":"2.0","method":"notifications/initialized","params":[1]}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":7,"error":"no object"}', INVALID_REQUEST, None),
    ],
)
def test_what_is_no_message_is_answered(line: bytes, code: int, id: object) -> None:
    assert refusal(line) == (code, id)


def test_messages() -> None:
    request = parse(b' {"jsonrpc":"2.0","id":"7","method":"m","params":{"a":1},"extra":0}\r')
    assert isinstance(request, JSONRPCRequest)
    assert (request.id, request.method, request.params) == ("7", "m", {"a": 1})
    notification = parse(b'{"jsonrpc":"2.0","method":"m","params":null}')
    assert isinstance(notification, JSONRPCNotification)
    assert notification.params is None
    assert isinstance(parse(b'{"jsonrpc":"2.0","id":1,"result":{}}'), JSONRPCResponse)
    assert isinstance(parse(b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}'), JSONRPCError)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("12345678901234567890123", 12345678901234567890123),
        ("1e999", float("inf")),
        ('"\\ud800"', "\ud800"),
    ],
)
def test_odd_values_reach_the_one_who_can_name_the_field(text: str, value: object) -> None:
    request = parse(f'{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"x":{text}}}}}'.encode())
    assert isinstance(request, JSONRPCRequest)
    assert request.params == {"x": value}


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)))
def test_a_message_is_one_line_that_reads_back(value: object) -> None:
    line = encode(JSONRPCResponse(jsonrpc="2.0", id=1, result={"value": value}))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"jsonrpc": "2.0", "id": 1, "result": {"value": value}}


def test_a_lone_surrogate_still_leaves_as_a_frame() -> None:
    line = encode(JSONRPCResponse(jsonrpc="2.0", id=1, result={"path": "a\udc80b"}))
    assert json.loads(line)["result"] == {"path": "a?b"}


def test_what_json_has_no_form_for_leaves_as_text() -> None:
    assert compact({"path": PurePath("/a"), "n": float("nan")}) == '{"path":"/a","n":null}'


def feed(pieces: list[bytes], limit: int) -> list[Any]:
    lines = Lines(limit)
    return [line for piece in pieces for line in lines.feed(piece)] + [lines.rest()]


@given(st.lists(st.text("ab\n", max_size=12).map(str.encode)), st.integers(0, 8))
def test_lines_are_the_same_however_they_arrive(pieces: list[bytes], limit: int) -> None:
    *ended, rest = b"".join(pieces).split(b"\n")
    expected: list[bytes | None] = [line if len(line) <= limit else None for line in ended]
    expected += [rest] if len(rest) <= limit else [None, b""]
    assert feed(pieces, limit) == expected


def test_an_endless_line_is_told_once_and_not_kept() -> None:
    lines = Lines(10)
    told = [line for _ in range(1000) for line in lines.feed(b"x" * 7)]
    assert told == [None]
    assert lines.rest() == b""
    assert list(lines.feed(b"x\nnext\n")) == [b"next"]
