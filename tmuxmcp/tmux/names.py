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


_EDITING_KEYS: Final = (
    *(f"F{n}" for n in range(1, 13)),
    *("Up", "Down", "Left", "Right", "Home", "End", "IC", "Insert", "DC", "Delete"),
    *("NPage", "PageDown", "PgDn", "PPage", "PageUp", "PgUp"),
)
"""Keys whose sequences have room for every modifier."""
_OTHER_KEYS: Final = (
    *("Enter", "Escape", "Tab", "BTab", "Space", "BSpace", "KPEnter"),
    *(f"KP{character}" for character in "0123456789/*-+."),
)
_CANONICAL: Final = {name.casefold(): name for name in (*_EDITING_KEYS, *_OTHER_KEYS)}
_MODIFIERS: Final = re.compile(r"(?:[CMS]-)*(?=.)", re.DOTALL | re.IGNORECASE)
_CONTROL: Final = re.compile(r"[A-Za-z@\[\]\\^_?]|Space")
"""What Ctrl makes a byte of, with and without Alt, the same on every supported tmux."""
_CONTROL_ALONE: Final = re.compile(r"[-/26]")
_HINTS: Final = {
    "esc": "Escape",
    "return": "Enter",
    "ret": "Enter",
    "cr": "Enter",
    "backspace": "BSpace",
    "bs": "BSpace",
    "del": "Delete",
    "ins": "Insert",
    "pagedn": "PageDown",
    "s-tab": "BTab",
    "c-enter": "Enter",
    "s-enter": "Enter",
    "c-tab": "Tab",
    "ctrl-c": "C-c",
    "ctrl+c": "C-c",
}


def check_key(value: str) -> str:
    """Return tmux's spelling of a key name (``^X`` -> ``C-x``), else raise `InvalidArgument`.

    A key is one printable character or a named key, after any of the modifiers `C-`, `M-`, `S-`
    once each that a terminal can send with it; ``^x`` stands for ``C-x``. tmux answers rc 0 for
    anything else, and types the name as text, another key or nothing at all, depending on its version.
    """
    if len(value) == 2 and value[0] == "^":
        value = f"C-{value[1]}"
    cut = match.end() if (match := _MODIFIERS.match(value)) else 0
    given, base = value[:cut].upper()[::2], value[cut:]
    base = _CANONICAL.get(base.casefold(), base)
    modifiers = "".join(f"{letter}-" for letter in "CMS" if letter in given)
    if len(base) == 1 and (not base.isprintable() or base == " "):
        raise _not_a_key(value, "write Space, Tab, Enter or Escape by name")
    if len(base) != 1 and base not in _CANONICAL.values():
        raise _not_a_key(value, "tmux has no such key")
    if len(set(given)) != len(given):
        raise _not_a_key(value, "a modifier is given twice")
    if base not in _EDITING_KEYS and not _is_sendable(modifiers, base):
        raise _not_a_key(value, "a terminal has no way to send it with this modifier")
    return modifiers + (base.lower() if "C-" in modifiers and len(base) == 1 else base)


def _is_sendable(modifiers: str, base: str) -> bool:
    """Whether a character, or a key other than the editing keys, can be sent with these modifiers."""
    if "S-" in modifiers:
        return False
    if "C-" in modifiers:
        return bool(_CONTROL.fullmatch(base)) or (modifiers == "C-" and bool(_CONTROL_ALONE.fullmatch(base)))
    return not (modifiers and base == "BTab")


def _not_a_key(value: str, reason: str) -> InvalidArgument:
    hint = _HINTS.get(value.casefold())
    near = f" Did you mean {hint}?" if hint else ""
    # The value itself is not told: it may be a password in the wrong field.
    return InvalidArgument(
        f"The key cannot be sent: {reason}.{near} Keys are single characters and names such as Enter, "
        "Escape, Tab, BTab, Space, BSpace, Up, PageDown, F5, C-c, M-x; words to type go into `text`.",
        reason=reason,
    )
