"""Argument structs as JSON Schema, and the check of what a client sends against them.

The schemas are flat, because clients differ in what they take: one `type` everywhere, nested objects
inlined, no `$ref`, `anyOf` or null. A refusal names the field and what it accepts, and never holds
the value of any argument: the value may be a secret, and messages end up in logs.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import inspect

from tmuxmcp.errors import InvalidArgument

DEPTH = 32
"""Levels of lists and objects in an argument without a schema of its own."""

WORDS = "accepted"
"""Key of the `extra` of a type's `Meta`: what it accepts, for a caller who sent something else."""

T = TypeVar("T", bound=msgspec.Struct)

_info = cache(inspect.type_info)
_FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_SCALARS: Mapping[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
}


class Parameters(Generic[T]):
    """The parameters that a struct describes.

    `choices` are for what is known only at startup: the values that the string at a path
    (``operations.tool``) can have.
    """

    def __init__(self, struct: type[T], choices: Mapping[str, Sequence[str]] | None = None) -> None:
        self._struct = struct
        self._info = _narrowed(_info(struct), choices or {}, "")

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments object."""
        return _schema(self._info)

    @property
    def names(self) -> Iterator[str]:
        """Every parameter; ``operations.text`` is the field `text` of the items of `operations`."""
        return _names(self._info, "")

    def decode(self, arguments: object) -> T:
        """Check the arguments and make the struct. Raises `InvalidArgument`."""
        given = {} if arguments is None else arguments
        _check(given, self._info, "")
        try:
            return msgspec.convert(given, self._struct)
        except (msgspec.ValidationError, OverflowError):
            raise InvalidArgument("The arguments are not those of the tool's schema.") from None


def output_schema(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of a result: its fields and their types.

    It says nothing about inner objects, nor about flags that a result only has when they are true, and
    requires nothing: clients refuse a result that breaks its schema, and every byte of it is sent with
    every list of tools.
    """
    fields = (each for each in msgspec.structs.fields(struct) if each.default is not False)
    return {
        "type": "object",
        "properties": {each.encode_name: _brief(inspect.type_info(each.type)) for each in fields},
    }


def _narrowed(info: inspect.Type, choices: Mapping[str, Sequence[str]], path: str) -> inspect.Type:
    if path in choices:
        return inspect.LiteralType(tuple(choices[path]))
    match info:
        case inspect.StructType() if choices:
            fields = tuple(
                msgspec.structs.replace(
                    each, type=_narrowed(each.type, choices, _joined(path, each.encode_name))
                )
                for each in info.fields
            )
            return msgspec.structs.replace(info, fields=fields)
        case inspect.ListType() | inspect.VarTupleType():
            return msgspec.structs.replace(info, item_type=_narrowed(info.item_type, choices, path))
        case inspect.Metadata():
            return msgspec.structs.replace(info, type=_narrowed(info.type, choices, path))
    return info


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _names(info: inspect.Type, path: str) -> Iterator[str]:
    match info:
        case inspect.StructType():
            for each in info.fields:
                yield from _names(each.type, _joined(path, each.encode_name))
        case inspect.ListType() | inspect.VarTupleType():
            yield from _names(info.item_type, path)
        case inspect.Metadata():
            yield from _names(info.type, path)
        case _:
            yield path


