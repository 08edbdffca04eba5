"""JailUpgrade: brings a filled jail to another image, once its list of changes is approved."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from penstock.api.kubernetes.meta import Json, KubeObject, KubeStruct
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.schema import (
    DATE_TIME,
    INT32,
    READY,
    REASON,
    Column,
    KindInfo,
    about,
    rule,
)
from penstock.api.kubernetes.spec_parts import Status
from penstock.api.penstock.backup_parts import GROUP, VERSION, SlurmClusterRef

LONGEST_NAME: Final = 50
"""Its Jobs are called jail-compare-NAME, and a Job has at most 63 characters."""
_IMAGE: Json = {"maxLength": 512}
_COUNT: Json = {**INT32, "minimum": 0}
Phase: TypeAlias = Literal[
    "", "Waiting", "Comparing", "Compared", "Applying", "Succeeded", "Undoing", "Undone"
]


class JailUpgradeSpec(KubeStruct, frozen=True):
    """Which image, and whether it is applied."""

    cluster_ref: Annotated[SlurmClusterRef, about("The SlurmCluster.")] = SlurmClusterRef()
    image: Annotated[
        str,
        about("The image whose root the jail gets: any with the command tail.", _IMAGE),
    ] = ""
    from_image: Annotated[
        str,
        about(
            "The image that the jail has now. When absent, that of the last JailUpgrade that "
            "succeeded, or else that of the Job that filled the jail.",
            _IMAGE,
        ),
    ] = ""
    program_image: Annotated[
        str, about("Image with the program; the operator's own when absent.", _IMAGE)
    ] = ""
    approved: Annotated[
        bool, about("Whether the changes are made. Until then they are listed only.")
    ] = False
    undo: Annotated[
        bool,
        about(
            "Whether what was replaced is put back. Possible until another JailUpgrade is applied."
        ),
    ] = False


class JailUpgradeStatus(Status, frozen=True):
    """How far it is, and what it changes."""

    phase: Annotated[Phase, about("How far it is.")] = ""
    from_image: Annotated[str, about("The image that it compares with.")] = ""
    digest: Annotated[
        str, about("Of what the images differ in. Only what was listed is applied.")
    ] = ""
    added: Annotated[int, about("Files that it adds.", _COUNT)] = 0
    changed: Annotated[int, about("Files that it replaces.", _COUNT)] = 0
    removed: Annotated[int, about("Files that it removes.", _COUNT)] = 0
    kept: Annotated[
        int, about("Files that stay, as users changed them and the image did too.", _COUNT)
    ] = 0
    packages: Annotated[int, about("Packages of dpkg that get another version.", _COUNT)] = 0
    applied_time: Annotated[str, about("When it was applied.", DATE_TIME)] = ""


class JailUpgrade(KubeObject, frozen=True, kw_only=True):
    """Brings a filled jail to another image, while jobs run; what users changed stays."""

    spec: Annotated[
        JailUpgradeSpec,
        about(
            "Which image.",
            {"required": ["clusterRef", "image"]},
            rule(
                "self.clusterRef == oldSelf.clusterRef && self.image == oldSelf.image",
                "clusterRef and image cannot change: create another JailUpgrade",
            ),
            rule("!self.undo || self.approved", "undo is for an upgrade that was approved"),
        ),
    ]
    status: Annotated[JailUpgradeStatus, about("How far it is.")] = JailUpgradeStatus()


JAIL_UPGRADES = Resource(GROUP, VERSION, "JailUpgrade", "jailupgrades", JailUpgrade, optional=True)
INFO = KindInfo(
    JAIL_UPGRADES,
    (),
    (
        Column("CLUSTER", ".spec.clusterRef.name", description="Its SlurmCluster."),
        Column("PHASE", ".status.phase", description="How far it is."),
        Column("ADDED", ".status.added", "integer", description="Files that it adds."),
        Column("CHANGED", ".status.changed", "integer", description="Files that it replaces."),
        Column("REMOVED", ".status.removed", "integer", description="Files that it removes."),
        Column("KEPT", ".status.kept", "integer", description="Files of users that stay."),
        READY,
        REASON,
    ),
)
