"""Where the values of a call went: into which position of which tmux command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tmuxmcp.tmux.fake import Invocation
from tmuxmcp.tmux.runner import Output, Runner


class Recorder:
    """A runner that passes calls on and keeps them in `calls`."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.calls: list[Invocation] = []

    async def run(self, argv: Sequence[str], **how: Any) -> Output:
        env = how.get("env")
        self.calls.append(
            Invocation(
                tuple(argv),
                how.get("stdin", b""),
                how.get("cwd"),
                None if env is None else dict(env),
                how["timeout"],
                how["max_output"],
            )
        )
        return await self._runner.run(argv, **how)
