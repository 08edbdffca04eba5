"""The examples are accepted by a real API server, with our definitions and webhooks, and are short.

Those of Argo CD and Flux name kinds that are not ours: the API server gets the products' own
definitions, and the charts are rendered with the values in them.
"""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
import yaml

from api.kube_support import Kubectl, eventually
from api.test_webhooks import Site, site
from penstock.api.kubernetes.meta import Json
from penstock.local.node import Node
from support.charts import render
from support.gitops_kinds import gitops_kinds
from support.operator_kit import ROOT, documents

EXAMPLES = ROOT / "examples"
GIT_OPS = ("argo-cd.yaml", "flux.yaml")
VALUES = "values.yaml"
OURS = sorted(path.name for path in EXAMPLES.glob("*.yaml") if path.name not in (*GIT_OPS, VALUES))
LONGEST = 80
WARNINGS = {
    # They follow in the same file; and the operator's cache may be behind a busy API server.
    "slurmcluster-nodesets.yaml": "there is no (NodeSet (small|large) of this cluster"
    "|SlurmCluster cpu in this namespace) yet",
    # A NodeSet does not know whether its cluster has a jail.
    "slurmcluster-without-jail.yaml": "spec.slurmd.volumes.jail: without a source",
}
APART = "gpu.yaml"
"""An example whose objects have the names of another one's."""


def text_of(name: str) -> str:
    """An example in the namespace of a test."""
    return re.sub(r",? ?namespace: slurm\b", "", (EXAMPLES / name).read_text())


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_an_example_is_short_and_explains_itself(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert len(lines) < LONGEST
    assert lines[0].startswith("# ")
    assert sum("#" in line for line in lines) >= 2


@pytest.mark.api
async def test_each_example_is_accepted(api_node: Node) -> None:
    """Those that add to a cluster come after it: the quickstart is first."""
    together = [name for name in OURS if name != APART]
    together.sort(key=lambda name: name != "quickstart.yaml")
    for names in (together, [APART]):
        async with site(api_node) as found, found.operator():
            for name in names:
                await _accepted(found, name)


async def _accepted(found: Site, name: str) -> None:
    said = await found.kubectl("apply", "--validate=strict", "-f", "-", stdin=text_of(name))
    expected = re.compile(WARNINGS.get(name, "no warning"))
    left = [line for line in said.splitlines() if not expected.search(line)]
    assert left == [], (name, left)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", GIT_OPS)
def test_charts_are_rendered_with_the_values_of_gitops_examples(name: str) -> None:
    rendered = [_render(one) for one in documents(EXAMPLES / name) if one["kind"] in _RENDERED]
    kinds = [{one["kind"] for one in objects.values()} for objects in rendered]
    assert kinds[0] == {"CustomResourceDefinition"}
    assert "Deployment" in kinds[1]
    assert kinds[2] >= {"Controller", "NodeSet", "LoginSet", "RestApi"}


@pytest.mark.api
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", GIT_OPS)
async def test_gitops_examples_fit_the_definitions_of_the_product(
    api_node: Node, tmp_path: Path, name: str
) -> None:
    """And an unknown field in any place of them is rejected, so the definitions are in force."""
    kubectl, path = Kubectl(api_node), EXAMPLES / name
    with _installed(kubectl, gitops_kinds(name)):
        for space in sorted({one["metadata"]["namespace"] for one in documents(path)}):
            kubectl("create", "namespace", space)
        async with asyncio.timeout(120):
            # An established kind is served a moment later.
            await eventually(lambda: "no matches for kind" not in _dry(kubectl, path))
        made = kubectl("apply", "--validate=strict", "-f", str(path))
        assert made.count(" created") == len(documents(path))
        wrong = dict(_with_unknown_fields(documents(path)))
        whole = tmp_path / name
        whole.write_text(yaml.safe_dump_all(wrong.values()))
        done = kubectl.run("apply", "--validate=strict", "-f", str(whole))
        assert done.stdout == ""
        assert set(re.findall(r'unknown field "([^"]*)"', done.stderr)) == set(wrong)


@contextmanager
def _installed(kubectl: Kubectl, files: Sequence[Path]) -> Generator[None]:
    """Serve kinds of others for a while; objects go with their definitions."""
    named = [word for file in files for word in ("-f", str(file))]
    # A client-side apply would copy them into an annotation, for which they are too large.
    kubectl("apply", "--server-side", *named)
    try:
        wait = ("wait", "--for=condition=Established", "--timeout=60s", *named)
        # Right after its creation a definition may have no list of conditions yet.
        tries = (kubectl.run(*wait).stderr for _ in range(60))
        assert next((said for said in tries if "accessor error" not in said), "late") == ""
        yield
    finally:
        kubectl("delete", *named)


def _dry(kubectl: Kubectl, path: Path) -> str:
    return kubectl.run("apply", "--dry-run=server", "-f", str(path)).stderr


def _with_unknown_fields(manifests: Sequence[Json]) -> Iterator[tuple[str, Json]]:
    """Path of an unknown field, and the object with it, for each place: values of Helm have any."""
    for number, one in enumerate(manifests):
        for place in _objects(one["spec"], ("spec",)):
            wrong = copy.deepcopy(one)
            inner = wrong
            for key in place:
                inner = inner[key]
            field = f"unknown{number}"
            inner[field] = "x"
            yield ".".join((*place, field)), wrong


def _objects(value: Json, place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield place
    for key, inner in value.items():
        if isinstance(inner, dict) and key not in ("values", "valuesObject"):
            yield from _objects(cast("Json", inner), (*place, key))


@pytest.mark.timeout(1800)
def test_the_values_are_those_of_the_chart() -> None:
    found = render(yaml.safe_load((EXAMPLES / VALUES).read_text()))
    assert {"Controller slurm", "NodeSet slurm-worker-compute"} <= set(found)


_RENDERED = ("Application", "HelmRelease")


def _render(one: Json) -> dict[str, Json]:
    spec = one["spec"]
    if one["kind"] == "Application":
        source = spec["source"]
        helm = source.get("helm", {})
        chart, values = source["path"], helm.get("valuesObject")
        release = helm.get("releaseName", one["metadata"]["name"])
        space = spec["destination"]["namespace"]
    else:
        chart, values = spec["chart"]["spec"]["chart"], spec.get("values")
        release, space = spec["releaseName"], spec["targetNamespace"]
    return render(values, chart=chart.removeprefix("charts/"), release=release, namespace=space)
