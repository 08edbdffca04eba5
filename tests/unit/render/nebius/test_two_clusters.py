"""Objects of two SlurmClusters of one namespace: other names, other owners, no common part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster
from support import nebius
from support.nebius_clusters import CURRENT, OLDER, WITHOUT_JAIL, Rendered, rendered

SOURCES = ("secret", "configMap", "persistentVolumeClaim", "projected")
FIRST, SECOND = "blue", "blue-red"
"""One name begins with the other one."""


def made(shape: str, name: str, prefix: str, *, has_jail: bool = True) -> Rendered:
    meta = {"metadata.name": name, "metadata.uid": f"{name}-uid"}
    # Secrets and ConfigMaps that the user names are the user's, and may be shared.
    own = {
        "spec.secrets.sshdKeysName": "",
        "spec.slurmNodes.login.sshdConfigMapRefName": "",
        **({} if has_jail else WITHOUT_JAIL),
    }
    cluster = nebius.made(f"slurmcluster-{shape}-0", {**meta, **own})
    sets = [
        nebius.made(
            one,
            {
                "metadata.name": f"{name}-{number}",
                "metadata.uid": f"{name}-{number}-uid",
                "spec.clusterName": name,
            },
        )
        for number, one in enumerate(("nodesets-5.0-0",) if shape == CURRENT else ())
    ]
    return rendered(cast("SlurmCluster", cluster), cast("list[NodeSet]", sets), prefix)


PAIRS = [
    (made(OLDER, FIRST, ""), made(OLDER, SECOND, f"{SECOND}-")),
    (made(OLDER, FIRST, ""), made(CURRENT, SECOND, f"{SECOND}-")),
    (made(CURRENT, FIRST, f"{FIRST}-"), made(CURRENT, SECOND, f"{SECOND}-")),
    (made(CURRENT, FIRST, f"{FIRST}-"), made(CURRENT, SECOND, f"{SECOND}-", has_jail=False)),
]
PAIR = pytest.mark.parametrize(("one", "other"), PAIRS)


def keys(found: Rendered) -> set[tuple[str, str]]:
    return {(each["kind"], each["metadata"]["name"]) for each in found.objects()}


def parts(value: Any) -> Iterator[tuple[str, str]]:
    """Names of ConfigMaps and Secrets in the volumes of pods."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if "configMap" in fields and isinstance(fields["configMap"], dict):
            yield "ConfigMap", fields["configMap"]["name"]
        if "secret" in fields and isinstance(fields["secret"], dict):
            yield "Secret", fields["secret"].get("secretName") or fields["secret"]["name"]
        for each in fields.values():
            yield from parts(each)
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from parts(each)


@PAIR
def test_no_object_has_the_name_of_one_of_the_other_cluster(one: Rendered, other: Rendered):
    """S010."""
    assert keys(one) & keys(other) == set()
    assert {kind for kind, _ in keys(one)} >= {"Secret", "ConfigMap", "Service", "Job"}


@PAIR
def test_each_object_has_its_own_cluster_or_node_set_as_owner(one: Rendered, other: Rendered):
    """S010."""
    for found in (one, other):
        own = {found.inputs.cluster.metadata.uid}
        own |= {each.metadata.uid for each in found.inputs.node_sets}
        for each in found.objects():
            owners = each["metadata"].get("ownerReferences")
            if each["kind"] == "PersistentVolumeClaim":
                assert owners is None
                continue
            assert {owner["uid"] for owner in owners} <= own, each["metadata"]["name"]


@PAIR
def test_no_pod_mounts_a_key_or_a_file_of_the_other_cluster(one: Rendered, other: Rendered):
    """S010."""
    for found, stranger in ((one, other), (other, one)):
        used = set(parts([each for each in found.objects() if "spec" in each]))
        assert ("Secret", f"{found.inputs.name}-munge") in used
        assert used & keys(stranger) == set()


@PAIR
def test_no_service_selects_a_pod_of_the_other_cluster(one: Rendered, other: Rendered):
    """S010."""
    for found, stranger in ((one, other), (other, one)):
        theirs = [
            each.get("spec", {}).get("template", each)["metadata"].get("labels", {})
            for each in stranger.objects()
            if each["kind"] in ("Pod", "StatefulSet", "Deployment", "Job")
        ]
        selectors = [
            each["spec"]["selector"] for each in found.objects() if each["kind"] == "Service"
        ]
        assert selectors
        for selector in selectors:
            assert not [labels for labels in theirs if selector.items() <= labels.items()]
