"""Typing and pasting into panes, in one tmux invocation that checks and acts.

Text goes through a paste buffer (`tmuxmcp.terminal.buffers`). A paste reaches one pane only, so what
every synchronised pane is to receive goes as hexadecimal keys, through standard input as well.

Callers hold the pane's typing lock (`Memory.typing`), which keeps strokes whole and in order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from tmuxmcp.errors import NoServer, NotFound, PaneSynchronized, ToolError
from tmuxmcp.terminal.foreground import computes, group_of
from tmuxmcp.terminal.panes import ANY, STATE, Discipline, State, Terminal, TypedLine
from tmuxmcp.tmux.client import TIMEOUT
from tmuxmcp.tmux.command import Arg, Command, command, target
from tmuxmcp.tmux.records import Template, new_nonce
from tmuxmcp.tmux.sinks import render

_TIMEOUT: Final = 15.0
"""Seconds for an invocation that carries a text of up to some megabytes."""


class Stroke(NamedTuple):
    """What is typed: first the keys `before`, then `text`, then `keys` (names of tmux keys)."""

    text: str = ""
    keys: Sequence[str] = ()
    before: Sequence[str] = ()
    bracketed: bool = False


class Typed(NamedTuple):
    """The pane as it was when the stroke was typed, and what the commands that went along printed."""

    state: State
    printed: str
    reached: tuple[str, ...]
    """The ids of the panes that received the stroke, the one that was named first."""
    wants_brackets: bool | None = None
    """Whether the pane's program had asked for bracketed paste; None before tmux 3.7, which does not tell."""


