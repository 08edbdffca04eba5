"""Fields of SlurmClusters and NodeSets that contradict spec.jailMode."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.api.admission import RelatedObjects
from penstock.api.nebius.jail_rules import node_set_jail_problem
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.api.registry import registry
from support import nebius
from support.nebius import ABSENT
from support.nebius_clusters import NODES_WITHOUT_JAIL, OLDER_WITHOUT_JAIL, WITHOUT_JAIL

OLDER, CURRENT, NODES = "slurmcluster-1.23-0", "slurmcluster-5.0-0", "nodesets-5.0-0"
ALONE = RelatedObjects()
CONTROLLER, LOGIN = "spec.slurmNodes.controller", "spec.slurmNodes.login"
SPOOL_SOURCE = {"volumeSourceName": "controller-spool"}
SOURCES = [
    {"name": name, "persistentVolumeClaim": {"claimName": "c"}}
    for name in ("slurm-scripts", "controller-spool")
]
PER_WORKER = {"spec.jailMode": "PerWorker"}
TEMPLATE = {
    "volumeClaimTemplateSpec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
}
OF_OPERATOR = [{"name": "jail-root", "image": "i"}]
WITHOUT = "spec.jailMode is None"
CONTRADICTIONS: list[tuple[str, dict[str, Any], str]] = [
    (CURRENT, {"spec.populateJail": {"image": "i", "k8sNodeFilterName": "cpu"}}, "populateJail"),
    (CURRENT, {"spec.sConfigController": {"node": {"k8sNodeFilterName": "cpu"}}}, "sConfigControl"),
    (CURRENT, {"spec.maintenance": "skipPopulateJail"}, "maintenance"),
    (CURRENT, {"spec.jobIsolation": "PerJob"}, "jobIsolation"),
    (CURRENT, {"spec.jobNetworkInterfaces": ["eth0"]}, "jobNetworkInterfaces"),
    *(
        (OLDER, {f"{path}.volumes.jail": {"volumeSourceName": "jail"}}, f"{path}.volumes.jail")
        for path in (CONTROLLER, LOGIN, "spec.slurmNodes.worker")
    ),
    *(
        (
            OLDER,
            {f"{path}.volumes.jailSubMounts": [{"name": "n", "mountPath": "/n", **SPOOL_SOURCE}]},
            f"{path}.volumes.jailSubMounts",
        )
        for path in (LOGIN, "spec.slurmNodes.worker")
    ),
    (
        CURRENT,
        {
            f"{LOGIN}.volumes.customMounts": [
                {"name": "n", "mountPath": "/mnt//jail.upper/n", **SPOOL_SOURCE}
            ]
        },
        f"{LOGIN}.volumes.customMounts[0].mountPath",
    ),
]


def bare(name: str) -> dict[str, Any]:
    return OLDER_WITHOUT_JAIL if name == OLDER else WITHOUT_JAIL


@pytest.mark.parametrize("name", [OLDER, CURRENT])
def test_a_cluster_without_a_jail_needs_no_field_of_it(name: str):
    sources = {"spec.volumeSources": SOURCES}
    if name == OLDER:
        sources = {}
    found = registry().validate_change(nebius.made(name, {**bare(name), **sources}), None, ALONE)
    assert found.problems == ()


@pytest.mark.parametrize(("name", "changes", "path"), CONTRADICTIONS)
def test_a_field_that_contradicts_the_absence_of_a_jail_is_rejected(
    name: str, changes: dict[str, Any], path: str
):
    """S177."""
    wanted = nebius.made(name, {**bare(name), **changes})
    found = registry().problems(wanted)
    assert [one for one in found if path in one.path and WITHOUT in one.message], found
    assert all(WITHOUT in one.message for one in found), found


def test_a_cluster_with_a_jail_names_the_image_that_fills_it():
    found = registry().problems(nebius.made(CURRENT, {"spec.populateJail": ABSENT}))
    assert [(one.path, one.message) for one in found] == [
        ("spec.populateJail", "must be given, unless spec.jailMode is None")
    ]


WORKER_JAIL = "spec.slurmNodes.worker.volumes.jail"


def test_each_worker_has_a_root_by_a_claim_template():
    """S177."""
    found = registry().validate_change(
        nebius.made(OLDER, {**PER_WORKER, WORKER_JAIL: TEMPLATE}), None, ALONE
    )
    assert found.problems == ()
    found = registry().validate_change(nebius.made(CURRENT, PER_WORKER), None, ALONE)
    assert found.problems == ()


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        (
            {
                **PER_WORKER,
                WORKER_JAIL: TEMPLATE,
                "spec.slurmNodes.worker.customInitContainers": OF_OPERATOR,
            },
            "spec.slurmNodes.worker.customInitContainers",
            "jail-root is a container of the operator",
        ),
        (PER_WORKER, WORKER_JAIL, "spec.jailMode is PerWorker: write volumeClaimTemplateSpec"),
        (
            {WORKER_JAIL: TEMPLATE},
            f"{WORKER_JAIL}.volumeClaimTemplateSpec",
            "only spec.jailMode: PerWorker fills",
        ),
        *(
            (
                {**PER_WORKER, WORKER_JAIL: TEMPLATE, f"{path}.volumes.jail": TEMPLATE},
                f"{path}.volumes.jail",
                "logins and slurmctld share one volume",
            )
            for path in (CONTROLLER, LOGIN)
        ),
    ],
)
def test_a_volume_that_contradicts_the_mode_is_rejected(
    changes: dict[str, Any], path: str, words: str
):
    found = registry().validate_change(nebius.made(OLDER, changes), None, ALONE).problems
    assert [(one.path, words in one.message) for one in found] == [(path, True)]


@pytest.mark.parametrize(
    ("cluster", "node_set", "words"),
    [
        ({}, {}, ""),
        (WITHOUT_JAIL, NODES_WITHOUT_JAIL, ""),
        (WITHOUT_JAIL, {"spec.slurmd.volumes.jailSubMounts": ()}, "volumes.jail: SlurmCluster"),
        (WITHOUT_JAIL, {"spec.slurmd.volumes.jail": ABSENT}, "jailSubMounts: SlurmCluster"),
        (
            WITHOUT_JAIL,
            {
                **NODES_WITHOUT_JAIL,
                "spec.slurmd.volumes.customVolumeMounts": [
                    {"name": "n", "mountPath": "/mnt/jail.upper"}
                ],
            },
            "paths without /mnt/jail.upper",
        ),
        ({}, {"spec.slurmd.volumes.jail": ABSENT}, "has a jail; name the volume with it"),
        (PER_WORKER, {"spec.slurmd.volumes.jail": TEMPLATE}, ""),
        (PER_WORKER, {}, "root for each worker (spec.jailMode is PerWorker); write volumeClaim"),
        ({}, {"spec.slurmd.volumes.jail": TEMPLATE}, "has one jail for all workers"),
        ({}, {"spec.customInitContainers": OF_OPERATOR}, ""),
        (
            PER_WORKER,
            {"spec.slurmd.volumes.jail": TEMPLATE, "spec.customInitContainers": OF_OPERATOR},
            "jail-root is a container of the operator",
        ),
    ],
)
def test_workers_of_a_node_set_fit_the_mode_of_their_cluster(
    cluster: dict[str, Any], node_set: dict[str, Any], words: str
):
    of, own = nebius.made(CURRENT, cluster), nebius.made(NODES, node_set)
    assert isinstance(of, SlurmCluster)
    assert isinstance(own, NodeSet)
    found = node_set_jail_problem(own, of)
    assert words in found
    assert bool(words) == bool(found)
