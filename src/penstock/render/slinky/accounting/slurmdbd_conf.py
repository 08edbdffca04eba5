"""slurmdbd.conf of an Accounting, byte for byte as slurm-operator writes it.

Of two lines with one key Slurm takes the last, so what a user writes in `extraConf` wins; only the
options without which slurmdbd does not work here are joined to the user's once more.
Source: slurmdbd.conf(5).
"""

from __future__ import annotations

from penstock.api.slinky import names
from penstock.api.slinky.accounting import Accounting, StorageConfig
from penstock.render.slinky import auth
from penstock.slurm.conf.document import Document, joined, quoted
from penstock.slurm.conf.lines import EXTRA, text_of
from penstock.slurm.daemons import SLURMDBD_PORT


def slurmdbd_conf(accounting: Accounting, password: str) -> str:
    """The file's text. Raises ConfError for a password that cannot stand in it."""
    sections: list[tuple[str, list[str]]] = [
        ("GENERAL", _general(accounting)),
        ("PLUGINS & PARAMETERS", _plugins(accounting)),
        ("STORAGE", _storage(names.storage_config(accounting), password)),
        ("LOGGING", ["LogFile=/dev/null"]),
        *_extra(accounting),
    ]
    return text_of(sections)


def _general(accounting: Accounting) -> list[str]:
    return [
        f"DbdHost={names.accounting_pod(accounting)}",
        f"DbdPort={SLURMDBD_PORT}",
        "SlurmUser=slurm",
    ]


def _required(accounting: Accounting) -> dict[str, str]:
    jwks = ",jwks=/etc/slurm/jwks.json" if accounting.spec.jwks_key_ref else ""
    return {
        "AuthAltParameters": f"jwt_key=/etc/slurm/jwt.key{jwks}",
        **auth.auth_info(accounting.spec.munge_key_ref),
    }


def _plugins(accounting: Accounting) -> list[str]:
    required = (f"{key}={value}" for key, value in _required(accounting).items())
    kind, _, alternative = auth.conf_lines(accounting.spec.munge_key_ref)
    return [kind, alternative, *required]


def _storage(storage: StorageConfig | None, password: str) -> list[str]:
    lines = ["StorageType=accounting_storage/mysql"]
    if storage is None:
        return lines
    given = {
        "StorageHost": storage.host,
        "StoragePort": str(storage.port),
        "StorageUser": storage.username,
        "StorageLoc": storage.database,
        "StoragePass": password,
    }
    return lines + [f"{key}={quoted(value)}" for key, value in given.items() if value]


def _extra(accounting: Accounting) -> list[tuple[str, list[str]]]:
    """The user's text as it stands, and the required options joined to those it sets."""
    text = accounting.spec.extra_conf.rstrip("\n")
    if not text.strip():
        return []
    merged = joined(Document.parse(text), _required(accounting))
    return [
        (EXTRA, text.split("\n")),
        *([("MERGED CONFIG", merged)] if merged else []),
    ]
