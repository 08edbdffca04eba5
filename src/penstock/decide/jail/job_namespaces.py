"""Whether slurm.conf gives jobs namespaces of their own, which steps in a jail cannot join."""

from __future__ import annotations

from typing import Final

from penstock.slurm.conf.document import Document

KEYS: Final = ("NamespaceType", "JobContainerType")
"""The key, and its name before Slurm 25.11, which is still read."""
_NONE: Final = frozenset({"", "none", "namespace/none", "job_container/none"})


def unfit(slurm_conf: str) -> str:
    """Return why no step would run in a jail; empty when steps do.

    slurmstepd enters the jail before it joins the job's namespace, so it does not find that. A
    trial start of slurmctld does not show it. Seen with namespace/tmpfs of Slurm 26.05.
    """
    conf = Document.parse(slurm_conf)
    for key in KEYS:
        value = (conf.get(key) or "").strip()
        if value.lower() not in _NONE:
            return (
                f"{key}={value} does not work in a jail, as steps enter the jail before they join "
                f"the job's namespace: each would fail. Take {key} out of spec.customSlurmConfig"
            )
    return ""
