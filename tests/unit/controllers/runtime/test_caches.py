"""What the caches say of who belongs to whom."""

from __future__ import annotations

import base64
import hashlib

import msgspec
import pytest

from penstock.api.kubernetes.kinds import ConfigMap
from penstock.api.kubernetes.meta import (
    KubeObject,
    LocalObjectReference,
    ObjectMeta,
    OwnerReference,
)
from penstock.api.slinky.controller import Controller, ControllerSpec
from penstock.api.slinky.nodeset import NODESETS
from penstock.controllers.observed.watching import owner_of, owners_of
from penstock.controllers.slinky.nodeset import worker_caches
from penstock.render.config.content import content_hash
from penstock.translate.slinky.worker_set import worker_set
from support import nodesets
from unit.controllers.stage import new_clusters, put


def test_namesakes_are_pods_of_a_nodeset_s_form_that_it_does_not_control():
    caches, wanted = new_clusters().caches, nodesets.nodeset()
    own, odd = nodesets.pod(0), nodesets.pod(name="compute-extra")
    former = OwnerReference(kind="NodeSet", name="compute", uid="former", controller=True)
    others = [nodesets.pod(7), nodesets.pod(8), nodesets.pod(name="other-1")]
    others = [
        msgspec.structs.replace(
            pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=owners)
        )
        for pod, owners in zip(others, ((), (former,), ()), strict=True)
    ]
    put(caches.pods, own, odd, others[2])
    assert worker_caches(caches).conflicting_pods(worker_set(wanted)) == ()
    put(caches.pods, *others)
    assert [
        pod.metadata.name for pod in worker_caches(caches).conflicting_pods(worker_set(wanted))
    ] == [
        "compute-7",
        "compute-8",
    ]


@pytest.mark.parametrize("content", [b"\xff\x00script", "d\u00fcr".encode()])
def test_the_hash_of_a_binary_file_is_that_of_its_bytes(content: bytes):
    clusters = new_clusters()
    encoded = {"prolog": base64.b64encode(content).decode()}
    meta = ObjectMeta(name="files", namespace="slurm")
    put(clusters.caches.config_maps, ConfigMap(metadata=meta, data={"a": "x"}, binary_data=encoded))
    refs = (LocalObjectReference(name="files"),)
    owner = ObjectMeta(name="slurm", namespace="slurm")
    controller = Controller(metadata=owner, spec=ControllerSpec(config_file_refs=refs))
    found = clusters.config_data(controller)["files"]
    sums = [
        f"{hashlib.sha256(one).hexdigest()}  {name}\n"
        for name, one in (("a", b"x"), ("prolog", content))
    ]
    assert content_hash(found) == hashlib.sha256("".join(sums).encode()).hexdigest()


def test_owners_match_by_group_and_kind():
    """Another operator's kind of the same name owns nothing here; another version of ours does."""
    ours, former, theirs, core = (
        msgspec.structs.replace(
            nodesets.pod(0).metadata,
            owner_references=(
                OwnerReference(api_version=version, kind="NodeSet", name="worker", controller=True),
            ),
        )
        for version in (
            "slinky.slurm.net/v1beta1",
            "slinky.slurm.net/v1alpha1",
            "slurm.nebius.ai/v1alpha1",
            "v1",
        )
    )
    lookup = new_clusters().caches.store
    for key_of in (owner_of(NODESETS), owners_of(NODESETS)):
        assert key_of(KubeObject(metadata=ours), lookup) == ["slurm/worker"]
        assert key_of(KubeObject(metadata=former), lookup) == ["slurm/worker"]
        assert key_of(KubeObject(metadata=theirs), lookup) == []
        assert key_of(KubeObject(metadata=core), lookup) == []
