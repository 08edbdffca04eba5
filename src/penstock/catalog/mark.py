"""The form of an annotation, label or finalizer, and who writes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

OPERATOR: Final = "operator"
USER: Final = "user"
OTHERS: Final = "others"
"""Kubernetes, Helm, kubectl or another operator."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A key on objects. It is API and never changes.

    `on` names the kinds of objects, `writer` who writes it; the operator reads those of others.
    """

    key: str
    kind: Literal["annotation", "label", "finalizer", "taint", "pod condition"]
    on: str
    writer: str
    meaning: str
