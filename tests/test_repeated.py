"""The evidence for every `idempotent = true` of a tool that changes something: again is the same as once."""

from __future__ import annotations

from typing import Any

import pytest

from tests import offer
from tests.calls import Tools
from tests.inventory import ALL, INSPECT
from tests.sinks import Server
from tests.test_evidence import server as server
from tests.test_evidence import state

W: dict[str, Any] = {"window_id": "@0"}
P: dict[str, Any] = {"pane_id": "%1"}
CALLS: dict[str, list[dict[str, Any]]] = {
    "rename_session": [{"session": "$0", "new_name": "again"}],
    "rename_window": [{**W, "new_name": "again"}],
    "select_window": [{"window_id": "@1"}, W],
    "select_pane": [P, {"pane_id": "%0"}],
    "select_layout": [{**W, "layout": "even-horizontal"}, {**W, "layout": "tiled"}],
    "resize_window": [{**W, "width": 61, "height": 17}, {**W, "follow_client": True}],
    "resize_pane": [{**P, "height": 5}, {**P, "zoom": True}, {**P, "zoom": False}],
    "set_pane_title": [{**P, "title": "again"}],
    "exit_copy_mode": [P],
    "set_mouse_enabled": [{"enabled": True}, {"enabled": False, "session": "$0"}],
    "set_history_limit": [{"lines": 12345}, {"lines": 54321, "session": "$0"}],
    "set_synchronize_panes": [{**W, "enabled": True}, {**W, "enabled": False}],
}


def test_every_such_tool_is_here() -> None:
    rows = offer.rows()
    assert set(CALLS) == {name for name in ALL if rows[name].hints.idempotent and name not in INSPECT}


@pytest.mark.parametrize("tool", CALLS)
async def test_a_repeated_call_changes_nothing_more(server: Server, tool: str) -> None:
    tools = Tools(server.terminal)
    for arguments in CALLS[tool]:
        outcomes = []
        for _ in range(3):
            answer = await tools(tool, **arguments)
            outcomes.append((answer, await state(server)))
        assert outcomes[1:] == outcomes[:-1]
