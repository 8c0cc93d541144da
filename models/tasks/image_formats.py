"""Formats of image files by their first bytes, and what is said of those that cannot be decoded."""

from typing import NamedTuple

SUPPORTED = "JPEG, PNG or BMP"
JPEG_MAGIC, PNG_MAGIC, BMP_MAGIC = b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"BM"
SUPPORTED_MAGIC = (JPEG_MAGIC, PNG_MAGIC, BMP_MAGIC)
MAX_MAGIC_BYTES = 16
NOT_AN_IMAGE = f"is not an image ({SUPPORTED})"
CONVERT = "convert it to PNG or JPEG"


class OtherFormat(NamedTuple):
    """A format that is not decoded.

    Attributes:
        name: its name in messages.
        magic: the bytes that identify it.
        start: the position of these bytes in a file.
    """

    name: str
    magic: bytes
    start: int = 0

    @property
    def problem(self) -> str:
        """Why an image of this format cannot be used."""
        article = "an" if self.name.startswith("A") else "a"
        return f"is {article} {self.name} image; {CONVERT}"


OTHER_FORMATS = (
    OtherFormat("GIF", b"GIF8"),
    OtherFormat("WebP", b"WEBP", 8),
    OtherFormat("TIFF", b"II*\0"),
    OtherFormat("TIFF", b"MM\0*"),
    OtherFormat("AVIF", b"ftypavi", 4),  # avif, and avis for an animation
    OtherFormat("HEIC", b"ftyphe", 4),
    OtherFormat("HEIC", b"ftypmif1", 4),
    OtherFormat("JPEG 2000", b"\0\0\0\x0cjP  "),
    OtherFormat("JPEG 2000", b"\xff\x4f\xff\x51"),
    OtherFormat("JPEG XL", b"\0\0\0\x0cJXL "),
    OtherFormat("JPEG XL", b"\xff\x0a"),
)


def format_problem(head: bytes) -> str | None:
    """Return why an image cannot be used by its first ``MAX_MAGIC_BYTES``, or None."""
    if head.startswith(SUPPORTED_MAGIC):
        return None
    for other in OTHER_FORMATS:
        if head.startswith(other.magic, other.start):
            return other.problem
    return NOT_AN_IMAGE
