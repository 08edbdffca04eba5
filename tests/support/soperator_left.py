"""Objects that the real soperator left, brought into another API server.

The files of `tests/fixtures/nebius/left` were read back from a kube-apiserver while soperator ran.
What an API server gives each new object (uid, addresses, ownership of fields) is left to it. Values
of Secrets and texts of scripts were taken out of the files and are made up. Nothing is rendered.
"""

from __future__ import annotations

import base64
import json
import re
from functools import lru_cache
from pathlib import Path
from typing import cast

from penstock.api.kubernetes.meta import Json
from penstock.base import yaml_text

FOLDER = Path(__file__).parents[1] / "fixtures" / "nebius" / "left"
MANAGER = "slurm_operator"
"""Field manager of soperator."""
NODE_LABEL = {"nebius.com/node-group-id": "node-group-id-here"}
"""By which its pods select Kubernetes nodes."""
NAMES = {"1.23": "correct-cpu-cluster", "5.0": "soperator"}
"""The SlurmCluster of each version, and its namespace."""
WORKERS = {"1.23": ("worker",), "5.0": ("worker-cpu", "worker-eph")}
"""StatefulSets of workers."""
_BY_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")
_FIRST = ("SlurmCluster", "NodeSet", "PersistentVolumeClaim", "Secret", "ConfigMap", "Job")
_AFTER = ('"', r"\\n", r"\.svc", "-(controller|login|accounting|rest)-[0-9]")
"""Regular expressions of what follows the name in JSON."""
_PATHS = {"v1": "/api/v1"}
_PLURALS = {"MariaDB": "mariadbs", "ResourceDistribution": "resourcedistributions"}


@lru_cache(maxsize=2)
def _text(version: str) -> str:
    every = yaml_text.documents((FOLDER / f"{version}.yaml").read_text())
    return json.dumps([one for one in every if one])


class SoperatorObjects:
    """The objects of a version.

    `name` is that of the SlurmCluster and of its namespace: that of the capture unless it is given.
    """

    def __init__(self, version: str, name: str = "") -> None:
        self.version = version
        self.name = name or NAMES[version]
        self._uids: dict[str, str] = {}
        found = cast("list[Json]", json.loads(_renamed(version, self.name)))
        found.sort(key=lambda one: _FIRST.index(one["kind"]) if one["kind"] in _FIRST else 99)
        self.objects = [_filled(one) for one in found]

    def of(self, kind: str) -> list[Json]:
        """The objects of a kind."""
        return [one for one in self.objects if one["kind"] == kind]

    def find(self, kind: str, name: str) -> Json:
        """One object."""
        return next(one for one in self.of(kind) if one["metadata"]["name"] == name)

    def fresh(self, one: Json) -> Json:
        """An object as it can be created; owner references name the live objects."""
        made: Json = json.loads(json.dumps(one))
        made.pop("status", None)
        meta = made["metadata"]
        for key in _BY_SERVER:
            meta.pop(key, None)
        meta.pop("finalizers", None)
        for owner in meta.get("ownerReferences") or ():
            owner["uid"] = self._uids.get(owner["uid"], owner["uid"])
        if made["kind"] == "Service":
            for key in ("clusterIP", "clusterIPs"):
                if made["spec"].get(key) not in ("None", ["None"]):
                    made["spec"].pop(key, None)
        if made["kind"] == "Job":
            made["spec"].pop("selector", None)
            made["spec"].pop("manualSelector", None)
            labels = made["spec"]["template"]["metadata"]["labels"]
            for key in [key for key in labels if key.endswith(("controller-uid", "job-name"))]:
                del labels[key]
        return made

    def is_now(self, old: Json, live: Json) -> None:
        """Have owner references name the live object from here on."""
        self._uids[old["metadata"]["uid"]] = live["metadata"]["uid"]


def _renamed(version: str, name: str) -> str:
    """The text of the objects, with another name wherever it is the cluster's or begins with it."""
    text, old = _text(version), NAMES[version]
    if name == old:
        return text
    every = {one["metadata"]["name"] for one in cast("list[Json]", json.loads(text))}
    own = sorted((one.removeprefix(old) for one in every if one.startswith(f"{old}-")), key=len)
    after = "|".join([*map(re.escape, reversed(own)), *_AFTER, re.escape(f".{old}")])
    begins = r"(?:(?<![A-Za-z0-9_-])|(?<=\\n))"
    return re.sub(rf"{begins}{re.escape(old)}(?={after})", name, text)


def manager(one: Json) -> str:
    """The field manager that wrote an object's spec."""
    entries: list[Json] = one["metadata"].get("managedFields") or [{"manager": MANAGER}]
    return str(next(e["manager"] for e in entries if not e.get("subresource")))


def path_of(one: Json) -> str:
    """The URL path of the collection of an object's kind, without its namespace."""
    version = one["apiVersion"]
    return _PATHS.get(version, f"/apis/{version}")


def plural_of(one: Json) -> str:
    """The plural of its kind."""
    return _PLURALS.get(one["kind"], f"{one['kind'].lower()}s")


def _filled(one: Json) -> Json:
    """With values for what was taken out."""
    given: dict[str, str] = one.get("data") or {}
    if one["kind"] == "Secret":
        name = one["metadata"]["name"]
        return {**one, "data": {key: _secret(name, key, size) for key, size in given.items()}}
    if one["kind"] == "ConfigMap":
        data = {
            key: f"#!/bin/sh\n# {key}\n" if value.startswith("<script") else value
            for key, value in given.items()
        }
        return {**one, "data": data}
    return one


def _secret(name: str, key: str, size: str) -> str:
    """A value of as many bytes as the original's, which the file has as `<n bytes>`."""
    count = int(size.strip("<>").split()[0])
    return base64.b64encode((f"{name}-{key}-" * count)[:count].encode()).decode()
