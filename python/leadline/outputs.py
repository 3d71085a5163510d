"""Files that people name: each is whole, or as it was before."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file beside its place and rename it; a pipe or a device is written to as it is.

    Raises:
        OSError: it cannot be written; what was there is still there.

    """
    data = content.encode() if isinstance(content, str) else content
    place = Path(os.path.realpath(path))  # a link that the user names stays one
    mode = stat.S_IMODE(place.stat().st_mode) if place.exists() else None
    if mode is not None and not place.is_file():
        place.write_bytes(data)
        return
    beside = place.with_name(f".{place.name[:200]}.{secrets.token_hex(4)}")
    try:
        with beside.open("xb") as file:
            file.write(data)
            if mode is not None:
                os.fchmod(file.fileno(), mode)
        beside.replace(place)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
