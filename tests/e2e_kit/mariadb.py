"""A real MariaDB for slurmdbd: an image of Debian's packages, and the pod that runs it."""

from __future__ import annotations

from e2e_kit import images
from e2e_kit.api import Json
from e2e_kit.cluster import Cluster
from penstock.local.node import Node

IMAGE = "localhost/penstock-test/mariadb:1"
NAME = "mariadb"
LABELS = {"app": NAME}
_START = """
[ -d /data/mysql/mysql ] || cp -r /opt/mariadb /data/mysql
exec mariadbd --datadir=/data/mysql --socket=/tmp/mariadb.sock --init-file=/sql/init.sql \\
    --innodb-snapshot-isolation=OFF --innodb-buffer-pool-size=64M --innodb-log-file-size=16M \\
    --innodb-lock-wait-timeout=900 --innodb-use-native-aio=0 --skip-log-bin
"""


def load(node: Node) -> None:
    """Give the node the image, built when the cache has none of the present Containerfile."""
    images.load(node, IMAGE)


def objects(cluster: Cluster, databases: dict[str, str]) -> list[Json]:
    """Service and StatefulSet of a MariaDB with these databases and the passwords of their users.

    The user of a database has its name.

    Its data is in a folder of the machine, which outlives its pod.
    """
    sql = "".join(
        # A statement on each line: so an init-file is read.
        f"CREATE DATABASE IF NOT EXISTS {name};\n"
        f"CREATE USER IF NOT EXISTS '{name}'@'%' IDENTIFIED BY '{password}';\n"
        f"GRANT ALL ON {name}.* TO '{name}'@'%';\n"
        for name, password in databases.items()
    )
    container = {
        "name": NAME,
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", _START],
        "ports": [{"containerPort": 3306}],
        "readinessProbe": {"tcpSocket": {"port": 3306}, "periodSeconds": 1},
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},
            {"name": "sql", "mountPath": "/sql"},
        ],
    }
    volumes = [
        {"name": "data", "hostPath": {"path": cluster.shared, "type": "Directory"}},
        {"name": "sql", "configMap": {"name": "mariadb-sql"}},
    ]
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "mariadb-sql"},
            "data": {"init.sql": sql},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": NAME},
            "spec": {"selector": LABELS, "ports": [{"port": 3306}]},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": NAME},
            "spec": {
                "serviceName": NAME,
                "replicas": 1,
                "selector": {"matchLabels": LABELS},
                "template": {
                    "metadata": {"labels": LABELS},
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
