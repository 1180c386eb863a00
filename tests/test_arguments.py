"""Argument structs as schemas that every client takes, and refusals that never hold a value."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta, UnsetType

from tmuxmcp.arguments import DEPTH, Parameters, output_schema
from tmuxmcp.errors import InvalidArgument
from tmuxmcp.tools.parameters import OfPane


class Operation(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    tool: str
    arguments: dict[str, Any] = {}


class Arguments(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    pane_id: Annotated[str, Meta(pattern="^%[0-9]+$", description="A pane.")]
    text: Annotated[str, Meta(max_length=10)] | UnsetType = UNSET
    lines: Annotated[int, Meta(ge=1, le=500)] = 100
    timeout: Annotated[float, Meta(gt=0, le=1800)] | UnsetType = UNSET
    where: Literal["below", "right"] = "below"
    enter: bool = False
    keys: list[str] | UnsetType = UNSET
    operations: Annotated[list[Operation], Meta(min_length=1, max_length=3)] | UnsetType = UNSET


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    pass


class Row(msgspec.Struct):
    id: str


class Result(msgspec.Struct, omit_defaults=True):
    rows: list[Row]
    row: Row
    lines: Annotated[int, Meta(description="A number.")] = 0
    names: list[str] = []
    results: list[Any] = []
    cut: bool = False


PARAMETERS = Parameters(Arguments, {"operations.tool": ("list_panes", "capture_pane")})


def test_the_schema_is_flat_and_has_one_type_everywhere() -> None:
    assert PARAMETERS.schema == {
        "type": "object",
        "properties": {
            "pane_id": {"type": "string", "pattern": "^%[0-9]+$", "description": "A pane."},
            "text": {"type": "string", "maxLength": 10},
            "lines": {"type": "integer", "minimum": 1, "maximum": 500, "default": 100},
            "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": 1800},
            "where": {"type": "string", "enum": ["below", "right"], "default": "below"},
            "enter": {"type": "boolean", "default": False},
            "keys": {"type": "array", "items": {"type": "string"}},
            "operations": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "tool": {"type": "string", "enum": ["list_panes", "capture_pane"]},
                        "arguments": {"type": "object"},
                    },
                    "required": ["tool"],
                    "additionalProperties": False,
                },
                "minItems": 1,
                "maxItems": 3,
            },
        },
        "required": ["pane_id"],
        "additionalProperties": False,
    }
    assert Parameters(Nothing).schema == {"type": "object", "properties": {}, "additionalProperties": False}


def test_a_type_that_some_client_refuses_is_a_defect() -> None:
    union = msgspec.defstruct("Union", [("x", int | None, None)])
    with pytest.raises(TypeError, match="no flat schema"):
        _ = Parameters(union).schema


def test_names() -> None:
    names = [
        "pane_id",
        "text",
        "lines",
        "timeout",
        "where",
        "enter",
        "keys",
        "operations.tool",
        "operations.arguments",
    ]
    assert list(PARAMETERS.names) == names


def test_a_result_schema_says_no_more_than_types() -> None:
    assert output_schema(Result) == {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"type": "object"}},
            "row": {"type": "object"},
            "lines": {"type": "integer"},
            "names": {"type": "array", "items": {"type": "string"}},
            "results": {"type": "array", "items": {}},
        },
    }


def test_decoding() -> None:
    operations = [{"tool": "list_panes", "arguments": {"session": "$1", "deep": [{"a": 1}]}}]
    decoded = PARAMETERS.decode({"pane_id": "%1", "timeout": 5, "keys": ["C-c"], "operations": operations})
    assert decoded == Arguments(
        pane_id="%1",
        timeout=5,
        keys=["C-c"],
        operations=[Operation(tool="list_panes", arguments={"session": "$1", "deep": [{"a": 1}]})],
    )
    assert Parameters(Nothing).decode(None) == Parameters(Nothing).decode({}) == Nothing()


def test_a_type_says_in_its_own_words_what_it_accepts() -> None:
    parameters = Parameters(OfPane)
    assert parameters.schema["properties"] == {"pane_id": {"type": "string", "pattern": "^%[0-9]+$"}}
    words = "the id of a pane, such as %0 (list_panes shows them)"
    for arguments in ({"pane_id": "main:0.1"}, {"pane_id": "0"}, {}):
        with pytest.raises(InvalidArgument, match=re.escape(f"must be {words}.")) as refusal:
            parameters.decode(arguments)
        assert refusal.value.details["accepted"] == words
    with pytest.raises(InvalidArgument, match="NUL"):
        parameters.decode({"pane_id": "%1\0"})


def nested(levels: int) -> Any:
    value: Any = "s3cret"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("arguments", "field", "words"),
    [
        (None, "pane_id", "is missing"),
        ({}, "pane_id", "is missing"),
        ([], "arguments", "must be an object. It is a list of 0 items."),
        ("s3cret", "arguments", "must be an object"),
        ({"pane_id": "s3cret"}, "pane_id", "must be text that matches"),
        ({"pane_id": "%1\n"}, "pane_id", "must be text that matches"),
        ({"pane_id": None}, "pane_id", "leave it out"),
        ({"pane_id": 1}, "pane_id", "It is an integer."),
        (
            {"pane_id": "%1", "text": "s3cret s3cret"},
            "text",
            "at most 10 characters. It is text of 13 characters.",
        ),
        ({"pane_id": "%1", "text": "a\0b"}, "text", "NUL"),
        ({"pane_id": "%1", "text": "\ud800"}, "text", "surrogate"),
        ({"pane_id": "%1", "lines": 0}, "lines", "an integer from 1 to 500."),
        ({"pane_id": "%1", "lines": 10**30}, "lines", "an integer from 1 to 500."),
        ({"pane_id": "%1", "lines": 5.0}, "lines", "It is a number that is no integer."),
        ({"pane_id": "%1", "lines": "5"}, "lines", "It is text of 1 character."),
        ({"pane_id": "%1", "lines": True}, "lines", "It is a boolean."),
        ({"pane_id": "%1", "timeout": 0}, "timeout", "a number above 0 up to 1800."),
        ({"pane_id": "%1", "timeout": float("nan")}, "timeout", "finite"),
        ({"pane_id": "%1", "timeout": float("inf")}, "timeout", "finite"),
        ({"pane_id": "%1", "where": "s3cret"}, "where", "one of below, right. It is text"),
        (
            {"pane_id": "%1", "where": "rihgt"},
            "where",
            "one of below, right. Did you mean `right`? It is text",
        ),
        ({"pane_id": "%1", "where": "right" * 10**6}, "where", "one of below, right. It is text"),
        ({"pane_id": "%1", "enter": 1}, "enter", "true or false"),
        ({"pane_id": "%1", "keys": ["a", "b\0"]}, "keys[1]", "NUL"),
        ({"pane_id": "%1", "keys": {}}, "keys", "must be a list. It is an object."),
        ({"pane_id": "%1", "operations": []}, "operations", "a list of 1 to 3 items"),
        ({"pane_id": "%1", "operations": [{}]}, "operations[0].tool", "is missing"),
        (
            {"pane_id": "%1", "operations": [{"tool": "send_keys"}]},
            "operations[0].tool",
            "list_panes, capture_pane",
        ),
        ({"pane_id": "%1", "operations": [{"tool": "list_panes", "x": 1}]}, "operations[0].x", "There is no"),
        (
            {"pane_id": "%1", "operations": [{"tool": "list_panes", "arguments": {"a": {"b": ["\0"]}}}]},
            "operations[0].arguments.a.b[0]",
            "NUL",
        ),
        (
            {"pane_id": "%1", "operations": [{"tool": "list_panes", "arguments": {"s3cret!": "\0"}}]},
            "operations[0].arguments",
            "NUL",
        ),
        (
            {"pane_id": "%1", "operations": [{"tool": "list_panes", "arguments": {"a": nested(DEPTH + 1)}}]},
            "operations[0].arguments.a" + "[0]" * DEPTH,
            "nested deeper",
        ),
        ({"pane_id": "%1", "pain_id": 1}, "pain_id", "Did you mean `pane_id`?"),
        ({"pane_id": "%1", "Zzz": 1}, "Zzz", "Accepted: pane_id, text,"),
        ({"pane_id": "%1", "the s3cret": 1}, "", "has a name that no argument has"),
    ],
)
def test_a_refusal_names_the_field_and_no_value(arguments: object, field: str, words: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        PARAMETERS.decode(arguments)
    assert refused.value.code == "invalid_argument"
    assert refused.value.details["field"] == field
    assert words in refused.value.message
    assert "s3cret" not in repr((refused.value.message, refused.value.details))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["%1", "below"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text() | st.sampled_from(["tool"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(Arguments.__struct_fields__), JSON))
def test_what_passes_the_check_is_what_msgspec_takes(arguments: dict[str, Any]) -> None:
    try:
        decoded = Parameters(Arguments).decode(arguments)
    except InvalidArgument:
        return
    assert decoded == msgspec.convert(arguments, Arguments)
