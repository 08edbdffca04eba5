"""S163: the key of a SlurmCluster by spec.authType, on simulated Kubernetes nodes."""

from __future__ import annotations

import asyncio
import base64
import json

from fault_plans import nebius_specs as specs
from fault_plans import worker_sets
from fault_plans.api_names import CLUSTER
from fault_plans.kinds import path_of
from penstock.api.cluster.marks import KEYS
from penstock.api.kubernetes.meta import Json
from penstock.simulation.apiserver import Change
from penstock.slurm.auth.key_rotation import CLIENTS, SLURMCTLD, WORKERS, Phase, Ring, read
from unit.controllers.nebius.lab import CORE, CURRENT, SPACE, Lab, played

OF_CLUSTER = path_of(SPACE, worker_sets.OF_CLUSTER)
OF_NODESET = path_of(SPACE, worker_sets.OF_NEBIUS)
SECRETS = f"{CORE}/secrets"
KEY = f"{CLUSTER}-auth-slurm", "slurm.key"


def data(key: str, size: int) -> Json:
    return {key: base64.b64encode(b"k" * size).decode()}


def make(lab: Lab) -> None:
    lab.world.prepare(SPACE)
    spec = {**specs.slurm_cluster(CURRENT, 1), "authType": "auth/slurm"}
    lab.make(OF_CLUSTER, "SlurmCluster", CLUSTER, spec=spec)
    lab.make(OF_NODESET, "NodeSet", "compute", spec=specs.node_set(1))


def test_with_auth_slurm_another_secret_is_made_and_no_munged_runs() -> None:
    async def play(lab: Lab) -> None:
        await lab.until(lambda: lab.phase() == "Available", 300)
        name, key = KEY
        made = lab.get("/secrets", name)
        assert len(base64.b64decode(made["data"][key])) == 1024
        assert lab.find("/secrets", f"{CLUSTER}-munge") is None
        for pod in lab.world.server.objects("/pods", SPACE):
            every = pod["spec"].get("initContainers", [])
            assert "munge" not in {one["name"] for one in every}, pod["metadata"]["name"]
        await asyncio.sleep(60)
        assert await lab.settled() == []

    played(play, CURRENT, replicas=-1, before=lambda lab: make(lab))


def test_no_daemon_starts_with_a_key_that_is_too_short() -> None:
    (name, key), size = KEY, 15

    def before(lab: Lab) -> None:
        make(lab)
        lab.make(SECRETS, "Secret", name, data=data(key, size))

    async def play(lab: Lab) -> None:
        await lab.until(lambda: lab.condition()[1] == "KeyUnusable")
        assert f"key {key} of Secret {name} has {size} bytes" in lab.condition()[2]
        await asyncio.sleep(30)
        assert lab.pods() == []
        lab.world.ask("PATCH", f"{SECRETS}/{name}", {"data": data(key, 64)})
        await lab.until(lambda: lab.phase() == "Available", 300)
        assert lab.condition()[1] != "KeyUnusable"

    played(play, CURRENT, replicas=-1, before=before)


def test_a_cluster_that_works_keeps_on_while_its_key_is_replaced_by_a_short_one() -> None:
    name, key = KEY

    async def play(lab: Lab) -> None:
        await lab.until(lambda: lab.phase() == "Available", 300)
        lab.world.ask("PATCH", f"{SECRETS}/{name}", {"data": data(key, 3)})
        await lab.until(lambda: lab.condition()[1] == "KeyUnusable")
        lab.world.edit_cluster(SPACE, {"customSlurmConfig": "KillWait=31\n"})
        await asyncio.sleep(60)
        assert lab.deletes() == []
        assert "compute-0" in lab.pods()

    played(play, CURRENT, replicas=-1, before=lambda lab: make(lab))


RING = f"{CLUSTER}-slurm-key-ring"
OLD, NEW = b"o" * 64, b"n" * 64


def given(lab: Lab) -> None:
    """A cluster whose key is the user's."""
    make(lab)
    lab.make(SECRETS, "Secret", KEY[0], data={KEY[1]: base64.b64encode(OLD).decode()})


def change(lab: Lab, key: bytes) -> None:
    name, file = KEY
    patch = {"data": {file: base64.b64encode(key).decode()}}
    lab.world.objects.forgives.add(name)
    lab.world.ask("PATCH", f"{SECRETS}/{name}", patch)


def ring(lab: Lab) -> Ring:
    found = read(lab.get("/secrets", RING)["data"])
    assert found is not None
    return found


def keys_in(lab: Lab, entry: str) -> list[bytes]:
    """The keys in a file slurm.jwks of the ring."""
    text = base64.b64decode(lab.get("/secrets", RING)["data"][entry])
    return [base64.b64decode(one["k"]) for one in json.loads(text)["keys"]]


def silence(lab: Lab, containers: set[str]) -> None:
    """Containers whose log shows no report of keys, from which a test may remove some."""
    before = lab.world.server.logs

    def log(namespace: str, name: str, asked: str) -> str | None:
        found = before(namespace, name, asked)
        if found is None or asked not in containers:
            return found
        return "\n".join(one for one in found.split("\n") if " keys " not in one)

    lab.world.server.logs = log


