"""A runner that starts nothing: tests script its answers and read what it was asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from tmuxmcp.tmux.runner import Output


class Invocation(NamedTuple):
    """One recorded call of `FakeRunner.run`."""

    argv: tuple[str, ...]
    stdin: bytes
    cwd: str | None
    env: dict[str, str] | None
    timeout: float
    max_output: int


Reply = Output | BaseException | str | Callable[[Invocation], "Output | str | Awaitable[Output | str]"]
"""What a scripted call gives: an output, its stdout as text, an error to raise, or a function of the call."""


class FakeRunner:
    """Answers calls from `replies` in order, then from `default`; keeps them in `calls`.

    ``FakeRunner("tmux 3.5a\\n", Output(1, b"", "no server running on /s\\n"))``
    """

    def __init__(self, *replies: Reply, default: Reply | None = None) -> None:
        self.replies: list[Reply] = list(replies)
        self.default = default
        self.version = version
        self.calls: list[Invocation] = []

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float,
        max_output: int,
    ) -> Output:
        if tuple(argv[1:]) == ("-V",):
            return Output(0, f"tmux {self.version}\n".encode(), "")
        call = Invocation(tuple(argv), stdin, cwd, None if env is None else dict(env), timeout, max_output)
        self.calls.append(call)
        reply = self.replies.pop(0) if self.replies else self.default
        if reply is None:
            raise AssertionError(f"no reply is scripted for {' '.join(argv)}")
        if isinstance(reply, BaseException):
            raise reply
        answer = reply(call) if callable(reply) else reply
        if isinstance(answer, Awaitable):
            answer = await answer
        return Output(0, answer.encode(), "") if isinstance(answer, str) else answer