def _schema(info: inspect.Type) -> dict[str, Any]:
    match info:
        case inspect.Metadata():
            return {**_schema(info.type), **(info.extra_json_schema or {})}
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType() | inspect.FloatType():
            bounds = {
                "minimum": info.ge,
                "exclusiveMinimum": info.gt,
                "maximum": info.le,
                "exclusiveMaximum": info.lt,
            }
            return {"type": "integer" if isinstance(info, inspect.IntType) else "number", **_given(bounds)}
        case inspect.StrType():
            limits = {"minLength": info.min_length, "maxLength": info.max_length, "pattern": info.pattern}
            return {"type": "string", **_given(limits)}
        case inspect.LiteralType():
            (kind,) = {_SCALARS[type(value)] for value in info.values}
            return {"type": kind, "enum": list(info.values)}
        case inspect.ListType() | inspect.VarTupleType():
            limits = {"minItems": info.min_length, "maxItems": info.max_length}
            return {"type": "array", "items": _schema(info.item_type), **_given(limits)}
        case inspect.DictType():
            return {"type": "object"}
        case inspect.StructType():
            properties = {each.encode_name: {**_schema(each.type), **_default(each)} for each in info.fields}
            required = [each.encode_name for each in info.fields if each.required]
            schema: dict[str, Any] = {"type": "object", "properties": properties}
            return {**schema, **({"required": required} if required else {}), "additionalProperties": False}
    raise TypeError(f"{type(info).__name__} has no flat schema")


def _given(keywords: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in keywords.items() if value is not None}


def _default(field: inspect.Field) -> dict[str, Any]:
    return {"default": field.default} if type(field.default) in _SCALARS else {}


def _brief(info: inspect.Type) -> dict[str, Any]:
    match info:
        case inspect.Metadata():
            return _brief(info.type)
        case inspect.ListType() | inspect.VarTupleType():
            return {"type": "array", "items": _brief(info.item_type)}
        case inspect.StructType():
            return {"type": "object"}
        case inspect.AnyType():
            return {}
    return {"type": _schema(info)["type"]}


def _check(value: object, info: inspect.Type, field: str, said: inspect.Type | None = None) -> None:
    """Check a value against a type; `said` is the same with what to say of it."""
    match info:
        case inspect.Metadata():
            _check(value, info.type, field, info)
        case inspect.StructType():
            if not isinstance(value, dict):
                raise _wrong(value, info, field)
            _check_fields(value, info, field)
        case inspect.ListType() | inspect.VarTupleType():
            if not isinstance(value, list) or not _within(len(value), info.min_length, info.max_length):
                raise _wrong(value, info, field)
            for index, item in enumerate(value):
                _check(item, info.item_type, f"{field}[{index}]")
        case inspect.DictType() | inspect.AnyType():
            if isinstance(info, inspect.DictType) and not isinstance(value, dict):
                raise _wrong(value, info, field)
            _check_free(value, field, 0)
        case _:
            _check_scalar(value, field)
            if not _accepts(value, info):
                raise _wrong(value, said or info, field)


def _check_fields(value: Mapping[object, object], info: inspect.StructType, field: str) -> None:
    fields = {each.encode_name: each for each in info.fields}
    for name in value:
        if name not in fields:
            raise _unknown(name, list(fields), field)
    for name, each in fields.items():
        if name in value:
            _check(value[name], each.type, _joined(field, name))
        elif each.required:
            path, accepted = _joined(field, name), _accepted(each.type)
            raise InvalidArgument(
                f"`{path}` is missing. It must be {_said(accepted)}.", field=path, accepted=accepted
            )


