"""Values that are wrong are refused before anything is sent, with the path and what to write.

Covers S033, S023, S043, S070 and F22: one file for each fault, which begins with the words that
Helm must say.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from penstock.local.errors import LocalError
from support.charts import FIXTURES, lint, rejection

# The first test that needs Helm compiles it, on a machine where everything else compiles as well.
pytestmark = pytest.mark.timeout(1800)

WRONG = sorted((FIXTURES / "wrong").glob("*.yaml"))


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_a_fault_is_named_with_its_path(path: Path) -> None:
    text = path.read_text()
    words = text.splitlines()[0].removeprefix("# ")
    assert words in rejection(yaml.safe_load(text))


def test_helm_lint_agrees() -> None:
    with pytest.raises(LocalError) as refused:
        lint("slurm", "--values", str(FIXTURES / "wrong" / "unknown-key-at-top.yaml"))
    assert "additional properties 'nodeset' not allowed" in str(refused.value)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"metricsSecure": True}, "metrics are served as plain HTTP"),
        ({"metricsPort": 70000}, "got 70,000, want 65,535"),
        ({"metricsPort": "8O80"}, "does not match pattern"),
        ({"logLevel": "loud"}, "at '/operator/logLevel'"),
        ({"image": ""}, "name an image"),
        ({"image": {"repository": None}}, "name an image"),
        ({"slurmImage": "registry/slurm:26.05"}, "at '/operator/slurmImage'"),
        ({"replica": 2}, "additional properties 'replica' not allowed"),
    ],
)
def test_faults_in_values_of_the_operator(values: dict[str, object], words: str) -> None:
    assert words in rejection({"operator": values, "global": {}}, chart="slurm-operator")
