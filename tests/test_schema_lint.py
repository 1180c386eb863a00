"""Schemas and names that every client takes: what some of them refuse, drop or misread is not sent.

Clients have been seen to refuse a whole server for one schema with `$ref`, `anyOf` or a list of types, for
an array without `items`, and to leave out tools with long names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.inventory import ALL
from tests.offer import EVERYTHING, Offer
from tmuxmcp.settings import Settings

INPUT_WORDS = {
    "string": {"type", "description", "default", "enum", "pattern", "minLength", "maxLength"},
    "integer": {"type", "description", "default", "enum", "minimum", "maximum"},
    "number": {
        *("type", "description", "default", "minimum", "maximum"),
        *("exclusiveMinimum", "exclusiveMaximum"),
    },
    "boolean": {"type", "description", "default"},
    "array": {"type", "description", "items", "minItems", "maxItems"},
    "object": {"type", "description", "properties", "required", "additionalProperties"},
}
"""What a schema of each type may say."""
NAME = re.compile("[a-z][a-z0-9_]*")
LONGEST_NAME = 60 - len("tmuxmcp") - len("mcp____")
"""Some clients leave out a tool whose name is longer than 60 characters with the server's before it."""


def faults(schema: Any, where: str, *, result: bool = False) -> Iterator[str]:
    """What some client would not take of a schema. That of a result need not describe inner values."""
    if not isinstance(schema, Mapping):
        yield f"{where}: {schema!r} is no object"
        return
    if result and schema == {} and where.endswith("[]"):
        return
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in INPUT_WORDS:
        yield f"{where}: its type is {kind!r}, not one name"
        return
    for word in schema.keys() - INPUT_WORDS[kind]:
        yield f"{where}: {word} does not belong to {kind}"
    if "enum" in schema and not (schema["enum"] and len(set(schema["enum"])) == len(schema["enum"])):
        yield f"{where}: its enum is empty or repeats a value"
    if "default" in schema and type(schema["default"]) not in _VALUES[kind]:
        yield f"{where}: its default is no {kind}"
    if "description" in schema and not schema["description"].strip():
        yield f"{where}: its description is empty"
    if kind == "array":
        if "items" not in schema:
            yield f"{where}: an array without items"
        else:
            yield from faults(schema["items"], f"{where}[]", result=result)
    if kind == "object":
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in properties:
                yield f"{where}: it requires {name}, which is no property"
        for name, each in properties.items():
            if not NAME.fullmatch(name):
                yield f"{where}: {name} is an unusual name"
            yield from faults(each, f"{where}.{name}", result=result)


_VALUES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}

SURFACES = {
    "all": EVERYTHING,
    "with the environment": Settings(toolsets=("inspect",), tools=("show_environment",)),
    "a narrow batch": Settings(toolsets=(), tools=("call_read_tools_batch", "list_sessions")),
}


@pytest.mark.parametrize("surface", SURFACES)
async def test_every_client_takes_every_schema(surface: str) -> None:
    for tool in await Offer(SURFACES[surface]).tools():
        name, arguments, result = tool["name"], tool["inputSchema"], tool["outputSchema"]
        found = [*faults(arguments, name), *faults(result, f"{name} result", result=True)]
        assert found == []
        for root in (arguments, result):
            assert root["type"] == "object"
            assert isinstance(root["properties"], dict)
        assert arguments["additionalProperties"] is False
        assert set(arguments.get("required", ())) <= set(arguments["properties"])


async def test_every_client_takes_every_name_and_title() -> None:
    listed = await Offer().tools()
    for tool in listed:
        assert NAME.fullmatch(tool["name"])
        assert len(tool["name"]) <= LONGEST_NAME
        assert 3 <= len(tool["title"]) <= 40
        assert tool["title"].isprintable()
        assert tool["description"].isprintable()
        assert tool["description"].isascii()
        assert all(re.fullmatch(r"io\.github\.tmuxmcp/[a-z-]+", key) for key in tool["_meta"])
    assert len({tool["title"] for tool in listed}) == len(listed) == len(ALL)


async def test_patterns_are_anchored_and_mean_the_same_in_every_engine() -> None:
    text = json.dumps([tool["inputSchema"] for tool in await Offer().tools()])
    assert {json.loads(each) for each in re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', text)} == {
        "^%[0-9]+$",
        "^@[0-9]+$",
        "^[A-Za-z][A-Za-z0-9_]*$",
        r"^@?[A-Za-z0-9_-]+(\[[0-9]+\])?$",
    }


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({"$ref": "#/$defs/X"}, "its type is None"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "its type is None"),
        ({"type": ["string", "null"]}, "not one name"),
        ({"type": "null"}, "not one name"),
        ({"type": "array"}, "an array without items"),
        ({"type": "array", "items": {}}, "its type is None"),
        ({"type": "string", "required": ["x"]}, "required does not belong to string"),
        ({"type": "object", "required": ["x"]}, "requires x"),
        ({"type": "object", "properties": {"x": {}}}, "x: its type is None"),
        ({"type": "object", "$defs": {}}, "$defs does not belong to object"),
        ({"type": "object", "properties": {"a-b": {"type": "string"}}}, "unusual name"),
        ({"type": "string", "enum": []}, "enum is empty"),
        ({"type": "string", "format": "uri"}, "format does not belong"),
        ({"type": "integer", "default": "1"}, "default is no integer"),
        ({"type": "integer", "default": True}, "default is no integer"),
        ({"type": "string", "default": None}, "default is no string"),
        ({"enum": ["a"]}, "its type is None"),
        (True, "is no object"),
    ],
)
def test_what_some_client_refuses_is_found(schema: Any, fault: str) -> None:
    assert fault in " ".join(faults(schema, "x"))
