import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.local import golang, programs
from penstock.local.components import Size, programs_of
from penstock.local.errors import LocalError

KUBERNETES_GO_MOD = """\
module k8s.io/kubernetes

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/kube-openapi => k8s.io/kube-openapi v0.0.1
	k8s.io/apimachinery => ./staging/src/k8s.io/apimachinery
)
"""


def test_staging_modules_are_those_replaced_by_folders() -> None:
    assert golang.staging_modules(KUBERNETES_GO_MOD) == ["k8s.io/api", "k8s.io/apimachinery"]


def test_go_mod_replaces_staging_modules_by_their_releases() -> None:
    text = golang.go_mod(programs.kubernetes("kubelet"), ["k8s.io/api"])
    assert text.splitlines() == [
        "module penstock.local/kubelet",
        "",
        "go 1.25.0",
        "",
        "require k8s.io/kubernetes v1.34.4",
        "replace k8s.io/api => k8s.io/api v0.34.4",
    ]


def test_modules_whose_requirements_do_not_count_are_copies() -> None:
    text = golang.go_mod(programs.METRICS_SERVER_PROGRAM, ["k8s.io/api"]).splitlines()
    assert "require sigs.k8s.io/metrics-server v0.8.0" in text
    assert text[-2:] == [
        "replace sigs.k8s.io/metrics-server => ./bare-0",
        "replace github.com/prometheus/prometheus => ./bare-1",
    ]
    assert golang.without_requirements(
        "module a.b/c\n\ngo 1.24.4\n\nrequire (\n\tgo.d/e v1.0.0\n)\n"
    ) == ("module a.b/c\ngo 1.24.4\n")


def test_programs_report_their_version() -> None:
    assert ("k8s.io/component-base/version.gitVersion", "v1.34.4") in (
        programs.kubernetes("kube-apiserver").variables.items()
    )


def test_every_change_of_what_a_program_is_made_from_changes_its_key() -> None:
    program = programs.COREDNS_PROGRAM
    others = [
        replace(program, package="./other"),
        replace(program, requires={**program.requires, "k8s.io/api": "v0"}),
        replace(program, staging="v0"),
        replace(program, variables={"a": "b"}),
        replace(program, source=programs.PAUSE.source),
        replace(program, bare=("k8s.io/api",)),
        replace(program, tags=("k8s.io/api",)),
    ]
    assert len({program.key, *(other.key for other in others)}) == len(others) + 1
    assert replace(program).key == program.key


def test_another_flag_of_the_compiler_makes_another_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = programs.kubernetes("kubectl").key
    monkeypatch.setattr(golang, "FLAGS", (*golang.FLAGS, "-race"))
    assert programs.kubernetes("kubectl").key != before


def test_a_small_node_compiles_no_kubelet_and_only_a_fleet_compiles_kwok() -> None:
    names = {size: {program.name for program in programs_of(size)} for size in Size}
    assert names[Size.API] == {"kube-apiserver", "kubectl"}
    assert "kubelet" in names[Size.NODE] - names[Size.FLEET]
    assert "kwok" in names[Size.FLEET] - names[Size.NODE]


def test_a_module_that_a_mirror_lacks_and_nothing_is_compiled_of_stops_no_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of Kubernetes 1.33.13 the example of an API server was not to be had."""
    ran: list[list[str]] = []

    def run(command: Sequence[str], folder: Path) -> str:
        ran.append(list(command))
        if command[1:] == ["mod", "download", "all"]:
            raise LocalError("403 Forbidden")
        if command[1:4] == ["mod", "download", "-json"]:
            (folder / "k8s.mod").write_text(KUBERNETES_GO_MOD)
            return json.dumps({"GoMod": str(folder / "k8s.mod")})
        return ""

    monkeypatch.setattr(golang, "_run", run)
    program = programs.kubernetes("kubelet", "1.33.13")
    golang._build("go", program, tmp_path)  # pyright: ignore[reportPrivateUsage]
    assert ["go", "list", "-deps", program.package] in ran
    assert ran[-1][1] == "build"
