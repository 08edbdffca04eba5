"""Partitions: what the API server takes, how they reach slurmctld, what is told of them."""

from __future__ import annotations

import asyncio

import pytest

from penstock.api.kubernetes.meta import Json
from penstock.kube import InvalidError
from support.operator_kit import Node, lab
from support.partitions import (
    CONTROLLER,
    NODESET,
    RESTAPI,
    conf,
    events,
    events_of,
    live,
    partition,
    posts,
    reads,
    start,
)

pytestmark = pytest.mark.api


async def test_the_api_server_rejects_what_slurm_could_not_read(api_node: Node) -> None:
    async with lab(api_node) as lab_:
        for spec, words in (
            ({"extra": {"MAXTIME": "1"}}, "use the field"),
            ({"extra": {"Bad Key": "1"}}, "keys of slurm.conf"),
            ({"extra": {"Key": "a\nb"}}, "spec.extra.Key"),
            ({"name": "default"}, "DEFAULT is no partition"),
            ({"name": "two words"}, "spec.name"),
            ({"nodes": ["a b"]}, "spec.nodes[0]"),
            ({"nodes": ["a", "a"]}, "duplicate entries"),
            ({"maxTime": "banana"}, "days-hours"),
            ({"maxTime": -1}, "days-hours"),
            ({"maxNodes": "many"}, "UNLIMITED"),
            ({"overSubscribe": "SOME"}, "spec.overSubscribe"),
            ({"state": "up"}, "spec.state"),
            ({"allowQos": ["a"], "denyQos": ["b"]}, "exclude each other"),
            ({"defMemPerCpu": 1, "defMemPerNode": 1}, "exclude each other"),
            ({"controllerRef": {"name": ""}}, "must not be empty"),
        ):
            with pytest.raises(InvalidError, match="(?s)" + words.replace("[", r"\[")):
                await lab_.apply(partition(**spec))
        taken = {
            "maxTime": "7-00:00:00",
            "maxNodes": 4,
            "defaultTime": 30,
            "overSubscribe": "FORCE:4",
            "preemptMode": "SUSPEND,GANG",
            "nodes": ["compute-[0-3]", "-compute-1"],
            "extra": {"NewKey": "x y"},
        }
        await lab_.apply(partition(**taken))
        with pytest.raises(InvalidError, match="controllerRef is immutable"):
            await lab_.apply(partition(controllerRef={"name": "other"}))


async def test_a_change_reaches_slurmctld_in_one_call_and_then_the_file(api_node: Node) -> None:
    async with lab(api_node) as lab_, lab_.operator():
        await start(lab_)
        await lab_.apply(partition(nodeSets=["compute"], maxTime=60))
        await lab_.until(lambda: lab_.ready("Partition", "part"))
        assert live(lab_)["maximums"]["time"]["number"] == 60
        assert live(lab_)["nodes"]["configured"] == "compute-[0-1]"
        await lab_.until(lambda: "PartitionName=part Nodes=compute MaxTime=60\n" in conf(lab_))
        before = posts(lab_)
        await lab_.apply(partition(nodeSets=["compute"], maxTime=30, state="DOWN"))
        await lab_.until(lambda: "MaxTime=30 State=DOWN\n" in conf(lab_))
        await lab_.until(lambda: lab_.ready("Partition", "part"))
        assert posts(lab_) == before + 1
        assert live(lab_)["partition"]["state"] == ["DOWN"]
        found = lab_.get("Partition", "part")
        assert found is not None
        assert found["status"]["state"] == "DOWN"
        assert found["status"]["nodes"] == "compute-[0-1]"
        await lab_.delete("Partition", "part")
        await lab_.until(lambda: "PartitionName=part" not in conf(lab_))
        assert "part" not in lab_.slurm.partitions
        assert "compute" in lab_.slurm.partitions
        assert lab_.slurm.reconfigured == 0


