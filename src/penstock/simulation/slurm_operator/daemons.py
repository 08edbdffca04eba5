"""slurmctld, slurmdbd, slurmrestd and logins as slurm-operator makes them."""

from __future__ import annotations

import base64

from penstock.api.kubernetes.meta import Json
from penstock.simulation.slurm_operator.conf import Files
from penstock.simulation.slurm_operator.parts import (
    apart,
    bare,
    digest,
    logfile,
    memory,
    mount,
    overlaid,
    projected,
    secret_hash,
    selector,
    sub,
)

ACTIVE = "controller.slinky.slurm.net/active"
HOST_KEYS = tuple(
    f"ssh_host_{kind}_key{end}" for kind in ("rsa", "ed25519", "ecdsa") for end in ("", ".pub")
)
SSH_FILES = ("sshd_config", "authorized_keys")


def _modes(files: tuple[str, ...]) -> list[Json]:
    """Files of a volume; what is public may be read."""
    return [
        {"key": file, "path": file, "mode": 0o644 if file.endswith(".pub") else 0o600}
        for file in files
    ]


class Daemons(Files):
    """The objects of all but the workers."""

    def slurmctld_objects(self) -> list[Json]:
        """Slurmctld's objects."""
        spec, name = self.controller["spec"], f"{self.name}-controller"
        select = selector("slurmctld", self.name)
        etc = {f"{self.name}-config": {"slurm.conf": self.slurm_conf()}}
        given = {f for ref in spec.get("configFileRefs") or () for f in self.data(ref["name"])}
        if "cgroup.conf" not in given:
            etc[f"{self.name}-config"]["cgroup.conf"] = (
                "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n"
            )
        claims: list[Json] = []
        state: Json = {"name": "statesave", "emptyDir": {}}
        persistence = spec.get("persistence") or {"enabled": True}
        volumes: list[Json] = [
            projected("slurm-etc", 0o610, self._sources()),
            memory("slurm-logfile"),
            memory("run"),
            {"name": "slurm-authsocket", "emptyDir": {}},
        ]
        if persistence.get("enabled", True):
            claim = {k: v for k, v in persistence.items() if k not in ("enabled", "existingClaim")}
            claims = [{"metadata": {"name": "statesave"}, "spec": claim}]
        else:
            volumes.append(state)
        pod = self.pod(
            self.controller,
            "slurmctld",
            self._slurmctld(),
            volumes=volumes,
            init=[logfile("slurmctld", sub(spec, "logfile"), spec["slurmctld"])],
            extra={
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": 401,
                    "runAsGroup": 401,
                    "fsGroup": 401,
                },
                "affinity": apart({"matchLabels": select}),
            },
            hashes={
                **self.keys(spec),
                "slinky.slurm.net/slurm-config-hash": digest({"": self.slurm_conf()}),
            },
        )
        workload = self.stateful(
            self.controller, name, f"{name}-internal", select, pod, pvcs=claims
        )
        return [
            self.service(
                self.controller, f"{name}-internal", "slurmctld", 6817, select, headless=True
            ),
            self.service(self.controller, name, "slurmctld", 6817, {**select, ACTIVE: "true"}),
            *(
                self.owned(self.controller, "v1", "ConfigMap", key, "slurmctld", data=data)
                for key, data in etc.items()
            ),
            workload,
        ]

    def _slurmctld(self) -> Json:
        """The container of slurmctld."""
        cluster = self.cluster_name()
        probe = {"periodSeconds": 10, "failureThreshold": 6}
        return {
            "name": "slurmctld",
            "ports": [{"name": "slurmctld", "containerPort": 6817, "protocol": "TCP"}],
            "startupProbe": {**self.probe("/livez", "slurmctld"), **probe},
            "livenessProbe": {**self.probe("/livez", "slurmctld"), **probe},
            "readinessProbe": self.probe("/readyz", "slurmctld"),
            "securityContext": {"runAsNonRoot": True, "runAsUser": 401, "runAsGroup": 401},
            "volumeMounts": [
                mount("slurm-etc", "/etc/slurm", read_only=True),
                mount("run", "/run"),
                mount("statesave", f"/var/spool/slurmctld/{cluster}"),
                mount("slurm-authsocket", "/run/slurmctld"),
                mount("slurm-logfile", "/var/log/slurm"),
            ],
        }

    def _sources(self) -> list[Json]:
        """What /etc/slurm of slurmctld is made of."""
        spec = self.controller["spec"]
        named = {
            ref["name"]
            for key, refs in spec.items()
            if key == "configFileRefs" or key.endswith("ScriptRefs")
            for ref in refs or ()
        }
        return [
            {"configMap": {"name": f"{self.name}-config"}},
            self.key(spec["slurmKeyRef"], "slurm.key"),
            self.key(spec["jwtKeyRef"], "jwt.key"),
            *({"configMap": {"name": name}} for name in sorted(named)),
        ]

    def slurmdbd_objects(self, one: Json) -> list[Json]:
        """Slurmdbd's objects."""
        spec, name = one["spec"], f"{one['metadata']['name']}-accounting"
        select = selector("slurmdbd", one["metadata"]["name"])
        storage = spec["storageConfig"]
        password = base64.b64decode(self.data(storage["passwordKeyRef"]["name"])["password"])
        lines: list[tuple[str, list[str]]] = [
            ("GENERAL", [f"DbdHost={name}-0", "DbdPort=6819", "SlurmUser=slurm"]),
            (
                "PLUGINS & PARAMETERS",
                [
                    "AuthType=auth/slurm",
                    "AuthAltTypes=auth/jwt",
                    "AuthAltParameters=jwt_key=/etc/slurm/jwt.key",
                    "AuthInfo=use_client_ids",
                ],
            ),
            (
                "STORAGE",
                [
                    "StorageType=accounting_storage/mysql",
                    f"StorageHost={storage['host']}",
                    f"StoragePort={storage['port']}",
                    f"StorageUser={storage['username']}",
                    f"StorageLoc={storage['database']}",
                    f"StoragePass={password.decode()}",
                ],
            ),
            ("LOGGING", ["LogFile=/dev/null"]),
        ]
        conf = "".join(f"#\n### {t} ###\n" + "".join(f"{x}\n" for x in found) for t, found in lines)
        sources = [
            {
                "secret": {
                    "name": name,
                    "items": [{"key": "slurmdbd.conf", "path": "slurmdbd.conf"}],
                }
            },
            self.key(spec["slurmKeyRef"], "slurm.key"),
            self.key(spec["jwtKeyRef"], "jwt.key"),
        ]
        user = {"runAsNonRoot": True, "runAsUser": 401, "runAsGroup": 401}
        pod = self.pod(
            one,
            "slurmdbd",
            {
                "name": "slurmdbd",
                "ports": [{"name": "slurmdbd", "containerPort": 6819, "protocol": "TCP"}],
                "readinessProbe": {"tcpSocket": {"port": 6819}},
                "securityContext": user,
                "volumeMounts": [
                    mount("slurm-etc", "/etc/slurm", read_only=True),
                    mount("run", "/run"),
                ],
            },
            volumes=[projected("slurm-etc", 0o600, sources), memory("run")],
            extra={"securityContext": {**user, "fsGroup": 401}},
            hashes={**self.keys(spec), "slinky.slurm.net/slurmdbd-conf-hash": digest({"": conf})},
        )
        encoded = base64.b64encode(conf.encode()).decode()
        return [
            self.service(one, name, "slurmdbd", 6819, select),
            self.owned(
                one,
                "v1",
                "Secret",
                name,
                "slurmdbd",
                type="Opaque",
                data={"slurmdbd.conf": encoded},
            ),
            self.stateful(one, name, name, select, pod, policy="Parallel"),
        ]

    def slurmrestd_objects(self, one: Json) -> list[Json]:
        """Slurmrestd's objects."""
        spec, name = one["spec"], f"{one['metadata']['name']}-restapi"
        select = selector("slurmrestd", one["metadata"]["name"])
        user = {"runAsNonRoot": True, "runAsUser": 65534, "runAsGroup": 65534}
        accounted = self.controller["spec"].get("accountingRef")
        probe = {"tcpSocket": {"port": 6820}, "periodSeconds": 10, "failureThreshold": 6}
        container: Json = {
            "name": "slurmrestd",
            "args": [*([] if accounted else ["-s", "openapi/slurmctld"])],
            "env": [
                {"name": "SLURM_JWT", "value": "daemon"},
                {
                    "name": "SLURMRESTD_SECURITY",
                    "value": "disable_unshare_files,disable_unshare_sysv",
                },
            ],
            "ports": [{"name": "slurmrestd", "containerPort": 6820, "protocol": "TCP"}],
            "startupProbe": probe,
            "livenessProbe": probe,
            "readinessProbe": {"tcpSocket": {"port": 6820}},
            "securityContext": user,
            "volumeMounts": [mount("slurm-etc", "/etc/slurm", read_only=True)],
        }
        conf = {
            "name": f"{self.name}-config",
            "items": [{"key": "slurm.conf", "path": "slurm.conf"}],
        }
        sources = [
            {"configMap": conf},
            self.key(self.controller["spec"]["slurmKeyRef"], "slurm.key"),
        ]
        pod = self.pod(
            one,
            "slurmrestd",
            container,
            volumes=[projected("slurm-etc", 0o600, sources)],
            extra={"securityContext": {**user, "fsGroup": 65534}},
        )
        pod["spec"]["containers"][0]["args"].append("0.0.0.0:6820")
        return [
            bare(self.service(one, name, "slurmrestd", 6820, select), "slurmrestd"),
            self.deployment(one, name, "slurmrestd", select, pod, spec.get("replicas", 1)),
        ]

    def login_objects(self, one: Json) -> list[Json]:
        """Login pods' objects."""
        spec, name = one["spec"], one["metadata"]["name"]
        select = selector("login", name)
        sshd = (
            "Include /etc/ssh/sshd_config.d/*.conf\nUsePAM yes\nX11Forwarding yes\n"
            "Subsystem sftp internal-sftp\n"
        )
        files = {"sshd_config": sshd, "authorized_keys": "# made by\n# somebody else\n"}
        known = self.host_keys or {
            f"ssh_host_{kind}_key{end}": f"{kind}{end}"
            for kind in ("rsa", "ed25519", "ecdsa")
            for end in ("", ".pub")
        }
        keys = {key: base64.b64encode(text.encode()).decode() for key, text in known.items()}
        sssd = spec["sssdConfRef"]
        single = [
            *((f"/etc/ssh/{key}", key, "ssh-host-keys") for key in HOST_KEYS),
            ("/etc/ssh/sshd_config", "sshd_config", "ssh-config"),
            ("/root/.ssh/authorized_keys", "authorized_keys", "ssh-config"),
            ("/etc/sssd/sssd.conf", "sssd.conf", "sssd-conf"),
        ]
        container: Json = {
            "name": "login",
            "env": [{"name": "SACKD_OPTIONS", "value": f"--conf-server {self.server()}"}],
            "ports": [{"name": "login", "containerPort": 22, "protocol": "TCP"}],
            "readinessProbe": {"exec": {"command": ["test", "-S", "/run/slurm/sack.socket"]}},
            "volumeMounts": [
                mount("slurm-etc", "/etc/slurm", read_only=True),
                mount("sackd-dir", "/run/slurm"),
                *(
                    {"name": volume, "mountPath": path, "subPath": file, "readOnly": True}
                    for path, file, volume in single
                ),
            ],
        }
        initconf: Json = {
            "name": "initconf",
            "command": [
                "sh",
                "-c",
                "cp /mnt/slurm/* /mnt/etc/slurm; chown -R 401:401 /mnt/etc/slurm",
            ],
            "env": [{"name": "SLURM_USER", "value": "slurm"}],
            "volumeMounts": [
                mount("slurm-etc", "/mnt/etc/slurm"),
                mount("slurm-config", "/mnt/slurm", read_only=True),
            ],
        }
        key = self.key(self.controller["spec"]["slurmKeyRef"], "slurm.key")
        pod = self.pod(
            one,
            "login",
            container,
            volumes=[
                memory("slurm-etc"),
                memory("sackd-dir"),
                projected("slurm-config", 0o600, [key]),
                projected(
                    "ssh-host-keys",
                    0o600,
                    [{"secret": {"name": f"{name}-ssh-host-keys", "items": _modes(HOST_KEYS)}}],
                ),
                projected(
                    "ssh-config",
                    0o600,
                    [{"configMap": {"name": f"{name}-ssh-config", "items": _modes(SSH_FILES)}}],
                ),
                projected("sssd-conf", 0o600, [self.key(sssd, "sssd.conf", 0o600)]),
            ],
            init=[overlaid(initconf, sub(spec, "initconf"), spec["login"])],
            extra={"enableServiceLinks": False, "dnsConfig": self.search()},
            hashes={
                "slinky.slurm.net/sshd-conf-hash": digest(files),
                "slinky.slurm.net/ssh-host-keys-hash": secret_hash(keys),
                "slinky.slurm.net/sssd-conf-hash": self.value_hash(sssd),
            },
        )
        return [
            self.owned(
                one, "v1", "Secret", f"{name}-ssh-host-keys", "login", immutable=True, data=keys
            ),
            self.owned(one, "v1", "ConfigMap", f"{name}-ssh-config", "login", data=files),
            self.service(one, name, "login", 22, select),
            self.deployment(one, name, "login", select, pod, spec.get("replicas", 1)),
        ]
