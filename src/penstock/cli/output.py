"""How commands write what they found: a table for people, or JSON for programs."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import typer


class Output(StrEnum):
    """How the result is written."""

    TEXT = "text"
    JSON = "json"


Format = Annotated[Output, typer.Option("-o", "--output", help="How the result is written.")]


def print_json(found: Any) -> None:
    """Print an object or a list; names of fields stay as they are from release to release."""
    typer.echo(json.dumps(found, indent=2))


def examples(*lines: str) -> str:
    """The end of a command's help. Lines are a command each, below one another."""
    return "\n\n".join(("Examples:", *(f"  {one}" for one in lines)))
