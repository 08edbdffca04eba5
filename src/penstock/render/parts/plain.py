"""Typed parts of an object as the API server returns them."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.api.kubernetes.meta import Json, KubeStruct


def plain(value: KubeStruct) -> Json:
    """The fields of a part, as JSON decodes them.

    A tuple in a manifest would differ from the list of the live object at each comparison.
    """
    found: Any = msgspec.json.decode(msgspec.json.encode(value))
    return found
