"""What a list of tools costs its client, in bytes, for every combination of toolsets.

A model reads the name, the description and the input schema of each tool; the rest (title, annotations,
output schema, `_meta`) is for the client. A client that is given too much cuts it, or leaves tools out.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.offer import COMBINATIONS, TOOLSETS, Offer, size
from tests.peer import LEGACY, MODERN
from tests.test_program import Program
from tmuxmcp.settings import Settings

MODEL = ("name", "description", "inputSchema")
MODEL_BYTES, REPLY_BYTES = 26_000, 60_000
SHARES = {
    "inspect": (11_100, 24_000),
    "manage": (7_300, 19_400),
    "execute": (6_800, 13_600),
    "teardown": (1_500, 4_200),
}
"""Of each toolset: what a model reads, and all. Together a little more than the whole may have."""


@pytest.mark.parametrize("toolsets", COMBINATIONS, ids="+".join)
async def test_the_list_of_any_toolsets_fits(toolsets: tuple[str, ...]) -> None:
    reply = await Offer(Settings(toolsets=toolsets)).reply()
    model = [{key: tool[key] for key in MODEL} for tool in reply["tools"]]
    largest = sorted(((size(tool), tool["name"]) for tool in model), reverse=True)[:5]
    read, whole = (sum(SHARES[toolset][part] for toolset in toolsets) for part in (0, 1))
    assert size(model) <= min(MODEL_BYTES, read + len("[]")), largest
    assert size(reply) <= min(REPLY_BYTES, whole + 100), largest


async def test_no_tool_takes_much_more_than_its_share() -> None:
    for tool in await Offer().tools():
        assert size({key: tool[key] for key in MODEL}) <= 1_300, tool["name"]
        assert len(tool["description"]) <= 450, tool["name"]


@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_the_frame_that_leaves_the_process_fits(socket_path: Path, era: str) -> None:
    with Program(socket_path, era=era, TMUXMCP_TOOLSETS=",".join(TOOLSETS)) as program:
        program.open()
        frame = program.answer(program.request("tools/list"))
    assert len(frame["result"]["tools"]) == 47
    assert len(json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode()) < REPLY_BYTES
