"""The charts, rendered by Helm, and the plain manifest of the operator that is made from them.

`python -m penstock.local.charts FILE` writes deploy/operator.yaml; `--check FILE` compares.
Helm is compiled from its Go module when the cache has it not, which takes minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import yaml

from penstock.api.crd import Dumper
from penstock.local import golang, programs
from penstock.local.errors import LocalError
from penstock.local.install import SYSTEM, Document
from penstock.local.recipes import LOCAL, ROOT

CHARTS = ROOT / "charts"
NAME = "penstock-operator"
"""What the operator's objects are called where no release names them."""
HEADER = "# Made from charts/slurm-operator by `make manifests`. Change it there.\n"
_VALUES: dict[str, Any] = {
    "nameOverride": NAME,
    "global": {"imageRegistry": LOCAL},
    "operator": {"apis": ["slinky.slurm.net", "slurm.nebius.ai"]},
}
_HELM_ONLY = ("app.kubernetes.io/managed-by", "helm.sh/chart")


def helm(*arguments: str, stdin: str = "", environment: Mapping[str, str] | None = None) -> str:
    """Standard output of helm.

    Raises LocalError with its error output, without warnings about merged values, if it fails.
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
        raise LocalError("\n".join(one for one in lines if not one.startswith("coalesce.go:")))
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
    return [cast("Document", one) for one in yaml.safe_load_all(text) if one]


def operator_objects() -> list[Document]:
    """The operator's objects as they are without Helm, the namespace first."""
    space: Document = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": SYSTEM,
            "labels": {
                "pod-security.kubernetes.io/enforce": "restricted",
                "pod-security.kubernetes.io/warn": "restricted",
            },
        },
    }
    found = objects(rendered("slurm-operator", NAME, SYSTEM, _VALUES))
    for one in found:
        for label in _HELM_ONLY:
            one["metadata"].get("labels", {}).pop(label, None)
    return [space, *found]


def manifest() -> str:
    """The text of deploy/operator.yaml."""
    return HEADER + yaml.dump_all(operator_objects(), Dumper=Dumper, sort_keys=False, width=100)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; 1 when `--check` finds a difference."""
    parser = argparse.ArgumentParser(prog="python -m penstock.local.charts", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args(arguments)
    file: Path = options.file
    text = manifest()
    if not options.check:
        file.write_text(text, encoding="utf-8")
    elif not file.exists() or file.read_text(encoding="utf-8") != text:
        sys.stderr.write(f"{file} differs from the chart: run `make manifests`.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
