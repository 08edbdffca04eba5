"""The demo's dealings with a cluster, against a kubectl that only remembers."""

import json
from typing import Any

import pytest

from penstock.local import demo, install
from penstock.local.errors import LocalError
from penstock.local.target import Context
from unit.local.remembering import IMAGES, Remembering, marked


def test_the_operator_runs_from_the_image_that_was_loaded_and_hands_on_slurms() -> None:
    deployment = next(one for one in install.operator(IMAGES) if one["kind"] == "Deployment")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "registry.example/operator:abc"
    assert "--slurm-image=registry.example/{role}:1" in container["args"]


def test_only_what_was_not_there_before_is_marked_for_removal() -> None:
    target = Remembering("namespace/penstock-system")
    install.install(target, IMAGES)
    names = marked(target.applied)
    assert "penstock-system" not in names
    assert "nodesets.slinky.slurm.net" in names
    assert "penstock-operator" in names


def test_a_second_install_keeps_the_marks_of_the_first() -> None:
    target = Remembering(marked=("customresourcedefinition/nodesets.slinky.slurm.net",))
    install.install(target, IMAGES)
    assert "nodesets.slinky.slurm.net" in marked(target.applied)


def test_removal_touches_marked_objects_only() -> None:
    target = Remembering()
    install.remove(target)
    assert target.deleted()
    assert all(f"-l {install.MARK}=true" in call for call in target.deleted())


def test_kinds_that_somebody_uses_are_left_and_named() -> None:
    target = Remembering("crd/nodesets.slinky.slurm.net", "nodesets.slinky.slurm.net")
    with pytest.raises(LocalError, match="in use and were left: nodesets"):
        install.remove(target)
    assert not any("crd" in call.split()[0].split(",") for call in target.deleted())


def test_the_cluster_goes_before_the_operator_that_drains_it_and_nodesets_go_first() -> None:
    target = Remembering("crd/nodesets.slinky.slurm.net")
    demo.down(target)
    deleted = target.deleted()
    assert deleted[0].startswith("NodeSet/compute")
    assert "clusterrole" in deleted[-2]


def test_the_quickstart_gets_the_key_of_whoever_runs_it() -> None:
    target = Remembering()
    demo.quickstart(target, "ssh-ed25519 AAAA me")
    login = next(one for one in target.applied if one["kind"] == "LoginSet")
    assert login["spec"]["rootSshAuthorizedKeys"] == "ssh-ed25519 AAAA me"


def made(target: Remembering) -> Remembering:
    """The same cluster, with what was applied to it in it."""
    later = Remembering()
    later.live = {
        f"{one['kind'].lower()}/{one['metadata']['name']}": json.loads(json.dumps(one))
        for one in target.applied
    }
    return later


def one_of(target: Remembering, kind: str) -> Any:
    return next(one for one in target.applied if one["kind"] == kind)


def forced(target: Remembering) -> bool:
    return all("--force-conflicts" in call for call in target.calls if call[0] == "apply")


@pytest.fixture
def demonstrated() -> Remembering:
    target = Remembering()
    demo.quickstart(target, "key")
    return made(target)


def test_a_second_demo_of_what_nobody_changed_applies_the_same(demonstrated: Remembering) -> None:
    first = {name: one.get("spec") for name, one in demonstrated.live.items()}
    assert demo.quickstart(demonstrated, "key") == []
    assert all(
        first[f"{one['kind'].lower()}/{one['metadata']['name']}"] == one.get("spec")
        for one in demonstrated.applied
    )


def test_a_second_demo_keeps_what_a_user_changed_and_reports_it(demonstrated: Remembering) -> None:
    demonstrated.live["nodeset/compute"]["spec"]["replicas"] = 4
    demonstrated.live["controller/slurm"]["spec"]["extraConf"] = "MinJobAge=3"
    demonstrated.live["controller/slurm"]["spec"]["drift"] = "theirs"
    del demonstrated.live["nodeset/compute"]["spec"]["partition"]["config"]
    kept = demo.quickstart(demonstrated, "key")
    assert set(kept) == {
        "controller/slurm spec.extraConf",
        "nodeset/compute spec.replicas",
        "nodeset/compute spec.partition.config",
    }
    assert one_of(demonstrated, "NodeSet")["spec"]["replicas"] == 4
    assert "config" not in one_of(demonstrated, "NodeSet")["spec"]["partition"]
    assert one_of(demonstrated, "Controller")["spec"]["extraConf"] == "MinJobAge=3"
    assert "drift" not in one_of(demonstrated, "Controller")["spec"]
    again = made(demonstrated)
    assert set(demo.quickstart(again, "key")) == set(kept), "a third one forgot"


def test_a_reset_declares_everything_and_wins(demonstrated: Remembering) -> None:
    demonstrated.live["nodeset/compute"]["spec"]["replicas"] = 4
    assert demo.quickstart(demonstrated, "key", reset=True) == []
    assert one_of(demonstrated, "NodeSet")["spec"]["replicas"] == 2
    assert forced(demonstrated)


def test_a_new_version_changes_and_adds_what_nobody_changed(
    demonstrated: Remembering, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = demo._cluster()
    for one in newer:
        if one["kind"] == "NodeSet":
            one["spec"] |= {"replicas": 3, "minReadySeconds": 5}
        if one["kind"] == "Controller":
            one["spec"]["extraConf"] = "MinJobAge=9"
    demonstrated.live["controller/slurm"]["spec"]["extraConf"] = "MinJobAge=3"
    monkeypatch.setattr(demo, "_cluster", lambda: newer)
    assert demo.quickstart(demonstrated, "key") == ["controller/slurm spec.extraConf"]
    found = one_of(demonstrated, "NodeSet")["spec"]
    assert (found["replicas"], found["minReadySeconds"]) == (3, 5)


def test_what_a_user_deleted_of_the_demo_is_made_again(demonstrated: Remembering) -> None:
    del demonstrated.live["loginset/login"]
    assert demo.quickstart(demonstrated, "key") == []
    assert one_of(demonstrated, "LoginSet")["spec"]["rootSshAuthorizedKeys"] == "key"


def test_a_change_in_an_object_of_a_version_that_noted_nothing_is_kept(
    demonstrated: Remembering,
) -> None:
    for one in demonstrated.live.values():
        one["metadata"].pop("annotations", None)
    demonstrated.live["nodeset/compute"]["spec"]["replicas"] = 4
    assert demo.quickstart(demonstrated, "key") == ["nodeset/compute spec.replicas"]


def test_kinds_and_operator_win_over_fields_that_somebody_set() -> None:
    target = Remembering()
    install.install(target, IMAGES)
    assert all("--force-conflicts" in call for call in target.calls if call[0] == "apply")


def test_the_quickstart_is_short_enough_to_read() -> None:
    text = (install.ROOT / demo.QUICKSTART).read_text()
    assert len(text.splitlines()) <= 40


def test_a_cluster_of_the_users_is_not_taken_down() -> None:
    assert Context("mine").down() is False
