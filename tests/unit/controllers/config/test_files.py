"""The whole operator and ConfigMaps of users, on simulated machines: D2, D36."""

from __future__ import annotations

from typing import Any

from fault_plans.world import CORE, GROUP, SPACE
from penstock.api.kubernetes.meta import Json
from unit.controllers.slinky.test_accounting import Lab, played

REFS = (
    ("prologScriptRefs", "Prolog=one.sh\n"),
    ("epilogScriptRefs", "Epilog=one.sh\n"),
    ("prologSlurmctldScriptRefs", "PrologSlurmctld=/etc/slurm/one.sh\n"),
    ("epilogSlurmctldScriptRefs", "EpilogSlurmctld=/etc/slurm/one.sh\n"),
)


def config_map(lab: Lab, name: str, data: Json) -> None:
    if lab.world.find("/configmaps", name) is None:
        meta = {"name": name, "namespace": SPACE}
        body = {"kind": "ConfigMap", "metadata": meta, "data": data}
        lab.world.ask("POST", f"{CORE}/configmaps", body)
    else:
        lab.patch(f"{CORE}/configmaps/{name}", {"data": data})


def declare(lab: Lab, **spec: Any) -> None:
    lab.patch(f"{GROUP}/controllers/slurm", {"spec": spec})


def effective(lab: Lab) -> str:
    """The hash of what slurmctld runs with, while that is what is declared."""
    found: Any = lab.world.find("slinky.slurm.net/controllers", "slurm")
    status = found["status"]
    same = status.get("effectiveConfigHash") == status.get("configHash")
    return status.get("effectiveConfigHash", "") if same else ""


def test_changed_text_of_each_kind_of_script_is_taken_over_without_a_new_pod() -> None:
    """D2: upstream neither watches nor hashes it."""

    async def play(lab: Lab) -> None:
        await lab.ready("controllers", "slurm")
        for field, line in REFS:
            config_map(lab, "scripts", {"one.sh": f"#!/bin/sh\n# {field}\n"})
            before = effective(lab)
            declare(lab, **{field: [{"name": "scripts"}]})
            await lab.until(lambda now=line: now in lab.slurm_conf())
            await lab.until(lambda old=before: effective(lab) not in ("", old))
            with_it, slurmctld = effective(lab), lab.uid("slurm-controller-0")
            config_map(lab, "scripts", {"one.sh": "#!/bin/sh\nexit 0\n"})
            await lab.until(lambda old=with_it: effective(lab) not in ("", old))
            assert lab.uid("slurm-controller-0") == slurmctld
            declare(lab, **{field: None})

    played(play)


def test_a_slurm_conf_of_the_users_is_refused_and_slurmctld_keeps_what_it_has() -> None:
    async def play(lab: Lab) -> None:
        await lab.ready("controllers", "slurm")
        config_map(lab, "files", {"slurm.conf": "ClusterName=mine\n", "gres.conf": ""})
        slurmctld, conf = lab.uid("slurm-controller-0"), lab.slurm_conf()
        declare(lab, configFileRefs=[{"name": "files"}])
        await lab.until(lambda: lab.says("controllers", "slurm")[1] == "ConfigFileRefused")
        assert "spec.extraConf" in lab.says("controllers", "slurm")[2]
        assert (lab.uid("slurm-controller-0"), lab.slurm_conf()) == (slurmctld, conf)
        config_map(lab, "files", {"slurm.conf": None})
        await lab.ready("controllers", "slurm")

    played(play)
