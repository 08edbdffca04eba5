"""Webhooks of the operator, asked by a real kube-apiserver.

The operator runs in the test's process, so the configurations name it by its address.
"""

from __future__ import annotations

import asyncio
import base64
import re
import shutil
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from penstock.api.kubernetes.kinds import MUTATING, NODES, SECRETS, VALIDATING, Pod
from penstock.api.kubernetes.kinds import Node as KubernetesNode
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky.controller import CONTROLLERS
from penstock.api.slinky.validation import CLUSTER_NAME_LIMIT
from penstock.controllers.runtime.settings import WEBHOOKS, Settings, Webhooks
from penstock.kube import Client, InvalidError, NotFoundError
from penstock.kube.client.transport import Request
from penstock.kube.webhook.certificates import LEAF
from penstock.local.files import WEBHOOK_CLIENT
from penstock.local.layout import Layout
from penstock.local.node import Node
from support.kubelet import MACHINE
from support.operator_kit import BY_KIND, OPERATOR_NAMESPACE, ROOT, Lab, Running, documents, lab

pytestmark = pytest.mark.api

SECRET = f"{WEBHOOKS}-certificates"
BOTH = ("v1", "v1beta1")
API = "slinky.slurm.net/v1beta1"
CONTROLLER: Json = {"apiVersion": API, "kind": "Controller", "metadata": {"name": "slurm"}}
RESTAPI: Json = {
    "apiVersion": API,
    "kind": "RestApi",
    "metadata": {"name": "slurm"},
    "spec": {"controllerRef": {"name": "slurm"}},
}


def nodeset(name: str = "compute", **spec: Any) -> Json:
    return {
        "apiVersion": API,
        "kind": "NodeSet",
        "metadata": {"name": name},
        "spec": {"controllerRef": {"name": "slurm"}, "replicas": 1, **spec},
    }


@dataclass
class Site:
    """A lab whose API server asks the operator of the test."""

    lab: Lab
    node: Node
    versions: tuple[str, ...]
    port: int = 0

    @asynccontextmanager
    async def operator(
        self, *, active: bool = True, client_ca: str = "", client_names: tuple[str, ...] = ()
    ) -> AsyncGenerator[Running]:
        """An operator with webhooks; `active` waits until the API server asks them.

        It answers callers with certificates of `client_ca` only, and of these names.
        """
        address = self.node.machine_address
        if not self.port:
            self.port = free_port(address)
            await self.configure()
        options = Webhooks(
            port=self.port,
            host=address,
            hosts=(address,),
            client_ca=client_ca,
            client_names=client_names,
        )
        settings = Settings(namespace=OPERATOR_NAMESPACE, webhooks=options)
        async with self.lab.operator(settings=settings) as running:
            served = running.operator.webhooks
            assert served is not None
            await self.lab.until(lambda: bool(served.server.port))
            if active:
                await self.refuses()
            yield running

    async def configure(self) -> None:
        """The configurations of deploy/operator.yaml, for this namespace and this address."""
        here = {"kubernetes.io/metadata.name": self.lab.namespace}
        for one in documents(ROOT / "deploy" / "operator.yaml"):
            if one["kind"] not in (VALIDATING.kind, MUTATING.kind):
                continue
            for hook in one["webhooks"]:
                path = hook["clientConfig"].pop("service")["path"]
                hook["clientConfig"]["url"] = (
                    f"https://{self.node.machine_address}:{self.port}{path}"
                )
                hook["namespaceSelector"] = {"matchLabels": here}
                hook["admissionReviewVersions"] = list(self.versions)
                # Long: a machine under load must not make an answer of no use.
                hook["timeoutSeconds"] = 30
            resource = VALIDATING if one["kind"] == VALIDATING.kind else MUTATING
            await self.lab.user.apply(resource, one)

    async def refuses(self) -> str:
        """Wait until something is refused that only the webhook refuses; its words."""
        async with asyncio.timeout(60):
            while True:
                said = await self.refusal(nodeset("probe", slurmd={"env": "A=b"}), dry_run=True)
                if said:
                    return said
                await asyncio.sleep(0.1)

    async def refusal(self, manifest: Json, *, dry_run: bool = False) -> str:
        """What the API server says to a create; empty when it takes it."""
        space = self.lab.namespace
        meta = {**manifest["metadata"], "namespace": space}
        params = {"fieldValidation": "Strict"} | ({"dryRun": "All"} if dry_run else {})
        path = BY_KIND[manifest["kind"]].path(space)
        body = msgspec.json.encode({**manifest, "metadata": meta})
        said = await self.lab.client.transport.send(Request("POST", path, params, body))
        return "" if said.status < 300 else msgspec.json.decode(said.body)["message"]

    async def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl said on standard error, warnings included."""
        program = shutil.which("kubectl", path=self.node.env["PATH"]) or "kubectl"
        process = await asyncio.create_subprocess_exec(
            program,
            "-n",
            self.lab.namespace,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=self.node.env,
        )
        _, said = await process.communicate(stdin.encode())
        return said.decode()

    async def certificate(self) -> str:
        """The leaf in the Secret."""
        found = await self.lab.client.get(SECRETS, OPERATOR_NAMESPACE, SECRET)
        return (found.data or {})[LEAF]


def free_port(address: str) -> int:
    """A port that nobody has; a second operator of a test takes it again."""
    with socket.socket() as found:
        found.bind((address, 0))
        return int(found.getsockname()[1])


@asynccontextmanager
async def site(node: Node, versions: tuple[str, ...] = BOTH) -> AsyncGenerator[Site]:
    async with lab(node) as lab_:
        try:
            yield Site(lab_, node, versions)
        finally:
            for resource, space, name in (
                (VALIDATING, "", WEBHOOKS),
                (MUTATING, "", WEBHOOKS),
                (SECRETS, OPERATOR_NAMESPACE, SECRET),
            ):
                await gone(lab_.client, resource, space, name)


async def gone(client: Client, resource: Any, space: str, name: str) -> None:
    with suppress(NotFoundError):
        await client.delete(resource, space, name)


@pytest.mark.parametrize("version", BOTH)
async def test_a_fault_is_rejected_in_words_in_either_version(api_node: Node, version: str) -> None:
    """Slinky sections 4 and 11.6, feature row 62: upstream's API servers ask in v1beta1."""
    async with site(api_node, (version,)) as found, found.operator():
        lab_ = found.lab
        bad = nodeset(slurmd={"env": "A=b"}, extraConf="Topology= CPUs=2")
        with pytest.raises(InvalidError) as refused:
            await lab_.apply(bad)
        said = str(refused.value)
        assert "validate.penstock.dev" in said
        assert "spec.slurmd.env: write a list" in said
        assert {one.field for one in refused.value.causes} == {"spec.slurmd.env", "spec.extraConf"}
        said = await found.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(nodeset()))
        assert "Warning: spec.controllerRef.name: there is no Controller slurm" in said
        await lab_.until(lambda: told(lab_) != "")
        with pytest.raises(InvalidError, match="node compute-0 would be one of"):
            await lab_.apply(nodeset("b", template={"spec": {"hostname": "compute-"}}))


