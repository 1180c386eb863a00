"""Every fault of `tests.faults` can still be made, and every invariant has one that it catches."""

from __future__ import annotations

import pytest

from tests.faults import FAULTS, INVARIANTS, SINKS, Fault
from tests.mutants import ROOT


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_the_fault_can_be_made(fault: Fault) -> None:
    texts = {edit.file: (ROOT / edit.file).read_text() for edit in fault.edits}
    for edit in fault.edits:
        changed = edit.applied(texts[edit.file])
        assert changed != texts[edit.file]
        texts[edit.file] = changed
    for file, text in texts.items():
        if file.endswith(".py"):
            compile(text, file, "exec")


def test_every_invariant_is_put_to_the_test() -> None:
    tried = {fault.tests for fault in FAULTS if fault.where == INVARIANTS}
    assert tried == {f"invariant_{number}_" for number in range(1, 12)}
    assert any(fault.where == SINKS for fault in FAULTS)
    assert len({fault.what for fault in FAULTS}) == len(FAULTS)
