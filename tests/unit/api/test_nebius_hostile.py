"""Values that no pod and no daemon can have: each is rejected at the field that has it."""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec
import pytest

from penstock.api import crd
from penstock.api.admission import RelatedObjects
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import INFO, SlurmCluster
from penstock.api.nebius.volumes import JOB_ID
from penstock.api.registry import registry
from penstock.decide.rollout.budget import max_unavailable
from penstock.translate.nebius.worker_set import cluster_workers, node_set_workers
from support import nebius

OLDER, CURRENT, NODES = "slurmcluster-1.23-0", "slurmcluster-5.0-0", "nodesets-5.0-0"
JAILED = "jailedconfigs-0"
LOGIN, WORKER = "spec.slurmNodes.login", "spec.slurmNodes.worker"
SUB_MOUNTS, CUSTOM = f"{LOGIN}.volumes.jailSubMounts", f"{LOGIN}.volumes.customMounts"
PARTITIONS, FEATURES = "spec.partitionConfiguration.partitions", "spec.workerFeatures"
DATABASE = "spec.slurmNodes.accounting.mariadbOperator"
NINES = "9" * 5000
OF_JOBS, ON_NODES = f"{WORKER}.volumes.jailSubMounts", "spec.slurmd.volumes.jailSubMounts"
LOCAL: dict[str, Any] = {"emptyDir": {}}
NO_VARIABLE, DOLLAR = "is no variable here", "has a $ beside"
NO_PLACE, NO_PATH = "is no place for a mount", "is no path within a volume"


def mounts(*paths: str, **fields: Any) -> list[dict[str, Any]]:
    source = {"volumeSourceName": "controller-spool"}
    return [
        {"name": f"m{index}", "mountPath": path, **source, **fields}
        for index, path in enumerate(paths)
    ]


