"""What a PodTemplate that a check names adds to the check's pods. S113."""

from __future__ import annotations

from copy import deepcopy

import msgspec

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.active_check import ActiveCheck
from penstock.render.nebius.check import cron_job, pod_template
from support.nebius_clusters import CURRENT, of_shape

CHECK = "gpu"


def rendered(over: Json | None = None) -> Json:
    given: Json = {
        "metadata": {"name": "checks", "namespace": "team"},
        "spec": {
            "name": CHECK,
            "slurmClusterRefName": "c",
            "checkType": "slurmJob",
            "tolerations": [{"key": "old"}],
            "slurmJobSpec": {
                "sbatchScript": "#!/bin/bash\n",
                "jobContainer": {
                    "image": "mine:1",
                    "args": ["first"],
                    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}],
                },
            },
        },
    }
    inputs = of_shape(CURRENT).inputs
    check = msgspec.convert(given, ActiveCheck)
    made = cron_job.cron_job(inputs, check, suspend=False, over=over)
    template: Json = made["spec"]["jobTemplate"]["spec"]["template"]
    return template


def of_container(**fields: object) -> Json:
    return {"spec": {"containers": [{"name": CHECK, **fields}]}}


def named(entries: list[Json]) -> dict[str, Json]:
    return {one["name"]: one for one in entries}


def test_a_container_of_the_checks_name_is_merged_and_another_one_added() -> None:
    over = of_container(
        image="mine:2",
        args=["second"],
        env=[{"name": "B", "value": "2"}, {"name": "C", "value": "2"}],
        resources={"limits": {"nvidia.com/gpu": "8"}},
    )
    over["spec"]["containers"].append({"name": "beside", "image": "b:1"})
    spec = rendered(over)["spec"]
    containers = named(spec["containers"])
    assert list(containers) == [CHECK, "beside"]
    found = containers[CHECK]
    assert (found["image"], found["args"]) == ("mine:2", ["second"])
    assert found["resources"] == {"limits": {"nvidia.com/gpu": "8"}}
    env = named(found["env"])
    assert [env[one]["value"] for one in "ABC"] == ["1", "2", "2"]
    before = named(rendered()["spec"]["containers"])[CHECK]
    assert found["volumeMounts"] == before["volumeMounts"]
    assert set(named(before["env"])) <= set(env)


def test_lists_without_a_key_are_replaced_and_volumes_of_a_name_too() -> None:
    volume = {"name": "sbatch-volume", "emptyDir": {"medium": "Memory"}}
    spec = rendered({"spec": {"tolerations": [{"key": "new"}], "volumes": [volume]}})["spec"]
    assert spec["tolerations"] == [{"key": "new"}]
    assert named(spec["volumes"])["sbatch-volume"] == volume
    assert len(spec["volumes"]) == len(rendered()["spec"]["volumes"])


def test_what_the_api_server_writes_into_each_pod_template_changes_nothing() -> None:
    """A Job whose pods restart always is invalid."""
    over = of_container(terminationMessagePolicy="File")
    over["spec"]["restartPolicy"] = "Always"
    spec = rendered(over)["spec"]
    assert spec["restartPolicy"] == "Never"
    assert spec["containers"][0]["terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert rendered({"spec": {"restartPolicy": "OnFailure"}})["spec"]["restartPolicy"] == (
        "OnFailure"
    )


def test_labels_and_annotations_by_which_pods_are_found_stay() -> None:
    base = rendered()
    ours = base["metadata"]
    mine = dict.fromkeys((*ours["labels"], "team"), "x")
    found = rendered({"metadata": {"labels": mine, "annotations": {"note": "y"}}})["metadata"]
    assert found["labels"] == {**ours["labels"], "team": "x"}
    assert found["annotations"] == {**ours["annotations"], "note": "y"}


def test_neither_template_is_changed_and_an_absent_field_is_none() -> None:
    base, over = rendered(), of_container(env=[{"name": "C", "value": "2"}], args=None)
    kept, given = deepcopy(base), deepcopy(over)
    assert pod_template.merged(base, over)["spec"]["containers"][0]["args"] == ["first"]
    assert (base, over) == (kept, given)
    assert pod_template.merged(base, {}) == base
