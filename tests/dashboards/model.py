"""A dashboard as data: rows of panels, each with its queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

NAMESPACE: Final = 'namespace="$namespace"'
"""The selector of the chosen cluster: one cluster has one namespace."""
RATE: Final = "$__rate_interval"
"""Grafana's window for rates, of at least four scrapes."""


class Unit(StrEnum):
    """Units by Grafana's names."""

    NUMBER = "short"
    SHARE = "percentunit"
    BYTES = "bytes"
    SECONDS = "s"
    PER_SECOND = "ops"
    PER_MINUTE = "opm"


class Shape(StrEnum):
    """How a panel shows its queries."""

    NUMBER = "stat"
    CURVES = "timeseries"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Query:
    """One query: the expression, and the name of each of its series with `{{label}}` in it.

    `otherwise` is for clusters that lack the series `unless`: Slurm's own metrics, where no
    exporter runs.
    """

    expr: str
    legend: str = ""
    otherwise: str = ""
    unless: str = ""

    @property
    def text(self) -> str:
        """The expression for Grafana."""
        if not self.otherwise:
            return self.expr
        return f"({self.expr}) or (({self.otherwise}) unless on () {self.unless})"

    @property
    def parts(self) -> tuple[str, ...]:
        """The expressions that must each find something on a cluster that has both."""
        return (self.expr, self.otherwise) if self.otherwise else (self.expr,)


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. `about` is its help: the source, and the meaning where the title is short."""

    title: str
    queries: tuple[Query, ...]
    about: str
    shape: Shape = Shape.CURVES
    unit: Unit = Unit.NUMBER
    stacked: bool = False
    columns: tuple[tuple[str, str], ...] = ()
    """Of a table: labels in their order, each with its heading. `Value` is the value."""
    width: int = 12
    """Of 24."""
    highest: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One dashboard; `name` is that of its file, and `namespaces` a metric of all its clusters."""

    name: str
    title: str
    about: str
    namespaces: str
    rows: tuple[Row, ...] = field(default=())

    @property
    def uid(self) -> str:
        """Address of the dashboard in Grafana, so that links survive an update."""
        return f"penstock-{self.name}"

    def panels(self) -> Iterator[Panel]:
        """All panels in their order."""
        for row in self.rows:
            yield from row.panels


def number(
    title: str, *queries: Query, about: str, unit: Unit = Unit.NUMBER, width: int = 4
) -> Panel:
    """A panel with the present value of each query."""
    return Panel(title, queries, about, Shape.NUMBER, unit, width=width)


def curves(
    title: str,
    *queries: Query,
    about: str,
    unit: Unit = Unit.NUMBER,
    stacked: bool = False,
    highest: float | None = None,
) -> Panel:
    """A panel with each series over time."""
    return Panel(title, queries, about, Shape.CURVES, unit, stacked, highest=highest)


def listing(title: str, query: Query, about: str, **columns: str) -> Panel:
    """A table over the whole width: a row for each series, a column for each label."""
    return Panel(title, (query,), about, Shape.TABLE, columns=tuple(columns.items()), width=24)
