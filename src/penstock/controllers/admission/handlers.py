"""The webhooks' answers, out of the caches: nothing is asked of anybody while a user waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from penstock.api.admission import Judgement, judge, part
from penstock.api.kubernetes.meta import Json, KubeObject, KubeStruct, ObjectMeta
from penstock.api.penstock.partition import Partition
from penstock.api.registry import KINDS
from penstock.api.slinky import labels as wellknown
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.defaults import defaults
from penstock.api.slinky.loginset import LoginSet
from penstock.api.slinky.neighbours import Neighbours, Reference, references
from penstock.api.slinky.nodeset import NodeSet
from penstock.api.slinky.restapi import RestApi
from penstock.controllers.runtime.caches import World, cluster_keys
from penstock.decide.slurm_node import topology
from penstock.kube.webhook.review import NOTHING, AdmissionRequest, Answer, Cause, Handler

VALIDATE = "/validate"
DEFAULT = "/default"
BIND = "/mutate--v1-binding"
"""The path of slurm-operator, and the only one for bindings."""

T = TypeVar("T", NodeSet, Partition)
_TYPES = {(info.resource.group, info.resource.kind): info.resource.type for info in KINDS}


class _Target(KubeStruct, frozen=True):
    kind: str = ""
    name: str = ""


class _Specified(KubeStruct, frozen=True):
    spec: Json | None = None


class _Binding(KubeStruct, frozen=True):
    """What the scheduler sends: which pod goes to which Node. Its annotations become the pod's."""

    metadata: ObjectMeta = ObjectMeta()
    target: _Target = _Target()


