"""The objects that declare workers, of whichever API: NodeSets, Crews, or a SlurmCluster itself."""

from __future__ import annotations

from typing import cast

from penstock.api.kubernetes.meta import Json
from penstock.model.worker_marks import WorkerMarks
from penstock.simulation.apiserver import ApiServer
from penstock.translate.nebius.worker_set import marks as of_nebius
from penstock.translate.slinky.worker_set import MARKS as OF_NODESETS
from support.tiny_api import GROUP
from support.tiny_api import MARKS as OF_CREWS

NODESETS, CREWS = "slinky.slurm.net/nodesets", f"{GROUP}/crews"
NEBIUS = "slurm.nebius.ai"
NEBIUS_NODESETS, CLUSTERS = f"{NEBIUS}/nodesets", f"{NEBIUS}/slurmclusters"
RESOURCES = (NODESETS, CREWS, NEBIUS_NODESETS, CLUSTERS)
OF_NEBIUS, OF_CLUSTER = "nebius-nodesets", "slurmclusters"
"""Names of the latter two where plans need one for each resource."""
SCHEDULED = "ScheduledUpdate"
POLICY = "persistentVolumeClaimRetentionPolicy"
_PATHS = {
    "nodesets": "/apis/slinky.slurm.net/v1beta1",
    "crews": f"/apis/{GROUP}/v1",
    OF_NEBIUS: f"/apis/{NEBIUS}/v1alpha1",
    OF_CLUSTER: f"/apis/{NEBIUS}/v1",
}
_RESOURCES = {"crews": CREWS, OF_NEBIUS: NEBIUS_NODESETS, OF_CLUSTER: CLUSTERS}
_MARKS = {kind: of_nebius(kind) for kind in ("NodeSet", "SlurmCluster")}


def find(server: ApiServer, space: str, name: str) -> Json | None:
    """The object of a name, of any kind: a world has only one of them."""
    found = (server.find(one, space, name) for one in RESOURCES)
    return next((one for one in found if one is not None and is_set(one)), None)


def every(server: ApiServer, space: str = "") -> list[Json]:
    """All of them."""
    return [obj for one in RESOURCES for obj in server.objects(one, space) if is_set(obj)]


def is_set(obj: Json) -> bool:
    """Whether an object of one of these kinds declares workers; a SlurmCluster may not."""
    return obj["kind"] != "SlurmCluster" or "worker" in obj["spec"]["slurmNodes"]


def group_path(plural: str) -> str:
    """The URL path of the API group of a kind."""
    return _PATHS.get(plural, _PATHS["nodesets"])


def resource_of(plural: str) -> str:
    """The resource of a kind."""
    return _RESOURCES.get(plural, f"slinky.slurm.net/{plural}")


def in_urls(plural: str) -> str:
    """The kind in URL paths."""
    return plural.removeprefix("nebius-")


def is_crew(obj: Json) -> bool:
    """Whether it is of the tiny API."""
    return obj["kind"] == "Crew"


def is_nebius(obj: Json) -> bool:
    """Whether it is of `slurm.nebius.ai`."""
    return obj["apiVersion"].startswith(NEBIUS)


def marks(obj: Json) -> WorkerMarks:
    """Keys and prefixes of its API."""
    if is_nebius(obj):
        return _MARKS[obj["kind"]]
    return OF_CREWS if is_crew(obj) else OF_NODESETS


def revision(obj: Json) -> str | None:
    """The hash that its pods are to have, by its status."""
    status: Json = obj.get("status", {})
    if is_nebius(obj):
        counts: Json = status.get("workers") or {}
        return counts.get("revision")
    return status.get("template" if is_crew(obj) else "nodeSetHash")


def is_old(obj: Json, pod: Json) -> bool:
    """Whether a pod is of another template than that of the status."""
    return marks(obj).revision_of(pod["metadata"]["labels"]) != revision(obj)


def cluster(obj: Json) -> str:
    """Name of the object that declares its cluster."""
    spec = obj["spec"]
    if is_nebius(obj):
        return cast("str", spec.get("clusterName") or obj["metadata"]["name"])
    name: str = spec["cluster"] if is_crew(obj) else spec["controllerRef"]["name"]
    return name


def replicas(server: ApiServer, obj: Json) -> int:
    """How many workers are declared; none of a SlurmCluster in maintenance or stopped."""
    spec = obj["spec"]
    if not is_nebius(obj):
        return cast("int", spec["replicas"])
    found = server.find(CLUSTERS, obj["metadata"]["namespace"], cluster(obj))
    if found is not None and _has_no_pods(found):
        return 0
    return cast("int", _worker(spec)["size"] if "slurmNodes" in spec else spec["replicas"])


def _has_no_pods(slurm_cluster: Json) -> bool:
    annotations: Json = slurm_cluster["metadata"].get("annotations") or {}
    maintenance: str = slurm_cluster["spec"].get("maintenance", "none")
    return "penstock.dev/stopped" in annotations or maintenance.startswith("downscale")


def template(obj: Json) -> Json:
    """What it declares of its pods, and may be a little more."""
    spec = _worker(obj["spec"]) if obj["kind"] == "SlurmCluster" else obj["spec"]
    return {key: value for key, value in spec.items() if key not in {"replicas", "size"}}


def retention(obj: Json) -> tuple[str, str]:
    """What becomes of PVCs of workers that are scaled in, and deleted."""
    if obj["kind"] == "SlurmCluster":
        return "Retain", "Delete"
    if not is_nebius(obj):
        policy: Json = obj["spec"].get(POLICY) or {}
        return policy.get("whenScaled") or "Retain", policy.get("whenDeleted") or "Retain"
    policy = obj["spec"]["slurmd"]["volumes"].get(POLICY) or {}
    return policy.get("whenScaled") or "Delete", policy.get("whenDeleted") or "Delete"


def is_scheduled(obj: Json) -> bool:
    """Whether an update takes its workers in a reservation only."""
    strategy: object = obj["spec"].get("updateStrategy")
    return isinstance(strategy, dict) and cast("Json", strategy).get("type") == SCHEDULED


def pod_name(plural: str, name: str, number: int) -> str:
    """The worker of an ordinal."""
    if plural == OF_CLUSTER:
        return f"worker-{number}"
    return f"crew-{name}-w{number:03}" if plural == "crews" else f"{name}-{number}"


def node_of(plural: str, name: str, number: int) -> str:
    """The Slurm node of an ordinal."""
    return f"{name}n{number:03}" if plural == "crews" else pod_name(plural, name, number)


def for_crew(spec: Json) -> Json:
    """What a change of a NodeSet's spec is for a Crew; empty where it has no such field."""
    found: Json = {}
    if "replicas" in spec:
        found["replicas"] = spec["replicas"]
    if "image" in spec.get("slurmd", {}):
        found["image"] = spec["slurmd"]["image"]
    return found


def _worker(spec: Json) -> Json:
    return cast("Json", spec["slurmNodes"]["worker"])
