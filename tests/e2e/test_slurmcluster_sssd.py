"""Users of a directory in a SlurmCluster: sssd beside slurmctld, the login and a worker.

The directory is a real OpenLDAP with TLS, and sssd is that of the image of logins.
"""

from __future__ import annotations

import base64
import json
import subprocess
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from e2e_kit import openldap
from e2e_kit.api import Json, condition, ready
from e2e_kit.images import give_all
from e2e_kit.release import PARSER, RELEASE
from e2e_kit.site import Site, eventually
from e2e_kit.slurmcluster import SlurmClusterSite
from e2e_kit.ssh import make_key, ssh
from penstock.local.images import build_jail

EXAMPLES = Path(__file__).parents[2] / "examples"
EXAMPLE, BARE = (EXAMPLES / f"slurmcluster-{one}.yaml" for one in ("nodesets", "without-jail"))
ALICE, PHYSICS, NIGHT = 20001, 20000, 20002
PASSWORD = "alices-password"
SECRET, CERTIFICATES = "company-sssd", "company-ca"
CERTIFICATE = "/mnt/ldapCA/ca.crt"
NAMED = {"sssdConfSecretRefName": SECRET, "sssdLdapCAConfigMapRefName": CERTIFICATES}
HAS_SOCKETS = "test -S /var/lib/sss/pipes/nss && test -S /var/lib/sss/pipes/pam"
PROBE = {"exec": {"command": ["/bin/sh", "-c", HAS_SOCKETS]}, "periodSeconds": 10}
"""That of the chart's values."""
PODS = {"cpu-controller-0": "slurmctld", "cpu-login-0": "sshd", "small-0": "slurmd"}
KUBELET_S = 150.0
"""Within which a kubelet refreshes the files of a worker by itself, and sssd starts again."""
LONG_S = 90.0
WHO = "id -u; id -gn; id -Gn"
ALICES = [str(ALICE), "physics", "physics", "night"]

pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Place:
    """A cluster whose users are in a directory, and a way in."""

    cluster: SlurmClusterSite
    site: Site
    address: str
    port: int
    key: Path

    def ssh(
        self, script: str, user: str = "alice", password: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a script on the login: with the user's key, or with a password."""
        return ssh(self.key, user, script, host=self.address, port=self.port, password=password)

    def output(self, script: str, user: str = "alice", password: str = "") -> str:
        """Output of a script that has to succeed. Raises OSError while it does not."""
        done = self.ssh(script, user, password)
        if done.returncode:
            raise OSError(f"{done.returncode}: {done.stderr} {done.stdout}")
        return done.stdout.strip()

    def inside(self, pod: str, script: str) -> str:
        """Output of a script in the jail of a pod, as root."""
        return self.cluster.kubectl(
            "exec", pod, "-c", PODS[pod], "--", "chroot", "/mnt/jail", "sh", "-c", script
        ).strip()

    def uids(self) -> dict[str, str]:
        """Uids of the pods, to see that none was replaced."""
        return {pod: self.cluster.uid(pod) for pod in PODS}

    def restarts(self) -> set[int]:
        """How often containers of sssd were restarted."""
        every: list[Json] = [
            json.loads(self.cluster.kubectl("get", "pod", pod, "-o", "json")) for pod in PODS
        ]
        assert all(ready(one) for one in every)
        return {
            status["restartCount"]
            for one in every
            for status in one["status"]["initContainerStatuses"]
            if status["name"] == "sssd"
        }

    def put(self, conf: str) -> None:
        """Give the Secret another sssd.conf: it may be too large for kubectl's annotation."""
        found = self.cluster.kubectl("get", "secrets", "-o", "name").split()
        verb = "replace" if f"secret/{SECRET}" in found else "create"
        self.cluster.kubectl(verb, "-f", "-", stdin=json.dumps(secret(conf)))

    def until_shell(self, shell: str, pods: tuple[str, ...] = ("cpu-login-0",)) -> None:
        """Wait until sssd gives alice this shell, as an option of its file has it."""
        command = "getent passwd alice | cut -d: -f7"
        for pod in pods:
            limit = KUBELET_S if pod == "small-0" else LONG_S
            eventually(
                f"{pod} has {shell}",
                lambda pod=pod: self.cluster.run(pod, PODS[pod], command).strip() == shell,
                limit,
            )

    def stalled(self, kind: str, name: str) -> tuple[str, str]:
        """Reason and message of Stalled of an object."""
        found = condition(
            json.loads(self.cluster.kubectl("get", kind, name, "-o", "json")), "Stalled"
        )
        return found.get("reason", ""), found.get("message", "")


def conf(more: str = "") -> str:
    """sssd.conf, with more options of the domain."""
    return openldap.sssd_conf(certificate=CERTIFICATE) + more


def secret(text: str) -> Json:
    data = {"sssd.conf": base64.b64encode(text.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}, "data": data}


def declared(images: dict[str, str], public: str) -> str:
    """The example with one NodeSet, and sssd everywhere."""
    documents = list(yaml.safe_load_all(EXAMPLE.read_text()))
    cluster, worker = documents[2]["spec"], documents[3]["spec"]
    cluster["partitionConfiguration"]["partitions"] = [
        {"name": "main", "isAll": True, "config": "Default=YES"}
    ]
    sssd: Json = {"image": images["jail-login"], "livenessProbe": PROBE, "readinessProbe": PROBE}
    for name in ("controller", "login"):
        cluster["slurmNodes"][name] |= {"sssd": sssd, **NAMED}
    login = cluster["slurmNodes"]["login"]
    login["sshRootPublicKeys"] = [public.strip()]
    passwords = {"name": "SSHD_OPTIONS", "value": "-o PasswordAuthentication=yes"}
    login["sshd"]["customEnv"] = [passwords]
    worker |= {"sssd": {**sssd, "image": parts(images["jail-login"]), "resources": {}}, **NAMED}
    worker["slurmd"]["image"] = parts(images["jail-slurmd"])
    worker["munge"]["image"] = parts(images["munge"])
    return yaml.safe_dump_all(documents[:4])


def without_jail(images: dict[str, str], public: str) -> str:
    """The example without a jail, and sssd everywhere."""
    documents = list(yaml.safe_load_all(BARE.read_text()))
    cluster, worker = documents[1]["spec"], documents[2]["spec"]
    sssd: Json = {"image": images["jail-login"], "livenessProbe": PROBE, "readinessProbe": PROBE}
    for name in ("controller", "login"):
        cluster["slurmNodes"][name] |= {"sssd": sssd, **NAMED}
    cluster["slurmNodes"]["login"]["sshRootPublicKeys"] = [public.strip()]
    worker |= {"sssd": {**sssd, "image": parts(images["jail-login"]), "resources": {}}, **NAMED}
    return yaml.safe_dump_all(documents)


def parts(image: str) -> Json:
    """An image as a NodeSet has it."""
    repository, _, tag = image.rpartition(":")
    return {"repository": repository, "tag": tag}


@pytest.fixture(scope="module")
def place(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Generator[Place]:
    openldap.load(site.node)
    images = give_all(site.node, build_jail(RELEASE).values())
    key, public = make_key(tmp_path_factory.mktemp("ssh"))
    tls = openldap.certificates()
    entries = (
        openldap.person("alice", ALICE, PHYSICS, password=PASSWORD, key=public),
        openldap.person("slurm", 20099, PHYSICS),
        openldap.group("physics", PHYSICS),
        openldap.group("night", NIGHT, "alice"),
    )
    certificates: Json = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CERTIFICATES},
        "data": {"ca.crt": tls.authority.decode()},
    }
    beside = [*openldap.objects(*entries, tls=tls), secret(conf()), certificates]
    made = SlurmClusterSite(
        site,
        f"directory-{time.time_ns() % 100000}",
        declared(images, public),
        images,
        workers={"small-0"},
        prefix="cpu-",
        name="cpu",
    )
    try:
        made.up(beside=yaml.safe_dump_all(beside))
        service = json.loads(made.kubectl("get", "service", "cpu-login-svc", "-o", "json"))
        port = service["spec"]["ports"][0]["nodePort"]
        found = Place(made, site, site.node.address, port, key)
        eventually("alice is known", lambda: found.output("id -u"), LONG_S)
        yield found
    finally:
        made.down()


