"""Slurm that lists no nodes: a slurmctld without its state, and a first cluster that cannot start.

Both look alike to whoever asks slurmctld. In both nothing that may run is deleted, and both come
back without a hand.
"""

from collections.abc import Callable, Mapping

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json
from e2e_kit.cluster import Cluster
from e2e_kit.site import Site, eventually

CONTROLLER = f"{manifests.NAME}-controller-0"
STAND_INS = ("penstock-register-0", "penstock-register-1")
BACK_S = 180.0
"""Slurmctld comes back, runs for a minute, and is believed."""
MISSING: Json = {"image": "localhost/penstock/missing:1"}
LOOPS: Json = {"args": ["-Z", "--no-such-option"]}
NEW_NODE = pytest.mark.needs_slurm("25.11", "slurmrestd registers nodes, so pods stay")
BROKEN: Mapping[str, Json] = {"no image": MISSING, "slurmd ends at once": LOOPS}


@pytest.fixture
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    return clusters("forgotten")


def nodeset(replicas: int, slurmd: Json | None = None) -> Json:
    found = manifests.nodeset(replicas)
    if slurmd is not None:
        found["spec"]["slurmd"] = slurmd
    return found


@NEW_NODE
def test_workers_of_a_slurmctld_that_lost_its_state_register_again_in_their_pods(
    cluster: Cluster,
) -> None:
    """D23, S013, feature row 7: its state was in its pod."""
    worker = nodeset(2)
    worker["spec"]["extraConf"] = "Features=fast Weight=7"
    cluster.create(manifests.controller(), manifests.restapi(), worker)
    cluster.until_idle("compute-0", "compute-1")
    before = {
        name: eventually(f"{name} has its comment", lambda n=name: noted(cluster.node(n)))
        for name in ("compute-0", "compute-1")
    }
    uids = cluster.uids("app.kubernetes.io/name=slurmd")
    started = {name: restarts(pod) for name, pod in cluster.pods().items()}
    cluster.kubectl("delete", "pod", CONTROLLER, "--wait=true")
    cluster.until("pods", lambda pods: CONTROLLER in pods, "slurmctld has a pod again")
    cluster.until_idle("compute-0", "compute-1", timeout=BACK_S)
    assert cluster.uids("app.kubernetes.io/name=slurmd") == uids
    assert {name: restarts(pod) for name, pod in cluster.pods().items()} == started
    assert cluster.run("srun", "-N2", "hostname").split() in (
        ["compute-0", "compute-1"],
        ["compute-1", "compute-0"],
    )
    for name, was in before.items():
        eventually(f"{name} is as it was", lambda n=name, w=was: same(cluster.node(n), w))
    cluster.until_ready("nodesets", "compute")
    # Registered again, they can be drained, and so they can go.
    cluster.kubectl("scale", "nodeset/compute", "--replicas=0")
    cluster.until("pods", lambda _: not cluster.pods(), "all workers are gone")


@NEW_NODE
def test_stand_ins_that_a_killed_operator_left_go_when_the_next_starts(
    cluster: Cluster, site: Site
) -> None:
    """In state FUTURE no list shows them, and each takes room of MaxNodeCount."""
    cluster.create(manifests.controller(), manifests.restapi(), nodeset(1))
    cluster.until_idle("compute-0")
    with site.without_operator():
        names, addresses = "penstock-register-[0-1]", "127.0.0.1,127.0.0.1"
        conf = f"NodeName={names} NodeAddr={addresses} Port=1,2 State=FUTURE"
        assert not cluster.rest("POST", "new/node/", {"node_conf": conf})["errors"]
        assert listed(cluster, "FUTURE") == {"compute-0", *STAND_INS}
        assert listed(cluster) == {"compute-0"}
    eventually("stand-ins are gone", lambda: listed(cluster, "FUTURE") == {"compute-0"})


def listed(cluster: Cluster, flags: str = "") -> set[str]:
    """Names of the node records that slurmrestd lists."""
    found = cluster.rest("GET", f"nodes/?flags={flags}" if flags else "nodes/")
    return {one["name"] for one in found["nodes"]}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_first_cluster_that_cannot_start_comes_up_with_a_corrected_template(
    cluster: Cluster, broken: str
) -> None:
    """S013."""
    first_cluster(cluster, broken)
    body = dict.fromkeys(BROKEN[broken])
    cluster.patch("nodeset", "compute", {"spec": {"slurmd": body}})
    cluster.until_idle("compute-0", "compute-1", timeout=BACK_S)
    cluster.until_ready("nodesets", "compute")


@pytest.mark.parametrize("broken", BROKEN)
def test_a_first_cluster_that_cannot_start_can_be_scaled_in(cluster: Cluster, broken: str) -> None:
    """S013."""
    first_cluster(cluster, broken)
    cluster.kubectl("scale", "nodeset/compute", "--replicas=0")
    cluster.until("pods", lambda _: not cluster.pods(), "all workers are gone", BACK_S)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_nodeset_that_never_started_can_be_deleted(cluster: Cluster, broken: str) -> None:
    """S013."""
    first_cluster(cluster, broken)
    cluster.kubectl("delete", "nodeset", "compute", "--wait=false")
    cluster.until("nodesets", lambda found: not found, "the NodeSet is gone", BACK_S)
    assert not cluster.pods()


def first_cluster(cluster: Cluster, broken: str) -> None:
    """A cluster whose workers do not start, as the kubelet has said of each."""
    cluster.create(manifests.controller(), manifests.restapi(), nodeset(2, dict(BROKEN[broken])))

    def said(pods: dict[str, Json]) -> bool:
        states = [slurmd(pod).get("state", {}) for pod in pods.values()]
        return len(states) == 2 and all("waiting" in state for state in states)

    cluster.until("pods", lambda _: said(cluster.pods()) or None, "both workers fail")


def slurmd(pod: Json) -> Json:
    """What the kubelet says of a worker's slurmd; nothing while it said nothing."""
    found: list[Json] = pod["status"].get("containerStatuses", [])
    none: Json = {}
    return next((one for one in found if one["name"] == "slurmd"), none)


def restarts(pod: Json) -> int:
    return slurmd(pod)["restartCount"]


def noted(record: Json) -> Json | None:
    """A record, once the operator has written its comment."""
    return record if record["comment"] else None


def same(now: Json, was: Json) -> bool:
    """Whether a record has the hardware, features and weight that it had, of the same slurmd.

    Raises LookupError with what differs.
    """
    told = ("cpus", "cores", "sockets", "threads", "real_memory", "features", "weight", "address")
    keys = (*told, "slurmd_start_time", "comment")
    if differs := {key: (was[key], now[key]) for key in keys if now[key] != was[key]}:
        raise LookupError(f"was and is: {differs}")
    return True