class Keyboard:
    """Types into panes. Every method raises `NotFound`, `PaneDead`, `PaneInMode` and `PaneInputOff`.

    After each of these errors nothing was typed. The commands `along` run after the check that the
    pane exists, and before anything is typed.
    """

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    async def type(
        self, pane_id: str, stroke: Stroke, *, along: Sequence[Command] = (), timeout: float = _TIMEOUT
    ) -> Typed:
        """Type a stroke into this one pane. Raises `PaneSynchronized` when others would receive it too."""
        typed = await self._strike(pane_id, stroke, _ALONE, along, timeout=timeout)
        if typed.state.synchronized:
            raise PaneSynchronized(
                f"Pane {pane_id} is synchronised with other panes of {typed.state.window_id}, which would "
                "receive the input too, so nothing was typed. Turn it off with set_synchronize_panes.",
                pane_id=pane_id,
                window_id=typed.state.window_id,
            )
        return typed

    async def type_if_still(self, state: State, stroke: Stroke, *, timeout: float = _TIMEOUT) -> State | None:
        """Type a stroke into this one pane if it is still as in `state`; None when it is not, or is gone.

        Its program has to be a shell: that is a name that a format can hold.
        """
        nonce = new_nonce()
        told = [f"display-message -p {nonce}"]
        try:
            typed = await self._strike(state.pane_id, stroke, _still(state), (), told=told, timeout=timeout)
        except (NotFound, NoServer):
            return None
        # Only tmux itself knows what its condition came to: programs come and go meanwhile.
        return typed.state if nonce in typed.printed else None

    async def type_everywhere(self, pane_id: str, stroke: Stroke, *, along: Sequence[Command] = ()) -> Typed:
        """Type a stroke into this pane, and into every pane that is synchronised with it.

        Text for synchronised panes costs a second invocation.
        """
        with self._remembered(pane_id, stroke.text) as shown:
            typed = await self._strike(pane_id, stroke, _ALONE if stroke.text else _ACCEPTS, along)
            if typed.state.synchronized and stroke.text:
                again = await self._strike_all(pane_id, stroke)
                typed = typed._replace(state=again.state, reached=again.reached)
        for other in typed.reached[1:]:
            self._terminal.remember(other, *_lines(stroke.text))
        keys = {key.lower() for key in stroke.keys}
        self._expect(
            typed, stroke.text, *shown, entered=not _ENTER.isdisjoint(keys), interrupted="c-c" in keys
        )
        return typed

    async def paste(
        self, pane_id: str, text: str, *, bracketed: bool, enter: bool, along: Sequence[Command] = ()
    ) -> Typed:
        """Paste a text as `pasted` makes it, and Enter after it; only this pane receives either.

        Brackets are put around the text if `bracketed` and the program asked for them.
        """
        stroke = Stroke(pasted(text, bracketed=bracketed), bracketed=bracketed)
        with self._remembered(pane_id, text) as shown:
            typed = await self._strike(pane_id, stroke, _ACCEPTS, along, enter=enter)
        self._expect(typed, text, *shown, entered=enter)
        return typed._replace(reached=(pane_id,))

    async def _strike(
        self,
        pane_id: str,
        stroke: Stroke,
        condition: str,
        along: Sequence[Command],
        *,
        enter: bool = False,
        told: Sequence[str] = (),
        timeout: float = _TIMEOUT,
    ) -> Typed:
        """Type if the pane meets the condition, run the commands `told` then, and tell how it was."""
        client = self._terminal.client
        # From 3.7 on, a paste without -S turns control characters into visible text.
        raw = "-S " if (stroke.text or enter) and await client.version() >= (3, 7) else ""
        question = _Question(pane_id)
        before, after = _keys(pane_id, stroke.before), _keys(pane_id, stroke.keys)
        after += _enter(pane_id, raw) if enter else []
        after += told

        async def strike(load: Sequence[Command], paste: Sequence[str], otherwise: Sequence[str]) -> str:
            return await client.call(
                command("has-session", "-t", target(pane_id)),
                *load,
                *along,
                *question.commands,
                _if(pane_id, condition, [*before, *paste, *after], otherwise),
                stdin=stroke.text.encode(),
                timeout=timeout,
            )

        if not stroke.text:
            timeout = min(timeout, TIMEOUT)  # what carries no text takes no longer than any other call
            return question.answer(await strike((), (), ()))
        async with self._terminal.buffers.lend() as buffer:
            brackets = "-p " if stroke.bracketed else ""
            printed = await strike(
                [command("load-buffer", "-b", Arg("-b", buffer), "-")],
                [f"paste-buffer {brackets}{raw}-d -r -b {buffer} -t {pane_id}"],
                [f"delete-buffer -b {buffer}"],
            )
        # A refusal is told out here: tmux has deleted the buffer already.
        return question.answer(printed)

    async def _strike_all(self, pane_id: str, stroke: Stroke) -> Typed:
        """Type by send-keys alone, the only command that reaches every synchronised pane."""
        question = _Question(pane_id)
        script = [
            *_keys(pane_id, stroke.before),
            *_hexadecimal(pane_id, stroke.text.encode()),
            *_keys(pane_id, stroke.keys),
        ]
        printed = await self._terminal.client.call(
            command("has-session", "-t", target(pane_id)),
            *question.commands,
            _if(pane_id, _ACCEPTS, ["source-file -"]),
            stdin="".join(f"{line}\n" for line in script).encode(),
            timeout=_TIMEOUT,
        )
        return question.answer(printed)

    def _expect(
        self,
        typed: Typed,
        text: str,
        lines: Sequence[TypedLine],
        mode: Discipline | None,
        *,
        entered: bool,
        interrupted: bool = False,
    ) -> None:
        """Expect the panes not to stay as they were, and to show the `lines` as their mode before has it."""
        self._terminal.memory(typed.state.pane_id).seen = typed.state
        if mode and not (mode.echo or mode.canonical or mode.edits or typed.state.alternate):
            self._forget(typed.state.pane_id, lines)  # single keys were read, and are not shown
        elif all(line.ahead_of is None for line in lines):
            self._ahead(typed.state, lines)
        for pane_id in typed.reached:
            self._terminal.memory(pane_id).left = None
            if interrupted and (left_open := self._terminal.memory(pane_id).open):
                self._terminal.memory(pane_id).open = left_open._replace(interrupted=True)
        if entered or _LINE_END.search(text):
            memory = self._terminal.memory(typed.state.pane_id)
            memory.entered = typed.state.row
            if typed.state.cursor_x:  # At a prompt, most likely: so what runs next is not its shell's start.
                memory.created = -math.inf

    @contextmanager
    def _remembered(self, pane_id: str, text: str) -> Iterator[tuple[Sequence[TypedLine], Discipline | None]]:
        """Keep the lines that are typed, so that their echo is not taken for output; unless it fails.

        In the mode of whole lines the terminal itself echoes them at once, and a line editor once more when
        its prompt comes; at a password prompt neither does.
        """
        seen = self._terminal.memory(pane_id).seen
        mode = Discipline.of(seen.tty) if seen else None
        hidden = mode is not None and mode.canonical and not mode.echo
        lines = self._terminal.remember(pane_id, *([] if hidden else _lines(text)))
        if seen is not None:
            lines += self._ahead(seen, lines)
        try:
            yield lines, mode
        except ToolError:
            self._forget(pane_id, lines)
            raise

    def _forget(self, pane_id: str, lines: Sequence[TypedLine]) -> None:
        for line in lines:
            with suppress(ValueError):
                self._terminal.memory(pane_id).typed.remove(line)

    def _ahead(self, state: State, lines: Sequence[TypedLine]) -> list[TypedLine]:
        """Expect the lines once more, behind a prompt, if the terminal is in the mode of whole lines."""
        if Discipline.of(state.tty) != _WHOLE_LINES:
            return []
        group = group_of(state.pid)
        busy = self._terminal.is_starting(state.pane_id) or computes(state.pid)
        if group in (0, state.pid) and busy:
            group = ANY
        return self._terminal.remember(state.pane_id, *(line.text for line in lines), ahead_of=group)


