"""Whole manifests, byte for byte. `PENSTOCK_WRITE_GOLDEN=1 pytest ...` writes them anew."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from penstock.api.slinky import names
from penstock.render.parts.digest import canonical_json
from penstock.render.slinky.cluster import login as loginset
from penstock.render.slinky.cluster import metrics_monitor as monitor
from penstock.render.slinky.cluster import slurmctld as controller
from penstock.render.slinky.cluster import slurmrestd as restapi
from penstock.render.slinky.nodeset import worker_pod as worker

GOLDEN = Path(__file__).parents[2] / "golden"
NAMES = ["minimal", "full", "external", "daemonset", "munge"]


class Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, _text)


def rendered(bundle: Any) -> list[dict[str, Any]]:
    cluster = bundle.cluster
    out = controller.objects(cluster) + monitor.objects(cluster)
    if bundle.restapi:
        out += restapi.objects(cluster, bundle.restapi)
    if bundle.loginset:
        out += loginset.objects(cluster, bundle.loginset, host_keys_hash="hash-of-host-keys")
    out += worker.shared_objects(cluster)
    for nodeset in sorted(cluster.nodesets, key=lambda n: n.metadata.name):
        out += worker.objects(nodeset)
        if nodeset.spec.scaling_mode == "DaemonSet":
            name = names.node_pod_name(nodeset, "machine-1")
            out += worker.node_pvcs(nodeset, "machine-1")
            out.append(
                worker.node_pod(
                    cluster, nodeset, name, "machine-1", "machine-1.example.org", revision_hash=""
                )
            )
        else:
            out += worker.worker_pvcs(nodeset, 1)
            out.append(worker.pod(cluster, nodeset, 1))
        out.append(worker.controller_revision(nodeset, worker.revision(nodeset), 1))
    return out


def dumped(objects: list[dict[str, Any]]) -> str:
    return yaml.dump_all(objects, Dumper=Dumper, sort_keys=True, width=1000, allow_unicode=True)


@pytest.mark.parametrize("name", NAMES)
def test_manifests_are_byte_for_byte_as_recorded(name: str, load: Any):
    text = dumped(rendered(load(name)))
    path = GOLDEN / f"{name}.yaml"
    if os.environ.get("PENSTOCK_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(5))
def test_the_order_in_which_nodesets_are_seen_changes_no_byte(name: str, seed: int, load: Any):
    bundle = load(name)
    nodesets = list(bundle.cluster.nodesets)
    random.Random(seed).shuffle(nodesets)
    shuffled = type(bundle)(
        replace(bundle.cluster, nodesets=tuple(nodesets)), bundle.restapi, bundle.loginset
    )
    assert canonical_json(rendered(shuffled)) == canonical_json(rendered(bundle))


@pytest.mark.parametrize("name", NAMES)
def test_manifests_have_no_nulls_and_no_status(name: str, load: Any):
    def check(value: Any, path: str) -> None:
        assert value is not None, path
        if isinstance(value, dict):
            for key, item in cast("dict[str, Any]", value).items():
                check(item, f"{path}.{key}")
        elif isinstance(value, list):
            for i, item in enumerate(cast("list[Any]", value)):
                check(item, f"{path}[{i}]")

    for manifest in rendered(load(name)):
        check(manifest, manifest["kind"])
        assert "status" not in manifest


@pytest.mark.parametrize("name", NAMES)
def test_any_cluster_domain_will_do(name: str, load: Any):
    """What names a domain names the cluster's; all else leaves it to the search line."""
    bundle = load(name)
    moved = type(bundle)(
        replace(bundle.cluster, cluster_domain="example.org"), bundle.restapi, bundle.loginset
    )
    usual, other = canonical_json(rendered(bundle)), canonical_json(rendered(moved))
    assert b"cluster.local" in usual
    assert usual.replace(b"svc.cluster.local", b"svc.example.org") == other


@pytest.mark.parametrize("name", NAMES)
def test_every_pod_goes_without_a_service_account_token(name: str, load: Any):
    for manifest in rendered(load(name)):
        spec = manifest.get("spec", {})
        pod = spec if manifest["kind"] == "Pod" else spec.get("template", {}).get("spec")
        if pod:
            assert pod["automountServiceAccountToken"] is False