async def test_partitions_of_nodesets_and_of_extra_conf_are_changed_the_same_way(
    api_node: Node,
) -> None:
    """S019: the keys that a patch of the whole text takes away are told."""
    async with lab(api_node) as lab_, lab_.operator() as running:
        await start(lab_)
        spec = {**NODESET["spec"], "partition": {"enabled": True, "config": "MaxTime=5 State=UP"}}
        await lab_.apply({**NODESET, "spec": spec})
        await lab_.until(lambda: live(lab_, "compute")["maximums"]["time"]["number"] == 5)
        assert events(running, "PartitionKeysGone") == []
        await lab_.patch("NodeSet", "compute", {"spec": {"partition": {"config": "State=DRAIN"}}})
        await lab_.until(lambda: live(lab_, "compute")["partition"]["state"] == ["DRAIN"])
        (said,) = await events_of(lab_, running, "PartitionKeysGone")
        assert "MaxTime=5 (now UNLIMITED)" in said
        assert not live(lab_, "compute")["maximums"]["time"]["set"]
        line = "MinJobAge=2\nPartitionName=raw Nodes=ALL Hidden=YES\n"
        await lab_.apply({**CONTROLLER, "spec": {"extraConf": line}})
        await lab_.until(lambda: "HIDDEN" in live(lab_, "raw").get("flags", []))
        await lab_.until(lambda: "Hidden=YES" in conf(lab_) and "State=DRAIN" in conf(lab_))


async def test_named_and_selected_nodes_belong_by_a_feature(api_node: Node) -> None:
    """S146, S149."""
    async with lab(api_node) as lab_, lab_.operator():
        await start(lab_)
        await lab_.apply(partition(nodes=["compute-1", "compute-7"]))
        await lab_.until(lambda: lab_.ready("Partition", "part"))
        assert live(lab_)["nodes"]["configured"] == "compute-1"
        found = lab_.condition("Partition", "part")
        assert found is not None
        assert "compute-7" in found.message
        assert lab_.slurm.nodes["compute-1"].features == ["compute", "penstock/part"]
        await lab_.until(lambda: "PartitionName=part Nodes=penstock-part\n" in conf(lab_))
        text = conf(lab_)
        await lab_.patch("Partition", "part", {"spec": {"nodes": ["compute-0", "compute-7"]}})
        await lab_.until(lambda: live(lab_)["nodes"]["configured"] == "compute-0")
        lab_.slurm.register("compute-7", features=["compute"], active_features=["compute"])
        await lab_.until(lambda: live(lab_)["nodes"]["configured"] == "compute-[0,7]")
        assert lab_.slurm.nodes["compute-1"].features == ["compute"]
        assert conf(lab_) == text
        labels = {"metadata": {"labels": {"team": "a"}}}
        chosen = {"podLabels": {"matchLabels": {"team": "a"}}}
        await lab_.patch("Partition", "part", {"spec": {"nodes": [], "selector": chosen}})
        await lab_.until(lambda: live(lab_)["nodes"]["configured"] == "")
        await lab_.patch("Pod", "compute-1", labels)
        await lab_.until(lambda: live(lab_)["nodes"]["configured"] == "compute-1")
        await lab_.delete("Partition", "part")
        await lab_.until(
            lambda: all("penstock/part" not in n.features for n in lab_.slurm.nodes.values())
        )


async def test_edits_of_the_list_by_two_users_are_both_kept(api_node: Node) -> None:
    """S146."""
    async with lab(api_node) as lab_:
        await lab_.apply(partition(nodes=["compute-0"]))
        one, other = (type(lab_.user)(lab_.client.transport, field_manager=f) for f in "ab")
        resource = lab_.seen["Partition"].resource
        for user, entry in ((one, "+compute-1"), (other, "-compute-2")):
            whole = partition(nodes=[entry])
            meta = {**whole["metadata"], "namespace": lab_.namespace}
            await user.apply(resource, {**whole, "metadata": meta})
        await lab_.until(lambda: lab_.get("Partition", "part") is not None)
        found = await lab_.client.get(resource, lab_.namespace, "part")
        assert set(found.spec.nodes) == {"compute-0", "+compute-1", "-compute-2"}


