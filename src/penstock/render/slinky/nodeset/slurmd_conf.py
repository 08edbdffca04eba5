"""Node parameters with which a worker registers: `slurmd --conf`.

Source: slurmd(8), slurm.conf(5) NODE CONFIGURATION.
"""

from __future__ import annotations

from penstock.api.slinky import names
from penstock.api.slinky.nodeset import NodeSet
from penstock.slurm import daemons

_FEATURES = frozenset({"feature", "features"})


def node_conf(nodeset: NodeSet) -> str:
    """`Key=Value` words, sorted: the NodeSet's feature and the words of its extraConf.

    A repeated key joins its values with commas. A word that is not `Key=Value` is left out (the
    validation names it); so are comment and extra, which go to slurmctld. The topology is not
    among them: images add it from the environment, since an empty `Topology=` would swallow the
    word after it. Quotes are dropped: the images' entrypoint takes the whole apart at quotes and
    blanks.
    """
    values: dict[str, list[str]] = {}
    spelling: dict[str, str] = {}
    features = {names.partition_name(nodeset)}
    for word in nodeset.spec.extra_conf.replace("'", "").replace('"', "").split():
        key, equals, value = word.partition("=")
        if not equals or not key or not value or key.lower() in daemons.NOT_FOR_SLURMD:
            continue
        if key.lower() in _FEATURES:
            features.update(feature for feature in value.split(",") if feature)
        else:
            values.setdefault(spelling.setdefault(key.lower(), key), []).append(value)
    values["Features"] = sorted(features)
    return " ".join(f"{key}={','.join(values[key])}" for key in sorted(values))
