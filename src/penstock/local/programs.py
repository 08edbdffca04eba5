"""The programs of the built-in node that are compiled from Go modules."""

from pathlib import Path

from penstock.local.golang import Program
from penstock.local.versions import (
    COREDNS,
    CRI_TOOLS,
    HELM,
    KUBERNETES,
    KWOK,
    METRICS_SERVER,
    PROMETHEUS,
    PROMETHEUS_PARSER,
)

_SOURCES = Path(__file__).parent / "go"
_MINOR = KUBERNETES.split(".")[1]


def _staging(release: str) -> str:
    """The version of the modules that Kubernetes is made of."""
    return "v0." + release.partition(".")[2]


_STAGING = _staging(KUBERNETES)


def kubernetes(name: str, release: str = KUBERNETES) -> Program:
    """A program of `k8s.io/kubernetes/cmd`."""
    version = "k8s.io/component-base/version"
    return Program(
        name=name,
        package=f"k8s.io/kubernetes/cmd/{name}",
        requires={"k8s.io/kubernetes": f"v{release}"},
        staging=_staging(release),
        # Without these the server reports v0.0.0, and charts reject it.
        variables={
            f"{version}.gitVersion": f"v{release}",
            f"{version}.gitMajor": "1",
            f"{version}.gitMinor": release.split(".")[1],
        },
    )


COREDNS_PROGRAM = Program(
    name="coredns",
    package=".",
    source=_SOURCES / "coredns",
    requires={
        "github.com/coredns/coredns": f"v{COREDNS}",
        "k8s.io/api": _STAGING,
        "k8s.io/apimachinery": _STAGING,
        "k8s.io/client-go": _STAGING,
    },
)
CRICTL = Program(
    name="crictl",
    package="sigs.k8s.io/cri-tools/cmd/crictl",
    requires={
        "k8s.io/kubernetes": f"v{KUBERNETES}",
        "sigs.k8s.io/cri-tools": f"v{CRI_TOOLS}",
        "github.com/docker/docker": "v28.3.3+incompatible",
        "github.com/invopop/jsonschema": "v0.13.0",
        "github.com/urfave/cli/v2": "v2.27.7",
    },
    staging=_STAGING,
    variables={"sigs.k8s.io/cri-tools/pkg/version.Version": f"v{CRI_TOOLS}"},
    bare=("sigs.k8s.io/cri-tools",),
)
"""The client of a node's container runtime. Versions are those that cri-tools requires."""
METRICS_SERVER_PROGRAM = Program(
    name="metrics-server",
    package="sigs.k8s.io/metrics-server/cmd/metrics-server",
    requires={
        "k8s.io/kubernetes": f"v{KUBERNETES}",
        "sigs.k8s.io/metrics-server": f"v{METRICS_SERVER}",
        "github.com/prometheus/prometheus": f"v{PROMETHEUS_PARSER}",
        "github.com/grafana/regexp": "v0.0.0-20240518133315-a468a5bfb3bc",
    },
    staging=_STAGING,
    variables={"k8s.io/client-go/pkg/version.gitVersion": f"v{METRICS_SERVER}"},
    bare=("sigs.k8s.io/metrics-server", "github.com/prometheus/prometheus"),
)
"""Runs in a pod where `kubectl top` is to work (`penstock.local.metrics_server`)."""
PAUSE = Program(name="pause", package=".", source=_SOURCES / "pause", requires={})
VOLUMES = Program(name="volumes", package=".", source=_SOURCES / "volumes", requires={})
KWOK_PROGRAM = Program(
    name="kwok",
    package="sigs.k8s.io/kwok/cmd/kwok",
    requires={"sigs.k8s.io/kwok": f"v{KWOK}"},
)
HELM_PROGRAM = Program(
    name="helm",
    package="helm.sh/helm/v3/cmd/helm",
    requires={"helm.sh/helm/v3": f"v{HELM}"},
    variables={
        "helm.sh/helm/v3/internal/version.version": f"v{HELM}",
        # Without these `helm template` renders for Kubernetes v1.20, and charts reject it.
        "helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor": "1",
        "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor": _MINOR,
        "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor": "1",
        "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor": _MINOR,
    },
)
"""Not part of a node: the tests install the charts with it."""


def prometheus(name: str) -> Program:
    """A program of Prometheus, without the discovery of targets at cloud providers."""
    return Program(
        name=name,
        package=f"github.com/prometheus/prometheus/cmd/{name}",
        requires={"github.com/prometheus/prometheus": f"v{PROMETHEUS}"},
        tags=("remove_all_sd",),
    )


PROMETHEUS_PROGRAM = prometheus("prometheus")
"""Not part of a node: the tests run the queries of dashboards and alerts on it."""
PROMTOOL = prometheus("promtool")
"""Not part of a node: the tests play the alert rules on series with it."""
