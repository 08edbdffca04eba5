"""Annotations, labels, finalizers, taints and pod conditions."""

from __future__ import annotations

from penstock.catalog.marks import DOMAINS
from reference.page import Page, code, table


def page() -> Page:
    """A table for each domain."""
    parts = [
        "For everyone who sets or reads them. *Writer* is who writes a key: `user` are the ones "
        "that you set. Hashes are for comparison only.\n"
    ]
    for domain, marks in DOMAINS.items():
        rows = sorted(marks, key=lambda one: (one.writer != "user", one.kind))
        parts += [
            f"## {domain}\n",
            table(
                ("Key", "Is", "On", "Writer", "Meaning"),
                ((code(one.key), one.kind, one.on, one.writer, one.meaning) for one in rows),
            ),
            "",
        ]
    return Page(
        "annotations",
        "Annotations, labels and finalizers",
        "annotations, labels, finalizers and taints",
        "\n".join(parts),
    )
