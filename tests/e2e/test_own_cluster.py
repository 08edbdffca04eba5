"""README's steps for a cluster of one's own, run as they stand there, and what they trip over.

Scenarios S001, S003, S005. The registries are real ones, in pods of an otherwise empty node:
whatever runs there came out of them. `PENSTOCK_WRITE_DOCS=1` writes what the commands print into
docs/platform/install.md.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from e2e_kit import images as test_images
from e2e_kit import manifests, registry
from e2e_kit.api import Api, Json
from e2e_kit.site import eventually
from penstock import __version__
from penstock.local import golang, programs
from penstock.local.components import Size
from penstock.local.images import build_all
from penstock.local.linux import why_not
from penstock.local.node import Node
from penstock.local.recipes import ROLES
from support import pages

pytestmark = [
    pytest.mark.needs_slurm("26.05", "penstock images push sends the latest by default"),
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "can run"),
    # The first test that needs Helm compiles it, on a machine where everything else compiles too.
    pytest.mark.timeout(1800),
]

NAME = "registry.example.com"
"""The registry of the pages."""
PATH = "team/penstock"
SPACE = "registries"
PAGE = "docs/platform/install.md"
TAGS = {
    __version__: ("operator",),
    f"26.05-{__version__}": ("slurmctld", "slurmd", "slurmrestd", "login"),
}
"""Images of the cluster of the pages."""


@dataclass
class Place:
    """An empty cluster, two registries in it, and a user's shell."""

    node: Node
    home: Path
    open: str
    """Address of the registry without a password."""
    private: str
    api: Api

    def shell(self, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run commands as a user at the top of the checkout; both outputs in one."""
        mine = {**self.node.env, **environment, "HOME": str(self.home)}
        mine["PATH"] = f"{self.home}/bin:{mine['PATH']}"
        mine["PENSTOCK_REGISTRY_PLAIN_HTTP"] = "1"
        mine["XDG_CACHE_HOME"] = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=pages.ROOT,
            env=mine,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def run(self, script: str, **environment: str) -> str:
        """What they print; they succeed."""
        done = self.shell(script, **environment)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def written(self, page: str, mark: str, address: str, **environment: str) -> str:
        """Run the commands of a page, with a registry's address in the place of the page's."""
        return self.run(pages.commands(page, mark).replace(NAME, address), **environment)

    def push(self, address: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Push the images to a registry."""
        words = " ".join((f"{address}/{PATH}", *options))
        return self.shell(f".venv/bin/penstock images push {words}")

    def log_in(self, address: str, password: str) -> None:
        """Keep a login as docker does."""
        file = self.home / ".docker/config.json"
        file.parent.mkdir(exist_ok=True)
        pair = subprocess.run(
            ["base64", "-w0"],
            input=f"{registry.USER}:{password}",
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        file.write_text(json.dumps({"auths": {address: {"auth": pair}}}))

    def tags(self, name: str, path: str) -> list[str]:
        """Tags that a registry has under a path."""
        folder = f"/data/docker/registry/v2/repositories/{path}/_manifests/tags"
        find = ("exec", f"deploy/{name}", "--", "sh", "-c", f"ls {folder} 2>/dev/null || true")
        return self.node.kubectl("-n", SPACE, *find).split()

    def log(self, name: str) -> str:
        """Requests that a registry had."""
        return self.node.kubectl("-n", SPACE, "logs", f"deploy/{name}", "--tail=-1")

    def pod_images(self) -> set[str]:
        """Images of the operator and of Slurm's pods."""
        query = ("get", "pods", "-o", "jsonpath={..spec['initContainers','containers'][*].image}")
        spaces = ("slinky", "slurm")
        return {one for space in spaces for one in self.node.kubectl("-n", space, *query).split()}

    def operator_pods(self) -> str:
        """Uids of the operator's pods."""
        query = ("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}")
        return self.node.kubectl("-n", "slinky", *query)

    def ready(self, resource: str, name: str, space: str = "slurm") -> Json:
        """The condition Ready of an object."""
        found: Json = self.api.get(resource, space, name) or {}
        conditions: list[Json] = found.get("status", {}).get("conditions", [])
        return next((one for one in conditions if one["type"] == "Ready"), Json())

    def until(
        self, resource: str, name: str, words: str, timeout: float = 90, space: str = "slurm"
    ) -> str:
        """Wait until Ready says these words; the whole message."""

        def told() -> str:
            message: str = self.ready(resource, name, space).get("message", "")
            return message if words in message else ""

        try:
            return eventually(words, told, timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}; {self.ready(resource, name, space)}") from error


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Generator[Place]:
    build_all()
    home = tmp_path_factory.mktemp("home")
    with Node(f"test-own-{os.getpid()}") as node:
        node.up(Size.NODE)
        test_images.load(node, registry.IMAGE)
        node.kubectl("create", "namespace", SPACE)
        objects = [*registry.objects("open", password=False), *registry.objects("private")]
        node.kubectl("apply", "-n", SPACE, "-f", "-", stdin=yaml.safe_dump_all(objects))
        addresses: list[str] = []
        for name in ("open", "private"):
            node.kubectl("-n", SPACE, "rollout", "status", f"deploy/{name}", "--timeout=120s")
            query = ("get", "service", name, "-o", "jsonpath={.spec.clusterIP}")
            addresses.append(f"{node.kubectl('-n', SPACE, *query)}:5000")
            node.allow_plain_http(addresses[-1])
        _settle(home)
        yield Place(node, home, addresses[0], addresses[1], Api(node.kubeconfig_path))


def _settle(home: Path) -> None:
    """What a user has: a key, Helm, and an ssh that knows the key although $HOME is another."""
    (home / ".ssh").mkdir()
    (home / "bin").mkdir()
    key = home / ".ssh/id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    (home / "bin/helm").symlink_to(golang.compiled(programs.HELM_PROGRAM))
    options = f"-i {key} -o BatchMode=yes -o StrictHostKeyChecking=accept-new"
    ssh = home / "bin/ssh"
    ssh.write_text(
        f'#!/bin/sh\nexec /usr/bin/ssh {options} -o UserKnownHostsFile={home}/known "$@"\n'
    )
    ssh.chmod(0o755)


def test_the_steps_of_the_readme_end_with_a_job_and_a_login(place: Place) -> None:
    """S001, S003, S005: from nothing but a registry, by one value."""
    said = place.written("README.md", "first use", place.open)
    hosts = said.split()[-2:]
    assert set(hosts) == {"compute-0", "compute-1"}, said
    assert said.count("pushed  ") == len(ROLES)
    assert place.pod_images() == {
        f"{place.open}/{PATH}/{role}:{tag}" for tag, roles in TAGS.items() for role in roles
    }
    log_in = place.written("README.md", "log in", place.open)
    assert log_in.split()[-1] in ("compute-0", "compute-1"), log_in
    pages.output(PAGE, "first use", _shown(place, said))


def test_images_that_are_there_are_not_pushed_again(place: Place) -> None:
    before = place.log("open")
    said = place.push(place.open)
    assert said.returncode == 0, said.stdout
    assert said.stdout.count("is there  ") == len(ROLES)
    asked = place.log("open")[len(before) :]
    assert '"GET ' in asked or '"HEAD ' in asked
    assert not re.search(r'"(PUT|POST|PATCH) ', asked), asked


def test_another_image_of_the_same_name_is_not_replaced_unasked(place: Place) -> None:
    name = f"{place.open}/{PATH}"
    copy = ["skopeo", "copy", "--quiet", "--src-tls-verify=false", "--dest-tls-verify=false"]
    names = (f"docker://{name}/login:26.05-{__version__}", f"docker://{name}/slurmd:26.05-mine")
    subprocess.run([*copy, *names], check=True)
    refused = place.push(place.open, "--version=mine")
    assert refused.returncode == 1
    assert f"{name}/slurmd:26.05-mine is in the registry with another content" in refused.stdout


def test_a_push_that_was_killed_goes_on(place: Place) -> None:
    """With the login of docker's file: what arrived is there."""
    place.log_in(place.private, registry.PASSWORD)
    command = f"exec .venv/bin/penstock images push {place.private}/{PATH}"
    environment = {**os.environ, "HOME": str(place.home), "PENSTOCK_REGISTRY_PLAIN_HTTP": "1"}
    environment["XDG_CACHE_HOME"] = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    first = subprocess.Popen(
        ["bash", "-c", command],
        cwd=pages.ROOT,
        env=environment,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    eventually("an image is there", lambda: place.tags("private", f"{PATH}/slurm"), 120, 0.1)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    assert not place.tags("private", f"{PATH}/operator")
    done = place.push(place.private)
    assert done.returncode == 0, done.stdout
    assert f"is there  {place.private}/{PATH}/slurm:26.05-{__version__}" in done.stdout
    assert f"pushed  {place.private}/{PATH}/operator:{__version__}" in done.stdout


@pytest.mark.parametrize(
    ("address", "login", "words"),
    [
        ("{private}", "wrong", "rejects the login"),
        ("{private}", "", "rejects the login"),
        ("nowhere.invalid", "", "There is no registry nowhere.invalid: correct the name"),
        ("127.0.0.1:1", "", "Registry 127.0.0.1:1 does not answer"),
    ],
)
def test_what_a_push_trips_over_is_reported_with_the_next_step(
    place: Place, address: str, login: str, words: str
) -> None:
    where = address.format(private=place.private)
    (place.home / ".docker/config.json").unlink(missing_ok=True)
    if login:
        place.log_in(where, login)
    done = place.push(where)
    assert done.returncode == 1
    assert words in done.stdout
    assert len(done.stdout.strip().splitlines()) == 1, done.stdout


def test_plain_http_is_asked_for(place: Place) -> None:
    said = place.shell(
        f"unset PENSTOCK_REGISTRY_PLAIN_HTTP; .venv/bin/penstock images push {place.open}/{PATH}"
    )
    assert said.returncode == 1
    assert f"Registry {place.open} serves plain HTTP: add --plain-http" in said.stdout


def test_the_steps_for_a_registry_with_a_password_move_the_cluster_there(place: Place) -> None:
    """S001: every pod gets its image with the login; the cluster of the first registry goes on."""
    job = place.run(
        "kubectl -n slurm exec deploy/slurm-login-login -- sbatch --parsable --wrap 'sleep 1'"
    )
    assert job.strip()
    user = {
        "PENSTOCK_REGISTRY_USERNAME": registry.USER,
        "PENSTOCK_REGISTRY_PASSWORD": registry.PASSWORD,
    }
    said = place.written(PAGE, "with a password", place.private, **user)
    assert set(said.split()[-2:]) == {"compute-0", "compute-1"}, said

    def moved() -> bool:
        return all(one.startswith(f"{place.private}/") for one in place.pod_images())

    eventually("all pods have images of the other registry", moved, 120)


def login_set(name: str, image: str, **spec: object) -> Json:
    return manifests.of(
        "LoginSet",
        name,
        controllerRef={"name": "slurm"},
        # The node has the image from the tests before: it must ask the registry all the same.
        login={"image": image, "imagePullPolicy": "Always"},
        initconf={"imagePullPolicy": "Always"},
        template={"spec": {"imagePullSecrets": [{"name": "mine"}]}},
        **spec,
    )


def test_an_image_that_cannot_be_pulled_is_a_condition_with_the_value_to_set(place: Place) -> None:
    """A login that is corrected is enough: nothing of ours is restarted."""

    def apply(*objects: Json) -> None:
        place.node.kubectl("apply", "-n", "slurm", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def secret(password: str) -> None:
        options = f"--docker-username={registry.USER} --docker-password={password}"
        create = f"kubectl -n slurm create secret docker-registry mine {options}"
        place.run(
            f"{create} --docker-server={place.private} --dry-run=client -o yaml"
            " | kubectl apply -f -"
        )

    operator = place.node.kubectl(
        "-n", "slinky", "get", "pods", "-o", "jsonpath={.items[*].metadata.uid}"
    )
    secret("wrong")
    image = f"{place.private}/{PATH}/login:26.05-{__version__}"
    apply(
        login_set("locked", image),
        login_set("absent", f"{place.open}/{PATH}/login:26.05-absent"),
        login_set("capital", "registry.example.com/Team/login:1"),
        login_set("nowhere", "registry.invalid/team/login:1"),
    )
    said = place.until("loginsets", "locked", "401")
    assert f"cannot get {image}: ErrImagePull" in said
    assert f"Correct the login for {place.private} in Secret mine of namespace slurm" in said
    assert "Push the image, or set spec.login.image" in place.until(
        "loginsets", "absent", "not found"
    )
    assert "InvalidImageName" in place.until("loginsets", "capital", "Correct spec.login.image")
    assert "Make registry registry.invalid reachable" in place.until(
        "loginsets", "nowhere", "no such host"
    )
    secret(registry.PASSWORD)
    place.until("loginsets", "locked", "1 of 1 login pods are ready", 150)
    assert operator == place.node.kubectl(
        "-n", "slinky", "get", "pods", "-o", "jsonpath={.items[*].metadata.uid}"
    )
    place.node.kubectl(
        "-n", "slurm", "delete", "loginset", "locked", "absent", "capital", "nowhere"
    )


def test_a_chart_whose_registry_was_named_wrong_is_put_right_by_its_value(place: Place) -> None:
    """S003."""
    upgrade = (
        "helm upgrade --install other charts/slurm -n other --create-namespace"
        " -f examples/values.yaml --set nodesets=null --set loginsets=null"
        " --set fullnameOverride=other --set global.imageRegistry="
    )
    place.run(f"{upgrade}localhost/lost")
    said = place.until("controllers", "other", "cannot get localhost/lost/slurmctld", space="other")
    assert "Load the image into the Kubernetes nodes, or set global.imageRegistry" in said
    place.run(f"{upgrade}{place.open}/{PATH}/")
    place.until("controllers", "other", "1 of 1 slurmctld pods are ready", space="other")
    place.run("helm uninstall other -n other")


def _shown(place: Place, said: str) -> str:
    """Commands with what they printed, as a page has them: the registry's name, no times."""
    for address in (place.open, place.private):
        said = said.replace(address, NAME)
    said = re.sub(r"(?m)^ +[\d.]+ s  .*\n|^ +…  .*\n|^walk\.go.*\n|^make.*\n", "", said)
    said = re.sub(r"(?m)^LAST DEPLOYED: .*\n|^Warning: Permanently added.*\n", "", said)
    return re.sub(r"(?m)^Warning: resource namespaces/.*\n|^TEST SUITE: .*\n", "", said)
