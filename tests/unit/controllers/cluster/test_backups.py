"""The whole operator and a slurmctld with a backup, on simulated machines: row 8, D7."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fault_plans.world import CORE, GROUP, SPACE
from penstock.api.cluster.pod_names import HANDOVER
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.labels import CONTROLLER_ACTIVE
from penstock.controllers.cluster.backups import HANDOVER_PACE_S
from penstock.simulation.event_loop import simulate
from unit.controllers.slinky.test_accounting import Lab

PODS = ("slurm-controller-0", "slurm-controller-1")


def active(lab: Lab) -> list[str]:
    pods = [lab.world.find("/pods", name) for name in PODS]
    return [
        pod["metadata"]["name"]
        for pod in pods
        if pod and pod["metadata"]["labels"].get(CONTROLLER_ACTIVE) == "true"
    ]


def writes(lab: Lab) -> int:
    return sum("/events" not in path for _, path in lab.world.writes)


@asynccontextmanager
async def backed(mode: str = "ReadWriteMany") -> AsyncGenerator[Lab]:
    """A lab with an operator and a slurmctld with a backup, whose state is on an existing PVC.

    With another `mode` no Kubernetes node runs pods.
    """
    lab = Lab()
    body = {"metadata": {"name": "state"}, "spec": {"accessModes": [mode]}}
    lab.world.ask("POST", f"{CORE}/persistentvolumeclaims", body)
    lab.world.declare(1)
    spec = {"ha": {"enabled": True}, "persistence": {"enabled": True, "existingClaim": "state"}}
    lab.patch(f"{GROUP}/controllers/slurm", {"spec": spec})
    if mode != "ReadWriteMany":
        lab.world.machines.silent |= {"machine-0", "machine-1", "machine-2"}
    process = lab.world.operator()
    try:
        yield lab
    finally:
        await lab.world.crash(process)


def test_the_label_follows_who_works_and_a_standby_gets_what_was_changed() -> None:
    async def play() -> None:
        async with backed() as lab:
            await lab.ready("controllers", "slurm")
            await lab.until(lambda: active(lab) == [PODS[0]])
            conf = lab.slurm_conf()
            assert [f"SlurmctldHost={name}(" in conf for name in PODS] == [True, True]
            first, standby = map(lab.uid, PODS)

            lab.patch(f"{GROUP}/controllers/slurm", {"spec": {"extraConf": "MinJobAge=3\n"}})
            await lab.until(lambda: lab.uid(PODS[1]) not in ("", standby))
            assert lab.uid(PODS[0]) == first
            assert "MinJobAge=3\n" in lab.slurm_conf()
            await lab.ready("controllers", "slurm")
            standby = lab.uid(PODS[1])

            lab.world.slurm.ctld.deaf.add(PODS[0])
            await lab.until(lambda: active(lab) == [PODS[1]])
            lab.patch(f"{GROUP}/controllers/slurm", {"spec": {"extraConf": "MinJobAge=4\n"}})
            await lab.until(lambda: "MinJobAge=4\n" in lab.slurm_conf())
            await lab.until(lambda: lab.uid(PODS[0]) not in ("", first))
            assert lab.uid(PODS[1]) == standby

            lab.world.slurm.ctld.deaf.clear()
            await lab.until(lambda: active(lab) == [PODS[0]])
            await lab.ready("controllers", "slurm")
            uids, written = list(map(lab.uid, PODS)), writes(lab)
            await asyncio.sleep(60)
            assert list(map(lab.uid, PODS)) == uids
            assert writes(lab) == written

    simulate(play())


def test_the_backup_that_has_control_ends_while_the_primary_waits_for_it() -> None:
    async def play() -> None:
        async with backed() as lab:
            await lab.ready("controllers", "slurm")
            await lab.until(lambda: active(lab) == [PODS[0]])
            lab.world.slurm.ctld.deaf.add(PODS[0])
            await lab.until(lambda: active(lab) == [PODS[1]])
            primary, backup = map(lab.uid, PODS)
            status: Json = {
                "initContainerStatuses": [{"name": HANDOVER, "state": {"running": {}}}],
                "containerStatuses": [
                    {
                        "name": "slurmctld",
                        "ready": False,
                        "state": {"waiting": {"reason": "PodInitializing"}},
                    }
                ],
            }
            lab.world.ask("PATCH", f"{CORE}/pods/{PODS[0]}/status", {"status": status})
            await lab.until(lambda: lab.uid(PODS[1]) != backup)
            # It has control once more, as a primary that ends at its start leaves it.
            assert lab.uid(PODS[0]) == primary
            ended = asyncio.get_running_loop().time()
            await lab.until(lambda: active(lab) == [PODS[1]])
            again = lab.uid(PODS[1])
            await lab.until(lambda: lab.uid(PODS[1]) not in ("", again), HANDOVER_PACE_S + 60)
            assert asyncio.get_running_loop().time() - ended > HANDOVER_PACE_S - 60
            note = f"Recreating pod {PODS[1]}: {PODS[0]} takes control back from it"
            events = lab.world.server.objects
            await lab.until(lambda: note in [one["note"] for one in events("events.k8s.io/events")])

    simulate(play())


def services(lab: Lab) -> list[str]:
    return [name for name in PODS if lab.world.find("/services", name) is not None]


def test_services_of_slurmctlds_go_once_no_slurm_conf_names_them() -> None:
    async def play() -> None:
        async with backed() as lab:
            await lab.ready("controllers", "slurm")
            await lab.until(lambda: active(lab) == [PODS[0]])
            assert services(lab) == list(PODS)
            lab.patch(f"{GROUP}/controllers/slurm", {"spec": {"ha": None}})

            def gone() -> bool:
                found = services(lab)
                names = [name for name in PODS if f"({name}.{SPACE})" in lab.slurm_conf()]
                assert set(names) <= set(found)
                return not found

            await lab.until(gone)
            await lab.ready("controllers", "slurm")

    simulate(play())


def test_a_claim_that_only_one_pod_can_have_is_told() -> None:
    async def play() -> None:
        async with backed("ReadWriteOnce") as lab:
            await lab.until(lambda: lab.says("controllers", "slurm")[1] == "ClaimNotShared")
            assert "ReadWriteMany" in lab.says("controllers", "slurm")[2]

    simulate(play())
