"""Where the images of an object's pods are declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.api.kubernetes.meta import Json


@dataclass(frozen=True, slots=True)
class ImageSources:
    """What a message about an image that cannot be pulled has to name.

    `namespace` is that of the pods. `template` is the declared pod spec, whose containers may name
    images, and `fields` are the object's own fields for containers, the daemon's first. `by_chart`
    means that a Helm chart wrote the object.
    """

    namespace: str
    template: Json
    fields: Mapping[str, Json] = field(default_factory=dict[str, Json])
    by_chart: bool = False
