"""A SlurmCluster in a namespace of its own."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Collection, Mapping
from typing import Any

from e2e_kit.api import Json, condition
from e2e_kit.site import Site, eventually
from penstock.local.errors import LocalError

NAME = "correct-cpu-cluster"
START_S = 180.0
STEP_S = 120
"""Seconds that a step may take, on a machine with a lot else to do."""
_UNENDED = "penstock-step-does-not-end"


class SlurmClusterSite:
    """The objects of a YAML text, with other images."""

    def __init__(
        self,
        site: Site,
        namespace: str,
        text: str,
        images: Mapping[str, str],
        *,
        workers: Collection[str] = ("worker-0", "worker-1"),
        prefix: str = "",
        name: str = NAME,
    ) -> None:
        for role, image in images.items():
            text = text.replace(f"localhost/penstock/{role}:26.05-0.1.0", image)
            repository, _, tag = image.rpartition(":")
            given = rf"repository: localhost/penstock/{role}(, |\n *)tag: 26\.05-0\.1\.0"
            text = re.sub(given, rf"repository: {repository}\g<1>tag: {tag}", text)
        self.namespace, self._text, self.site = namespace, text, site
        self._workers = frozenset(workers)
        self.name = name
        self.slurmctld = f"{prefix}controller-0"
        """The pod of slurmctld."""
        self.start_s = 0.0
        """Seconds from the objects to idle workers."""
        self.custom = ""

    def create(self, beside: str = "") -> None:
        """Create the objects in a new namespace; those of the YAML text `beside` first."""
        self.site.kubectl("create", "namespace", self.namespace)
        if beside:
            self.kubectl("apply", "-f", "-", stdin=beside)
        self.kubectl("apply", "-f", "-", stdin=self._text)
        self.custom = self.get()["spec"].get("customSlurmConfig", "")

    def up(self, beside: str = "") -> None:
        """Create the objects, and wait until all workers are idle."""
        began = time.monotonic()
        self.create(beside)
        self.until_workers(self._workers)
        self.start_s = time.monotonic() - began

    def join(self) -> None:
        """Create the objects in a namespace that exists, and wait until all workers are idle."""
        began = time.monotonic()
        self.kubectl("apply", "-f", "-", stdin=self._text)
        self.custom = self.get()["spec"].get("customSlurmConfig", "")
        self.until_workers(self._workers)
        self.start_s = time.monotonic() - began

    def down(self) -> None:
        """Remove them."""
        gone = ("--wait=false", "--ignore-not-found")
        self.site.kubectl("delete", "namespace", self.namespace, *gone)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Output of kubectl in the namespace."""
        return self.site.kubectl("-n", self.namespace, *arguments, stdin=stdin)

    @property
    def env(self) -> Mapping[str, str]:
        """The environment of commands that ask its Kubernetes."""
        return self.site.node.env

    def apply(self, one: Json) -> None:
        """Apply an object in the namespace."""
        self.kubectl("apply", "-f", "-", stdin=json.dumps(one))

    def get(self) -> Json:
        """The SlurmCluster."""
        return json.loads(self.kubectl("get", "slurmcluster", self.name, "-o", "json"))

    def patch(self, spec: Mapping[str, Any]) -> None:
        """Merge into its spec."""
        body = json.dumps({"spec": spec})
        self.kubectl("patch", "slurmcluster", self.name, "--type=merge", "-p", body)

    def status(self, type_: str) -> str:
        """The status of one of its conditions."""
        return condition(self.get(), type_).get("status", "")

    def condition(self, type_: str) -> str:
        """The message of one of its conditions."""
        return condition(self.get(), type_).get("message", "")

    def uid(self, pod: str) -> str:
        """The uid of a pod."""
        return self.kubectl("get", "pod", pod, "-o", "jsonpath={.metadata.uid}")

    def run(self, pod: str, container: str, script: str) -> str:
        """Output of a shell command in a container."""
        return self.kubectl("exec", pod, "-c", container, "--", "sh", "-c", script)

    def step(self, pod: str, script: str) -> str:
        """Output of a script with srun in it, on a login.

        Raises LocalError for one that fails or does not end; a failed test shows the daemons.
        """
        limited = f"timeout {STEP_S} sh -c {shlex.quote(script)} || echo {_UNENDED}"
        said = self.run(pod, "sshd", limited)
        if _UNENDED not in said:
            return said
        raise LocalError(f"{script} fails, or does not end within {STEP_S} s:\n{said}")

    def session(self, script: str, user: str = "root") -> str:
        """Output of a shell script in a user's session in the jail, on the login."""
        words = shlex.join(["su", "-", user, "-c", script])
        return self.run("login-0", "sshd", f"chroot /mnt/jail {words}").strip()

    def scontrol(self, *words: str) -> str:
        """Output of scontrol beside slurmctld."""
        return self.kubectl("exec", self.slurmctld, "-c", "slurmctld", "--", "scontrol", *words)

    def nodes(self) -> dict[str, str]:
        """States of Slurm nodes by name."""
        command = ("sinfo", "-h", "-N", "-o", "%N %t")
        said = self.kubectl("exec", self.slurmctld, "-c", "slurmctld", "--", *command)
        return dict(line.split()[:2] for line in said.splitlines())

    def until_login(self) -> None:
        """Wait until the login takes sessions, as after what let its pod go."""
        ready = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
        says = ("get", "pod", "login-0", "--ignore-not-found", "-o", ready)
        eventually("the login is ready", lambda: self.kubectl(*says) == "True", START_S)

    def until_idle(self, count: int) -> None:
        """Wait until so many workers are idle, and no others are there."""
        self.until_workers({f"worker-{ordinal}" for ordinal in range(count)})

    def until_workers(self, names: Collection[str]) -> None:
        """Wait until these Slurm nodes are idle, and no others are there."""
        wanted = dict.fromkeys(names, "idle")

        def are_there() -> bool:
            found = self.nodes()
            if found != wanted:
                raise LookupError(f"Slurm's nodes are {found}")
            return True

        eventually(f"idle are {sorted(names)}", are_there, START_S)
