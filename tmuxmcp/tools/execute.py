"""The execute tools: they start programs in panes, and drive them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tmuxmcp import limits
from tmuxmcp.errors import InvalidArgument, TooLarge, ToolError
from tmuxmcp.terminal import rows, spawn
from tmuxmcp.terminal.cursor import Mark
from tmuxmcp.terminal.keyboard import Keyboard, Stroke, pasted
from tmuxmcp.tmux.command import Arg, command, target
from tmuxmcp.tmux.names import check_key
from tmuxmcp.tmux.sinks import MAX_SIZE
from tmuxmcp.tools import Call
from tmuxmcp.tools.parameters import Arguments, InSession, OfPane, OfWindow
from tmuxmcp.tools.run import run_shell_command as run_shell_command

StartDirectory = (
    Annotated[str, Meta(description="absolute or ~; default: where tmuxmcp was started")] | UnsetType
)
Cells = Annotated[int, Meta(ge=1, le=MAX_SIZE)]


class CreateSession(Arguments, kw_only=True):
    name: str | UnsetType = UNSET
    window_name: str | UnsetType = UNSET
    start_directory: StartDirectory = UNSET
    width: Cells = limits.SESSION_WIDTH
    height: Cells = limits.SESSION_HEIGHT


class CreatedSession(msgspec.Struct, frozen=True, kw_only=True):
    """A new session. Sizes are in cells."""

    session_id: str
    name: str
    window_id: str
    pane_id: str
    width: int
    height: int
    path: str
    attach_command: str
    """What a person types to watch."""
    cursor: str


async def create_session(call: Call, args: CreateSession) -> CreatedSession:
    """A new detached session with one window and pane; starts the tmux server if none runs. Tell the
    user `attach_command`. Then use run_shell_command on `pane_id`."""
    made = await spawn.new_session(
        call.terminal,
        _given(args.name),
        _given(args.window_name),
        _given(args.start_directory),
        args.width,
        args.height,
    )
    call.touched.extend([made.session_id, made.window_id, made.pane_id])
    return CreatedSession(
        session_id=made.session_id,
        name=made.session,
        window_id=made.window_id,
        pane_id=made.pane_id,
        width=made.width,
        height=made.height,
        path=made.path,
        attach_command=call.terminal.client.socket.attach_command(call.settings.tmux_bin),
        cursor=made.cursor.encode(),
    )


class CreatedPane(msgspec.Struct, frozen=True, kw_only=True):
    """A new pane. Sizes are the pane's, in cells."""

    session_id: str
    window_id: str
    pane_id: str
    width: int
    height: int
    path: str
    cursor: str


class CreateWindow(InSession, kw_only=True):
    name: str | UnsetType = UNSET
    start_directory: StartDirectory = UNSET
    select: bool = False


async def create_window(call: Call, args: CreateWindow) -> CreatedPane:
    """A new window in a session; it becomes the current one only with `select`."""
    made = await spawn.new_window(
        call.terminal, args.session, _given(args.name), _given(args.start_directory), select=args.select
    )
    return _created(call, made)


class SplitWindow(OfPane, kw_only=True):
    direction: spawn.Direction = "below"
    size: Annotated[int, Meta(ge=1, le=MAX_SIZE, description="rows or columns")] | UnsetType = UNSET
    percent: Annotated[int, Meta(ge=1, le=99)] | UnsetType = UNSET
    start_directory: StartDirectory = UNSET
    select: bool = False


async def split_window(call: Call, args: SplitWindow) -> CreatedPane:
    """A new pane beside `pane_id`, which keeps the focus unless `select`. `size` or `percent` is for
    the new pane (default: half)."""
    if args.size is not UNSET and args.percent is not UNSET:
        raise InvalidArgument("Both size and percent are given. Give one of them.")
    size = None
    if args.size is not UNSET:
        size = str(args.size)
    elif args.percent is not UNSET:
        size = f"{args.percent}%"
    made = await spawn.split(
        call.terminal, args.pane_id, args.direction, size, _given(args.start_directory), select=args.select
    )
    return _created(call, made)


