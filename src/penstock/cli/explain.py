"""`penstock explain`: the runbook of a condition's reason, without a network."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.base.text import list_some
from penstock.catalog import runbook
from penstock.catalog.reasons import ALL, find_reason
from penstock.cli.output import examples

EXAMPLES = examples("penstock explain ConfigRefused")
Name = Annotated[
    str,
    typer.Argument(
        metavar="REASON", help="Of a condition or event, such as ConfigRefused, or an alert."
    ),
]


def explain(reason: Name) -> None:
    """Explain a condition's reason: what it means, how to look, how to cure."""
    name = reason.rpartition("/")[2]
    found = find_reason(name) or find_reason(_by_case(name))
    # An alert has a page and is no reason.
    page = runbook.text(found.value if found else name)
    if page is None and found is not None:
        page = f"# {found}\n\n{found.meaning}\n\nNext: {found.next_step}\n"
    if page is None:
        near = runbook.similar(name, [one.value for one in ALL])
        hint = f"Similar reasons: {list_some(near)}" if near else "docs/reference lists all reasons"
        typer.echo(f"penstock explain: unknown reason {name}. {hint}", err=True)
        raise typer.Exit(1)
    typer.echo(page, nl=False)


def _by_case(name: str) -> str:
    """The reason that differs in upper and lower case only."""
    return next((one.value for one in ALL if one.value.lower() == name.lower()), "")
