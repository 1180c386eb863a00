"""What the SDK asks, answered from the frozen surface: tools/list, tools/call and one resource.

A failure that a caller can mend is a result with `isError` and one compact JSON text
``{code, message, details}``. A name that is not on the surface is no call: it is the protocol's
-32602. Anything else is a defect of ours; it is told without the values it happened on, which may be
a command or a secret.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import msgspec
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
)

from tmuxmcp import __version__, limits, manifest, opening, stderr
from tmuxmcp.arguments import Parameters, output_schema
from tmuxmcp.audit import Audit, Entry
from tmuxmcp.errors import InternalError, InvalidArgument, ToolError
from tmuxmcp.frames import compact
from tmuxmcp.settings import Settings
from tmuxmcp.startup import Found
from tmuxmcp.surface import Surface, Tool
from tmuxmcp.terminal.clock import Clock
from tmuxmcp.terminal.panes import Terminal
from tmuxmcp.tools import Call, Function, Progress
from tmuxmcp.transport import Inbound, Outbound

CAPABILITIES = "tmux://capabilities"
META = "io.github.tmuxmcp/"
"""The prefix of our keys in a tool's `_meta`."""
CALLS = 64
"""Tool calls at work at once; more wait for their turn, in order of arrival. Nothing else waits for calls."""

JSON = "application/json"
FROZEN = CacheHint(ttl_ms=3_600_000)
"""What holds for this process's life; another process may offer something else."""

Context = ServerRequestContext[Any, Any]
Answer = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Service:
    """The parts that answer a client's requests."""

    terminal: Terminal
    settings: Settings
    functions: Mapping[str, Function]
    audit: Audit
    instructions: str
    surface: Surface
    """The tools that can be called. It holds for the process's life."""
    advertised: Callable[[], Awaitable[Surface]]
    """The same with the hints that the look at the socket is evidence for. A silent tmux server can hold up
    that look, so nothing but tools/list and what asks for `found` waits for it."""
    found: Callable[[], Awaitable[Found]]
    """What that look found."""
    capabilities: Callable[[], Awaitable[Mapping[str, Any]]]
    """The document behind tmux://capabilities, as of now."""


def build(service: Service) -> Server[Any]:
    """The SDK's server for a service."""
    tools = Tools(service)
    server: Server[Any] = Server(
        "tmuxmcp",
        version=__version__,
        title="tmuxmcp: a terminal that a person can watch",
        instructions=service.instructions,
        cache_hints={
            "tools/list": FROZEN,
            "resources/list": FROZEN,
            "resources/templates/list": FROZEN,
            "resources/read": CacheHint(),
        },
    )

    async def list_resources(ctx: Context, params: PaginatedRequestParams) -> Answer:
        _refuse_cursor(params)
        about = "The socket, the tmux server and every tool offered, with what each can do, as JSON."
        resource = {
            "uri": CAPABILITIES,
            "name": "capabilities",
            "title": "Capabilities",
            "description": about,
        }
        return _complete(resources=[{**resource, "mimeType": JSON}])

    async def list_templates(ctx: Context, params: PaginatedRequestParams) -> Answer:
        _refuse_cursor(params)
        return _complete(resourceTemplates=[])

    async def read_resource(ctx: Context, params: ReadResourceRequestParams) -> Answer:
        if params.uri != CAPABILITIES:
            raise MCPError(INVALID_PARAMS, f"There is no such resource. The only one is {CAPABILITIES}.")
        try:
            document = await service.capabilities()
        except ToolError as error:
            raise MCPError(INTERNAL_ERROR, error.message) from None
        except Exception as error:  # noqa: BLE001  (the SDK would put its text on the wire)
            raise MCPError(INTERNAL_ERROR, _report(error, CAPABILITIES)) from None
        return _complete(contents=[{"uri": CAPABILITIES, "mimeType": JSON, "text": compact(document)}])

    server.add_request_handler("tools/list", PaginatedRequestParams, tools.list)
    server.add_request_handler("tools/call", CallToolRequestParams, tools.call)
    server.add_request_handler("resources/list", PaginatedRequestParams, list_resources)
    server.add_request_handler("resources/templates/list", PaginatedRequestParams, list_templates)
    server.add_request_handler("resources/read", ReadResourceRequestParams, read_resource)
    return server


async def serve(service: Service, read: Inbound, write: Outbound) -> None:
    """Serve one connection on the transport's streams until it ends."""
    logging.basicConfig(handlers=[Log(logging.WARNING)], level=logging.WARNING, force=True)
    server = build(service)
    options = server.create_initialization_options()
    await opening.serve(lambda read, write: server.run(read, write, options), read, write)