class Admission:
    """Judges objects by what this process knows of those around them."""

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """By path. One path takes all kinds; the others are those of slurm-operator."""
        older = (
            f"{VALIDATE}-{info.resource.group.replace('.', '-')}-{info.resource.version}-"
            f"{info.resource.kind.lower()}"
            for info in KINDS
        )
        judged = dict.fromkeys((VALIDATE, *older), self.validate)
        return {**judged, DEFAULT: self.default, BIND: self.bind}

    def validate(self, request: AdmissionRequest) -> Answer:
        """Whether this object of ours may be created, changed or deleted."""
        type_ = _TYPES.get((request.kind.group, request.kind.kind))
        if type_ is None or request.sub_resource or not self._ours(request.namespace):
            return Answer()
        old = _decoded(request.old_object, type_)
        if request.operation == "DELETE":
            return _told(part(old, self._users(old)) if old is not None else Judgement())
        try:
            new = msgspec.json.decode(request.object, type=type_)
        except msgspec.MsgspecError as error:
            # One that is there already and cannot be read either is not for a webhook to hold up.
            if request.operation == "UPDATE" and old is None:
                return Answer()
            return Answer((_unreadable(str(error)),))
        return _told(judge(new, old, self._around(new)))

    def default(self, request: AdmissionRequest) -> Answer:
        """What this new object of ours is to have as well."""
        type_ = _TYPES.get((request.kind.group, request.kind.kind))
        made = request.operation == "CREATE" and not request.sub_resource
        if type_ is None or not made or not self._ours(request.namespace):
            return Answer()
        # One that cannot be read is refused elsewhere, with words.
        new: KubeObject | None = _decoded(request.object, type_)
        given: Mapping[str, str] = defaults(new) if new is not None else dict[str, str]()
        if not given:
            return Answer()
        there = msgspec.json.decode(request.object, type=_Specified).spec
        if there is None:
            return Answer(patch=({"op": "add", "path": "/spec", "value": given},))
        return Answer(
            patch=tuple(
                {"op": "add", "path": f"/spec/{field}", "value": value}
                for field, value in given.items()
            )
        )

    def bind(self, request: AdmissionRequest) -> Answer:
        """A worker pod comes to its Node: it is given the Node's place in Slurm's topology.

        Only a place that slurmctld cannot refuse: a slurmd that registers with a wrong one is
        drained. Any other is told when the node has registered, see `decide.slurm_node.topology`.
        """
        binding = msgspec.json.decode(request.object, type=_Binding)
        world = self._world
        pod = world.pods.get(f"{request.namespace}/{request.name or binding.metadata.name}")
        machine = world.nodes.get(binding.target.name)
        if pod is None or machine is None or binding.target.kind not in ("", "Node"):
            return Answer()
        labels = pod.metadata.labels
        if labels.get(wellknown.APP_NAME) != "slurmd":
            return Answer()
        place = topology.wanted(machine)
        cluster = f"{request.namespace}/{labels.get(wellknown.CLUSTER, '')}"
        controller = world.controllers.get(cluster)
        if not place or controller is None:
            return Answer()
        data = world.config_data(controller)
        refs = controller.spec.config_file_refs or ()
        files = {file: text for ref in refs for file, text in data.get(ref.name, {}).items()}
        if not topology.exists(place, files):
            return Answer()
        there = binding.metadata.annotations
        # Replaced as a whole: a path would have to exist, and its slash be escaped.
        given = {**there, wellknown.TOPOLOGY: place}
        patch = {"op": "add", "path": "/metadata/annotations", "value": given}
        return Answer(patch=() if given == there else (patch,))

    def _ours(self, namespace: str) -> bool:
        watched = self._world.settings.namespaces
        return not watched or namespace in watched

    def _around(self, obj: KubeObject) -> Neighbours:
        world, meta = self._world, obj.metadata
        found = tuple(references(obj))
        nodesets: tuple[NodeSet, ...] = ()
        partitions: tuple[Partition, ...] = ()
        if isinstance(obj, NodeSet | Partition):
            for key in cluster_keys(obj):
                nodesets += _others(world.nodesets_of.get(key), obj)
                partitions += _others(world.partitions_of.get(key), obj)
        files: dict[str, tuple[str, ...]] = {}
        if isinstance(obj, Controller):
            for name, texts in world.config_data(obj).items():
                files[name] = tuple(sorted(texts))
        return Neighbours(
            nodesets=nodesets,
            partitions=partitions,
            absent=tuple(one for one in found if one.name and not self._there(meta, one)),
            files=files,
        )

    def _there(self, meta: ObjectMeta, one: Reference) -> bool:
        world = self._world
        caches = {
            "Controller": world.controllers,
            "Accounting": world.accountings,
            "Secret": world.secrets,
            "ConfigMap": world.config_maps,
        }
        return caches[one.kind].get(f"{meta.namespace}/{one.name}") is not None

    def _users(self, obj: KubeObject) -> Neighbours:
        world, meta = self._world, obj.metadata
        found: list[KubeObject] = []
        match obj:
            case Controller():
                found += world.nodesets_of.get(meta.key)
                found += world.loginsets_of.get(meta.key)
                found += world.restapis_of.get(meta.key)
                found += world.partitions_of.get(meta.key)
            case Accounting():
                found += [
                    one
                    for one in world.controllers
                    if one.metadata.namespace == meta.namespace
                    and one.spec.accounting_ref is not None
                    and one.spec.accounting_ref.name == meta.name
                ]
            case _:
                pass
        kept = [one for one in found if not one.metadata.deleting]
        return Neighbours(users=tuple(f"{_kind(one)} {one.metadata.name}" for one in kept))


def _kind(obj: KubeObject) -> str:
    match obj:
        case NodeSet() | LoginSet() | RestApi() | Partition() | Controller():
            return type(obj).__name__
        case _:
            return obj.kind


def _others(found: tuple[T, ...], obj: KubeObject) -> tuple[T, ...]:
    """All but itself, and those that are going."""
    return tuple(
        one
        for one in found
        if not one.metadata.deleting
        and (type(one) is not type(obj) or one.metadata.name != obj.metadata.name)
    )


def _decoded(raw: msgspec.Raw, type_: type[Any]) -> Any:
    """The object, or None for none and for one that cannot be read."""
    if bytes(raw) == bytes(NOTHING):
        return None
    try:
        return msgspec.json.decode(raw, type=type_)
    except msgspec.MsgspecError:
        return None


def _told(found: Judgement) -> Answer:
    causes = tuple(Cause(one.path, one.message) for one in found.problems)
    return Answer(causes, found.warnings)


def _unreadable(words: str) -> Cause:
    """A cause out of msgspec's words, which end in ` - at `$.path``."""
    told, _, path = words.partition(" - at `$.")
    return Cause(path.rstrip("`") or "spec", told)
