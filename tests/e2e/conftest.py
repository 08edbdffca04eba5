"""The cluster that the end-to-end tests share: one node, one operator, a namespace for each test.

`PENSTOCK_E2E_NODE=name` takes the built-in node of that name as it is, with the operator that is
there (`penstock demo up` leaves one called `penstock`), for work on tests.
"""

import os
import secrets
import subprocess
import time
from collections.abc import Callable, Generator
from typing import Any

import pytest

from e2e_kit.cluster import Cluster
from e2e_kit.release import lacks
from e2e_kit.site import OPERATOR, Site
from e2e_kit.slurmcluster import SlurmClusterSite
from penstock.local.install import SYSTEM
from penstock.local.node import Node
from penstock.local.target import BuiltIn

SHOWN_S, SHOWN_ALL_S = 10.0, 40.0
"""Seconds for a command, and for those about daemons. They count as time of the failed test."""
LAST = 120
"""Lines of the operator's log that a failed test shows."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what the release of Slurm under test does not have."""
    for mark in item.iter_markers("needs_slurm"):
        since, why = mark.args
        if lacks(since):
            pytest.skip(f"Slurm {since}: {why}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """A failed test shows logs, events and objects: it may not come again."""
    report: pytest.TestReport = yield
    site = _site(getattr(item, "funcargs", {})) if report.failed else None
    try:
        for section in _sections(site) if site is not None else ():
            report.sections.append(section)
    except pytest.fail.Exception as error:
        # The test's own time ends here too, and would end the whole run.
        report.sections.append(("not shown", str(error)))
    return report


def _sections(site: Site) -> Generator[tuple[str, str]]:
    for name, command in SHOWN.items():
        yield name, _said(site, command)
    yield "metrics", _metrics(site)
    yield from _daemons(site)


def _site(funcargs: dict[str, Any]) -> Site | None:
    """That of a test, which it has itself or as a part of what it works with."""
    parts = [part for one in funcargs.values() for part in getattr(one, "__dict__", {}).values()]
    found = [*funcargs.values(), *parts]
    found += [one.site for one in found if isinstance(one, Cluster | SlurmClusterSite)]
    found += [Site(one.node) for one in found if isinstance(one, BuiltIn)]
    return next((one for one in found if isinstance(one, Site)), None)


KINDS = "controllers,accountings,restapis,nodesets,loginsets,tokens,partitions,slurmclusters"
SHOWN = {
    "operator": ("-n", SYSTEM, "logs", f"deploy/{OPERATOR}", f"--tail={LAST}"),
    "soperator": ("-n", "soperator", "logs", "deploy/soperator-manager", f"--tail={LAST}"),
    "kinds": ("get", KINDS, "-A", "-o", "wide"),
    "pods": ("get", "pods", "-A", "-o", "wide"),
    "events": ("get", "events", "-A", "--sort-by=.metadata.creationTimestamp"),
    "slurmclusters": ("get", "slurmclusters", "-A", "-o", "yaml"),
}


def _said(site: Site, command: tuple[str, ...]) -> str:
    """What a command prints, if it ends soon: what hangs is what a failed test often meets."""
    with site.open(*command) as process:
        try:
            output, errors = process.communicate(timeout=SHOWN_S)
        except subprocess.TimeoutExpired:
            return f"no answer within {SHOWN_S:g} s"
        finally:
            process.kill()
    return (output or errors).decode(errors="replace")


def _metrics(site: Site) -> str:
    """What the operator is at: reconciles, queues and calls to Slurm."""
    try:
        found = site.metrics()
    except (AssertionError, OSError) as error:
        return str(error)
    shown = ("penstock_reconciles_running", "penstock_reconcile_seconds_count", "penstock_queue_d")
    return "\n".join(f"{k} {v:g}" for k, v in found.items() if k.startswith(shown) and v)


ASKED = {
    "slurmctld": "scontrol show nodes; squeue -a; scontrol show jobs; scontrol show topology",
    "slurmd": "ps -ef; tail -50 /var/log/slurm/*",
}
"""By the container of a daemon, what is asked there beside its log."""


def _daemons(site: Site) -> Generator[tuple[str, str]]:
    """The log of each slurmctld and slurmd, and what runs there; some of many."""
    until = time.monotonic() + SHOWN_ALL_S
    fields = "{.metadata.namespace} {.metadata.name} {.spec.containers[*].name}"
    names = f"jsonpath={{range .items[*]}}{fields}{{'\\n'}}{{end}}"
    said = _said(site, ("get", "pods", "-A", "-o", names))
    # Words of an error are in no such form.
    for words in (line.split() for line in said.splitlines()):
        for one in ASKED.keys() & set(words[2:]):
            if time.monotonic() > until:
                return
            namespace, pod = words[:2]
            at = ("-n", namespace, pod, "-c", one)
            yield f"{namespace} {pod}", _said(site, ("logs", *at, f"--tail={LAST}"))
            asked = _said(site, ("exec", *at, "--", "sh", "-c", ASKED[one]))
            yield f"{namespace} {pod}: {ASKED[one]}", asked


@pytest.fixture(scope="session")
def site(request: pytest.FixtureRequest) -> Site:
    name = os.environ.get("PENSTOCK_E2E_NODE")
    if name:
        return Site(Node(name))
    node: Node = request.getfixturevalue("kube_node")
    site = Site(node)
    site.install()
    return site


@pytest.fixture(scope="module")
def clusters(site: Site) -> Generator[Callable[[str], Cluster]]:
    """Clusters of a module, each in a namespace of its own, removed at the end."""
    made: list[Cluster] = []

    def make(name: str) -> Cluster:
        cluster = Cluster(site, f"{name}-{secrets.token_hex(2)}")
        made.append(cluster)
        return cluster

    yield make
    for cluster in made:
        cluster.remove()
