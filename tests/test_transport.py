"""The transport as a client sees it: raw frames to a server in a process of its own."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peer import LEGACY, MODERN, Peer, module
from tmuxmcp import limits

SERVER = module("bare_server")
ENDED = 1.0
"""Seconds from the sign of the end to the end of the process."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Peer]:
    with Peer(SERVER) as peer:
        peer.open()
        yield peer


@pytest.fixture
def peer() -> Iterator[Peer]:
    with Peer(SERVER) as peer:
        peer.open()
        yield peer


def begin(peer: Peer, tool: str, arguments: dict[str, Any] | None = None) -> int | str:
    """Call a tool and wait until it is at work."""
    id = peer.call(tool, arguments, progressToken=tool)
    while peer.receive().get("method") != "notifications/progress":
        pass
    return id


def still_serves(peer: Peer) -> bool:
    return bool(peer.result(peer.request("ping")) == {})


@pytest.mark.parametrize(
    ("line", "code", "id"),
    [
        (b"{nonsense\n", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}\n', -32700, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n', -32600, None),
        (b'{"jsonrpc":"1.0","id":901,"method":"ping"}\n', -32600, 901),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n', -32600, None),
        (b'{"jsonrpc":"2.0","id":902,"method":"ping","params":[]}\n', -32600, 902),
        (b'{"jsonrpc":"2.0","id":903,"method":"no/such"}\n', -32601, 903),
        (b"x" * (limits.FRAME_BYTES + 1) + b"\n", -32600, None),
    ],
)
def test_what_is_no_message_is_answered_and_the_server_lives_on(
    shared: Peer, line: bytes, code: int, id: object
) -> None:
    shared.send(line)
    frame = shared.receive()
    assert (frame["jsonrpc"], frame["id"], frame["error"]["code"]) == ("2.0", id, code)
    assert still_serves(shared)


def test_blank_lines_and_unknown_responses_are_passed_over(shared: Peer) -> None:
    shared.send(b'\n \r\n{"jsonrpc":"2.0","id":77,"result":{}}\n')
    assert still_serves(shared)


def test_a_line_may_arrive_in_pieces_and_be_as_long_as_the_limit(shared: Peer) -> None:
    frame = json.dumps({"jsonrpc": "2.0", "id": "long", "method": "ping"}).encode()
    shared.send(frame[:10])
    shared.send(frame[10:] + b" " * (limits.FRAME_BYTES - len(frame)) + b"\n")
    assert shared.result("long") == {}


def test_nothing_but_frames_is_on_the_wire_and_children_do_not_read_it(shared: Peer) -> None:
    id = shared.call("print")
    assert shared.receive() == {
        "jsonrpc": "2.0",
        "id": id,
        "result": {"content": [{"type": "text", "text": ""}], "isError": False},
    }


def test_a_second_request_with_an_id_in_flight_is_refused_without_that_id(peer: Peer) -> None:
    first = begin(peer, "hang")
    peer.request("ping", id=first)
    frame = peer.receive()
    assert (frame["id"], frame["error"]["code"]) == (None, -32600)
    for other in (None, [first], "other"):
        peer.notify("notifications/cancelled", {"requestId": other})
    peer.notify("notifications/cancelled", {"requestId": str(first)})
    assert peer.result(peer.request("ping", id=first)) == {}


def test_large_frames_both_ways(peer: Peer) -> None:
    text = "ä" * 1_000_000
    result = peer.result(peer.call("echo", {"text": text}))
    assert result["content"][0]["text"] == text


@pytest.mark.parametrize("era", [LEGACY, MODERN])
@pytest.mark.parametrize(
    "sign", ["end of input", signal.SIGTERM, signal.SIGINT, signal.SIGHUP, "closed output"]
)
def test_every_end_cleans_up_and_comes_within_a_second(sign: str | int, era: str, tmp_path: Path) -> None:
    mark = tmp_path / "cleaned"
    with Peer(SERVER, era=era) as peer:
        peer.open()
        begin(peer, "abandon_thread")
        id = begin(peer, "hang", {"mark": str(mark)})
        if sign == "end of input":
            peer.close_input()
        elif sign == "closed output":
            peer.close_output()
        else:
            peer.process.send_signal(int(sign))
        status, seconds = peer.end()
        assert (status, mark.exists()) == (0, True)
        assert seconds < ENDED
        if sign != "closed output":
            answers = {frame["id"]: frame["error"]["message"] for frame in peer.rest()}
            assert answers[id] == "Connection closed"


