"""What the control loop knows of panes: their state as tmux tells it, and what this process remembers."""

from __future__ import annotations

import math
import os
import termios
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import anyio

from tmuxmcp.errors import NoServer, PaneDead, PaneInMode, PaneInputOff, ServerGone
from tmuxmcp.terminal.buffers import Buffers
from tmuxmcp.terminal.channels import Channels
from tmuxmcp.terminal.clock import Clock, SystemClock, now_ms
from tmuxmcp.terminal.shells import Marks
from tmuxmcp.tmux.client import TIMEOUT, Client
from tmuxmcp.tmux.command import Arg, Command, command, target
from tmuxmcp.tmux.records import Template, new_nonce

STATE = Template(
    pane_id="#{pane_id}",
    server="#{pid}:#{start_time}",
    pid="#{pane_pid}",
    tty="#{pane_tty}",
    program="#{pane_current_command}",
    in_mode="#{pane_in_mode}",
    mode="#{pane_mode}",
    dead="#{pane_dead}",
    dead_status="#{pane_dead_status}",
    input_off="#{pane_input_off}",
    synchronized="#{pane_synchronized}",
    alternate="#{alternate_on}",
    width="#{pane_width}",
    history_size="#{history_size}",
    history_limit="#{history_limit}",
    cursor_x="#{cursor_x}",
    cursor_y="#{cursor_y}",
    window_id="#{window_id}",
)

REPLACED = "The pane was given another program (respawn-pane), and the one before has ended."
"""What is noted of a call that was about the program before."""


