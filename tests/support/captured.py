"""Objects that slurm-operator 1.3 left on a real cluster, brought into another API server.

The files of `tests/fixtures/upstream` were read back from a kube-apiserver. What an API server
gives each new object (uid, addresses, ownership of fields) is left to it; what was taken out of the
files (values of Secrets) is made up, and the hashes over it are those of the new values.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from penstock.api.kubernetes.meta import Json
from penstock.base import yaml_text
from penstock.simulation.slurm_operator import Upstream

FOLDER = Path(__file__).parents[1] / "fixtures" / "upstream"
KINDS = ("Controller", "Accounting", "RestApi", "LoginSet", "NodeSet")
CHART_MADE = (*KINDS, "slurm-auth-slurm", "slurm-auth-jwt", "slurm-sssd-conf", "slurm-config-extra")
"""Kinds, and names of others, that the chart made; the rest is the operator's."""
NODE = "heldout"
"""The one Kubernetes node. The Slurm cluster was called so as well."""
SSSD_CONF = """[sssd]
services = nss,pam
domains = DEFAULT

[nss]
filter_groups = root,slurm
filter_users = root,slurm

[pam]

[domain/DEFAULT]
id_provider = proxy
proxy_lib_name = files
auth_provider = proxy
proxy_pam_target = sssd-shadowutils
"""
"""Of the chart's defaults; its hash is on the pods."""
_HOSTS = re.compile(r"\b(slurm-controller|slurm-controller-internal|slurm-workers-slurm)\.slurm\b")
_BY_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


@lru_cache(maxsize=2)
def _files(which: str) -> str:
    found = [
        one
        for path in sorted((FOLDER / which).glob("*.yaml"))
        for one in yaml_text.document(path.read_text())["items"]
    ]
    return json.dumps(found)


def captured(which: str) -> list[Json]:
    """The objects of a folder, `running` or `accounting`, as they were read back."""
    return cast("list[Json]", json.loads(_files(which)))


def chart_made(one: Json) -> bool:
    """Whether the chart made an object."""
    return one["kind"] in CHART_MADE or one["metadata"]["name"] in CHART_MADE


class Moved:
    """The objects of a folder for a namespace and a Kubernetes node of another cluster."""

    def __init__(self, which: str, namespace: str, node: str) -> None:
        self.namespace = namespace
        self.node = node
        self._texts: dict[str, str] = {}
        every = captured(which)
        for one in every:
            if one["kind"] == "Secret":
                self._fill(one, every)
        for one in every:
            if (one["kind"], one["metadata"]["name"]) == ("Secret", "slurm-accounting"):
                made = Upstream(every).made()
                one["data"] = next(o["data"] for o in made if _same(o, one))
        self.objects = [self._moved(one) for one in every]

    def of(self, kind: str) -> list[Json]:
        """The objects of a kind."""
        return [one for one in self.objects if one["kind"] == kind]

    def find(self, kind: str, name: str) -> Json:
        """One object."""
        return next(one for one in self.of(kind) if one["metadata"]["name"] == name)

    def by_chart(self) -> list[Json]:
        """What the chart made, and the password of a database, in a form that can be created."""
        return [self.fresh(one) for one in self.objects if chart_made(one)]

    def fresh(self, one: Json) -> Json:
        """An object as it can be created."""
        text = json.dumps(one)
        for old, new in self._texts.items():
            text = text.replace(old, new)
        made: Json = json.loads(text)
        made.pop("status", None)
        for key in _BY_SERVER:
            made["metadata"].pop(key, None)
        if made["kind"] == "Service":
            for key in ("clusterIP", "clusterIPs"):
                if made["spec"].get(key) not in ("None", ["None"]):
                    made["spec"].pop(key, None)
        return made

    def is_now(self, old: Json, live: Json) -> None:
        """Have owner references name the live object from here on."""
        self._texts[old["metadata"]["uid"]] = live["metadata"]["uid"]

    def _fill(self, one: Json, every: list[Json]) -> None:
        """Values for a Secret; hashes of them instead of those that were there."""
        name, data = one["metadata"]["name"], cast("dict[str, str]", one["data"])
        for key in data:
            value = {"sssd.conf": SSSD_CONF}.get(key, f"{name}-{key}")
            data[key] = base64.b64encode(value.encode()).decode()
        joined = b"".join(base64.b64decode(data[key]) for key in sorted(data))
        mark = {
            "slurm-auth-slurm": "slinky.slurm.net/slurm-key-hash",
            "slurm-auth-jwt": "slinky.slurm.net/jwt-key-hash",
            "slurm-login-slinky-ssh-host-keys": "slinky.slurm.net/ssh-host-keys-hash",
        }.get(name)
        for pod in every if mark else ():
            for found in _annotated(pod, mark or ""):
                self._texts[found] = hashlib.sha256(joined).hexdigest()

    def _moved(self, one: Json) -> Json:
        text = _HOSTS.sub(rf"\1.{self.namespace}", json.dumps(one))
        moved: Json = json.loads(text)
        moved["metadata"]["namespace"] = self.namespace
        marks: Json = moved["metadata"].get("annotations") or {}
        if "meta.helm.sh/release-namespace" in marks:
            marks["meta.helm.sh/release-namespace"] = self.namespace
        if one["kind"] == "Pod":
            moved["spec"], labels = _renamed(moved["spec"], self.node), moved["metadata"]["labels"]
            moved["metadata"]["labels"] = _renamed(labels, self.node)
        return moved


def _same(one: Json, other: Json) -> bool:
    return (one["kind"], one["metadata"]["name"]) == (other["kind"], other["metadata"]["name"])


def _renamed(value: Any, node: str) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(one, node) for key, one in cast("Json", value).items()}
    if isinstance(value, list):
        return [_renamed(one, node) for one in cast("list[Any]", value)]
    return node if value == NODE else value


def _annotated(value: Any, key: str) -> set[str]:
    """Values of an annotation anywhere in an object."""
    if isinstance(value, dict):
        fields = cast("Json", value)
        own = {fields[key]} if isinstance(fields.get(key), str) else set[str]()
        return own.union(*(_annotated(one, key) for one in fields.values()))
    if isinstance(value, list):
        return set[str]().union(*(_annotated(one, key) for one in cast("list[Any]", value)))
    return set()
