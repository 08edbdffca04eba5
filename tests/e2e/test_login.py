"""People of a directory: by ssh to login pods and workers, by sbatch, and by tokens over REST.

Scenarios S037, S038, S053 to S056 and S058.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from e2e_kit import manifests, openldap
from e2e_kit.api import Json, condition, ready
from e2e_kit.cluster import Cluster
from e2e_kit.cut import cut
from e2e_kit.release import lacks
from e2e_kit.site import Site, eventually
from e2e_kit.ssh import make_key, ssh

LONG_S = 180.0
ALICE, PHYSICS, NIGHT = 20001, 20000, 20002
PASSWORD = "alices-password"
SSSD = {"name": "sssd", "key": "sssd.conf"}
SSHD = """AuthorizedKeysCommand /usr/bin/sss_ssh_authorizedkeys
AuthorizedKeysCommandUser nobody
X11Forwarding no
Match User nobody
  PermitTTY no
"""
JOB = ("--output=/dev/null", "--mem=50")
WHO = "id -u; id -g; id -G | tr ' ' '\\n' | sort -n | tr '\\n' ' '"

pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Place:
    """A cluster whose users are in a directory, and a way in."""

    cluster: Cluster
    address: str
    port: int
    key: Path

    def ssh(
        self, user: str, script: str, *, host: str = "", port: int = 22, password: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Log in with the key, or with a password, at first to the login pod's NodePort."""
        if not host:
            host, port = self.address, self.port
        return ssh(self.key, user, script, host=host, port=port, password=password)

    def said(self, user: str, script: str, *, host: str = "", password: str = "") -> str:
        """What a command printed that has to succeed. Raises OSError while it does not."""
        done = self.ssh(user, script, host=host, password=password)
        if done.returncode:
            raise OSError(f"{done.returncode}: {done.stderr} {done.stdout}")
        return done.stdout.strip()

    def login(self, script: str) -> str:
        """A shell script in a login pod, as root and without ssh."""
        return self.cluster.kubectl("exec", "deploy/login", "-c", "login", "--", "sh", "-c", script)

    def owner(self, name: str) -> str:
        """Owner and group of a file in /shared, by their numbers."""
        file = f"{self.cluster.shared}/{name}"
        return self.cluster.site.node.run("stat", "-c", "%u:%g", file).strip()

    def token(self, name: str, username: str, **spec: Any) -> str:
        """Have a Token made; what its Secret holds."""
        key = {"name": f"{manifests.NAME}-auth-jwt", "key": "jwt.key"}
        self.cluster.apply(manifests.of("Token", name, username=username, jwtKeyRef=key, **spec))
        self.cluster.until_ready("tokens", name)
        data = self.cluster.get("secrets", f"{name}-jwt-{username}")["data"]
        return base64.b64decode(data["SLURM_JWT"]).decode()

    def submit(self, token: str, output: str, script: str = WHO) -> tuple[int, Json]:
        """Submit a job over REST; HTTP status and answer."""
        job = {
            "name": "rest",
            "script": f"#!/bin/sh\n{script}\n",
            "current_working_directory": "/shared",
            "environment": ["PATH=/usr/bin:/bin"],
            "standard_output": output,
            "memory_per_node": {"set": True, "number": 50},
        }
        return self.cluster.asked("POST", "job/submit", {"job": job}, token=token)

    def done(self, token: str, name: str) -> list[str]:
        """Run a job over REST to its end; its output and the owner of that."""
        status, answer = self.submit(token, f"/shared/{name}")
        assert (status, answer["errors"]) == (200, []), answer
        found = self.cluster.until_job(answer["job_id"], "COMPLETED", "FAILED")
        assert found["JobState"] == "COMPLETED", found
        return [*self.cluster.output(name).split(), self.owner(name)]


def secret(password: str = openldap.PASSWORD, base: str = openldap.BASE) -> Json:
    text = base64.b64encode(openldap.sssd_conf(password, base).encode()).decode()
    meta = {"name": SSSD["name"]}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {SSSD["key"]: text}}


