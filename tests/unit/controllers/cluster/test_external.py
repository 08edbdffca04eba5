"""The whole operator and an outside slurmctld, on simulated machines: S073, S082, D27."""

from __future__ import annotations

import socket
from typing import Any

from fault_plans.world import CORE, GROUP, SPACE
from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import labels as slinky_labels
from penstock.decide.advice.cgroups import SHARED
from penstock.simulation.event_loop import simulate
from penstock.simulation.faults import Fault
from unit.controllers.slinky.test_accounting import Lab, operated, played

OUTSIDE: Json = {
    "external": True,
    "externalConfig": {"host": "slurm.example.com", "port": 16817},
    "persistence": None,
}
INSIDE: Json = {"external": False, "externalConfig": None, "persistence": {"enabled": True}}
OURS = (
    ("apps/statefulsets", "slurm-controller"),
    ("/services", "slurm-controller"),
    ("/services", "slurm-controller-slurm"),
    ("/services", "slurm-controller-internal"),
    ("/configmaps", "slurm-config-candidate"),
)
"""What only a slurmctld of ours has."""


def declare(lab: Lab, spec: Json, **annotations: str) -> None:
    body = {"spec": spec, "metadata": {"annotations": annotations}}
    lab.patch(f"{GROUP}/controllers/slurm", body)


def outside(lab: Lab, **annotations: str) -> None:
    """Have a slurmctld run without a pod, and say so."""
    lab.world.slurm.external = True
    lab.world.slurm.start()
    declare(lab, OUTSIDE, **annotations)


def keys(lab: Lab) -> None:
    lab.secret("slurm-auth-slurm", **{"slurm.key": "slurm"})
    lab.secret("slurm-auth-jwt", **{"jwt.key": "jwt"})


def ours(lab: Lab) -> list[str]:
    return [name for resource, name in OURS if lab.world.find(resource, name) is not None]


def arguments(lab: Lab) -> list[str]:
    pod = lab.world.find("/pods", "compute-0")
    return pod["spec"]["containers"][0]["args"] if pod else []


def condition_types(lab: Lab) -> set[str]:
    found: Any = lab.world.find("slinky.slurm.net/controllers", "slurm")
    return {one["type"] for one in found["status"]["conditions"]}


def test_workers_and_slurmrestd_are_led_to_an_outside_slurmctld_and_nothing_is_made_of_it() -> None:
    """S073: its keys are waited for, not generated, and whether it works is what it answers."""

    async def play() -> None:
        lab = Lab()
        lab.world.declare(1)
        outside(lab)
        process = lab.world.operator()
        try:
            await lab.until(lambda: lab.says("controllers", "slurm")[1] == "SecretNotFound")
            assert "key of the external slurmctld" in lab.says("controllers", "slurm")[2]
            assert lab.world.server.objects("/secrets", SPACE) == []
            keys(lab)
            await lab.ready("controllers", "slurm")
            told = lab.says("controllers", "slurm")
            assert told == ("True", "SlurmctldAnswers", told[2])
            assert "slurm.example.com:16817" in told[2]
            await lab.until(lambda: "slurm.example.com:16817" in arguments(lab))
            conf = lab.slurm_conf()
            assert "SlurmctldHost=slurm.example.com\nSlurmctldPort=16817\n" in conf
            assert ours(lab) == []
            assert {"ConfigApplied", "ConfigValid"}.isdisjoint(condition_types(lab))
        finally:
            await lab.world.crash(process)

    simulate(play())


def test_a_silent_outside_slurmctld_is_told_in_slurmrestds_words_and_takes_no_worker_away() -> None:
    """S083, feature row 9: until it answers again."""

    async def play(lab: Lab) -> None:
        outside(lab)
        keys(lab)
        await lab.until(lambda: lab.says("controllers", "slurm")[1] == "SlurmctldAnswers")
        await lab.until(lambda: lab.uid("compute-0"))
        worker = lab.uid("compute-0")
        lab.world.slurm_fault(Fault.CONTROLLER_DOWN, SPACE)
        await lab.until(lambda: lab.says("controllers", "slurm")[1] == "SlurmctldSilent")
        assert lab.says("controllers", "slurm", "Reconciling")[0] == "True"
        lab.world.slurm_fault(Fault.NONE, SPACE)
        await lab.ready("controllers", "slurm")
        assert lab.uid("compute-0") == worker

    played(play)


