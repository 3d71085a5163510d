"""How systems were reached, and what their writes waited for: local or a server (CP93 §4.3).

CP93 Fig. 6 holds two clients of file servers against each other over the share of reads; CP94
Fig. 23 shows the same two as whole surveys. Both papers draw what was measured, each at its own
focal point, and so do these curves: no model brings them to one request size.
"""

from __future__ import annotations

from collections.abc import Sequence

from leadline.compare.curves import Named
from leadline.record import Region, Survey, SurveyStart
from leadline.record.comparison import AccessCurve

NFS = "nfs://"
PROTOCOL_FACT = "network_file_system"
"""A profile's fact that says how a simulated client reaches its server."""


def access_curves(systems: Sequence[Named]) -> tuple[AccessCurve, ...]:
    """Return each system's curve over read_frac, measured at its first level."""
    found = []
    for system in systems:
        survey = system.predictor.survey
        region = first_level(survey)
        family = next((each for each in survey.families if each.region == 0), None)
        curve = family.curve("read_frac") if family else None
        if region is None or curve is None or len(curve.points) < 2:
            continue
        found.append(
            AccessCurve(
                name=system.name,
                through=say_protocol(survey.start),
                discipline=say_waits(survey.start),
                level=region.name,
                curve=curve,
            )
        )
    return tuple(found)


def first_level(survey: Survey) -> Region | None:
    """Return the level that small workloads stay in; None while there is none."""
    return survey.regions[0] if survey.regions else None


def say_protocol(start: SurveyStart) -> str | None:
    """Name the protocol to the server; None when the files are local."""
    if start.target.startswith(NFS):
        return "NFS"
    facts = (start.system_profile or {}).get("meta", {}).get("facts", {})
    told = facts.get(PROTOCOL_FACT) if isinstance(facts, dict) else None
    return str(told) if told else None


def say_waits(start: SurveyStart) -> str:
    """Say what a write waits for, in the words of the way it takes."""
    if not start.target.startswith(NFS):
        return start.access.discipline
    each = start.access.fsync_each
    if each is not None:
        return f"UNSTABLE, COMMIT each {each}"
    return "FILE_SYNC" if start.access.waits else "UNSTABLE"
