"""Rules of a kind, groups of kinds, and the answer to a write that follows from them.

A write is rejected for what is wrong whatever happens next. What another object may fix later (a
Controller that does not exist yet) is a warning, as manifests come in any order. A fault that the
stored object has already is a warning too, and an object that is being deleted is never rejected:
every user can change another field, or delete the object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import ObjectKey, is_object_name
from penstock.api.kubernetes.schema import KindInfo

T = TypeVar("T", bound=KubeObject)
Other = TypeVar("Other", bound=KubeObject)

MOST_PROBLEMS: Final = 100
"""Problems of one object that are reported; a message has room for fewer."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of an object: the path of the field, and what to write instead."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclass(frozen=True, slots=True)
class Reference:
    """A field that names another object of the namespace; `group` is empty for the core group."""

    path: str
    kind: str
    name: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class RelatedObjects:
    """Objects that the rules of a kind compare an object with; it is not among them itself."""

    objects: tuple[KubeObject, ...] = ()
    """Objects that use the same objects as it does, such as those of the same cluster."""
    partitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Slurm partitions that those declare, each with who declares it, as `Kind name`."""
    absent: tuple[Reference, ...] = ()
    """References of the object to which no object is known."""
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Names of the files in the ConfigMaps that it names, as far as those exist."""
    users: tuple[str, ...] = ()
    """Objects that use it, as `Kind name`."""

    def of(self, type_: type[Other]) -> tuple[Other, ...]:
        """Those of `objects` that are of one kind."""
        return tuple(one for one in self.objects if isinstance(one, type_))


def _nothing(*_: Any) -> tuple[Any, ...]:
    return ()


def _no_fields(_: Any) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, kw_only=True, slots=True)
class KindRules(Generic[T]):
    """Everything that is known of one kind beyond its schema. All functions are pure."""

    info: KindInfo
    problems: Callable[[T], Iterable[Problem]]
    """Faults of an object. One that is stored with them is not reconciled."""
    admission_problems: Callable[[T], Iterable[Problem]] = _nothing
    """More faults of an object, for which a write is rejected. A stored object with one is still
    reconciled: the daemon that reads the field reports them."""
    changes: Callable[[T, T], Iterable[Problem]] = _nothing
    """Changes, from (new, old), that cannot be made."""
    unsupported_fields: Callable[[T], Iterable[str]] = _nothing
    """`path: what happens instead` for each field in use that this version does not serve."""
    defaults: Callable[[T], Mapping[str, str]] = _no_fields
    """Fields of the spec, by their names in JSON, that a new object is given as well."""
    references: Callable[[T], Iterable[Reference]] = _nothing
    """The objects that an object names and cannot do without."""
    uses: Callable[[T], Iterable[ObjectKey]] = _nothing
    """The objects of kinds with rules that it belongs to or builds upon, such as its cluster."""
    partitions: Callable[[T], Iterable[str]] = _nothing
    """The Slurm partitions that it declares in its cluster."""
    reserved_files: frozenset[str] = frozenset()
    """Files that the operator writes itself, which no ConfigMap that an object names may have."""
    conflicts: Callable[[T, RelatedObjects], Iterable[Problem]] = _nothing
    """Faults of an object beside its related objects; nothing may depend on them alone."""
    advice: Callable[[T], Iterable[str]] = _nothing
    """Warnings that follow from the object alone."""
    warnings: Callable[[T, RelatedObjects], Iterable[str]] = _nothing
    """Warnings that follow from its related objects."""
    deletion_warnings: Callable[[T, RelatedObjects], Iterable[str]] = _nothing
    """Warnings to whoever deletes it; only `users` is filled."""
    finalizers: tuple[str, ...] = ()
    """Finalizers of ours that may stand on it."""


@dataclass(frozen=True, slots=True)
class ApiGroup:
    """The kinds of one API group and version."""

    name: str
    version: str
    rules: tuple[KindRules[Any], ...]

    @property
    def kinds(self) -> tuple[KindInfo, ...]:
        """All its kinds."""
        return tuple(rules.info for rules in self.rules)

    def __post_init__(self) -> None:
        """Raises ValueError for a kind of another group or version."""
        for one in self.rules:
            resource = one.info.resource
            if (resource.group, resource.version) != (self.name, self.version):
                raise ValueError(f"{resource.kind} is not a kind of {self.name}/{self.version}")