Case = tuple[str, dict[str, Any], str, str]
INTERFACES = "spec.jobNetworkInterfaces"
NO_INTERFACES = (
    *("", "eth0 ", "eth0,eth1", "eth0 x=y", "eth0\nrequired x.so", "eth0\n", "a" * 16, "=eth0"),
    *("^lo", "0eth", ".", "eth0:1", "10.0.0.0/8", "eth\xe9"),
)
ALWAYS: list[Case] = [
    *(
        (CURRENT, {INTERFACES: ["eth0", name]}, f"{INTERFACES}[1]", "is no name of a network inter")
        for name in NO_INTERFACES
    ),
    (CURRENT, {INTERFACES: ["eth0", "eth0"]}, INTERFACES, "is there 2 times"),
    (CURRENT, {INTERFACES: [f"eth{n}" for n in range(9)]}, INTERFACES, "write at most 8"),
    *(
        (CURRENT, {path: mounts(place)}, f"{path}[0].mountPath", NO_PLACE)
        for path in (SUB_MOUNTS, CUSTOM)
        for place in ("/../etc", "a/../../b", "..", "/a:b", "/a\nb", "/a" * 3000)
    ),
    (CURRENT, {CUSTOM: mounts("/")}, f"{CUSTOM}[0].mountPath", NO_PLACE),
    (CURRENT, {CUSTOM: mounts("")}, f"{CUSTOM}[0].mountPath", NO_PLACE),
    *(
        (CURRENT, {SUB_MOUNTS: mounts("/d", subPath=path)}, f"{SUB_MOUNTS}[0].subPath", NO_PATH)
        for path in ("/etc", "../x", "a/../b", "a\x00")
    ),
    *(
        (CURRENT, {path: mounts("/d", subPath=f"a/{text}")}, f"{path}[0].subPath", NO_VARIABLE)
        for path, text in ((SUB_MOUNTS, JOB_ID), (CUSTOM, JOB_ID), (SUB_MOUNTS, "${X"))
    ),
    *(
        (OLDER, {OF_JOBS: mounts("/d", subPath=f"{JOB_ID}/{text}")}, f"{OF_JOBS}[0].subPath", words)
        for text, words in (("${SLURM_JOB_USER}", NO_VARIABLE), ("$X", DOLLAR), ("$(X)", DOLLAR))
    ),
    (
        NODES,
        {ON_NODES: [{"name": "m", "mountPath": "/d", "subPath": "${X}", "volumeSource": LOCAL}]},
        f"{ON_NODES}[0].subPath",
        "'${X}' is no variable here: known is ${SLURM_JOB_ID}, in subPath of a worker's",
    ),
    (OLDER, {OF_JOBS: mounts(f"/{JOB_ID}")}, f"{OF_JOBS}[0].mountPath", NO_VARIABLE),
    (OLDER, {OF_JOBS: mounts("/$X", subPath=JOB_ID)}, f"{OF_JOBS}[0].mountPath", DOLLAR),
    (OLDER, {OF_JOBS: mounts("/", subPath=JOB_ID)}, f"{OF_JOBS}[0].mountPath", "jail itself"),
    (OLDER, {OF_JOBS: mounts(*"abcdefghi", subPath=JOB_ID)}, OF_JOBS, "has 9 mounts with"),
    (CURRENT, {CUSTOM: mounts("/d", "d/")}, CUSTOM, "'/d' is there 2 times"),
    (CURRENT, {CUSTOM: mounts("/d", name="Not_a_label")}, f"{CUSTOM}[0].name", "no name of a"),
    (CURRENT, {CUSTOM: mounts("/d", name="a" * 64)}, f"{CUSTOM}[0].name", "at most 63"),
    (
        CURRENT,
        {"spec.volumeSources.1": {"name": "controller-spool", "persistentVolumeClaim": {}}},
        "spec.volumeSources[1].persistentVolumeClaim.claimName",
        "must be given",
    ),
    (
        NODES,
        {"spec.slurmd.volumes.jail": {"persistentVolumeClaim": {"claimName": ""}}},
        "spec.slurmd.volumes.jail.persistentVolumeClaim.claimName",
        "must be given",
    ),
    *(
        (CURRENT, {"metadata.name": name}, "metadata.name", "a letter first")
        for name in ("a.b", "1a", "a-", "Ä")
    ),
    (CURRENT, {"metadata.name": "a" * 41}, "metadata.name", "41 characters and Slurm takes 40"),
    (NODES, {"metadata.name": "a.b"}, "metadata.name", "begins the host names of the nodes"),
    (NODES, {"metadata.name": "a" * 62}, "metadata.name", "the host name has 64 characters"),
    (NODES, {"metadata.name": "a" * 45}, "metadata.name", "name of the Service has 67"),
    (NODES, {"metadata.name": "all"}, "metadata.name", "means all nodes of the cluster"),
    (NODES, {"spec.clusterName": "a/../b"}, "spec.clusterName", "the name of no SlurmCluster"),
    (NODES, {"spec.replicas": 2**31 - 1}, "spec.replicas", "more than 65536"),
    (OLDER, {f"{WORKER}.size": 65_537}, f"{WORKER}.size", "more than 65536"),
    (NODES, {"spec.slurmd.port": 65_536}, "spec.slurmd.port", "65536 is no port"),
    (CURRENT, {f"{LOGIN}.sshd.port": -1}, f"{LOGIN}.sshd.port", "-1 is no port"),
    (
        NODES,
        {"spec.slurmd.customEnv": [{"value": "x"}]},
        "spec.slurmd.customEnv[0].name",
        "must be given",
    ),
    (
        CURRENT,
        {f"{LOGIN}.sshd.customEnv": [{"name": "A", "value": 5}]},
        f"{LOGIN}.sshd.customEnv[0].value",
        "write text",
    ),
    (
        CURRENT,
        {"spec.slurmNodes.exporter.exporterContainer.customEnv": [{}]},
        "spec.slurmNodes.exporter.exporterContainer.customEnv[0].name",
        "must be given",
    ),
    (
        OLDER,
        {f"{DATABASE}.customEnv": [{}]},
        f"{DATABASE}.customEnv[0].name",
        "must be given",
    ),
    (
        NODES,
        {"spec.munge.livenessProbe": {"tcpSocket": [1]}},
        "spec.munge.livenessProbe.tcpSocket",
        "write a mapping",
    ),
    (CURRENT, {f"{LOGIN}.sshd.resources.cpu": "-1"}, f"{LOGIN}.sshd.resources.cpu", "below 0"),
    (
        NODES,
        {"spec.slurmd.volumes.sharedMemorySize": "-1Gi"},
        "spec.slurmd.volumes.sharedMemorySize",
        "below 0",
    ),
    (
        CURRENT,
        {"spec.sConfigController.reconfigurePollInterval": "-5s"},
        "spec.sConfigController.reconfigurePollInterval",
        "must be above 0",
    ),
    (CURRENT, {"spec.customSlurmConfig": "#\n" * 200_000}, "spec.customSlurmConfig", "at most"),
    *(
        (JAILED, {"spec.items.0.path": path}, "spec.items[0].path", "is no file of the jail")
        for path in ("/etc//x", "/etc/./x", "//etc/x", "/etc/x\0", "/", "", "/etc/\n")
    ),
]
"""Faults with which a stored object is not reconciled either."""
WRITTEN: list[Case] = [
    *(
        (CURRENT, {CUSTOM: mounts(path)}, f"{CUSTOM}[0].mountPath", "Slurm's daemons need")
        for path in ("/mnt/jail", "/run/munge/", "/var/spool/slurmd")
    ),
    *(
        (CURRENT, {SUB_MOUNTS: mounts(path)}, f"{SUB_MOUNTS}[0].mountPath", "Slurm's daemons need")
        for path in ("etc/slurm", "/dev", "/proc/")
    ),
    (NODES, {"spec.replicas": -1}, "spec.replicas", "-1 is below 0"),
    (OLDER, {f"{WORKER}.size": -3}, f"{WORKER}.size", "-3 is below 0"),
    (CURRENT, {f"{LOGIN}.size": -3}, f"{LOGIN}.size", "-3 is below 0"),
    (CURRENT, {"spec.sConfigController.runAsUid": -1}, "spec.sConfigController.runAsUid", "below"),
    *(
        (OLDER, {f"{WORKER}.maxUnavailable": most}, f"{WORKER}.maxUnavailable", "no number of")
        for most in ("many", "0%", "5", -1, 0, f"{NINES}%")
    ),
    (NODES, {"spec.maxUnavailable": f"{NINES}%"}, "spec.maxUnavailable", "out of range"),
    *(
        (CURRENT, {path: "/a\nKillWait=1"}, path, "control character")
        for path in (
            "spec.plugStackConfig.pyxis.importerPath",
            "spec.plugStackConfig.ncclDebug.outputDirectory",
            "spec.slurmNodes.accounting.slurmConfig.accountingStoreFlags",
            "spec.slurmNodes.accounting.slurmConfig.priorityWeightTRES",
        )
    ),
    (
        CURRENT,
        {
            "spec.healthCheckConfig": {
                "healthCheckInterval": 1,
                "healthCheckProgram": "/a\nKillWait=1",
                "healthCheckNodeState": [{"state": "ANY"}],
            }
        },
        "spec.healthCheckConfig.healthCheckProgram",
        "control character",
    ),
    *(
        (NODES, {"spec.nodeConfig.features": [text]}, "spec.nodeConfig.features[0]", "no feature")
        for text in ("a b", 'a"b', "a=b")
    ),
    (NODES, {"spec.nodeConfig.static": 'Comment="a'}, "spec.nodeConfig.static", "close it"),
    (NODES, {"spec.nodeConfig.static": "NodeName=x"}, "spec.nodeConfig.static", "remove it"),
    (
        NODES,
        {"spec.nodeConfig.gresConfig": ["NodeName=x Name=gpu"]},
        "spec.nodeConfig.gresConfig[0]",
        "remove it",
    ),
    (
        OLDER,
        {FEATURES: [{"name": "a b=c", "hostlistExpr": "worker-0"}]},
        f"{FEATURES}[0].name",
        "is no feature",
    ),
    (
        OLDER,
        {FEATURES: [{"name": "a", "hostlistExpr": "worker-0", "nodesetName": "x Feature=y"}]},
        f"{FEATURES}[0].nodesetName",
        "is no feature",
    ),
    (
        CURRENT,
        {f"{PARTITIONS}.0.config": "State=UP PartitionName=x"},
        f"{PARTITIONS}[0].config",
        "names a partition",
    ),
]
"""Faults for which only a write is rejected."""


