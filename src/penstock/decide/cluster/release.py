"""Which releases of Slurm may follow which, and what a release does not know."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.api.kubernetes.conditions import Finding
from penstock.catalog.reasons.configuration import ConfigReason
from penstock.decide.config.conditions import VALID
from penstock.slurm.conf.apply_method_table import since
from penstock.slurm.conf.document import Document
from penstock.slurm.conf.includes import SLURM_CONF, included
from penstock.slurm.versions import Version

REFUSED = ConfigReason.VERSION_REFUSED


def findings(why: str, *, running: bool) -> list[Finding]:
    """Return the condition of a release of slurmctld that is not started."""
    if not why:
        return []
    kept = "slurmctld keeps its image" if running else "slurmctld is not started"
    return [Finding(False, REFUSED, f"spec.slurmctld.image: {why}. {kept}")]


def trial(slurmctld: Version | None, tries: Version | None) -> list[Finding]:
    """Return a warning when a trial start runs another release than slurmctld."""
    if slurmctld is None or tries is None or slurmctld == tries:
        return []
    message = (
        f"spec.reconfigure.image has Slurm {tries} and slurmctld {slurmctld}: changed files are "
        "not tried before slurmctld reads them. Leave the image out to have slurmctld's"
    )
    return [Finding(True, ConfigReason.TRIAL_IMAGE_DIFFERS, message)]


def unknown(files: Mapping[str, str], version: Version | None) -> tuple[str, ...]:
    """Keys of slurm.conf and cgroup.conf that a release does not know, each with its line.

    Slurm does not start on a key that it does not know. Files that slurm.conf includes have its
    keys.
    """
    found: list[str] = []
    parts = included(files)
    for file in sorted(files) if version is not None else ():
        read_as = SLURM_CONF if file in parts else file
        for number, line in enumerate(Document.parse(files[file]).lines, 1):
            for setting in line.settings:
                first = line.settings[0].key if setting is not line.settings[0] else ""
                came = since(read_as, setting.key, first)
                if came is not None and version is not None and version < came:
                    named = f"{setting.key} (line {number} of {file}, known since {came})"
                    found.append(named)
    return tuple(dict.fromkeys(found))


def unknown_words(keys: tuple[str, ...], version: Version | None) -> str:
    """Return the message about keys that a release does not have; empty for none."""
    if not keys:
        return ""
    return f"Slurm {version} does not know {', '.join(keys)}: remove it, or use a later image"


def unknown_findings(keys: tuple[str, ...], version: Version | None) -> list[Finding]:
    """Return the condition before slurmctld's first start, while no configuration is written.

    ConfigApplied is not set: it shows that slurmctld has served (`has_worked`).
    """
    words = unknown_words(keys, version)
    return [Finding(False, ConfigReason.REFUSED, words, type=VALID)] if words else []
