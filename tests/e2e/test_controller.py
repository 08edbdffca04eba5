"""slurmctld with other ports, scripts and a claim of the user's, and another cluster led to it.

Scenarios S067, S073, S076, S077, S082.
"""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, condition
from e2e_kit.changes import slurmctld
from e2e_kit.cluster import Cluster
from e2e_kit.hybrid import network
from e2e_kit.site import eventually
from penstock.local.errors import LocalError

PORT = 17817
REST_PORT = 16820
LONG_S = 180.0
EXTRA_CONF = manifests.EXTRA_CONF + "PrologFlags=Alloc\n"
KEYS = ("slurm-auth-slurm", "slurm-auth-jwt")
SCRIPTS = {
    "prolog": "prologScriptRefs",
    "epilog": "epilogScriptRefs",
    "prologslurmctld": "prologSlurmctldScriptRefs",
    "epilogslurmctld": "epilogSlurmctldScriptRefs",
}
NODES_OWN, SLURMCTLDS_OWN = ("prolog", "epilog"), ("prologslurmctld", "epilogslurmctld")
JOB = ("--output=/dev/null", "--mem=50")

pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Hybrid:
    """`near` has a slurmctld; for `far` that is an outside one."""

    near: Cluster
    far: Cluster

    def idle(self, *nodes: str) -> None:
        """Wait until slurmctld says that these nodes, and no others, are idle."""
        wanted = {name: {"IDLE"} for name in nodes}
        eventually(f"{nodes} are idle", lambda: self.near.states() == wanted, LONG_S, every=1)

    def done(self, *options: str) -> int:
        """Run a job to its end."""
        job = self.near.submit("true", *JOB, *options)
        assert self.near.until_job(job, "COMPLETED", "FAILED")["JobState"] == "COMPLETED"
        return job


def script(name: str, text: str) -> Json:
    """A ConfigMap with a script that says in /tmp that it was run."""
    body = f"#!/bin/sh\necho {text} >>/tmp/said-by-{name}\n"
    return manifests.config_map(name, **{f"{name}.sh": body})


def controller(extra_conf: str = EXTRA_CONF) -> Json:
    return manifests.controller(
        extra_conf,
        persistence={"enabled": True, "existingClaim": "state"},
        service={"port": PORT},
        **{field: [{"name": name}] for name, field in SCRIPTS.items()},
    )


def claim(name: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "64Mi"}},
        },
    }


def outside(near: Cluster) -> Json:
    """A Controller for which the slurmctld of another namespace is outside."""
    host = f"{manifests.NAME}-controller.{near.namespace}"
    return manifests.of(
        "Controller",
        manifests.NAME,
        clusterName="test",
        external=True,
        externalConfig={"host": host, "port": PORT},
    )


@pytest.fixture(scope="module")
def hybrid(clusters: Callable[[str], Cluster]) -> Hybrid:
    near, far = clusters("near"), clusters("far")
    near.create(
        claim("state"),
        *(script(name, "first") for name in SCRIPTS),
        controller(),
        manifests.restapi(),
        manifests.nodeset(1),
    )
    near.until_ready("controllers", manifests.NAME, LONG_S)
    far.apply(
        manifests.namespace(far.namespace),
        outside(near),
        manifests.restapi(service={"port": REST_PORT}),
        manifests.nodeset(1, "burst"),
        manifests.loginset(),
    )
    found = Hybrid(near, far)
    found.idle("compute-0")
    return found


def test_scripts_run_and_their_changed_text_is_run_without_a_restart(hybrid: Hybrid) -> None:
    """S082, D2, D15, feature rows 7 and 12: behind another port, with a claim of the user."""
    near = hybrid.near
    hybrid.done("--partition=compute")
    eventually("all have said first", lambda: said(near) == {"first"}, LONG_S, every=1)
    began, workers = slurmctld(near), near.uids("app.kubernetes.io/name=slurmd")
    before = near.get("controllers", manifests.NAME)["status"]["effectiveConfigHash"]
    near.apply(*(script(name, "second") for name in SCRIPTS))

    def taken(objects: dict[str, Json]) -> bool:
        status = objects[manifests.NAME]["status"]
        return status["effectiveConfigHash"] not in ("", before)

    near.until("controllers", taken, "other scripts are in effect", LONG_S)

    def all_second() -> bool:
        # They may come one after the other.
        hybrid.done("--partition=compute")
        return said(near) == {"second"}

    eventually("all say second", all_second, LONG_S, every=2)
    assert slurmctld(near) == began
    assert near.uids("app.kubernetes.io/name=slurmd") == workers
    pod = near.get("pods", f"{manifests.NAME}-controller-0")
    claims = [v.get("persistentVolumeClaim", {}).get("claimName") for v in pod["spec"]["volumes"]]
    assert "state" in claims
    assert f"{manifests.NAME}-controller.{near.namespace}:{PORT}" in arguments(near, "compute-0")


