"""Status of a slurmctld: its configuration, its release, and what annotations requested of it."""

from __future__ import annotations

from typing import Annotated

from penstock.api.cluster.trigger import Trigger
from penstock.api.kubernetes.schema import about
from penstock.api.kubernetes.spec_parts import Status


class SlurmctldStatus(Status, frozen=True):
    """What the status of an object that declares a slurmctld has of it."""

    config_hash: Annotated[str, about("Hash of the configuration that is wanted.")] = ""
    effective_config_hash: Annotated[
        str, about("Hash of the configuration that slurmctld runs with.")
    ] = ""
    config_since: Annotated[str, about("Since when it runs with that one.")] = ""
    triggers: Annotated[
        tuple[Annotated[Trigger, about("One of them.")], ...],
        about(
            "Reconfigures and restarts that annotations asked for.",
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ] = ()
    slurm_image: Annotated[str, about("Image of slurmctld that reported its version of Slurm.")] = (
        ""
    )
    slurm_version: Annotated[str, about("Version of Slurm in that image.")] = ""
    mpi_plugins: Annotated[
        tuple[Annotated[str, about("One, as MpiDefault names it.")], ...],
        about("MPI plug-ins in that image, where it reports them."),
    ] = ()
    state_version: Annotated[
        str,
        about("Version of the slurmctld that served last: its state is read by no older one."),
    ] = ""
    last_error: Annotated[
        str, about("Why slurmctld rejected the candidate configuration; empty if it did not.")
    ] = ""
