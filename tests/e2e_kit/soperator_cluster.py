"""A cluster that soperator 1.23 or 5.0 left on a real node, with Slurm's daemons running in it.

All objects are the captured ones (`support.soperator_left`), and no rendering of Penstock is among
them. `CHANGES` has all that is different, and why.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from e2e_kit import images, mariadb, mariadb_operator
from e2e_kit.api import Json, restarts
from e2e_kit.site import eventually
from penstock.api.kubernetes.quantity import quantity
from penstock.local.images import ImageArchive
from penstock.local.layout import Layout
from penstock.local.node import Node
from penstock.render.parts import ssh_host_keys
from support.soperator_left import MANAGER, NODE_LABEL, SoperatorObjects, manager

CHANGES = {
    "images": "ours, which the fixture `soperator` starts by the contract of soperator's; those of "
    "power saving, Docker's proxy and node-exporter do nothing",
    "StatefulSets": "of apps/v1, as OpenKruise is absent; the test sets InPlaceUpdateReady",
    "procMount": "Unmasked is left out: Kubernetes rejects it without a user namespace since 1.33",
    "requests": "at most LIMITS, also as declared resources: one machine runs all",
    "volumes": "two of one PVC are one: the kubelet waits without end for the second one",
    "customSlurmConfig": "with SLURM_LINES, also in its file: cgroups of version 1, no PMIx",
    "customCgroupConfig": "CGROUP_LINES, also in cgroup.conf: cgroups of version 1",
    "Secrets": "values are made up: they were taken out of the capture",
    "slurm-scripts": "scripts that do nothing: their texts were taken out of the capture; those of "
    "workers of 5.0 are in image and jail, as NodeSets have no volume of them",
    "kinds": "those of Prometheus and of OpenKruise's distributions are not served",
    "exporter": "no pod: there is no image of ours for it",
    "cluster": "StorageClass, PriorityClasses and the label of the node, which the objects name",
    "database": "a real MariaDB in the place of mariadb-operator's",
}
"""What differs from the capture, and why."""
SLURM_LINES = """ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
TopologyPlugin=topology/flat
"""
CGROUP_LINES = "CgroupPlugin=disabled\n"
LIMITS = {"cpu": "50m", "memory": "1Gi", "ephemeral-storage": "1Gi"}
_UNSERVED = ("PodMonitor", "ServiceMonitor", "ResourceDistribution")
_WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet")
_PLUGIN_NAME = "localhost/penstock-test/soperator-{}:26.05"
BUILT = {
    "slurmctld": "jail-slurmctld",
    "slurmd": "jail-slurmd",
    "login": "jail-login",
    "slurmrestd": "slurmrestd",
    "slurmdbd": "slurmdbd",
}
"""Images of the fixture, and ours that each is built on."""
STANDS_FOR = {
    "controller_slurmctld": "slurmctld",
    "worker_slurmd": "slurmd",
    "login_sshd": "login",
    "slurmrestd": "slurmrestd",
    "controller_slurmdbd": "slurmdbd",
    "munge": "munge",
    "populate_jail": "populate-jail",
    "sconfigcontroller": "operator",
    "busybox": "munge",
    "node-exporter": "slurmctld",
    "mariadb": "mariadb",
}
"""Images of soperator, and the role that stands for each."""
_OF_OPENKRUISE = ("volumeClaimUpdateStrategy", "scaleStrategy")
"""Fields that StatefulSets of apps/v1 lack."""
_INSTANCE = "app.kubernetes.io/instance"
_CUSTOM = {"1.23": "custom_slurm.conf", "5.0": "slurm_k8s_extra.conf.noedit"}
"""The file with a SlurmCluster's own lines."""
_IMAGE = re.compile(r"registry\.example/([a-z_-]+)(?::[A-Za-z0-9._-]+)?")


def stand_ins() -> images.Archive:
    """The images of the fixture."""
    return images.build("soperator", {_PLUGIN_NAME.format(k): v for k, v in BUILT.items()})


