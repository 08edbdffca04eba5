from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.local import app


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_STATE", str(tmp_path))


@pytest.mark.parametrize("command", ["up", "down", "status", "kubeconfig"])
def test_who_is_not_root_gets_one_sentence(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    done = CliRunner().invoke(app, [command])
    assert done.exit_code == 1
    assert "penstock local: The built-in Kubernetes node needs root" in done.output
    assert "Traceback" not in done.output


def test_no_node_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert CliRunner().invoke(app, ["status"]).output == "no node\n"
    done = CliRunner().invoke(app, ["kubeconfig", "--name", "other"])
    assert done.exit_code == 1
    assert "There is no node other" in done.output
