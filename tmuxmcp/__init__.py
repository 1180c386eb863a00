"""An MCP server that gives an agent a terminal which a person can watch."""

from __future__ import annotations

__version__ = "0.1.0"