def give(node: Node, ours: Iterable[ImageArchive]) -> dict[str, str]:
    """Give a node all images; their names by role."""
    archive = stand_ins()
    images.give(node, archive)
    mariadb.load(node)
    found = images.give_all(node, ours)
    stand_in = {role: archive.exact[_PLUGIN_NAME.format(role)] for role in BUILT}
    return {**found, **stand_in, "mariadb": mariadb.IMAGE}


@dataclass(frozen=True)
class File:
    """A file of the jail."""

    mode: int
    owner: tuple[int, int]
    content: str
    """A digest, or the target of a link."""


class SoperatorCluster:
    """The objects, and the pods that Kubernetes' own controllers make of them."""

    def __init__(self, node: Node, roles: Mapping[str, str], version: str = "1.23") -> None:
        self.node, self.version = node, version
        self.left = SoperatorObjects(version)
        self.name = self.namespace = self.left.name
        self.prefix = f"{self.name}-" if version == "5.0" else ""
        """Of the names of workloads."""
        self._roles = roles

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Output of kubectl in the namespace."""
        return self.node.kubectl("-n", self.namespace, *arguments, stdin=stdin)

    def list(self, kind: str) -> list[Json]:
        """The objects of a kind."""
        return cast("list[Json]", json.loads(self.kubectl("get", kind, "-o", "json"))["items"])

    def prepare(self) -> None:
        """Make all that the cluster has of its own, and what the objects name."""
        labels = [f"{key}={value}" for key, value in NODE_LABEL.items()]
        self.node.kubectl("label", "nodes", "--all", "--overwrite", *labels)
        every = [
            *mariadb_operator.definitions(),
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}},
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "standard"},
                "provisioner": "kubernetes.io/host-path",
            },
            *self._priorities(),
        ]
        self.node.kubectl("apply", "-f", "-", stdin=_list(every))
        kinds = [f"crd/{plural}.{mariadb_operator.GROUP}" for _, plural in mariadb_operator.KINDS]
        self.node.kubectl("wait", "--for=condition=Established", "--timeout=60s", *kinds)

    def create(self) -> None:
        """Create the objects in soperator's order, and wait until the daemons run."""
        every = [one for one in self.left.objects if one["kind"] not in _UNSERVED]
        first = [one for one in every if one["kind"] == "SlurmCluster"]
        rest = [one for one in every if one["kind"] not in ("SlurmCluster", *_WORKLOADS)]
        workloads = [one for one in every if one["kind"] in _WORKLOADS]
        self._leave(first)
        self._leave(rest)
        self._database()
        job = f"job/{self.name}-populate-jail"
        self.kubectl("wait", "--for=condition=Complete", "--timeout=120s", job)
        if self.version == "5.0":
            self._give_scripts()
        self._leave([one for one in workloads if one["kind"] != "StatefulSet"])
        self.kubectl("rollout", "status", f"deployment/{self.prefix}accounting", "--timeout=120s")
        self._leave([one for one in workloads if one["kind"] == "StatefulSet"])
        for pod in self.gated():
            self._open_gate(pod)

    def _give_scripts(self) -> None:
        """Put the script that jobs run into the jail: NodeSets of 5.0 have no volume of it."""
        script = self.root() / "opt/slurm_scripts/task_prolog.sh"
        script.parent.mkdir(parents=True)
        script.write_text("#!/bin/sh\n")
        script.chmod(0o755)

    def gated(self) -> tuple[str, ...]:
        """Pods of OpenKruise's StatefulSets."""
        return tuple(
            f"{one['metadata']['name']}-{ordinal}"
            for one in self.left.of("StatefulSet")
            for ordinal in range(one["spec"]["replicas"])
        )

    def status(self) -> None:
        """Write the status that soperator left."""
        kinds = ("SlurmCluster", "NodeSet", "NodeSetPowerState", "MariaDB", "Grant")
        for one in (found for kind in kinds for found in self.left.of(kind)):
            body = json.dumps({"status": one.get("status") or {}})
            self.kubectl(
                *("patch", _kind(one), one["metadata"]["name"], "--type=merge", "-p", body),
                *("--subresource=status", f"--field-manager={MANAGER}"),
            )

    def end_all(self) -> None:
        """Delete the namespaced objects, and free the port of the machine."""
        for kind in ("slurmclusters", "nodesets.slurm.nebius.ai"):
            for one in self.list(kind):
                body = json.dumps({"metadata": {"finalizers": None}})
                self.kubectl("patch", kind, one["metadata"]["name"], "--type=merge", "-p", body)
        every = "slurmclusters,nodesets.slurm.nebius.ai,statefulsets,deployments,services,pods"
        self.kubectl("delete", every, "--all", "--grace-period=0", "--force", "--timeout=120s")

    def pods(self) -> dict[str, tuple[str, int]]:
        """Uid and restarts of each pod of the SlurmCluster that runs."""
        return {
            one["metadata"]["name"]: (one["metadata"]["uid"], restarts(one))
            for one in self.list("pods")
            if one["status"]["phase"] == "Running"
            and one["metadata"].get("labels", {}).get(_INSTANCE) == self.name
        }

    def owner(self, pod: str) -> set[str]:
        """Kinds of the owners of a pod."""
        found = json.loads(self.kubectl("get", "pod", pod, "-o", "json"))
        return {one["kind"] for one in found["metadata"].get("ownerReferences", ())}

    def root(self) -> Path:
        """The jail, as a folder of this machine."""
        claim = json.loads(self.kubectl("get", "pvc", "jail-pvc", "-o", "json"))
        volume = claim["spec"]["volumeName"]
        path = self.node.kubectl("get", "pv", volume, "-o", "jsonpath={.spec.hostPath.path}")
        return Layout(self.node.name).volumes / Path(path).name

    def jail(self) -> dict[str, File]:
        """All files of the jail, by their path."""
        root = self.root()
        return {str(one.relative_to(root)): _file(one) for one in root.rglob("*")}

    def foreign(self) -> Iterator[str]:
        """Objects whose metadata is not that of the capture."""
        for one in (one for one in self.left.objects if one["kind"] not in _UNSERVED):
            made, meta = self.made(one), one["metadata"]
            shown = ("-o", "json", "--show-managed-fields")
            live = json.loads(self.kubectl("get", _kind(made), meta["name"], *shown))["metadata"]
            managers = {
                entry["manager"] for entry in live["managedFields"] if "subresource" not in entry
            }
            owners = [[o["kind"], o["name"]] for o in live.get("ownerReferences", ())]
            theirs = [[o["kind"], o["name"]] for o in meta.get("ownerReferences", ())]
            own = managers - {"kube-controller-manager"} == {manager(one)}
            if not own or owners != theirs or live.get("labels") != made["metadata"].get("labels"):
                yield f"{one['kind']} {meta['name']}"

    def made(self, one: Json) -> Json:
        """An object as it is created."""
        fresh = self.left.fresh(one)
        declares = one["kind"] in ("SlurmCluster", "NodeSet")
        requests = ("resources",) if declares else ("requests",)
        return cast("Json", self._changed(self._with_values(fresh), requests))

    def _leave(self, objects: Iterable[Json]) -> None:
        by_manager: dict[str, list[Json]] = {}
        for one in objects:
            by_manager.setdefault(manager(one), []).append(one)
        for name, every in by_manager.items():
            uids = self._create([self.made(one) for one in every], name)
            for one, uid in zip(every, uids, strict=True):
                self.left.is_now(one, {"metadata": {"uid": uid}})

    def _create(self, objects: list[Json], name: str) -> list[str]:
        """The uids of the objects."""
        options = ("-f", "-", "-o", "jsonpath={.metadata.uid}{'\\n'}")
        said = self.node.kubectl(
            "create", f"--field-manager={name}", *options, stdin=_list(objects)
        )
        return said.split()

    def _priorities(self) -> list[Json]:
        text = json.dumps(self.left.objects)
        names = sorted(set(re.findall(r'"priorityClassName": "([^"]+)"', text)))
        return [
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": 0,
            }
            for name in names
        ]

    def _database(self) -> None:
        spec = self.left.of("MariaDB")[0]["spec"]
        made = mariadb.objects(
            None,
            {spec["database"]: self._password()},
            name=f"{self.name}-acct-db",
            user=spec["username"],
        )
        for one in made:
            one["metadata"]["namespace"] = self.namespace
        self._create(made, "kubectl")

    def _open_gate(self, pod: str) -> None:
        """Set the condition that OpenKruise's controller would set."""
        ready = {"type": "InPlaceUpdateReady", "status": "True"}
        body = json.dumps({"status": {"conditions": [ready]}})
        eventually(
            f"there is {pod}",
            lambda: self.kubectl(
                "patch", "pod", pod, "--subresource=status", "--type=strategic", "-p", body
            ),
            every=0.1,
        )

    def _with_values(self, one: Json) -> Json:
        name = one["metadata"]["name"]
        if name == f"{self.name}-sshd-keys":
            return {**one, "data": _encoded(ssh_host_keys.generate())}
        if name == f"{self.name}-slurmdbd-configs":
            return {**one, "data": _encoded(self._slurmdbd_secret(set(one["data"])))}
        if name == f"{self.name}-slurm-configs" and one["kind"] == "ConfigMap":
            data: dict[str, str] = one["data"]
            file = _CUSTOM[self.version]
            cgroup = re.sub("CgroupPlugin=.*\n", CGROUP_LINES, data["cgroup.conf"])
            more = {file: f"{data[file]}\n{SLURM_LINES}", "cgroup.conf": cgroup}
            return {**one, "data": {**data, **more}}
        if one["kind"] == "SlurmCluster":
            more = {"customSlurmConfig": self.custom, "customCgroupConfig": CGROUP_LINES}
            return {**one, "spec": {**one["spec"], **more}}
        if one["kind"] == "StatefulSet":
            strategy = {"type": "RollingUpdate"}
            spec = {k: v for k, v in one["spec"].items() if k not in _OF_OPENKRUISE}
            spec["updateStrategy"] = strategy
            spec["template"] = {
                **spec["template"],
                "spec": _with_one_volume(spec["template"]["spec"]),
            }
            return {**one, "apiVersion": "apps/v1", "spec": spec}
        if name == f"{self.prefix}slurm-exporter" and one["kind"] == "Deployment":
            return {**one, "spec": {**one["spec"], "replicas": 0}}
        return one

    def _slurmdbd_secret(self, keys: Set[str]) -> dict[str, str]:
        database = {
            "storageHost": f"{self.name}-acct-db",
            "storagePort": "3306",
            "storageUser": "slurm",
            "storagePass": self._password(),
        }
        found = {"slurmdbd.conf": self._slurmdbd_conf(), **database}
        return {key: found[key] for key in sorted(keys)}

    def _password(self) -> str:
        secret = self.left.find("Secret", "mariadb-password")["data"]["password"]
        return base64.b64decode(secret).decode()

    def _slurmdbd_conf(self) -> str:
        node: Json = self.left.of("SlurmCluster")[0]["spec"]["slurmNodes"]["accounting"]
        declared = "".join(
            f"{k[0].upper()}{k[1:]}={v}\n" for k, v in node["slurmdbdConfig"].items()
        )
        return (
            "AuthType=auth/munge\nSlurmUser=root\nLogFile=/dev/null\nPidFile=/var/run/slurmdbd.pid\n"
            "DbdHost=accounting\nDbdPort=6819\nStorageLoc=slurm_acct_db\n"
            "StorageType=accounting_storage/mysql\n"
            f"StoragePass={self._password()}\nStorageUser=slurm\n"
            f"StorageHost={self.name}-acct-db\nStoragePort=3306\n"
            "#\n#REST API settings\nAuthAltTypes=auth/jwt\n"
            f"AuthAltParameters=jwt_key=/var/spool/slurmdbd/jwt_hs256.key\n{declared}"
        )

    def _changed(self, value: Any, requests: tuple[str, ...]) -> Any:
        """With other images and lower requests, and without `procMount: Unmasked`."""
        if isinstance(value, dict):
            fields = cast("Json", value)
            if isinstance(role := self._role(fields.get("repository")), str):
                repository, _, tag = self._roles[role].rpartition(":")
                return {**fields, "repository": repository, "tag": tag}
            return {
                k: _limited(cast("Json", v)) if k in requests else self._changed(v, requests)
                for k, v in fields.items()
                if (k, v) != ("procMount", "Unmasked")
            }
        if isinstance(value, list):
            return [self._changed(one, requests) for one in cast("list[Any]", value)]
        return self._image(value) if isinstance(value, str) else value

    def _image(self, text: str) -> str:
        role = self._role(text)
        return self._roles[role] if role else text

    def _role(self, image: object) -> str | None:
        found = _IMAGE.fullmatch(image) if isinstance(image, str) else None
        return STANDS_FOR.get(found[1]) if found else None

    @property
    def custom(self) -> str:
        """The SlurmCluster's own lines of slurm.conf."""
        declared: str = self.left.of("SlurmCluster")[0]["spec"].get("customSlurmConfig") or ""
        return f"{declared}{SLURM_LINES}"


