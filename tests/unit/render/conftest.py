"""Clusters read from tests/fixtures/render, and what is rendered from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
import pytest
import yaml

from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.loginset import LoginSet
from penstock.api.slinky.nodeset import NodeSet
from penstock.api.slinky.restapi import RestApi
from penstock.render.parts.default_images import Images
from penstock.render.slinky.inputs import ClusterInputs

FIXTURES = Path(__file__).parents[2] / "fixtures" / "render"
IMAGES = Images(
    slurmctld="penstock/slurmctld",
    slurmd="penstock/slurmd",
    slurmrestd="penstock/slurmrestd",
    slurmdbd="penstock/slurmdbd",
    login="penstock/login",
    munge="penstock/munge",
)
CONFIG_MAPS = {
    "slinky-config-extra": {"gres.conf": "AutoDetect=nvidia\n"},
    "prologs": {"prolog-20-b.sh": "", "prolog-10-a.sh": ""},
    "epilogs": {"epilog-10-a.sh": ""},
    "prologs-slurmctld": {"prolog-slurmctld-a.sh": ""},
}

T = TypeVar("T")


@dataclass(frozen=True)
class Bundle:
    cluster: ClusterInputs
    restapi: RestApi | None
    loginset: LoginSet | None


def _bundle(documents: list[dict[str, Any]]) -> Bundle:
    def read(kind: type[T]) -> list[T]:
        return [msgspec.convert(d, kind) for d in documents if d["kind"] == kind.__name__]

    controller = read(Controller)[0]
    cluster = ClusterInputs(
        controller,
        IMAGES,
        nodesets=tuple(read(NodeSet)),
        accounting=next(iter(read(Accounting)), None),
        config_maps=CONFIG_MAPS,
        slurm_key_hash="hash-of-slurm-key",
        clients_key_hash="hash-of-slurm-key",
        jwt_key_hash="hash-of-jwt-key",
    )
    return Bundle(cluster, next(iter(read(RestApi)), None), next(iter(read(LoginSet)), None))


def _merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    out = dict(old)
    for key, value in new.items():
        old_value: Any = out.get(key)
        new_value: Any = value
        if isinstance(value, dict) and isinstance(old_value, dict):
            new_value = _merged(cast("Json", old_value), cast("Json", value))
        out[key] = new_value
    return out


Load = Callable[..., Bundle]


@pytest.fixture
def load() -> Load:
    """Reads one fixture; keyword arguments by kind are laid over the objects' specs."""

    def read(name: str, **specs: dict[str, Any]) -> Bundle:
        text = (FIXTURES / f"{name}.yaml").read_text()
        documents: list[dict[str, Any]] = list(yaml.safe_load_all(text))
        for document in documents:
            changes = specs.get(document["kind"].lower(), {})
            document["spec"] = _merged(document["spec"], changes)
        return _bundle(documents)

    return read