def ids(cases: list[Case]) -> list[str]:
    return [f"{path}-{value!s:.30}" for _, changes, path, _ in cases for value in changes.values()]


@pytest.mark.parametrize(("name", "changes", "path", "words"), ALWAYS, ids=ids(ALWAYS))
def test_a_value_that_no_pod_can_have_is_found_at_its_field(
    name: str, changes: dict[str, Any], path: str, words: str
):
    found = registry().problems(nebius.made(name, changes))
    assert [one for one in found if one.path == path and words in one.message], found


@pytest.mark.parametrize("name", NO_INTERFACES)
def test_the_schema_rejects_what_is_no_interface(name: str):
    """S178: the value is a part of a line of plugstack.conf."""
    spec = crd.schema(INFO)["properties"]["spec"]
    item = spec["properties"]["jobNetworkInterfaces"]["items"]
    # Of RE2, which matches `$` at the end alone.
    assert not re.search(item["pattern"].replace("$", r"\Z"), name)
    (one,) = item["x-kubernetes-validations"]
    assert item["pattern"] in one["rule"]
    assert "write a letter, then at most 14 letters" in one["message"]


@pytest.mark.parametrize("name", ["eth0", "e", "enp189s0f0np0", "net1.100", "bond_a-1", "a" * 15])
def test_names_of_interfaces_are_accepted(name: str):
    assert registry().problems(nebius.made(CURRENT, {INTERFACES: [name, "lo"]})) == []