@pytest.mark.parametrize(
    ("tool", "sign"), [("block_thread", 0), ("block_thread", signal.SIGTERM), ("spin", signal.SIGTERM)]
)
def test_what_does_not_let_go_is_ended(peer: Peer, tool: str, sign: int) -> None:
    begin(peer, tool)
    if sign:
        peer.process.send_signal(sign)
    else:
        peer.close_input()
    status, seconds = peer.end()
    assert status == 1
    assert seconds < ENDED


@pytest.mark.parametrize("sign", [0, signal.SIGTERM])
def test_a_client_that_does_not_read_stops_neither_calls_nor_the_end(
    peer: Peer, sign: int, tmp_path: Path
) -> None:
    fifo = tmp_path / "cleaned"
    os.mkfifo(fifo)
    hanging = begin(peer, "hang", {"mark": str(fifo)})
    for _ in range(3):
        peer.call("echo", {"text": "x" * 1_000_000})
    peer.send(b"{nonsense\n")
    peer.notify("notifications/cancelled", {"requestId": hanging})
    fifo.open().close()  # opens only when the cancelled call opens its end
    if sign:
        peer.process.send_signal(sign)
    else:
        peer.close_input()
    status, seconds = peer.end()
    assert status == 0
    assert seconds < ENDED


def conversation(*texts: str) -> bytes:
    client = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "peer", "version": "1"}}
    frames: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    for id, text in enumerate(texts, 1):
        params = {"name": "echo", "arguments": {"text": text}}
        frames.append({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    return "\n".join(map(json.dumps, frames)).encode()  # without a last newline


def test_a_file_in_and_a_file_out(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(conversation("one", "two"))
    with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
        assert subprocess.run(SERVER, stdin=stdin, stdout=stdout, check=True, timeout=20).returncode == 0
    answers = [json.loads(line) for line in (tmp_path / "out").read_bytes().splitlines()]
    texts = {answer["id"]: answer["result"].get("content") for answer in answers}
    assert {id: content and content[0]["text"] for id, content in texts.items()} == {
        0: None,
        1: "one",
        2: "two",
    }


@pytest.mark.parametrize("redirection", ["</dev/null", "<&-", "<&- 2>&-"])
def test_no_input_is_the_end_of_input(redirection: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {redirection}', *SERVER], capture_output=True, timeout=20, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_no_output_is_an_error() -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" "$@" >&-', *SERVER], capture_output=True, timeout=20, check=False
    )
    assert done.returncode == 1
    assert b"Bad file descriptor" in done.stderr


@pytest.mark.parametrize("sockets", [1, 2])
def test_sockets(sockets: int) -> None:
    """Node gives its children a socket for each stream; others give one for both."""
    ours, theirs = socket.socketpair()
    other_ours, other_theirs = socket.socketpair() if sockets == 2 else (ours.dup(), theirs.dup())
    with Peer(SERVER, stdin=theirs.detach(), stdout=other_theirs.detach()) as peer:
        peer.to_server, peer.from_server = ours.detach(), other_ours.detach()
        peer.open()
        text = "x" * 1_000_000
        assert peer.result(peer.call("echo", {"text": text}))["content"][0]["text"] == text
        begin(peer, "hang")
        if sockets == 2:
            peer.close_output()
        else:
            with socket.socket(fileno=os.dup(peer.to_server)) as ours:
                ours.shutdown(socket.SHUT_WR)
        status, seconds = peer.end()
        assert status == 0
        assert seconds < ENDED


def test_a_terminal() -> None:
    controller, terminal = pty.openpty()
    with Peer(["sh", "-c", 'stty -echo -icanon; exec "$0" "$@"', *SERVER], stdin=terminal) as peer:
        peer.to_server = controller
        peer.open()
        assert still_serves(peer)
        begin(peer, "hang")
        peer.process.terminate()
        status, seconds = peer.end()
        assert status == 0
        assert seconds < ENDED


def test_an_ignored_signal_stays_ignored() -> None:
    with Peer(["sh", "-c", 'trap \'\' HUP; exec "$0" "$@"', *SERVER]) as peer:
        peer.open()
        peer.process.send_signal(signal.SIGHUP)
        assert still_serves(peer)


def test_a_defect_ends_the_process_and_says_why() -> None:
    serve = "async def serve(read, write): raise ValueError('the defect')"
    program = f"from tmuxmcp import transport\n{serve}\ntransport.run(serve)"
    done = subprocess.run(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, capture_output=True, timeout=20, check=False
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"the defect" in done.stderr
