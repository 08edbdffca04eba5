"""Reservations and licences on real Slurm: ours to call, the users' to keep."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, condition
from e2e_kit.changes import slurmctld
from e2e_kit.cluster import Cluster
from e2e_kit.site import eventually
from penstock.local.errors import LocalError
from penstock.slurm.rest import SlurmError, Slurmrestd
from penstock.slurm.rest.reservation import WantedReservation

LICENSES = "Licenses=matlab:{}\n"
RESTART = "controller.penstock.dev/restart=slurmctld@"


def controller(matlab: int, more: str = "") -> Json:
    return manifests.controller(
        manifests.EXTRA_CONF + LICENSES.format(matlab) + more, persistence={"enabled": True}
    )


def workers(count: int = 2, **spec: Any) -> Json:
    return manifests.nodeset(count, **spec)


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("reservations")
    cluster.create(controller(2), manifests.restapi(), workers())
    cluster.until_idle("compute-0", "compute-1")
    return cluster


def reservations(cluster: Cluster) -> str:
    """All of them, as Slurm shows them."""
    return cluster.run("scontrol", "show", "reservations")


def same_reservations(cluster: Cluster, made: str) -> bool:
    """Whether Slurm shows the same ones. Raises LookupError with what it shows instead."""
    if (now := reservations(cluster)) != made:
        raise LookupError(f"{now!r} instead of {made!r}")
    return True


def licences(cluster: Cluster) -> int:
    """How many of `matlab` there are."""
    said = cluster.run("scontrol", "--oneliner", "show", "licenses", "matlab")
    return int(said.partition("Total=")[2].split()[0])


def test_licences_follow_in_seconds_without_a_restart(cluster: Cluster) -> None:
    cluster.until_ready("controllers", "slurm")
    started = slurmctld(cluster)
    assert licences(cluster) == 2
    cluster.apply(controller(4))
    eventually("there are four", lambda: licences(cluster) == 4, 60)
    job = cluster.submit("sleep 1", "--licenses=matlab:3", "--output=/dev/null")
    cluster.until_job(job, "COMPLETED")
    assert slurmctld(cluster) == started


def test_reservations_are_made_changed_and_deleted_by_slurmrestd(cluster: Cluster) -> None:
    async def calls() -> None:
        rest = Slurmrestd(cluster.url, lambda: cluster.token("slurm"))
        start = int(time.time()) + 3600
        await rest.update_reservation(
            WantedReservation(
                "ours",
                start_time=start,
                duration=30,
                nodes=["compute-0", "compute-1"],
                users=["root", "slurm"],
                flags=["MAINT", "IGNORE_JOBS"],
            )
        )
        found = await rest.reservation("ours")
        assert (found.node_list, found.node_count) == ("compute-[0-1]", 2)
        assert set(found.users.split(",")) == {"root", "slurm"}
        assert found.start_time.value() == start
        assert found.end_time.value() == start + 1800
        assert {"MAINT", "IGNORE_JOBS"} <= set(found.flags or ())
        await rest.update_reservation(WantedReservation("ours", nodes=["compute-1"]))
        assert [one.node_list for one in await rest.reservations()] == ["compute-1"]
        await rest.update_reservation(WantedReservation("ours", duration=60))
        assert (await rest.reservation("ours")).end_time.value() == start + 3600
        with pytest.raises(SlurmError):
            await rest.update_reservation(WantedReservation("ours", nodes=["nosuch"]))
        await rest.delete_reservation("ours")
        with pytest.raises(SlurmError):
            await rest.reservation("ours")
        with pytest.raises(SlurmError):
            await rest.delete_reservation("ours")

    asyncio.run(calls())


def test_a_user_s_reservation_outlives_all_that_we_change(cluster: Cluster) -> None:
    nodes = ("starttime=now+2hours", "duration=60", "users=root", "nodes=compute-[0-1]")
    cluster.run("scontrol", "create", "reservation", "reservationname=class", *nodes)
    lics = ("starttime=now+2hours", "duration=60", "users=root", "licenses=matlab:1")
    flags = "flags=LICENSE_ONLY"
    cluster.run("scontrol", "create", "reservation", "reservationname=lic", *lics, flags)
    made = reservations(cluster)
    assert "ReservationName=class" in made
    assert "ReservationName=lic" in made

    # By slurmrestd: nodes and a partition.
    cluster.apply(workers(extraConf="Feature=fast Weight=5", partition=PARTITION))
    eventually("nodes have it", lambda: cluster.node("compute-1")["weight"] == 5, 60)
    shown = ("scontrol", "show", "partition", "compute")
    eventually("the partition has it", lambda: "MaxTime=00:30:00" in cluster.run(*shown), 60)
    assert reservations(cluster) == made

    # By a reconfigure.
    cluster.apply(controller(4, "MinJobAge=333\n"))
    eventually("it is reconfigured", lambda: "MinJobAge               = 333" in config(cluster), 60)
    assert reservations(cluster) == made

    # By restarts: of the daemon that is killed, and of the pod.
    uid, count = slurmctld(cluster)
    cluster.kill("slurmctld")
    eventually("it was started again", lambda: slurmctld(cluster) == (uid, count + 1), 90)
    eventually("they are there", lambda: same_reservations(cluster, made), 60)
    cluster.kubectl("annotate", "controller", "slurm", "--overwrite", f"{RESTART}1")
    eventually("it has another pod", lambda: slurmctld(cluster)[0] != uid, 120)
    eventually("they are there still", lambda: same_reservations(cluster, made), 120)

    # A node that is reserved goes and comes back.
    cluster.until_idle("compute-0", "compute-1", timeout=120)
    cluster.apply(workers(1, extraConf="Feature=fast Weight=5", partition=PARTITION))
    eventually("its pod is gone", lambda: set(cluster.pods()) == {"compute-0"}, 120)
    assert reservations(cluster) == made
    cluster.apply(workers(2, extraConf="Feature=fast Weight=5", partition=PARTITION))
    cluster.until_idle("compute-0", "compute-1", timeout=120)
    assert reservations(cluster) == made


PARTITION = {"enabled": True, "config": "Default=YES MaxTime=30"}


def config(cluster: Cluster) -> str:
    """slurmctld's own."""
    try:
        return cluster.run("scontrol", "show", "config")
    except LocalError:
        return ""


