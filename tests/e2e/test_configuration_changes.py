"""Many changes of the configuration, good and bad, on real Slurm while jobs run.

    PENSTOCK_CHANGES=50 PENSTOCK_KILLS=10 PENSTOCK_SEED=1 pytest tests/e2e/test_configuration_changes.py

CI makes fewer. The seed is told when one fails.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, condition
from e2e_kit.chance import seed
from e2e_kit.cluster import Cluster
from e2e_kit.site import eventually
from penstock.local.errors import LocalError

CHANGES = int(os.environ.get("PENSTOCK_CHANGES", "16"))
KILLS = int(os.environ.get("PENSTOCK_KILLS", "4"))
POD = "slurm-controller-0"
SECONDS = 120.0


@dataclass
class Declared:
    """What was declared last, and of it the last that Slurm can take."""

    keys: dict[str, str] = field(default_factory=lambda: {"SchedulerTimeSlice": "40"})
    raw: str = "60"
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
    """Changes something, and waits until it is in effect or refused in words."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster = cluster
        self.declared = Declared()
        self.seed = seed
        self._chance = random.Random(seed)

    def good(self) -> str:
        """Make one that Slurm takes; says what it was."""
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
        """Make one that Slurm refuses, and wait for its words; says what it was."""
        kind = self._chance.choice(("key", "value", "compute", "wide"))
        one = self.declared
        match kind:
            case "key" | "value":
                one.bad = "BogusKey=1" if kind == "key" else "SchedulerTimeSlice=soon"
                self.cluster.apply(one.controller())
                self._told("controllers", manifests.NAME, "ConfigValid", one.bad.split("=")[0])
            case "compute":
                one.bad_compute = "AllowQos=nosuch"
                self.cluster.apply(one.nodeset())
                eventually(
                    "the refusal of partition compute is told",
                    lambda: "compute" in self._refused_partitions(),
                    SECONDS,
                )
            case _:
                if one.wide is None:
                    one.wide = "7"
                    self.cluster.apply(one.partition())
                    self.settled()
                one.bad_wide = True
                self.cluster.apply(one.partition())
                self._told("partitions", "wide", "Ready", "qos")
        return kind

    def settled(self) -> None:
        """Wait until slurmctld has all that it can take of what is declared."""
        want = self.expected()
        eventually(f"slurmctld has {want}", lambda: self.found() == want, SECONDS)

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
            pairs = dict(word.partition("=")[::2] for word in line.split())
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

    def _refused_partitions(self) -> str:
        obj = self.cluster.get("controllers", manifests.NAME)
        every = obj["status"]["conditions"] + self.cluster.get("nodesets", "compute")["status"].get(
            "conditions", []
        )
        return " ".join(
            one["message"]
            for one in every
            if one["status"] == "False" and one["reason"] == "PartitionRefused"
        )

    def _told(self, resource: str, name: str, type_: str, words: str) -> None:
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


@pytest.fixture
def changes(clusters: Callable[[str], Cluster]) -> Changes:
    cluster = clusters("changes")
    found = Changes(cluster, seed())
    cluster.create(found.declared.controller(), manifests.restapi(), found.declared.nodeset())
    cluster.until_idle("compute-0", "compute-1")
    cluster.until_ready("controllers", manifests.NAME, SECONDS)
    found.settled()
    return found


@pytest.mark.timeout(CHANGES * 30 + 300)
def test_after_many_changes_the_last_good_declaration_is_in_effect(
    changes: Changes, figure: Callable[[str], None]
) -> None:
    cluster = changes.cluster
    chance = random.Random(changes.seed + 1)
    jobs = [cluster.submit("exec sleep 3000", "-w", f"compute-{n}") for n in range(2)]
    for job in jobs:
        cluster.until_job(job, "RUNNING")
    started, workers = slurmctld(cluster), cluster.uids("app.kubernetes.io/name=slurmd")
    order = [number % 3 == 0 for number in range(CHANGES)]
    chance.shuffle(order)
    made: list[str] = []
    times: list[float] = []
    for bad in order:
        if bad:
            made.append(f"bad {changes.bad()}")
        else:
            made.append(changes.good())
            began = time.monotonic()
            if chance.random() < 0.8:
                changes.settled()
                times.append(time.monotonic() - began)
        print(made[-1], f"{times[-1]:.1f} s" if times and not bad else "")
    changes.settled()
    assert [cluster.job(job)["JobState"] for job in jobs] == ["RUNNING", "RUNNING"]
    assert slurmctld(cluster) == started
    assert cluster.uids("app.kubernetes.io/name=slurmd") == workers
    assert all(not state & {"DRAIN", "DOWN"} for state in cluster.states().values())

    # It starts on the same, whatever is refused at the moment.
    cluster.run("sh", "-c", "kill -9 $(pgrep -x slurmctld | head -1)")
    eventually("slurmctld was started again", lambda: slurmctld(cluster)[1] == started[1] + 1)
    changes.settled()
    assert "nosuch" not in changes.file()
    assert "BogusKey" not in changes.file()
    times.sort()
    median, last = times[len(times) // 2], times[-1]
    figure(
        f"{CHANGES} changes of a configuration (seed {changes.seed}): good ones in effect after "
        f"{median:.1f} s (median), {last:.1f} s (longest)"
    )


@pytest.mark.timeout(KILLS * 90 + 300)
def test_slurmctld_killed_amid_changes_comes_back_on_the_last_good_one(changes: Changes) -> None:
    cluster = changes.cluster
    chance = random.Random(changes.seed + 2)
    job = cluster.submit("exec sleep 3000")
    cluster.until_job(job, "RUNNING")
    for number in range(KILLS):
        if number % 2:
            bad = True
            changes.declared.bad = "BogusKey=1"
            cluster.apply(changes.declared.controller())
        else:
            bad = False
            changes.declared.bad = ""
            changes.declared.keys["SchedulerTimeSlice"] = str(10 + number)
            changes.declared.raw = str(1 + number)
            cluster.apply(changes.declared.controller())
        # Not a wait for something: this is how far the change gets.
        time.sleep(chance.uniform(0.0, 2.5))
        uid = slurmctld(cluster)[0]
        # A pod of its own each time: the kubelet waits longer before each start of a container.
        cluster.kubectl("delete", "pod", POD, "--grace-period=0", "--force")
        eventually("slurmctld is another one", lambda u=uid: _other(cluster, u), SECONDS)
        changes.settled()
        assert "BogusKey" not in changes.file(), f"kill {number}"
        if bad:
            obj = cluster.get("controllers", manifests.NAME)
            assert obj["status"]["configHash"] != obj["status"]["effectiveConfigHash"]
        assert cluster.job(job)["JobState"] == "RUNNING", f"kill {number}"


def _other(cluster: Cluster, uid: str) -> bool:
    found = cluster.pods("app.kubernetes.io/name=slurmctld")
    return POD in found and found[POD]["metadata"]["uid"] != uid