async def test_what_slurmctld_rejects_is_reported_and_touches_nothing_else(api_node: Node) -> None:
    async with lab(api_node) as lab_, lab_.operator():
        await start(lab_)
        await lab_.apply(partition(nodeSets=["compute"], maxTime=5))
        await lab_.until(lambda: "MaxTime=5" in conf(lab_))
        await lab_.apply(partition(nodeSets=["compute"], maxTime=6, allowQos=["nosuch"]))
        await lab_.apply(partition("other", nodeSets=["compute"]))
        await lab_.until(lambda: lab_.has_reason("Partition", "part", "PartitionRefused"))
        await lab_.until(lambda: lab_.ready("Partition", "other"))
        told = lab_.condition("Partition", "part")
        assert told is not None
        assert "Invalid qos specification" in told.message
        await lab_.until(lambda: "PartitionName=other" in conf(lab_))
        assert "PartitionName=part Nodes=compute MaxTime=5\n" in conf(lab_)
        assert live(lab_)["maximums"]["time"]["number"] == 5
        await lab_.apply(partition(nodeSets=["compute"], maxTime=7))
        await lab_.until(lambda: lab_.ready("Partition", "part"))
        await lab_.until(lambda: "PartitionName=part Nodes=compute MaxTime=7\n" in conf(lab_))


async def test_a_partition_with_jobs_stays_until_they_have_ended(api_node: Node) -> None:
    async with lab(api_node) as lab_, lab_.operator():
        await start(lab_)
        await lab_.apply(partition(nodeSets=["compute"]))
        await lab_.until(lambda: "PartitionName=part" in conf(lab_))
        await lab_.until(lambda: lab_.ready("Controller", "slurm"))
        job = lab_.slurm.run("compute-0", partition="part")
        await lab_.delete("Partition", "part")
        await lab_.until(
            lambda: (
                (told := lab_.condition("Controller", "slurm", "PartitionsDraining")) is not None
                and told.reason == "JobsInPartition"
            )
        )
        # The file that drains it has its trial start first.
        await lab_.until(lambda: lab_.ready("Controller", "slurm"))
        assert "PartitionName=part" in conf(lab_)
        lab_.slurm.finish(job)
        await lab_.until(lambda: "PartitionName=part" not in conf(lab_))
        await lab_.until(lambda: lab_.ready("Controller", "slurm"))


async def test_without_slurmrestd_the_file_goes_alone_and_a_condition_reports_it(
    api_node: Node,
) -> None:
    async with lab(api_node) as lab_, lab_.operator():
        await start(lab_)
        await lab_.delete("RestApi", "slurm")
        await lab_.until(lambda: lab_.has_reason("NodeSet", "compute", "SlurmUnknown"))
        await lab_.apply(partition(nodeSets=["compute"], maxTime=9))
        await lab_.until(lambda: "PartitionName=part Nodes=compute MaxTime=9\n" in conf(lab_))
        await lab_.until(
            lambda: (
                (told := lab_.condition("Partition", "part")) is not None
                and told.reason == "SlurmUnknown"
                and "no RestApi refers to Controller slurm" in told.message
                and "so slurm.conf does" in told.message
            )
        )
        reads(lab_)
        await lab_.apply(RESTAPI)
        await lab_.until(lambda: lab_.ready("Partition", "part"))


async def test_objects_may_come_in_any_order_and_names_stay_with_who_had_them(
    api_node: Node,
) -> None:
    """S149."""
    async with lab(api_node) as lab_, lab_.operator():
        await lab_.apply(partition(nodeSets=["compute", "late"]))
        await lab_.until(lambda: lab_.has_reason("Partition", "part", "ControllerNotFound"))
        await start(lab_)
        await lab_.until(lambda: lab_.has_reason("Partition", "part", "NodeSetNotFound"))
        assert "PartitionName=part Nodes=compute\n" in conf(lab_)
        late = {**NODESET, "metadata": {"name": "late"}}
        late["spec"] = {**NODESET["spec"], "partition": {"enabled": False}}
        await lab_.apply(late)
        await lab_.until(lambda: "PartitionName=part Nodes=compute,late\n" in conf(lab_))
        await lab_.until(lambda: not lab_.has_reason("Partition", "part", "NodeSetNotFound"))
        await asyncio.sleep(1.1)  # An object's age is known to the second.
        await lab_.apply(partition("again", name="part"), partition("compute"))
        await lab_.until(lambda: lab_.has_reason("Partition", "again", "NameTaken"))
        await lab_.until(lambda: lab_.has_reason("Partition", "compute", "NameTaken"))
        assert conf(lab_).count("PartitionName=part ") == 1
        await lab_.delete("Partition", "part")
        await lab_.until(lambda: "PartitionName=part\n" in conf(lab_))
        await lab_.until(lambda: lab_.ready("Partition", "again"))