class _Question:
    """Asks for a pane's state, and for what decides which panes its input reaches."""

    def __init__(self, pane_id: str) -> None:
        self._pane_id = pane_id
        self._state, self._window = new_nonce(), new_nonce()

    @property
    def commands(self) -> tuple[Command, Command]:
        return (
            STATE.ask(command("display-message", "-t", target(self._pane_id)), self._state),
            _WINDOW.ask(command("list-panes", "-t", target(self._pane_id)), self._window),
        )

    def answer(self, printed: str) -> Typed:
        """Raises what `State.check_accepts_input` raises."""
        state = State.parse(STATE.parse_one(printed, self._state))
        state.check_accepts_input()
        rows = _WINDOW.parse(printed, self._window)
        also = [row["pane_id"] for row in rows if state.synchronized and row["receives"] == "1"]
        flag = next(row["brackets"] for row in rows if row["pane_id"] == self._pane_id)
        return Typed(
            state,
            printed,
            (self._pane_id, *(id for id in also if id != self._pane_id)),
            flag == "1" if flag else None,
        )


_REFUSES: Final = "#{?pane_in_mode,1,}#{?pane_dead,1,}#{?pane_input_off,1,}"
_ACCEPTS: Final = f"#{{==:{_REFUSES},}}"
_ALONE: Final = f"#{{==:{_REFUSES}#{{?pane_synchronized,1,}},}}"
"""What a pane is like that accepts input, and one whose input no other pane receives."""

# tmux copies a key to the synchronised panes that accept input and that a zoomed pane does not hide.
_HIDDEN: Final = "#{?window_zoomed_flag,#{?pane_active,,1},}"
_WINDOW: Final = Template(
    pane_id="#{pane_id}",
    receives=f"#{{==:{_REFUSES}{_HIDDEN}#{{?pane_synchronized,,1}},}}",
    brackets="#{bracket_paste_flag}",
)

_WHOLE_LINES: Final = Discipline(canonical=True, echo=True)

# Each byte is an argument of three characters, of which tmux takes 1000 in one command.
_HEX_BYTES: Final = 500


def _lines(text: str) -> list[str]:
    return [line for line in re.split(r"[\r\n]+", text) if line.strip()]


_STILL: Final = ("server", "pid", "program", "width", "history_size", "cursor_x", "cursor_y", "alternate")
"""What no output and no input leaves as it is."""


def _still(state: State) -> str:
    """True of a pane that other input does not go along with, and in which nothing has happened since."""
    formats = "|".join(STATE.fields[name] for name in _STILL)
    values = "|".join(str(int(v) if isinstance(v := getattr(state, name), bool) else v) for name in _STILL)
    return f"#{{&&:{_ALONE},#{{==:{formats},{values}}}}}"


def _if(pane_id: str, condition: str, act: Sequence[str], otherwise: Sequence[str] = ()) -> Command:
    return command("if-shell", "-F", "-t", target(pane_id), condition, " ; ".join(act), " ; ".join(otherwise))


def _keys(pane_id: str, keys: Sequence[str]) -> list[str]:
    return [f"send-keys -t {pane_id} -- {' '.join(map(_word, keys))}"] if keys else []


def _word(key: str) -> str:
    """A key name as one word of tmux's own command language."""
    key = render("send-keys", "KEY", key)
    return f'"{key}"' if "'" in key else f"'{key}'"


def _enter(pane_id: str, raw: str) -> list[str]:
    """Enter for this pane alone, also when it is synchronised: a paste of what Enter sends."""
    buffer = f"tmuxmcp-enter-{new_nonce()}"
    return [f'set-buffer -b {buffer} "\\r"', f"paste-buffer {raw}-d -r -b {buffer} -t {pane_id}"]


def _hexadecimal(pane_id: str, data: bytes) -> Iterator[str]:
    for at in range(0, len(data), _HEX_BYTES):
        yield f"send-keys -t {pane_id} -H {data[at : at + _HEX_BYTES].hex(' ')}"


_ENTER: Final = frozenset({"enter", "kpenter", "c-m", "c-j"})
_LINE_END: Final = re.compile(r"\r\n|\n")
_PASTE_END: Final = re.compile(r"(?:\x1b\[|\x9b)(?=0*201(?:[;:][0-?]*)?~)")
"""The beginning of the sequence that ends a bracketed paste, in seven and in eight bits."""


def pasted(text: str, *, bracketed: bool) -> str:
    """What a terminal makes of a text that is pasted: line ends become what Enter sends, a carriage return.

    With `bracketed` the text cannot end its own brackets: the escape character of a sequence that
    would becomes the symbol for escape, U+241B.
    """
    text = _LINE_END.sub("\r", text)
    return _PASTE_END.sub("\u241b[", text) if bracketed else text
