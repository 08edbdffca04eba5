"""Changes of a cluster's configuration, good and bad, and what slurmctld makes of them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from e2e_kit import manifests
from e2e_kit.api import Json, condition
from e2e_kit.cluster import Cluster
from e2e_kit.site import eventually
from penstock.local.errors import LocalError

POD = "slurm-controller-0"
SECONDS = 120.0


@dataclass
class LastDeclared:
    """The last declaration, and the last of them that Slurm can take."""

    keys: dict[str, str] = field(default_factory=lambda: {"SchedulerTimeSlice": "40"})
    raw: str = "50"
    compute: str = "UNLIMITED"
    wide: str | None = None
    bad: str = ""
    """A line of the Controller's own that slurmctld cannot take, until the next good one."""
    bad_compute: str = ""
    bad_wide: bool = False

    def controller(self) -> Json:
        """The Controller with all lines, also the bad one."""
        lines = [f"{key}={value}" for key, value in self.keys.items()]
        lines.append(f"PartitionName=raw Nodes=ALL MaxTime={self.raw}")
        text = manifests.EXTRA_CONF + "\n".join([*lines, *filter(None, [self.bad])]) + "\n"
        return manifests.controller(text, persistence={"enabled": True})

    def nodeset(self) -> Json:
        """The NodeSet with its own partition."""
        config = f"Default=YES MaxTime={self.compute} {self.bad_compute}".strip()
        return manifests.nodeset(2, partition={"enabled": True, "config": config})

    def partition(self) -> Json:
        """The Partition over the NodeSet."""
        spec: dict[str, Any] = {"nodeSets": ["compute"], "maxTime": self.wide}
        if self.bad_wide:
            spec["allowQos"] = ["nosuch"]
        return {
            "apiVersion": "penstock.dev/v1alpha1",
            "kind": "Partition",
            "metadata": {"name": "wide"},
            "spec": {"controllerRef": {"name": manifests.NAME}, **spec},
        }


class Changes:
    """Changes something, and waits until it is in effect or rejected in words."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster = cluster
        self.declared = LastDeclared()
        self.seed = seed
        self._chance = random.Random(seed)

    def good(self) -> str:
        """Make a change that Slurm takes; returns its description."""
        kind = self._chance.choice(("key", "key", "remark", "raw", "compute", "wide", "wide"))
        minutes = str(self._chance.randrange(1, 59))
        one = self.declared
        match kind:
            case "key":
                one.keys["SchedulerTimeSlice"] = str(self._chance.randrange(10, 60))
                self._controller()
            case "remark":
                one.keys["# a remark"] = minutes
                self._controller()
            case "raw":
                one.raw = minutes
                self._controller()
            case "compute":
                one.compute, one.bad_compute = minutes, ""
                self.cluster.apply(one.nodeset())
            case _ if one.wide is not None and self._chance.random() < 0.3:
                one.wide, one.bad_wide = None, False
                self.cluster.kubectl("delete", "partition", "wide")
            case _:
                one.wide, one.bad_wide = minutes, False
                self.cluster.apply(one.partition())
        return f"{kind} {minutes}"

    def bad(self) -> str:
        """Make a change that Slurm rejects, and wait for its words; returns its description.

        An edit that was replaced before anybody read it was never declared for long enough to
        count: the last good one is in effect before it is written over.
        """
        self.settled()
        kind = self._chance.choice(("key", "value", "compute", "wide"))
        one = self.declared
        match kind:
            case "key" | "value":
                one.bad = "BogusKey=1" if kind == "key" else "SchedulerTimeSlice=soon"
                self.cluster.apply(one.controller())
                self._reported("controllers", manifests.NAME, "ConfigValid", one.bad.split("=")[0])
            case "compute":
                one.bad_compute = "AllowQos=nosuch"
                self.cluster.apply(one.nodeset())
                eventually(
                    "the refusal of partition compute is told",
                    lambda: "compute" in self._rejected_partitions(),
                    SECONDS,
                )
            case _:
                if one.wide is None:
                    one.wide = "7"
                    self.cluster.apply(one.partition())
                    self.settled()
                one.bad_wide = True
                self.cluster.apply(one.partition())
                self._reported("partitions", "wide", "Ready", "qos")
        return kind

    def settled(self) -> None:
        """Wait until slurmctld has everything of the declaration that it can take."""
        want = self.expected()
        try:
            eventually(f"slurmctld has {want}", lambda: self.found() == want, SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}, as it has {self.found()}") from None

    def expected(self) -> dict[str, str]:
        """What slurmctld is to show."""
        one = self.declared
        times = {"raw": one.raw, "compute": one.compute, "wide": one.wide}
        shown = {name: _minutes(value) for name, value in times.items() if value is not None}
        return {**shown, "SchedulerTimeSlice": f"{one.keys['SchedulerTimeSlice']} sec"}

    def found(self) -> dict[str, str]:
        """What slurmctld shows; nothing while it is away."""
        try:
            partitions = self.cluster.run("scontrol", "--oneliner", "show", "partition")
            config = self.cluster.run("scontrol", "show", "config")
        except LocalError:
            return {}
        found: dict[str, str] = {}
        for line in partitions.splitlines():
            words = (word.partition("=") for word in line.split())
            pairs = {key: value for key, _, value in words}
            found[pairs["PartitionName"]] = pairs["MaxTime"]
        rows = (line.partition("=") for line in config.splitlines())
        keys = {key.strip(): value.strip() for key, _, value in rows}
        return {**found, "SchedulerTimeSlice": keys["SchedulerTimeSlice"]}

    def file(self) -> str:
        """The slurm.conf with which slurmctld starts next."""
        return self.cluster.get("configmaps", "slurm-config")["data"]["slurm.conf"]

    def _controller(self) -> None:
        self.declared.bad = ""
        self.cluster.apply(self.declared.controller())

    def _rejected_partitions(self) -> str:
        obj = self.cluster.get("controllers", manifests.NAME)
        every = obj["status"]["conditions"] + self.cluster.get("nodesets", "compute")["status"].get(
            "conditions", []
        )
        return " ".join(
            one["message"]
            for one in every
            if one["status"] == "False" and one["reason"] == "PartitionRefused"
        )

    def _reported(self, resource: str, name: str, type_: str, words: str) -> None:
        def found(objects: dict[str, Json]) -> bool:
            obj = objects[name]
            if not any(one["type"] == type_ for one in obj.get("status", {}).get("conditions", ())):
                return False
            one = condition(obj, type_)
            fresh = one.get("observedGeneration") == obj["metadata"]["generation"]
            return fresh and one["status"] == "False" and words in one["message"]

        self.cluster.until(resource, found, f"{name} is refused for {words}", SECONDS)


def _minutes(value: str) -> str:
    return value if value == "UNLIMITED" else f"00:{int(value):02}:00"


def slurmctld(cluster: Cluster) -> tuple[str, int]:
    """The pod of slurmctld, and how often its container was started."""
    pod = cluster.get("pods", POD)
    found = {one["name"]: one["restartCount"] for one in pod["status"]["containerStatuses"]}
    return pod["metadata"]["uid"], found["slurmctld"]


def partition_shown(cluster: Cluster, name: str) -> dict[str, str]:
    """`scontrol show partition` as a mapping; empty when there is none."""
    try:
        words = cluster.run("scontrol", "--oneliner", "show", "partition", name).split()
    except LocalError:
        return {}
    return {key: value for key, _, value in (word.partition("=") for word in words)}
