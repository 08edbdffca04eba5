"""Authentication by choice: a SlurmCluster with auth/slurm, a Controller with a site's munge key.

Scenario S163; `test_slurmcluster_trouble.py` has the rotation of a munge key under load.
"""

from __future__ import annotations

import base64
import http.client
import json
import secrets
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from e2e_kit import manifests, mariadb
from e2e_kit.api import Json, condition
from e2e_kit.cluster import Cluster
from e2e_kit.images import give_all
from e2e_kit.operator_kills import killed_at_writes
from e2e_kit.release import PARSER, RELEASE
from e2e_kit.site import Site, eventually
from e2e_kit.slurmcluster import NAME, SlurmClusterSite
from e2e_kit.slurmcluster_records import ClusterRecords
from penstock.local.images import build_jail, build_slurm
from penstock.slurm.auth import jwt

EXAMPLE = (Path(__file__).parents[2] / "examples/slurmcluster.yaml").read_text()
LONG_S = 180.0
KEY_REF = {"name": "site-munge", "key": "site.key"}
CLIENT = "client"
"""A pod of no cluster with munged, the clients of Slurm and a slurm.conf of five lines."""
SMALL = "--mem=1M --cpus-per-task=1"
STORAGE = {"size": "1Gi"}
KILLED_IN_ROTATION = (1, 2, 4, 6, 9, 12)
"""Writes after which the operator is killed: of the key ring, of annotations, of a condition."""
JOB = ("--mem=50", "--immediate=60")

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def images(site: Site) -> dict[str, str]:
    mariadb.load(site.node)
    of_slurm = build_slurm(RELEASE)
    more = (of_slurm["slurm"], of_slurm["slurmdbd"])
    return give_all(site.node, [*build_jail(RELEASE).values(), *more])


@pytest.fixture(scope="module")
def slurm(site: Site, images: dict[str, str]) -> Generator[SlurmClusterSite]:
    """A SlurmCluster with a jail, whose daemons and clients have auth/slurm."""
    text = EXAMPLE.replace("  clusterType: cpu\n", "  clusterType: cpu\n  authType: auth/slurm\n")
    found = SlurmClusterSite(site, f"authslurm-{secrets.token_hex(2)}", text, images)
    try:
        found.up()
        yield found
    finally:
        found.down()


@pytest.fixture(scope="module")
def munge(images: dict[str, str], clusters: Callable[[str], Cluster]) -> Cluster:
    """A Controller whose munge key does not exist yet, and all that belongs to it."""
    assert images
    found = clusters("munge")
    found.create(
        manifests.controller(mungeKeyRef=KEY_REF),
        manifests.restapi(),
        manifests.nodeset(1),
        manifests.loginset(),
    )
    return found


def site_key(data: bytes) -> Json:
    """The Secret that the user of the existing munge cluster makes."""
    made: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": KEY_REF["name"]}}
    return {**made, "data": {KEY_REF["key"]: base64.b64encode(data).decode()}}


def client(cluster: Cluster, images: dict[str, str]) -> list[Json]:
    """A pod with munged and Slurm's clients, as a node of the existing cluster has them."""
    conf = (
        f"ClusterName=test\nSlurmctldHost=slurm-controller.{cluster.namespace}\n"
        "SlurmUser=slurm\nAuthType=auth/munge\nCredType=cred/munge\n"
    )
    socket = {"name": "socket", "mountPath": "/run/munge"}
    key = {"secretName": KEY_REF["name"], "items": [{"key": KEY_REF["key"], "path": "munge.key"}]}
    answers = ["sh", "-c", "munge -n | unmunge"]
    munged = {
        "name": "munge",
        "image": images["munge"],
        "env": [{"name": "MUNGE_FOLLOW_KEY", "value": "0"}],
        "restartPolicy": "Always",
        "startupProbe": {"exec": {"command": answers}, "periodSeconds": 1, "failureThreshold": 60},
        "volumeMounts": [socket, {"name": "key", "mountPath": "/mnt/munge-key"}],
    }
    clients = {
        "name": CLIENT,
        "image": images["slurm"],
        "command": ["tini", "--", "sleep", "infinity"],
        "volumeMounts": [socket, {"name": "conf", "mountPath": "/etc/slurm"}],
    }
    spec: Json = {
        "initContainers": [munged],
        "containers": [clients],
        "volumes": [
            {"name": "socket", "emptyDir": {}},
            {"name": "key", "secret": key},
            {"name": "conf", "configMap": {"name": "client-conf"}},
        ],
    }
    pod: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": CLIENT}, "spec": spec}
    return [manifests.config_map("client-conf", **{"slurm.conf": conf}), pod]