@pytest.fixture(scope="module")
def bare(place: Place) -> Place:
    """A SlurmCluster without a jail beside the other one, with the same directory."""
    images = give_all(place.site.node, build_jail(RELEASE).values())
    text = without_jail(images, place.key.with_suffix(".pub").read_text())
    made = SlurmClusterSite(
        *(place.site, place.cluster.namespace, text, images),
        workers={"plain-0"},
        prefix="bare-",
        name="bare",
    )
    made.join()
    service = json.loads(made.kubectl("get", "service", "bare-login-svc", "-o", "json"))
    port = service["spec"]["ports"][0]["nodePort"]
    return Place(made, place.site, place.address, port, place.key)


def test_all_daemons_and_the_jail_know_users_and_groups_and_local_ones_come_first(
    place: Place, figure: Callable[[str], None]
) -> None:
    """S053, S058: with the chart's probes, and a directory that asks for its certificate."""
    figure(f"from SlurmCluster to an idle worker with sssd: {place.cluster.start_s:.1f} s")
    for pod, container in PODS.items():
        asked = "id -u alice; id -gn alice; id -Gn alice; id -u slurm"
        assert place.cluster.run(pod, container, asked).split() == [*ALICES, "401"], pod
    for pod in ("cpu-login-0", "small-0"):
        assert place.inside(pod, "id -u alice; id -Gn alice; id -u slurm").split() == [
            *(str(ALICE), "physics", "night", "401"),
        ]
    assert place.restarts() == {0}


def test_a_user_logs_in_with_the_directorys_key_or_password_and_has_a_home(place: Place) -> None:
    """S053, S054: the session is in the jail, and so is the home."""
    shown = place.output(f"{WHO}; pwd; . /etc/os-release; echo $VERSION_CODENAME").split()
    assert shown == [*ALICES, "/home/alice", "trixie"]
    assert place.output("id -un", password=PASSWORD) == "alice"
    assert place.ssh("true", password="wrong").returncode != 0
    assert place.output("id -un", "root") == "root"
    assert place.inside("small-0", "stat -c %u:%g /home/alice") == f"{ALICE}:{PHYSICS}"
    assert place.inside("cpu-login-0", "su - alice -c 'id -un'") == "alice"


def test_a_job_in_the_jail_runs_as_the_user_on_a_worker(place: Place) -> None:
    """S053."""
    assert place.output(f"srun -Q sh -c '{WHO}; hostname'").split() == [*ALICES, "small-0"]
    submit = f"sbatch -Q --wait -o who.out --wrap '{WHO}' && cat who.out && stat -c %U:%G who.out"
    assert place.output(submit).split() == [*ALICES, "alice:physics"]
    job = place.output("sbatch --parsable -o /dev/null --wrap 'sleep 600'")
    assert place.output("squeue --me -h -o '%i %u'") == f"{job} alice"
    assert f"UserId=alice({ALICE})" in place.cluster.scontrol("show", "job", job)
    place.output(f"scancel {job}")


def test_without_a_jail_daemons_sessions_and_jobs_have_the_directorys_users(
    bare: Place, figure: Callable[[str], None]
) -> None:
    """S053, S177: in the root of their containers, where nobody reads sssd.conf."""
    figure(f"without a jail, to an idle worker with sssd: {bare.cluster.start_s:.1f} s")
    daemons = {"bare-controller-0": "slurmctld", "bare-login-0": "sshd", "plain-0": "slurmd"}
    asked = "id -u alice; id -gn alice; id -Gn alice; id -u slurm"
    for pod, container in daemons.items():
        assert bare.cluster.run(pod, container, asked).split() == [*ALICES, "401"], pod
    eventually("alice is let in", lambda: bare.output(WHO).split() == ALICES, LONG_S)
    assert bare.output(f"srun -Q sh -c '{WHO}; hostname'").split() == [*ALICES, "plain-0"]
    assert bare.ssh("srun -Q cat /etc/sssd/sssd.conf", "root").returncode != 0
    gone = ("nodesets.slurm.nebius.ai/plain", "slurmcluster/bare")
    bare.cluster.kubectl("delete", *gone, "--wait=false")


