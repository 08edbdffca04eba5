"""Fields that are written into a new object, though its user left them out.

Only what is derived from the object alone and cannot change while it lives, and only what would be
taken all the same if nothing were written: so nothing depends on whether a webhook was asked.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.validation import CLUSTER_NAME_LIMIT


def controller_defaults(obj: Controller) -> Mapping[str, str]:
    """The ClusterName that a new Controller would be given anyway."""
    spec, name = obj.spec, names.cluster_name(obj)
    # An external cluster was named by somebody else, so a guess must not be stored.
    known = spec.cluster_name or spec.external or not obj.metadata.name
    # A name that is too long is rejected, with the reason for its length.
    if known or len(name) > CLUSTER_NAME_LIMIT:
        return {}
    return {"clusterName": name}