def reports(cluster: Cluster, reason: str, words: str) -> None:
    """Wait until the Controller's Ready has a reason and words."""

    def found(objects: dict[str, Json]) -> bool:
        one = condition(objects[manifests.NAME], "Ready")
        return one.get("reason") == reason and words in one.get("message", "")

    cluster.until("controllers", found, f"Ready is {reason}: {words}", LONG_S)


def test_jobs_run_from_login_and_jail_by_auth_slurm_without_munge(
    slurm: SlurmClusterSite, figure: Callable[[str], None]
) -> None:
    """S163: slurmctld, slurmd and sackd have the key; clients have a socket."""
    figure(f"SlurmCluster with auth/slurm, from objects to idle workers: {slurm.start_s:.1f} s")
    pods = json.loads(slurm.kubectl("get", "pods", "-o", "json"))["items"]
    containers = {
        one["name"]
        for pod in pods
        for one in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ()))
    }
    assert {"slurmctld", "slurmd", "sshd"} <= containers
    assert "munge" not in containers
    assert "auth/slurm" in slurm.scontrol("show", "config")
    in_jail = "chroot /mnt/jail"

    def ran() -> list[str]:
        said = slurm.run("login-0", "sshd", f"{in_jail} srun -N2 {SMALL} hostname")
        return sorted(said.split())

    # sackd of the login may start a moment after the workers.
    eventually("srun works in the login", lambda: ran() == ["worker-0", "worker-1"], 60, every=1)
    inner = f"{in_jail} srun -N1 --overlap {SMALL} sinfo -h -N -o %N"
    assert set(slurm.run("login-0", "sshd", inner).split()) == {"worker-0", "worker-1"}
    with pytest.raises(Exception, match=r"Permission denied|No such file"):
        slurm.run("login-0", "sshd", f"{in_jail} cat /run/penstock-auth/slurm.key")


def test_slurmrestd_of_such_a_cluster_answers_tokens(site: Site, slurm: SlurmClusterSite) -> None:
    secret = json.loads(slurm.kubectl("get", "secret", f"{NAME}-rest-jwt-key", "-o", "json"))
    key = base64.b64decode(secret["data"]["rest_jwt.key"])
    service = site.api.get("services", slurm.namespace, f"{NAME}-rest-svc")
    assert service is not None
    connection = http.client.HTTPConnection(service["spec"]["clusterIP"], 6820, timeout=20)
    headers = {"X-SLURM-USER-TOKEN": jwt.mint(key, "slurm", 600, time.time())}
    connection.request("GET", f"/slurm/{PARSER}/nodes/", headers=headers)
    answer = connection.getresponse()
    nodes = {one["name"] for one in json.loads(answer.read())["nodes"]}
    connection.close()
    assert nodes == {"worker-0", "worker-1"}


def test_slurmdbd_of_such_a_cluster_knows_it(
    slurm: SlurmClusterSite, images: dict[str, str]
) -> None:
    database = {"enabled": True, "image": mariadb.IMAGE, "imagePullPolicy": "Never"}
    ClusterRecords(slurm, "login-0", images).enable(embeddedDB={**database, "storage": STORAGE})
    shown = "chroot /mnt/jail sacctmgr -n -P show cluster format=cluster,controlhost || true"

    def registered() -> bool:
        said = slurm.run("login-0", "sshd", shown)
        return any(one.partition("|")[0] == NAME and one[-1] != "|" for one in said.split())

    eventually("slurmdbd has the cluster", registered, LONG_S, every=2)


