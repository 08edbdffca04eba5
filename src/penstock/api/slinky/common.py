"""Parts that several kinds of `slinky.slurm.net/v1beta1` have in common."""

from __future__ import annotations

from typing import Annotated, Final

from penstock.api.kubernetes.meta import Json, KubeStruct
from penstock.api.kubernetes.schema import (
    ATOMIC_MAP,
    INT32,
    NULLABLE,
    about,
    rule,
)
from penstock.api.kubernetes.spec_parts import (
    ConfigMapKeySelector,
    SecretKeySelector,
)

GROUP = "slinky.slurm.net"
VERSION = "v1beta1"
LONGEST_CONF: Final = 131_072
"""Characters of lines that a user adds to a file of Slurm. With two thousand NodeName lines a
slurm.conf has about as many."""
LONGEST_LINE: Final = 32_768
"""Characters of one line of a file of Slurm."""
LONGEST_KEYS: Final = 524_288
"""Characters of public keys, one a line: seven hundred of RSA with 4096 bits. A ConfigMap has twice
as many bytes."""
LONGEST_WORDS: Final = 1024
"""Characters of a name that Slurm or a database takes as it is."""
SHORT: Final[Json] = {"maxLength": LONGEST_WORDS}
"""Schema of such a name."""


class ExternalConfig(KubeStruct, frozen=True):
    """Address of a daemon that Kubernetes does not run."""

    host: Annotated[str, about("Host name or address of the daemon.", {"maxLength": 253})]
    port: Annotated[
        int | None,
        about(
            "Port of the daemon. Slurm's usual one when absent.",
            INT32,
            NULLABLE,
            {"minimum": 1, "maximum": 65535},
        ),
    ] = None


SSSD_NAME = rule(
    "!has(self.sssdConfRef) || self.sssdConfRef.name != ''", "sssdConfRef.name must not be empty"
)
NO_HOST_NETWORK = rule(
    "!has(self.spec) || !has(self.spec.hostNetwork) || !self.spec.hostNetwork",
    "hostNetwork is not offered for this kind: its clients find it by a Service and fixed names. "
    "Remove it; NodeSet, LoginSet and RestApi may have it",
)
EXTERNAL_CONFIG = rule(
    "!has(self.external) || !self.external || has(self.externalConfig)",
    "externalConfig must be set when external is true",
)
SlurmKeyRef = Annotated[
    SecretKeySelector | None,
    about("Secret with the key of auth/slurm (slurm.key).", ATOMIC_MAP),
]
MungeKeyRef = Annotated[
    SecretKeySelector | None,
    about(
        "Secret with the key of a munge cluster (munge.key, 32 bytes or more). Messages are then "
        "signed by auth/munge in place of auth/slurm.",
        ATOMIC_MAP,
    ),
]
ONE_KEY = rule(
    "!has(self.slurmKeyRef) || !has(self.mungeKeyRef)",
    "slurmKeyRef is for auth/slurm and mungeKeyRef for munge: remove one of them",
)
_MUNGE_KEY = (
    "(has({0}.spec.mungeKeyRef) ? {0}.spec.mungeKeyRef.name + '/' + {0}.spec.mungeKeyRef.key : '')"
)
SAME_MUNGE_KEY = f"{_MUNGE_KEY.format('self')} == {_MUNGE_KEY.format('oldSelf')}"
"""A CEL expression: whether old and new spec lead to the same munge key, or both to none."""


def munge_kept(used: str, when: str) -> Json:
    """A rule of a whole object: the munge key comes, goes or changes only before its first use."""
    return rule(
        f"{SAME_MUNGE_KEY} || !({used})",
        f"mungeKeyRef is immutable {when}, as all daemons and jobs would have to change at once. "
        "For another key, put a new key into the same Secret instead. For another AuthType, "
        "create another object",
    )


JwtKeyRef = Annotated[
    SecretKeySelector | None,
    about("Secret with the HS256 key of auth/jwt (jwt.key).", ATOMIC_MAP),
]
JwtHs256KeyRef = Annotated[
    SecretKeySelector | None,
    about("Older name of jwtKeyRef, which wins when both are given.", ATOMIC_MAP),
]
JwksKeyRef = Annotated[
    ConfigMapKeySelector | None,
    about("ConfigMap with the JWKS file of external token issuers.", ATOMIC_MAP),
]
ExtraSshdConfig = Annotated[str, about("Lines added to sshd_config.", {"maxLength": LONGEST_CONF})]
SssdConfRef = Annotated[
    SecretKeySelector | None,
    about("Secret with sssd.conf. Without it users come from the pod's own files.", ATOMIC_MAP),
]


def jwt_key(spec: str, fallback: str) -> str:
    """A CEL expression: name and key of the JWT Secret that `spec` leads to."""
    names = (f"{spec}.jwtKeyRef", f"{spec}.jwtHs256KeyRef")
    choices = [f"has({name}) ? {name}.name + '/' + {name}.key" for name in names]
    return f"({' : '.join(choices)} : {fallback})"


def fixed_once(used: str, same: str, field: str, when: str) -> Json:
    """A rule of a whole object: `field` may be corrected until something worked with it.

    `used` and `same` are CEL expressions, `used` of the stored object: the API server keeps its
    status when a spec is changed. So the rule needs no webhook.
    """
    return rule(
        f"{same} || !({used})",
        f"{field} is immutable {when}: put a new key into the same Secret instead",
    )


def same_jwt_key(fallback: str) -> str:
    """A CEL expression: whether old and new spec lead to the same JWT key."""
    return f"{jwt_key('oldSelf.spec', fallback)} == {jwt_key('self.spec', fallback)}"


KEPT_JWT_KEY = f"{jwt_key('oldSelf.spec', repr(''))} in ['', {jwt_key('self.spec', repr(''))}]"
"""A CEL expression for kinds that may be without a JWT key: whether the one they had stays."""
