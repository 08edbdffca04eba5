"""What is written into an object when it is made, though its user left it out.

Only what is derived from the object alone and cannot change while it lives, and only what would be
taken all the same if nothing were written: so nothing depends on whether a webhook was asked.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.api.kubernetes.meta import KubeObject
from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.validation import CLUSTER_NAME_LIMIT


def defaults(obj: KubeObject) -> Mapping[str, str]:
    """Fields of the spec, by their names in JSON, that a new object is to have as well."""
    match obj:
        case Controller():
            spec, name = obj.spec, names.cluster_name(obj)
            # The one outside was named by somebody else, so a guess is not to be held on to.
            known = spec.cluster_name or spec.external or not obj.metadata.name
            # One that is too long is refused in words that say why it is that long.
            if known or len(name) > CLUSTER_NAME_LIMIT:
                return {}
            return {"clusterName": name}
        case _:
            return {}