async def test_a_restarted_operator_changes_nothing(api_node: Node) -> None:
    async with lab(api_node) as lab_:
        async with lab_.operator():
            await start(lab_)
            await lab_.apply(partition(nodes=["compute-1"], maxTime=60))
            await lab_.apply(partition("bad", allowQos=["nosuch"]))
            await lab_.until(lambda: lab_.ready("Partition", "part"))
            await lab_.until(lambda: lab_.has_reason("Partition", "bad", "PartitionRefused"))
            await lab_.until(lambda: "MaxTime=60" in conf(lab_))
            await lab_.calm()
        text = conf(lab_)
        async with lab_.operator() as running:
            await lab_.until(lambda: lab_.has_reason("Partition", "bad", "PartitionRefused"))
            await lab_.calm()
            assert conf(lab_) == text
            assert [one for one in running.writes if "partitions" in one] == []
            assert [one for one in running.writes if "configmaps" in one] == []


async def test_a_rejection_leaves_what_slurmctld_got_before_the_file_followed(
    api_node: Node,
) -> None:
    async with lab(api_node) as lab_, lab_.operator():
        await start(lab_)
        await lab_.apply(partition(nodeSets=["compute"], maxTime=5))
        await lab_.until(lambda: live(lab_)["maximums"].get("time", {}).get("number") == 5)
        await lab_.apply(partition(nodeSets=["compute"], maxTime=6))
        await lab_.until(lambda: live(lab_)["maximums"]["time"]["number"] == 6)
        await lab_.apply(partition(nodeSets=["compute"], allowQos=["nosuch"]))
        await lab_.until(lambda: lab_.has_reason("Partition", "part", "PartitionRefused"))
        await lab_.until(lambda: "PartitionName=part Nodes=compute MaxTime=6\n" in conf(lab_))
        await lab_.calm()
        assert "PartitionName=part Nodes=compute MaxTime=6\n" in conf(lab_)


async def test_a_rejected_line_of_the_controller_delays_nobody_else(api_node: Node) -> None:
    async with lab(api_node) as lab_, lab_.operator():
        await start(lab_)
        await lab_.apply(partition(nodeSets=["compute"], maxTime=5))
        await lab_.until(lambda: "PartitionName=part Nodes=compute MaxTime=5\n" in conf(lab_))
        bad: Json = {"spec": {"extraConf": "BogusKey=1\n"}}
        await lab_.patch("Controller", "slurm", bad)

        def refused() -> bool:
            found = lab_.condition("Controller", "slurm", "ConfigValid")
            return found is not None and found.status == "False" and "BogusKey" in found.message

        await lab_.until(refused)
        await lab_.apply(partition(nodeSets=["compute"], maxTime=6))
        await lab_.until(lambda: live(lab_)["maximums"]["time"]["number"] == 6)
        await lab_.until(lambda: "PartitionName=part Nodes=compute MaxTime=6\n" in conf(lab_))
        assert "Bogus" not in conf(lab_)
        # What is refused is still looked at: it may fit one day.
        candidate = "slurm-config-candidate"
        await lab_.until(lambda: "BogusKey" in conf(lab_, candidate))
        assert "MaxTime=6" in conf(lab_, candidate)
        await lab_.until(refused)
        await lab_.calm()
        status = (lab_.get("Controller", "slurm") or {})["status"]
        assert "BogusKey" in status["lastError"]
        await lab_.patch("Controller", "slurm", {"spec": {"extraConf": "SchedulerTimeSlice=9\n"}})
        await lab_.until(lambda: "SchedulerTimeSlice=9" in conf(lab_))
        assert "PartitionName=part Nodes=compute MaxTime=6\n" in conf(lab_)
