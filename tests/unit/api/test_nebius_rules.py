"""What is wrong with an object of `slurm.nebius.ai`, in the words that its user reads."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.api.admission import RelatedObjects
from penstock.api.kubernetes.kinds import Secret
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.nebius import protected_secrets, unsupported_fields
from penstock.api.nebius.labels import PARENT_CLUSTER, PROTECTED, PROTECTED_FOR
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.related_objects import unknown_node_sets
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.api.registry import registry, rules_of
from penstock.api.registry import unsupported_fields as unsupported
from support import nebius
from support.nebius import ABSENT

OLDER, CURRENT = "slurmcluster-1.23-0", "slurmcluster-5.0-0"
NODES, CHECK = "nodesets-5.0-0", "activechecks-5.0-0"
NCCL = {"enabled": True, "image": "", "k8sNodeFilterName": "cpu"}


def nccl(**arguments: str) -> dict[str, Any]:
    """The benchmark, enabled with these arguments."""
    return {"spec.periodicChecks": {"ncclBenchmark": {**NCCL, "ncclArguments": arguments}}}


ONE, EACH = "activechecks-5.0-1", "activechecks-5.0-2"
"""Checks of type slurmJob: one job, and one on each worker."""
ALONE = RelatedObjects()
CONTROLLER = "spec.slurmNodes.controller"
LOGIN = "spec.slurmNodes.login"
ACCOUNTING = "spec.slurmNodes.accounting"
PVC = {"persistentVolumeClaim": {"claimName": "c"}}
SOURCES = [{"name": name, **PVC} for name in ("slurm-scripts", "controller-spool", "jail")]
KNOWN_FILTERS = "no entry of spec.k8sNodeFilters; known: cpu, system"
KNOWN_SOURCES = "no entry of spec.volumeSources; known: controller-spool, jail, slurm-scripts"

WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    *(
        (
            OLDER,
            {
                f"{ACCOUNTING}.enabled": True,
                f"{ACCOUNTING}.externalDB": {"enabled": True, "host": host},
            },
            f"{ACCOUNTING}.externalDB.host",
            "no host",
        )
        for host in ("db:3306", "db StorageUser=root", "db#")
    ),
    (CURRENT, {"spec": ABSENT}, "spec", "must be given"),
    *(
        (CURRENT, {f"{path}.k8sNodeFilterName": "gpu"}, f"{path}.k8sNodeFilterName", KNOWN_FILTERS)
        for path in (
            "spec.populateJail",
            "spec.sConfigController.node",
            CONTROLLER,
            LOGIN,
            ACCOUNTING,
            "spec.slurmNodes.rest",
        )
    ),
    (
        OLDER,
        {"spec.slurmNodes.worker.k8sNodeFilterName": "disk"},
        "spec.slurmNodes.worker.k8sNodeFilterName",
        "known: cpu, gpu, no-gpu, system",
    ),
    (
        CURRENT,
        {"spec.k8sNodeFilters.1.name": "cpu"},
        "spec.k8sNodeFilters",
        "'cpu' is there 2 times",
    ),
    (
        CURRENT,
        {"spec.k8sNodeFilters.0.tolerations": [{"key": 1}]},
        "spec.k8sNodeFilters[0].tolerations[0].key",
        "write text",
    ),
    (
        CURRENT,
        {"spec.volumeSources.2.name": "root"},
        "spec.volumeSources",
        "an entry named jail must be there",
    ),
    (
        CURRENT,
        {"spec.volumeSources.2.emptyDir": {}},
        "spec.volumeSources[2]",
        "has emptyDir and persistentVolumeClaim: keep one",
    ),
    (
        CURRENT,
        {"spec.volumeSources.2": {"name": "jail"}},
        "spec.volumeSources[2]",
        "write one type of volume",
    ),
    *(
        (CURRENT, {f"{path}.volumeSourceName": "x"}, f"{path}.volumeSourceName", KNOWN_SOURCES)
        for path in (
            f"{CONTROLLER}.volumes.spool",
            f"{CONTROLLER}.volumes.jail",
            f"{LOGIN}.volumes.jail",
            "spec.populateJail.jailSnapshotVolume",
        )
    ),
    (
        CURRENT,
        {f"{LOGIN}.volumes.customMounts.0.volumeSourceName": "x"},
        f"{LOGIN}.volumes.customMounts[0].volumeSourceName",
        KNOWN_SOURCES,
    ),
    (
        CURRENT,
        {f"{LOGIN}.volumes.jailSubMounts.0.volumeSourceName": "x"},
        f"{LOGIN}.volumes.jailSubMounts[0].volumeSourceName",
        KNOWN_SOURCES,
    ),
    (
        OLDER,
        {"spec.slurmNodes.worker.volumes.spool.volumeSourceName": "jail"},
        "spec.slurmNodes.worker.volumes.spool",
        "write either volumeSourceName or volumeClaimTemplateSpec",
    ),
    (
        CURRENT,
        {f"{CONTROLLER}.volumes.jail": {}},
        f"{CONTROLLER}.volumes.jail",
        "write either volumeSourceName or volumeClaimTemplateSpec",
    ),
    (
        CURRENT,
        {f"{LOGIN}.volumes.customMounts.1.name": "slurm-scripts"},
        f"{LOGIN}.volumes.customMounts",
        "'slurm-scripts' is there 2 times",
    ),
    (
        CURRENT,
        {"spec.populateJail.jailSnapshotVolume": {"volumeClaimTemplateSpec": {}}},
        "spec.populateJail.jailSnapshotVolume.volumeClaimTemplateSpec",
        "a new PVC has no snapshot",
    ),
    (
        CURRENT,
        {"spec.partitionConfiguration.partitions": []},
        "spec.partitionConfiguration",
        "requires at least one partition",
    ),
    (
        CURRENT,
        {"spec.partitionConfiguration.partitions.1.name": "main"},
        "spec.partitionConfiguration.partitions",
        "'main' is there 2 times",
    ),
    (
        CURRENT,
        {"spec.partitionConfiguration": {"configType": "custom", "rawConfig": ["#", "Nodes=x"]}},
        "spec.partitionConfiguration.rawConfig[1]",
        "'Nodes=x' is no partition: begin the line with PartitionName=",
    ),
    (
        OLDER,
        {
            "spec.partitionConfiguration": {
                "configType": "structured",
                "partitions": [{"name": "p", "nodeSetRefs": ["a"]}],
            }
        },
        "spec.slurmNodes.worker.size",
        "must be zero when NodeSetRefs are used",
    ),
    (
        CURRENT,
        {"spec.sConfigController.reconfigureWaitTimeout": "20s"},
        "spec.sConfigController.reconfigureWaitTimeout",
        "must be greater than ReconfigurePollInterval",
    ),
    (
        CURRENT,
        {"spec.sConfigController.reconfigurePollInterval": "often"},
        "spec.sConfigController.reconfigurePollInterval",
        "not a duration",
    ),
    (
        CURRENT,
        {f"{LOGIN}.sshdServiceType": "ClusterIP"},
        f"{LOGIN}.sshdServiceType",
        "write LoadBalancer or NodePort",
    ),
    (
        CURRENT,
        {f"{ACCOUNTING}.slurmdbd": ABSENT},
        f"{ACCOUNTING}.slurmdbd.image",
        "must be given while accounting is enabled",
    ),
    (
        CURRENT,
        {f"{ACCOUNTING}.mariadbOperator.enabled": False},
        ACCOUNTING,
        "enable one of externalDB, mariadbOperator and embeddedDB",
    ),
    (
        CURRENT,
        {f"{ACCOUNTING}.externalDB.enabled": True},
        ACCOUNTING,
        "enable one of externalDB, mariadbOperator and embeddedDB",
    ),
    (
        CURRENT,
        {f"{ACCOUNTING}.embeddedDB": {"enabled": True, "image": "i"}},
        ACCOUNTING,
        "enable one of externalDB, mariadbOperator and embeddedDB",
    ),
    (
        CURRENT,
        {
            f"{ACCOUNTING}.mariadbOperator.enabled": False,
            f"{ACCOUNTING}.embeddedDB": {"enabled": True, "image": ""},
        },
        f"{ACCOUNTING}.embeddedDB.image",
        "name an image of MariaDB",
    ),
    (
        CURRENT,
        {
            f"{ACCOUNTING}.mariadbOperator.enabled": False,
            f"{ACCOUNTING}.embeddedDB": {
                "enabled": True,
                "image": "i",
                "storage": {"size": "0"},
            },
        },
        f"{ACCOUNTING}.embeddedDB.storage.size",
        "above 0",
    ),
    (
        CURRENT,
        {
            f"{ACCOUNTING}.mariadbOperator.enabled": False,
            f"{ACCOUNTING}.embeddedDB": {
                "enabled": True,
                "image": "i",
                "resources": {"requests": "much"},
            },
        },
        f"{ACCOUNTING}.embeddedDB.resources.requests",
        "",
    ),
    (
        CURRENT,
        {f"{ACCOUNTING}.mariadbOperator.replication.syncBinlog": "often"},
        f"{ACCOUNTING}.mariadbOperator.replication.syncBinlog",
        "'often' is no number",
    ),
    (
        CURRENT,
        {f"{CONTROLLER}.customInitContainers": [{"image": "i"}]},
        f"{CONTROLLER}.customInitContainers[0].name",
        "must be given",
    ),
    *(
        (
            CURRENT,
            {f"{path}.customInitContainers": [{"name": "munge", "image": "i"}]},
            f"{path}.customInitContainers[0].name",
            "'munge' is a container of the operator's",
        )
        for path in (CONTROLLER, "spec.sConfigController.node")
    ),
    *(
        (
            CURRENT,
            {f"{LOGIN}.volumes.customMounts.0.name": name},
            f"{LOGIN}.volumes.customMounts[0].name",
            f"{name!r} is the name of another volume of the pod",
        )
        for name in ("jail", "munge-socket", "scratch")
    ),
    *(
        (
            CURRENT,
            {f"{path}.sssd": {"image": "i"}, f"{path}.{field}": value},
            f"{path}.{where}",
            words,
        )
        for path in (CONTROLLER, LOGIN)
        for field, value, where, words in (
            (
                "customInitContainers",
                [{"name": "sssd", "image": "i"}],
                "customInitContainers[0].name",
                "'sssd' is a container of the operator's",
            ),
            (
                "volumes.customMounts",
                [{"name": "sssd-conf", "mountPath": "/x", "volumeSourceName": "jail"}],
                "volumes.customMounts[0].name",
                "'sssd-conf' is the name of another volume of the pod",
            ),
            ("sssd.livenessProbe", {"exec": 1}, "sssd.livenessProbe.exec", ""),
        )
    ),
    *(
        (
            NODES,
            {"spec.sssd": {"image": {"repository": "r"}, "resources": {}}, field: value},
            where,
            words,
        )
        for field, value, where, words in (
            (
                "spec.customInitContainers",
                [{"name": "sssd", "image": "i"}],
                "spec.customInitContainers[0].name",
                "'sssd' is a container of the operator's",
            ),
            (
                "spec.slurmd.volumes.jailSubMounts.0.name",
                "sssd-socket",
                "spec.slurmd.volumes.jailSubMounts[0].name",
                "'sssd-socket' is the name of another volume of the pod",
            ),
            ("spec.sssd.resources", {"cpu": -1}, "spec.sssd.resources.cpu", "is below 0"),
        )
    ),
    (
        NODES,
        {"spec.slurmd.volumes.jailSubMounts.0.name": "worker-spool"},
        "spec.slurmd.volumes.jailSubMounts[0].name",
        "'worker-spool' is the name of another volume of the pod",
    ),
    (NODES, {"spec": ABSENT}, "spec", "must be given"),
    (NODES, {"spec.clusterName": ""}, "spec.clusterName", PARENT_CLUSTER),
    *(
        (NODES, {"metadata.name": name}, "metadata.name", "is the name of a StatefulSet")
        for name in ("controller", "soperator-login")
    ),
    (NODES, {"spec.slurmd.resources.cpu": "0"}, "spec.slurmd.resources.cpu", "above 0"),
    (NODES, {"spec.slurmd.resources.memory": ABSENT}, "spec.slurmd.resources.memory", "above 0"),
    (
        NODES,
        {"spec.slurmd.customEnv": [{"name": "SOPERATOR_NODE_REAL_MEMORY_BYTES", "value": "1"}]},
        "spec.slurmd.customEnv",
        "is the operator's: remove it",
    ),
    (
        NODES,
        {"spec.slurmd.volumes.spool": {"emptyDir": {}, "volumeClaimTemplateSpec": {}}},
        "spec.slurmd.volumes.spool",
        "has emptyDir and volumeClaimTemplateSpec",
    ),
    (
        NODES,
        {"spec.slurmd.volumes.jail": {"emptyDir": {}, **PVC}},
        "spec.slurmd.volumes.jail",
        "has emptyDir and persistentVolumeClaim",
    ),
    (
        NODES,
        {"spec.slurmd.volumes.jailSubMounts.0.volumeSource": ABSENT},
        "spec.slurmd.volumes.jailSubMounts[0]",
        "write either volumeSource or volumeClaimTemplateSpec",
    ),
    (
        NODES,
        {
            "spec.slurmd.volumes.customVolumeMounts": [
                {"name": "a", "mountPath": "/", "volumeSource": {}}
            ]
        },
        "spec.slurmd.volumes.customVolumeMounts[0].volumeSource",
        "write one type of volume",
    ),
    (
        NODES,
        {"spec.affinity": {"nodeAffinity": []}},
        "spec.affinity.nodeAffinity",
        "write a mapping",
    ),
    (
        "nodesetpowerstates-5.0-0",
        {"spec.nodeSetRef": "other"},
        "spec.nodeSetRef",
        "name the object like its NodeSet",
    ),
    (
        "nodesetpowerstates-5.0-0",
        {"spec.activeNodes": [0, -1]},
        "spec.activeNodes",
        "-1 is no ordinal",
    ),
    *(
        (
            "jailedconfigs-0",
            {"spec.items.0.path": path},
            "spec.items[0].path",
            "is no file of the jail",
        )
        for path in ("etc/slurm", "/etc/../x", "/etc/")
    ),
    ("jailedconfigs-0", {"spec.defaultMode": 1000}, "spec.defaultMode", "1000 is no mode"),
    (
        "jailedconfigs-0",
        {"spec.items.1.path": "/etc/slurm/slurm.conf"},
        "spec.items",
        "'/etc/slurm/slurm.conf' is there 2 times",
    ),
    (CHECK, {"spec": ABSENT}, "spec", "must be given"),
    (CHECK, {"spec.checkType": "slurmJob"}, "spec.slurmJobSpec", "must be given for checkType"),
    (EACH, {"spec.checkType": "k8sJob"}, "spec.k8sJobSpec", "must be given for checkType"),
    (EACH, {"spec.slurmJobSpec.sbatchScript": ""}, "spec.slurmJobSpec", "sbatchScriptRefName"),
    (
        EACH,
        {"spec.slurmJobSpec.sbatchScript": "true"},
        "spec.slurmJobSpec.sbatchScript",
        "does not begin with #!",
    ),
    (EACH, {"spec.slurmJobSpec.maxNumberOfJobs": -1}, "spec.slurmJobSpec.maxNumberOfJobs", "-1"),
    (
        CHECK,
        {"spec.k8sJobSpec.jobContainer.image": ""},
        "spec.k8sJobSpec.jobContainer.image",
        "must be given",
    ),
    (CHECK, {"spec.schedule": "61 * * * *"}, "spec.schedule", "'61' is no minute"),
    (CHECK, {"spec.schedule": "daily"}, "spec.schedule", "has 1 fields: write five"),
    (CHECK, {"spec.schedule": "TZ=UTC 0 0 * * *"}, "spec.schedule", "names a time zone"),
    (CHECK, {"spec.name": "Not_A_Label"}, "spec.name", "names the container and the Job"),
    (CHECK, {"spec.name": "n" * 52}, "spec.name", "at most 51 characters"),
    (CHECK, {"spec.name": "munge"}, "spec.name", "is a container of the operator's"),
    (CHECK, {"metadata.name": "n" * 53}, "metadata.name", "a CronJob takes 52"),
    (CHECK, {"spec.slurmClusterRefName": ""}, "spec.slurmClusterRefName", "must be given"),
    (CHECK, {"spec.activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds", "at least 1"),
    (
        OLDER,
        {"spec.periodicChecks": {"ncclBenchmark": {**NCCL, "schedule": "x"}}},
        "spec.periodicChecks.ncclBenchmark.schedule",
        "",
    ),
    (OLDER, nccl(minBytes="$(id)"), "spec.periodicChecks.ncclBenchmark.ncclArguments.minBytes", ""),
    (OLDER, nccl(maxBytes="8 Gb"), "spec.periodicChecks.ncclBenchmark.ncclArguments.maxBytes", ""),
    (OLDER, nccl(stepFactor="0"), "spec.periodicChecks.ncclBenchmark.ncclArguments.stepFactor", ""),
    (
        OLDER,
        nccl(timeout="20:00\n#SBATCH --uid=0"),
        "spec.periodicChecks.ncclBenchmark.ncclArguments.timeout",
        "a time of sbatch",
    ),
    (
        OLDER,
        nccl(thresholdMoreThan="fast"),
        "spec.periodicChecks.ncclBenchmark.ncclArguments.thresholdMoreThan",
        "GB/s",
    ),
    (CHECK, {"spec.failedJobsHistoryLimit": -1}, "spec.failedJobsHistoryLimit", "0 or more"),
    (
        EACH,
        {"spec.failureReactions.drainSlurmNode.drainReasonPrefix": "a\nb"},
        "spec.failureReactions.drainSlurmNode.drainReasonPrefix",
        "printable",
    ),
    (
        EACH,
        {"spec.failureReactions": {"commentSlurmNode": {"commentPrefix": "a\nb"}}},
        "spec.failureReactions.commentSlurmNode.commentPrefix",
        "printable",
    ),
    (
        EACH,
        {"spec.successReactions": {"removeReservation": {"prefix": "a b"}}},
        "spec.successReactions.removeReservation.prefix",
        "letters, digits",
    ),
    (
        EACH,
        {"spec.failureReactions": {"addReservation": {"prefix": "activecheck.x"}}},
        "spec.failureReactions.addReservation.prefix",
        "not activecheck. first",
    ),
    (CHECK, {"spec.dependsOn": ["a", "a"]}, "spec.dependsOn", "'a' is there 2 times"),
    (
        EACH,
        {"spec.slurmJobSpec.jobContainer.volumeMounts": [{"name": "a"}]},
        "spec.slurmJobSpec.jobContainer.volumeMounts[0].mountPath",
        "must be given",
    ),
    (
        "nodeconfigurator-5.0-0",
        {"spec.customContainer": {"enabled": True}},
        "spec.customContainer.image",
        "must be given while it is enabled",
    ),
]
IDS = [f"{name}-{path}" for name, _, path, _ in WRONG]


@pytest.mark.parametrize(("name", "changes", "path", "words"), WRONG, ids=IDS)
def test_a_fault_is_found_at_its_field(name: str, changes: dict[str, Any], path: str, words: str):
    """D46, D64."""
    found = registry().problems(nebius.made(name, changes))
    assert [one for one in found if one.path == path and words in one.message], found


def test_a_jailed_config_without_items_has_all_keys():
    assert not list(registry().problems(nebius.made("jailedconfigs-0", {"spec.items": []})))


@pytest.mark.parametrize("name", nebius.names())
def test_an_object_of_a_real_cluster_has_no_fault(name: str):
    assert registry().validate_change(nebius.made(name), None, ALONE).problems == ()


AT_ADMISSION: list[tuple[str, dict[str, Any], str, str]] = [
    (
        CURRENT,
        {"spec.slurmNodes.exporter.k8sNodeFilterName": "gpu"},
        "spec.slurmNodes.exporter.k8sNodeFilterName",
        KNOWN_FILTERS,
    ),
    (
        CURRENT,
        {"spec.volumeSources": [*SOURCES, {"name": "jail", **PVC}]},
        "spec.volumeSources",
        "'jail' is there 2 times",
    ),
    (
        CURRENT,
        {f"{LOGIN}.sshdServiceNodePort": 32768},
        f"{LOGIN}.sshdServiceNodePort",
        "32768 is no port of Kubernetes nodes: write one from 30000 to 32767",
    ),
    (
        CURRENT,
        {f"{LOGIN}.userIsolation.memoryHigh": "0"},
        f"{LOGIN}.userIsolation.memoryHigh",
        "must be above 0",
    ),
    (
        CURRENT,
        {f"{LOGIN}.userIsolation.memoryMax": "9Gi"},
        f"{LOGIN}.userIsolation.memoryMax",
        "must be below the memory of sshd, 9Gi",
    ),
    (
        CURRENT,
        {f"{LOGIN}.userIsolation.memoryMax": "7Gi"},
        f"{LOGIN}.userIsolation.memoryHigh",
        "must not exceed memoryMax",
    ),
    (
        CURRENT,
        {"spec.secrets.sshdKeysName": "other/keys"},
        "spec.secrets.sshdKeysName",
        "'other/keys' can be the name of no Secret",
    ),
    (
        OLDER,
        {"spec.workerFeatures.0.hostlistExpr": "worker-[1-"},
        "spec.workerFeatures[0].hostlistExpr",
        "worker-[1-",
    ),
    *(
        (NODES, {"spec.maxUnavailable": most}, "spec.maxUnavailable", "no more than 500 workers")
        for most in (0, 501, "0%", "some")
    ),
    (NODES, {"spec.replicas": 5000, "spec.maxUnavailable": "20%"}, "spec.maxUnavailable", "500"),
]


@pytest.mark.parametrize(
    ("name", "changes", "path", "words"), AT_ADMISSION, ids=[path for _, _, path, _ in AT_ADMISSION]
)
def test_a_write_is_rejected_with_which_a_stored_object_works(
    name: str, changes: dict[str, Any], path: str, words: str
):
    obj = nebius.made(name, changes)
    assert registry().problems(obj) == []
    found = registry().validate_change(obj, None, ALONE).problems
    assert [one for one in found if one.path == path and words in one.message], found


def test_another_field_of_a_faulty_stored_object_can_be_changed():
    faults = {f"{LOGIN}.k8sNodeFilterName": "gone", f"{LOGIN}.sshdServiceNodePort": 1}
    old = nebius.made(CURRENT, faults)
    new = nebius.made(CURRENT, {**faults, f"{LOGIN}.size": 3})
    result = registry().validate_change(new, old, ALONE)
    assert result.problems == ()
    assert any("'gone'" in one and "(it was so before)" in one for one in result.warnings)
    worse = nebius.made(CURRENT, {**faults, "spec.populateJail.k8sNodeFilterName": "gone"})
    assert [one.path for one in registry().validate_change(worse, old, ALONE).problems] == [
        "spec.populateJail.k8sNodeFilterName"
    ]


def test_a_filter_of_a_daemon_that_is_off_need_not_exist():
    off = {
        "spec.slurmNodes.rest.enabled": False,
        "spec.slurmNodes.rest.k8sNodeFilterName": "x",
        f"{ACCOUNTING}.enabled": False,
        f"{ACCOUNTING}.k8sNodeFilterName": "x",
        "spec.slurmNodes.exporter.enabled": False,
        "spec.slurmNodes.exporter.k8sNodeFilterName": "x",
        "spec.sConfigController": ABSENT,
    }
    assert registry().validate_change(nebius.made(CURRENT, off), None, ALONE).problems == ()


def test_user_limits_that_are_off_are_not_compared():
    off = {f"{LOGIN}.userIsolation": {"enabled": False, "memoryHigh": "10Gi", "memoryMax": "1Gi"}}
    assert registry().validate_change(nebius.made(CURRENT, off), None, ALONE).problems == ()


def test_a_partition_of_node_sets_that_do_not_exist_is_a_warning_with_the_known_names():
    """They may be created later: a chart of its own has them."""
    obj = nebius.made(CURRENT, {"spec.partitionConfiguration.partitions.1.nodeSetRefs": ["a", "b"]})
    other = nebius.made(NODES)
    result = registry().validate_change(obj, None, RelatedObjects((other,)))
    assert result.problems == ()
    assert (
        "spec.partitionConfiguration.partitions[1].nodeSetRefs: there is no NodeSet a, b of this "
        "cluster yet; known: worker-cpu"
    ) in result.warnings
    assert isinstance(obj, SlurmCluster)
    assert list(unknown_node_sets(obj, {"a", "b"})) == []


def test_references_are_of_the_objects_that_are_used():
    found = {
        str(one.path): one.name
        for one in rules_of(nebius.made(NODES)).references(nebius.made(NODES))
    }
    assert found["spec.clusterName"] == "soperator"
    check = nebius.made("activechecks-5.0-0", {"spec.dependsOn": ["a"]})
    assert [one.name for one in rules_of(check).references(check)][:2] == ["soperator", "a"]


def check(name: str, *depends: str) -> KubeObject:
    changes = {"metadata.name": name, "spec.name": name, "spec.dependsOn": list(depends)}
    return nebius.made(CHECK, changes)


def test_a_circle_of_checks_is_rejected_with_its_way():
    """None of them would ever start."""
    others = RelatedObjects((check("b", "c"), check("c", "d", "a"), check("d")))
    found = registry().validate_change(check("a", "b"), None, others).problems
    assert [one.path for one in found] == ["spec.dependsOn"]
    assert "a -> b -> c -> a" in found[0].message
    assert registry().validate_change(check("a", "d"), None, others).problems == ()
    itself = registry().validate_change(check("a", "a"), None, ALONE).problems
    assert ["names this check itself" in one.message for one in itself] == [True]


def test_two_checks_with_one_job_name_are_rejected():
    other = nebius.made(CHECK, {"metadata.name": "other"})
    found = registry().validate_change(nebius.made(CHECK), None, RelatedObjects((other,))).problems
    assert [(one.path, "ActiveCheck other too" in one.message) for one in found] == [
        ("spec.name", True)
    ]


def test_a_cluster_and_checks_that_do_not_exist_yet_are_warned_of():
    obj = nebius.made(EACH)
    absent = tuple(rules_of(obj).references(obj))
    warnings = registry().validate_change(obj, None, RelatedObjects(absent=absent)).warnings
    assert (
        "spec.slurmClusterRefName: there is no SlurmCluster soperator in this namespace yet; it is "
        "waited for"
    ) in warnings
    assert any(one.startswith("spec.dependsOn[0]: there is no ActiveCheck") for one in warnings)


def test_results_may_be_lost_where_no_job_is_kept():
    obj = nebius.made(EACH, {"spec.failedJobsHistoryLimit": 0})
    assert [one.partition(":")[0] for one in rules_of(obj).advice(obj)] == [
        "spec.failedJobsHistoryLimit"
    ]


@pytest.mark.parametrize(
    "schedule", ["*/5 0-6,12 1 jan,Feb mon-fri", "@daily", "@every 1h30m", "0 0 ? * *"]
)
def test_schedules_that_the_api_server_takes_are_taken(schedule: str):
    assert registry().problems(nebius.made(CHECK, {"spec.schedule": schedule})) == []


def test_a_node_set_of_an_older_version_names_its_cluster_in_an_annotation():
    older = nebius.made(
        NODES, {"spec.clusterName": "", "metadata.annotations": {PARENT_CLUSTER: "c"}}
    )
    assert registry().problems(older) == []
    (key,) = rules_of(older).uses(older)
    assert (key.kind, key.name) == ("SlurmCluster", "c")


def test_a_spool_without_a_source_is_advised_against():
    """Stored ones lost their claim template to the original's schema, and still work."""
    (advice,) = rules_of(nebius.made(NODES)).advice(nebius.made(NODES))
    assert advice.startswith("spec.slurmd.volumes.spool: without a source it is an emptyDir")
    claimed = nebius.made(NODES, {"spec.slurmd.volumes.spool": {"volumeClaimTemplateSpec": {}}})
    assert list(rules_of(claimed).advice(claimed)) == []


