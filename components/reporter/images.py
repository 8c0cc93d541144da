"""The images that rows name, small enough for a page."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from typing import Any

from components.corpus_gen.images import Images

_WIDEST = 480  # pixels


def jpeg(path: str, config: Mapping[str, Any]) -> bytes | None:
    """An image as a small JPEG; None where it is not there any more, or no image.

    Args:
        path: as the row names it.
        config: the whole configuration, whose ``data`` says where images lie.
    """
    from PIL import Image

    try:
        with Image.open(Images(config.get("data", {})).place(path)) as opened:
            opened.draft("RGB", (_WIDEST, _WIDEST))  # of a JPEG no more pixels than are needed
            image = opened.convert("RGB")
    # What Pillow raises for a file that is no image, or not the kind it says, or far too large.
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return None
    image.thumbnail((_WIDEST, _WIDEST))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


def address(path: str, config: Mapping[str, Any]) -> str | None:
    """An image as an address that holds all of it; None where it is not to be had."""
    content = jpeg(path, config)
    if content is None:
        return None
    return f"data:image/jpeg;base64,{base64.b64encode(content).decode('ascii')}"