RESERVATION = "ReservationName=SlurmOperatorMaint-compute"


def schedule(cluster: Cluster, start: float, **env: str) -> None:
    """`kubectl patch`: an update in a reservation of ten minutes."""
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(start))
    strategy = {
        "type": "ScheduledUpdate",
        "scheduledUpdate": {"startTime": when, "duration": "10m", "flags": ["overlap"]},
    }
    spec: Json = {"updateStrategy": strategy, "revisionHistoryLimit": 3}
    if env:
        spec["slurmd"] = {"env": [{"name": name, "value": env[name]} for name in env]}
    cluster.patch("nodeset", "compute", {"spec": spec})


def uids(cluster: Cluster) -> dict[str, str]:
    return {name: pod["metadata"]["uid"] for name, pod in cluster.pods().items()}


def told(cluster: Cluster) -> Json:
    return condition(cluster.get("nodesets", "compute"), "ReservationCreated")


def test_workers_are_replaced_in_a_reservation_of_slurm_and_jobs_are_waited_for(
    cluster: Cluster,
) -> None:
    """Feature row 39."""
    for name in ("class", "lic"):
        if f"ReservationName={name} " in reservations(cluster):
            cluster.run("scontrol", "delete", f"reservationname={name}")
    cluster.until_idle("compute-0", "compute-1", timeout=120)
    before = uids(cluster)
    schedule(cluster, time.time() + 7200, ROUND="scheduled")
    eventually("there is a reservation", lambda: RESERVATION in reservations(cluster), 60)
    made = reservations(cluster)
    assert "Nodes=compute-[0-1]" in made
    assert {"MAINT", "IGNORE_JOBS", "OVERLAP"} <= flags(made)
    eventually("it is told", lambda: told(cluster).get("reason") == "Created", 60)
    assert "compute-[0-1] are replaced in reservation" in told(cluster)["message"]
    options = ("--time=10", "--nodelist=compute-1", "--output=/dev/null")
    job = cluster.submit("sleep 45", *options)
    cluster.until_job(job, "RUNNING")
    assert uids(cluster) == before

    schedule(cluster, time.time() - 30)
    eventually("all are new", lambda: not set(before.values()) & set(uids(cluster).values()), 240)
    done = cluster.until_job(job, "COMPLETED")
    assert (done["ExitCode"], done["Restarts"]) == ("0:0", "0")
    cluster.until_ready("nodesets", "compute", timeout=120)
    cluster.until_idle("compute-0", "compute-1", timeout=120)
    eventually("it is gone", lambda: RESERVATION not in reservations(cluster), 60)
    eventually("that is told", lambda: told(cluster).get("reason") == "UpToDate", 60)
    kept = cluster.get("nodesets", "compute")["metadata"]["finalizers"]
    assert kept == ["nodeset.penstock.dev/drain"]


def flags(shown: str) -> set[str]:
    return set(shown.partition("Flags=")[2].split()[0].split(","))


def test_an_annotation_brings_the_template_before_back(cluster: Cluster) -> None:
    """Feature row 40, S152."""
    was = cluster.get("nodesets", "compute")["spec"]
    assert was["slurmd"]["env"] == [{"name": "ROUND", "value": "scheduled"}]
    strategy = {"updateStrategy": {"type": "OnDelete"}}
    new = [{"name": "ROUND", "value": "rolled back"}]
    cluster.patch("nodeset", "compute", {"spec": {**strategy, "slurmd": {"env": new}}})
    cluster.until("controllerrevisions", lambda found: len(found) >= 2, "it is recorded", 60)
    key = "nodeset.penstock.dev/rollback-to"
    cluster.kubectl("annotate", "nodeset", "compute", f"{key}=previous")

    def back(found: dict[str, Json]) -> bool:
        nodeset = found["compute"]
        return condition(nodeset, "RolledBack").get("status") == "True"

    cluster.until("nodesets", back, "it is rolled back", 60)
    now = cluster.get("nodesets", "compute")["spec"]
    assert now == {**was, **now, "slurmd": was["slurmd"]}
    cluster.kubectl("annotate", "nodeset", "compute", "--overwrite", f"{key}=77")

    def refused(found: dict[str, Json]) -> bool:
        return "no revision 77" in condition(found["compute"], "RolledBack").get("message", "")

    cluster.until("nodesets", refused, "it says why not", 60)
    assert cluster.get("nodesets", "compute")["spec"] == now