def _check_free(value: object, field: str, depth: int) -> None:
    """What any argument has to keep to, whatever will look at it later."""
    if depth > DEPTH:
        raise InvalidArgument(f"`{field}` is nested deeper than {DEPTH} levels.", field=field)
    if isinstance(value, dict):
        for key, item in value.items():
            _check_scalar(key, field)
            _check_free(item, _joined(field, key) if _FIELD_NAME.fullmatch(key) else field, depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_free(item, f"{field}[{index}]", depth + 1)
    else:
        _check_scalar(value, field)


def _check_scalar(value: object, field: str) -> None:
    if isinstance(value, str):
        if "\0" in value:
            raise InvalidArgument(
                f"`{field}` holds a NUL character, which tmux cannot take. Remove it.", field=field
            )
        if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
            raise InvalidArgument(
                f"`{field}` holds half of a surrogate pair, which is no character. Send whole characters.",
                field=field,
            )
    elif isinstance(value, float) and not math.isfinite(value):
        raise InvalidArgument(f"`{field}` must be a finite number.", field=field)


def _accepts(value: object, info: inspect.Type) -> bool:
    match info:
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType() | inspect.FloatType():
            kinds = (int,) if isinstance(info, inspect.IntType) else (int, float)
            if not isinstance(value, kinds) or isinstance(value, bool):
                return False
            above = info.gt is None or value > info.gt
            below = info.lt is None or value < info.lt
            return above and below and _within(value, info.ge, info.le)
        case inspect.StrType():
            if not isinstance(value, str) or not _within(len(value), info.min_length, info.max_length):
                return False
            # In Python `$` also matches before a last newline; in JSON Schema it does not.
            return info.pattern is None or bool(re.search(info.pattern, value) and not value.endswith("\n"))
        case inspect.LiteralType():
            return any(value == each and type(value) is type(each) for each in info.values)
    return True


def _within(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _wrong(value: object, info: inspect.Type, field: str) -> InvalidArgument:
    accepted, received = _accepted(info), _received(value, _schema(info)["type"])
    field = field or "arguments"
    details = {"field": field, "accepted": accepted, **({"received": received} if received else {})}
    words = map(str, accepted) if isinstance(accepted, list) else ()
    close = difflib.get_close_matches(value, words, n=1) if isinstance(value, str) and len(value) < 64 else []
    return InvalidArgument(
        f"`{field}` must be {_said(accepted)}."
        + (f" Did you mean `{close[0]}`?" if close else "")
        + (f" It is {received}." if received else "")
        + (" To go without it, leave it out." if value is None else ""),
        **details,
    )


def _unknown(name: object, known: list[str], field: str) -> InvalidArgument:
    # Anything else as a name could be a value that got into the wrong place.
    shown = name if isinstance(name, str) and _FIELD_NAME.fullmatch(name) else None
    close = difflib.get_close_matches(shown, known, n=1) if shown else []
    what = f"There is no `{_joined(field, shown)}`." if shown else "A field has a name that no argument has."
    hint = f" Did you mean `{_joined(field, close[0])}`?" if close else ""
    accepted = f" Accepted: {', '.join(known)}." if known else " The tool takes no arguments."
    return InvalidArgument(
        what + hint + accepted, field=_joined(field, shown) if shown else field, accepted=known
    )


def _accepted(info: inspect.Type) -> str | list[Any]:
    """What a field accepts, in words (the type's own, if it has some) or as the list of its values."""
    match info:
        case inspect.Metadata():
            return (info.extra or {}).get(WORDS) or _accepted(info.type)
        case inspect.LiteralType():
            return list(info.values)
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType() | inspect.FloatType():
            low = _bound(("from", info.ge), ("above", info.gt))
            high = _bound(("to" if info.ge is not None else "up to", info.le), ("below", info.lt))
            return ("an integer" if isinstance(info, inspect.IntType) else "a number") + low + high
        case inspect.StrType():
            matching = f" that matches {info.pattern}" if info.pattern else ""
            return "text" + _size(info.min_length, info.max_length, "characters") + matching
        case inspect.ListType() | inspect.VarTupleType():
            return "a list" + _size(info.min_length, info.max_length, "items")
    return "an object"


def _said(accepted: str | list[Any]) -> str:
    return accepted if isinstance(accepted, str) else f"one of {', '.join(map(str, accepted))}"


def _bound(*bounds: tuple[str, float | None]) -> str:
    return "".join(f" {word} {value}" for word, value in bounds if value is not None)


def _size(low: int | None, high: int | None, unit: str) -> str:
    if low is not None and high is not None:
        return f" of {low} to {high} {unit}"
    if high is not None:
        return f" of at most {high} {unit}"
    return f" of at least {low} {unit}" if low is not None else ""


def _received(value: object, wanted: str) -> str:
    """What a value is if that is worth saying: its kind, or its size; never the value."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "" if wanted in ("integer", "number") else "an integer"
        case float():
            return "" if wanted == "number" else "a number that is no integer"
        case str():
            return f"text of {_count(len(value), 'character')}"
        case list():
            return f"a list of {_count(len(value), 'item')}"
    return "an object"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