def test_a_slurmctld_that_moves_outside_leaves_nothing_and_one_that_comes_back_is_as_new() -> None:
    async def play(lab: Lab) -> None:
        await lab.ready("controllers", "slurm")
        assert ours(lab) == [name for _, name in OURS]
        inside = lab.slurm_conf()
        outside(lab)
        await lab.until(lambda: lab.says("controllers", "slurm")[1] == "SlurmctldAnswers")
        await lab.until(lambda: ours(lab) == [] and not lab.uid("slurm-controller-0"))
        assert {"ConfigApplied", "ConfigValid"}.isdisjoint(condition_types(lab))
        lab.world.slurm.external = False
        declare(lab, INSIDE)
        await lab.until(lambda: lab.uid("slurm-controller-0"))
        await lab.until(lambda: lab.says("controllers", "slurm", "ConfigApplied")[0] == "True")
        await lab.ready("controllers", "slurm")
        assert ours(lab) == [name for _, name in OURS]
        assert lab.slurm_conf() == inside

    played(play)


def test_the_lines_of_a_nodesets_partition_are_told_until_the_outside_slurmctld_has_it() -> None:
    """D27, S162: not dropped in silence."""

    async def play(lab: Lab) -> None:
        outside(lab)
        keys(lab)
        own = {"partition": {"enabled": True, "config": "MaxTime=60"}}
        lab.patch(f"{GROUP}/nodesets/compute", {"spec": own})
        await lab.until(lambda: lab.says("nodesets", "compute")[1] == "PartitionOutside")
        told = lab.says("nodesets", "compute")[2]
        assert "NodeSet=compute Feature=compute" in told
        assert "PartitionName=compute Nodes=compute MaxTime=60" in told
        lab.world.slurm.ctld.read("PartitionName=compute Nodes=ALL\n")
        await lab.ready("nodesets", "compute")

    played(play)


def test_what_annotations_ask_of_an_outside_slurmctld_is_refused_once() -> None:
    async def play(lab: Lab) -> None:
        outside(lab, **{marks.RESTART: "slurmctld@1", marks.RECONFIGURE: "1"})
        keys(lab)
        await lab.ready("controllers", "slurm")
        found: Any = lab.world.find("slinky.slurm.net/controllers", "slurm")
        told = {one["name"]: one["result"] for one in found["status"]["triggers"]}
        assert told == {"reconfigure": "Refused", "restart": "Refused"}
        written = len(lab.world.writes)
        declare(lab, OUTSIDE, other="1")
        await lab.until(lambda: len(lab.world.writes) == written, 1)
        again: Any = lab.world.find("slinky.slurm.net/controllers", "slurm")
        assert again["status"] == found["status"]

    played(play)


def test_an_operator_that_starts_does_not_tell_that_an_outside_slurmctld_is_silent() -> None:
    async def play() -> None:
        async with operated() as lab:
            outside(lab)
            keys(lab)
            await lab.until(lambda: lab.says("controllers", "slurm")[1] == "SlurmctldAnswers")
            told: list[str] = []
            lab.world.server.store.listeners.append(
                lambda _: told.append(lab.says("controllers", "slurm")[1])
            )
            await lab.world.crash(lab.world.processes[0])
            process = lab.world.operator()
            await lab.until(lambda: len(process.lines[SPACE].rest.calls) > 3)
            assert set(told) <= {"SlurmctldAnswers"}

    simulate(play())


def test_a_name_a_port_and_a_key_that_are_wrong_are_told_apart_and_heal_by_themselves() -> None:
    """S079, S080."""
    host, port = "slurm.example.com", 16817

    async def play(lab: Lab) -> None:
        outside(lab)
        keys(lab)
        lab.world.slurm_fault(Fault.HANG, SPACE)
        for error, reason, words in (
            (socket.gaierror(-2, "Name or service not known"), "NameNotResolved", host),
            (ConnectionRefusedError(), "PortUnreachable", "refuses connections"),
            (TimeoutError(), "PortUnreachable", "does not answer the operator's pod within 3 s"),
            (OSError(113, "No route to host"), "PortUnreachable", "no route"),
        ):
            lab.world.closed[host, port] = error
            await lab.until(lambda r=reason, w=words: tells(lab, r, w))
        assert f"{host}:{port}" in lab.says("controllers", "slurm")[2]
        lab.world.closed.clear()
        await lab.until(lambda: lab.says("controllers", "slurm")[1] == "SlurmctldSilent")
        lab.world.slurm_fault(Fault.EXPIRED, SPACE)
        await lab.until(lambda: tells(lab, "AuthenticationFailed", f"{host}:{port}"))
        assert "jwt.key of Secret slurm-auth-jwt" in lab.says("controllers", "slurm")[2]
        lab.world.slurm_fault(Fault.NONE, SPACE)
        await lab.until(lambda: lab.says("controllers", "slurm")[1] == "SlurmctldAnswers")

    played(play)


def tells(lab: Lab, reason: str, words: str) -> bool:
    _, found, message = lab.says("controllers", "slurm")
    return found == reason and words in message


