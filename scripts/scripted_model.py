"""An endpoint on the loopback that answers as a model's would: an agent program can be run without one.

Whatever the agent says, the endpoint has it call the tools of a script, one after the other, and then stops.
It speaks three dialects, as far as agents need them: Anthropic's messages, chat completions, and Gemini's.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Json = dict[str, Any]


class Step(NamedTuple):
    """A tool to call, and its arguments, made of the texts of the results so far."""

    tool: str
    arguments: Callable[[Sequence[str]], Json]


class Heard(NamedTuple):
    """What a request tells: the names of the tools that the agent offers, and the results of its calls."""

    tools: list[str]
    results: list[str]


@dataclass
class Model:
    """The script, and what came of it."""

    script: Sequence[Step]
    address: str = ""
    tools: list[str] = field(default_factory=list)
    """The tools that the agent offered last."""
    results: list[str] = field(default_factory=list)
    """The texts of the results that the agent returned last."""
    problems: list[str] = field(default_factory=list)

    def next(self, heard: Heard) -> tuple[str, Json] | None:
        """The agent's name of the tool to call now, and its arguments; None when there is nothing to do."""
        if not heard.tools:
            return None  # a side question, such as for a title
        self.tools, self.results = heard
        if len(heard.results) >= len(self.script):
            return None
        step = self.script[len(heard.results)]
        # Some agents have a tool of the same name; ours has the name of its server before it.
        names = [name for name in heard.tools if name.endswith(step.tool) and name != step.tool]
        if len(names) != 1:
            self.problems.append(f"{step.tool} is offered as {names}")
            return None
        return names[0], step.arguments(heard.results)


@contextmanager
def serving(script: Sequence[Step]) -> Iterator[Model]:
    """Serve the script on a port of the loopback."""
    model = Model(script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer(200, b"")

        def do_GET(self) -> None:
            self._answer(404, b"{}")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
            dialect = next((each for ending, each in _DIALECTS.items() if ending in self.path), None)
            if dialect is None:
                self._answer(404, b"{}")
                return
            try:
                events = dialect(model, body)
            except Exception as error:  # noqa: BLE001  (a thread's own: it is reported with the run)
                model.problems.append(f"{self.path}: {type(error).__name__}: {error}")
                self._answer(400, b"{}")
                return
            self._answer(200, events.encode())

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "text/event-stream" if status == 200 else "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    model.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()


def _messages(model: Model, body: Json) -> str:
    """Anthropic's messages."""
    parts = [
        part
        for message in body["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "tool_result"
    ]
    tools = [tool["name"] for tool in body.get("tools", ())]
    call = model.next(Heard(tools, [_text(part["content"]) for part in parts]))
    block: Json = {"type": "text", "text": ""}
    delta: Json = {"type": "text_delta", "text": "Done."}
    if call is not None:
        name, arguments = call
        block = {"type": "tool_use", "id": f"toolu_{len(parts)}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    reason = {"stop_reason": "end_turn" if call is None else "tool_use", "stop_sequence": None}
    events: list[Json] = [
        {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": reason, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def _completions(model: Model, body: Json) -> str:
    """Chat completions."""
    results = [_text(each["content"]) for each in body["messages"] if each["role"] == "tool"]
    call = model.next(Heard([tool["function"]["name"] for tool in body.get("tools", ())], results))
    delta: Json = {"role": "assistant", "content": "Done."}
    if call is not None:
        name, arguments = call
        function = {"name": name, "arguments": json.dumps(arguments)}
        made = {"index": 0, "id": f"call_{len(results)}", "type": "function", "function": function}
        delta = {"role": "assistant", "content": None, "tool_calls": [made]}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": body["model"]}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    last = {"index": 0, "delta": {}, "finish_reason": "stop" if call is None else "tool_calls"}
    events: list[Json] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**head, "choices": [last], "usage": usage},
    ]
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


def _gemini(model: Model, body: Json) -> str:
    """Gemini's streamGenerateContent."""
    parts = [part for content in body["contents"] for part in content.get("parts", ())]
    answers = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
    tools = [each["name"] for tool in body.get("tools", ()) for each in tool.get("functionDeclarations", ())]
    call = model.next(Heard(tools, [str(answer.get("output", answer)) for answer in answers]))
    part: Json = {"text": "Done."}
    if call is not None:
        name, arguments = call
        part = {"functionCall": {"name": name, "args": arguments}, "thoughtSignature": "c2NyaXB0"}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return f"data: {json.dumps({'candidates': [candidate], 'usageMetadata': usage})}\r\n\r\n"


_DIALECTS: Mapping[str, Callable[[Model, Json], str]] = {
    "/messages": _messages,
    "/chat/completions": _completions,
    ":streamGenerateContent": _gemini,
}


def _text(content: str | list[Json]) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
