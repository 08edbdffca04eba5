"""Images of one static program each, as the pause image is; same program, same bytes."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

from penstock.local.recipes import architecture


def archive(program: Path, image: str, machine: str) -> bytes:
    """A docker-archive of `image`, which holds and runs `program` as the user 65535.

    `machine` is os.uname().machine.
    """
    layer = _tar({program.name: (program.read_bytes(), 0o755)})
    config = json.dumps(
        {
            "architecture": architecture(machine),
            "os": "linux",
            "config": {"Entrypoint": [f"/{program.name}"], "User": "65535:65535"},
            "rootfs": {
                "type": "layers",
                "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"],
            },
        }
    ).encode()
    manifest = [{"Config": "config.json", "RepoTags": [image], "Layers": ["layer.tar"]}]
    return _tar(
        {
            "layer.tar": (layer, 0o644),
            "config.json": (config, 0o644),
            "manifest.json": (json.dumps(manifest).encode(), 0o644),
        }
    )


def _tar(files: dict[str, tuple[bytes, int]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, (data, mode) in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), mode
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()
