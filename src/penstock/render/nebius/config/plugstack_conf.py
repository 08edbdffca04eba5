"""plugstack.conf of a SlurmCluster: SPANK plug-ins, the one that enters the jail first.

Source: spank(7): `required` or `optional`, the plug-in, its arguments.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.render.nebius.config.keys import values_of
from penstock.render.nebius.config.lines import file_text, one_line

JAIL: Final = "/mnt/jail"


def plugstack_conf(inputs: ConfigInputs) -> str:
    """The plug-ins in the order in which Slurm calls them."""
    spec = inputs.cluster.spec.plug_stack_config
    custom = (
        _line(one.required, one.path, sorted(one.arguments.items())) for one in spec.custom_plugins
    )
    nccl = [_nccl_debug(inputs), *_nccl_inspector(inputs)]
    return file_text([*_jail(inputs), _pyxis(inputs), *nccl, *custom])


def _jail(inputs: ConfigInputs) -> list[str]:
    """The line of chroot.so. An older image rejects options it lacks: only who asks has them."""
    spec = inputs.cluster.spec
    if not spec.has_jail:
        return []
    options: list[tuple[str, str]] = []
    if spec.job_isolation == "PerJob":
        options.append(("job_isolation", "on"))
    if spec.job_network_interfaces:
        options.append(("network_interfaces", ",".join(spec.job_network_interfaces)))
    return [_line(True, f"chroot.so {JAIL}", options)]


def _pyxis(inputs: ConfigInputs) -> str:
    pyxis, values = inputs.cluster.spec.plug_stack_config.pyxis, values_of(inputs)
    arguments = [
        ("runtime_path", "/run/pyxis"),
        ("execute_entrypoint", "0"),
        ("container_scope", "global"),
        ("sbatch_support", "1"),
    ]
    if values.pyxis_container_image_save:
        arguments.append(("container_image_save", values.pyxis_container_image_save))
    if values.pyxis_importer_path:
        arguments.append(("importer", values.pyxis_importer_path))
    if not inputs.is_older or pyxis.use_squashfuse:
        arguments.append(("use_squashfuse", _flag(pyxis.use_squashfuse)))
    return _line(pyxis.required, "spank_pyxis.so", arguments)


def _nccl_debug(inputs: ConfigInputs) -> str:
    nccl = inputs.cluster.spec.plug_stack_config.nccl_debug
    arguments = [
        ("enabled", _flag(nccl.enabled)),
        ("log-level", nccl.log_level),
        ("out-file", _flag(nccl.output_to_file)),
        ("out-dir", values_of(inputs).nccl_output_directory),
        ("out-stdout", _flag(nccl.output_to_std_out)),
    ]
    return _line(nccl.required, "spanknccldebug.so", arguments)


def _nccl_inspector(inputs: ConfigInputs) -> list[str]:
    """The profiler's plug-in; none without its field, which version 1.23 does not have."""
    nccl = inputs.cluster.spec.plug_stack_config.nccl_inspector_pre_conf
    if nccl is None:
        return []
    arguments = [
        ("enabled", _flag(nccl.enabled)),
        ("profiler-plugin", nccl.profiler_plugin),
        ("dump-dir", nccl.dump_dir),
        ("dump-verbose", _flag(nccl.dump_verbose)),
        ("dump-thread-interval-microseconds", str(nccl.dump_thread_interval_microseconds)),
    ]
    return [_line(nccl.required, "spank_nccl_inspector_preconf.so", arguments)]


def _line(required: bool, path: str, arguments: Iterable[tuple[str, str]]) -> str:
    words = [
        "required" if required else "optional",
        path,
        *(f"{key}={value}" for key, value in arguments),
    ]
    return " ".join(filter(None, map(one_line, words)))


def _flag(value: bool) -> str:
    return "1" if value else "0"
