"""The command of the sidecar that tries files beside slurmctld and has slurmctld reconfigure.

Functions and main loop are two files, so that those of a shared folder and of keys come between. A
kubelet's volume needs none of these: its script, which is in templates of running pods, stays as it
is.
"""

from __future__ import annotations

from penstock.render.parts.script import script


def command(*, is_shared_folder: bool = False, has_keys_beside: bool = False) -> list[str]:
    """The command; with `is_shared_folder` /etc/slurm may be a plain folder with a manifest.

    With `has_keys_beside` keys of auth/slurm are in another folder, of slurmctld's container.
    """
    own = ["reconfigure_shared_folder"] if is_shared_folder else []
    own += ["reconfigure_keys"] if has_keys_beside else []
    text = "".join(script(name) for name in ("reconfigure", *own, "reconfigure_loop"))
    return ["tini", "-g", "--", "bash", "-c", text]
