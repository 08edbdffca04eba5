"""One Slurm cluster of a test: its objects, slurmrestd, commands and jobs."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import shlex
import subprocess
import time
from collections.abc import Callable
from typing import Any, TypeVar

from e2e_kit import manifests
from e2e_kit.api import Json, ready
from e2e_kit.release import PARSER
from e2e_kit.shell import Shell
from e2e_kit.site import Site, eventually
from penstock.local.errors import LocalError
from penstock.slurm.auth import jwt

T = TypeVar("T")

_CONTROLLER = f"{manifests.NAME}-controller-0"


class Cluster:
    """A namespace with a Controller `slurm` and what goes with it."""

    def __init__(self, site: Site, namespace: str) -> None:
        self.site = site
        self.namespace = namespace
        self.restapi = manifests.NAME
        """The RestApi that the test itself asks."""
        self.parser = PARSER
        """The data parser that it asks for."""
        self.jwt_secret: tuple[str, str] = (f"{manifests.NAME}-auth-jwt", "jwt.key")
        """Secret and key of what tokens are signed with."""
        self._addresses: dict[str, tuple[str, int]] = {}
        self._shells: dict[tuple[str, str], Shell] = {}
        self._jwt_key = b""

    def create(self, *objects: Json) -> None:
        """The namespace and objects in it."""
        self.apply(manifests.namespace(self.namespace), manifests.slurm_files(), *objects)

    def remove(self) -> None:
        """Everything: the kinds first, so that the operator takes the cluster down in order."""
        for shell in self._shells.values():
            shell.close()
        gone = ("--ignore-not-found", "--wait=false")
        self.kubectl(
            "delete", "nodesets,loginsets,restapis,controllers,accountings,tokens", "--all", *gone
        )
        self.site.kubectl("delete", "namespace", self.namespace, *gone)

    def apply(self, *objects: Json) -> None:
        """`kubectl apply` in this namespace."""
        self.site.apply(*(_placed(one, self.namespace) for one in objects))

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """kubectl in this namespace."""
        return self.site.kubectl("-n", self.namespace, *arguments, stdin=stdin)

    def patch(self, resource: str, name: str, patch: Json) -> None:
        """`kubectl patch --type=merge` in this namespace."""
        self.kubectl("patch", resource, name, "--type=merge", "-p", json.dumps(patch))

    def get(self, resource: str, name: str) -> Json:
        """An object; raises LookupError when it is not there."""
        found = self.site.api.get(resource, self.namespace, name)
        if found is None:
            raise LookupError(f"{resource} {name} is not there")
        return found

    def pods(self, selector: str = "app.kubernetes.io/name=slurmd") -> dict[str, Json]:
        """Pods by name; by default the workers."""
        listed = self.site.api.list("pods", self.namespace, selector)
        return {one["metadata"]["name"]: one for one in listed}

    def uids(self, selector: str = "") -> dict[str, str]:
        """Uids of pods by name."""
        return {name: pod["metadata"]["uid"] for name, pod in self.pods(selector).items()}

    def until(
        self,
        resource: str,
        holds: Callable[[dict[str, Json]], T | None],
        what: str,
        timeout: float = 90.0,
    ) -> T:
        """Wait for what the objects of this namespace show, as `Api.until`."""
        return self.site.api.until(resource, self.namespace, holds, what=what, timeout=timeout)

    def poke(self, times: int) -> None:
        """Have the operator look at the NodeSet that often, which a change makes it do."""
        before = self.site.reconciles("nodeset")
        for number in range(times):
            mark = f"test.penstock.dev/poke={number}"
            self.kubectl("annotate", "--overwrite", "nodeset", "compute", mark)
            eventually(
                "it was looked at", lambda n=number: self.site.reconciles("nodeset") > before + n
            )

    def until_ready(self, resource: str, name: str, timeout: float = 120.0) -> Json:
        """Wait until an object is Ready."""
        return self.until(
            resource,
            lambda found: found[name] if name in found and ready(found[name]) else None,
            f"{resource} {name} is ready",
            timeout,
        )

    def until_idle(self, *nodes: str, timeout: float = 90.0) -> None:
        """Wait until the nodes, and no others, are idle in Slurm, and Kubernetes agrees.

        A pod becomes Ready a moment after its node is idle; until then it is the first to go when
        workers are too many, before a lower deletion cost.
        """
        wanted = {name: {"IDLE"} for name in nodes}
        found: dict[str, set[str]] = {}

        def idle() -> bool:
            found.clear()
            found.update(self.states())
            return found == wanted

        try:
            eventually(f"exactly {nodes} are idle", idle, timeout)
        except AssertionError as error:
            reasons = {name: self.node(name).get("reason") for name in found}
            raise AssertionError(f"{error}; {found}, {reasons}") from None

        def usable(pods: dict[str, Json]) -> bool:
            there = {pod["spec"].get("hostname", name) for name, pod in pods.items() if ready(pod)}
            return there.issuperset(nodes)

        self.until("pods", usable, f"pods {nodes} are ready", timeout)

    # Slurm

    def run(self, *command: str, stdin: str | None = None) -> str:
        """Run a command in slurmctld's container. Raises LocalError with its error output."""
        return self._shell(_CONTROLLER, "slurmctld").run(command, stdin)

    def on(self, node: str, script: str) -> str:
        """A shell script in a worker's slurmd container, as root."""
        return self._shell(node, "slurmd").run(("sh", "-c", script))

    def kill(self, daemon: str, pod: str = _CONTROLLER) -> None:
        """Kill a daemon. Its container may end before the command confirms it.

        While it is reconfigured there are two of slurmctld: the older one ends by itself.
        """
        shell = self._shell(pod, daemon)

        def only_one() -> str:
            pids = shell.run(("pgrep", "-x", daemon)).split()
            return pids[0] if len(pids) == 1 else ""

        pid = eventually(f"there is one {daemon}", only_one)
        with contextlib.suppress(LocalError):
            shell.run(("kill", "-9", pid))

    def _shell(self, pod: str, container: str) -> Shell:
        def start() -> subprocess.Popen[bytes]:
            return self.site.open(
                "-n", self.namespace, "exec", "-i", pod, "-c", container, "--", "sh"
            )

        return self._shells.setdefault((pod, container), Shell(start))

    @property
    def shared(self) -> str:
        """A folder of the host for workers' /shared (`manifests.on_shared_disk`)."""
        path = f"/var/lib/e2e-{self.namespace}"
        self.site.node.run("mkdir", "-p", "-m", "1777", path)
        return path

    def output(self, name: str) -> str:
        """A file of /shared, whether or not a worker is left."""
        return self.site.node.run("cat", f"{self.shared}/{name}")

    def states(self) -> dict[str, set[str]]:
        """States of all nodes, without the flag of dynamic ones."""
        nodes = self.rest("GET", "nodes/")["nodes"]
        return {one["name"]: set(one["state"]) - {"DYNAMIC_NORM"} for one in nodes}

    def node(self, name: str) -> Json:
        """A node's record; empty when Slurm has none of that name."""
        found = [one for one in self.rest("GET", "nodes/")["nodes"] if one["name"] == name]
        return found[0] if found else {}

    def submit(self, script: str, *options: str) -> int:
        """Submit a batch script by sbatch; returns the job's id."""
        body = f"#!/bin/sh\n{script}\n"
        command = f"cd /tmp && sbatch --parsable {shlex.join(options)}"
        return int(self.run("sh", "-c", command, stdin=body))

    def job(self, number: int) -> dict[str, str]:
        """`scontrol show job` as a mapping."""
        words = self.run("scontrol", "--oneliner", "show", "job", str(number)).split()
        pairs = (word.partition("=") for word in words)
        return {key: value for key, _, value in pairs}

    def until_job(self, number: int, *states: str, timeout: float = 60.0) -> dict[str, str]:
        """Wait for one of the states, and until `scontrol` no longer shows COMPLETING for it."""

        def found() -> dict[str, str] | None:
            jobs = self.rest("GET", f"job/{number}")["jobs"]
            now = set(jobs[0]["job_state"]) if jobs else set[str]()
            return jobs[0] if now & set(states) and "COMPLETING" not in now else None

        eventually(f"job {number} is {states}", found, timeout)
        return eventually(f"job {number} is shown", lambda: self.job(number))

    def rest(self, method: str, path: str, body: Any = None, *, user: str = "slurm") -> Json:
        """Ask slurmrestd; errors of Slurm are in the answer. Raises OSError when it is away."""
        status, answer = self.asked(method, path, body, token=self.token(user))
        return {"http": status, **answer}

    def asked(self, method: str, path: str, body: Any = None, *, token: str) -> tuple[int, Json]:
        """HTTP status and answer to somebody with a token. Raises OSError when it is away."""
        headers = {"X-SLURM-USER-TOKEN": token}
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body)
        status, text = self.http(method, f"/slurm/{self.parser}/{path}", data, headers)
        try:
            return status, json.loads(text)
        except ValueError as error:
            raise OSError(f"slurmrestd answered {status} {text[:200]!r}") from error

    def http(
        self, method: str, path: str, body: str | None, headers: dict[str, str]
    ) -> tuple[int, str]:
        """Status and text of a call to slurmrestd."""
        connection = http.client.HTTPConnection(*self._address(self.restapi), timeout=20)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()

    @property
    def url(self) -> str:
        """Where its slurmrestd listens."""
        host, port = self._address(self.restapi)
        return f"http://{host}:{port}"

    def token(self, user: str) -> str:
        """A token of a Slurm user."""
        return jwt.mint(self._key(), user, 600, time.time())

    def expired(self, user: str) -> str:
        """One whose time has passed."""
        return jwt.mint(self._key(), user, 60, time.time() - 3600)

    def early(self, user: str) -> str:
        """A token that is not valid yet (`nbf`)."""
        return jwt.mint(self._key(), user, 600, time.time() + 3600)

    def forget_key(self) -> None:
        """Look at the JWT key again for the next token."""
        self._jwt_key = b""

    def _key(self) -> bytes:
        if not self._jwt_key:
            name, key = self.jwt_secret
            self._jwt_key = base64.b64decode(self.get("secrets", name)["data"][key])
        return self._jwt_key

    def forget_address(self) -> None:
        """Look at slurmrestd's Service again for the next call."""
        self._addresses.clear()

    def _address(self, name: str) -> tuple[str, int]:
        if name not in self._addresses:
            spec = self.get("services", f"{name}-restapi")["spec"]
            ports = {one.get("name"): one["port"] for one in spec["ports"]}
            self._addresses[name] = spec["clusterIP"], ports.get("slurmrestd", 6820)
        return self._addresses[name]


def _placed(one: Json, namespace: str) -> Json:
    if one["kind"] == "Namespace":
        return one
    return {**one, "metadata": {**one["metadata"], "namespace": namespace}}