def test_a_configuration_reaches_slurmctld_and_the_type_cannot_change(
    site: Site, slurm: SlurmClusterSite
) -> None:
    """The sidecar beside slurmctld is a client as well."""
    slurm.patch({"customSlurmConfig": f"{slurm.custom}\nMaxArraySize=77\n"})
    eventually(
        "slurmctld has the new line",
        lambda: "MaxArraySize            = 77" in slurm.scontrol("show", "config"),
        LONG_S,
        every=1,
    )
    patch = json.dumps({"spec": {"authType": "auth/munge"}})
    words = ("patch", "slurmcluster", NAME, "--type=merge", "-p", patch)
    assert "spec.authType cannot change" in site.rejected("-n", slurm.namespace, *words)


def set_slurm_key(slurm: SlurmClusterSite, key: bytes) -> None:
    patch = json.dumps({"data": {"slurm.key": base64.b64encode(key).decode()}})
    slurm.kubectl("patch", "secret", f"{NAME}-auth-slurm", "-p", patch)


def has_only(slurm: SlurmClusterSite, key: bytes, pod: str, container: str) -> bool:
    """Whether a daemon finds this key alone."""
    text = slurm.run(pod, container, "cat /run/penstock-auth/slurm.jwks")
    return [one["k"] for one in json.loads(text)["keys"]] == [base64.b64encode(key).decode()]


def starts(slurm: SlurmClusterSite) -> dict[str, dict[str, int]]:
    """By uid how often containers were started again; not of slurmdbd, which has a new pod."""
    found: dict[str, dict[str, int]] = {}
    for pod in json.loads(slurm.kubectl("get", "pods", "-o", "json"))["items"]:
        of = pod["metadata"]["labels"].get("app.kubernetes.io/component")
        if of not in ("controller", "login", "nodeset", "worker", "rest"):
            continue
        status = pod["status"]
        every = (*status["containerStatuses"], *status.get("initContainerStatuses", ()))
        found[pod["metadata"]["uid"]] = {one["name"]: one["restartCount"] for one in every}
    return found


def rotates(slurm: SlurmClusterSite, key: bytes) -> None:
    """Change the key, until slurmctld and slurmd have it alone and the condition shows it."""
    set_slurm_key(slurm, key)
    pods = {"controller-0": "slurmctld", "worker-0": "slurmd", "worker-1": "slurmd"}

    def is_over() -> bool:
        everywhere = all(has_only(slurm, key, *one) for one in pods.items())
        return everywhere and slurm.status("KeysInUse") == "True"

    eventually("only the new key is in use", is_over, LONG_S, every=1)


def test_a_changed_slurm_key_is_rotated_under_a_job_and_no_session_ends(
    site: Site, slurm: SlurmClusterSite, figure: Callable[[str], None]
) -> None:
    """S163: steps start throughout; the second time the operator is killed at its writes."""
    in_jail, before = "chroot /mnt/jail", starts(slurm)
    body = (
        "while [ ! -e /root/over ]; do "
        f"srun -N2 --overlap {SMALL} true 2>>/root/errors || echo failed >>/root/errors; "
        "echo step >>/root/steps; sleep 0.2; done"
    )
    submit = f"{in_jail} sbatch --parsable -N2 {SMALL} -o /dev/null --no-requeue --wrap='{body}'"
    job = slurm.run("login-0", "sshd", submit).strip()
    counted = f"{in_jail} sh -c 'wc -l </root/steps || echo 0'"

    def steps() -> int:
        return int(slurm.run("login-0", "sshd", counted))

    eventually("steps run", lambda: steps() > 2, 60)
    began = time.monotonic()
    rotates(slurm, secrets.token_bytes(1024))
    figure(f"slurm.key of a SlurmCluster rotated under a job: {time.monotonic() - began:.1f} s")
    with killed_at_writes(site, slurm.namespace, KILLED_IN_ROTATION) as kills:
        rotates(slurm, secrets.token_bytes(64))
    assert kills.after
    seen = steps()
    eventually("steps still run", lambda: steps() > seen + 2, 60)
    slurm.run("login-0", "sshd", f"{in_jail} touch /root/over")

    def state() -> Json:
        return json.loads(slurm.scontrol("show", "job", job, "--json"))["jobs"][0]

    eventually("the job ends", lambda: state()["job_state"] == ["COMPLETED"], 120)
    assert state()["restart_cnt"] == 0
    assert slurm.run("login-0", "sshd", f"{in_jail} cat /root/errors") == ""
    assert starts(slurm) == before
    assert "sshd ended" not in slurm.kubectl("logs", "login-0", "-c", "sshd")
    hosts = slurm.step("login-0", f"{in_jail} srun -N2 {SMALL} hostname").split()
    assert sorted(hosts) == ["worker-0", "worker-1"]
    shown = f"{in_jail} sacct -n -X -P -j {job} -o state"
    eventually("it is recorded", lambda: "COMPLETED" in slurm.run("login-0", "sshd", shown), 60)


