"""A short run of the model; ``python -m tests.model_capture_since --lines 1000000`` is the long one."""

from __future__ import annotations

import pytest

from tests.model_capture_since import Model, prove


@pytest.mark.parametrize("outside", [False, True], ids=["undisturbed", "resized and cleared"])
@pytest.mark.parametrize(
    ("history_limit", "lines", "seed"), [(100, 3000, 1), (100, 3000, 2), (2000, 10_000, 3), (50_000, 8000, 4)]
)
async def test_what_is_read_is_what_was_printed(
    history_limit: int, lines: int, seed: int, outside: bool
) -> None:
    counts = await prove(Model(seed, lines, history_limit, rate=4000.0, outside=outside))
    assert counts["lines"] > 0
