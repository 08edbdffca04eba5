"""Each value of the original charts for SlurmClusters works, is rejected by name, or is listed.

The keys are test data of ours: `fixtures/charts/keys`, with one state for each key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby
from typing import Any

import pytest

from charts.test_upstream_values import listed
from penstock.api.kubernetes.meta import Json
from penstock.local.errors import LocalError
from support.charts import MONITORS, REGISTRY, put, render
from support.value_keys import STATES, ValueKey, everything, keys

# Helm may have to be compiled first.
pytestmark = pytest.mark.timeout(1800)

PAGES = {
    "slurm-cluster": "slurm-cluster and nodesets",
    "nodesets": "slurm-cluster and nodesets",
    "soperator": "soperator and soperator-crds",
    "soperator-crds": "soperator and soperator-crds",
    "soperator-activechecks": "soperator and soperator-crds",
}
LEAST = {
    "slurm-cluster": 409,
    "nodesets": 134,
    "soperator": 64,
    "soperator-crds": 1,
    "soperator-activechecks": 237,
}
"""Keys of the values.yaml of 5.0.0 and of 1.23.3, each at least once."""
GLOBAL: Json = {"global": {"imageRegistry": REGISTRY}}
SIDECAR: Json = {"enabled": True}


def contexts(chart: str) -> Iterator[Json]:
    """Values under which a key is tried: it must have an effect under one of them."""
    match chart:
        case "slurm-cluster":
            current = everything(chart)
            yield current
            yield put(current, ["slurmNodes", "worker"], {"size": 1, "nodeExporter": SIDECAR})
            yield GLOBAL
        case "nodesets":
            yield everything(chart)
        case "soperator-activechecks":
            yield everything(chart)
        case _:
            yield GLOBAL


def output(chart: str, given: Json) -> str:
    """The objects, sorted, as text."""
    found = render(given, chart=chart, release="r", namespace="n", api_versions=MONITORS)
    return json.dumps(found, sort_keys=True)


def fault(chart: str, key: ValueKey, context: Json) -> str:
    """Why a key has no effect; empty when it has one."""
    try:
        after = output(chart, key.given(context))
    except LocalError as error:
        return f"{key.path}: {key.value!r} is rejected: {error}"
    try:
        before = output(chart, key.before(context))
    except LocalError:
        return ""  # what is beside it needs it
    return f"{key.path}: {key.value!r} changes nothing" if before == after else ""


def without_effect(chart: str, tried: Sequence[ValueKey], context: Json) -> list[ValueKey]:
    """Keys without effect. Values that are unlike all others are set together."""
    found: list[ValueKey] = [key for key in tried if not key.token]
    several = sorted((key for key in tried if key.token), key=_beside)
    for _, group in groupby(several, _beside):
        found += _unseen(chart, sorted(group, key=lambda key: len(key.steps)), context)
    with ThreadPoolExecutor(2) as pool:
        faults = list(pool.map(partial(fault, chart, context=context), found))
    return [key for key, reason in zip(found, faults, strict=True) if reason]


def _beside(key: ValueKey) -> str:
    return json.dumps(key.beside, sort_keys=True)


def _unseen(chart: str, tried: Sequence[ValueKey], context: Json) -> list[ValueKey]:
    """Keys whose values the objects do not have, of keys that need the same beside them."""
    given = context
    for key in tried:
        given = key.given(given)
    try:
        text = output(chart, given)
    except LocalError:
        if len(tried) == 1:
            return list(tried)
        half = len(tried) // 2
        return [
            *_unseen(chart, tried[:half], context),
            *_unseen(chart, tried[half:], context),
        ]
    return [key for key in tried if key.token not in text]


def of_state(chart: str, state: str) -> list[ValueKey]:
    return [key for key in keys(chart) if key.state == state]


@pytest.mark.parametrize("chart", PAGES)
def test_each_key_has_one_state(chart: str) -> None:
    assert [key.path for key in keys(chart) if key.state not in STATES] == []
    assert len(keys(chart)) >= LEAST[chart]


@pytest.mark.parametrize("chart", PAGES)
def test_a_key_that_works_changes_an_object(chart: str) -> None:
    """D46: the charts have no value that is ignored in silence."""
    left: Sequence[ValueKey] = of_state(chart, "works")
    for context in contexts(chart):
        left = without_effect(chart, left, context)
    first: Any = next(iter(contexts(chart)))
    assert [fault(chart, key, first) for key in left] == []


@pytest.mark.parametrize("chart", PAGES)
def test_a_key_that_is_rejected_stops_helm_by_its_name(chart: str) -> None:
    wrong: list[str] = []
    for key in of_state(chart, "rejected"):
        context = next(iter(contexts(chart)))
        output(chart, key.before(context))
        try:
            output(chart, key.given(context))
            wrong.append(f"{key.path}: it renders")
        except LocalError as error:
            if key.name not in str(error):
                wrong.append(f"{key.path}: {error}")
    assert wrong == []


@pytest.mark.parametrize("chart", PAGES)
def test_a_key_without_effect_is_listed_in_the_page(chart: str) -> None:
    found = of_state(chart, "listed")
    assert unlisted(chart, found) == []


def first(chart: str) -> Json:
    return next(iter(contexts(chart)))


def unlisted(chart: str, found: Iterable[ValueKey]) -> list[str]:
    names = listed(PAGES[chart])
    return [
        key.path
        for key in found
        if not any(key.path == name or key.path.startswith(f"{name}.") for name in names)
    ]
