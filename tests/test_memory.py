"""What is remembered of panes stays small, and nothing that is in use is forgotten."""

from __future__ import annotations

import pytest

from tmuxmcp.terminal.panes import Terminal
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.fake import FakeRunner
from tmuxmcp.tmux.socket import Socket

pytestmark = pytest.mark.anyio


def terminal() -> Terminal:
    return Terminal(Client(FakeRunner(), Socket("path", "path:/s", "/s"), "tmux"))


async def test_panes_that_were_not_asked_about_for_long_are_forgotten() -> None:
    ours = terminal()
    first, busy = ours.memory("%0"), ours.memory("%1")
    async with busy.run:
        for number in range(2, 5000):
            ours.memory(f"%{number}")
            assert ours.memory("%4000") is ours.memory("%4000")
        assert ours.memory("%0") is not first
        assert ours.memory("%1") is busy
    assert len(ours._memories) < 300


async def test_what_was_typed_is_kept_up_to_a_size() -> None:
    ours = terminal()
    for number in range(100):
        ours.remember("%0", f"{number}", "x" * 1000)
    typed = ours.memory("%0").typed
    assert [line.text for line in typed][-2:] == ["99", "x" * 1000]
    assert 10_000 < sum(len(line.text) for line in typed) <= 16_000
    ours.remember("%0", "y" * 4_000_000)
    assert "y" not in "".join(line.text for line in typed)