def _created(call: Call, made: spawn.Made) -> CreatedPane:
    call.touched.extend([made.session_id, made.window_id, made.pane_id])
    return CreatedPane(
        session_id=made.session_id,
        window_id=made.window_id,
        pane_id=made.pane_id,
        width=made.pane_width,
        height=made.pane_height,
        path=made.path,
        cursor=made.cursor.encode(),
    )


class RespawnPane(OfPane, kw_only=True):
    command: Annotated[str, Meta(min_length=1, description="default: what it ran before")] | UnsetType = UNSET
    start_directory: StartDirectory = UNSET
    kill: Annotated[bool, Meta(description="also while its program runs")] = False


class RespawnedPane(rows.Pane, frozen=True, kw_only=True, omit_defaults=True):
    """The pane's row and the beginning of its new output. What runs in it is not known yet."""

    cursor: str


async def respawn_pane(call: Call, args: RespawnPane) -> RespawnedPane:
    """Use it to revive a dead pane, or to replace a stuck program with kill=true. The pane closes when
    the command ends; to keep a shell, use run_shell_command."""
    call.touched.append(args.pane_id)
    restarted = await spawn.respawn(
        call.terminal, args.pane_id, _given(args.command), _given(args.start_directory), kill=args.kill
    )
    return RespawnedPane(**msgspec.structs.asdict(restarted.pane), cursor=restarted.cursor.encode())


Key = Annotated[str, Meta(min_length=1, max_length=32)]


class SendKeys(OfPane, kw_only=True):
    text: Annotated[str, Meta(description="literal, up to 64 kB")] | UnsetType = UNSET
    keys: (
        Annotated[list[Key], Meta(max_length=limits.KEYS, description="tmux names: C-c, Up, F5, M-x")]
        | UnsetType
    ) = UNSET
    enter: bool = False


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """What became of input. `pane_ids` are the panes that received it."""

    pane_ids: list[str]
    cursor: str


async def send_keys(call: Call, args: SendKeys) -> Sent:
    """Type `text`, then `keys`, then Enter if `enter`. For programs that wait for input (prompts,
    REPLs, editors); to run a command use run_shell_command. Pass `cursor` to wait_for_text."""
    call.touched.append(args.pane_id)
    stroke = _stroke(args)
    mark = Mark(args.pane_id)
    async with call.terminal.memory(args.pane_id).typing:
        typed = await Keyboard(call.terminal).type_everywhere(args.pane_id, stroke, along=mark.commands)
    call.touched.extend(typed.reached[1:])
    return Sent(pane_ids=list(typed.reached), cursor=mark.parse(typed.printed)[0].encode())


def _stroke(given: SendKeys) -> Stroke:
    """What one operation types. Raises `InvalidArgument` and `TooLarge`."""
    text = given.text or ""
    keys = [_key(number, key) for number, key in enumerate(given.keys or ())]
    if not (text or keys or given.enter):
        raise InvalidArgument("There is nothing to send. Give at least one of text, keys and enter=true.")
    if (size := len(text.encode())) > limits.SEND_KEYS_TEXT_BYTES:
        raise TooLarge(
            f"The text has {size} bytes, and send_keys takes {limits.SEND_KEYS_TEXT_BYTES}. Use paste_text.",
            limit=limits.SEND_KEYS_TEXT_BYTES,
        )
    return Stroke(text, [*keys, "Enter"] if given.enter else keys)


def _key(number: int, key: str) -> str:
    try:
        return check_key(key)
    except InvalidArgument as error:
        raise InvalidArgument(f"`keys[{number}]`: {error.message}", field=f"keys[{number}]") from None


class Operation(SendKeys, kw_only=True):
    delay_ms: Annotated[int, Meta(ge=0, le=limits.DELAY_MS, description="pause before it")] = 0


class SendKeysBatch(Arguments, kw_only=True):
    operations: Annotated[list[Operation], Meta(min_length=1, max_length=limits.SEND_OPERATIONS)]
    on_error: Literal["stop", "continue"] = "stop"


