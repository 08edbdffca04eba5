"""Workers of a SlurmCluster: the pod of a slot, its PVCs, and the template that it is made from."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec
import pytest

from penstock.api.kubernetes.kinds import ControllerRevision
from penstock.api.kubernetes.meta import Json
from penstock.model.worker_slot import WorkerSlot
from penstock.render.nebius.worker import pod as worker
from penstock.render.nebius.worker import revision
from penstock.render.nebius.worker.env import with_features
from penstock.render.nebius.worker.template import worker_template
from support.nebius_clusters import CURRENT, OLDER, SHAPES, of_shape, rendered, slot

WORKER = "spec.slurmNodes.worker"
PVC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def slurmd(pod: Json) -> Json:
    return pod["spec"]["containers"][0]


def environment(pod: Json) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in slurmd(pod)["env"]}


def options(pod: Json) -> list[str]:
    return shlex.split(environment(pod)["SLURMD_OPTIONS"])


def mounted(pod: Json) -> dict[str, str]:
    return {one["mountPath"]: one["name"] for one in slurmd(pod)["volumeMounts"]}


def volume(pod: Json, name: str) -> Json:
    return next(one for one in pod["spec"]["volumes"] if one["name"] == name)


@pytest.mark.parametrize("shape", SHAPES)
def test_pod_hostname_and_slurm_node_have_one_name(shape: str):
    found = of_shape(shape)
    pod, name = found.pod(), found.workers[0].names.pod(1)
    assert (pod["metadata"]["name"], pod["spec"]["hostname"]) == (name, name)
    words = options(pod)
    assert words[:4] == ["-Z", "-N", name, "--conf"]
    assert words[4].startswith("Features=")
    assert len(words) == 5
    assert "args" not in slurmd(pod)


def test_extra_and_port_of_a_node_reach_slurmd_as_one_word():
    changes = {"spec.nodeConfig.dynamic": '{"a": "it\'s"}', "spec.slurmd.port": 7000}
    words = options(of_shape(CURRENT, node_set=changes).pod())
    assert words[4].endswith(" Port=7000")
    assert words[5:] == ["--extra", '{"a": "it\'s"}']
    given = {"spec.nodeConfig.static": "Port=1", "spec.slurmd.port": 7000}
    assert options(of_shape(CURRENT, node_set=given).pod())[4].split().count("Port=1") == 1
    older = of_shape(OLDER, {f"{WORKER}.slurmNodeExtra": "x"}).pod()
    assert options(older)[5:] == ["--extra", "x"]


@pytest.mark.parametrize("shape", SHAPES)
def test_labels_select_the_workers_of_both_shapes(shape: str):
    """S120."""
    found = of_shape(shape)
    labels = found.pod()["metadata"]["labels"]
    assert labels["app.kubernetes.io/component"] == ("worker" if shape == OLDER else "nodeset")
    assert labels["slurm.nebius.ai/worker"] == "true"
    assert found.workers[0].selector.items() <= labels.items()
    assert labels["controller-revision-hash"] == found.revision_hash()


def test_a_worker_has_the_features_whose_host_list_names_it():
    features = [
        {"name": "fast", "hostlistExpr": "worker-[0-1]"},
        {"name": "vast", "hostlistExpr": "worker-[1-999999999]"},
        {"name": "broken", "hostlistExpr": "worker-["},
    ]
    found = of_shape(OLDER, {"spec.workerFeatures": features})
    words = [options(found.pod(ordinal=number))[4] for number in range(3)]
    assert words[0] == "Features=worker,fast RealMemory=1024"
    assert words[1].startswith("Features=worker,fast")
    assert words[2] == "Features=worker RealMemory=1024"
    assert environment(found.pod())["SLURM_FEATURE_broken"] == "worker-["


@pytest.mark.parametrize(
    ("words", "features", "expected"),
    [
        ("Features=a RealMemory=1", ["b"], "Features=a,b RealMemory=1"),
        ("RealMemory=1", ["b", "b"], "Features=b RealMemory=1"),
        ("Features=a Feature=c", ["a", "b"], "Features=a,b Feature=c"),
        ("RealMemory=1", [], "RealMemory=1"),
    ],
)
def test_features_join_those_of_the_set(words: str, features: list[str], expected: str):
    assert with_features(words, features) == expected


@pytest.mark.parametrize("gpu", [True, False])
def test_drivers_are_mounted_where_the_workers_have_gpus(*, gpu: bool):
    pod = of_shape(CURRENT, node_set={"spec.gpu": {"enabled": gpu}}).pod()
    paths = {
        "/run/nvidia",
        "/usr/bin/nvidia-imex-ctl",
        "/mnt/jail.upper/usr/bin/nvidia-imex-ctl",
        "/etc/nvidia-imex",
        "/mnt/jail.upper/etc/nvidia-imex",
    }
    assert (paths <= set(mounted(pod))) == gpu
    assert environment(pod)["NODESET_GPU_ENABLED"] == str(gpu).lower()
    assert environment(pod)["SLURM_CLUSTER_WITH_GPU"] == str(gpu).lower()


@pytest.mark.parametrize(
    ("host", "supported", "users", "proc"),
    [
        (False, True, False, "Unmasked"),
        (True, True, True, None),
        (False, False, None, None),
    ],
)
def test_proc_is_unmasked_in_a_user_namespace_only(
    *, host: bool, supported: bool, users: bool | None, proc: str | None
):
    changes = {"spec.enableHostUserNamespace": host}
    pod = of_shape(CURRENT, node_set=changes, has_user_namespaces=supported).pod()
    assert pod["spec"].get("hostUsers") == users
    assert slurmd(pod)["securityContext"].get("procMount") == proc


def test_a_claim_template_under_spool_is_a_pvc_of_each_worker():
    """D61, S103: of both shapes."""
    spool = {"volumeClaimTemplateSpec": PVC}
    for found in (
        of_shape(CURRENT, node_set={"spec.slurmd.volumes.spool": spool}),
        of_shape(OLDER, {f"{WORKER}.volumes.spool": spool}),
    ):
        name = f"worker-spool-{found.workers[0].names.pod(1)}"
        made = found.pvcs()[0]
        assert (made["metadata"]["name"], made["spec"]) == (name, PVC)
        assert "ownerReferences" not in made["metadata"]
        assert volume(found.pod(), "worker-spool")["persistentVolumeClaim"] == {"claimName": name}
        assert mounted(found.pod())["/var/spool/slurmd"] == "worker-spool"
        assert found.workers[0].pvcs.templates == ("worker-spool",)


@pytest.mark.parametrize("source", ["spool", "jail"])
def test_a_volume_by_name_is_mounted_at_its_place(source: str):
    """S103, S104."""
    changes = {f"{WORKER}.volumes.{source}": {"volumeSourceName": "controller-spool"}}
    pod = of_shape(OLDER, changes).pod()
    name = "worker-spool" if source == "spool" else "jail"
    assert volume(pod, name)["persistentVolumeClaim"] == {"claimName": "controller-spool-pvc"}


def test_a_mount_for_each_job_is_a_line_for_chroot_so_and_the_pod_has_its_whole_volume():
    """S105: of both shapes; its volume is mounted, and the mount itself is not."""
    path, sub_path = "/job/", "jobs//${SLURM_JOB_ID}/"
    given = {"name": "job-data", "mountPath": path, "subPath": sub_path, "readOnly": True}
    source = {"persistentVolumeClaim": {"claimName": "jail-pvc"}}
    of_node_set = [{**given, "volumeSource": source}]
    for pod in (
        of_shape(CURRENT, node_set={"spec.slurmd.volumes.jailSubMounts": of_node_set}).pod(),
        of_shape(
            OLDER, {f"{WORKER}.volumes.jailSubMounts": [{**given, "volumeSourceName": "jail"}]}
        ).pod(),
    ):
        line = "/mnt/jail.jobs/jail\tjobs/${SLURM_JOB_ID}\t/job\tro\n"
        assert environment(pod)["PENSTOCK_JOB_MOUNTS"] == line
        assert mounted(pod)["/mnt/jail.jobs/jail"] == "jail"
        assert "/mnt/jail.upper/job" not in mounted(pod)
        assert not [
            one for one in slurmd(pod)["volumeMounts"] if one.get("readOnly") and "jail" in one
        ]
        names = [one["name"] for one in pod["spec"]["volumes"]]
        assert len(names) == len(set(names))


def test_mounts_for_each_job_share_the_volume_of_their_pvc():
    """S105: the kubelet mounts a PVC for a pod once; a second volume of it never comes."""
    jobs = {"subPath": "${SLURM_JOB_ID}"}
    given = [
        {"name": "one", "mountPath": "/one", "volumeSourceName": "jail", **jobs},
        {"name": "own", "mountPath": "/s", "volumeSourceName": "controller-spool"},
        {"name": "two", "mountPath": "/two", "volumeSourceName": "controller-spool", **jobs},
        {"name": "three", "mountPath": "/three", "volumeSourceName": "jail", **jobs},
        {"name": "four", "mountPath": "/four", "volumeClaimTemplateSpec": PVC, **jobs},
    ]
    pod = of_shape(OLDER, {f"{WORKER}.volumes.jailSubMounts": given}).pod()
    found = {path: name for path, name in mounted(pod).items() if path.startswith("/mnt/jail.jobs")}
    assert found == {f"/mnt/jail.jobs/{name}": name for name in ("jail", "own", "four")}
    lines = environment(pod)["PENSTOCK_JOB_MOUNTS"].splitlines()
    assert [line.split("\t")[0].rpartition("/")[2] for line in lines] == [
        *("jail", "own", "jail", "four")
    ]
    assert not {"one", "two", "three"} & {one["name"] for one in pod["spec"]["volumes"]}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_worker_without_such_a_mount_has_no_list(shape: str):
    pod = of_shape(shape).pod()
    assert "PENSTOCK_JOB_MOUNTS" not in environment(pod)
    assert not [path for path in mounted(pod) if path.startswith("/mnt/jail.jobs")]


def test_a_pvc_for_the_jail_of_each_worker_is_one_of_its_templates():
    found = of_shape(OLDER, {f"{WORKER}.volumes.jail": {"volumeClaimTemplateSpec": PVC}})
    assert found.workers[0].pvcs.templates == ("worker-spool", "jail")
    assert [one["metadata"]["name"] for one in found.pvcs()] == [
        "worker-spool-worker-1",
        "jail-worker-1",
    ]


def test_a_node_set_without_a_spool_has_an_empty_directory():
    pod = of_shape(CURRENT, node_set={"spec.slurmd.volumes.spool": {}}).pod()
    assert volume(pod, "worker-spool") == {"name": "worker-spool", "emptyDir": {}}


def test_a_slot_of_a_kubernetes_node_is_pinned_to_it():
    found = of_shape(CURRENT)
    workers = found.workers[0]
    pinned = WorkerSlot("worker-cpu-0", "worker-cpu-0", 0, "node-1")
    affinity = worker.pod(found.inputs, workers, pinned)["spec"]["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms[0]["matchFields"][0]["values"] == ["node-1"]


def test_workers_of_another_cluster_have_no_template_here():
    older, current = of_shape(OLDER), of_shape(CURRENT)
    for inputs, workers in (
        (older.inputs, current.workers[0]),
        (current.inputs, older.workers[0]),
    ):
        with pytest.raises(LookupError, match="declares no workers of SlurmCluster"):
            worker_template(inputs, workers)


SAME: list[tuple[str, dict[str, Any]]] = [
    (OLDER, {f"{WORKER}.size": 9}),
    (OLDER, {f"{WORKER}.maxUnavailable": 1}),
    (OLDER, {f"{WORKER}.slurmd.resources.cpu": "1000m"}),
    (OLDER, {"spec.slurmNodes.login.size": 4}),
    (OLDER, {f"{WORKER}.volumes.spool.volumeClaimTemplateSpec.resources": {}}),
    (CURRENT, {"spec.replicas": 9}),
    (CURRENT, {"spec.maxUnavailable": 1}),
    (CURRENT, {"spec.updateStrategy": "slurmAwareRollingUpdate"}),
    (CURRENT, {"spec.nodeConfig.gresConfig": ["Name=gpu"]}),
    (CURRENT, {"spec.slurmd.resources.memory": "1024Mi"}),
    (CURRENT, {"spec.tolerations": []}),
]
OTHER: list[tuple[str, dict[str, Any]]] = [
    (OLDER, {f"{WORKER}.slurmd.image": "other"}),
    (OLDER, {f"{WORKER}.munge.image": "other"}),
    (OLDER, {"spec.clusterType": "gpu"}),
    (OLDER, {"spec.k8sNodeFilters.0.affinity": {}}),
    (OLDER, {"spec.volumeSources.2.persistentVolumeClaim.claimName": "other"}),
    (OLDER, {"spec.workerFeatures.0.hostlistExpr": "worker-0"}),
    (CURRENT, {"spec.slurmd.image.tag": "other"}),
    (CURRENT, {"spec.slurmd.resources.memory": "2Gi"}),
    (CURRENT, {"spec.nodeConfig.static": "Boards=2"}),
    (CURRENT, {"spec.nodeConfig.features": ["other"]}),
    (CURRENT, {"spec.slurmd.volumes.sharedMemorySize": "1Gi"}),
    (CURRENT, {"spec.priorityClass": "high"}),
]


def changed(shape: str, changes: dict[str, Any]) -> str:
    whole = of_shape(shape, changes) if shape == OLDER else of_shape(shape, node_set=changes)
    return whole.revision_hash()


@pytest.mark.parametrize(("shape", "changes"), SAME, ids=str)
def test_a_field_that_reaches_no_pod_keeps_the_template(shape: str, changes: dict[str, Any]):
    assert changed(shape, changes) == changed(shape, {})


@pytest.mark.parametrize(("shape", "changes"), OTHER, ids=str)
def test_a_field_of_the_pod_is_another_template(shape: str, changes: dict[str, Any]):
    assert changed(shape, changes) != changed(shape, {})


def test_gpus_of_another_node_set_replace_no_worker():
    one = of_shape(CURRENT)
    both = rendered(one.inputs.cluster, one.inputs.node_sets, "soperator-")
    alone = rendered(one.inputs.cluster, one.inputs.node_sets[:1], "soperator-")
    assert both.revision_hash() == alone.revision_hash()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_recorded_template_is_read_as_it_was_written(shape: str):
    found = of_shape(shape)
    workers = found.workers[0]
    made = revision.revision(found.inputs, workers)
    manifest = revision.controller_revision(found.inputs, workers, made, 3)
    record = msgspec.convert(manifest, ControllerRevision)
    read = revision.recorded_revision(workers, record)
    now = revision.declared_revision(found.inputs, workers)
    assert (read.hash, read.number, read.parameters) == (made.hash, 3, workers.parameters)
    assert (read.read_form(), read.fixed_form) == (now.read_form(), now.fixed_form)
    assert read.read_spec() == made.data["spec"]
    assert manifest["metadata"]["labels"]["controller-revision-hash"] == made.hash


def test_features_of_a_node_change_without_another_pod():
    one = of_shape(CURRENT)
    other = of_shape(CURRENT, node_set={"spec.nodeConfig.features": ["other"]})
    first, second = (
        revision.declared_revision(each.inputs, each.workers[0]) for each in (one, other)
    )
    assert first.hash != second.hash
    assert first.fixed_form == second.fixed_form


def test_a_record_of_another_operator_means_itself():
    workers = of_shape(CURRENT).workers[0]
    record = ControllerRevision(data={"raw": "x"})
    read = revision.recorded_revision(workers, record)
    assert read.read_form() == b'{"raw":"x"}'
    assert read.read_spec() is None


def test_ordinals_of_a_set_differ_by_their_names_only():
    found = of_shape(CURRENT)
    workers = found.workers[0]
    first, second = (
        msgspec.json.encode(worker.pod(found.inputs, workers, slot(workers, number)))
        for number in (0, 1)
    )
    assert first.replace(b"worker-cpu-0", b"worker-cpu-1") == second
