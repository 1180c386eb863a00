"""Files that come with the package."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def manifest_text() -> str:
    """The text of ``tools.toml``: inside an installed package, at the repository's root in a clone.

    An editable install runs from the clone. Raises `FileNotFoundError` when neither place has it.
    """
    installed = _PACKAGE / "tools.toml"
    path = installed if installed.is_file() else _PACKAGE.parent / "tools.toml"
    return path.read_text(encoding="utf-8")


def minimal_configuration() -> Path:
    """The tmux configuration that a server started by us gets unless a setting names another."""
    return _PACKAGE / "tmux" / "minimal.conf"
