"""Series of a declared metric, made one after the other while they are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client.samples import Sample

from penstock.catalog.exporter_metric import Metric
from penstock.controllers.exporter.history import BUCKETS, Ended

_BOUNDS: Final = (
    *(f"{bound / 1e6:g}e+06" if bound >= 1e6 else str(bound) for bound in BUCKETS),
    "+Inf",
)
"""Bounds as Go spells them: `le` is a label, and another text is another series."""


@dataclass(frozen=True, slots=True)
class Family:
    """A metric and its series, which can be read once."""

    metric: Metric
    samples: Iterator[Sample]


def single(metric: Metric, series: Iterable[tuple[tuple[str, ...], float]]) -> Family:
    """A gauge or counter, out of values of its labels and numbers."""
    name, labels = metric.name, metric.labels
    samples = (Sample(name, dict(zip(labels, at, strict=True)), value) for at, value in series)
    return Family(metric, samples)


def histogram(metric: Metric, series: Iterable[tuple[str, Ended]]) -> Family:
    """A histogram for each value of its only label."""
    return Family(metric, (one for name, ended in series for one in _rows(metric, name, ended)))


def _rows(metric: Metric, name: str, ended: Ended) -> Iterator[Sample]:
    (label,), count = metric.labels, 0
    for bound, found in zip(_BOUNDS, ended.counts, strict=True):
        count += found
        yield Sample(f"{metric.name}_bucket", {label: name, "le": bound}, count)
    yield Sample(f"{metric.name}_sum", {label: name}, ended.total)
    yield Sample(f"{metric.name}_count", {label: name}, count)
