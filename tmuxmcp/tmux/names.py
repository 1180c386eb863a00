"""Which session names, window names, titles and key names tmux takes exactly as they are written.

tmux rewrites some names silently (a doubled backslash, `:` turned into `_`), refuses others on some
versions only, and types an unknown key name as text. What does not come back byte-equal on every
supported tmux (3.2a to 3.8, measured) is refused here, before tmux sees it.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, Literal

from tmuxmcp.errors import InvalidArgument, InvalidName

NameKind = Literal["session", "window", "title"]

MAX_NAME_CHARACTERS: Final = 1000
"""The longest name that was measured to read back whole."""

CLIENT_NAME: Final = re.compile(r"/dev/.*|pts/\d+|tty[A-Za-z]*\d+|console|client-\d+", re.DOTALL)
"""What tmux calls clients: even ``=pts/3`` finds the session that the client on that terminal looks at."""

_LEADING: Final = "$@%=-+!{"
_CODE_POINTS: Final = {
    "Cc": "a control character",
    "Cs": "a lone surrogate",
    "Cn": "an unassigned code point",
    "Co": "a private-use code point",
    "Zl": "a line separator",
    "Zp": "a paragraph separator",
}


def check_name(kind: NameKind, value: str) -> str:
    """Return `value` unchanged when every supported tmux keeps it byte-equal, else raise `InvalidName`.

    A session or window name may also not look like an id, like tmux's target syntax or like a tmux
    client. `#` is refused everywhere: a person who later presses tmux's rename key would run it.
    """
    reason = _name_fault(kind, value)
    if reason is not None:
        what = "title" if kind == "title" else f"{kind} name"
        raise InvalidName(
            f"The {what} {reason}. Choose one of letters, digits, spaces and ordinary punctuation.",
            kind=kind,
            reason=reason,
        )
    return value


def _name_fault(kind: NameKind, value: str) -> str | None:
    if not value:
        return "is empty"
    if len(value) > MAX_NAME_CHARACTERS:
        return f"is longer than {MAX_NAME_CHARACTERS} characters"
    for character in value:
        if (fault := _CODE_POINTS.get(unicodedata.category(character))) is not None:
            return f"holds {fault} (U+{ord(character):04X}), which tmux does not keep"
    if "#" in value:
        return "holds '#', which tmux runs as a format when a person renames it"
    if "\\" in value:
        return "holds a backslash, which tmux doubles"
    if re.search(r"\$[A-Za-z_{]", value):
        return "holds '$' before a letter, '_' or '{', which some tmux versions rewrite"
    if kind == "title":
        return None
    if value[0] in _LEADING:
        return f"begins with '{value[0]}', which tmux reads as an id or as target syntax"
    if kind == "session":
        if ":" in value or "." in value:
            return "holds ':' or '.', which tmux's targets are divided by"
        if CLIENT_NAME.fullmatch(value):
            return "looks like a tmux client, which tmux would look up instead of the session"
    return None


_NAMED_KEYS: Final = (
    *(f"F{n}" for n in range(1, 13)),
    *("Up", "Down", "Left", "Right", "Home", "End", "NPage", "PageDown", "PgDn", "PPage", "PageUp", "PgUp"),
    *("IC", "Insert", "DC", "Delete", "Enter", "Escape", "Tab", "BTab", "Space", "BSpace"),
    *(f"KP{c}" for c in "0123456789/*-+."),
    "KPEnter",
)
_CANONICAL: Final = {name.casefold(): name for name in _NAMED_KEYS}
_MODIFIERS: Final = re.compile(r"(?:[CcMmSs]-)*(?=.)", re.DOTALL)
_HINTS: Final = {
    "esc": "Escape",
    "return": "Enter",
    "ret": "Enter",
    "cr": "Enter",
    "backspace": "BSpace",
    "bs": "BSpace",
    "del": "Delete",
    "ins": "Insert",
    "pgup": "PageUp",
    "pgdown": "PageDown",
    "spacebar": "Space",
}


def check_key(value: str) -> str:
    """Return the canonical spelling of a tmux key name (``c-x`` -> ``C-x``), else raise `InvalidArgument`.

    A key is one printable character, or a named key, after any of the modifiers `C-`, `M-`, `S-`
    once each; ``^x`` stands for ``C-x``. tmux answers rc 0 for anything else and types it as text.
    """
    if len(value) == 2 and value[0] == "^" and value[1] > " ":
        value = f"C-{value[1]}"
    prefix = _MODIFIERS.match(value)
    cut = prefix.end() if prefix else 0
    modifiers, base = value[:cut].upper(), value[cut:]
    if len(set(modifiers)) - 1 > len(modifiers) // 2 or len(modifiers) // 2 != len(set(modifiers) - {"-"}):
        raise _not_a_key(value, "a modifier is given twice")
    ordered = "".join(f"{m}-" for m in "CMS" if m in modifiers)
    if (named := _CANONICAL.get(base.casefold())) is not None:
        return ordered + named
    if len(base) != 1:
        raise _not_a_key(value, "it is no key of tmux")
    if not base.isprintable() or base == " ":
        raise _not_a_key(value, "write Space, Tab, Enter or Escape by name")
    if "S-" in ordered:
        raise _not_a_key(value, "S- goes with named keys only; write the shifted character itself")
    if "C-" in ordered and not ("@" <= base <= "~"):
        raise _not_a_key(value, "C- goes with a letter, one of @ [ \\ ] ^ _ or a named key")
    return ordered + base


def _not_a_key(value: str, reason: str) -> InvalidArgument:
    hint = _HINTS.get(value.casefold())
    near = f" Did you mean {hint}?" if hint else ""
    shown = value if value.isprintable() and len(value) <= 32 else "given"
    return InvalidArgument(
        f"The key name {shown!r} is not usable: {reason}.{near} Keys are single characters or names such as Enter, "
        "Escape, Tab, Space, BSpace, Up, PageDown, F5, C-c, M-x; to type words use `text`.",
        reason=reason,
    )
