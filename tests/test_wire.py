"""Writing to the client without waiting for it to read."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tmuxmcp import transport
from tmuxmcp.transport import Wire


@pytest.fixture(params=["opened anew", "as it is"])
def pipe(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int, Wire]]:
    """A pipe's reading end, its writing end as another process has it, and ours."""
    if request.param == "as it is":
        monkeypatch.setattr(transport, "_opened_anew", lambda pipe: None)
    reading, writing = os.pipe()
    other = os.dup(writing)
    wire = Wire(writing)
    yield reading, other, wire
    for fd in (reading, other, wire.fd):
        os.close(fd)


def write(wire: Wire, data: bytes) -> int:
    """Write until nothing fits any more: how much was written."""
    left = memoryview(data)
    while left and (written := wire.write(left)):
        left = left[written:]
    return len(data) - len(left)


def test_what_fits_is_written_and_the_rest_is_not_waited_for(pipe: tuple[int, int, Wire]) -> None:
    reading, _, wire = pipe
    data = os.urandom(1 << 20)
    written = write(wire, data)
    assert 4096 <= written < len(data)
    assert wire.write(memoryview(data)) == 0
    assert os.read(reading, 1 << 21) == data[:written]
    assert write(wire, b"more") == 4
    assert os.read(reading, 100) == b"more"


def test_whoever_shares_the_pipe_can_still_block_on_it(pipe: tuple[int, int, Wire]) -> None:
    _, other, wire = pipe
    write(wire, bytes(1 << 20))
    assert os.get_blocking(other)


def test_nobody_reads(pipe: tuple[int, int, Wire]) -> None:
    reading, _, wire = pipe
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, reading)
    os.close(null)
    with pytest.raises(BrokenPipeError):
        wire.write(memoryview(b"x"))
