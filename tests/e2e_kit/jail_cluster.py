"""A Slurm cluster with a jail, of hand-written manifests, and what its users and its root do."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from e2e_kit.jail_manifests import CONFIGURATION, WORKERS, WRONG_KEY, Json, Manifests
from e2e_kit.site import eventually
from penstock.local.node import Node

WRITE = """
cd /mnt/jail/etc/slurm
cat >".$1.new"
mv ".$1.new" "$1"
sha256sum -- * >.penstock-files.new
mv .penstock-files.new .penstock-files
"""
DAEMONS = ("controller-0", *WORKERS, "login-0")
CONTAINERS = {"controller-0": "slurmctld", "login-0": "sshd", "administrator": "main"}


class JailCluster:
    """Pods in a namespace of their own."""

    def __init__(self, node: Node, namespace: str, images: Mapping[str, str], folder: Path) -> None:
        self.namespace = namespace
        self.manifests = Manifests(namespace, images, folder)
        self.start_s = 0.0
        """Seconds from empty volume to idle workers."""
        self._node = node

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Output of kubectl in the namespace."""
        return self._node.kubectl("-n", self.namespace, *arguments, stdin=stdin)

    def apply(self, *objects: Json) -> None:
        """Apply objects."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        self.kubectl("apply", "-f", "-", stdin=text)

    def up(self) -> None:
        """Two Jobs' pods fill the jail at once, while all daemons wait; then they start."""
        self._node.kubectl("create", "namespace", self.namespace)
        began = time.monotonic()
        made = self.manifests
        self.apply(*made.shared(), made.populate("populate", at_once=2))
        self.apply(made.controller(), made.worker(WORKERS[0]), made.login())
        self.apply(made.worker(WORKERS[1], sshd=True))
        self.apply(made.administrator(), made.worker(WRONG_KEY, key="other-munge"))
        self.kubectl("wait", "--for=condition=Complete", "job/populate", "--timeout=120s")
        self.kubectl("wait", "--for=condition=Ready", "pod/administrator", "--timeout=60s")
        for name, text in CONFIGURATION.items():
            self.configure(name, text)
        names = [f"pod/{name}" for name in DAEMONS]
        self.kubectl("wait", "--for=condition=Ready", *names, "--timeout=120s")
        self.until_idle()
        self.start_s = time.monotonic() - began
        for name in (*WORKERS, "login-0"):
            self.run(name, "echo container >/etc/where")
        self.run("administrator", "echo jail >/mnt/jail/etc/where")

    def down(self) -> None:
        """Remove all of it."""
        self._node.kubectl("delete", "namespace", self.namespace, "--wait=false")

    def configure(self, name: str, text: str) -> None:
        """Replace a file of Slurm's configuration by rename, and then the manifest."""
        words = ("exec", "-i", "administrator", "--", "sh", "-ec", WRITE, "sh", name)
        self.kubectl(*words, stdin=text)

    def run(self, pod: str, script: str, container: str = "") -> str:
        """Output of a shell script in a container, as root. Raises LocalError when it fails."""
        name = container or CONTAINERS.get(pod, "slurmd")
        return self.kubectl("exec", pod, "-c", name, "--", "sh", "-c", script).strip()

    def pod(self, name: str) -> Json:
        """A pod."""
        found: Json = json.loads(self.kubectl("get", "pod", name, "-o", "json"))
        return found

    def restarts(self, name: str, container: str) -> int:
        """How often a container of a pod was started again."""
        status = self.pod(name)["status"]
        every: list[Any] = [*status["initContainerStatuses"], *status["containerStatuses"]]
        return sum(one["restartCount"] for one in every if one["name"] == container)

    def until_idle(self) -> None:
        """Wait until the workers are idle, and none is drained."""
        query = "sinfo -hN -o '%N %T'"
        wanted = [f"{name} idle" for name in WORKERS]

        def is_idle() -> bool:
            found = self.run("controller-0", query).splitlines()
            return [line for line in found if not line.startswith(WRONG_KEY)] == wanted

        eventually("the workers are idle", is_idle, 60)

    def ssh(
        self, user: str, script: str, stdin: str | None = None, host: str = "login-0"
    ) -> subprocess.CompletedProcess[str]:
        """Run a script in a session on the login."""
        return self.client("ssh", user, [], [script], stdin, host)

    def check(self, user: str, script: str, stdin: str | None = None, host: str = "login-0") -> str:
        """Output of a script in a session on the login, which must succeed."""
        done = self.ssh(user, script, stdin, host)
        assert done.returncode == 0, (script, done.stdout, done.stderr)
        return done.stdout.strip()

    def client(
        self,
        program: str,
        user: str,
        options: Sequence[str],
        words: Sequence[str],
        stdin: str | None = None,
        host: str = "login-0",
    ) -> subprocess.CompletedProcess[str]:
        """Run ssh or sftp to a pod; scp takes the host in its words: `{host}`."""
        address = f"{user}@{self.pod(host)['status']['podIP']}"
        given = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"]
        flags = [word for option in (*given, "BatchMode=yes") for word in ("-o", option)]
        rest = [word.replace("{host}", address) for word in words]
        target = [] if program == "scp" else [address]
        return subprocess.run(
            [program, "-i", str(self.manifests.key), *flags, *options, *target, *rest],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
