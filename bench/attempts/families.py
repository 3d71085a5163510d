"""All families of harm, in the order in which they are tried and told."""

from __future__ import annotations

from attempts import (
    captured,
    exports,
    full_disk,
    io_errors,
    kills,
    lost_targets,
    memory,
    pairs,
    races,
    servers,
    stops,
    unsafe,
)
from attempts.outcome import Family

FAMILIES: dict[str, Family] = {
    module.FAMILY: module.attempts
    for module in (
        kills,
        stops,
        full_disk,
        io_errors,
        lost_targets,
        memory,
        servers,
        pairs,
        races,
        unsafe,
        captured,
        exports,
    )
}