class Operated(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one operation."""

    pane_ids: Sequence[str] = ()
    error: dict[str, Any] | UnsetType = UNSET


class SentBatch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a batch. `cursor` is for the first pane, from before its first input."""

    results: list[Operated]
    stopped_at: int | UnsetType = UNSET
    cursor: str = ""


async def send_keys_batch(call: Call, args: SendKeysBatch) -> SentBatch:
    """Several send_keys in order, with pauses, in one call. The form of all is checked before the
    first one is sent; a pane that is gone or busy stops it there."""
    for index, operation in enumerate(args.operations):
        try:
            _stroke(operation)
        except ToolError as error:
            message = f"Nothing was sent, because of operations[{index}]: {error.message}"
            raise type(error)(message, **error.details, index=index) from None
    delay = sum(operation.delay_ms for operation in args.operations) / 1000
    if delay > call.settings.wait_max_seconds:
        raise InvalidArgument(
            f"The delays together are {delay:g} seconds, and a call may wait "
            f"{call.settings.wait_max_seconds:g}. Send the operations in several calls."
        )
    results: list[Operated] = []
    cursor = ""
    for index, operation in enumerate(args.operations):
        await call.terminal.clock.sleep(operation.delay_ms / 1000)
        arguments = msgspec.to_builtins(operation)
        del arguments["delay_ms"]
        try:
            sent = await call.nested(index, "send_keys", arguments)
        except ToolError as error:
            said = {"code": error.code, "message": error.message, "details": error.details}
            results.append(Operated(error=said))
            if args.on_error == "stop":
                return SentBatch(results=results, stopped_at=index, cursor=cursor)
            continue
        results.append(Operated(pane_ids=sent["pane_ids"]))
        if operation.pane_id == args.operations[0].pane_id:
            cursor = cursor or sent["cursor"]
    return SentBatch(results=results, cursor=cursor)


class PasteText(OfPane, kw_only=True):
    text: Annotated[str, Meta(description="up to 4 MB")]
    bracketed: Annotated[bool, Meta(description="mark it as a paste for programs that asked")] = True
    enter: bool = False


class Pasted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was pasted. `bytes` counts the text as it was sent, without brackets and Enter."""

    pane_ids: list[str]
    bytes: int
    program_asked: bool | UnsetType = UNSET
    """Whether the program had asked for bracketed paste; absent before tmux 3.7, which does not tell."""
    cursor: str


async def paste_text(call: Call, args: PasteText) -> Pasted:
    """Paste text as a terminal does: line ends arrive as Enter, and programs that asked for it are told
    that it is a paste, so that a shell's prompt keeps all lines until Enter. Reaches only `pane_id`,
    also when panes are synchronized. A terminal in line mode cuts lines at 4096 bytes (Linux)."""
    call.touched.append(args.pane_id)
    if (size := len(args.text.encode())) > limits.PASTE_BYTES:
        raise TooLarge(
            f"The text has {size} bytes, and paste_text takes {limits.PASTE_BYTES}. Write it to a file, or "
            "paste it in parts.",
            limit=limits.PASTE_BYTES,
        )
    mark = Mark(args.pane_id)
    async with call.terminal.memory(args.pane_id).typing:
        typed = await Keyboard(call.terminal).paste(
            args.pane_id, args.text, bracketed=args.bracketed, enter=args.enter, along=mark.commands
        )
    return Pasted(
        pane_ids=list(typed.reached),
        bytes=len(pasted(args.text, bracketed=args.bracketed).encode()),
        program_asked=UNSET if typed.wants_brackets is None else typed.wants_brackets,
        cursor=mark.parse(typed.printed)[0].encode(),
    )


class SetSynchronizePanes(OfWindow, kw_only=True):
    enabled: bool


async def set_synchronize_panes(call: Call, args: SetSynchronizePanes) -> rows.Window:
    """run_shell_command refuses while it is on."""
    call.touched.append(args.window_id)
    window = target(args.window_id)
    question = rows.ask(rows.WINDOW, args.window_id)
    printed = await call.terminal.client.call(
        command("has-session", "-t", window),
        # Panes can have a value of their own, which would stay.
        command("set-option", "-w", "-U", "-t", window, "synchronize-panes"),
        command(
            "set-option",
            "-w",
            "-t",
            window,
            "synchronize-panes",
            Arg("FLAG", "on" if args.enabled else "off"),
        ),
        question.command,
    )
    return question.answer(printed)


def _given(value: str | UnsetType) -> str | None:
    return None if value is UNSET else value
