"""Helm with a node of a test: install, upgrade, roll back, uninstall."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import yaml

from penstock.api.kubernetes.meta import Json
from penstock.local.charts import CHARTS, helm
from penstock.local.errors import LocalError
from penstock.local.node import Node

TRIES = 4


class Release:
    """One release in one namespace. Calls raise LocalError with Helm's error output."""

    def __init__(self, node: Node, name: str, namespace: str) -> None:
        self.name = name
        self.namespace = namespace
        self._env = node.env

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        """A command of helm in the release's namespace."""
        return helm(*arguments, "--namespace", self.namespace, stdin=stdin, environment=self._env)

    def upgrade(self, values: Mapping[str, Any], chart: str | Path = "slurm", *options: str) -> str:
        """`helm upgrade --install` with these values."""
        return self(
            "upgrade",
            self.name,
            str(CHARTS / chart),
            *options,
            "--install",
            "--create-namespace",
            "--values",
            "-",
            stdin=yaml.safe_dump(dict(values)),
        )

    def replace(self, values: Mapping[str, Any]) -> str:
        """`helm upgrade --force`, again when a status came between.

        Helm reads an object and replaces the version that it read, so a write of the operator
        between the two is a conflict.
        """
        for _ in range(TRIES):
            try:
                return self.upgrade(values, "slurm", "--force")
            except LocalError as error:
                if "the object has been modified" not in str(error):
                    raise
        return self.upgrade(values, "slurm", "--force")

    def install(self, values: Mapping[str, Any], chart: str | Path) -> str:
        """`helm install` with these values."""
        return self(
            "install",
            self.name,
            str(CHARTS / chart),
            "--create-namespace",
            "--values",
            "-",
            stdin=yaml.safe_dump(dict(values)),
        )

    def rollback(self, revision: int) -> str:
        """`helm rollback`."""
        return self("rollback", self.name, str(revision))

    def uninstall(self) -> str:
        """`helm uninstall`."""
        return self("uninstall", self.name, "--ignore-not-found")

    def revisions(self) -> list[int]:
        """The revisions of `helm history`."""
        told: list[Json] = json.loads(self("history", self.name, "--output", "json"))
        return [cast("int", one["revision"]) for one in told]

    def status(self) -> str:
        """The status by `helm status`, such as deployed."""
        told: Json = json.loads(self("status", self.name, "--output", "json"))
        return told["info"]["status"]
