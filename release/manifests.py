"""What is installed without Helm: the kinds, and the operators with them."""

from __future__ import annotations

from pathlib import Path

from penstock.local.charts import MANIFESTS
from release.epoch import ROOT

_DEPLOY = ROOT / "deploy"


def write(folder: Path) -> None:
    """`crds.yaml`, and for each operator a file with the kinds and the operator."""
    crds = [one.read_text(encoding="utf-8") for one in sorted((_DEPLOY / "crds").glob("*.yaml"))]
    (folder / "crds.yaml").write_text(_joined(crds), encoding="utf-8")
    for file in MANIFESTS:
        name = "install.yaml" if file == "operator.yaml" else f"install-{file}"
        text = (_DEPLOY / file).read_text(encoding="utf-8")
        (folder / name).write_text(_joined([*crds, text]), encoding="utf-8")


def _joined(texts: list[str]) -> str:
    return "".join(text if text.startswith("---") else f"---\n{text}" for text in texts)