class Registry:
    """The rules of all kinds of some API groups."""

    def __init__(self, groups: Sequence[ApiGroup]) -> None:
        self.rules: tuple[KindRules[Any], ...] = tuple(
            rules for group in groups for rules in group.rules
        )
        self._by_type = {rules.info.type: rules for rules in self.rules}
        self._by_kind = {
            (rules.info.resource.group, rules.info.resource.kind): rules for rules in self.rules
        }

    @property
    def kinds(self) -> tuple[KindInfo, ...]:
        """All kinds, in the order of the groups."""
        return tuple(rules.info for rules in self.rules)

    def has(self, obj: KubeObject) -> bool:
        """Whether an object's kind is one of its groups."""
        return type(obj) in self._by_type

    def of(self, obj: T) -> KindRules[T]:
        """The rules of an object's kind. Raises TypeError for a kind of no group."""
        found = self._by_type.get(type(obj))
        if found is None:
            raise TypeError(f"not a kind of ours: {type(obj).__name__}")
        return found

    def of_kind(self, group: str, kind: str) -> KindRules[Any] | None:
        """The rules of a kind; None for one of no group."""
        return self._by_kind.get((group, kind))

    def problems(self, obj: KubeObject) -> list[Problem]:
        """Faults that keep the operator from making what the object asks for."""
        return list(islice(self.of(obj).problems(obj), MOST_PROBLEMS))

    def related_objects(
        self,
        obj: KubeObject,
        objects: Iterable[KubeObject],
        absent: Iterable[Reference] = (),
        files: Mapping[str, tuple[str, ...]] | None = None,
    ) -> RelatedObjects:
        """Related objects for `validate_change`, out of those that use what `obj` uses.

        The object itself and those that are being deleted are left out; those of its own kind come
        first.
        """
        kept = [
            one
            for one in objects
            if not one.metadata.deleting
            and (type(one) is not type(obj) or one.metadata.name != obj.metadata.name)
        ]
        kept.sort(key=lambda one: type(one) is not type(obj))
        partitions: dict[str, tuple[str, ...]] = {}
        for one in kept:
            for name in self.of(one).partitions(one):
                partitions[name] = (*partitions.get(name, ()), self.named(one))
        return RelatedObjects(tuple(kept), partitions, tuple(absent), files or {})

    def named(self, obj: KubeObject) -> str:
        """`Kind name`; items of a list may come without their kind, so it is taken by type."""
        return f"{self.of(obj).info.resource.kind} {obj.metadata.name}"

    def validate_change(
        self, new: KubeObject, old: KubeObject | None, related: RelatedObjects
    ) -> AdmissionResult:
        """The answer to a create (`old` is None) or an update."""
        if new.metadata.deleting:
            return AdmissionResult()
        if old is not None and getattr(old, "spec", None) == getattr(new, "spec", None):
            # Somebody writes a label or a finalizer: no reason to report all of it once more.
            return AdmissionResult()
        rules = self.of(new)
        found = list(self._faults(new, related))
        before: set[Problem] = set()
        if old is not None:
            found += rules.changes(new, old)
            before = set(self._faults(old, related))
        warnings = [
            *(f"{one} (it was so before)" for one in found if one in before),
            *rules.advice(new),
            *(_waits(one) for one in related.absent),
            *rules.warnings(new, related),
            *rules.unsupported_fields(new),
        ]
        return AdmissionResult(
            tuple(dict.fromkeys(one for one in found if one not in before)),
            tuple(dict.fromkeys(warnings)),
        )

    def on_delete(self, obj: KubeObject, related: RelatedObjects) -> AdmissionResult:
        """The answer to a delete: always allowed."""
        if not related.users:
            return AdmissionResult()
        return AdmissionResult(warnings=tuple(self.of(obj).deletion_warnings(obj, related)))

    def _faults(self, obj: KubeObject, related: RelatedObjects) -> Iterator[Problem]:
        rules = self.of(obj)
        yield from self.problems(obj)
        yield from rules.admission_problems(obj)
        yield from islice(
            impossible_names(rules.references(obj), obj.metadata.namespace), MOST_PROBLEMS
        )
        yield from rules.conflicts(obj, related)


@dataclass(frozen=True, slots=True)
class AdmissionResult:
    """Problems for which a write is rejected, and warnings to its user."""

    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()


def impossible_names(references: Iterable[Reference], namespace: str) -> Iterator[Problem]:
    """References to an object by a name that none can have.

    Such as one with the namespace before it: it would be waited for without end.
    """
    for one in references:
        if not one.name or is_object_name(one.name):
            continue
        yield Problem(
            one.path,
            f"{one.name[:60]!r} can be the name of no {one.kind}: write the name alone, without a "
            f"namespace, of one in namespace {namespace}",
        )


def _waits(one: Reference) -> str:
    return f"{one.path}: there is no {one.kind} {one.name} in this namespace yet; it is waited for"
