"""Time for waits: one clock that tests can replace, and the rhythm of looking at a pane."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Protocol

import anyio

from tmuxmcp import limits


class Clock(Protocol):
    """Seconds that only go forward, and a sleep in them."""

    def now(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The event loop's own clock."""

    def now(self) -> float:
        return anyio.current_time()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


def now_ms() -> int:
    """The wall clock, in milliseconds: it goes on when our process is started anew."""
    return time.time_ns() // 1_000_000


class Progress(Protocol):
    """Tells whoever waits how many seconds have gone by."""

    async def __call__(self, progress: float, /) -> None: ...


async def no_progress(progress: float, /) -> None:
    """Tell nobody."""


def effective_timeout(timeout: float, ceiling: float) -> float:
    """The seconds that a call may take: what it asked for, at most the configured ceiling."""
    return min(timeout, ceiling)


class Ticker:
    """The pauses between looks: short after a change, longer the longer nothing changes."""

    def __init__(self, clock: Clock, deadline: float) -> None:
        self._clock = clock
        self._deadline = deadline
        self._changed = clock.now()

    def changed(self) -> None:
        """Something moved: look often again."""
        self._changed = self._clock.now()

    @property
    def quiet(self) -> float:
        """Seconds since the last change."""
        return self._clock.now() - self._changed

    def pause(self) -> float:
        """Seconds until the next look, never beyond the deadline."""
        growth = min(1.0, self.quiet / limits.TICK_GROWTH_SECONDS)
        tick = limits.TICK_MIN_SECONDS + growth * (limits.TICK_MAX_SECONDS - limits.TICK_MIN_SECONDS)
        return max(0.0, min(tick, self._deadline - self._clock.now()))

    async def rest(self, still: Callable[[], bool] = lambda: False, *, until: float = math.inf) -> bool:
        """Sleep until the next look. Returns whether it was still, and is no more.

        While it is known to be `still` there would be nothing new to see: then that look is put off, for
        `limits.LOOK_SECONDS` at most, and not beyond `until` (of the clock).
        """
        latest = min(self._clock.now() + limits.LOOK_SECONDS, self._deadline, until)
        await self._clock.sleep(self.pause())
        put_off = False
        while still():
            left = latest - self._clock.now()
            if left <= 0:
                return False
            await self._clock.sleep(min(self.pause(), left))
            put_off = True
        return put_off
