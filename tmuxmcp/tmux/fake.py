"""A runner that starts nothing: tests script its answers and read what it was asked."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple

from tmuxmcp.tmux.records import Template
from tmuxmcp.tmux.runner import Output

_VERSION_QUESTION: Final = re.compile(r"(\w+)<#\{version\}\1>")


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

    ``FakeRunner("0\\n", Output(1, b"", "no server running on /s\\n"))``. Questions for the version of
    the program or of the server are answered with `version` and not kept, while `answer_versions` is set.
    """

    def __init__(
        self,
        *replies: Reply,
        default: Reply | None = None,
        version: str = "3.5a",
        answer_versions: bool = True,
    ) -> None:
        self.replies: list[Reply] = list(replies)
        self.default = default
        self.version = version
        self.answer_versions = answer_versions
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
        begun: Callable[[], object] | None = None,
    ) -> Output:
        if self.answer_versions and argv[-1] == "-V":
            return Output(0, f"tmux {self.version}\n".encode(), "")
        if self.answer_versions and _VERSION_QUESTION.fullmatch(argv[-1]):
            return Output(0, argv[-1].replace("#{version}", self.version).encode(), "")
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
        if begun is not None:
            begun()
        return Output(0, answer.encode(), "") if isinstance(answer, str) else answer


def rows(template: Template, *answers: Mapping[str, str]) -> Callable[[Invocation], str]:
    """A reply that says `answers` as tmux would when a call asks for `template`."""

    def reply(call: Invocation) -> str:
        for arg in call.argv:
            nonce = arg.partition("<")[0]
            if nonce and arg == template.format(nonce):
                return "".join(f"{Template(**answer).format(nonce)}\n" for answer in answers)
        raise AssertionError(f"{' '.join(call.argv)} does not ask for these rows")

    return reply
