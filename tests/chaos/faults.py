"""The registry of faults: functions that do something bad to a world, and say what must come of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from tests.chaos.caller import Caller
from tests.chaos.scene import Scene
from tests.chaos.world import World

Inflict = Callable[[World], Awaitable[None]]
Prepare = Callable[[Scene], Mapping[str, str]]


class Fault(NamedTuple):
    """A fault, and the server of ours that it needs."""

    inflict: Inflict
    wrapped: tuple[str, ...]
    environ: Mapping[str, str]
    prepare: Prepare | None
    others: bool
    """Whether others started the tmux server, and use it too."""

    def caller(self, scene: Scene) -> Caller:
        environ = {**self.environ, **(self.prepare(scene) if self.prepare else {})}
        return scene.caller(*self.wrapped, **environ)


FAULTS: dict[str, Fault] = {}


def fault(
    *wrapped: str, prepare: Prepare | None = None, others: bool = True, **environ: str
) -> Callable[[Inflict], Inflict]:
    """Register a fault under its function's name."""

    def register(inflict: Inflict) -> Inflict:
        FAULTS[inflict.__name__] = Fault(inflict, wrapped, environ, prepare, others)
        return inflict

    return register
