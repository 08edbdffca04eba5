"""`penstock plan` with files that are none, and as JSON: one line that names what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.cli.manifests import ManifestError, read
from penstock.preview.effect import Effects, How, Restart, Touched, Workers
from penstock.preview.report_json import report_object

CONTROLLER = "apiVersion: slinky.slurm.net/v1beta1\nkind: Controller\nmetadata: {name: slurm}\n"


def plan(*arguments: str, stdin: str | None = None) -> tuple[int, str]:
    """Its status and its one line of error."""
    done = CliRunner().invoke(app, ["plan", *arguments], input=stdin)
    assert "Traceback" not in done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done.exit_code, done.stderr.rstrip("\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no object in {file}: give manifests with -f"),
        ("---\n# nothing\n---\n", "no object in {file}: give manifests with -f"),
        ("a: [", "{file} is no YAML: while parsing a flow node"),
        ("- a\n", "{file}, document 1: this is a list, not an object with kind and metadata"),
        ("words", "{file}, document 1: this is a str, not an object with kind and metadata"),
        ("a: 1\n", "{file}, document 1: apiVersion is missing"),
        ("apiVersion: v1\n", "{file}, document 1: kind is missing"),
        ("apiVersion: v1\nkind: A\n", "{file}, document 1: metadata.name of this A is missing"),
        (
            f"{CONTROLLER}---\napiVersion: v1\nkind: A\nmetadata: {{name: 1}}\n",
            "{file}, document 2: metadata.name of this A is missing",
        ),
        (
            "apiVersion: v1\nkind: List\nitems: [7]\n",
            "{file}, document 1, item 1: apiVersion is missing",
        ),
        ("a: !!python/object:os.system x\n", "{file} is no YAML: could not determine"),
        (f"{'[' * 4000}\n", "{file} is no YAML"),
    ],
)
def test_a_file_without_manifests_is_one_line_that_names_what_to_do(
    text: str, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "given.yaml"
    file.write_text(text)
    status, message = plan("-f", str(file))
    assert status == 1
    assert message.startswith(f"penstock plan: {words.format(file=file)}")
    assert "\n" not in message


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    absent = tmp_path / "absent.yaml"
    assert plan("-f", str(absent)) == (
        1,
        f"penstock plan: cannot read {absent}: No such file or directory",
    )


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "binary.yaml"
    file.write_bytes(b"\xff\xfe\x00")
    assert plan("-f", str(file)) == (1, f"penstock plan: {file} is no text in UTF-8")


def test_a_folder_without_manifests_is_named(tmp_path: Path) -> None:
    assert plan("-f", str(tmp_path)) == (
        1,
        f"penstock plan: no YAML or JSON file in folder {tmp_path}",
    )


def test_a_cluster_that_does_not_answer_is_one_line(tmp_path: Path, unused_tcp_port: int) -> None:
    config = tmp_path / "kubeconfig"
    server = f"http://127.0.0.1:{unused_tcp_port}"
    config.write_text(
        json.dumps(
            {
                "current-context": "a",
                "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                "clusters": [{"name": "a", "cluster": {"server": server}}],
                "users": [{"name": "a", "user": {}}],
            }
        )
    )
    status, message = plan("-f", "-", "--kubeconfig", str(config), stdin=CONTROLLER)
    assert status == 1
    assert message.startswith("penstock plan: ")
    assert str(unused_tcp_port) in message
    assert "\n" not in message


def test_no_kubeconfig_is_one_line(tmp_path: Path) -> None:
    absent = tmp_path / "kubeconfig"
    assert plan("-f", "-", "--kubeconfig", str(absent), stdin=CONTROLLER) == (
        1,
        f"penstock plan: no kubeconfig at {absent}",
    )


def test_neither_or_both_of_file_and_live_is_a_usage_error() -> None:
    for arguments in ((), ("--live", "-f", "-")):
        status, message = plan(*arguments)
        assert status == 2
        assert "give either files with -f, or --live" in message


def test_several_files_and_folders_are_one_change_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/b.yaml").write_text(CONTROLLER.replace("slurm}", "b}"))
    (tmp_path / "folder/a.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    )
    (tmp_path / "folder/notes.txt").write_text("a: [")
    (tmp_path / "one.yaml").write_text(CONTROLLER)
    found = read([str(tmp_path / "one.yaml"), str(tmp_path / "folder")])
    assert [one["metadata"]["name"] for one in found] == ["slurm", "a", "b"]


def test_lists_of_kubectl_are_their_items(tmp_path: Path) -> None:
    file = tmp_path / "list.yaml"
    items = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": n}} for n in "ab"]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "ConfigMapList", "items": items}))
    assert read([str(file)]) == items


def test_standard_input_is_read_once() -> None:
    with pytest.raises(ManifestError, match="standard input can be read once"):
        read(["-", "-"])


def test_the_help_has_examples() -> None:
    done = CliRunner().invoke(app, ["plan", "--help"])
    assert "penstock plan -f cluster.yaml" in done.output


def test_the_json_has_all_parts_of_the_report() -> None:
    found = Effects(
        (Touched("update", "ConfigMap", ("slurm", "slurm-config"), ("data.slurm.conf",)),),
        (),
        (),
        (Workers(("slurm", "a"), (), (), ("a-1",), (), "RollingUpdate", (), {"a-1": (7,)}),),
        (Restart(How.YOURS, "slurm", ("b-0",), "slurmrestd", "Deployment slurm/b", ("A",), "c"),),
        ("slurm/slurm: refused",),
    )
    told = report_object(found, ["Job"])
    assert json.loads(json.dumps(told)) == {
        "nothing": False,
        "objects": [
            {
                "action": "update",
                "kind": "ConfigMap",
                "namespace": "slurm",
                "name": "slurm-config",
                "paths": ["data.slurm.conf"],
            }
        ],
        "configuration": [],
        "restarts": [
            {
                "how": "yours",
                "namespace": "slurm",
                "pods": ["b-0"],
                "daemon": "slurmrestd",
                "of": "Deployment slurm/b",
                "why": ["A"],
                "command": "c",
                "losesState": False,
            }
        ],
        "workers": [
            {
                "namespace": "slurm",
                "name": "a",
                "created": [],
                "deleted": [],
                "drained": ["a-1"],
                "outdated": [],
                "changedInSlurm": [],
                "updateStrategy": "RollingUpdate",
                "jobs": {"a-1": [7]},
            }
        ],
        "slurmUnknown": ["slurm/slurm: refused"],
        "failed": [],
        "notCompared": ["Job"],
    }
