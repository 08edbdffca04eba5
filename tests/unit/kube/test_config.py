from __future__ import annotations

import base64
import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from prometheus_client import CollectorRegistry

from penstock.api.kubernetes.kinds import CONFIG_MAPS
from penstock.kube import (
    Client,
    Config,
    ConfigError,
    HttpTransport,
    from_kubeconfig,
    in_cluster,
    load,
    serve,
)
from penstock.kube.client.credentials import CredentialsError, FileCredentials, Material
from unit.kube.fake_api import FakeApi, Fault, served


def kubeconfig(folder: Path, user: dict[str, Any], cluster: dict[str, Any] | None = None) -> Path:
    path = folder / "config"
    document = {
        "current-context": "one",
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "slurm"}},
            {"name": "two", "context": {"cluster": "d", "user": "u"}},
        ],
        "clusters": [
            {"name": "c", "cluster": {"server": "https://c:6443", **(cluster or {})}},
            {"name": "d", "cluster": {"server": "https://d:6443"}},
        ],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


def certificate() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "penstock")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.public_bytes(pem), private


async def token_of(config: Config) -> str | None:
    return (await config.credentials.access()).headers.get("Authorization")


async def test_a_kubeconfigs_contexts_name_server_user_and_namespace(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {"token": "secret"})
    config = from_kubeconfig([path])
    assert (config.server, config.namespace) == ("https://c:6443", "slurm")
    assert await token_of(config) == "Bearer secret"
    assert from_kubeconfig([path], "two").server == "https://d:6443"


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {})
    with pytest.raises(ConfigError, match="no context 'three'"):
        from_kubeconfig([path], "three")
    with pytest.raises(ConfigError, match="no kubeconfig at"):
        from_kubeconfig([tmp_path / "none"])
    with pytest.raises(ConfigError, match="not in a pod"):
        in_cluster(tmp_path, {})


async def test_of_several_files_the_first_that_names_a_thing_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    first = kubeconfig(tmp_path / "a", {"token": "one"})
    second = kubeconfig(tmp_path, {"token": "two"})
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/none{os.pathsep}{first}{os.pathsep}{second}")
    assert await token_of(load()) == "Bearer one"
    assert await token_of(load(second)) == "Bearer two"


async def test_client_certificates_are_taken_from_data_and_from_files(tmp_path: Path) -> None:
    crt, key = certificate()
    (tmp_path / "crt").write_bytes(crt)
    (tmp_path / "key").write_bytes(key)
    for user in (
        {"client-certificate": "crt", "client-key": "key"},
        {
            "client-certificate-data": base64.b64encode(crt).decode(),
            "client-key-data": base64.b64encode(key).decode(),
        },
    ):
        cluster = {"certificate-authority-data": base64.b64encode(crt).decode()}
        config = from_kubeconfig([kubeconfig(tmp_path, user, cluster)])
        access = await config.credentials.access()
        assert access.ssl is not None
        assert access.ssl.cert_store_stats()["x509"] == 1


async def test_a_rotated_token_is_read_again(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")
    (tmp_path / "namespace").write_text("penstock")
    (tmp_path / "ca.crt").write_bytes(certificate()[0])
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    config = in_cluster(tmp_path, environment)
    assert (config.server, config.namespace) == ("https://[fd00::1]:6443", "penstock")
    assert await token_of(config) == "Bearer one"
    token.write_text("two\n")
    later = token.stat().st_mtime + 1
    os.utime(token, (later, later))
    assert await token_of(config) == "Bearer two"


async def test_a_rejected_token_is_read_again_and_the_request_repeated(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one")
    api = FakeApi()
    api.put("/api/v1/namespaces/a/configmaps/x")
    api.fail(Fault(401, "Unauthorized"))
    async with served(api) as url:
        transport = HttpTransport(Config(url, FileCredentials(Material(token=token))))
        try:
            await Client(transport).get(CONFIG_MAPS, "a", "x")
        finally:
            await transport.close()
    assert len(api.requests) == 2


def plugin(folder: Path, answer: object) -> dict[str, Any]:
    """A user whose plugin counts its runs and answers that."""
    script = folder / "plugin.py"
    script.write_text(
        "import json, os, pathlib, sys\n"
        "runs = pathlib.Path(sys.argv[1])\n"
        "runs.write_text(runs.read_text() + 'x' if runs.exists() else 'x')\n"
        "assert json.loads(os.environ['KUBERNETES_EXEC_INFO'])['kind'] == 'ExecCredential'\n"
        f"print({json.dumps(answer)!r})\n"
    )
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(script), str(folder / "runs")],
            "env": [{"name": "A", "value": "b"}],
        }
    }


async def test_a_plugins_token_is_kept_until_it_is_rejected(tmp_path: Path) -> None:
    user = plugin(tmp_path, {"status": {"token": "t"}})
    config = from_kubeconfig([kubeconfig(tmp_path, user)])
    assert await token_of(config) == "Bearer t"
    assert await token_of(config) == "Bearer t"
    assert (tmp_path / "runs").read_text() == "x"
    config.credentials.expire()
    await token_of(config)
    assert (tmp_path / "runs").read_text() == "xx"


async def test_a_plugins_expired_token_is_asked_for_again(tmp_path: Path) -> None:
    status = {"token": "t", "expirationTimestamp": "2020-01-01T00:00:00Z"}
    config = from_kubeconfig([kubeconfig(tmp_path, plugin(tmp_path, {"status": status}))])
    await token_of(config)
    await token_of(config)
    assert (tmp_path / "runs").read_text() == "xx"


async def test_a_plugin_that_fails_reports_it(tmp_path: Path) -> None:
    config = from_kubeconfig([kubeconfig(tmp_path, plugin(tmp_path, "nonsense"))])
    with pytest.raises(CredentialsError, match="printed no ExecCredential"):
        await token_of(config)


async def test_probes_and_metrics_are_served() -> None:
    """Feature row 65."""
    wrong: list[str] = ["waiting for pods"]
    async with (
        serve(
            CollectorRegistry(),
            alive=lambda: None,
            ready=lambda: wrong[0] if wrong else None,
            host="127.0.0.1",
            health_port=0,
            metrics_port=0,
        ) as bound,
        aiohttp.ClientSession() as session,
    ):
        health = f"http://127.0.0.1:{bound.health_port}"
        async with session.get(f"{health}/healthz") as answer:
            assert answer.status == 200
        async with session.get(f"{health}/readyz") as answer:
            assert (answer.status, await answer.text()) == (503, "waiting for pods\n")
        wrong.clear()
        async with session.get(f"{health}/readyz") as answer:
            assert answer.status == 200
        async with session.get(f"http://127.0.0.1:{bound.metrics_port}/metrics") as answer:
            assert answer.status == 200