@pytest.fixture(scope="module")
def place(
    site: Site, clusters: Callable[[str], Cluster], tmp_path_factory: pytest.TempPathFactory
) -> Place:
    """A directory, and a cluster all of whose daemons know its users."""
    openldap.load(site.node)
    cluster = clusters("login")
    key, public = make_key(tmp_path_factory.mktemp("ssh"))
    entries = (
        openldap.person("alice", ALICE, PHYSICS, password=PASSWORD, key=public),
        openldap.person("slurm", 20099, PHYSICS),
        openldap.group("physics", PHYSICS),
        openldap.group("night", NIGHT, "alice"),
    )
    ssh = {"enabled": True, "sssdConfRef": SSSD, "extraSshdConfig": SSHD}
    volume = {"name": "shared", "hostPath": {"path": cluster.shared, "type": "Directory"}}
    login = manifests.loginset(
        public,
        sssdConfRef=SSSD,
        extraSshdConfig=SSHD,
        service={"spec": {"type": "NodePort"}},
        template={"spec": {"volumes": [volume]}},
        login={"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]},
    )
    cluster.create(
        *openldap.objects(*entries),
        manifests.controller(manifests.EXTRA_CONF + "PrologFlags=Contain\n", sssdConfRef=SSSD),
        manifests.restapi(),
        manifests.on_shared_disk(manifests.nodeset(2, ssh=ssh), cluster.shared),
        login,
    )
    for kind, name in (("loginsets", "login"), ("nodesets", "compute")):
        # D44: what needs sssd.conf waits for it, and says so.
        cluster.until(kind, _waits_for_sssd(name), f"{kind} wait for sssd.conf", LONG_S)
    cluster.apply(secret())
    cluster.until_ready("loginsets", "login", LONG_S)
    cluster.until_idle("compute-0", "compute-1", timeout=LONG_S)
    cluster.until_ready("controllers", manifests.NAME, LONG_S)
    port = cluster.get("services", "login")["spec"]["ports"][0]["nodePort"]
    found = Place(cluster, site.node.address, port, key)
    eventually("alice is known", lambda: found.login("id -u alice"), LONG_S)
    return found


def _waits_for_sssd(name: str) -> Callable[[dict[str, Json]], bool]:
    def holds(objects: dict[str, Json]) -> bool:
        one = condition(objects[name], "Ready") if name in objects else {}
        return one.get("reason") == "SecretNotFound" and "sssdConfRef" in one["message"]

    return holds


def test_everybody_knows_the_directorys_users_and_local_ones_come_first(place: Place) -> None:
    """S053, S054, S058, feature row 20: slurmctld and workers as well."""
    asked = "id -u alice; id -Gn alice; getent passwd root slurm | cut -d: -f1,3"
    wanted = [str(ALICE), "physics night", "root:0", "slurm:401"]
    workers = [
        lambda node=node: place.cluster.on(node, asked) for node in ("compute-0", "compute-1")
    ]
    for run in (lambda: place.login(asked), *workers):
        eventually("alice is known", lambda run=run: run().splitlines() == wanted, LONG_S)
    eventually("slurmctld knows her", lambda: place.cluster.run("id", "-u", "alice"), LONG_S)
    assert place.cluster.run("id", "-u", "slurm").strip() == "401"


def test_nc_reaches_the_directory_and_gives_up_where_it_is_cut_off(place: Place) -> None:
    """S055: from the login and from a worker, by the command that the guides have."""
    cluster = place.cluster
    login = next(iter(cluster.pods("app.kubernetes.io/name=login").values()))
    worker = cluster.pods()["compute-1"]
    # Without a limit of its own it would try for two minutes.
    asked = "timeout 60 nc -zv openldap 389 2>&1; echo ended with $?"
    connects = ("OUTPUT", "-p", "tcp", "--dport", "389", "--syn")
    places: list[tuple[Json, str, Callable[[str], str]]] = [
        (login, "login.py", place.login),
        (worker, "slurmd.py", partial(cluster.on, "compute-1")),
    ]
    for pod, program, run in places:
        said = run(asked)
        assert "succeeded" in said
        assert said.endswith("ended with 0\n")
        with cut(cluster.site, pod, program, connects):
            assert run(asked).endswith("ended with 1\n")
        assert run(asked).endswith("ended with 0\n")


def test_journalctl_serves_output_of_the_daemons(place: Place) -> None:
    """S057: and the pods' logs have it too."""
    cluster = place.cluster
    log = cluster.kubectl("logs", "deploy/login", "-c", "login", "--tail=-1")
    for unit, words in (("sssd", "Starting with debug level"), ("sshd", "Server listening on")):
        lines = place.login(f"journalctl -u {unit} --no-pager | tail -50").splitlines()
        assert any(words in line and f" {unit}[" in line for line in lines)
        assert words in log
    assert len(place.login("journalctl -n 3").splitlines()) == 3
    assert "No entries" in place.login("journalctl -u slurmd --no-pager")
    followed = place.login("timeout 3 journalctl -fu sshd -n 1 || true")
    assert "sshd[" in followed
    for unit, words in (("slurmd", "slurmd started on"), ("sshd", "Server listening on")):
        assert words in cluster.on("compute-0", f"journalctl -u {unit} --no-pager")
        assert words in cluster.kubectl("logs", "compute-0", "-c", "slurmd", "--tail=-1")


def test_sshd_takes_the_users_keywords_and_its_match_blocks_swallow_nothing(place: Place) -> None:
    """D41: as sshd itself says, in logins and in workers."""

    def said(run: Callable[[str], str], user: str) -> dict[str, str]:
        lines = run(f"/usr/sbin/sshd -T -C user={user},host=h,addr=192.0.2.1").splitlines()
        pairs = (line.partition(" ") for line in lines)
        return {key.lower(): value for key, _, value in pairs}

    for run in (place.login, partial(place.cluster.on, "compute-0")):
        for user, tty in (("nobody", "no"), ("alice", "yes")):
            shown = said(run, user)
            assert (shown["x11forwarding"], shown["permittty"]) == ("no", tty)
            assert shown["usepam"] == "yes"
            assert shown["subsystem"] == "sftp internal-sftp"
    assert said(place.login, "alice")["authorizedkeyscommanduser"] == "nobody"


def test_a_directory_user_logs_in_by_key_and_by_password(place: Place) -> None:
    """S037, S053, S054, F12, feature row 20: by the NodePort; root by rootSshAuthorizedKeys."""
    assert place.said("alice", "id -u; pwd").split() == [str(ALICE), "/home/alice"]
    assert place.said("alice", "id -un", password=PASSWORD) == "alice"
    assert place.ssh("alice", "true", password="wrong").returncode != 0
    assert place.said("root", "id -u") == "0"
    shown = place.login("su - alice -c 'whoami; id -g'")
    assert shown.split()[-2:] == ["alice", str(PHYSICS)]
    (entry,) = place.login("getent passwd alice").splitlines()
    assert entry.split(":")[2:4] == [str(ALICE), str(PHYSICS)]
    assert place.login("stat -c %u:%g /home/alice").strip() == f"{ALICE}:{PHYSICS}"


def test_a_job_of_hers_runs_under_her_number_and_so_is_its_output(place: Place) -> None:
    """S037, S053, feature row 20: sbatch, srun, squeue and scancel from the login pod."""
    submit = "cd /shared && sbatch --parsable --mem=50 -o /shared/alice.out"
    job = int(place.said("alice", f'{submit} --wrap "id -un; {WHO}"'))
    place.cluster.until_job(job, "COMPLETED", "FAILED")
    told = place.cluster.output("alice.out").split()
    assert told == ["alice", str(ALICE), str(PHYSICS), str(PHYSICS), str(NIGHT)]
    assert place.owner("alice.out") == f"{ALICE}:{PHYSICS}"
    assert place.said("alice", "cd /tmp && srun --quiet --mem=50 -w compute-1 id -un") == "alice"
    job = int(place.said("alice", f"{submit} --wrap 'sleep 600'"))
    mine = "squeue --me -h -o '%i %u'"
    # The step before may still be completing.
    eventually("it is her only job", lambda: place.said("alice", mine) == f"{job} alice")
    place.said("alice", f"scancel {job}")
    place.cluster.until_job(job, "CANCELLED")


def test_a_worker_lets_in_those_who_have_a_job_there(place: Place) -> None:
    """Feature rows 20 and 52: by pam_slurm_adopt, from the login pod by name as well."""
    worker = place.cluster.pods()["compute-1"]["status"]["podIP"]
    assert place.ssh("alice", "true", host=worker).returncode != 0
    submit = "cd /shared && sbatch --parsable --mem=50 -o /dev/null -w compute-1"
    job = int(place.said("alice", f"{submit} --wrap 'sleep 600'"))
    place.cluster.until_job(job, "RUNNING")
    asked = "hostname; id -u"
    found = eventually(
        "she is let in", lambda: place.said("alice", asked, host=worker).split(), LONG_S
    )
    assert found == ["compute-1", str(ALICE)]
    assert place.said("alice", "id -un", host=worker, password=PASSWORD) == "alice"
    assert place.said("alice", "nc -z -w 5 compute-1 22 && echo reached") == "reached"
    place.said("alice", f"scancel {job}")
    place.cluster.until_job(job, "CANCELLED")
    eventually(
        "she is let in no more",
        lambda: place.ssh("alice", "true", host=worker).returncode != 0,
        LONG_S,
    )


def test_a_job_over_rest_runs_as_the_user_of_the_token(place: Place) -> None:
    """S038, D43, feature rows 16, 20 and 21: upstream holds it as a job of nobody."""
    wanted = [str(ALICE), str(PHYSICS), str(PHYSICS), str(NIGHT), f"{ALICE}:{PHYSICS}"]
    assert place.done(place.token("alice", "alice", lifetime="1h"), "token.out") == wanted
    hers = place.said("alice", "scontrol token").removeprefix("SLURM_JWT=")
    assert place.done(hers, "scontrol.out") == wanted
    status, _ = place.submit(place.cluster.expired("alice"), "/dev/null")
    # slurmrestd's word for it: "Network Authentication Required".
    assert status in (401, 511)


def test_fifty_submissions_in_a_row_all_succeed(place: Place) -> None:
    """S038."""
    token = place.token("alice", "alice", lifetime="1h")
    answers = [place.submit(token, "/dev/null", "sleep 600") for _ in range(50)]
    assert {(status, tuple(answer["errors"])) for status, answer in answers} == {(200, ())}
    assert len({answer["job_id"] for _, answer in answers}) == 50
    place.said("alice", "scancel --me")
    eventually("all are gone", lambda: place.said("alice", "squeue --me -h | wc -l") == "0", LONG_S)


@pytest.mark.needs_slurm("25.05", "slurmctld takes identities of tokens")
def test_a_token_may_carry_its_users_identity(place: Place) -> None:
    """D43, feature row 21, also for those in no directory: slurmctld looks no such user up."""
    identity = {"uid": 20077, "gid": 20078, "groups": {"crew": 20078, "night": NIGHT}}
    token = place.token("carol", "carol", identity=identity)
    config = "scontrol show config | grep -c use_jwt_client_ids"
    eventually("slurmctld takes identities", lambda: place.cluster.run("sh", "-c", config), LONG_S)
    wanted = ["20077", "20078", str(NIGHT), "20078", "20077:20078"]
    assert eventually("it runs", lambda: place.done(token, "carol.out"), LONG_S) == wanted


def test_a_new_user_is_usable_within_a_minute(place: Place) -> None:
    """S053."""
    openldap.add(place.cluster, openldap.person("dora", 20005, PHYSICS, password=PASSWORD))
    eventually("dora is known", lambda: place.login("id -u dora").strip() == "20005", 60)
    assert place.said("dora", "id -un", password=PASSWORD) == "dora"


def test_a_load_balancer_is_asked_for_and_what_it_sets_stays(place: Place) -> None:
    """Feature row 17: type LoadBalancer; the port of the node goes on."""
    place.cluster.patch(
        "loginset", "login", {"spec": {"service": {"spec": {"type": "LoadBalancer"}}}}
    )
    place.cluster.until(
        "services",
        lambda found: found["login"]["spec"]["type"] == "LoadBalancer" or None,
        "the Service is of type LoadBalancer",
    )
    given = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.10"}]}}}
    place.cluster.kubectl(
        "patch", "service", "login", "--subresource=status", "--type=merge", "-p", json.dumps(given)
    )
    place.cluster.until_ready("loginsets", "login")
    place.cluster.kubectl("annotate", "loginset", "login", "test.penstock.dev/poke=1")
    found = place.cluster.get("services", "login")
    assert found["status"]["loadBalancer"]["ingress"][0]["ip"] == "192.0.2.10"
    assert found["spec"]["ports"][0]["nodePort"] == place.port
    assert place.said("alice", "id -un") == "alice"


def test_a_wrong_password_or_search_base_is_reported_and_fixed(place: Place) -> None:
    """S056, S058, feature row 17: local users and jobs go on; a right Secret heals it."""
    _told(place, secret("wrong"), "Bind result: Invalid credentials(49)")
    # sssd 2.10, beside Slurm 24.11 in its Debian, is silent about this one.
    if not lacks("26.05"):
        _told(place, secret(base="dc=wrong,dc=org"), "Search result: No such object(32)")
    job = place.cluster.submit("true", *JOB)
    assert place.cluster.until_job(job, "COMPLETED", "FAILED")["JobState"] == "COMPLETED"
    _change(place, secret())
    eventually("alice is back", lambda: place.said("alice", "id -un") == "alice", 60)
    place.cluster.until(
        "loginsets",
        lambda found: _directory(found)["status"] == "False",
        "the LoginSet says that it is over",
    )


def _directory(loginsets: dict[str, Json]) -> Json:
    """What the LoginSet says of its directory."""
    return {"status": "", "message": ""} | condition(loginsets["login"], "DirectoryFailing")


def _told(place: Place, wrong: Json, words: str) -> None:
    """Give sssd what the directory refuses, and see that it is told in these words."""
    cluster = place.cluster
    _change(place, wrong)
    assert place.ssh("alice", "true").returncode != 0
    assert place.said("root", "getent passwd alice || id -u") == "0"
    log = ("logs", "-l", "app.kubernetes.io/name=login", "-c", "login", "--tail=-1")
    eventually("sssd says why", lambda: words in cluster.kubectl(*log), LONG_S)
    cluster.site.until_event(cluster.namespace, words, "SssdFails")
    cluster.until(
        "loginsets",
        lambda found: ready(found["login"]) and words in _directory(found)["message"],
        "the LoginSet is ready and says it too",
    )


def _change(place: Place, conf: Json) -> None:
    """Give sssd another sssd.conf, and wait for the login pod that has it to be the only one."""
    key = "slinky.slurm.net/sssd-conf-hash"
    label = "app.kubernetes.io/name=login"
    before = {pod["metadata"]["annotations"][key] for pod in place.cluster.pods(label).values()}
    place.cluster.apply(conf)

    def one(found: dict[str, Json]) -> bool:
        pods = [pod for name, pod in found.items() if name.startswith("login-")]
        now = {pod["metadata"]["annotations"][key] for pod in pods}
        return len(pods) == 1 and ready(pods[0]) and not now & before

    place.cluster.until("pods", one, "the login pod has the changed sssd.conf", LONG_S)
