"""Whatever brings clusters up, and however it ends: nothing of them is left.

All of it under a state folder of its own, beside whatever else runs on the machine.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from e2e_kit.left import groups, in_use
from e2e_kit.site import eventually
from penstock.local.layout import STATE_VARIABLE
from penstock.local.linux import why_not
from penstock.local.node import Node
from penstock.local.recipes import ROOT

pytestmark = [
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "can run"),
    pytest.mark.timeout(900),
]

PENSTOCK = (sys.executable, "-c", "from penstock.cli.main import main; main()")
HOLDS = """
import sys, time
from penstock.local.ending import ends_in_order
from penstock.local.node import Node
with ends_in_order(), Node("held") as node:
    node.up("api")
    print("up", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """A state folder of the test's own."""
    folder = tmp_path / "clusters"
    monkeypatch.setenv(STATE_VARIABLE, str(folder))
    yield folder
    penstock("local", "down", "--all")
    assert left_of(folder) == []


def penstock(*arguments: str) -> str:
    done = subprocess.run([*PENSTOCK, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def blocks(state: Path) -> list[int]:
    """Address blocks of the clusters below a state folder."""
    return [json.loads(one.read_text())["block"] for one in state.glob("*/node.json")]


def left_of(state: Path, taken: list[int] | None = None) -> list[str]:
    """What is left of the clusters below a state folder, which had these address blocks."""
    found = [str(state)] if state.exists() else []
    found += in_use(state)
    for block in taken or []:
        link = Path(f"/sys/class/net/penstock{block}")
        found += [str(link)] if link.exists() else []
        found += groups(f"penstock-{block}-*")
    return found


def test_all_clusters_are_listed_with_who_started_them_and_ended_together(
    state: Path, kube_node: Node
) -> None:
    penstock("local", "up", "--name", "one", "--size", "api")
    penstock("local", "up", "--name", "two", "--size", "api")
    _, one, two = penstock("local", "list").splitlines()
    assert one.split()[:2] == ["one", "ready"]
    for word in ("local up --name two --size api", ", ended)", str(Path.cwd()), str(state / "two")):
        assert word in two
    taken = blocks(state)
    assert penstock("local", "down", "--all").split() == ["ended", "one", "ended", "two"]
    assert left_of(state, taken) == []
    assert penstock("local", "list") == "no cluster\n"


def test_all_includes_a_node_whose_folder_is_gone(state: Path) -> None:
    penstock("local", "up", "--name", "lost", "--size", "api")
    taken = blocks(state)
    (state / "lost").rename(state.parent / "elsewhere")
    assert "ended lost (pid" in penstock("local", "down", "--all")
    eventually("nothing is left", lambda: left_of(state, taken) == [])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_run_that_gets_sigterm_takes_its_clusters_down(
    state: Path, number: signal.Signals
) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"up\n"
        taken = blocks(state)
        run.send_signal(number)
        assert run.wait(60) == 128 + number
    assert left_of(state, taken) == []


def test_the_processes_of_a_killed_run_end_and_the_next_up_removes_the_rest(state: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"up\n"
        taken = blocks(state)
        run.kill()
    eventually("only the folder is left", lambda: left_of(state, taken)[1:] == [])
    # A process that is ending has no command any more, which is what the line above looks for.
    eventually("it is dead", lambda: Node("held").status().state == "dead")
    penstock("local", "up", "--name", "next", "--size", "api")
    assert [one.name for one in state.iterdir() if one.is_dir()] == ["next"]


def until_says(process: subprocess.Popen[str], words: str) -> str:
    """Read what a command tells of its progress until it tells these words."""
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if words in line:
            return said
    raise AssertionError(said)


def test_a_bench_that_gets_sigterm_takes_its_nodes_down(state: Path) -> None:
    command = [sys.executable, "-m", "bench", "start"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as run:
        until_says(run, "starting Kubernetes (node) as bench")
        taken = blocks(state)
        run.terminate()
        assert run.stderr is not None
        run.stderr.read()
    assert run.returncode == 128 + signal.SIGTERM
    assert left_of(state, taken) == []


@pytest.mark.parametrize(
    "step", ["starting Kubernetes", "importing images", "creating a Slurm cluster"]
)
def test_a_demo_killed_at_any_step_leaves_nothing_after_down(state: Path, step: str) -> None:
    command = [*PENSTOCK, "demo", "up"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as demo:
        until_says(demo, step)
        taken = blocks(state)
        demo.kill()
    penstock("demo", "down")
    eventually("nothing is left", lambda: left_of(state, taken) == [])


def test_a_second_demo_keeps_what_was_changed_and_a_reset_sets_it_back(state: Path) -> None:
    penstock("demo", "up")
    node = Node()

    def spec(kind: str, path: str) -> str:
        return node.kubectl("-n", "slurm", "get", kind, "-o", f"jsonpath={{.spec.{path}}}")

    node.kubectl("-n", "slurm", "scale", "nodeset/compute", "--replicas=3")
    lines = "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMinJobAge=30\n"
    patch = json.dumps({"spec": {"extraConf": lines}})
    node.kubectl("-n", "slurm", "patch", "controller", "slurm", "--type=merge", "-p", patch)
    node.kubectl("-n", "slurm", "delete", "loginset", "login")
    said = penstock("demo", "up")
    kept = "kept as you changed it: controller/slurm spec.extraConf, nodeset/compute spec.replicas"
    assert kept in said
    assert "hello from compute-" in said
    assert (spec("nodeset/compute", "replicas"), spec("controller/slurm", "extraConf")) == (
        "3",
        lines,
    )
    said = penstock("demo", "up", "--reset")
    assert "kept as" not in said
    assert spec("nodeset/compute", "replicas") == "2"
    assert "MinJobAge" not in spec("controller/slurm", "extraConf")
    taken = blocks(state)
    penstock("demo", "down")
    assert left_of(state, taken) == []
