"""Proof of identity: tokens, client certificates and exec plugins, fresh at each request.

Token files of pods are rewritten by the kubelet before they expire, and certificates are
renewed on disk, so files are read again after each change.
Source: Kubernetes documentation, "Authenticating", client-go credential plugins.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

PLUGIN_TIMEOUT = 60.0
"""Seconds an exec plugin may take."""


class CredentialsError(OSError):
    """No credentials could be had; an OSError, as it keeps the server out of reach."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a request carries."""

    headers: Mapping[str, str]
    ssl: ssl.SSLContext | None


class Credentials(Protocol):
    """A source of Access."""

    async def access(self) -> Access:
        """Current headers and TLS context. Raises CredentialsError or OSError."""
        ...

    def expire(self) -> None:
        """Discard what `access` returned: the server rejected it."""
        ...


@dataclass(frozen=True, slots=True)
class Material:
    """Where each part comes from: a file, text (base64 for certificates), or nowhere."""

    ca: Path | str | None = None
    certificate: Path | str | None = None
    key: Path | str | None = None
    token: Path | str | None = None
    verify: bool = True


class FileCredentials:
    """Token and certificates of files or inline data, read again when a file changed."""

    def __init__(self, material: Material) -> None:
        self._material = material
        self._stamp: tuple[int, ...] | None = None
        self._access: Access | None = None

    async def access(self) -> Access:
        """Headers and TLS from the files as they are now."""
        stamp = _stamp(self._material)
        if self._access is None or stamp != self._stamp:
            self._access = build(self._material)
            self._stamp = stamp
        return self._access

    def expire(self) -> None:
        """Read the files again at the next request."""
        self._access = None


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints an ExecCredential."""

    api_version: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


class _ExecStatus(Struct, frozen=True, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


class _ExecCredential(Struct, frozen=True, rename="camel"):
    status: _ExecStatus


class ExecCredentials:
    """Credentials of an exec plugin, kept until they expire or the server rejects them."""

    def __init__(self, material: Material, plugin: ExecPlugin) -> None:
        self._material = material
        self._plugin = plugin
        self._access: Access | None = None
        self._expires: datetime | None = None
        self._lock = asyncio.Lock()

    async def access(self) -> Access:
        """Headers and TLS of the plugin's last answer; runs it when there is none."""
        async with self._lock:
            if self._expires is not None and datetime.now(UTC) >= self._expires:
                self._access = None
            if self._access is None:
                status = await _run(self._plugin)
                self._access = build(_merged(self._material, status))
                expires = status.expiration_timestamp
                # Ahead of time, so that a request under way does not meet the end.
                self._expires = expires - timedelta(seconds=10) if expires else None
            return self._access

    def expire(self) -> None:
        """Run the plugin again at the next request."""
        self._access = None


def build(material: Material) -> Access:
    """Read what `material` names. Raises OSError, also for a certificate that is none."""
    token = material.token
    if isinstance(token, Path):
        token = token.read_text().strip()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Access(headers, _tls(material))


def _tls(material: Material) -> ssl.SSLContext:
    authority = material.ca
    context = ssl.create_default_context(
        cafile=str(authority) if isinstance(authority, Path) else None,
        cadata=_decoded(authority) if isinstance(authority, str) else None,
    )
    # Python 3.13 turned this on; CAs without keyUsage or key identifiers, as several
    # distributions make them, fail with it. No other Kubernetes client asks for it.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not material.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if material.certificate is not None and material.key is not None:
        _load_chain(context, material.certificate, material.key)
    return context


def _load_chain(context: ssl.SSLContext, certificate: Path | str, key: Path | str) -> None:
    # OpenSSL takes a chain from files only; inline data passes through a private folder.
    with tempfile.TemporaryDirectory() as folder:
        context.load_cert_chain(
            _as_file(certificate, Path(folder, "crt")), _as_file(key, Path(folder, "key"))
        )


def _as_file(source: Path | str, path: Path) -> Path:
    if isinstance(source, Path):
        return source
    path.touch(mode=0o600)
    path.write_text(_decoded(source))
    return path


def _decoded(text: str) -> str:
    """PEM text of base64 data; exec plugins give PEM itself."""
    return text if text.lstrip().startswith("-----BEGIN") else base64.b64decode(text).decode()


def _stamp(material: Material) -> tuple[int, ...]:
    sources = (material.ca, material.certificate, material.key, material.token)
    return tuple(s.stat().st_mtime_ns for s in sources if isinstance(s, Path))


def _merged(material: Material, status: _ExecStatus) -> Material:
    return replace(
        material,
        token=status.token or material.token,
        certificate=status.client_certificate_data or material.certificate,
        key=status.client_key_data or material.key,
    )


async def _run(plugin: ExecPlugin) -> _ExecStatus:
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential"}
    info_text = msgspec.json.encode({**info, "spec": {"interactive": False}}).decode()
    process = await asyncio.create_subprocess_exec(
        *plugin.command,
        env={**os.environ, **plugin.environment, "KUBERNETES_EXEC_INFO": info_text},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PLUGIN_TIMEOUT):
            out, err = await process.communicate()
    except TimeoutError as error:
        raise CredentialsError(f"{plugin.command[0]} took over {PLUGIN_TIMEOUT} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        words = err.decode(errors="replace").strip()
        raise CredentialsError(f"{plugin.command[0]} ended with {process.returncode}: {words}")
    try:
        return msgspec.json.decode(out, type=_ExecCredential).status
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise CredentialsError(f"{plugin.command[0]} printed no ExecCredential") from error
