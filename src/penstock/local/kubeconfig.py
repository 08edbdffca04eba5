"""kubeconfig files with everything in them, so that one file is all a client needs."""

import base64

import yaml

from penstock.local.pki import Pair


def kubeconfig(name: str, server: str, authority: bytes, user: Pair) -> str:
    """A kubeconfig whose only context is `name`; `authority` is the CA certificate as PEM."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": name,
                    "cluster": {"server": server, "certificate-authority-data": _b64(authority)},
                }
            ],
            "users": [
                {
                    "name": name,
                    "user": {
                        "client-certificate-data": _b64(user.certificate),
                        "client-key-data": _b64(user.key),
                    },
                }
            ],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        },
        sort_keys=False,
    )


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
