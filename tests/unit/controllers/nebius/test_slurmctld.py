"""The configuration of a SlurmCluster on its way to slurmctld, and slurmctld's pod."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.controllers.config.transaction import ConfigTransaction
from penstock.controllers.partition.changes import PartitionChanges
from penstock.decide.config.view import Stage
from penstock.kube import Applier, ConflictError
from penstock.render.config.content import content_hash
from penstock.simulation.slurm.reconfigure import REBINDS, Sidecar
from unit.controllers.nebius.lab import CORE, OLDER, SHAPES, SPACE, Lab, played

STARTUP = names.slurm_configs("slurm")
GOOD = names.last_known_good_configs("slurm")
CANDIDATE = names.candidate_configs("slurm")


def data(lab: Lab, name: str) -> dict[str, str]:
    found: dict[str, str] = lab.get("/configmaps", name)["data"]
    return found


def uid(lab: Lab) -> str:
    found: str = lab.get("/pods", f"{lab.world.prefix}controller-0")["metadata"]["uid"]
    return found


def customize(lab: Lab, text: str) -> None:
    lab.world.edit_cluster(SPACE, {"customSlurmConfig": text})


@pytest.mark.parametrize("shape", SHAPES)
def test_a_changed_key_is_tried_delivered_into_the_jail_and_acknowledged(shape: str) -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        pod = uid(lab)
        customize(lab, "KillWait=33\n")
        await lab.available()
        assert data(lab, STARTUP) == data(lab, CANDIDATE) == data(lab, GOOD)
        assert lab.world.jails[SPACE].present() == data(lab, STARTUP)
        hashes = {lab.cluster["status"][one] for one in ("configHash", "effectiveConfigHash")}
        assert hashes == {content_hash(data(lab, STARTUP))}
        assert uid(lab) == pod

    played(play, shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_rejected_line_reaches_neither_jail_nor_slurmctld_and_a_good_one_recovers(
    shape: str,
) -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        before = data(lab, STARTUP)
        customize(lab, "BogusKey=1\n")
        await lab.until(lambda: lab.condition("ConfigValid")[0] == "False")
        assert "BogusKey" in lab.condition("ConfigValid")[2]
        assert lab.condition()[0] == "False"
        assert data(lab, STARTUP) == before == lab.world.jails[SPACE].present()
        customize(lab, "KillWait=34\n")
        await lab.available()
        assert lab.condition("ConfigValid")[0] == "True"

    played(play, shape)


def test_a_key_that_needs_a_restart_restarts_slurmctld_once_and_no_worker() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        pod, workers = uid(lab), lab.pods("worker-")
        made = len(lab.made)
        customize(lab, f"{REBINDS}\n")
        await lab.until(lambda: lab.find("/pods", "controller-0") and uid(lab) != pod)
        await lab.available()
        assert lab.made[made:].count("pods/controller-0") == 1
        assert lab.pods("worker-") == workers
        assert not [one for one in lab.gone if one.startswith("pods/worker-")]

    played(play, OLDER)


def test_the_record_of_partitions_outlives_the_cluster() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        customize(lab, "KillWait=35\n")
        await lab.until(lambda: lab.find("/configmaps", names.partition_record("slurm")))
        record = lab.get("/configmaps", names.partition_record("slurm"))
        assert "ownerReferences" not in record["metadata"]
        assert "PartitionName=" in record["data"]["slurm.conf"]

    played(play)


def test_a_slurmctld_that_cannot_read_its_state_is_not_started() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        pod = uid(lab)
        older = {"controller": {"slurmctld": {"image": "slurmctld:24.11-1"}}}
        lab.world.edit_cluster(SPACE, {"slurmNodes": older})
        await lab.until(lambda: "24.11" in lab.condition()[2])
        assert uid(lab) == pod
        newer = {"controller": {"slurmctld": {"image": "slurmctld:26.05-1"}}}
        lab.world.edit_cluster(SPACE, {"slurmNodes": newer})
        await lab.available()
        assert uid(lab) == pod

    played(play)


def test_status_has_the_release_of_slurmctlds_image() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        status = lab.cluster["status"]
        assert (status["slurmVersion"], status["slurmImage"]) == ("26.05.5", "slurmctld:26.05-1")

    played(play)


def reports_mpi(sidecar: Sidecar) -> None:
    sidecar.lines.append("penstock: mpi pmi2")


def test_mpi_plugins_are_in_the_files_though_the_release_is_not_reported_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Sidecar, "_log_release", reports_mpi)

    async def play(lab: Lab) -> None:
        await lab.until(lambda: lab.cluster.get("status", {}).get("mpiPlugins") == ["pmi2"])
        await lab.until(lambda: "MpiDefault=pmi2" in "".join(data(lab, STARTUP).values()))
        assert lab.cluster["status"].get("slurmVersion", "") == ""
        await lab.available()

    played(play, OLDER)


def test_a_slurmctld_that_begins_to_serve_while_slurm_answers_gets_no_untried_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A first start takes whatever is declared, and one that serves only what was tried."""
    waits = False
    original: Any = vars(PartitionChanges)["apply"]

    async def play(lab: Lab) -> None:
        nonlocal waits

        def serves() -> bool:
            pod = lab.find("/pods", f"{lab.world.prefix}controller-0") or {}
            found: list[Json] = pod.get("status", {}).get("conditions", [])
            return any(one["type"] == "Ready" and one["status"] == "True" for one in found)

        async def slow(changes: PartitionChanges[Any, Any], obj: Any, events: Any) -> Any:
            found = await original(changes, obj, events)
            await lab.until(lambda: serves() or not waits)
            return found

        monkeypatch.setattr(PartitionChanges, "apply", slow)
        await lab.until(lambda: lab.find("/pods", f"{lab.world.prefix}controller-0"))
        waits = True
        customize(lab, "BogusKey=1\n")
        await lab.until(serves)
        await lab.until(lambda: lab.condition("ConfigValid")[0] == "False")
        assert "BogusKey" not in "".join(data(lab, STARTUP).values())

    played(play)


def test_files_that_changed_since_the_decision_are_not_overwritten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another operator that leads as well, or a user."""
    refused, edits = list[str](), list[bool]()
    note, ensure = ConfigTransaction.note, Applier.ensure

    async def watched(applier: Applier, of: Any, manifest: Json, *args: Any, **named: Any) -> Any:
        try:
            return await ensure(applier, of, manifest, *args, **named)
        except ConflictError:
            refused.append(manifest["metadata"]["name"])
            raise

    async def play(lab: Lab) -> None:
        await lab.available()

        def edited(transaction: ConfigTransaction, *args: Any, **named: Any) -> None:
            note(transaction, *args, **named)
            if not edits and args[1].stage is Stage.DELIVERING:
                edits.append(True)
                labels = {"metadata": {"labels": {"of": "a-user"}}}
                lab.world.ask("PATCH", f"{CORE}/configmaps/{STARTUP}", labels)

        monkeypatch.setattr(Applier, "ensure", watched)
        monkeypatch.setattr(ConfigTransaction, "note", edited)
        customize(lab, "KillWait=36\n")
        await lab.until(lambda: edits)
        await lab.available()
        assert STARTUP in refused
        assert data(lab, STARTUP) == data(lab, CANDIDATE)

    played(play)