UNSUPPORTED: list[tuple[str, dict[str, Any], str]] = [
    (CURRENT, {"spec.pause": True}, "spec.pause: not used: spec.maintenance is"),
    (CURRENT, {"spec.maintenance": "downscale"}, "spec.maintenance: not served yet"),
    (CURRENT, {"spec.useDefaultAppArmorProfile": True}, "spec.useDefaultAppArmorProfile: not"),
    (CURRENT, {"spec.telemetry": {}}, "spec.telemetry: not served yet"),
    (CURRENT, {"spec.ncclSettings": {}}, "spec.ncclSettings: not used"),
    (
        OLDER,
        {"spec.periodicChecks": {"ncclBenchmark": {**NCCL, "image": "i"}}},
        "spec.periodicChecks.ncclBenchmark.image: not used",
    ),
    (
        OLDER,
        {"spec.slurmNodes.worker.slurmd.procMount": "Unmasked"},
        "spec.slurmNodes.worker.slurmd.procMount: not used",
    ),
    (
        NODES,
        {"spec.slurmd.security.procMount": "Unmasked", "spec.enableHostUserNamespace": True},
        "spec.slurmd.security.procMount: not used",
    ),
    (
        NODES,
        {"spec.munge.security.limitsConfig": "* hard core 0"},
        "spec.munge.security.limitsConfig: not used",
    ),
    (
        NODES,
        {"spec.munge.security.procMount": "Unmasked"},
        "spec.munge.security.procMount: not used",
    ),
    (
        CURRENT,
        {"spec.sConfigController.container.port": 1},
        "spec.sConfigController.container.port: not used",
    ),
    (
        CURRENT,
        {"spec.slurmNodes.rest.rest.securityLimitsConfig": "* hard core 0"},
        "spec.slurmNodes.rest.rest.securityLimitsConfig: not used",
    ),
    (CURRENT, {}, "spec.plugStackConfig.ncclDebug.enabled: not served yet"),
    (
        CURRENT,
        {"spec.plugStackConfig.ncclInspectorPreConf.enabled": True},
        "spec.plugStackConfig.ncclInspectorPreConf.enabled: not served yet",
    ),
    (CURRENT, {"spec.sConfigController.hostUsers": False}, "spec.sConfigController.hostUsers: not"),
    (
        OLDER,
        {"spec.sConfigController.jailSlurmConfigPath": "/x"},
        "spec.sConfigController.jailSlurmConfigPath: not used",
    ),
    (OLDER, {f"{CONTROLLER}.size": 2}, f"{CONTROLLER}.size: not used"),
    (
        CURRENT,
        {f"{CONTROLLER}.sssd": {"image": "i", "port": 1}},
        f"{CONTROLLER}.sssd.port: not used",
    ),
    (
        CURRENT,
        {f"{LOGIN}.sssd": {"image": "i", "securityLimitsConfig": "a"}},
        f"{LOGIN}.sssd.securityLimitsConfig: not used",
    ),
    (
        CURRENT,
        {f"{LOGIN}.sssd": {"image": "i", "procMount": "Unmasked"}},
        f"{LOGIN}.sssd.procMount: not used",
    ),
    (CURRENT, {}, f"{LOGIN}.userIsolation: not served yet"),
    (
        CURRENT,
        {f"{ACCOUNTING}.mariadbOperator.procMount": "Unmasked"},
        f"{ACCOUNTING}.mariadbOperator.procMount: not used",
    ),
    (
        CURRENT,
        {
            "spec.k8sNodeFilters": [
                {"name": "all", "affinity": {"podAffinity": {"a": []}}},
            ],
            f"{ACCOUNTING}.k8sNodeFilterName": "all",
        },
        "spec.k8sNodeFilters: podAffinity of all is not used",
    ),
    (CURRENT, {f"{ACCOUNTING}.size": 2}, f"{ACCOUNTING}.size: not used"),
    (
        CURRENT,
        {"spec.slurmNodes.exporter.exporterContainer.port": 9},
        "spec.slurmNodes.exporter.exporterContainer.port: not used",
    ),
    (
        CURRENT,
        {"spec.slurmNodes.exporter.exporterContainer.securityLimitsConfig": "x"},
        "spec.slurmNodes.exporter.exporterContainer.securityLimitsConfig: not used",
    ),
    (CURRENT, {"spec.slurmNodes.exporter.size": 2}, "spec.slurmNodes.exporter.size: not used"),
    (
        OLDER,
        {"spec.slurmNodes.exporter.exporter": {"image": "i"}},
        "spec.slurmNodes.exporter.exporter: not used",
    ),
    (
        OLDER,
        {"spec.slurmNodes.exporter.munge": {"image": "i"}},
        "spec.slurmNodes.exporter.munge: not used",
    ),
    (
        OLDER,
        {"spec.slurmNodes.exporter.volumes": {"jail": {}}},
        "spec.slurmNodes.exporter.volumes: not used",
    ),
    (CURRENT, {f"{CONTROLLER}.munge.port": 1}, f"{CONTROLLER}.munge.port: not used"),
    (
        OLDER,
        {"spec.slurmNodes.worker.munge.securityLimitsConfig": "a"},
        "spec.slurmNodes.worker.munge.securityLimitsConfig: not used",
    ),
    (CURRENT, {f"{LOGIN}.sshd.procMount": "Unmasked"}, f"{LOGIN}.sshd.procMount: not used"),
    (
        CURRENT,
        {"spec.plugStackConfig.pyxis.containerImageSave": "/x"},
        "spec.plugStackConfig.pyxis.containerImageSave: not used without spec.slurmNodes.worker",
    ),
    (CURRENT, {"spec.clusterType": "cpu"}, "spec.clusterType: not used without"),
    (
        CURRENT,
        {"spec.workerFeatures": [{"name": "a", "hostlistExpr": "b"}]},
        "spec.workerFeatures: not used without",
    ),
    (
        OLDER,
        {"spec.slurmNodes.worker.supervisordConfigMapRefName": "s"},
        "spec.slurmNodes.worker.supervisordConfigMapRefName: not used",
    ),
    (
        OLDER,
        {"spec.slurmNodes.worker.waitForController": True},
        "spec.slurmNodes.worker.waitForController: not used",
    ),
    (
        OLDER,
        {"spec.slurmNodes.worker.rebooter": {"enabled": True}},
        "spec.slurmNodes.worker.rebooter: not used: a NodeConfigurator",
    ),
    (
        OLDER,
        {"spec.slurmNodes.worker.enableGDRCopy": True},
        "spec.slurmNodes.worker.enableGDRCopy: not served yet",
    ),
    (
        NODES,
        {
            "spec.sssd": {
                "image": {"repository": "r"},
                "resources": {},
                "security": {"limitsConfig": "a"},
            }
        },
        "spec.sssd.security.limitsConfig: not used",
    ),
    (
        NODES,
        {
            "spec.sssd": {
                "image": {"repository": "r"},
                "resources": {},
                "security": {"procMount": "Unmasked"},
            }
        },
        "spec.sssd.security.procMount: not used",
    ),
    (NODES, {"spec.docker": {}}, "spec.docker: not served yet"),
    (NODES, {"spec.gpu.nvidia.gdrCopyEnabled": True}, "spec.gpu.nvidia.gdrCopyEnabled: not"),
    (NODES, {"spec.workerInitRandomDelaySeconds": 1}, "spec.workerInitRandomDelaySeconds: not"),
    (NODES, {"spec.configMapRefSupervisord": "s"}, "spec.configMapRefSupervisord: not used"),
    (NODES, {"spec.sshd": "s"}, "spec.sshd: not used: spec.configMapRefSshd is"),
    (NODES, {"spec.nodeAttributes": {}}, "spec.nodeAttributes: not used: spec.nodeConfig is"),
    (NODES, {"spec.slurmd.cgroupVersion": "v1"}, "spec.slurmd.cgroupVersion: not used"),
    (CHECK, {"spec.reactions": {"setCondition": True}}, "spec.reactions: not used"),
    (
        CHECK,
        {"spec.failureReactions": {"drainSlurmNode": {"drainReasonPrefix": "[node_problem]"}}},
        "spec.failureReactions, spec.successReactions: not used for checkType k8sJob",
    ),
    (EACH, {"spec.slurmJobSpec.mungeContainer.args": ["x"]}, "mungeContainer: image, command"),
    (
        "nodeconfigurator-5.0-0",
        {"spec.rebooter.command": ["x"]},
        "spec.rebooter.command: not used: the program is /usr/bin/rebooter",
    ),
    (
        "nodeconfigurator-5.0-0",
        {"spec.customContainer.enabled": True},
        "spec.customContainer: not used while another container is enabled",
    ),
]


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    UNSUPPORTED,
    ids=[words.split(":")[0] for _, _, words in UNSUPPORTED],
)
def test_a_field_without_effect_is_reported_by_name(name: str, changes: dict[str, Any], words: str):
    found = unsupported(nebius.made(name, changes))
    assert [one for one in found if one.startswith(words)], found


