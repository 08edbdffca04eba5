"""OpenKruise's own controller, compiled from its module, with its kinds and its webhooks.

It runs as a process of this machine. soperator 5.0 installs this version with these feature gates.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Generator
from functools import cache
from pathlib import Path

import yaml

from e2e_kit.api import Json
from e2e_kit.site import eventually
from penstock.local.cache import digest, keyed
from penstock.local.golang import ENVIRONMENT, FLAGS, toolchain
from penstock.local.node import Node

MODULE, VERSION = "github.com/openkruise/kruise", "v1.8.3"
SUM = "h1:3sddPSN9YiygMCG2Kmp4TTuPcj3f9zO6M4bUo2s3Pas="
"""Of the module; its own go.sum has those of its dependencies."""
NAME = "kruise-manager"
SPACE = "kruise-system"
GATES = (
    "ImagePullJobGate=true,RecreatePodWhenChangeVCTInCloneSetGate=true,"
    "StatefulSetAutoResizePVCGate=true,StatefulSetAutoDeletePVC=true,"
    "PreDownloadImageForInPlaceUpdate=true,ResourceDistributionGate=true"
)
CONFIGURATIONS = (
    "mutatingwebhookconfiguration/kruise-mutating-webhook-configuration",
    "validatingwebhookconfiguration/kruise-validating-webhook-configuration",
)
_READY_S = 90.0


@cache
def module() -> Path:
    """The folder of the module's sources, whose sum is checked."""
    command = [toolchain(), "mod", "download", "-json", f"{MODULE}@{VERSION}"]
    found: Json = json.loads(_run(command, Path("/")))
    assert found["Sum"] == SUM, found
    return Path(found["Dir"])


def program() -> Path:
    """The compiled controller, kept in the user's cache."""

    def build(folder: Path) -> None:
        output = ("-ldflags", "-s -w", "-o", str(folder / NAME))
        _run([toolchain(), "build", *FLAGS, *output, "."], module())

    return keyed(NAME, digest(MODULE, SUM, *FLAGS), build) / NAME


def _run(command: list[str], folder: Path) -> str:
    # Its go.mod is complete, and names modules whose own requirements the proxy does not have.
    environment = {**os.environ, **ENVIRONMENT, "GOFLAGS": "-mod=readonly -buildvcs=false"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def install(node: Node) -> None:
    """Apply its kinds, as its chart has them."""
    kinds = [one for path in _files("config/crd/bases") for one in _documents(path)]
    conversion = _documents(module() / "config/crd/patches/webhook_in_statefulsets.yaml")[0]
    for one in kinds:
        if one["metadata"]["name"] == conversion["metadata"]["name"]:
            one["spec"] |= conversion["spec"]
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    text = yaml.safe_dump_all([space, *kinds])
    node.kubectl("apply", "--server-side", "-f", "-", stdin=text)
    names = [f"crd/{one['metadata']['name']}" for one in kinds]
    node.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)


def register_webhooks(node: Node) -> None:
    """Create the configurations of its webhooks; the controller enters its address."""
    patches = {
        one["name"]: one
        for each in _documents(module() / "config/webhook/patch_manifests.yaml")
        for one in each["webhooks"]
    }
    webhooks = _documents(module() / "config/webhook/manifests.yaml")
    for one in webhooks:
        one["metadata"]["name"] = f"kruise-{one['metadata']['name']}"
        one["webhooks"] = [{**hook, **patches.get(hook["name"], {})} for hook in one["webhooks"]]
    node.kubectl("create", "-f", "-", stdin=yaml.safe_dump_all(webhooks))


def remove_webhooks(node: Node) -> None:
    """Delete the configurations of its webhooks, as the pages advise when it goes."""
    node.kubectl("delete", "--ignore-not-found", *CONFIGURATIONS)


@contextlib.contextmanager
def running(node: Node, folder: Path) -> Generator[Path]:
    """The controller as a process, whose webhooks are served; the path of its log."""
    if not node.kubectl("get", *CONFIGURATIONS, "--ignore-not-found", "-o", "name"):
        register_webhooks(node)
    port = _free_port()
    log = folder / "kruise-manager.log"
    options = (
        "--enable-leader-election=false",
        "--enable-pprof=false",
        "--metrics-addr=0",
        "--health-probe-addr=0",
        f"--feature-gates={GATES}",
    )
    environment = {
        **node.env,
        "POD_NAMESPACE": SPACE,
        "WEBHOOK_HOST": node.machine_address,
        "WEBHOOK_PORT": str(port),
        "WEBHOOK_CERT_DIR": str(folder / "certificates"),
    }
    with log.open("ab") as file:
        process = subprocess.Popen([program(), *options], stdout=file, stderr=file, env=environment)
        try:
            eventually("OpenKruise serves its webhooks", lambda: _is_served(node, port), _READY_S)
            yield log
        finally:
            process.terminate()
            process.wait()


def _is_served(node: Node, port: int) -> bool:
    """Whether the API server has the address of this process, which admits a pod."""
    path = "jsonpath={.webhooks[*].clientConfig.url}"
    if f":{port}/" not in node.kubectl("get", CONFIGURATIONS[0], "-o", path):
        return False
    pod: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe", "namespace": "default"},
        "spec": {"containers": [{"name": "probe", "image": "none"}]},
    }
    return bool(node.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod)))


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("", 0))
        return int(found.getsockname()[1])


def _files(folder: str) -> list[Path]:
    return sorted((module() / folder).glob("*.yaml"))


def _documents(path: Path) -> list[Json]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one]
