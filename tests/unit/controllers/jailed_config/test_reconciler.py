"""JailedConfigs and the configuration of a cluster, in a real folder, with simulated servers."""

from __future__ import annotations

import asyncio
import base64
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.api.kubernetes.kinds import CONFIG_MAPS, SECRETS
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.jailed_config import JAILED_CONFIGS
from penstock.api.nebius.names import JAIL_MARKER
from penstock.catalog.runbook import without_address
from penstock.controllers.jailed_config import jail_files
from penstock.controllers.jailed_config.arguments import parse
from penstock.controllers.jailed_config.jail_worker import JailWorker
from penstock.controllers.jailed_config.process import ConfigController
from penstock.controllers.jailed_config.status_writer import StatusWriter
from penstock.decide.jail.jailed_config import Member, findings, refreshing
from penstock.kube import Client, NotLeaderError, Recorder, SystemClock
from penstock.model.jail_file import JailFile
from penstock.simulation.apiserver import ApiServer, Connection
from penstock.simulation.event_loop import EPOCH, LoopClock, simulate
from penstock.simulation.faults import Fault
from penstock.simulation.slurm.slurmctld import SimulatedSlurmctld
from penstock.simulation.slurm.slurmrestd import InMemorySlurmrestd

SPACE, CLUSTER = "soperator", "soperator"
KEY = b"k" * 32
WRITTEN, COMPLETED = "FilesWritten", "UpdateActionsCompleted"


class Site:
    """The process before a simulated API server and slurmrestd, and a user."""

    def __init__(self, root: Path) -> None:
        loop = asyncio.get_running_loop()
        self.root = root
        self.server = ApiServer(lambda: EPOCH + loop.time())
        self.user = Client(Connection(self.server, "user"), clock=LoopClock())
        self.slurm = SimulatedSlurmctld(lambda: EPOCH + loop.time())
        self.rest = InMemorySlurmrestd(self.slurm, key=KEY)
        self.slurm.rereads = lambda: loop.call_later(2.0, self.restart) and None
        self.restarts = True
        self.writes: list[str] = []
        self.controller = self.process()

    def process(self, *more: str, name: str = "one") -> ConfigController:
        """Another process of the same name."""
        arguments = [f"--cluster-namespace={SPACE}", f"--cluster-name={CLUSTER}"]
        arguments += [f"--jail-path={self.root}", "--reconfigure-poll-interval=20s"]
        arguments += ["--reconfigure-wait-timeout=5m", "--slurmapiserver=http://rest:6820", *more]
        connection = self.connection = Connection(
            self.server,
            "sconfigcontroller",
            wrote=lambda request, _: self.writes.append(f"{request.method} {request.path}"),
        )
        return ConfigController(
            connection,
            parse(arguments, {"POD_NAME": name}),
            clock=LoopClock(),
            exchange=self.rest.exchange,
        )

    def restart(self) -> None:
        """All slurmds restart, as they do when slurmctld reconfigures."""
        for node in self.slurm.nodes.values():
            if self.restarts:
                node.started = int(self.slurm.clock())
        self.slurm.touch()

    def fill(self) -> None:
        """The Job that fills the jail completes."""
        marker = self.root / JAIL_MARKER[1:]
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()

    async def config_map(self, name: str, **data: str) -> None:
        meta = {"name": name, "namespace": SPACE}
        texts = {key.replace("__", "."): text for key, text in data.items()}
        if self.server.find("/configmaps", SPACE, name) is None:
            await self.user.create(CONFIG_MAPS, {"metadata": meta, "data": texts})
        else:
            await self.user.patch(CONFIG_MAPS, SPACE, name, {"data": texts})

    async def jailed(
        self,
        name: str = "topology",
        *,
        items: list[Json] | None = None,
        group: str | None = None,
        actions: tuple[str, ...] = ("Reconfigure",),
        instance: str = CLUSTER,
        **spec: Any,
    ) -> None:
        labels = {"app.kubernetes.io/instance": instance}
        if group is not None:
            labels["slurm.nebius.ai/jailed-aggregation"] = group
        paths = [{"key": f"{name}.conf", "path": f"/etc/slurm/{name}.conf"}]
        manifest: Json = {
            "metadata": {"name": name, "namespace": SPACE, "labels": labels},
            "spec": {
                "configMap": {"name": name},
                "items": paths if items is None else items,
                "updateActions": list(actions),
                **spec,
            },
        }
        await self.user.create(JAILED_CONFIGS, manifest)

    def condition(self, type_: str, name: str = "topology") -> tuple[str, str]:
        """Status and reason."""
        return self.whole(type_, name)[:2]

    def whole(self, type_: str, name: str = "topology") -> tuple[str, str, str]:
        obj = self.server.find("slurm.nebius.ai/jailedconfigs", SPACE, name) or {}
        for one in obj.get("status", {}).get("conditions", []):
            if one["type"] == type_:
                return one["status"], one["reason"], without_address(one.get("message", ""))
        return "", "", ""

    def read(self, name: str) -> str | None:
        path = self.root / "etc/slurm" / name
        return path.read_text() if path.exists() else None

    @property
    def notes(self) -> list[str]:
        return [one["note"] for one in self.server.objects("events.k8s.io/events")]


