"""A Kubernetes cluster with the operator in it, as tests use it."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import time
import urllib.request
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from e2e_kit.api import Api, Json
from e2e_kit.patience import patience
from e2e_kit.release import RELEASE
from penstock.base import yaml_text
from penstock.local import install
from penstock.local.errors import LocalError
from penstock.local.node import Node
from penstock.local.target import BuiltIn, Images

T = TypeVar("T")

OPERATOR = "penstock-operator"
SELDOM_S = 1.0
"""How often something that takes long is asked for."""
FAILED = 400
"""The first HTTP status of a write that was rejected."""
USER = f"system:serviceaccount:{install.SYSTEM}:{OPERATOR}"


@dataclass(frozen=True)
class Write:
    """A write to the API server, from its audit log."""

    at: datetime
    verb: str
    resource: str
    """With the subresource after a slash."""
    name: str
    code: int


class Site:
    """The node, kubectl, and the operator."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.api = Api(node.kubeconfig_path)
        self.images = Images("", "")
        """What pods call the images; empty on a node that somebody else filled."""

    def install(self) -> None:
        """Images, kinds and operator."""
        target = BuiltIn(self.node.name, RELEASE)
        self.images = target.load()
        install.install(target, self.images)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Output of kubectl. Raises LocalError with its error output when it fails."""
        return self.node.kubectl(*arguments, stdin=stdin)

    def open(self, *arguments: str) -> subprocess.Popen[bytes]:
        """A kubectl that stays, with its three pipes."""
        return subprocess.Popen(
            [str(self._kubectl), *arguments],
            env=self.node.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def rejected(self, *arguments: str, stdin: str | None = None) -> str:
        """Error output of a kubectl that must fail."""
        done = subprocess.run(
            [str(self._kubectl), *arguments],
            input=stdin,
            env=self.node.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode != 0, done.stdout
        return done.stderr.strip()

    @property
    def _kubectl(self) -> Path:
        return self.node.kubeconfig_path.parent / "upper/usr/local/bin/kubectl"

    def apply(self, *objects: Json) -> None:
        """`kubectl apply` of objects."""
        self.kubectl("apply", "-f", "-", stdin=yaml_text.dumped(objects))

    def operator_pod(self) -> Json:
        """The operator's pod, once it is the only one and ready."""

        def one(pods: dict[str, Json]) -> Json | None:
            if len(pods) != 1:
                return None
            pod = next(iter(pods.values()))
            conditions = pod.get("status", {}).get("conditions", ())
            ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
            return pod if ready and "deletionTimestamp" not in pod["metadata"] else None

        return self.api.until(
            "pods",
            install.SYSTEM,
            one,
            what="one ready operator pod",
            selector=f"app.kubernetes.io/name={OPERATOR}",
        )

    def operators(self, count: int) -> None:
        """Have so many operators, none or one, and wait until it is so."""
        self.kubectl("-n", install.SYSTEM, "scale", f"deploy/{OPERATOR}", f"--replicas={count}")
        if count:
            self.operator_pod()
            return
        self.api.until(
            "pods",
            install.SYSTEM,
            lambda pods: not pods,
            what="no operator",
            selector=f"app.kubernetes.io/name={OPERATOR}",
        )

    @contextlib.contextmanager
    def without_operator(self) -> Generator[None]:
        """None runs until the end, when there is one again, whoever had started it."""
        self.operators(0)
        try:
            yield
        finally:
            self.operators(1)

    def operator_pid(self) -> int:
        """The operator's process on this machine; raises LookupError when there is none."""
        uid = self.operator_pod()["metadata"]["uid"]
        return pid_in_pod(uid, "penstock.controllers")

    def metrics(self) -> dict[str, float]:
        """The operator's metrics by name with labels."""
        address = self.operator_pod()["status"]["podIP"]
        with urllib.request.urlopen(f"http://{address}:8080/metrics", timeout=10) as answer:
            text: str = answer.read().decode()
        lines = [line.rpartition(" ") for line in text.splitlines() if line[:1] != "#"]
        return {name: float(value) for name, _, value in lines}

    def total(self, metric: str, *labels: str) -> float:
        """The sum of a metric over its labels, of which these words must be some."""
        return sum(
            value
            for name, value in self.metrics().items()
            if name.partition("{")[0] == metric and all(label in name for label in labels)
        )

    def reconciles(self, controller: str) -> float:
        """How often the operator has looked at objects of a kind."""
        return self.total("penstock_reconcile_seconds_count", f'"{controller}"')

    def writes(self, since: datetime) -> list[Write]:
        """What the operator wrote since then, but for its Lease."""
        every = self._audit(lambda line: USER in line)
        return [one for one in every if one.at >= since and one.resource != "leases"]

    def operator_writes(self, namespace: str) -> list[Write]:
        """What the operator ever wrote in a namespace."""
        mark = f"/namespaces/{namespace}/"
        return self._audit(lambda line: USER in line and mark in line)

    def until_event(self, namespace: str, words: str, reason: str = "") -> None:
        """Wait for an event with these words: it is emitted a moment after its cause."""

        def told(found: dict[str, Json]) -> bool:
            every = [one for one in found.values() if reason in ("", one["reason"])]
            return any(words in one.get("note", "") for one in every)

        self.api.until("events", namespace, told, what=f"an event {reason} {words!r}")

    def audit(self, namespace: str, resource: str) -> list[Write]:
        """Who ever wrote objects of one resource in a namespace, with success."""
        mark = f"/namespaces/{namespace}/"
        every = self._audit(lambda line: mark in line)
        return [one for one in every if one.resource == resource and one.code < FAILED]

    def _audit(self, wanted: Callable[[str], bool]) -> list[Write]:
        with self.node.audit_log.open() as log:
            return [_write(json.loads(line)) for line in log if wanted(line)]


def _write(event: Json) -> Write:
    of: dict[str, Any] = event.get("objectRef") or {}
    resource = "/".join(filter(None, (of.get("resource"), of.get("subresource"))))
    at = datetime.fromisoformat(event["requestReceivedTimestamp"])
    name = f"{of.get('namespace', '')}/{of.get('name', '')}"
    return Write(at, event["verb"], resource, name, event.get("responseStatus", {}).get("code", 0))


def pid_in_pod(uid: str, words: str) -> int:
    """The process of a pod whose command line has `words`; raises LookupError when none has.

    The newest of several: a parent that starts it again names it as well.
    """
    found = pids_in_pod(uid, words)
    if not found:
        raise LookupError(f"pod {uid} has no process {words}")
    return max(found)


def pids_in_pod(uid: str, words: str) -> list[int]:
    """All processes of a pod whose command line has `words`."""
    mark = re.compile(uid.replace("-", "[-_]"))
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            if words in command and mark.search((folder / "cgroup").read_text()):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def eventually(
    what: str, holds: Callable[[], T | None], timeout: float = 60.0, every: float = 0.25
) -> T:
    """Ask until the answer is truthy and return it: for what has no watch, as Slurm's state.

    It is asked each `every` seconds at first. A question may be a process in a container, which
    takes the CPU that the answer needs, so later it is asked after a tenth of the time waited.
    Raises AssertionError with the last answer.
    """
    timeout = patience(timeout)
    began = time.monotonic()
    deadline = began + timeout
    last: T | Exception | None = None
    while time.monotonic() < deadline:
        try:
            answer = holds()
            if answer:
                return answer
            last = answer
        except (LocalError, LookupError, OSError) as error:
            last = error
        time.sleep(max(every, min((time.monotonic() - began) / 10, SELDOM_S)))
    raise AssertionError(f"not within {timeout} s: {what}; last: {last!r}")