def test_a_cluster_joins_an_external_slurmctld_with_its_keys_and_its_partition(
    hybrid: Hybrid,
) -> None:
    """S067, S073, S076, S077, S162, D27, feature row 9: nothing is invented or made twice."""
    near, far = hybrid.near, hybrid.far
    far.until("controllers", reason("SecretNotFound"), "its keys are missing", LONG_S)
    assert far.site.api.list("secrets", far.namespace) == []
    far.apply(*(copied(near, name) for name in KEYS))
    far.until_ready("controllers", manifests.NAME, LONG_S)
    assert (
        condition(far.get("controllers", manifests.NAME), "Ready")["reason"] == "SlurmctldAnswers"
    )
    far.until_ready("restapis", manifests.NAME, LONG_S)
    far.until_ready("loginsets", "login", LONG_S)
    hybrid.idle("burst-0", "compute-0")
    assert f"{manifests.NAME}-controller.{near.namespace}:{PORT}" in arguments(far, "burst-0")
    assert far.kubectl("get", "statefulsets", "-o", "name") == ""

    def told(objects: dict[str, Json]) -> str | None:
        ready = condition(objects["burst"], "Ready")
        return ready["message"] if ready["reason"] == "PartitionOutside" else None

    words = far.until("nodesets", told, "the lines of its partition are told", LONG_S)
    lines = re.findall(r"((?:NodeSet|PartitionName)=burst .*?)(?= and |; |\. See |$)", words)
    assert len(lines) == 2, words
    near.apply(controller(EXTRA_CONF + "".join(f"{line}\n" for line in lines)))
    far.until_ready("nodesets", "burst", LONG_S)
    near.until_ready("controllers", manifests.NAME, LONG_S)
    job = hybrid.done("--partition=burst")
    assert near.job(job)["NodeList"] == "burst-0"
    shown = far.kubectl(
        "exec", "deploy/login", "-c", "login", "--", "sinfo", "-h", "-N", "-o", "%N"
    )
    assert sorted(set(shown.split())) == ["burst-0", "compute-0"]


def test_workers_leave_an_external_slurmctld_when_they_are_scaled_in(hybrid: Hybrid) -> None:
    """S077, feature row 9: drained, and their records are gone."""
    hybrid.far.kubectl("scale", "nodeset", "burst", "--replicas=0")
    hybrid.far.until("pods", lambda pods: "burst-0" not in pods, "the worker is gone", LONG_S)
    hybrid.idle("compute-0")


def test_slurmrestd_behind_another_port_is_found_by_operator_and_users(hybrid: Hybrid) -> None:
    """S082, D15: the Service alone changes, and workers are drained through it as before."""
    near, far = hybrid.near, hybrid.far
    assert listens(far) == (REST_PORT, 6820)
    assert far.states() == near.states()
    before = near.uids("app.kubernetes.io/name=slurmrestd")
    old = near.url
    near.patch("restapis", manifests.NAME, {"spec": {"service": {"port": REST_PORT + 1}}})
    near.until("services", lambda _: listens(near)[0] == REST_PORT + 1, "its Service has the port")
    near.forget_address()
    assert near.url != old
    near.kubectl("scale", "nodeset", "compute", "--replicas=2")
    hybrid.idle("compute-0", "compute-1")
    near.kubectl("scale", "nodeset", "compute", "--replicas=1")
    near.until("pods", lambda pods: "compute-1" not in pods, "one worker is gone", LONG_S)
    hybrid.idle("compute-0")
    assert near.uids("app.kubernetes.io/name=slurmrestd") == before
    with pytest.raises(OSError):
        urllib.request.urlopen(f"{old}/openapi/v3", timeout=2)
    code, text = network(near.site, near.namespace)
    assert code == 0, text
    assert f"{manifests.NAME}-restapi.{near.namespace}:{REST_PORT + 1}" in text
    assert f"{manifests.NAME}-controller.{near.namespace}:{PORT}" in text


def listens(cluster: Cluster) -> tuple[int, int]:
    """The port of slurmrestd's Service, and that of its container."""
    (port,) = cluster.get("services", f"{manifests.NAME}-restapi")["spec"]["ports"]
    (pod,) = cluster.pods("app.kubernetes.io/name=slurmrestd").values()
    (behind,) = pod["spec"]["containers"][0]["ports"]
    assert port["targetPort"] == behind["name"]
    assert pod["spec"]["containers"][0]["args"][-1].endswith(f":{behind['containerPort']}")
    return port["port"], behind["containerPort"]


def said(near: Cluster) -> set[str]:
    """What the scripts said last, each where it runs."""
    try:
        texts = [near.on("compute-0", f"tail -n1 /tmp/said-by-{name}") for name in NODES_OWN]
        texts += [near.run("tail", "-n1", f"/tmp/said-by-{name}") for name in SLURMCTLDS_OWN]
    except LocalError:
        return set()
    return {text.strip() for text in texts}


def reason(wanted: str) -> Callable[[dict[str, Json]], bool]:
    def holds(objects: dict[str, Json]) -> bool:
        return condition(objects[manifests.NAME], "Ready").get("reason") == wanted

    return holds


def copied(near: Cluster, name: str) -> Json:
    found = near.get("secrets", name)
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": found["data"]}


def arguments(cluster: Cluster, pod: str) -> list[str]:
    return cluster.get("pods", pod)["spec"]["containers"][0]["args"]