def test_a_changed_key_is_rotated_and_no_pod_is_replaced() -> None:
    """S163: in the same four steps as that of a Controller, under an operator that stays."""
    phases: list[str] = []

    async def play(lab: Lab) -> None:
        await lab.until(lambda: lab.phase() == "Available", 300)
        await lab.until(lambda: lab.condition("KeysInUse")[0] == "True")
        assert keys_in(lab, WORKERS) == keys_in(lab, SLURMCTLD) == keys_in(lab, CLIENTS) == [OLD]
        await asyncio.sleep(60)
        assert await lab.settled() == []
        gone = len(lab.gone)

        def note(changed: Change) -> None:
            if changed.key[1] == RING and changed.new is not None:
                found = read(changed.new.obj["data"])
                assert found is not None
                if found.phase.value not in phases[-1:]:
                    phases.append(found.phase.value)

        lab.world.server.store.listeners.append(note)
        change(lab, NEW)
        await lab.until(lambda: lab.condition("KeysInUse")[1] == "KeyChanging")
        await lab.until(lambda: lab.condition("KeysInUse")[0] == "True")
        assert phases == ["Learn", "Clients", "Switch", "Forget", "Settled"]
        assert keys_in(lab, WORKERS) == keys_in(lab, SLURMCTLD) == keys_in(lab, CLIENTS) == [NEW]
        assert len(lab.gone) == gone
        assert phase_of(lab, "compute-0") == "Forget"
        assert await lab.settled() == []

    played(play, CURRENT, replicas=-1, before=lambda lab: given(lab))


def phase_of(lab: Lab, pod: str) -> str:
    """The step for which the kubelet of a pod was last asked to refresh its files."""
    (name,) = [one for one in lab.pods() if one.removeprefix(f"{CLUSTER}-") == pod]
    annotations: dict[str, str] = lab.get("/pods", name)["metadata"]["annotations"]
    return annotations[KEYS].partition("-")[0]


def test_a_rotation_waits_for_slurmctld_and_then_for_each_login() -> None:
    """S163: only their logs show which keys they have read."""
    containers = {"reconfigure", "sshd"}

    async def play(lab: Lab) -> None:
        await lab.until(lambda: lab.phase() == "Available", 300)
        await lab.until(lambda: lab.condition("KeysInUse")[0] == "True")
        silence(lab, containers)
        change(lab, NEW)
        await lab.until(lambda: ring(lab).phase is Phase.LEARN and ring(lab).handed)
        await asyncio.sleep(90)
        assert ring(lab).phase is Phase.LEARN
        status, reason, message = lab.condition("KeysInUse")
        assert (status, reason) == ("Unknown", "KeyChanging")
        assert "slurmctld has not taken over its keys yet" in message
        assert keys_in(lab, SLURMCTLD) == [OLD, NEW]
        for pod in ("compute-0", "controller-0"):
            assert phase_of(lab, pod) == "Learn"
        containers.remove("reconfigure")
        await lab.until(lambda: ring(lab).phase is Phase.CLIENTS)
        await asyncio.sleep(90)
        assert ring(lab).phase is Phase.CLIENTS
        assert "login-0 has to begin with the new key" in lab.condition("KeysInUse")[2]
        assert phase_of(lab, "login-0") == "Clients"
        containers.remove("sshd")
        await lab.until(lambda: lab.condition("KeysInUse")[0] == "True")

    played(play, CURRENT, replicas=-1, before=lambda lab: given(lab))


def test_after_a_key_that_slurm_rejects_later_pods_start_with_the_former() -> None:
    async def play(lab: Lab) -> None:
        await lab.until(lambda: lab.phase() == "Available", 300)
        await lab.until(lambda: lab.condition("KeysInUse")[0] == "True")
        change(lab, b"n" * 15)
        await lab.until(lambda: lab.condition("KeysInUse")[0] == "False")
        assert lab.condition("KeysInUse")[1] == "KeyRefused"
        assert "less than 16 bytes" in lab.condition("KeysInUse")[2]
        assert keys_in(lab, WORKERS) == [OLD]
        change(lab, NEW)
        await lab.until(lambda: lab.condition("KeysInUse")[0] == "True")
        assert keys_in(lab, WORKERS) == [NEW]

    played(play, CURRENT, replicas=-1, before=lambda lab: given(lab))


def test_a_cluster_does_not_begin_with_the_key_ring_of_a_deleted_one() -> None:
    """Kubernetes removes it soon, and daemons would have keys that no Secret has."""
    owner = {
        "apiVersion": "slurm.nebius.ai/v1",
        "kind": "SlurmCluster",
        "name": CLUSTER,
        "uid": "former",
        "controller": True,
    }

    def before(lab: Lab) -> None:
        made = Ring(OLD, "former", "former", used=True).data
        lab.make(f"{CORE}/configmaps", "ConfigMap", "stays")
        uid = lab.get("/configmaps", "stays")["metadata"]["uid"]
        # The garbage collector leaves what one of its owners still needs.
        more = {"apiVersion": "v1", "kind": "ConfigMap", "name": "stays", "uid": uid}
        metadata = {"name": RING, "ownerReferences": [owner, more]}
        lab.world.ask("POST", SECRETS, {"kind": "Secret", "metadata": metadata, "data": made})
        given(lab)

    async def play(lab: Lab) -> None:
        await lab.until(lambda: lab.condition()[1] == "CreatingKeys")
        await asyncio.sleep(30)
        assert lab.pods() == []
        lab.world.ask("DELETE", f"{SECRETS}/{RING}", {})
        await lab.until(lambda: lab.condition("KeysInUse")[0] == "True", 300)
        assert ring(lab).clients != "former"

    played(play, CURRENT, replicas=-1, before=before)
