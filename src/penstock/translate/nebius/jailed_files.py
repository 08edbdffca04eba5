"""From a JailedConfig and its ConfigMap to files of the jail."""

from __future__ import annotations

import base64
import binascii

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import ConfigMap
from penstock.api.nebius.group import JAILED_CONFIG
from penstock.api.nebius.jailed_config import JailedConfig, KeyToPath
from penstock.api.nebius.labels import JAILED_AGGREGATION
from penstock.base.text import list_some
from penstock.catalog.reasons.jailed_config import JailedConfigReason
from penstock.catalog.reasons.object import ObjectReason
from penstock.model.jail_file import DEFAULT_MODE, Fault, JailedFiles, JailFile

ALL_KEYS_FOLDER = "/etc/slurm"
"""Where the keys of a ConfigMap go when `items` is empty: no key is an absolute path."""
RECONFIGURE = "Reconfigure"


def instance_of(config: JailedConfig) -> str:
    """The SlurmCluster that a JailedConfig belongs to, by its label."""
    return config.metadata.labels.get(app_labels.APP_INSTANCE, "")


def jailed_files(config: JailedConfig, config_map: ConfigMap | None) -> JailedFiles:
    """What a JailedConfig declares, with the content that its ConfigMap has."""
    spec, meta = config.spec, config.metadata
    files: tuple[JailFile, ...] = ()
    fault = _fault(config)
    if fault is None and config_map is None:
        fault = Fault(
            JailedConfigReason.NOT_FOUND,
            f"ConfigMap {spec.config_map.name} does not exist; create it",
        )
    elif fault is None and config_map is not None:
        found = content(config_map)
        items = spec.items or tuple(
            KeyToPath(key, f"{ALL_KEYS_FOLDER}/{key}") for key in sorted(found)
        )
        missing = sorted({item.key for item in items if item.key not in found})
        if missing:
            words = f"ConfigMap {spec.config_map.name} has no key {list_some(missing)}"
            fault = Fault(
                JailedConfigReason.KEY_NOT_FOUND, f"{words}; add it, or remove it from spec.items"
            )
        else:
            files = tuple(JailFile(i.path, found[i.key], _mode(config, i)) for i in items)
    return JailedFiles(
        name=meta.name,
        created=meta.creation_timestamp or "",
        group=meta.labels.get(JAILED_AGGREGATION),
        config_map=spec.config_map.name,
        files=files,
        reconfigures=RECONFIGURE in spec.update_actions,
        fault=fault,
    )


def content(config_map: ConfigMap) -> dict[str, bytes]:
    """All files of a ConfigMap. Binary values that are not base64 are left out."""
    found: dict[str, bytes] = {}
    for key, value in (config_map.binary_data or {}).items():
        try:
            found[key] = base64.b64decode(value, validate=True)
        except binascii.Error:
            continue
    texts = (config_map.data or {}).items()
    return found | {key: text.encode(errors="surrogateescape") for key, text in texts}


def _fault(config: JailedConfig) -> Fault | None:
    found = [f"{one.path}: {one.message}" for one in JAILED_CONFIG.problems(config)]
    return Fault(ObjectReason.INVALID, "; ".join(found)) if found else None


def _mode(config: JailedConfig, item: KeyToPath) -> int:
    for mode in (item.mode, config.spec.default_mode):
        if mode is not None:
            return mode
    return DEFAULT_MODE
