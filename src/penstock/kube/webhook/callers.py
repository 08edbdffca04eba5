"""Who may ask webhooks: everybody, or holders of a client certificate of some authorities.

An API server sends a client certificate if its AdmissionConfiguration names one.
Source: Kubernetes documentation, "Dynamic Admission Control", Authenticate apiservers.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class Callers:
    """Callers that are served."""

    authorities: str = ""
    """File with certificates (PEM) of the authorities; empty: no certificate is asked for."""
    names: tuple[str, ...] = ()
    """Common names or DNS names, one of which the certificate has; empty: any."""

    def require(self, context: ssl.SSLContext) -> None:
        """Let a server's context ask for certificates.

        Raises OSError, but no ssl.SSLError, for a file without certificates: nobody is served then.
        """
        if not self.authorities:
            return
        text = Path(self.authorities).read_text(encoding="ascii", errors="ignore")
        try:
            context.load_verify_locations(cadata=text)
        except (ssl.SSLError, ValueError) as error:
            raise OSError(f"{self.authorities} has no certificates (PEM): {error}") from error
        context.verify_mode = ssl.CERT_REQUIRED

    def admit(self, certificate: Mapping[str, Any] | None) -> bool:
        """Whether a caller is served, by its verified certificate as `getpeercert` returns it."""
        if not self.authorities:
            return True
        return bool(certificate) and (
            not self.names or not _names(certificate).isdisjoint(self.names)
        )


def _names(certificate: Mapping[str, Any]) -> frozenset[str]:
    subject = cast("tuple[tuple[tuple[str, str], ...], ...]", certificate.get("subject", ()))
    other = cast("tuple[tuple[str, str], ...]", certificate.get("subjectAltName", ()))
    common = (value for parts in subject for key, value in parts if key == "commonName")
    return frozenset((*common, *(value for kind, value in other if kind == "DNS")))
