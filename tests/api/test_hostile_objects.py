"""Objects that are made to stop the operator are refused, or are trouble of their own only."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
import structlog

from penstock.api.kubernetes.meta import Json
from penstock.kube import InvalidError
from support.operator_kit import Lab, Node, lab

pytestmark = pytest.mark.api

API = "slinky.slurm.net/v1beta1"
DEEPER = b'{"a":' * 3_000 + b"1" + b"}" * 3_000
"""Deeper than Python encodes by itself."""
REF: Json = {"controllerRef": {"name": "slurm"}}


@pytest.fixture(autouse=True)
def plain_log() -> Iterator[None]:
    """As the operator logs in a cluster: structlog's own renderer prints each local variable."""
    shown = [structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()]
    structlog.configure(processors=shown)
    yield
    structlog.reset_defaults()


def an(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def nested(levels: int) -> Json:
    found: Json = {"a": 1}
    for _ in range(levels):
        found = {"a": found}
    return found


def invalid(lab_: Lab, kind: str, name: str, words: str) -> bool:
    found = lab_.condition(kind, name)
    return found is not None and found.reason == "Invalid" and words in found.message


async def test_hostile_objects_of_one_namespace_leave_the_others_alone(api_node: Node) -> None:
    async with lab(api_node, clusters=2) as lab_, lab_.operator():
        other = next(space for space in lab_.clusters if space != lab_.namespace)
        await lab_.apply(an("Controller", "slurm", {}), an("RestApi", "slurm", REF))
        limits: Json = {"limits": {"cpu": "1e1000000000"}}
        await lab_.apply(
            an("NodeSet", "amounts", {**REF, "slurmd": {"resources": limits}}),
            an("NodeSet", "deep", {**REF, "template": {"spec": nested(500)}}),
            an("NodeSet", "deeper", {**REF, "template": {"spec": msgspec.Raw(DEEPER)}}),
            an("NodeSet", "wide", {**REF, "slurmd": {"args": ["a"] * 100_000}}),
            an("LoginSet", "amounts", {**REF, "login": {"resources": limits}}),
        )
        await lab_.until(lambda: invalid(lab_, "NodeSet", "amounts", "limits.cpu"))
        await lab_.until(lambda: invalid(lab_, "NodeSet", "deep", "nested in more than"))
        await lab_.until(lambda: invalid(lab_, "NodeSet", "deeper", "nested in more than"))
        await lab_.until(lambda: invalid(lab_, "NodeSet", "wide", "a list of 100000 items"))
        await lab_.until(lambda: invalid(lab_, "LoginSet", "amounts", "limits.cpu"))
        # Another namespace gets its cluster meanwhile.
        for one in (
            an("Controller", "slurm", {}),
            an("RestApi", "slurm", REF),
            an("NodeSet", "compute", {**REF, "replicas": 1}),
        ):
            await lab_.apply(one, namespace=other)
        await lab_.until(lambda: lab_.ready("NodeSet", "compute", other), within=60)
        # Put right, the object works.
        await lab_.apply(
            an(
                "NodeSet",
                "amounts",
                {**REF, "replicas": 1, "slurmd": {"resources": {"limits": {"cpu": "1e0"}}}},
            )
        )
        await lab_.until(lambda: lab_.ready("NodeSet", "amounts"), within=60)


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        ("Controller", {"extraConf": "a=1\n" * 40_000}, "extraConf"),
        ("NodeSet", {**REF, "partition": {"config": "a=1 " * 10_000}}, "partition.config"),
        (
            "Controller",
            {"persistence": {"resources": {"requests": {"storage": "1e1000000000"}}}},
            "storage",
        ),
    ],
)
async def test_the_schema_rejects_what_is_too_long(
    api_node: Node, kind: str, spec: Json, field: str
) -> None:
    async with lab(api_node) as lab_:
        with pytest.raises(InvalidError, match=field):
            await lab_.apply(an(kind, "big", spec))