def test_root_of_a_job_cannot_answer_in_place_of_sssd(place: Place) -> None:
    pipes = "/var/lib/sss/pipes"
    attempts = f"rm -f {pipes}/nss; mv {pipes}/nss /tmp; mount -o remount,rw {pipes}"
    done = place.ssh(f"srun -Q sh -c '{attempts}' 2>&1; id -u alice", "root")
    assert done.stdout.count("Read-only file system") == 2, done.stdout
    assert done.stdout.split()[-1] == str(ALICE)


def test_a_job_over_rest_with_a_token_runs_as_its_user_without_accounting(place: Place) -> None:
    """S038: slurmctld looks the user up, and nobody keeps records."""
    answer = json.loads(place.output(f"{_TOKEN}; {_curl('ping')}"))
    assert answer["errors"] == []
    job = {
        "name": "rest",
        "script": f"#!/bin/sh\n{WHO}\n",
        "current_working_directory": "/home/alice",
        "environment": ["PATH=/usr/bin:/bin"],
        "standard_output": "/home/alice/rest.out",
    }
    body = json.dumps({"job": job})
    sent = "-H 'Content-Type: application/json' -d @job.json"
    place.output(f"cat >job.json <<'END'\n{body}\nEND")
    answer = json.loads(place.output(f"{_TOKEN}; {_curl('job/submit', sent)}"))
    assert answer["errors"] == [], answer
    number = str(answer["job_id"])
    state = ("show", "job", number)
    eventually("it ends", lambda: "JobState=COMPLETED" in place.cluster.scontrol(*state), 60)
    shown = place.output("cat rest.out; stat -c %u:%g rest.out").split()
    assert shown == [*ALICES, f"{ALICE}:{PHYSICS}"]
    status = "-o /dev/null -w '%{http_code}'"
    assert place.output(f"SLURM_JWT=no.such.token; {_curl('jobs', status)}") in ("401", "511")
    assert "AccountingAvailable" in json.dumps(place.cluster.get()["status"])
    assert place.cluster.status("AccountingAvailable") == "False"


_TOKEN = "export $(scontrol token)"


def _curl(path: str, options: str = "") -> str:
    return (
        f'curl -s -H "X-SLURM-USER-TOKEN: $SLURM_JWT" {options} '
        f"http://cpu-rest-svc:6820/slurm/{PARSER}/{path}"
    )


def test_known_users_work_on_while_the_directory_is_away_and_new_ones_come_with_it(
    place: Place,
) -> None:
    """S053, S058."""
    assert place.output("id -un", password=PASSWORD) == "alice"
    place.cluster.kubectl("scale", "deployment/openldap", "--replicas=0")
    place.cluster.kubectl("wait", "--for=delete", "pod", "-l", "app=openldap", "--timeout=60s")
    before = place.uids()
    assert place.ssh("id dora", "root").returncode != 0
    for pod in PODS:
        assert place.cluster.run(pod, PODS[pod], "id -u alice").strip() == str(ALICE)
    assert place.output(f"srun -Q sh -c '{WHO}'").split() == ALICES
    assert place.output("id -un", password=PASSWORD) == "alice"
    place.cluster.kubectl("scale", "deployment/openldap", "--replicas=1")
    place.cluster.kubectl("rollout", "status", "deployment/openldap", "--timeout=60s")
    openldap.add(place.cluster, openldap.person("dora", 20005, PHYSICS, password=PASSWORD))
    eventually("dora is known", lambda: place.output("id -un", "dora", PASSWORD) == "dora", 90)
    assert (
        eventually("on workers", lambda: place.output("srun -Q id -un", "dora", PASSWORD), 90)
        == "dora"
    )
    assert (place.uids(), place.restarts()) == (before, {0})


