from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.local import app
from penstock.local import record
from penstock.local.components import Size
from penstock.local.golang import Program
from penstock.local.layout import Layout
from penstock.local.node import Node
from penstock.local.starter import Starter, this_process


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


def test_no_node_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert CliRunner().invoke(app, ["status"]).output == "no node\n"
    done = CliRunner().invoke(app, ["kubeconfig", "--name", "other"])
    assert done.exit_code == 1
    assert "There is no node other" in done.output


@pytest.mark.parametrize(
    "command",
    [
        ["list"],
        ["down", "--all"],
        ["node", "list"],
        ["node", "add", "b"],
        ["node", "stop", "b"],
        ["node", "exec", "b", "crictl", "ps"],
    ],
)
def test_commands_on_clusters_need_root_too(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1
    assert "needs root" in done.output


def test_a_list_names_the_process_that_started_each_cluster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert CliRunner().invoke(app, ["list"]).output == "no cluster\n"
    here = this_process(bound=True)
    save(Layout("mine"), here)
    save(Layout("older"), replace(here, start=here.start + 1))
    _, mine, older = CliRunner().invoke(app, ["list"]).output.splitlines()
    assert f"(pid {here.pid})" in mine
    assert str(Path.cwd()) in mine
    assert str(tmp_path / "mine") in mine
    assert f"(pid {here.pid}, ended)" in older
    assert not Node("mine").abandoned
    assert Node("older").abandoned


def test_a_command_runs_only_in_a_node_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    save(Layout("mine"), this_process(bound=True))
    done = CliRunner().invoke(app, ["node", "exec", "--name", "mine", "b", "crictl", "-v"])
    assert done.exit_code == 1
    assert "Cluster mine has no running node b; penstock local node list shows" in done.output


def test_a_running_cluster_keeps_its_kubernetes_and_another_is_rejected_before_any_compile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def compiled(program: Program) -> None:
        raise AssertionError(f"{program.name} is compiled")

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("penstock.local.node.compiled", compiled)
    save(Layout("mine"), this_process(bound=True), complete=True)
    up = ["up", "--name", "mine", "--size", "api", "--kubernetes"]
    done = CliRunner().invoke(app, [*up, "1.36"])
    assert done.exit_code == 1
    assert "runs Kubernetes 1.34.4, not 1.36.3. Take it down first: penstock local" in done.output
    done = CliRunner().invoke(app, [*up, "1.28"])
    assert "Kubernetes 1.28 is not available; use one of 1.33, 1.34, 1.35, 1.36" in done.output


def save(layout: Layout, starter: Starter, *, complete: bool = False) -> None:
    layout.folder.mkdir()
    one = record.Record(layout.name, Size.API, 200, "/", complete=complete, starter=starter)
    record.save(layout, one)
