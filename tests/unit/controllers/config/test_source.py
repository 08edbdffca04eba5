"""The transaction of a configuration whose object and ConfigMaps are of a second API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.api.cluster import marks
from penstock.api.cluster.trigger import Trigger
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import PODS, ConfigMap, Pod
from penstock.api.kubernetes.meta import Json, ObjectMeta
from penstock.controllers.caches.kubernetes import KubernetesCaches
from penstock.controllers.caches.secrets import SecretReader
from penstock.controllers.caches.store import CacheStore
from penstock.controllers.config.source import ConfigSource
from penstock.controllers.config.transaction import ConfigTransaction
from penstock.controllers.config.triggers import Triggers
from penstock.controllers.runtime.connectivity import PortProbe
from penstock.controllers.runtime.object_store import ObjectStore
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.settings import Settings
from penstock.decide.config.view import Stage, Version
from penstock.kube import Client, Manager, Recorder
from penstock.kube.runtime.declaration import Signals
from penstock.model.cluster import ClusterMarks
from penstock.render.config.content import content_hash
from penstock.slurm import versions
from support.tiny_api import CREWS, Crew, CrewSpec
from unit.controllers.stage import put
from unit.kube.fake_api import FakeApi

OLD, NEW = "ClusterName=tiny\n", "ClusterName=tiny\nMinJobAge=9\n"
PATH = "/api/v1/namespaces/slurm/pods/controller-0"
SERVES = Finding(True, "Running")


class LogClient(Client):
    """A client for which the reconfigure container has logged these lines."""

    lines: tuple[str, ...] = ()

    async def log(self, *_: Any, **__: Any) -> str:
        return "".join(f"penstock: {line}\n" for line in self.lines)


class CrewConfigStatus(msgspec.Struct, frozen=True):
    """What some annotation of a Crew might have: its status has no such field."""

    config_hash: str = ""
    effective_config_hash: str = ""
    last_error: str = ""
    slurm_image: str = ""
    slurm_version: str = ""
    mpi_plugins: tuple[str, ...] = ()
    state_version: str = ""
    triggers: tuple[Trigger, ...] = ()


class CrewConfig(ConfigSource):
    """One slurmctld with all its files in one ConfigMap."""

    def __init__(self, lab: Lab, text: str, active: str = OLD, request: str = "") -> None:
        annotations = {marks.RECONFIGURE: request} if request else {}
        meta = ObjectMeta(name="tiny", namespace="slurm", uid="crew-1", annotations=annotations)
        self._lab = lab
        self._text = text
        self.object = Crew(metadata=meta, spec=CrewSpec(cluster="tiny"))
        self.marks = ClusterMarks(active="", restart="")
        self.status = CrewConfigStatus(effective_config_hash=hash_of(active))
        self.startup = "tiny-files"
        self.last_known_good = "tiny-files-good"
        self.workload = "controller"
        self.persistent = True

    def candidate(self) -> Version:
        return self.version({"slurm.conf": self._text})

    def version(self, data: Mapping[str, str]) -> Version:
        found = content_hash(data)
        return Version(data, found, found)

    def image(self) -> str:
        return "slurmctld:25.11"

    def declared_release(self) -> versions.Version | None:
        return versions.of_image(self.image())

    def release(self) -> versions.Version | None:
        return versions.parse("25.11.1")

    def slurmctld_pods(self) -> tuple[Pod, ...]:
        found = self._lab.caches.pods.get("slurm/controller-0")
        return (found,) if found is not None else ()


class Lab:
    """The transaction with caches that show one slurmctld, which runs with OLD."""

    def __init__(self) -> None:
        self.api = FakeApi()
        self.client = client = LogClient(self.api)
        self.caches = caches = KubernetesCaches(CacheStore(Manager(client)))
        recorder = Recorder(client, "test", "test")
        context = Context(
            client,
            Settings(),
            caches,
            SecretReader(caches.secrets),
            ObjectStore(client, caches),
            PortProbe(client.clock),
            recorder,
            Signals(),
        )
        self.events = Events(recorder, CREWS)
        self.transaction = ConfigTransaction(context, CREWS)
        self.triggers = Triggers(client)
        put(caches.store.of(CREWS), CrewConfig(self, OLD).object)
        for name in ("tiny-files", "tiny-files-good"):
            meta = ObjectMeta(name=name, namespace="slurm")
            put(caches.config_maps, ConfigMap(metadata=meta, data={"slurm.conf": OLD}))
        self.annotate({marks.TRIES_CONFIG: "true", marks.CONFIG_HASH: hash_of(OLD)})

    def annotate(self, annotations: Mapping[str, str]) -> None:
        meta = {"name": "controller-0", "namespace": "slurm", "uid": "pod-1"}
        sidecar: Json = {"name": "reconfigure", "state": {"running": {}}}
        daemon: Json = {"name": "slurmctld", "ready": True, "state": {"running": {}}}
        plain: Json = {
            "metadata": {**meta, "annotations": dict(annotations), "resourceVersion": "1"},
            "spec": {"nodeName": "machine"},
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
                "initContainerStatuses": [sidecar],
                "containerStatuses": [daemon],
            },
        }
        self.api.put(PATH, **plain)
        self.see()

    def see(self) -> None:
        """Let the cache show the pod as the API server has it."""
        raw = msgspec.json.encode(self.api.objects[PATH])
        put(self.caches.pods, msgspec.json.decode(raw, type=PODS.type))

    @property
    def annotations(self) -> dict[str, str]:
        return self.api.objects[PATH]["metadata"]["annotations"]

    async def step(self, source: CrewConfig) -> Stage:
        """One reconcile's part: evaluate, and annotate slurmctld's pod."""
        view, step = await self.transaction.evaluate(
            source, worked=True, runs=SERVES, ask=False, live=False
        )
        self.transaction.note(source.object, step, view.candidate.hash, asked=False)
        await self.transaction.mark(source, self.events, view, step)
        self.see()
        return step.stage


def hash_of(text: str) -> str:
    return content_hash({"slurm.conf": text})


async def test_a_changed_file_is_tried_and_delivered_for_an_object_of_any_kind() -> None:
    lab = Lab()
    assert await lab.step(CrewConfig(lab, OLD)) is Stage.EFFECTIVE
    source = CrewConfig(lab, NEW)
    lab.client.lines = (f"effective {hash_of(OLD)}",)
    assert await lab.step(source) is Stage.TRYING
    assert lab.annotations[marks.CONFIG_CANDIDATE] == hash_of(NEW)
    assert lab.transaction.requeue_after(source.object, Stage.TRYING) == 0.1
    lab.client.lines += (f"tried {hash_of(NEW)} ok",)
    assert await lab.step(source) is Stage.DELIVERING
    assert lab.annotations[marks.CONFIG_HASH] == hash_of(NEW)
    assert lab.transaction.reads(source.object)


async def test_a_rejection_is_read_from_the_log_of_the_pod_of_any_kind() -> None:
    lab = Lab()
    await lab.step(CrewConfig(lab, NEW))
    lab.client.lines = (f"tried {hash_of(NEW)} refused: no such key",)
    assert await lab.step(CrewConfig(lab, NEW)) is Stage.REJECTED
    assert lab.annotations[marks.CONFIG_HASH] == hash_of(OLD)


async def test_a_requested_reconfigure_reaches_the_pod_of_any_kind() -> None:
    lab = Lab()
    source = CrewConfig(lab, OLD, request="now")
    view, _ = await lab.transaction.evaluate(source, worked=True, runs=SERVES, ask=True, live=False)
    found = await lab.triggers.advance(source, lab.events, view)
    assert [one.name for one in found.status] == ["reconfigure"]
    assert lab.annotations[marks.RECONFIGURE] == found.mark