def test_every_row_of_unsupported_fields_has_a_test():
    rows = {
        row.path
        for table in (
            unsupported_fields.CLUSTER,
            unsupported_fields.WORKER,
            unsupported_fields.NODES,
        )
        for row in table
    }
    assert rows <= {words.split(":")[0] for _, _, words in UNSUPPORTED}


def test_fields_that_are_served_are_not_reported():
    found = [one.split(":")[0] for one in unsupported(nebius.made(OLDER))]
    assert found == ["spec.plugStackConfig.ncclDebug.enabled"]
    assert unsupported(nebius.made(NODES)) == []


def secret(*, cluster: str = "c", value: str = "dg==", label: str = "true", **meta: Any) -> Secret:
    manifest = {
        "metadata": {
            "name": "mariadb-password",
            "labels": {PROTECTED: label},
            "annotations": {PROTECTED_FOR: cluster} if cluster else {},
            **meta,
        },
        "data": {"password": value},
    }
    return msgspec.convert(manifest, Secret)


def test_a_protected_secret_names_its_cluster():
    (fault,) = protected_secrets.create_problems(secret(cluster=""))
    assert "name the SlurmCluster" in fault.message
    assert list(protected_secrets.create_problems(secret())) == []
    assert list(protected_secrets.create_problems(secret(cluster="", label="false"))) == []


def test_a_protected_secret_cannot_be_changed():
    (fault,) = protected_secrets.change_problems(secret(value="bmV3"), secret())
    assert "cannot be changed" in fault.message
    (fault,) = protected_secrets.change_problems(secret(label="false"), secret())
    assert "SlurmCluster c" in fault.message
    assert list(protected_secrets.change_problems(secret(), secret())) == []
    gone = secret(value="bmV3", deletionTimestamp="2026-01-01T00:00:00Z")
    assert list(protected_secrets.change_problems(gone, secret())) == []


def test_a_protected_secret_stays_while_its_cluster_exists():
    (fault,) = protected_secrets.delete_problems(secret(), cluster_exists=True)
    assert "delete that first" in fault.message
    assert list(protected_secrets.delete_problems(secret(), cluster_exists=False)) == []


def test_a_node_set_is_a_related_object_of_its_cluster():
    cluster, nodes = nebius.made(CURRENT), nebius.made(NODES)
    assert isinstance(nodes, NodeSet)
    assert set(rules_of(cluster).uses(cluster)) == set(rules_of(nodes).uses(nodes))
