"""The kinds that users declare in plans, and where they are."""

from __future__ import annotations

from fault_plans import worker_sets
from penstock.api.kubernetes.meta import Json

KINDS = (
    ("controllers", "Controller"),
    ("restapis", "RestApi"),
    ("nodesets", "NodeSet"),
    ("crews", "Crew"),
    ("loginsets", "LoginSet"),
    ("accountings", "Accounting"),
    ("tokens", "Token"),
)


def resource_of(plural: str) -> str:
    """What the API server calls one of our kinds."""
    return worker_sets.resource_of(plural)


def path_of(space: str, plural: str, name: str = "") -> str:
    """The URL path of one of our kinds."""
    path = f"{worker_sets.group_path(plural)}/namespaces/{space}/{worker_sets.in_urls(plural)}"
    return f"{path}/{name}" if name else path


def usual(plural: str, spec: Json) -> Json:
    """The spec without what only pods and the content of Secrets depend on."""
    match plural:
        case "nodesets" | "crews":
            return {**spec, "replicas": 1}
        case "accountings":
            return {**spec, "extraConf": ""}
        case "tokens":
            return {**spec, "lifetime": "15m"}
        case _:
            return spec