def test_the_way_to_an_outside_slurmdbd_is_told() -> None:
    """S080: port 6819, and again when it opens."""
    where = ("db.example.com", 6819)

    async def play(lab: Lab) -> None:
        lab.world.closed[where] = ConnectionRefusedError()
        lab.accounting(external=True, externalConfig={"host": where[0]}, storageConfig=None)
        await lab.until(lambda: lab.says("accountings", "records")[1] == "PortUnreachable")
        assert "slurmdbd at db.example.com:6819" in lab.says("accountings", "records")[2]
        lab.world.closed[where] = socket.gaierror(-2, "Name or service not known")
        await lab.until(lambda: lab.says("accountings", "records")[1] == "NameNotResolved")
        lab.world.closed.clear()
        await lab.ready("accountings", "records")

    played(play)


def test_a_cgroup_conf_that_machines_share_with_pods_is_told_while_they_do() -> None:
    """S081: on the NodeSet, which stays ready."""

    async def play(lab: Lab) -> None:
        await lab.ready("nodesets", "compute")
        assert lab.says("nodesets", "compute", SHARED)[0] != "True"
        patch = {"spec": {"extraConf": "NodeName=metal-0 CPUs=1\n"}}
        lab.patch(f"{GROUP}/controllers/slurm", patch)
        await lab.until(lambda: lab.says("nodesets", "compute", SHARED)[0] == "True")
        assert "metal-0" in lab.says("nodesets", "compute", SHARED)[2]
        await lab.ready("nodesets", "compute")
        lab.patch(f"{GROUP}/controllers/slurm", {"spec": {"extraConf": ""}})
        await lab.until(lambda: lab.says("nodesets", "compute", SHARED)[0] != "True")

    played(play)


def test_machines_of_an_outside_slurmctld_are_told_with_the_key_that_may_harm_them() -> None:
    """S081: its cgroup.conf is seen by nobody here."""

    async def play(lab: Lab) -> None:
        outside(lab)
        keys(lab)
        await lab.until(lambda: lab.uid("compute-0"))
        assert lab.says("nodesets", "compute", SHARED)[0] != "True"
        lab.world.slurm.ctld.register("metal-0")
        await lab.until(lambda: lab.says("nodesets", "compute", SHARED)[1] == "CgroupConfNotSeen")
        assert "metal-0" in lab.says("nodesets", "compute", SHARED)[2]
        lab.world.slurm_fault(Fault.CONTROLLER_DOWN, SPACE)
        await lab.until(lambda: lab.says("controllers", "slurm")[1] == "SlurmctldSilent")
        assert lab.says("nodesets", "compute", SHARED)[0] == "True"
        lab.world.slurm_fault(Fault.NONE, SPACE)
        await lab.ready("controllers", "slurm")
        lab.world.slurm.ctld.lose("metal-0")
        await lab.until(lambda: lab.says("nodesets", "compute", SHARED)[0] != "True")

    played(play)


def test_a_slurmd_that_is_not_believed_is_told_and_gets_the_right_key_at_once() -> None:
    """S079: while slurmrestd, with a token of its own, is answered."""
    said = "error: failed to fetch remote configs: Protocol authentication error\n"

    async def play(lab: Lab) -> None:
        outside(lab)
        keys(lab)
        await lab.until(lambda: lab.says("controllers", "slurm")[1] == "SlurmctldAnswers")
        await lab.until(lambda: ready(lab))
        logs = lab.world.server.logs

        def log(namespace: str, name: str, container: str) -> str | None:
            return said if container == "slurmd" else logs(namespace, name, container)

        lab.world.server.logs = log
        told_ready(lab, "False")
        lab.secret("slurm-auth-slurm", **{"slurm.key": "wrong"})
        await lab.until(lambda: tells(lab, "AuthenticationFailed", "compute-0"))
        assert "Secret slurm-auth-slurm, key slurm.key" in lab.says("controllers", "slurm")[2]
        await lab.until(lambda: key_hash(lab))
        wrong = key_hash(lab)
        lab.secret("slurm-auth-slurm", **{"slurm.key": "right"})
        await lab.until(lambda: key_hash(lab) != wrong)
        told_ready(lab, "True")
        await lab.until(lambda: lab.says("controllers", "slurm")[1] == "SlurmctldAnswers")

    played(play)


def told_ready(lab: Lab, status: str) -> None:
    """Have the kubelet say whether the worker is ready; its containers run."""
    body = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
    path = f"{CORE}/pods/compute-0/status"
    lab.world.server.ask("PATCH", path, body, kind="strategic", user="kubelet")


def ready(lab: Lab) -> bool:
    pod: Any = lab.world.find("/pods", "compute-0") or {"status": {}}
    found: list[Any] = pod["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in found)


def key_hash(lab: Lab) -> str:
    pod: Any = lab.world.find("/pods", "compute-0")
    found: str = pod["metadata"].get("annotations", {}).get(slinky_labels.SLURM_KEY_HASH, "")
    return found