async def test_without_an_operator_everybody_can_write_and_the_condition_follows(
    api_node: Node,
) -> None:
    """Slinky 11.6: nobody is locked out when Penstock is down; what it missed is told."""
    async with site(api_node) as found:
        lab_ = found.lab
        async with found.operator():
            pass
        bad: Json = {"slurmd": {"env": "A=b"}}
        await lab_.apply(nodeset(**bad), nodeset("going", **bad))
        async with found.operator():
            await lab_.until(lambda: "spec.slurmd.env" in told(lab_))
            # It was so before: it can be deleted, and everything else of it be changed.
            await lab_.delete("NodeSet", "going")
            await lab_.until(lambda: lab_.get("NodeSet", "going") is None)
            await lab_.patch("NodeSet", "compute", {"spec": {"replicas": 3}})
            with pytest.raises(InvalidError, match=r"spec\.slurmd\.args"):
                await lab_.patch("NodeSet", "compute", {"spec": {"slurmd": {"args": "x"}}})
            await lab_.patch("NodeSet", "compute", {"spec": {"slurmd": {"env": None}}})
            await lab_.until(lambda: "spec.slurmd.env" not in told(lab_))


def told(lab_: Lab) -> str:
    found = lab_.condition("NodeSet", "compute")
    return found.message if found is not None else ""


async def test_a_certificate_that_is_lost_or_broken_is_replaced_while_the_operator_serves(
    api_node: Node,
) -> None:
    """Feature row 64: upstream's self-made certificate is never renewed."""
    async with site(api_node) as found, found.operator() as running:
        lab_ = found.lab
        first = await found.certificate()
        await lab_.client.delete(SECRETS, OPERATOR_NAMESPACE, SECRET)
        second = await changed(found, first)
        broken = {"data": {LEAF: base64.b64encode(b"none").decode()}}
        await lab_.client.patch(SECRETS, OPERATOR_NAMESPACE, SECRET, broken)
        third = await changed(found, second, broken["data"][LEAF])
        assert len({first, second, third}) == 3
        # The API server keeps a connection that is open, so a refusal alone proves little.
        served = running.operator.webhooks
        assert served is not None
        await lab_.until(lambda: shown(running) == base64.b64decode(third))
        assert "spec.slurmd.env" in await found.refuses()
        for resource in (VALIDATING, MUTATING):
            live = await lab_.client.get(resource, "", WEBHOOKS)
            assert all(one.client_config.ca_bundle for one in live.webhooks)


