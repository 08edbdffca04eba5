"""JailUpgrades, by the whole operator on a simulated Kubernetes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from fault_plans.api_names import CLUSTER
from penstock.api.kubernetes.meta import Json
from penstock.simulation.event_loop import simulate
from unit.controllers.nebius.lab import CLUSTERS, CURRENT, JOBS, SPACE, Lab, played

PATH = f"/apis/penstock.dev/v1alpha1/namespaces/{SPACE}/jailupgrades"
NEW = "registry/populate-jail:new"
CHANGES = {
    "digest": "d1",
    "added": 3,
    "changed": 2,
    "removed": 1,
    "kept": 4,
    "packages": 5,
    "first": ["bash 5", "curl 8", "libc6 2", "ssh 9", "zstd 1"],
}


def upgrade(lab: Lab, name: str = "next", **spec: Any) -> None:
    """`kubectl create` of a JailUpgrade."""
    for action in ("compare", "apply", "undo"):
        lab.world.jobs.reports.setdefault(f"jail-{action}-{name}", json.dumps(CHANGES))
    given = {"clusterRef": {"name": CLUSTER}, "image": NEW, **spec}
    lab.make(PATH, "JailUpgrade", name, spec=given)


def change(lab: Lab, name: str = "next", **spec: Any) -> None:
    lab.world.ask("PATCH", f"{PATH}/{name}", {"spec": spec})


def status(lab: Lab, name: str = "next") -> Json:
    found = lab.find("penstock.dev/jailupgrades", name) or {}
    return found.get("status", {})


def ready(lab: Lab, name: str = "next") -> tuple[str, str, str]:
    for one in status(lab, name).get("conditions", []):
        if one["type"] == "Ready":
            return one["status"], one["reason"], one.get("message", "")
    return "", "", ""


def delete_job(lab: Lab, name: str) -> None:
    lab.world.ask("DELETE", f"/apis/batch/v1/namespaces/{SPACE}/jobs/{name}", {})


async def is_in(lab: Lab, phase: str, name: str = "next") -> None:
    await lab.until(lambda: status(lab, name).get("phase") == phase)


def test_changes_are_listed_first_and_made_once_they_are_approved() -> None:
    """S168."""

    async def play(lab: Lab) -> None:
        await lab.available()
        pods = lab.pods()
        upgrade(lab)
        await is_in(lab, "Compared")
        assert ready(lab)[:2] == ("False", "JailCompared")
        words = "3 files added, 2 replaced, 1 removed, 4 kept as users changed them; 5 packages: "
        assert ready(lab)[2].startswith(words)
        assert "log of Job jail-compare-next lists" in ready(lab)[2]
        assert (status(lab)["added"], status(lab)["kept"]) == (3, 4)
        await asyncio.sleep(60)
        assert lab.find(JOBS, "jail-apply-next") is None
        change(lab, approved=True)
        await is_in(lab, "Succeeded")
        assert ready(lab)[:2] == ("True", "JailUpgraded")
        assert "--expect" in str(lab.get(JOBS, "jail-apply-next"))
        # Neither jobs nor logins notice.
        assert set(pods) <= set(lab.pods())
        delete_job(lab, "jail-apply-next")
        await asyncio.sleep(60)
        assert lab.find(JOBS, "jail-apply-next") is None
        assert status(lab)["phase"] == "Succeeded"

    played(play)


def test_an_upgrade_is_undone_once_and_for_good() -> None:
    """S168."""

    async def play(lab: Lab) -> None:
        await lab.available()
        upgrade(lab, approved=True)
        await is_in(lab, "Succeeded")
        change(lab, undo=True)
        await is_in(lab, "Undone")
        assert ready(lab)[:2] == ("True", "JailUpgradeUndone")
        change(lab, undo=False)
        delete_job(lab, "jail-undo-next")
        delete_job(lab, "jail-apply-next")
        await asyncio.sleep(60)
        assert status(lab)["phase"] == "Undone"
        assert lab.find(JOBS, "jail-apply-next") is None

    played(play)


def test_the_next_upgrade_compares_with_the_image_of_the_last_one() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        upgrade(lab, approved=True)
        await is_in(lab, "Succeeded")
        filled = status(lab)["fromImage"]
        assert filled
        assert filled in str(lab.get(JOBS, f"{CLUSTER}-populate-jail"))
        upgrade(lab, "later", image="registry/populate-jail:later")
        await is_in(lab, "Compared", "later")
        assert status(lab, "later")["fromImage"] == NEW
        # One that was undone is no image of the jail.
        change(lab, undo=True)
        await is_in(lab, "Undone")
        upgrade(lab, "last", image="registry/populate-jail:later")
        await is_in(lab, "Compared", "last")
        assert status(lab, "last")["fromImage"] == filled

    played(play)


def test_a_jail_that_was_overwritten_has_the_image_of_its_job() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        upgrade(lab, approved=True)
        await is_in(lab, "Succeeded")
        filled = status(lab)["fromImage"]
        for mode in ("downscaleAndOverwritePopulateJail", "none"):
            path = f"/apis/slurm.nebius.ai/v1/namespaces/{SPACE}/{CLUSTERS}/{CLUSTER}"
            lab.world.ask("PATCH", path, {"spec": {"maintenance": mode}})
            await lab.until(lambda mode=mode: lab.condition("PopulateJailMode")[1] == mode)
            await lab.until(lambda: lab.condition("JailPopulated")[1] == "PopulateJailComplete")
        upgrade(lab, "later", image=NEW)
        await is_in(lab, "Compared", "later")
        assert status(lab, "later")["fromImage"] == filled

    played(play)


def test_the_image_that_the_jail_has_already_waits_until_another_one_is_named() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        upgrade(lab, approved=True)
        await is_in(lab, "Succeeded")
        upgrade(lab, "again")
        await lab.until(lambda: ready(lab, "again")[:2] == ("False", "JailUpgradeWaits"))
        assert "spec.fromImage" in ready(lab, "again")[2]
        change(lab, "again", fromImage="registry/populate-jail:old")
        await is_in(lab, "Compared", "again")

    played(play)


def test_a_failed_job_has_its_words_and_is_repeated_once_it_is_deleted() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        lab.world.jobs.broken.add("jail-apply-next")
        lab.world.jobs.reports["jail-apply-next"] = json.dumps({"error": "No space left"})
        upgrade(lab, approved=True)
        await lab.until(lambda: ready(lab)[:2] == ("False", "JailUpgradeFailed"))
        assert "No space left" in ready(lab)[2]
        lab.world.jobs.broken.clear()
        lab.world.jobs.reports["jail-apply-next"] = json.dumps(CHANGES)
        delete_job(lab, "jail-apply-next")
        await is_in(lab, "Succeeded")

    played(play)


def test_a_corrected_image_of_the_jail_is_compared_with_again() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        lab.world.jobs.broken.add("jail-compare-next")
        upgrade(lab, fromImage="registry/absent:1")
        await lab.until(lambda: ready(lab)[1] == "JailUpgradeFailed")
        lab.world.jobs.broken.clear()
        change(lab, fromImage="registry/there:1")
        await is_in(lab, "Compared")
        assert status(lab)["fromImage"] == "registry/there:1"

    played(play)


def test_a_list_that_is_lost_with_its_pod_is_made_again() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        lab.world.jobs.reports["jail-compare-next"] = ""
        upgrade(lab, approved=True)
        await lab.until(lambda: ready(lab)[1] == "JailUpgradeFailed")
        assert "its pod is gone" in ready(lab)[2]
        lab.world.jobs.reports["jail-compare-next"] = json.dumps(CHANGES)
        delete_job(lab, "jail-compare-next")
        await is_in(lab, "Succeeded")

    played(play)


def test_an_upgrade_that_failed_half_way_can_be_undone() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        lab.world.jobs.broken.add("jail-apply-next")
        upgrade(lab, approved=True)
        await lab.until(lambda: ready(lab)[1] == "JailUpgradeFailed")
        change(lab, undo=True)
        await is_in(lab, "Undone")

    played(play)


def test_one_upgrade_of_a_jail_writes_at_a_time() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        for name in ("first", "second"):
            upgrade(lab, name)
            await is_in(lab, "Compared", name)
        lab.stop_kubelets()
        change(lab, "first", approved=True)
        await lab.until(lambda: lab.find(JOBS, "jail-apply-first"))
        change(lab, "second", approved=True)
        await lab.until(lambda: ready(lab, "second")[1] == "JailUpgradeWaits")
        assert "JailUpgrade first is at work" in ready(lab, "second")[2]
        assert lab.find(JOBS, "jail-apply-second") is None
        lab.start_kubelets()
        await is_in(lab, "Succeeded", "first")
        await is_in(lab, "Succeeded", "second")

    played(play)


def test_an_upgrade_of_no_cluster_waits_with_words() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        upgrade(lab, clusterRef={"name": "other"})
        await lab.until(lambda: ready(lab)[1] == "SlurmClusterNotFound")
        assert "SlurmCluster other does not exist" in ready(lab)[2]

    played(play)


def test_an_operator_that_is_killed_after_any_write_makes_each_job_once() -> None:
    """S168."""

    async def play() -> None:
        lab = Lab(CURRENT)
        lab.world.declare(2)
        for number in range(30):
            process = lab.world.operator()
            if not number:
                await lab.available()
                upgrade(lab, approved=True)
            if status(lab).get("phase") == "Succeeded":
                change(lab, undo=True)
            before = len(lab.world.writes)
            for _ in range(300):
                await asyncio.sleep(0.1)
                written = [what for _, what in lab.world.writes[before:]]
                if any("jailupgrades" in what or what.endswith("/jobs") for what in written):
                    break
            await lab.world.crash(process)
        assert status(lab)["phase"] == "Undone"
        for action in ("compare", "apply", "undo"):
            assert lab.made.count(f"jobs/jail-{action}-next") == 1
        assert lab.world.promises.broken == []

    simulate(play())
