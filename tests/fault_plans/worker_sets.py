"""The objects that declare workers, of whichever API: NodeSets, or Crews of the tiny one."""

from __future__ import annotations

from penstock.api.kubernetes.meta import Json
from penstock.model.worker_marks import WorkerMarks
from penstock.simulation.apiserver import ApiServer
from penstock.translate.slinky.worker_set import MARKS as OF_NODESETS
from support.tiny_api import GROUP
from support.tiny_api import MARKS as OF_CREWS

NODESETS, CREWS = "slinky.slurm.net/nodesets", f"{GROUP}/crews"
RESOURCES = (NODESETS, CREWS)
_PATHS = {
    "nodesets": "/apis/slinky.slurm.net/v1beta1",
    "crews": f"/apis/{GROUP}/v1",
}


def find(server: ApiServer, space: str, name: str) -> Json | None:
    """The object of a name, of either kind: a world has only one of them."""
    found = (server.find(one, space, name) for one in RESOURCES)
    return next((one for one in found if one is not None), None)


def every(server: ApiServer, space: str = "") -> list[Json]:
    """All of them."""
    return [obj for one in RESOURCES for obj in server.objects(one, space)]


def group_path(plural: str) -> str:
    """The URL path of the API group of a kind."""
    return _PATHS.get(plural, _PATHS["nodesets"])


def is_crew(obj: Json) -> bool:
    """Whether it is of the tiny API."""
    return obj["kind"] == "Crew"


def marks(obj: Json) -> WorkerMarks:
    """Keys and prefixes of its API."""
    return OF_CREWS if is_crew(obj) else OF_NODESETS


def revision(obj: Json) -> str | None:
    """The hash that its pods are to have, by its status."""
    return obj.get("status", {}).get("template" if is_crew(obj) else "nodeSetHash")


def is_old(obj: Json, pod: Json) -> bool:
    """Whether a pod is of another template than that of the status."""
    return marks(obj).revision_of(pod["metadata"]["labels"]) != revision(obj)


def cluster(obj: Json) -> str:
    """Name of its Controller."""
    spec = obj["spec"]
    name: str = spec["cluster"] if is_crew(obj) else spec["controllerRef"]["name"]
    return name


def pod_name(plural: str, name: str, number: int) -> str:
    """The worker of an ordinal."""
    return f"crew-{name}-w{number:03}" if plural == "crews" else f"{name}-{number}"


def node_of(plural: str, name: str, number: int) -> str:
    """The Slurm node of an ordinal."""
    return f"{name}n{number:03}" if plural == "crews" else f"{name}-{number}"


def for_crew(spec: Json) -> Json:
    """What a change of a NodeSet's spec is for a Crew; empty where it has no such field."""
    found: Json = {}
    if "replicas" in spec:
        found["replicas"] = spec["replicas"]
    if "image" in spec.get("slurmd", {}):
        found["image"] = spec["slurmd"]["image"]
    return found
