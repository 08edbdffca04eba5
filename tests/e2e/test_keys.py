"""Keys that change while a job runs, and tokens of an outside issuer, on real Slurm.

Feature rows 10, 11; defect D17; scenarios S163, S064.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from e2e_kit import manifests
from e2e_kit.api import Json, condition
from e2e_kit.cluster import Cluster
from e2e_kit.site import eventually
from penstock.slurm.auth import jwt

LONG_S = 180.0
WORKERS = ("compute-0", "compute-1")
STATE = "app.kubernetes.io/name in (slurmctld,slurmd,slurmrestd)"
LOGIN = "app.kubernetes.io/name=login"

pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Issuer:
    """Somebody outside who signs tokens with an RSA key of theirs."""

    kid: str
    key: rsa.RSAPrivateKey

    @classmethod
    def make(cls, kid: str) -> Issuer:
        return cls(kid, rsa.generate_private_key(65537, 2048))

    @property
    def jwks(self) -> str:
        """The public key, as an issuer publishes it (RFC 7517)."""
        numbers = self.key.public_key().public_numbers()
        return json.dumps(
            {
                "keys": [
                    {
                        "kty": "RSA",
                        "alg": "RS256",
                        "use": "sig",
                        "kid": self.kid,
                        "n": part(numbers.n.to_bytes(256, "big")),
                        "e": part(numbers.e.to_bytes(3, "big")),
                    }
                ]
            }
        )

    def token(self, user: str) -> str:
        now = int(time.time())
        head = {"alg": "RS256", "typ": "JWT", "kid": self.kid}
        body = {"sun": user, "iat": now, "exp": now + 600, "iss": "https://issuer.example"}
        signed = ".".join(part(json.dumps(one).encode()) for one in (head, body))
        found = self.key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{part(found)}"


def part(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def secret(name: str, key: str, value: bytes) -> Json:
    data = {key: base64.b64encode(value).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}


def jwks(issuer: Issuer) -> Json:
    return manifests.config_map("issuers", **{"jwks.json": issuer.jwks})


ISSUER = Issuer.make("first")


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("keys")
    controller = manifests.controller(
        persistence={"enabled": True},
        slurmKeyRef={"name": "own", "key": "slurm.key"},
        jwksKeyRef={"name": "issuers", "key": "jwks.json"},
    )
    cluster.create(
        secret("own", "slurm.key", secrets.token_bytes(64)),
        jwks(ISSUER),
        controller,
        manifests.restapi(),
        manifests.nodeset(2),
        manifests.loginset(),
    )
    cluster.until_ready("controllers", manifests.NAME, LONG_S)
    cluster.until_idle(*WORKERS, timeout=LONG_S)
    cluster.until_ready("loginsets", "login", LONG_S)
    return cluster


def takes(cluster: Cluster, token: str) -> bool:
    """Whether slurmctld takes a token for its own."""
    try:
        status, answer = cluster.asked("GET", "ping/", token=token)
        if status == 200:
            status, answer = cluster.asked("GET", "nodes/", token=token)
    except OSError:
        return False
    return status == 200 and not answer.get("errors") and bool(answer.get("nodes"))


def until_takes(cluster: Cluster, token: str, *, taken: bool = True) -> None:
    word = "taken" if taken else "refused"
    eventually(f"the token is {word}", lambda: takes(cluster, token) is taken, LONG_S, every=0.5)


def made(cluster: Cluster) -> str:
    """The token in the Secret of the Token `pipeline`."""
    data = cluster.get("secrets", "pipeline-jwt-slurm")["data"]
    return base64.b64decode(data["SLURM_JWT"]).decode()


def in_use(cluster: Cluster) -> Json | None:
    found = condition(cluster.get("controllers", manifests.NAME), "KeysInUse")
    return found if found.get("status") == "True" else None


def test_a_token_of_an_external_issuer_is_taken_and_a_changed_jwks_followed(
    cluster: Cluster,
) -> None:
    """Feature row 11, defect D17: by a reconfigure, so with no pod made anew."""
    served = condition(cluster.get("controllers", manifests.NAME), "Served")
    assert "jwksKeyRef" not in served.get("message", "")
    pods = cluster.uids(STATE)
    until_takes(cluster, ISSUER.token("slurm"))
    stranger = Issuer.make("second")
    assert not takes(cluster, stranger.token("slurm"))
    assert not takes(cluster, Issuer.make("first").token("slurm"))

    cluster.apply(jwks(stranger))
    until_takes(cluster, stranger.token("slurm"))
    assert not takes(cluster, ISSUER.token("slurm"))
    assert cluster.uids(STATE) == pods


def test_slurm_key_changes_under_a_job_and_no_daemon_is_recreated_for_it(cluster: Cluster) -> None:
    """Feature row 10, defect D17, scenario S163: the job ends well, with only the new key good."""
    pods, logins = cluster.uids(STATE), set(cluster.uids(LOGIN).values())
    job = cluster.submit(
        "while [ ! -e /tmp/over ]; do sleep 0.2; done",
        "--output=/dev/null",
        "--mem=50",
        "-wcompute-0",
    )
    cluster.until_job(job, "RUNNING")
    new = secrets.token_bytes(64)

    cluster.apply(secret("own", "slurm.key", new))
    eventually("only the new key is in use", lambda: in_use(cluster), LONG_S, every=0.5)

    assert cluster.uids(STATE) == pods
    assert not set(cluster.uids(LOGIN).values()) & logins
    assert cluster.job(job)["JobState"] == "RUNNING"
    kept = base64.b64encode(new).decode()
    for worker in WORKERS:
        keys = json.loads(cluster.on(worker, "cat /etc/slurm/slurm.jwks"))["keys"]
        assert [one["k"] for one in keys] == [kept]
    other = cluster.submit("true", "--output=/dev/null", "--mem=50", "-wcompute-1")
    assert cluster.until_job(other, "COMPLETED", "FAILED")["JobState"] == "COMPLETED"
    cluster.kubectl("exec", "deploy/login", "-c", "login", "--", "srun", "-wcompute-1", "true")
    cluster.on("compute-0", "touch /tmp/over")
    assert cluster.until_job(job, "COMPLETED", "FAILED")["JobState"] == "COMPLETED"
    cluster.until_idle(*WORKERS, timeout=LONG_S)
    states = {one["state"][0] for one in cluster.rest("GET", "nodes/")["nodes"]}
    assert states == {"IDLE"}


def test_a_token_of_the_new_jwt_key_is_taken_and_one_of_the_old_is_not(cluster: Cluster) -> None:
    """Feature rows 10, 16, 21 and 67, D11, D12, S064: no node goes DOWN, and slurmrestd stays.

    slurmctld is replaced for it. A Token is renewed, and the operator itself goes on.
    """
    old = cluster.token("slurm")
    rests = cluster.uids("app.kubernetes.io/name=slurmrestd")
    key = {"name": f"{manifests.NAME}-auth-jwt", "key": "jwt.key"}
    cluster.apply(manifests.of("Token", "pipeline", username="slurm", jwtKeyRef=key))
    cluster.until_ready("tokens", "pipeline")
    until_takes(cluster, made(cluster))
    job = cluster.submit("sleep 600", "--output=/dev/null", "--mem=50")
    cluster.until_job(job, "RUNNING")
    new = secrets.token_bytes(64)
    began = {
        one["name"]: one["reason_changed_at"] for one in cluster.rest("GET", "nodes/")["nodes"]
    }

    name = f"{manifests.NAME}-auth-jwt"
    value = base64.b64encode(new).decode()
    cluster.patch("secrets", name, {"data": {"jwt.key": value}})
    fresh = jwt.mint(new, "slurm", 600, time.time())
    until_takes(cluster, fresh)
    assert not takes(cluster, old)
    cluster.forget_key()
    eventually("the Token has a token of it", lambda: takes(cluster, made(cluster)), LONG_S)
    assert cluster.uids("app.kubernetes.io/name=slurmrestd") == rests
    cluster.until_ready("controllers", manifests.NAME, LONG_S)

    nodes = cluster.rest("GET", "nodes/")["nodes"]
    assert not [one["name"] for one in nodes if "DOWN" in one["state"]]
    assert {one["name"]: one["reason_changed_at"] for one in nodes} == began
    assert cluster.job(job)["JobState"] == "RUNNING"
    cluster.run("scancel", str(job))
    cordon = "slinky.slurm.net/pod-cordon"
    cluster.kubectl("annotate", "pod", "compute-1", f"{cordon}=true")
    eventually("the operator drains", lambda: "DRAIN" in cluster.states()["compute-1"], LONG_S)
    cluster.kubectl("annotate", "pod", "compute-1", f"{cordon}-")
    eventually("and back", lambda: "DRAIN" not in cluster.states()["compute-1"], LONG_S)
    cluster.kubectl("delete", "token", "pipeline")
    secret_name = "pipeline-jwt-slurm"
    cluster.until("secrets", lambda found: secret_name not in found, "the Token's Secret is gone")
