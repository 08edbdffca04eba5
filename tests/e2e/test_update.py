"""A changed template reaches the workers, never more at once than declared, and jobs are kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from e2e_kit import images, manifests
from e2e_kit.api import Json, condition
from e2e_kit.cluster import Cluster
from e2e_kit.site import Site, eventually

OTHER, LOGIN = (f"localhost/penstock-test/{role}-pyxis:1" for role in ("slurmd", "login"))
"""Images with something more, which other tests have as well: `OTHER` is another slurmd."""
WORKERS = tuple(f"compute-{number}" for number in range(4))
EVERY_S = 0.1
OUT = {"DOWN", "DRAIN", "NOT_RESPONDING", "INVALID_REG"}
BLINK_S = 0.5
"""Slurm's answer and the API server's are not of the same moment."""
COUNT = "i=0; while [ ! -e /shared/end-{0} ]; do i=$((i+1)); echo $i; sleep 0.2; done; echo the end"


@dataclass
class Watch:
    """What was out at each look: the longest time that more were out than may be."""

    most: int
    looks: int = 0
    seen: set[frozenset[str]] = field(default_factory=set[frozenset[str]])
    over: list[tuple[float, frozenset[str]]] = field(
        default_factory=list[tuple[float, frozenset[str]]]
    )

    def look(self, states: dict[str, set[str]], pods: dict[str, Json], at: float) -> None:
        out = frozenset(
            name
            for name in WORKERS
            if name not in pods
            or "deletionTimestamp" in pods[name]["metadata"]
            or condition(pods[name], "Ready").get("status") != "True"
            or states.get(name, OUT) & OUT
        )
        self.looks += 1
        self.seen.add(out)
        self.over = [*self.over, (at, out)] if len(out) > self.most else []

    @property
    def broken(self) -> str:
        """What was out for longer than a blink; empty when nothing was."""
        if not self.over or self.over[-1][0] - self.over[0][0] < BLINK_S:
            return ""
        return f"{[sorted(out) for _, out in self.over]} of at most {self.most}"


@contextmanager
def watched(cluster: Cluster, most: int) -> Generator[Watch]:
    """Look at Slurm and at the pods all the time; no more than `most` may be out."""
    watch = Watch(most)
    end = threading.Event()
    broken: list[str] = []

    def look() -> None:
        while not end.wait(EVERY_S):
            try:
                states, pods = cluster.states(), cluster.pods()
            except OSError:
                continue
            watch.look(states, pods, time.monotonic())
            if watch.broken and not broken:
                broken.append(watch.broken)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield watch
    finally:
        end.set()
        thread.join()
    assert broken == []
    assert watch.looks > 10


def update(cluster: Cluster, most: int | str, image: str | None = None, **env: str) -> None:
    """`kubectl patch` of the workers' template."""
    slurmd: Json = {"env": [{"name": key, "value": value} for key, value in env.items()]}
    slurmd["image"] = image
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": most}}
    cluster.patch("nodeset", "compute", {"spec": {"slurmd": slurmd, "updateStrategy": strategy}})


def uids(cluster: Cluster) -> dict[str, str]:
    """Uids of the workers by name."""
    return {name: pod["metadata"]["uid"] for name, pod in cluster.pods().items()}


def updated(found: dict[str, Json]) -> Json | None:
    nodeset = found["compute"]
    status = nodeset["status"]
    told = status.get("observedGeneration") == nodeset["metadata"]["generation"]
    return nodeset if told and status["updatedReplicas"] == len(WORKERS) else None


def start_job(cluster: Cluster, node: str, name: str) -> int:
    """A job that writes lines until it is told to end."""
    script = COUNT.format(name)
    job = cluster.submit(script, f"--nodelist={node}", f"--output=/shared/{name}")
    cluster.until_job(job, "RUNNING")
    return job


def end_job(cluster: Cluster, job: int, name: str) -> None:
    """Tell it; its output must be without a gap, and it must have run once."""
    cluster.site.node.run("touch", f"{cluster.shared}/end-{name}")
    done = cluster.until_job(job, "COMPLETED")
    assert (done["ExitCode"], done["Restarts"]) == ("0:0", "0")
    lines = cluster.output(name).splitlines()
    assert lines == [*map(str, range(1, len(lines))), "the end"]


@pytest.fixture(scope="module")
def cluster(site: Site, clusters: Callable[[str], Cluster]) -> Cluster:
    images.give(site.node, images.build("pyxis", {OTHER: "slurmd", LOGIN: "login"}))
    cluster = clusters("update")
    workers = manifests.on_shared_disk(manifests.nodeset(len(WORKERS)), cluster.shared)
    cluster.create(manifests.controller(), manifests.restapi(), workers)
    cluster.until_ready("nodesets", "compute", timeout=240)
    cluster.until_idle(*WORKERS)
    return cluster