@pytest.mark.parametrize(("name", "changes", "path", "words"), WRITTEN, ids=ids(WRITTEN))
def test_a_value_that_a_daemon_would_misread_is_rejected_when_it_is_written(
    name: str, changes: dict[str, Any], path: str, words: str
):
    obj = nebius.made(name, changes)
    assert registry().problems(obj) == []
    found = registry().validate_change(obj, None, RelatedObjects()).problems
    assert [one for one in found if one.path == path and words in one.message], found


def test_a_node_set_may_not_have_the_name_of_the_workers_of_its_cluster():
    """Both would have the pods worker-0, worker-1 and so on."""
    older = cast("SlurmCluster", nebius.made(OLDER))
    changes = {"metadata.name": "worker", "spec.clusterName": older.metadata.name}
    made = nebius.made(NODES, changes)
    (found,) = registry().validate_change(made, None, RelatedObjects((older,))).problems
    assert (found.path, "spec.slurmNodes.worker" in found.message) == ("metadata.name", True)
    other = nebius.made(NODES, {**changes, "metadata.name": "more"})
    assert registry().validate_change(other, None, RelatedObjects((older,))).problems == ()
    current = nebius.made(CURRENT, {"metadata.name": older.metadata.name})
    assert registry().validate_change(made, None, RelatedObjects((current,))).problems == ()


@pytest.mark.parametrize(
    ("declared", "workers", "most"),
    [
        ("20%", 10, 2),
        ("20%", 2, 1),
        ("20%", 0, 1),
        (3, 10, 3),
        ("many", 10, 1),
        ("0%", 10, 1),
        (-4, 10, 1),
        (f"{NINES}%", 10, 1),
    ],
)
def test_a_budget_is_a_number_of_workers_that_is_at_least_1(
    declared: int | str, workers: int, most: int
):
    """S121: 20 % of 2 is rounded up to 1; a stored budget without sense is the least one."""
    older = nebius.manifest(OLDER, {f"{WORKER}.maxUnavailable": declared})
    current = nebius.manifest(NODES, {"spec.maxUnavailable": declared})
    own = cluster_workers(msgspec.convert(older, SlurmCluster))
    assert own is not None
    for one in (own, node_set_workers(msgspec.convert(current, NodeSet))):
        assert max_unavailable(one, workers) == most