def test_a_slurm_key_that_is_too_short_is_rejected_and_steps_run(slurm: SlurmClusterSite) -> None:
    set_slurm_key(slurm, b"k" * 15)
    eventually("it is rejected", lambda: slurm.status("KeysInUse") == "False", 60)
    assert "less than 16 bytes" in slurm.condition("KeysInUse")
    slurm.kubectl("delete", "pod", "login-0")
    slurm.until_login()
    hosts = slurm.step("login-0", f"chroot /mnt/jail srun -N2 {SMALL} hostname").split()
    assert sorted(hosts) == ["worker-0", "worker-1"]


def test_a_missing_key_and_one_that_is_too_short_are_named_until_they_are_right(
    munge: Cluster,
) -> None:
    reports(munge, "SecretNotFound", "spec.mungeKeyRef: there is no Secret site-munge")
    munge.apply(site_key(b"k" * 31))
    reports(munge, "KeyUnusable", "has 31 bytes, and munge takes 32 or more")
    assert munge.pods("app.kubernetes.io/name=slurmctld") == {}
    munge.apply(site_key(secrets.token_bytes(128)))
    munge.until_idle("compute-0", timeout=LONG_S)
    munge.until_ready("controllers", manifests.NAME, LONG_S)


def test_daemons_logins_and_tokens_work_with_the_munge_key_of_the_site(
    munge: Cluster, site: Site
) -> None:
    assert "auth/munge" in munge.run("scontrol", "show", "config")
    assert munge.run("srun", *JOB, "hostname").split() == ["compute-0"]
    munge.until_ready("loginsets", "login", LONG_S)
    (login,) = munge.pods("app.kubernetes.io/name=login")
    said = munge.kubectl("exec", login, "-c", "login", "--", "srun", *JOB, "hostname")
    assert said.split() == ["compute-0"]
    assert munge.on("compute-0", "sinfo -h -o %N").split() == ["compute-0"]
    assert set(munge.states()) == {"compute-0"}
    for component in ("slurmctld", "slurmd", "login"):
        for pod in munge.pods(f"app.kubernetes.io/name={component}").values():
            names = {one["name"] for one in pod["spec"]["initContainers"]}
            assert "munge" in names, component
    patch = json.dumps({"spec": {"mungeKeyRef": None}})
    words = ("patch", "controller", manifests.NAME, "--type=merge", "-p", patch)
    assert "mungeKeyRef is immutable" in site.rejected("-n", munge.namespace, *words)


def test_slurmdbd_with_the_munge_key_of_the_site_knows_the_cluster(munge: Cluster) -> None:
    """One with a key of auth/slurm is named first, and corrected in place."""
    database = {"image": mariadb.IMAGE, "imagePullPolicy": "Never", "storage": STORAGE}
    jwt_ref = {"name": f"{manifests.NAME}-auth-jwt", "key": "jwt.key"}
    books = manifests.of("Accounting", "books", jwtKeyRef=jwt_ref, embeddedDatabase=database)
    books["spec"]["slurmKeyRef"] = {"name": KEY_REF["name"], "key": KEY_REF["key"]}
    munge.apply(books)
    munge.patch("controllers", manifests.NAME, {"spec": {"accountingRef": {"name": "books"}}})
    reports(munge, "AuthTypesDiffer", "Accounting books another or none")
    munge.patch("accountings", "books", {"spec": {"slurmKeyRef": None, "mungeKeyRef": KEY_REF}})
    munge.until_ready("accountings", "books", LONG_S)

    def registered() -> bool:
        shown = "sacctmgr -n -P show cluster format=cluster,controlhost || true"
        said = munge.run("sh", "-c", shown)
        return any(one.partition("|")[0] == "test" and one[-1] != "|" for one in said.split())

    eventually("slurmdbd has the cluster", registered, LONG_S, every=2)


