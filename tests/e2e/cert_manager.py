"""The chart's certificate by a real cert-manager, compiled from its module.

Not part of `make test`: with the libraries of every cloud it compiles longer than all of a node.
Run it by `make cert-manager`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from e2e_kit import by_chart
from e2e_kit.api import Json
from e2e_kit.site import Site, eventually
from penstock.local.golang import Program, compiled, toolchain
from support.release import Release

MODULE, VERSION = "github.com/cert-manager/cert-manager", "v1.11.5"
"""The last whose programs are packages of the module itself."""
OWN = "managed-operator"
"""Namespace of the operator that the chart installs."""
SECRET = "webhook-by-cert-manager"
CONFIGURATIONS = "validatingwebhookconfigurations,mutatingwebhookconfigurations"
SECONDS = 120.0

pytestmark = pytest.mark.timeout(3600)


def program(name: str) -> Path:
    package = f"{MODULE}/cmd/{name}"
    return compiled(Program(f"cert-manager-{name}", package, {MODULE: VERSION}))


def kinds() -> str:
    """Its kinds, without the labels that its chart would fill in."""
    told = subprocess.run(
        [toolchain(), "list", "-m", "-f", "{{.Dir}}", f"{MODULE}@{VERSION}"],
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[Json] = []
    for path in sorted(Path(told.stdout.strip(), "deploy/crds").glob("*.yaml")):
        for one in yaml.safe_load_all(path.read_text()):
            one["metadata"].pop("labels", None)
            found.append(one)
    return yaml.safe_dump_all(found)


@pytest.fixture(scope="module")
def cert_manager(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Its controller and its injector as processes that speak with the node's API server."""
    site.kubectl("apply", "--server-side", "-f", "-", stdin=kinds())
    site.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    folder = tmp_path_factory.mktemp("cert-manager")
    common = (f"--kubeconfig={site.node.kubeconfig_path}", "--leader-elect=false")
    commands = {
        "controller": ("--metrics-listen-address=127.0.0.1:0", "--controllers=*"),
        "cainjector": (),
    }
    with ExitStack() as stack:
        for name, more in commands.items():
            log = stack.enter_context((folder / f"{name}.log").open("wb"))
            # The injector is told by the environment where its API server is.
            process = subprocess.Popen(
                [program(name), *common, *more], stdout=log, stderr=log, env=site.node.env
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


@pytest.fixture(scope="module")
def operator(site: Site, cert_manager: None) -> Generator[Release]:
    """The operator by its chart, in the place of the one that other tests share."""
    values: Json = {"certManager": {"enabled": True, "secretName": SECRET}}
    with by_chart.operator(site, OWN, values) as release:
        yield release


def certificate(site: Site) -> str:
    """What the Secret has, as long as it is there."""
    path = "jsonpath={.data.tls\\.crt}"
    return site.kubectl("-n", OWN, "get", "secret", SECRET, "--ignore-not-found", "-o", path)


def test_cert_managers_certificate_is_served_and_its_successor_too(
    site: Site, operator: Release
) -> None:
    """Feature row 64: cert-manager makes it, and shows its authority to the API server."""
    first = eventually("cert-manager has made it", lambda: certificate(site), SECONDS)
    said = eventually("a fault is refused over it", lambda: by_chart.rejection(site, OWN), SECONDS)
    assert "spec.slurmd.env: write a list" in said
    path = "jsonpath={.items[*].webhooks[*].clientConfig.caBundle}"
    assert site.kubectl("get", CONFIGURATIONS, "-o", path)
    site.kubectl("-n", OWN, "delete", "secret", SECRET)

    def another() -> bool:
        return certificate(site) not in ("", first)

    eventually("cert-manager has made another one", another, SECONDS)
    said = eventually(
        "a fault is refused over that", lambda: by_chart.rejection(site, OWN), SECONDS
    )
    assert "spec.slurmd.env: write a list" in said
