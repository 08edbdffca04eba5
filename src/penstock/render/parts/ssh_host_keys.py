"""SSH host keys of login pods, made once and then kept: users' known_hosts must stay true."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.hazmat.primitives.serialization.ssh import serialize_ssh_public_key

FILES = ("ssh_host_rsa_key", "ssh_host_ed25519_key", "ssh_host_ecdsa_key")


def generate() -> dict[str, str]:
    """Fresh private and public keys by file name: RSA 4096, Ed25519 and ECDSA P-256.

    Takes about a second of CPU: call it only when the Secret is absent.
    """
    keys = (
        rsa.generate_private_key(public_exponent=65537, key_size=4096),
        ed25519.Ed25519PrivateKey.generate(),
        ec.generate_private_key(ec.SECP256R1()),
    )
    out: dict[str, str] = {}
    for name, key in zip(FILES, keys, strict=True):
        private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        out[name] = private.decode()
        out[f"{name}.pub"] = serialize_ssh_public_key(key.public_key()).decode() + "\n"
    return out
