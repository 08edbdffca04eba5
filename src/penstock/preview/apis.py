"""The APIs that a plan knows."""

from __future__ import annotations

from typing import Any, Final

from penstock.preview.nebius import NebiusPreview
from penstock.preview.previewed_api import PreviewedApi
from penstock.preview.slinky import SlinkyPreview

PREVIEWED: Final[tuple[PreviewedApi[Any], ...]] = (SlinkyPreview(), NebiusPreview())
