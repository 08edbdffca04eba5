"""The charts, rendered by Helm, and the plain manifests of the operator that are made from them.

`python -m penstock.local.charts FILE...` writes deploy/operator.yaml and deploy/soperator.yaml;
`--check FILE...` compares. Helm is compiled from its Go module when the cache has it not, which
takes minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from penstock.api.crd import Dumper
from penstock.base import yaml_text
from penstock.local import golang, programs
from penstock.local.errors import LocalError
from penstock.local.install import SOPERATOR, SYSTEM, Document
from penstock.local.recipes import LOCAL, ROOT

CHARTS = ROOT / "charts"
NAME = "penstock-operator"
"""What the operator's objects are called where no release names them."""
_HEADER = "# Made from charts/{chart} by `make manifests`. Change it there.\n"
_REGISTRY: dict[str, Any] = {"global": {"imageRegistry": LOCAL}}
_VALUES: dict[str, Any] = {
    **_REGISTRY,
    "nameOverride": NAME,
    "operator": {"apis": ["slinky.slurm.net", "slurm.nebius.ai"]},
}
_WARNINGS = ("coalesce.go:", "walk.go:")
_HELM_ONLY = ("app.kubernetes.io/managed-by", "helm.sh/chart")


def helm(*arguments: str, stdin: str = "", environment: Mapping[str, str] | None = None) -> str:
    """Standard output of helm.

    Raises LocalError with its error output, without warnings about merged values and links, if it
    fails.
    """
    done = subprocess.run(
        [str(golang.compiled(programs.HELM_PROGRAM)), *arguments],
        input=stdin,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        lines = f"{done.stdout}{done.stderr}".strip().splitlines()
        raise LocalError("\n".join(one for one in lines if not one.startswith(_WARNINGS)))
    return done.stdout


def rendered(
    chart: str | Path,
    release: str,
    namespace: str,
    values: Mapping[str, Any] | None = None,
    api_versions: Sequence[str] = (),
) -> str:
    """What `helm template` makes of a chart of ours, by name, or of any by its folder.

    `api_versions` are groups with a version that the cluster has beside those of Kubernetes.
    """
    return helm(
        "template",
        release,
        str(CHARTS / chart),
        "--namespace",
        namespace,
        "--values",
        "-",
        *(word for one in api_versions for word in ("--api-versions", one)),
        stdin=json.dumps(dict(values or {})),
    )


def objects(text: str) -> list[Document]:
    """The manifests of a rendering."""
    return [cast("Document", one) for one in yaml_text.documents(text) if one]


@dataclass(frozen=True)
class Plain:
    """A plain manifest of the operator: the chart, its release, and namespace of the release."""

    chart: str
    release: str
    namespace: str
    values: Mapping[str, Any]

    def objects(self) -> list[Document]:
        """The operator's objects as they are without Helm, the namespace first."""
        space: Document = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": self.namespace,
                "labels": {
                    "pod-security.kubernetes.io/enforce": "restricted",
                    "pod-security.kubernetes.io/warn": "restricted",
                },
            },
        }
        found = objects(rendered(self.chart, self.release, self.namespace, self.values))
        for one in found:
            for label in _HELM_ONLY:
                one["metadata"].get("labels", {}).pop(label, None)
        return [space, *found]

    def text(self) -> str:
        """The text of the file."""
        made = yaml.dump_all(self.objects(), Dumper=Dumper, sort_keys=False, width=100)
        return _HEADER.format(chart=self.chart) + made


MANIFESTS = {
    "operator.yaml": Plain("slurm-operator", NAME, SYSTEM, _VALUES),
    "soperator.yaml": Plain("soperator", "soperator", SOPERATOR, _REGISTRY),
}
"""By the name of its file in deploy/."""


def manifest(file: str = "operator.yaml") -> str:
    """The text of a file of deploy/."""
    return MANIFESTS[file].text()


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; 1 when `--check` finds a difference."""
    parser = argparse.ArgumentParser(prog="python -m penstock.local.charts", description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", help=f"{' or '.join(MANIFESTS)} somewhere")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args(arguments)
    files: list[Path] = options.files
    status = 0
    for file in files:
        text = manifest(file.name)
        if not options.check:
            file.write_text(text, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != text:
            sys.stderr.write(f"{file} differs from the chart: run `make manifests`.\n")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