def test_an_external_client_with_the_same_key_runs_jobs(
    munge: Cluster, images: dict[str, str]
) -> None:
    """S163: as in the existing munge cluster."""
    munge.apply(*client(munge, images))

    def asked(*command: str) -> list[str]:
        return munge.kubectl("exec", CLIENT, "-c", CLIENT, "--", *command).split()

    munge.kubectl("wait", "--for=condition=Ready", f"pod/{CLIENT}", "--timeout=120s")
    assert asked("sinfo", "-h", "-o", "%N") == ["compute-0"]
    assert asked("srun", *JOB, "hostname") == ["compute-0"]


def test_workers_join_an_existing_munge_cluster_once_their_key_is_right(
    munge: Cluster, clusters: Callable[[str], Cluster]
) -> None:
    """S163: slurmctld is external to the Controller that the workers belong to."""
    here = clusters("joins")
    jwt_name, jwt_key = munge.jwt_secret
    token_key = munge.get("secrets", jwt_name)["data"]
    outside = {"host": f"slurm-controller.{munge.namespace}", "port": 6817}
    jwt_ref = {"name": jwt_name, "key": jwt_key}
    refs = {"mungeKeyRef": KEY_REF, "jwtKeyRef": jwt_ref}
    spec = {"clusterName": "test", "external": True, "externalConfig": outside, **refs}
    here.apply(
        manifests.namespace(here.namespace),
        {**site_key(b""), "metadata": {"name": jwt_name}, "data": token_key},
        site_key(b"another key of the right length.."),
        manifests.of("Controller", manifests.NAME, **spec),
        manifests.restapi(),
        manifests.nodeset(1, "burst", partition={"enabled": False}),
    )
    reports(here, "AuthenticationFailed", "the munge key that slurmd of burst-0 has")
    data = munge.get("secrets", KEY_REF["name"])["data"]
    here.apply({**site_key(b""), "data": data})
    here.until_ready("controllers", manifests.NAME, LONG_S)
    eventually("it is idle", lambda: munge.states().get("burst-0") == {"IDLE"}, LONG_S, every=1)
    here.kubectl("delete", "nodeset", "burst", "--timeout=120s")
    assert "burst-0" not in munge.states()


def test_a_changed_key_locks_the_client_out_until_it_has_it_too(munge: Cluster) -> None:
    """S163: the operator gives it to all; no job is lost, and nobody restarts a pod."""
    job = munge.submit("sleep 600", "--output=/dev/null", "--mem=50")
    munge.until_job(job, "RUNNING")
    before = munge.uids()
    key = secrets.token_bytes(64)
    munge.apply(site_key(key))
    read = "cat /run/munge-key/own/munge.key | base64 -w 0"
    wanted = base64.b64encode(key).decode()
    pods = [*munge.pods("app.kubernetes.io/name=slurmctld"), "compute-0"]

    def everywhere() -> bool:
        found = [munge.kubectl("exec", pod, "-c", "munge", "--", "sh", "-c", read) for pod in pods]
        return found == [wanted] * len(pods)

    eventually("munged of each pod has the new key", everywhere, LONG_S, every=2)
    munge.until(
        "controllers",
        lambda found: condition(found[manifests.NAME], "KeysInUse").get("status") == "True",
        "all munged have the key",
        LONG_S,
    )
    eventually("srun works", lambda: "compute-0" in munge.run("srun", *JOB, "hostname"), 60)
    assert munge.job(job)["JobState"] == "RUNNING"
    assert munge.uids() == before
    words = munge.kubectl("exec", CLIENT, "-c", CLIENT, "--", "sh", "-c", "sinfo 2>&1 || true")
    assert "error" in words
    munge.kubectl("delete", "pod", CLIENT, "--now")
