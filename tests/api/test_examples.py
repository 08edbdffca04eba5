"""The examples are accepted by a real API server, with our definitions and webhooks, and are short.

Those of Argo CD and Flux name kinds that are not ours: their fields are compared with those that
the products document, and the charts are rendered with the values in them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from api.test_webhooks import Site, site
from penstock.api.kubernetes.meta import Json
from penstock.local.node import Node
from support.charts import render
from support.operator_kit import ROOT, documents

EXAMPLES = ROOT / "examples"
GIT_OPS = ("argo-cd.yaml", "flux.yaml")
VALUES = "values.yaml"
OURS = sorted(path.name for path in EXAMPLES.glob("*.yaml") if path.name not in (*GIT_OPS, VALUES))
LONGEST = 80
WARNINGS = {
    # What a user of the example has or creates: its comments name it.
    "accounting.yaml": "there is no Secret slurm-database",
    "hybrid.yaml": "there is no Secret metal-keys",
    # They follow in the same file.
    "slurmcluster-nodesets.yaml": "there is no NodeSet (small|large) of this cluster yet",
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


@pytest.mark.parametrize("name", GIT_OPS)
def test_gitops_examples_have_only_documented_fields(name: str) -> None:
    for one in documents(EXAMPLES / name):
        assert set(paths(one["spec"])) <= FIELDS[one["kind"]], one["metadata"]["name"]


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


def paths(value: Any, path: str = "") -> list[str]:
    """The paths of all leaves; values and lists are leaves."""
    if not isinstance(value, dict) or path in ("values", "source.helm.valuesObject"):
        return [path]
    inner = cast("Json", value)
    return [leaf for key in inner for leaf in paths(inner[key], f"{path}.{key}".lstrip("."))]


FIELDS = {
    # argo-cd.readthedocs.io, Application Specification
    "Application": {
        "project",
        "source.repoURL",
        "source.targetRevision",
        "source.path",
        "source.helm.releaseName",
        "source.helm.valuesObject",
        "destination.server",
        "destination.namespace",
        "syncPolicy.automated.prune",
        "syncPolicy.automated.selfHeal",
        "syncPolicy.syncOptions",
    },
    # fluxcd.io, GitRepository v1 and HelmRelease v2
    "GitRepository": {"interval", "url", "ref.tag", "ignore"},
    "HelmRelease": {
        "interval",
        "dependsOn",
        "targetNamespace",
        "releaseName",
        "install.createNamespace",
        "driftDetection.mode",
        "chart.spec.chart",
        "chart.spec.sourceRef.kind",
        "chart.spec.sourceRef.name",
        "values",
    },
}
