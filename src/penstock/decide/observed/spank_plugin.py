"""A SPANK plug-in that plugstack.conf requires and a daemon's image lacks.

slurmd ends at its start then, so its node gets no job. Source: slurmd's log; spank(7), `required`.
"""

from __future__ import annotations

import re
from typing import Final

_MISSING: Final = re.compile(r"Failed to load plugin (\S+\.so)")
_PYXIS: Final = "spank_pyxis.so"


def missing(output: str) -> str:
    """The plug-in that the last output of a daemon names; empty when it names none."""
    found = _MISSING.search(output)
    return found[1] if found else ""


def advice(plugin: str) -> str:
    """The next step, as one sentence without its full stop."""
    optional = "make it optional in plugstack.conf"
    if plugin.endswith(_PYXIS):
        optional += " (SlurmCluster: set spec.plugStackConfig.pyxis.required to false)"
    return f"Use an image that has {plugin}, or {optional}"