class Tools:
    """Lists and calls the tools of a service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._places = anyio.Semaphore(CALLS, fast_acquire=True)
        self._parameters: dict[str, Parameters[Any]] = {}
        self._listed: Answer | None = None

    async def list(self, ctx: Context, params: PaginatedRequestParams) -> Answer:
        """Answer tools/list: every tool of the surface, on one page."""
        _refuse_cursor(params)
        if self._listed is None:
            surface = await self._service.advertised()
            self._listed = _complete(tools=[self._describe(tool) for tool in surface.tools.values()])
        return self._listed

    def _describe(self, tool: Tool) -> Answer:
        row, hints, function = tool.row, tool.hints, self._service.functions[tool.row.name]
        return {
            "name": row.name,
            "title": row.title,
            "description": manifest.description(row, function.doc),
            "inputSchema": self._parameters_of(tool).schema,
            "outputSchema": output_schema(function.result),
            "annotations": {
                "readOnlyHint": hints.read_only,
                "destructiveHint": hints.destructive,
                "idempotentHint": hints.idempotent,
                "openWorldHint": hints.open_world,
            },
            "_meta": {
                META + "toolset": row.toolset,
                META + "process-reach": row.reach,
                META + "tmux-effect": list(row.effect),
                META + "output-classes": list(row.output),
                META + "may-expose-secrets": row.may_expose_secrets,
                META + "may-return-untrusted-content": row.may_return_untrusted_content,
            },
        }

    def _parameters_of(self, tool: Tool) -> Parameters[Any]:
        row = tool.row
        if row.name not in self._parameters:
            choices = {"operations.tool": row.nested} if "operations.tool" in row.sinks else {}
            self._parameters[row.name] = Parameters(self._service.functions[row.name].arguments, choices)
        return self._parameters[row.name]

    async def call(self, ctx: Context, params: CallToolRequestParams) -> Answer:
        """Answer tools/call, and have it recorded once, however it ends."""
        service, arrived = self._service, self._service.terminal.clock.now()
        surface = service.surface
        tool = surface.tools.get(params.name)
        try:
            with service.audit.call(
                params.name,
                params.arguments,
                row=tool.row if tool else surface.manifest.get(params.name),
                grounds=tool.grounds if tool else None,
                client=_client(ctx),
                request_id="" if ctx.request_id is None else ctx.request_id,
            ) as entry:
                if tool is None:
                    entry.outcome = "not_enabled" if params.name in surface.manifest else "unknown_tool"
                    raise _not_offered(surface, params.name)
                async with self._places:
                    progress = _Progress(ctx, service.terminal.clock)
                    result = await self._perform(self._call(tool, arrived, progress, entry), params.arguments)
                entry.outcome = result.get("outcome", entry.outcome)
        except ToolError as error:
            said = {"code": error.code, "message": error.message, "details": error.details}
            return _complete(content=[{"type": "text", "text": compact(said)}], isError=True)
        content = [{"type": "text", "text": compact(result)}]
        return _complete(content=content, structuredContent=result, isError=False)

    def _call(self, tool: Tool, arrived: float, progress: Progress, entry: Entry) -> Call:
        service = self._service

        async def nested(index: int, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
            if name not in tool.row.nested:
                accepted = list(tool.row.nested)
                raise InvalidArgument(f"{tool.row.name} cannot call this tool.", accepted=accepted)
            inner = service.surface.tools[name]
            with entry.child(index, name, arguments, inner.row) as child:
                return await self._perform(replace(call, tool=inner, touched=child.targets), arguments)

        call = Call(
            terminal=service.terminal,
            settings=service.settings,
            found=service.found,
            tool=tool,
            arrived=arrived,
            progress=progress,
            nested=nested,
            touched=entry.targets,
        )
        return call

    async def _perform(self, call: Call, arguments: object) -> dict[str, Any]:
        """Run one tool and return its result as JSON values. Raises `ToolError` and nothing else."""
        function = self._service.functions[call.tool.row.name].function
        try:
            decoded = self._parameters_of(call.tool).decode(arguments)
            result: dict[str, Any] = msgspec.to_builtins(await function(call, decoded))
            return result
        except ToolError:
            raise
        except Exception as error:  # noqa: BLE001  (a defect of ours, told without the values it happened on)
            if (inner := _only(error)) is not None:
                raise inner from None
            raise InternalError(_report(error, call.tool.row.name)) from None


def _complete(**members: Any) -> Answer:
    """A result as 2026-07-28 wants it; for earlier versions the SDK leaves out what they do not know."""
    return {**members, "resultType": "complete"}


def _not_offered(surface: Surface, name: str) -> MCPError:
    row = surface.manifest.get(name)
    return MCPError(
        INVALID_PARAMS, surface.explain(name), {"tool": name, "toolset": row.toolset} if row else None
    )


def _refuse_cursor(params: PaginatedRequestParams) -> None:
    if params.cursor is not None:
        raise MCPError(INVALID_PARAMS, "There is one page: this cursor is not ours. Leave it out.")


def _client(ctx: Context) -> dict[str, str]:
    client = ctx.session.client_params
    return {"name": client.client_info.name, "version": client.client_info.version} if client else {}


class _Progress:
    """Passes a call's progress on to its client, at most once in `limits.PROGRESS_SECONDS`."""

    def __init__(self, ctx: Context, clock: Clock) -> None:
        self._session = ctx.session
        self._clock = clock
        self._next = 0.0

    async def __call__(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self._clock.now() >= self._next:
            self._next = self._clock.now() + limits.PROGRESS_SECONDS
            await self._session.report_progress(progress, total, message)


def _only(error: BaseException) -> ToolError | None:
    """The `ToolError` that task groups have wrapped, if there is nothing else in them."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error if isinstance(error, ToolError) else None


def _report(error: BaseException, where: str) -> str:
    """Write where a defect showed to standard error, and return what the client is told."""
    places = [f"{Path(at.filename).name}:{at.lineno}" for at in traceback.extract_tb(error.__traceback__)]
    kind = type(error).__name__
    stderr.write_line(f"tmuxmcp: defect in {where}: {kind} at {' > '.join(places)}")
    return (
        f"{where} failed by a defect of tmuxmcp ({kind} at {places[-1]}). What it had done by then is done: "
        "look at the state before you try again, and please report the line that standard error got."
    )


class Log(logging.Handler):
    """The SDK's warnings on standard error, without tracebacks: their messages can quote a request."""

    def emit(self, record: logging.LogRecord) -> None:
        kind = f" ({record.exc_info[0].__name__})" if record.exc_info and record.exc_info[0] else ""
        stderr.write_line(f"{record.name}: {record.getMessage()}{kind}")
