"""Check of the JWKS file of external token issuers before Slurm gets it."""

from __future__ import annotations

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.spec_parts import ConfigMapKeySelector
from penstock.catalog.reasons.keys import KeyReason
from penstock.catalog.reasons.object import ObjectReason


def finding(ref: ConfigMapKeySelector, namespace: str, text: str | None) -> Finding | None:
    """Return the error of the file; None when it is valid.

    `text` is its content with surrogates for bytes that are not UTF-8, None when the file is
    absent. A JWKS is JSON, which is UTF-8. Source: RFC 7517, RFC 8259.
    """
    if text is None:
        return Finding(
            False,
            ObjectReason.CONFIG_MAP_NOT_FOUND,
            f"spec.jwksKeyRef: there is no ConfigMap {ref.name} with a key {ref.key} in "
            f"namespace {namespace}. Create it or remove the reference",
        )
    if is_utf8(text):
        return None
    return Finding(
        False,
        KeyReason.JWKS_UNREADABLE,
        f"spec.jwksKeyRef: key {ref.key} of ConfigMap {ref.name} is not UTF-8, which a JWKS file "
        f"has to be. Write it again, such as: kubectl create configmap {ref.name} "
        f"-n {namespace} --from-file={ref.key}",
    )


def is_utf8(text: str) -> bool:
    """Whether a text has no surrogates, which stand for bytes that are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