class State(NamedTuple):
    """One pane at one instant. Rows and columns are in cells, from 0."""

    pane_id: str
    server: str
    pid: int
    tty: str
    program: str
    mode: str
    dead: bool
    dead_status: int | None
    input_off: bool
    """Whether somebody has switched the pane's input off (`select-pane -d`)."""
    synchronized: bool
    alternate: bool
    width: int
    history_size: int
    history_limit: int
    cursor_x: int
    cursor_y: int
    window_id: str

    @classmethod
    def parse(cls, row: dict[str, str]) -> State:
        return cls(
            pane_id=row["pane_id"],
            server=row["server"],
            pid=int(row["pid"] or 0),  # empty for a dead pane on tmux 3.8
            tty=row["tty"],
            program=row["program"],
            mode=row["mode"] if row["in_mode"] != "0" else "",
            dead=row["dead"] == "1",
            dead_status=int(row["dead_status"]) if row["dead_status"] else None,
            input_off=row["input_off"] == "1",
            synchronized=row["synchronized"] == "1",
            alternate=row["alternate"] == "1",
            width=int(row["width"]),
            history_size=int(row["history_size"]),
            history_limit=int(row["history_limit"]),
            cursor_x=int(row["cursor_x"]),
            cursor_y=int(row["cursor_y"]),
            window_id=row["window_id"],
        )

    @property
    def row(self) -> int:
        """The cursor's row, counted from the oldest row of the history."""
        return self.history_size + self.cursor_y

    @property
    def trimmed(self) -> bool:
        """Whether tmux may have dropped old rows: a full history loses a tenth at once."""
        chunk = max(1, self.history_limit // 10)
        return self.history_size >= self.history_limit - chunk

    def check_accepts_input(self) -> None:
        """Refuse when what is typed would not reach the pane's program."""
        if self.dead:
            raise PaneDead(
                f"Pane {self.pane_id} is dead: its program has ended"
                f"{'' if self.dead_status is None else f' with status {self.dead_status}'}, so nothing was "
                "typed. Use respawn_pane to start a program in it, or another pane.",
                pane_id=self.pane_id,
            )
        if self.mode:
            raise PaneInMode(
                f"Pane {self.pane_id} is in {self.mode}, which would swallow input, so nothing was typed. "
                "Call exit_copy_mode on it, then try again.",
                pane_id=self.pane_id,
                mode=self.mode,
            )
        if self.input_off:
            raise PaneInputOff(
                f"The input of pane {self.pane_id} is switched off, so nothing was typed. Use another pane, "
                f"or have it switched on with tmux select-pane -e -t {self.pane_id}.",
                pane_id=self.pane_id,
            )


class Look(NamedTuple):
    """One look at a pane: its state, and rows of the screen and the history, wrapped ones joined."""

    state: State
    text: str
    told: str = ""
    """What the commands that ran along printed."""

    @property
    def last_line(self) -> str:
        """The last line with anything on it, but for its `right`: the prompt, when a shell is at it."""
        return self._bottom.removesuffix(self.right).rstrip()

    @property
    def right(self) -> str:
        """What stands in the cursor's row far to the right of it, as zsh's RPROMPT does."""
        row = max(0, len(self._bottom) - 1) // self.state.width  # several, where it is wrapped
        right = self._bottom[row * self.state.width + self.state.cursor_x :]
        return right if right.startswith(_GAP) else ""

    @property
    def _bottom(self) -> str:
        return self.text.rstrip("\n ").rpartition("\n")[2]


class Discipline(NamedTuple):
    """How a terminal treats input, from its termios flags."""

    canonical: bool
    echo: bool
    edits: bool = False
    """Whether Enter comes as what it is, or marked, or C-v does, as line editors have it. What reads single
    keys leaves that to the terminal (`read` of bash 5.2 and zsh 5.9, Python's `tty.setcbreak`)."""

    @classmethod
    def of(cls, tty: str) -> Discipline | None:
        """Read it from the terminal's device, or None when that cannot be opened."""
        try:
            device = os.open(tty, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            input, _, _, local, *_ = termios.tcgetattr(device)
        except (OSError, termios.error):
            return None
        finally:
            os.close(device)
        as_lines = input & (termios.ICRNL | termios.INLCR) == termios.ICRNL and local & termios.IEXTEN
        edits = not local & termios.ICANON and not as_lines
        return cls(bool(local & termios.ICANON), bool(local & termios.ECHO), edits)


# How long the shell of a new pane may start other programs before they count as what the pane is for.
_STARTING_SECONDS = 10.0
# What tmux gets at least: the last look may come when the time is up already.
_LAST_SECONDS = 1.0
_MEMORIES = 256
_GAP = "    "
_TYPED_CHARACTERS = 16_000
ANY = -1


class TypedLine(NamedTuple):
    """A line that this process typed, and when, in milliseconds of the wall clock."""

    text: str
    at: int
    ahead_of: int | None = None
    """The foreground process group that it was typed ahead of, if it is expected behind the prompt that
    comes after it, and nowhere else. 0 where the system does not say, `ANY` where any prompt is the one."""


class Open(NamedTuple):
    """A command whose time was up, and the prompt at which it was typed."""

    marks: Marks
    prompt: str
    interrupted: bool = False
    """Whether C-c was typed since: then a builtin of the shell that waits for input waits no longer."""


@dataclass
class Memory:
    """What this process remembers of one pane of one tmux server."""

    run: anyio.Lock = field(default_factory=anyio.Lock)
    typing: anyio.Lock = field(default_factory=anyio.Lock)
    created: float = -math.inf
    """When this process made the pane or restarted its program, on the terminal's clock."""
    prompted: bool = False
    """Whether its shell has been seen at its prompt."""
    untaken: str = ""
    """The nonce of a command's line that was typed, and that the shell has not been seen to take yet."""
    entered: int | None = None
    """The row in which a line was ended for somebody else, until its program has been seen to move on."""
    prompt: str = ""
    """A prompt that looks like that of an unfinished line, and is not."""
    shown_prompt: str = ""
    """The prompt at which a command was typed last, up to the cursor."""
    open: Open | None = None
    """The last command, while it has not been seen to end: it may read what is typed next."""
    left: Look | None = None
    """The pane as the last command left it, with its shell at the prompt."""
    typed: deque[TypedLine] = field(default_factory=lambda: deque(maxlen=32))
    seen: State | None = None
    """Its state when it was looked at last."""


class Terminal:
    """The process-wide half of the control loop."""

    def __init__(self, client: Client, clock: Clock | None = None) -> None:
        self.client = client
        self.clock = clock or SystemClock()
        self.buffers = Buffers(client)
        self.channels = Channels(client)
        self.long_lists: set[str] = set()
        """Listings that had more rows than a page when they were asked for last."""
        self._memories: dict[str, Memory] = {}

    def memory(self, pane_id: str) -> Memory:
        """What is remembered of a pane; ids are never used again in a tmux server's life.

        Of the panes that were not asked about for long, no more than `_MEMORIES` are remembered.
        """
        memory = self._memories.pop(pane_id, None) or Memory()
        self._memories[pane_id] = memory  # as the last one
        if len(self._memories) > _MEMORIES:
            idle = (
                id for id, each in self._memories.items() if not (each.run.locked() or each.typing.locked())
            )
            if (oldest := next(idle, pane_id)) != pane_id:
                del self._memories[oldest]
        return memory

    def is_starting(self, pane_id: str) -> bool:
        """Whether the pane is so young that its shell may still be on its way to the first prompt."""
        memory = self.memory(pane_id)
        return not memory.prompted and self.clock.now() - memory.created < _STARTING_SECONDS

    def remember(self, pane_id: str, *lines: str, ahead_of: int | None = None) -> list[TypedLine]:
        """Keep lines that are about to be typed, so that their echo is not taken for output.

        The last ones are kept, of at most `_TYPED_CHARACTERS` together.
        """
        typed = [TypedLine(line, now_ms(), ahead_of) for line in lines if len(line) <= _TYPED_CHARACTERS]
        kept = self.memory(pane_id).typed
        kept.extend(typed)
        while sum(len(line.text) for line in kept) > _TYPED_CHARACTERS:
            kept.popleft()
        return typed

    async def gone(self, server: str) -> Literal["pane_gone", "server_gone"]:
        """What is gone when a pane of `server` (`State.server`) does not answer any more."""
        try:
            found = await self.client.server()
        except (NoServer, ServerGone):
            return "server_gone"
        return "pane_gone" if f"{found.pid}:{found.start_time}" == server else "server_gone"

    def made(self, pane_id: str) -> None:
        """A pane has just been made. What is remembered of its id was another tmux server's."""
        self._memories.pop(pane_id, None)
        self.memory(pane_id).created = self.clock.now()

    def restarted(self, pane_id: str) -> None:
        """A pane's program has just been replaced."""
        memory = self.memory(pane_id)
        memory.created, memory.prompted, memory.untaken = self.clock.now(), False, ""
        memory.typed.clear()

    def patience(self, deadline: float) -> float:
        """How long tmux may take for a call that ends at `deadline`: hardly longer than the call itself."""
        return max(_LAST_SECONDS, min(TIMEOUT, deadline - self.clock.now()))

    async def look(
        self,
        pane_id: str,
        rows_back: int | None = 0,
        *,
        along: Sequence[Command] = (),
        timeout: float = TIMEOUT,
    ) -> Look:
        """Look at the screen and `rows_back` rows of history (None: all of it), in one process.

        The commands `along` run before the look. Raises `NotFound` when the pane does not exist.
        """
        nonce = new_nonce()
        printed = await self.client.call(
            command("has-session", "-t", target(pane_id)),
            *along,
            command("display-message", "-p", "-t", target(pane_id), STATE.format(nonce)),
            command(
                *("capture-pane", "-p", "-J", "-t", target(pane_id), "-S"),
                "-" if rows_back is None else Arg("-S", str(-rows_back)),
            ),
            timeout=timeout,
        )
        told, _, rest = printed.partition(f"{nonce}<")
        text = rest.partition(f"{nonce}>\n")[2]
        state = State.parse(STATE.parse_one(printed, nonce))
        self.memory(pane_id).seen = state
        return Look(state, text, told)
