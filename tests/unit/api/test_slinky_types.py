"""The fixtures decode to typed kinds without losing anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from penstock.api.kubernetes.meta import KubeObject
from penstock.api.slinky.controller import Controller, ControllerSpec
from penstock.api.slinky.group import GROUP
from penstock.api.slinky.loginset import LoginSet, LoginSetStatus
from penstock.api.slinky.nodeset import NodeSet, NodeSetStatus
from penstock.api.slinky.restapi import RestApi
from penstock.api.slinky.token import Token
from support.lossless import lost_fields

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures" / "slinky").glob("*.yaml"))
TYPES = {info.resource.kind: info.type for info in GROUP.kinds}


def load(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text())


def decode(manifest: dict[str, Any]) -> KubeObject:
    return msgspec.convert(manifest, TYPES[manifest["kind"]])


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_manifest_comes_back_from_its_type_with_every_field(path: Path):
    manifest = load(path)
    obj = decode(manifest)
    assert lost_fields(manifest, obj) == []


def test_every_kind_has_a_fixture():
    assert {load(path)["kind"] for path in FIXTURES} == set(TYPES)


def test_absent_fields_have_the_defaults_of_the_api():
    nodeset = msgspec.json.decode(b'{"spec": {"controllerRef": {"name": "c"}}}', type=NodeSet).spec
    assert nodeset.replicas == 1
    assert nodeset.scaling_mode == "StatefulSet"
    assert nodeset.update_strategy.type == "RollingUpdate"
    assert nodeset.update_strategy.rolling_update.max_unavailable == "25%"
    assert nodeset.persistent_volume_claim_retention_policy.when_scaled == "Retain"
    assert nodeset.workload_disruption_protection
    assert nodeset.prune_slurm_node_records == "Never"
    assert not nodeset.oversubscribe_node
    assert nodeset.slurmd == {}
    token = msgspec.json.decode(b'{"spec": {"username": "u"}}', type=Token).spec
    assert token.refresh


@pytest.mark.parametrize(
    ("text", "value"), [("{}", None), ('{"inplaceReconfigure": false}', False)]
)
def test_inplace_reconfigure_distinguishes_absent_from_false(text: str, value: bool | None):
    """Feature row 5."""
    assert msgspec.json.decode(text, type=ControllerSpec).inplace_reconfigure is value


def test_a_controller_without_a_spec_can_be_read():
    controller = msgspec.json.decode(b'{"metadata": {"name": "c"}}', type=Controller)
    assert controller.spec.persistent
    assert controller.spec.replicas == 1


def test_the_newer_name_of_the_jwt_key_wins():
    """S068."""
    refs = {"jwtKeyRef": {"name": "new", "key": "k"}, "jwtHs256KeyRef": {"name": "o", "key": "k"}}
    ref = msgspec.convert(refs, ControllerSpec).effective_jwt_key_ref
    assert ref is not None
    assert ref.name == "new"


@pytest.mark.parametrize(
    ("status", "zeros"),
    [
        (NodeSetStatus(), {"slurmDown": 0, "slurmDrain": 0, "nodeSetHash": "", "selector": ""}),
        (LoginSetStatus(), {"replicas": 0, "selector": ""}),
    ],
)
def test_a_count_of_zero_is_written(status: msgspec.Struct, zeros: dict[str, object]):
    written = msgspec.to_builtins(status)
    assert {key: written.get(key) for key in zeros} == zeros


@pytest.mark.parametrize("kind", [LoginSet, RestApi, NodeSet])
def test_the_controllers_namespace_is_kept(kind: type[NodeSet]):
    text = b'{"spec": {"controllerRef": {"name": "c", "namespace": "other"}}}'
    assert msgspec.json.decode(text, type=kind).spec.controller_ref.namespace == "other"