def simulated(root: Path, story: Callable[[Site], Awaitable[None]], *, filled: bool = True) -> None:
    async def main() -> None:
        site = Site(root)
        if filled:
            site.fill()
        data = {"rest_jwt.key": base64.b64encode(KEY).decode()}
        meta = {"name": f"{CLUSTER}-rest-jwt-key", "namespace": SPACE}
        await site.user.create(SECRETS, {"metadata": meta, "data": data})
        task = asyncio.ensure_future(site.controller.manager.run())
        await asyncio.sleep(1)
        try:
            await story(site)
        finally:
            site.controller.manager.stop()
            await task

    simulate(main())


def test_a_file_appears_and_a_settled_object_is_not_written_again(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        await site.config_map("topology", topology__conf="SwitchName=root")
        await site.jailed(actions=())
        await asyncio.sleep(0.5)
        assert site.read("topology.conf") == "SwitchName=root"
        assert site.condition(WRITTEN) == ("True", "Success")
        assert site.condition(COMPLETED) == ("True", "MissingAction")
        inode = (tmp_path / "etc/slurm/topology.conf").stat().st_ino
        writes = list(site.writes)
        await site.user.patch(
            CONFIG_MAPS, SPACE, "topology", {"metadata": {"annotations": {"a": "b"}}}
        )
        await asyncio.sleep(3600)
        assert site.writes == writes
        assert (tmp_path / "etc/slurm/topology.conf").stat().st_ino == inode
        assert site.slurm.reconfigured == 0

    simulated(tmp_path, story)


def test_slurmctld_is_reconfigured_once_and_each_slurmd_is_waited_for(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        for name in ("worker-0", "worker-1"):
            site.slurm.register(name)
        site.slurm.register("gone", flags={"NOT_RESPONDING"})
        site.slurm.register("asleep", flags={"POWERED_DOWN"})
        await site.config_map("topology", topology__conf="one")
        await site.jailed()
        await asyncio.sleep(0.9)
        assert site.condition(WRITTEN) == ("True", "Success")
        assert site.whole(COMPLETED) == (
            "False",
            "Refresh",
            "Waiting for slurmd of worker-0, worker-1 to restart",
        )
        await asyncio.sleep(5)
        assert site.condition(COMPLETED) == ("True", "Success")
        assert site.slurm.reconfigured == 1
        await site.config_map("topology", topology__conf="two")
        await asyncio.sleep(8)
        assert site.read("topology.conf") == "two"
        assert site.slurm.reconfigured == 2
        assert site.condition(COMPLETED) == ("True", "Success")
        await asyncio.sleep(600)
        assert site.slurm.reconfigured == 2

    simulated(tmp_path, story)


def test_a_slurmd_that_does_not_restart_is_named_and_slurmctld_reconfigured_again(
    tmp_path: Path,
) -> None:
    async def story(site: Site) -> None:
        site.restarts = False
        site.slurm.register("worker-0")
        await site.config_map("topology", topology__conf="one")
        await site.jailed()
        await asyncio.sleep(299)
        assert site.condition(COMPLETED) == ("False", "Refresh")
        await asyncio.sleep(5)
        status, reason, words = site.whole(COMPLETED)
        assert (status, reason) == ("False", "Failed")
        assert words.startswith("300 s after slurmctld was reconfigured, slurmd of worker-0 has")
        site.restarts = True
        await asyncio.sleep(60)
        assert site.condition(COMPLETED) == ("True", "Success")
        assert site.slurm.reconfigured == 2

    simulated(tmp_path, story)


def test_a_silent_slurmrestd_delays_no_file_and_is_reported(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        site.rest.fault = Fault.REFUSE
        await site.config_map("topology", topology__conf="one")
        await site.jailed()
        await asyncio.sleep(1)
        assert site.condition(WRITTEN) == ("True", "Success")
        assert site.whole(COMPLETED)[2].startswith("slurmctld was not reconfigured: ")
        await site.config_map("topology", topology__conf="two")
        await asyncio.sleep(1)
        assert site.read("topology.conf") == "two"
        site.rest.fault = Fault.NONE
        await asyncio.sleep(90)
        assert site.condition(COMPLETED) == ("True", "Success")
        assert site.slurm.reconfigured == 1

    simulated(tmp_path, story)


def test_an_absent_key_is_named(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        await site.user.delete(SECRETS, SPACE, f"{CLUSTER}-rest-jwt-key")
        await site.config_map("topology", topology__conf="one")
        await site.jailed()
        await asyncio.sleep(1)
        words = "slurmctld was not reconfigured: Secret soperator-rest-jwt-key does not exist"
        assert site.whole(COMPLETED) == ("False", "Failed", words)

    simulated(tmp_path, story)


def test_a_process_that_ended_between_file_and_reconfigure_is_continued(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        site.rest.fault = Fault.HANG
        await site.config_map("topology", topology__conf="one")
        await site.jailed()
        await asyncio.sleep(1)
        assert site.read("topology.conf") == "one"
        site.controller.manager.stop()
        await asyncio.sleep(30)
        site.rest.fault = Fault.NONE
        assert site.slurm.reconfigured == 0
        second = site.process()
        task = asyncio.ensure_future(second.manager.run())
        await asyncio.sleep(10)
        assert site.slurm.reconfigured == 1
        assert site.condition(COMPLETED) == ("True", "Success")
        second.manager.stop()
        await task

    simulated(tmp_path, story)


def test_a_process_that_was_killed_right_after_the_file_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(site: Site) -> None:
        real = jail_files.JailFiles.write

        def killed(self: jail_files.JailFiles, *arguments: Any, **options: Any) -> None:
            real(self, *arguments, **options)
            site.connection.dead = True

        await site.config_map("topology", topology__conf="one")
        await site.jailed()
        await asyncio.sleep(5)
        monkeypatch.setattr(jail_files.JailFiles, "write", killed)
        await site.config_map("topology", topology__conf="two")
        await asyncio.sleep(1)
        assert site.read("topology.conf") == "two"
        site.controller.manager.stop()
        await asyncio.sleep(60)
        assert site.slurm.reconfigured == 1
        second = site.process()
        task = asyncio.ensure_future(second.manager.run())
        await asyncio.sleep(10)
        assert site.slurm.reconfigured == 2
        assert site.condition(COMPLETED) == ("True", "Success")
        second.manager.stop()
        await task

    simulated(tmp_path, story)


def test_a_status_counts_before_the_watch_shows_it(tmp_path: Path) -> None:
    """From the older one a second reconfigure would follow."""

    async def story(site: Site) -> None:
        await site.jailed(instance="other")
        client = Client(Connection(site.server, "writer"), clock=LoopClock())
        writer = StatusWriter(client, Recorder(client, "writer", "one"))
        seen = await site.user.get(JAILED_CONFIGS, SPACE, "topology")
        await writer.write(seen, refreshing())
        member = Member((), reconfigures=True, is_grouped=False)
        done = findings(member, acts=True, failure=None, waits="")
        await writer.write(writer.latest(seen), done)
        latest = {one.type: one.reason for one in writer.latest(seen).status.conditions}
        assert latest == {WRITTEN: "Success", COMPLETED: "Success"}

    simulated(tmp_path, story)


async def test_a_process_that_leads_no_more_writes_nothing(tmp_path: Path) -> None:
    worker = JailWorker(jail_files.JailFiles(str(tmp_path)), SystemClock(), lambda: False)
    with pytest.raises(NotLeaderError):
        await worker.run(lambda jail: jail.write([JailFile("/x", b"")]))
    worker.close()
    assert os.listdir(tmp_path) == []  # noqa: PTH208


def test_a_new_process_does_nothing_about_settled_objects(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        await site.config_map("soperator-slurm-configs", slurm__conf="x")
        await site.config_map("topology", topology__conf="one")
        await site.jailed()
        await asyncio.sleep(10)
        site.controller.manager.stop()
        await asyncio.sleep(30)
        writes, count = list(site.writes), site.slurm.reconfigured
        second = site.process()
        task = asyncio.ensure_future(second.manager.run())
        await asyncio.sleep(300)
        assert (site.writes, site.slurm.reconfigured) == (writes, count)
        second.manager.stop()
        await task

    simulated(tmp_path, story)


def test_a_group_is_written_whole_and_reconfigured_once(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        for name in ("a", "b", "c"):
            await site.config_map(name, **{f"{name}__conf": name})
            actions = ("Reconfigure",) if name == "b" else ()
            await site.jailed(name, group="common", actions=actions)
        await site.jailed("missing", group="common", actions=())
        await site.jailed("alone", actions=())
        await asyncio.sleep(20)
        count = site.slurm.reconfigured
        assert [site.read(f"{name}.conf") for name in "abc"] == ["a", "b", "c"]
        for name in ("a", "b", "c"):
            assert site.condition(WRITTEN, name) == ("True", "Success")
            assert site.condition(COMPLETED, name) == ("True", "Success")
        words = "ConfigMap missing does not exist; create it"
        assert site.whole(WRITTEN, "missing") == ("False", "NotFound", words)
        assert site.condition(COMPLETED, "missing") == ("False", "NotWritten")
        # The one without an action is in the group, so its change is followed by one as well.
        await site.config_map("a", a__conf="other")
        await asyncio.sleep(20)
        assert site.slurm.reconfigured == count + 1
        await site.config_map("missing", missing__conf="m")
        await asyncio.sleep(20)
        assert site.condition(COMPLETED, "missing") == ("True", "Success")

    simulated(tmp_path, story)


def test_objects_of_another_cluster_are_left_alone(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        await site.config_map("topology", topology__conf="one")
        await site.jailed(instance="other")
        await asyncio.sleep(10)
        assert site.read("topology.conf") is None
        assert site.writes == []

    simulated(tmp_path, story)


def test_nothing_is_written_before_the_jail_is_filled(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        await site.config_map("soperator-slurm-configs", slurm__conf="x")
        await site.config_map("topology", topology__conf="one")
        await site.jailed()
        await asyncio.sleep(60)
        assert os.listdir(tmp_path) == []  # noqa: PTH208
        words = "The jail is not filled yet: it has no /etc/soperator-jail-populated"
        assert site.whole(WRITTEN) == ("Unknown", "Init", words)
        assert site.condition(COMPLETED) == ("Unknown", "Init")
        assert "The jail is not filled yet" in (site.controller.not_ready() or "")
        writes = len(site.writes)
        await asyncio.sleep(600)
        assert len(site.writes) == writes
        site.fill()
        await asyncio.sleep(1)
        assert site.read("slurm.conf") == "x"
        assert site.controller.not_ready() is None
        await asyncio.sleep(10)
        assert site.read("topology.conf") == "one"
        assert site.condition(COMPLETED) == ("True", "Success")

    simulated(tmp_path, story, filled=False)


def test_the_configuration_arrives_within_a_second_and_without_a_reconfigure(
    tmp_path: Path,
) -> None:
    async def story(site: Site) -> None:
        await site.config_map("soperator-slurm-configs", slurm__conf="1", cgroup__conf="1")
        await asyncio.sleep(1)
        assert site.read("slurm.conf") == "1"
        await site.config_map("soperator-slurm-configs", slurm__conf="2", mpi__conf="2")
        await asyncio.sleep(1)
        assert (site.read("slurm.conf"), site.read("mpi.conf")) == ("2", "2")
        patch: Json = {"data": {"cgroup.conf": None}}
        await site.user.patch(CONFIG_MAPS, SPACE, "soperator-slurm-configs", patch)
        await asyncio.sleep(1)
        assert site.read("cgroup.conf") is None
        await site.user.delete(CONFIG_MAPS, SPACE, "soperator-slurm-configs")
        await asyncio.sleep(600)
        assert site.read("slurm.conf") == "2"
        assert site.slurm.reconfigured == 0

    simulated(tmp_path, story)


def test_a_configuration_without_slurm_conf_is_not_delivered(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        await site.config_map("soperator-slurm-configs", slurm__conf="1")
        await asyncio.sleep(1)
        patch: Json = {"data": {"slurm.conf": None, "a.conf": "a"}}
        await site.user.patch(CONFIG_MAPS, SPACE, "soperator-slurm-configs", patch)
        await asyncio.sleep(5)
        assert site.read("slurm.conf") == "1"
        assert site.read("a.conf") is None
        words = "ConfigMap soperator-slurm-configs has no slurm.conf; the jail keeps its files"
        assert site.notes == [words]
        assert site.controller.not_ready() == words

    simulated(tmp_path, story)


def test_the_published_object_of_the_configuration_reconfigures_nothing_itself(
    tmp_path: Path,
) -> None:
    """The reconfigure container of slurmctld does, by the transaction of a configuration."""

    async def story(site: Site) -> None:
        name = "soperator-slurm-configs"
        await site.config_map(name, slurm__conf="1", cgroup__conf="1")
        items = [{"key": k, "path": f"/etc/slurm/{k}"} for k in ("slurm.conf", "cgroup.conf")]
        await site.jailed(name, items=items, group="common", configMap={"name": name})
        await asyncio.sleep(10)
        assert site.condition(WRITTEN, name) == ("True", "Success")
        assert site.condition(COMPLETED, name) == ("True", "Success")
        await site.config_map(name, slurm__conf="2")
        await asyncio.sleep(10)
        assert site.read("slurm.conf") == "2"
        assert site.condition(WRITTEN, name) == ("True", "Success")
        assert site.condition(COMPLETED, name) == ("True", "Success")
        assert site.slurm.reconfigured == 0

    simulated(tmp_path, story)


def test_of_two_writers_of_one_file_the_older_one_writes(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        await site.config_map("soperator-slurm-configs", slurm__conf="1")
        await site.config_map("one", one__conf="first")
        await site.jailed("one", actions=())
        await asyncio.sleep(2)
        await site.config_map("two", x="second")
        await site.jailed("two", items=[{"key": "x", "path": "/etc/slurm/one.conf"}])
        await site.jailed(
            "three",
            items=[{"key": "x", "path": "/etc/slurm/slurm.conf"}],
            configMap={"name": "two"},
        )
        await asyncio.sleep(2)
        assert site.read("one.conf") == "first"
        assert site.read("slurm.conf") == "1"
        assert "is written by JailedConfig one, which is older" in site.whole(WRITTEN, "two")[2]
        words = "/etc/slurm/slurm.conf is a file of the cluster's configuration; change it in the"
        assert site.whole(WRITTEN, "three")[2].startswith(words)
        assert site.condition(WRITTEN, "three") == ("False", "Conflict")
        await site.user.delete(JAILED_CONFIGS, SPACE, "one")
        await asyncio.sleep(2)
        assert site.read("one.conf") == "second"

    simulated(tmp_path, story)


def test_deleting_the_object_leaves_its_file(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        await site.config_map("topology", topology__conf="one")
        await site.jailed()
        await asyncio.sleep(5)
        await site.user.delete(JAILED_CONFIGS, SPACE, "topology")
        await asyncio.sleep(600)
        assert site.read("topology.conf") == "one"

    simulated(tmp_path, story)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/etc/../../x", "without . and .."),
        ("etc/x", "is no file of the jail"),
        ("/etc/./x", "without . and .."),
        ("/etc//x", "one / between names"),
        ("/etc/.penstock-files", "are kept for this controller"),
        ("/" + "x" * 300, "a name has at most 255 bytes"),
        ("/link/x", "/link: it is a symbolic link, which is never followed; remove it"),
    ],
)
def test_a_path_that_leads_out_of_the_jail_is_named(tmp_path: Path, path: str, words: str) -> None:
    async def story(site: Site) -> None:
        (tmp_path / "link").symlink_to("/")
        await site.config_map("topology", x="one")
        await site.jailed(items=[{"key": "x", "path": path}])
        await asyncio.sleep(2)
        status, _, message = site.whole(WRITTEN)
        assert status == "False"
        assert words in message
        assert site.condition(COMPLETED)[0] == "False"
        assert site.notes == [message]
        assert site.slurm.reconfigured == 0

    simulated(tmp_path, story)


def test_keys_and_modes(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        await site.config_map("topology", a__conf="a", b__conf="b", c__sh="c")
        items = [
            {"key": "a.conf", "path": "/etc/slurm/a.conf"},
            {"key": "c.sh", "path": "/opt/deep/er/c.sh", "mode": 0o755},
        ]
        await site.jailed(items=items, actions=(), defaultMode=0o600)
        await asyncio.sleep(2)
        await site.jailed("all", items=[], actions=(), configMap={"name": "topology"})
        await site.jailed("key", items=[{"key": "z", "path": "/z"}], configMap={"name": "topology"})
        await asyncio.sleep(2)
        found = {one: (tmp_path / one).stat() for one in ("etc/slurm/a.conf", "opt/deep/er/c.sh")}
        modes = [stat.S_IMODE(one.st_mode) for one in found.values()]
        assert modes == [0o600, 0o755]
        assert "is written by JailedConfig" in site.whole(WRITTEN, "all")[2]
        words = "ConfigMap topology has no key z; add it, or remove it from spec.items"
        assert site.whole(WRITTEN, "key") == ("False", "KeyNotFound", words)
        await site.user.delete(JAILED_CONFIGS, SPACE, "topology")
        await asyncio.sleep(2)
        assert [site.read(name) for name in ("a.conf", "b.conf", "c.sh")] == ["a", "b", "c"]

    simulated(tmp_path, story)


def test_a_full_jail_is_reported_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(site: Site) -> None:
        real = jail_files.os.write

        def full(*_: object) -> int:
            raise OSError(28, "No space left on device")

        await site.config_map("soperator-slurm-configs", slurm__conf="1")
        await asyncio.sleep(1)
        monkeypatch.setattr(jail_files.os, "write", full)
        await site.config_map("soperator-slurm-configs", slurm__conf="2")
        await site.config_map("topology", topology__conf="one")
        await site.jailed()
        await asyncio.sleep(60)
        full_words = "the jail is full; free space in it or enlarge its volume"
        words = f"/etc/slurm/topology.conf: {full_words}"
        assert site.whole(WRITTEN) == ("False", "Failed", words)
        assert site.condition(COMPLETED)[0] == "False"
        assert site.read("slurm.conf") == "1"
        assert f"/etc/slurm/slurm.conf: {full_words}" in (site.controller.not_ready() or "")
        assert site.slurm.reconfigured == 0
        monkeypatch.setattr(jail_files.os, "write", real)
        await asyncio.sleep(40)
        assert site.read("slurm.conf") == "2"
        assert site.read("topology.conf") == "one"
        assert site.condition(COMPLETED) == ("True", "Success")
        assert site.slurm.reconfigured == 1

    simulated(tmp_path, story)


def test_a_file_that_a_user_changed_or_removed_is_written_again(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        await site.config_map("soperator-slurm-configs", slurm__conf="1")
        await site.config_map("topology", topology__conf="one")
        await site.jailed(actions=())
        await asyncio.sleep(5)
        (tmp_path / "etc/slurm/slurm.conf").write_text("!")
        (tmp_path / "etc/slurm/topology.conf").unlink()
        await asyncio.sleep(61)
        assert (site.read("slurm.conf"), site.read("topology.conf")) == ("1", "one")

    simulated(tmp_path, story)


def test_a_standby_writes_nothing_and_is_ready(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        site.controller.manager.stop()
        await asyncio.sleep(1)
        first = site.process("--leader-elect")
        second = site.process("--leader-elect", name="two")
        tasks = [asyncio.ensure_future(first.manager.run())]
        await asyncio.sleep(5)
        tasks.append(asyncio.ensure_future(second.manager.run()))
        await site.config_map("soperator-slurm-configs")
        await asyncio.sleep(5)
        assert "has no slurm.conf" in (first.not_ready() or "")
        assert second.not_ready() is None
        lease = site.server.find(
            "coordination.k8s.io/leases", SPACE, "soperator.vqeyz6ae.nebius.ai"
        )
        assert lease is not None
        for one in (first, second):
            one.manager.stop()
        await asyncio.gather(*tasks)

    simulated(tmp_path, story)
