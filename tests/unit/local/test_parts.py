import threading

import pytest

from penstock.local import parts, programs
from penstock.local.components import Size, programs_of
from penstock.local.errors import LocalError
from penstock.local.golang import Program
from penstock.local.recipes import Release
from penstock.local.versions import CHOICE, RELEASES


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is made, in its order, without making anything."""
    # The default, whatever the environment of the run has chosen.
    monkeypatch.delenv(CHOICE, raising=False)
    done: list[str] = []

    def compiled(program: Program) -> None:
        done.append(program.name)

    def root() -> None:
        done.append("root")

    def images() -> None:
        done.append("images")

    def older(release: Release) -> None:
        done.append(f"images of {release.tag}")

    def jail() -> None:
        done.append("images of the jail")

    def anybody() -> None: ...

    monkeypatch.setattr(parts, "require_root_linux", anybody)
    monkeypatch.setattr(parts, "compiled", compiled)
    monkeypatch.setattr(parts, "node_root", root)
    monkeypatch.setattr(parts, "build_all", images)
    monkeypatch.setattr(parts, "build_slurm", older)
    monkeypatch.setattr(parts, "build_jail", jail)
    return done


def test_all_that_nodes_of_any_size_are_made_of_is_prepared_once(made: list[str]) -> None:
    parts.everything()
    names = {program.name for size in Size for program in programs_of(size)}
    images = {"images", "images of 24.11", "images of the jail"}
    tools = {"helm", "metrics-server", "prometheus", "promtool"}
    assert sorted(made) == sorted({*names, *images, *tools, "root"})


def test_a_node_of_one_size_waits_for_no_program_of_another_one(made: list[str]) -> None:
    parts.prepare((Size.NODE,))
    assert "kwok" not in made
    assert "kubelet" in made
    assert not {"images of 24.11", "images of the jail"} & set(made)


def test_the_root_and_the_images_are_made_beside_the_compiler(
    made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(2, timeout=10)

    def compiled(program: Program) -> None:
        if program.name == "kube-apiserver":
            together.wait()

    def root() -> None:
        together.wait()

    monkeypatch.setattr(parts, "compiled", compiled)
    monkeypatch.setattr(parts, "node_root", root)
    parts.everything()
    assert "images" in made


@pytest.mark.parametrize("broken", [programs.kubernetes("kube-apiserver"), programs.HELM_PROGRAM])
def test_what_cannot_be_compiled_is_reported_whichever_row_it_stands_in(
    broken: Program, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiled(program: Program) -> None:
        if program == broken:
            raise LocalError(f"{program.name}: no compiler")

    monkeypatch.setattr(parts, "compiled", compiled)
    with pytest.raises(LocalError, match=broken.name):
        parts.everything()
    assert "images" in made


def test_one_version_of_kubernetes_compiles_nothing_of_another(made: list[str]) -> None:
    chosen = {
        one.requires["k8s.io/kubernetes"]
        for size in Size
        for one in programs_of(size, RELEASES["1.36"])
        if one.name.startswith("kube")
    }
    assert chosen == {f"v{RELEASES['1.36']}"}
    parts.everything("1.36")
    assert made.count("kube-apiserver") == 1


@pytest.mark.parametrize("minor", ["1.29", "1.37", "2", "latest"])
def test_a_version_of_kubernetes_that_is_not_available_is_rejected_with_those_that_are(
    minor: str, made: list[str]
) -> None:
    with pytest.raises(LocalError, match=rf"{minor} is not available; use one of 1.33, .*1.36"):
        parts.everything(minor)
    assert not made