def shown(running: Running) -> bytes:
    served = running.operator.webhooks
    assert served is not None
    pair = served.server._shown
    return pair[0] if pair else b""


async def changed(found: Site, *before: str) -> str:
    """Wait until the Secret has another leaf than these."""
    async with asyncio.timeout(60):
        while True:
            try:
                now = await found.certificate()
            except (NotFoundError, KeyError):
                now = ""
            if now and now not in before:
                return now
            await asyncio.sleep(0.05)


async def test_a_ca_bundle_that_is_taken_out_comes_back(api_node: Node) -> None:
    async with site(api_node) as found, found.operator():
        await found.configure()
        path = f"{VALIDATING.path(None, WEBHOOKS)}"
        body = await found.lab.client.transport.send(Request("GET", path))
        live = msgspec.json.decode(body.body)
        for hook in live["webhooks"]:
            hook["clientConfig"].pop("caBundle", None)
        text = msgspec.json.encode(live)
        said = await found.lab.client.transport.send(Request("PUT", path, {}, text))
        assert said.status == 200, said.body
        await found.refuses()
        live = await found.lab.client.get(VALIDATING, "", WEBHOOKS)
        assert all(one.client_config.ca_bundle for one in live.webhooks)


async def test_a_new_controller_is_given_its_cluster_name_and_means_the_same_without(
    api_node: Node,
) -> None:
    """Issue item 7: defaulting. Nothing is refused, changed or restarted for the lack of it."""
    async with site(api_node) as found:
        lab_ = found.lab
        name = f"{lab_.namespace}_slurm"
        async with found.operator() as running:
            text = yaml.safe_dump(CONTROLLER)
            fits = len(name) <= CLUSTER_NAME_LIMIT
            assert fits, "the namespace of a test is short"
            await found.kubectl("apply", "-f", "-", stdin=text)
            assert await cluster_name(lab_, "slurm") == name
            # As it was applied, by whichever way: the API server says it is the same.
            for way in (("apply",), ("apply", "--server-side"), ("replace",)):
                said = await found.kubectl(*way, "-f", "-", stdin=text)
                assert "invalid" not in said.lower(), said
            await lab_.delete("Controller", "slurm")
            known = running.operator.clusters.caches.controllers
            await lab_.until(lambda: known.get(f"{lab_.namespace}/slurm") is None)
        await lab_.apply(CONTROLLER)
        assert await cluster_name(lab_, "slurm") == ""
        async with found.operator():
            await lab_.patch("Controller", "slurm", {"metadata": {"labels": {"a": "b"}}})
            assert await cluster_name(lab_, "slurm") == "", "what is there is left as it is"


async def cluster_name(lab_: Lab, name: str) -> str:
    """The ClusterName that is stored."""
    return (await lab_.user.get(CONTROLLERS, lab_.namespace, name)).spec.cluster_name


async def test_deleting_a_controller_in_use_warns_and_goes_through(api_node: Node) -> None:
    async with site(api_node) as found, found.operator():
        lab_ = found.lab
        await lab_.apply(CONTROLLER, nodeset())
        await lab_.until(lambda: told(lab_) != "")
        said = await found.kubectl("delete", "controller", "slurm", "--wait=false")
        assert "Warning: NodeSet compute belong to this Controller" in said
        await lab_.until(lambda: lab_.get("Controller", "slurm") is None)


YAML = (
    "- topology: t\n  cluster_default: true\n  tree:\n    switches: [{switch: s1}, {switch: s2}]\n"
)


