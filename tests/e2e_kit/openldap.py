"""A real OpenLDAP for sssd: an image of Debian's packages, and the pod that runs it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol

from e2e_kit import images
from e2e_kit.api import Json
from penstock.kube.webhook.certificates import Bundle, renewed
from penstock.local.node import Node

IMAGE = "localhost/penstock-test/openldap:1"
NAME = "openldap"
BASE = "dc=example,dc=org"
READER = f"cn=reader,{BASE}"
PASSWORD = "reader-password"
"""Of the entry with which sssd binds."""
_ADMIN = f"cn=admin,{BASE}"
_ADMIN_PASSWORD = "admin-password"
_LABELS = {"app": NAME}
_TLS = """
TLSCertificateFile /ldap/tls.crt
TLSCertificateKeyFile /ldap/tls.key
TLSCACertificateFile /ldap/ca.crt
"""
_CONF = f"""
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
attributetype ( 1.3.6.1.4.1.24552.500.1.1.1.13 NAME 'sshPublicKey'
  EQUALITY octetStringMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 )
objectclass ( 1.3.6.1.4.1.24552.500.1.1.2.0 NAME 'ldapPublicKey' SUP top AUXILIARY
  MAY ( sshPublicKey $ uid ) )
modulepath /usr/lib/ldap
moduleload back_mdb
%s
database mdb
suffix "{BASE}"
rootdn "{_ADMIN}"
rootpw {_ADMIN_PASSWORD}
directory /data
maxsize 16777216
index objectClass,uid,uidNumber,gidNumber,memberUid,cn eq
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{READER}" read by anonymous auth by * none
"""
_TREE = f"""
dn: {BASE}
objectClass: domain
dc: example

dn: {READER}
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: reader
userPassword: {PASSWORD}

dn: ou=people,{BASE}
objectClass: organizationalUnit
ou: people

dn: ou=groups,{BASE}
objectClass: organizationalUnit
ou: groups
"""
_START = """
slapadd -f /ldap/slapd.conf -l /ldap/init.ldif && exec slapd -f /ldap/slapd.conf -h ldap:// -d 0
"""


def load(node: Node) -> None:
    """Give the node the image, built when the cache has none of the present Containerfile."""
    images.load(node, IMAGE)


def person(name: str, uid: int, gid: int, *, password: str = "", key: str = "") -> str:
    """An entry of a user in LDIF."""
    lines = [
        f"dn: uid={name},ou=people,{BASE}",
        *(f"objectClass: {one}" for one in ("inetOrgPerson", "posixAccount", "ldapPublicKey")),
        f"cn: {name}",
        f"sn: {name}",
        f"uid: {name}",
        f"uidNumber: {uid}",
        f"gidNumber: {gid}",
        f"homeDirectory: /home/{name}",
        "loginShell: /bin/bash",
    ]
    if password:
        lines.append(f"userPassword: {password}")
    if key:
        lines.append(f"sshPublicKey: {key.strip()}")
    return "\n".join(lines) + "\n\n"


def group(name: str, gid: int, *members: str) -> str:
    """An entry of a group in LDIF."""
    lines = [f"dn: cn={name},ou=groups,{BASE}", "objectClass: posixGroup", f"cn: {name}"]
    lines += [f"gidNumber: {gid}", *(f"memberUid: {one}" for one in members)]
    return "\n".join(lines) + "\n\n"


def sssd_conf(password: str = PASSWORD, base: str = BASE, certificate: str = "") -> str:
    """sssd.conf with which this directory's users are known; over TLS with a `certificate`."""
    encrypted = """ldap_id_use_start_tls = false
ldap_auth_disable_tls_never_use_in_production = true"""
    if certificate:
        encrypted = f"""ldap_id_use_start_tls = true
ldap_tls_reqcert = demand
ldap_tls_cacert = {certificate}"""
    return f"""[sssd]
services = nss, pam, ssh
domains = example

[nss]
filter_users = root, slurm
filter_groups = root, slurm
entry_negative_timeout = 2

[domain/example]
id_provider = ldap
auth_provider = ldap
sudo_provider = none
ldap_uri = ldap://{NAME}
ldap_search_base = {base}
ldap_schema = rfc2307
ldap_default_bind_dn = {READER}
ldap_default_authtok = {password}
{encrypted}
cache_credentials = true
offline_timeout = 5
offline_timeout_random_offset = 0
"""


def certificates() -> Bundle:
    """A certificate of the directory's server, with its authority."""
    return renewed(None, {NAME}, datetime.now(UTC))


def objects(*entries: str, tls: Bundle | None = None) -> list[Json]:
    """Service and Deployment of an OpenLDAP with these entries."""
    ldif = "\n".join([_TREE.lstrip(), *entries])
    files = {"slapd.conf": _CONF.lstrip() % (_TLS if tls else ""), "init.ldif": ldif}
    if tls is not None:
        files |= {name: value.decode() for name, value in tls.data().items()}
    container = {
        "name": NAME,
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", _START],
        "ports": [{"containerPort": 389}],
        "readinessProbe": {"tcpSocket": {"port": 389}, "periodSeconds": 1},
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},
            {"name": "files", "mountPath": "/ldap"},
        ],
    }
    volumes: list[Json] = [
        {"name": "data", "emptyDir": {}},
        {"name": "files", "configMap": {"name": NAME}},
    ]
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": files},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": NAME},
            "spec": {"selector": _LABELS, "ports": [{"port": 389}]},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": NAME},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": _LABELS},
                "template": {
                    "metadata": {"labels": _LABELS},
                    "spec": {"containers": [container], "volumes": volumes},
                },
            },
        },
    ]


class _Namespace(Protocol):
    def kubectl(self, *arguments: str, stdin: str | None = None) -> str: ...


def add(namespace: _Namespace, entry: str) -> None:
    """Put an entry into the directory of a namespace."""
    ldapadd = ("ldapadd", "-x", "-H", "ldap://", "-D", _ADMIN, "-w", _ADMIN_PASSWORD)
    namespace.kubectl("exec", "-i", f"deploy/{NAME}", "--", *ldapadd, stdin=entry)
