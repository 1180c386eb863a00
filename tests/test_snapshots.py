"""The schemas that clients get are those that were looked at when they last changed."""

from __future__ import annotations

from tests import snapshots


async def test_the_schemas_are_those_that_are_written_down() -> None:
    wanted = await snapshots.files()
    found = {path.name: path.read_text() for path in snapshots.DIRECTORY.iterdir()}
    stale = sorted(name for name in {*wanted, *found} if wanted.get(name) != found.get(name))
    assert not stale, "look at what changed, then: make snapshots"
