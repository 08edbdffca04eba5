"""A real MariaDB for slurmdbd: an image of Debian's packages, and the pod that runs it."""

from __future__ import annotations

from e2e_kit import images
from e2e_kit.api import Json
from e2e_kit.cluster import Cluster
from penstock.local.node import Node

IMAGE = "localhost/penstock-test/mariadb:1"
NAME = "mariadb"
_START = """
[ -d /data/mysql/mysql ] || cp -r /opt/mariadb /data/mysql
exec mariadbd --datadir=/data/mysql --socket=/tmp/mariadb.sock --init-file=/sql/init.sql \\
    --innodb-snapshot-isolation=OFF --innodb-buffer-pool-size=64M --innodb-log-file-size=16M \\
    --innodb-lock-wait-timeout=900 --innodb-use-native-aio=0 --skip-log-bin $OPTIONS
"""
_TLS = (
    "--ssl-ca=/tls/ca.crt --ssl-cert=/tls/tls.crt --ssl-key=/tls/tls.key "
    "--require-secure-transport=ON"
)


def load(node: Node) -> None:
    """Give the node the image, built when the cache has none of the present Containerfile."""
    images.load(node, IMAGE)


def objects(
    cluster: Cluster | None,
    databases: dict[str, str],
    *,
    name: str = NAME,
    user: str = "",
    tls: str = "",
) -> list[Json]:
    """Service and StatefulSet of a MariaDB with these databases and the passwords of their users.

    The user of a database has its name unless `user` is given. `tls` is a Secret with its
    certificate: then it takes connections with TLS only.

    Its data is in a folder of the machine, which outlives its pod; without a cluster, in the pod.
    """
    sql = "".join(
        # A statement on each line: so an init-file is read.
        f"CREATE DATABASE IF NOT EXISTS {one};\n"
        f"CREATE USER IF NOT EXISTS '{user or one}'@'%' IDENTIFIED BY '{password}';\n"
        f"GRANT ALL ON {one}.* TO '{user or one}'@'%';\n"
        for one, password in databases.items()
    )
    labels = {"app": name}
    container: Json = {
        "name": NAME,
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", _START],
        "env": [{"name": "OPTIONS", "value": _TLS if tls else ""}],
        "ports": [{"containerPort": 3306}],
        "readinessProbe": {"tcpSocket": {"port": 3306}, "periodSeconds": 1},
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},
            {"name": "sql", "mountPath": "/sql"},
        ],
    }
    data: Json = {"emptyDir": {}}
    if cluster is not None:
        data = {"hostPath": {"path": cluster.shared, "type": "Directory"}}
    volumes = [
        {"name": "data", **data},
        {"name": "sql", "configMap": {"name": f"{name}-sql"}},
    ]
    if tls:
        container["volumeMounts"].append({"name": "tls", "mountPath": "/tls"})
        volumes.append({"name": "tls", "secret": {"secretName": tls, "defaultMode": 0o444}})
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{name}-sql"},
            "data": {"init.sql": sql},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {"selector": labels, "ports": [{"port": 3306}]},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": name},
            "spec": {
                "serviceName": name,
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [container], "volumes": volumes},
                },
            },
        },
    ]


def password(name: str, text: str) -> Json:
    """A Secret with the password of a database's user."""
    data = {"password": text}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def sql(cluster: Cluster, text: str) -> str:
    """What the database's root is answered."""
    client = ("mariadb", "--socket=/tmp/mariadb.sock", "-u", "root", "-N", "-B", "-e", text)
    return cluster.kubectl("exec", f"{NAME}-0", "--", *client)


def set_password(cluster: Cluster, user: str, password: str) -> None:
    """Give a user another password."""
    sql(cluster, f"ALTER USER '{user}'@'%' IDENTIFIED BY '{password}'")