def test_a_changed_secret_reaches_sssd_and_restarts_no_pod(
    place: Place, figure: Callable[[str], None]
) -> None:
    before = place.uids()
    place.put(conf("override_shell = /bin/sh\n"))
    began = time.monotonic()
    place.until_shell("/bin/sh", ("cpu-login-0", "cpu-controller-0"))
    figure(f"a changed sssd.conf is in effect on the login after {time.monotonic() - began:.1f} s")
    place.until_shell("/bin/sh", ("small-0",))
    figure(f"a changed sssd.conf is in effect on a worker after {time.monotonic() - began:.1f} s")
    assert (place.uids(), place.restarts()) == (before, {0})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            openldap.sssd_conf("wrong", certificate=CERTIFICATE),
            "sssd of cpu-login-0 reports: Bind result: Invalid credentials(49)",
        ),
        pytest.param(
            openldap.sssd_conf(base="dc=wrong,dc=org", certificate=CERTIFICATE),
            "Search result: No such object(32), no errmsg set, base: [dc=wrong,dc=org]",
            marks=pytest.mark.needs_slurm("26.05", "sssd of its image logs nothing of it"),
        ),
    ],
)
def test_a_password_or_search_base_that_is_wrong_is_reported_until_it_is_corrected(
    place: Place, wrong: str, words: str
) -> None:
    """S056: in sssd's words."""
    place.put(wrong)
    failing = "DirectoryFailing"

    def shown() -> Json:
        # sssd connects once somebody is looked up whom it does not know.
        place.cluster.run("cpu-login-0", "sshd", f"id eve{time.time_ns()} 2>/dev/null || true")
        return condition(place.cluster.get(), failing)

    eventually("it is reported", lambda: words in shown().get("message", ""), LONG_S)
    assert place.cluster.status(failing) == "True"
    place.site.until_event(place.cluster.namespace, words, "SssdFails")
    assert place.cluster.status("Ready") == "True"
    place.put(conf("override_shell = /bin/sh\n"))
    eventually("alice is back", lambda: place.output("id -un") == "alice", LONG_S)
    eventually("it recovers", lambda: shown()["status"] == "False", LONG_S)


def test_windows_line_ends_and_a_secret_of_a_mebibyte_are_read(place: Place) -> None:
    text = conf("override_shell = /bin/dash\n").replace("\n", "\r\n")
    place.put("# padding\r\n" * 94_000 + text)
    place.until_shell("/bin/dash")
    assert place.output("id -un") == "alice"


def test_a_deleted_secret_is_reported_and_users_work_on(place: Place) -> None:
    before = place.uids()
    place.cluster.kubectl("delete", "secret", SECRET)
    words = f"Secret {SECRET} of namespace {place.cluster.namespace} does not exist"
    for kind, name in (("slurmclusters", "cpu"), ("nodesets.slurm.nebius.ai", "small")):
        eventually(
            f"{kind} has it",
            lambda kind=kind, name=name: words in place.stalled(kind, name)[1],
            60,
        )
        assert place.stalled(kind, name)[0] == "SecretNotFound"
    place.site.until_event(place.cluster.namespace, words, "SecretNotFound")
    mounted = "ls /etc/sssd"
    eventually(
        "kubelet has seen it",
        lambda: not place.cluster.run("cpu-login-0", "sssd", mounted),
        KUBELET_S,
    )
    assert place.output(f"srun -Q sh -c '{WHO}'").split() == ALICES
    assert (place.uids(), place.restarts()) == (before, {0})
    place.put(conf())
    eventually("it recovers", lambda: place.cluster.status("Ready") == "True", 60)


def test_a_file_without_a_domain_or_key_is_reported_and_pods_stay_ready(place: Place) -> None:
    before = place.uids()
    place.put("[sssd]\nservices = nss, pam\n")
    words = "has no section [domain/NAME]"
    eventually("it is reported", lambda: words in place.cluster.condition("Stalled"), 60)
    unknown = "id alice 2>&1 || true"
    eventually(
        "nobody is known",
        lambda: "no such user" in place.cluster.run("cpu-login-0", "sshd", unknown),
        LONG_S,
    )
    assert place.output("srun -Q id -un", "root") == "root"
    other = {**secret(""), "data": {"conf": "eA=="}}
    place.cluster.kubectl("replace", "-f", "-", stdin=json.dumps(other))
    eventually("it is reported", lambda: "has no key" in place.cluster.condition("Stalled"), 60)
    place.put(conf())
    eventually("alice is back", lambda: place.output("id -un") == "alice", LONG_S)
    eventually("it recovers", lambda: place.cluster.status("Ready") == "True", 60)
    assert (place.uids(), place.restarts()) == (before, {0})