@pytest.mark.parametrize(
    ("most", "image"),
    [
        (1, None),
        pytest.param("25%", OTHER, marks=pytest.mark.needs_slurm("26.05", "the image is of it")),
    ],
)
def test_no_more_workers_are_out_at_once_than_may_be_and_the_busy_one_goes_last(
    cluster: Cluster, most: int | str, image: str | None
) -> None:
    """D32, S011, feature row 37: for a changed variable, and for another image."""
    cluster.until_idle(*WORKERS, timeout=120)
    name = f"job-{most}".strip("%")
    job = start_job(cluster, "compute-2", name)
    before = uids(cluster)
    with watched(cluster, most=1) as watch:
        update(cluster, most, image, ROUND=str(most))
        told = cluster.until("nodesets", waits_for_job(job), "the job is waited for", 240)
        assert told["reason"] == "RollingUpdate"
        pods = uids(cluster)
        assert {one for one in WORKERS if pods[one] == before[one]} == {"compute-2"}
        end_job(cluster, job, name)
        cluster.until("nodesets", updated, "all are updated", 120)
        cluster.until_ready("nodesets", "compute")
        cluster.until_idle(*WORKERS)
    assert {frozenset({one}) for one in WORKERS} <= watch.seen
    assert not set(uids(cluster).values()) & set(before.values())
    if image:
        assert {one["spec"]["containers"][0]["image"] for one in cluster.pods().values()} == {image}
    environments = [one["spec"]["containers"][0]["env"] for one in cluster.pods().values()]
    assert all({"name": "ROUND", "value": str(most)} in env for env in environments)


def waits_for_job(job: int) -> Callable[[dict[str, Json]], Json | None]:
    """Gives the condition once it says that the last pod waits for that job."""

    def told(found: dict[str, Json]) -> Json | None:
        ready = condition(found["compute"], "Ready")
        message = ready.get("message", "")
        return ready if f"job {job} " in message and "3 of 4 pods" in message else None

    return told


def test_a_bad_image_stops_the_update_and_the_former_one_recovers(cluster: Cluster) -> None:
    """Feature row 37: a worker that does not come is out as well."""
    cluster.until_idle(*WORKERS, timeout=120)
    job = start_job(cluster, "compute-1", "kept")
    before = uids(cluster)
    good = cluster.get("nodesets", "compute")["spec"]["slurmd"]
    with watched(cluster, most=1):
        update(cluster, 1, image="localhost/there-is-no:such-image")
        cluster.until("nodesets", fails, "it says what is wrong", 120)
        cluster.poke(3)
        pods = uids(cluster)
        assert len(set(before.values()) & set(pods.values())) == len(WORKERS) - 1
        cluster.patch("nodeset", "compute", {"spec": {"slurmd": {"image": None, **good}}})
        cluster.until("nodesets", updated, "all are as before", 120)
        cluster.until_ready("nodesets", "compute")
        eventually("all are in use", lambda: not any(s & OUT for s in cluster.states().values()))
    after = uids(cluster)
    assert after["compute-1"] == before["compute-1"]
    assert len(set(before.values()) & set(after.values())) == len(WORKERS) - 1
    end_job(cluster, job, "kept")


def fails(found: dict[str, Json]) -> bool:
    ready = condition(found["compute"], "Ready")
    words = ("Image", "compute-3 is new and not in use yet")
    return ready.get("reason") == "PodsFailing" and all(w in ready["message"] for w in words)


def test_changed_resources_of_a_node_take_effect(cluster: Cluster) -> None:
    """D42: slurmctld refuses a slurmd whose resources are not those of its node's record."""
    cluster.until_idle(*WORKERS, timeout=120)
    limits = {"limits": {"memory": "512Mi"}}
    spec: Json = {"extraConf": "Weight=7", "slurmd": {"resources": limits}}
    cluster.patch("nodeset", "compute", {"spec": spec})
    cluster.until("nodesets", updated, "all are updated", 180)
    cluster.until_ready("nodesets", "compute")
    cluster.until_idle(*WORKERS)
    for name in WORKERS:
        told = cluster.run("scontrol", "--oneliner", "show", "node", name).split()
        assert "Weight=7" in told
        spec_limit = next(word for word in told if word.startswith("MemSpecLimit="))
        real = next(word for word in told if word.startswith("RealMemory="))
        assert int(real.split("=")[1]) - int(spec_limit.split("=")[1]) == 512


def test_on_delete_replaces_nothing_by_itself(cluster: Cluster) -> None:
    """Feature row 38."""
    cluster.until_idle(*WORKERS, timeout=120)
    before = uids(cluster)
    strategy = {"type": "OnDelete"}
    slurmd = {"env": [{"name": "ROUND", "value": "by hand"}]}
    cluster.patch("nodeset", "compute", {"spec": {"slurmd": slurmd, "updateStrategy": strategy}})
    cluster.poke(3)
    assert uids(cluster) == before
    assert (
        "keep it until they are deleted"
        in condition(cluster.until_ready("nodesets", "compute"), "Ready")["message"]
    )
    cluster.kubectl("delete", "pod", "compute-3")
    cluster.until("pods", lambda pods: "compute-3" in pods and _new(pods, before), "it is new")
    cluster.until_ready("nodesets", "compute")
    assert {k: v for k, v in uids(cluster).items() if k != "compute-3"} == {
        k: v for k, v in before.items() if k != "compute-3"
    }


def _new(pods: dict[str, Json], before: dict[str, str]) -> bool:
    return pods["compute-3"]["metadata"]["uid"] != before["compute-3"]
