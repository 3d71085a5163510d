"""What another machine would do: more processors, disks, memory bandwidth, network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leadline.errors import LeadlineError
from leadline.record import Interval
from leadline.record.balance import RESOURCE_WORDS, Balance, Resource, WhatIf
from leadline.stats.arithmetic import least, quotient, scaled
from leadline.studies.streaming.balance import say_gain
from leadline.units import format_rate

PARTS: dict[str, tuple[Resource, ...]] = {
    "cores": ("cpu",),
    "disks": ("disks",),
    "memory": ("memory",),
    "network": ("network",),
    "path": ("io_path",),
}
"""What can be bought, and which resources it makes larger."""
_FACTOR_MAX = 1e6


class WhatIfRefused(LeadlineError):
    """A change that makes no sense; the message says what to type instead."""


def parse_changes(text: str) -> dict[str, float]:
    """Read `cores=2,disks=2,memory=1.5,network=10`.

    Raises:
        WhatIfRefused: an unknown part, or a factor that is no positive number.

    """
    found: dict[str, float] = {}
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, value = (part.strip() for part in piece.partition("="))
        if not equals or name not in PARTS:
            raise WhatIfRefused(
                f"{piece!r} is not part=factor with a known part ({', '.join(PARTS)}); "
                "write for example cores=2,disks=2"
            )
        if name in found:
            raise WhatIfRefused(f"{name} is given twice; write it once")
        found[name] = _factor(name, value)
    if not found:
        raise WhatIfRefused("nothing is changed; write for example cores=2,disks=2")
    return found


def _factor(name: str, value: str) -> float:
    try:
        factor = float(value)
    except ValueError:
        factor = 0.0
    if not 0 < factor <= _FACTOR_MAX:
        raise WhatIfRefused(
            f"{name}={value} is no factor; write a number above 0, as in {name}=2 for twice as much"
        )
    return factor


def what_if(balance: Balance, changes: Mapping[str, float]) -> WhatIf | None:
    """Return the bound of a phase before and after the changes, and what gives out then.

    Rates are of all processors that are there now. None where no resource's rate is known.
    """
    before = _rates(balance, {})
    if not before:
        return None
    after = _rates(balance, changes)
    limited_before, limited_after = _lowest(before), _lowest(after)
    was, becomes = least(list(before.values())), least(list(after.values()))
    gain = _gain(was, becomes, same=limited_before == limited_after)
    return WhatIf(
        kernel=balance.kernel,
        phase=balance.phase,
        changes=dict(changes),
        before_mb_s=was,
        after_mb_s=becomes,
        limited_before=limited_before,
        limited_after=limited_after,
        gain_frac=gain,
        sentence=_sentence(balance, changes, gain.value, becomes, limited_after),
    )


def _rates(balance: Balance, changes: Mapping[str, float]) -> dict[Resource, Interval]:
    larger = {name: factor for part, factor in changes.items() for name in PARTS[part]}
    return {
        one.resource: scaled(
            one.mb_s_per_processor, balance.processors * larger.get(one.resource, 1.0)
        )
        for one in balance.saturations
        if one.mb_s_per_processor is not None and not one.at_least
    }


def _lowest(rates: Mapping[Resource, Interval]) -> Resource:
    return min(rates, key=lambda name: rates[name].value)


def _gain(was: Interval, becomes: Interval, *, same: bool) -> Interval:
    """Return the gain; the same resource's error is the same before and after."""
    ratio = becomes.value / was.value
    if same:
        return Interval(ratio - 1, ratio - 1, ratio - 1, was.n)
    found = quotient(becomes, was)
    low, high = found.low, found.high
    return Interval(
        ratio - 1, None if low is None else low - 1, None if high is None else high - 1, found.n
    )


def _sentence(
    balance: Balance,
    changes: Mapping[str, float],
    gain: float,
    becomes: Interval,
    limited: Resource,
) -> str:
    return (
        f"{balance.kernel} {balance.phase}: {say_changes(changes)} would bring "
        f"{say_gain(gain)}, to "
        f"{format_rate(becomes.value)}; then {RESOURCE_WORDS[limited]} would give out."
    )


def say_changes(changes: Mapping[str, float]) -> str:
    """Write `×2 cores, ×1.5 memory bandwidth`."""
    words = {"memory": "memory bandwidth", "network": "network bandwidth", "path": "I/O path"}
    return ", ".join(f"×{factor:g} {words.get(part, part)}" for part, factor in changes.items())


def what_ifs(balances: Sequence[Balance], changes: Mapping[str, float]) -> tuple[WhatIf, ...]:
    """Return the changes' effect on every phase that has one."""
    found = [what_if(balance, changes) for balance in balances]
    return tuple(one for one in found if one is not None)
