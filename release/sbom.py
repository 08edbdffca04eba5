"""A list of the parts of a file of the release, as CycloneDX in JSON."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from cyclonedx.model import bom, component
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

# Its classes are decorated at run time, which hides their parameters from a type checker.
_Bom: Final = cast("Any", bom).Bom
_Component: Final = cast("Any", component).Component
_Type: Final = cast("Any", component).ComponentType


@dataclass(frozen=True, slots=True, order=True)
class Package:
    """One part: `kind` is the type of its package URL, such as deb or pypi."""

    kind: str
    name: str
    version: str
    namespace: str = ""

    @property
    def purl(self) -> PackageURL:
        """Its package URL. Source: github.com/package-url/purl-spec."""
        return PackageURL(self.kind, self.namespace or None, self.name, self.version)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a list is about; `identity` tells two builds of one version apart."""

    name: str
    version: str
    identity: str


def write(path: Path, subject: Subject, packages: Iterable[Package], epoch: int) -> None:
    """Write the list. Its number and time follow from what it is about, not from the run."""
    found = _Bom(
        components=[_component(one) for one in sorted(set(packages))],
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"{subject.name}@{subject.identity}"),
    )
    found.metadata.timestamp = datetime.fromtimestamp(epoch, UTC)
    about = _Component(
        name=subject.name, version=subject.version, type=_Type.APPLICATION, bom_ref=subject.name
    )
    found.metadata.component = about
    found.register_dependency(about, found.components)
    path.write_text(cast("Any", JsonV1Dot6)(found).output_as_string(indent=2), encoding="utf-8")


def _component(one: Package) -> Any:
    purl = one.purl
    return _Component(
        name=one.name, version=one.version, type=_Type.LIBRARY, purl=purl, bom_ref=str(purl)
    )