def _with_one_volume(pod: Json) -> Json:
    """A pod with one volume for each PVC, which all mounts have."""
    first: dict[str, str] = {}
    others: dict[str, str] = {}
    for one in pod["volumes"]:
        claim = one.get("persistentVolumeClaim", {}).get("claimName")
        if claim and first.setdefault(claim, one["name"]) != one["name"]:
            others[one["name"]] = first[claim]
    volumes = [one for one in pod["volumes"] if one["name"] not in others]
    containers = {
        kind: [_with_mounts(one, others) for one in pod[kind]]
        for kind in ("initContainers", "containers")
    }
    return {**pod, "volumes": volumes, **containers}


def _with_mounts(container: Json, others: Mapping[str, str]) -> Json:
    """A container whose mounts are of other volumes."""
    if "volumeMounts" not in container:
        return container
    mounts = [
        {**one, "name": others.get(one["name"], one["name"])} for one in container["volumeMounts"]
    ]
    return {**container, "volumeMounts": mounts}


def _kind(one: Json) -> str:
    """A kind with its version and group, as kubectl takes it."""
    group, _, version = one["apiVersion"].rpartition("/")
    return f"{one['kind']}.{version}.{group}" if group else one["kind"]


def _list(objects: list[Json]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def _limited(amounts: Json) -> Json:
    return {
        name: min(LIMITS[name], amount, key=quantity) if name in LIMITS else amount
        for name, amount in amounts.items()
    }


def _encoded(data: Mapping[str, str]) -> dict[str, str]:
    return {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}


def _file(path: Path) -> File:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        content = str(path.readlink())
    elif stat.S_ISREG(status.st_mode):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
    else:
        content = ""
    return File(status.st_mode, (status.st_uid, status.st_gid), content)


def changed_fields(captured: Any, made: Any, path: str = "") -> Iterator[str]:
    """Paths of fields that differ between a captured object and one that is created."""
    if isinstance(captured, dict) and isinstance(made, dict):
        one, other = cast("Json", captured), cast("Json", made)
        for key in sorted(one.keys() | other.keys()):
            yield from changed_fields(
                one.get(key), other.get(key), f"{path}.{key}" if path else key
            )
    elif isinstance(captured, list) and isinstance(made, list):
        items, others = cast("list[Any]", captured), cast("list[Any]", made)
        if len(items) != len(others):
            yield path
        for item, other in zip(items, others, strict=False):
            yield from changed_fields(item, other, path)
    elif captured != made:
        yield path


def differences(before: Mapping[str, File], after: Mapping[str, File]) -> Iterator[str]:
    """Paths of files that are other ones, new, or gone."""
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            yield path
