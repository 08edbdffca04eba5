"""Where the objects of `slinky.slurm.net` declare the images of their pods."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.api.cluster.labels import is_from_chart
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.loginset import LoginSet
from penstock.api.slinky.nodeset import NodeSet
from penstock.api.slinky.restapi import RestApi
from penstock.model.image_sources import ImageSources

Staffed = Controller | NodeSet | LoginSet | RestApi | Accounting
"""Kinds that have pods."""


def image_sources(obj: Staffed) -> ImageSources:
    """Where an object declares the images of its pods."""
    return ImageSources(
        namespace=obj.metadata.namespace,
        template=obj.spec.template.spec,
        fields=_fields(obj),
        by_chart=is_from_chart(obj.metadata.labels),
    )


def _fields(obj: Staffed) -> Mapping[str, Json]:
    """Fields of the kind for its containers, the daemon's first."""
    if isinstance(obj, NodeSet):
        return {"slurmd": obj.spec.slurmd, "logfile": obj.spec.logfile}
    if isinstance(obj, Controller):
        found = {"slurmctld": obj.spec.slurmctld, "reconfigure": obj.spec.reconfigure}
        return {**found, "logfile": obj.spec.logfile}
    if isinstance(obj, LoginSet):
        return {"login": obj.spec.login, "initconf": obj.spec.initconf}
    if isinstance(obj, RestApi):
        return {"slurmrestd": obj.spec.slurmrestd}
    return {"slurmdbd": obj.spec.slurmdbd}