async def test_a_worker_has_the_place_of_its_kubernetes_node_from_its_binding_on(
    api_node: Node,
) -> None:
    """Feature row 63: one write less than upstream's, and never a place that is refused."""
    async with site(api_node) as found, found.operator() as running:
        lab_ = found.lab
        known = running.operator.clusters.caches.nodes
        bound: dict[str, str] = {}

        def look(old: Pod | None, new: Pod | None) -> None:
            if new is not None and new.spec.node_name and not (old and old.spec.node_name):
                bound[new.metadata.name] = new.metadata.annotations.get(slinky_labels.TOPOLOGY, "")

        lab_.seen["Pod"].subscribe(look)
        await annotate(lab_, "t:s2")
        await lab_.until(lambda: place(known.get(MACHINE)) == "t:s2")
        try:
            files: Json = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "files"},
                "data": {"topology.yaml": YAML},
            }
            spec = {"configFileRefs": [{"name": "files"}]}
            await lab_.apply(files, {**CONTROLLER, "spec": spec}, RESTAPI, nodeset())
            await lab_.until(lambda: "compute-0" in bound, within=60)
            assert bound["compute-0"] == "t:s2"
            assert {name: at for name, at in bound.items() if at} == {"compute-0": "t:s2"}
            await annotate(lab_, "t:s9")
            await lab_.until(lambda: place(known.get(MACHINE)) == "t:s9")
            await lab_.patch("NodeSet", "compute", {"spec": {"replicas": 2}})
            await lab_.until(lambda: "compute-1" in bound, within=60)
            assert bound["compute-1"] == ""
        finally:
            await annotate(lab_, None)


def place(machine: KubernetesNode | None) -> str:
    return machine.metadata.annotations.get(slinky_labels.TOPOLOGY, "") if machine else ""


async def annotate(lab_: Lab, place: str | None) -> None:
    """Write the annotation of the machine, or take it away."""
    notes = {"metadata": {"annotations": {slinky_labels.TOPOLOGY: place}}}
    await lab_.client.patch(NODES, "", MACHINE, notes)


async def test_with_client_authorities_only_the_api_server_is_answered(api_node: Node) -> None:
    """A25: the API server presents the certificate of its AdmissionConfiguration."""
    authorities = str(Layout(api_node.name).pki / "ca.crt")
    async with (
        site(api_node) as found,
        found.operator(client_ca=authorities, client_names=(WEBHOOK_CLIENT,)),
    ):
        assert "validate.penstock.dev" in await found.refuses()
        assert not await answer_to_anybody(api_node.machine_address, found.port)
    async with site(api_node) as found, found.operator():
        assert b"HTTP/1.1" in await answer_to_anybody(api_node.machine_address, found.port)


async def answer_to_anybody(host: str, port: int) -> bytes:
    """What a caller without a certificate is answered."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    # Of TLS 1.3 the rejection may come as an alert or as an end.
    with suppress(OSError):
        reader, writer = await asyncio.open_connection(host, port, ssl=context)
        writer.write(b"POST / HTTP/1.1\r\nHost: operator\r\nContent-Length: 0\r\n\r\n")
        return await asyncio.wait_for(reader.read(100), 30)
    return b""


# F22


BAD = sorted((Path(__file__).parents[1] / "fixtures" / "bad").glob("*.yaml"))
_SAID = re.compile(r"# (layer|path|says): (.*)")


async def test_every_bad_value_is_rejected_with_its_path_and_what_to_write(api_node: Node) -> None:
    """F22, S033, S070, feature rows 2 and 62: whichever layer it is that refuses."""
    missing: list[str] = []
    async with site(api_node) as found, found.operator() as running:
        lab_, caches = found.lab, running.operator.clusters.caches
        own: Json = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "with-slurm-conf"},
            "data": {"slurm.conf": "MinJobAge=2\n"},
        }
        await lab_.apply(own, nodeset("other", template={"spec": {"hostname": "taken-"}}))
        key = f"{lab_.namespace}/with-slurm-conf"
        await lab_.until(lambda: caches.config_maps.get(key) is not None)
        await lab_.until(lambda: caches.nodesets.get(f"{lab_.namespace}/other") is not None)
        # What is stored comes last: the others are only tried.
        for path in sorted(BAD, key=lambda one: "# layer: condition" in one.read_text()):
            text = path.read_text()
            wanted = dict(_SAID.findall(text))
            manifest = yaml.safe_load(text)
            refused = wanted["layer"] != "condition"
            said = await found.refusal(manifest, dry_run=refused)
            if not refused:
                assert not said, path.stem
                said = await condition(lab_, manifest, wanted["says"])
            if not all(words in said for words in (wanted["path"], wanted["says"])):
                missing.append(f"{path.stem}: {wanted}: {said}")
            if ("validate.penstock.dev" in said) is not (wanted["layer"] == "webhook"):
                missing.append(f"{path.stem} is not refused by the {wanted['layer']}: {said}")
    assert not missing, "\n".join(missing)


async def condition(lab_: Lab, manifest: Json, words: str) -> str:
    """What the object says of itself, once it has these words."""

    def said() -> str:
        found = lab_.condition(manifest["kind"], manifest["metadata"]["name"])
        return found.message if found is not None and found.status != "True" else ""

    await lab_.until(lambda: words in said())
    return said()
