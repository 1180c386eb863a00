"""Parameters that many tools share."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

PaneId = Annotated[str, Meta(pattern="^%[0-9]+$")]
WindowId = Annotated[str, Meta(pattern="^@[0-9]+$")]
SessionName = Annotated[str, Meta(extra_json_schema={"description": "$N or exact name"})]
