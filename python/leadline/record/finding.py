"""What was found about a measurement, as data, and the one place where it becomes a sentence.

Verdicts, groups and exit codes go by `code` and `severity`; a sentence decides nothing. The engine
finds by the same codes (`crates/wire/src/finding.rs`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NamedTuple

import msgspec

from leadline.record.workload import Interval
from leadline.units import format_bytes, format_rate, format_seconds, say_percent


class Severity(StrEnum):
    """How much a finding weighs."""

    INVALID = "invalid"
    """The numbers are not those of what was asked for."""
    SUSPECT = "suspect"
    """They are to be doubted."""
    NOTE = "note"
    """Good to know when reading them."""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was found."""

    code: str
    """A key of `CATALOGUE`."""
    severity: Severity
    values: Mapping[str, int | float | str] = {}
    """What its sentence says, each with its unit at the end of its name."""
    where: str = ""
    """Of several systems the one that it is about."""

    def __post_init__(self) -> None:
        """Refuse a code that nobody could say, as in a damaged store.

        Raises:
            ValueError: there is no such code.

        """
        if self.code not in CATALOGUE:
            raise ValueError(f"there is no finding {self.code!r}")

    @classmethod
    def of(cls, code: str, **values: float | str) -> Finding:
        """Return a finding of the catalogue, with its severity.

        Raises:
            KeyError: there is no such code.

        """
        return cls(code, CATALOGUE[code].severity, values)

    def __str__(self) -> str:
        """Return its sentence, behind where it was found."""
        said = _render(CATALOGUE[self.code].text, self.values)
        return f"{self.where}: {said}" if self.where else said

    @property
    def is_note(self) -> bool:
        """Whether it spoils nothing but is good to know."""
        return self.severity is Severity.NOTE

    def document(self) -> dict[str, object]:
        """Return it as `--json` tells it, with its sentence."""
        where = {"where": self.where} if self.where else {}
        said = {"severity": self.severity, **where, "values": self.values, "text": str(self)}
        return {"code": self.code, **said}

    def __hash__(self) -> int:
        return hash((self.code, self.where, tuple(sorted(self.values.items()))))


class Entry(NamedTuple):
    """What is said of a code.

    In the text `{name:how}` is a value, written as `_WRITTEN` or `format` has it; of the
    alternatives in `[one|other]` stands the first whose values are all there.
    """

    severity: Severity
    text: str


CATALOGUE: Mapping[str, Entry] = {
    "debug_build": Entry(
        Severity.SUSPECT,
        "debug build: the engine was compiled without optimisation and is many times slower than "
        "it can be; build it with `make build`, or install the released wheel",
    ),
    "busy_machine": Entry(
        Severity.SUSPECT,
        "busy machine:[ other programs use {foreign_frac:whole percent} of a processor;]"
        "[ tasks waited for a processor in {cpu_wait_frac:whole percent} of the time (PSI);]"
        "[ tasks waited for I/O in {io_wait_frac:whole percent} of the time (PSI);] stop what else "
        "runs, or wait, and measure again",
    ),
    "low_free_memory": Entry(
        Severity.SUSPECT,
        "low free memory: {available_bytes:bytes} of {memory_bytes:bytes} are available, so the "
        "file cache is smaller than the memory suggests and may shrink while measuring; stop what "
        "holds the memory, or cap the cache with --cache-limit",
    ),
    "idle_cache_reclaimed": Entry(
        Severity.SUSPECT,
        "idle cache reclaimed: this kernel takes file cache away that nobody used for some seconds "
        "(DAMON); do not expect a file to stay cached between two runs; within a run the share "
        "from cache is looked up, not assumed",
    ),
    "frequency_governor": Entry(
        Severity.SUSPECT,
        "frequency governor: the processors' governor is {governor}, so their frequency follows "
        "the load; choose performance while measuring: `cpupower frequency-set -g performance`",
    ),
    "target_in_memory": Entry(
        Severity.SUSPECT,
        "memory file system: the target is on {file_system}, which lives in memory: no device is "
        "measured; give a directory on a disk, unless memory is what you want to measure",
    ),
    "loop_device": Entry(
        Severity.SUSPECT,
        "loop device: {device} stands for a file that is read through the file cache, so even "
        "direct requests may be answered from memory; attach it with `losetup --direct-io=on`",
    ),
    "read_ahead": Entry(
        Severity.NOTE,
        "read-ahead: the device reads up to {read_ahead_bytes:bytes} ahead of a sequential reader; "
        "buffered reads that are partly sequential move more bytes than were asked for",
    ),
    "less_room": Entry(
        Severity.NOTE,
        "less room than --max-bytes: --max-bytes allows {max_bytes:bytes} and this target takes "
        "{capacity_bytes:bytes}; that is the limit now; 5 % of a file system, at least 1 GiB, stay "
        "free",
    ),
    "server_lost": Entry(
        Severity.INVALID,
        "{why}; the run ended [{window_s:.3f} s into its window|in its warm-up, nothing was "
        "measured], and {lost_requests} requests that were never answered are counted as lost",
    ),
    "littles_law": Entry(
        Severity.INVALID,
        "Little's law: broken by {error_frac:percent} (5 % allowed): the issuers spent time "
        "neither in requests nor thinking, as when other programs take the processors",
    ),
    "missed_rate": Entry(
        Severity.INVALID,
        "missed rate: {completed_per_s:grouped} of {due_per_s:grouped} requests/s were completed "
        "({short_frac:percent} short): [the target fell short: every issuer was waiting for it "
        "when {waiting_requests:grouped} requests became due; ask for a lower rate, or for more "
        "issuers if the target can serve more at once|the generator fell short: it sent "
        "{late_requests:grouped} requests late and {unsent_requests:grouped} not at all although "
        "an issuer was free; use more issuers or a lower rate]",
    ),
    "cached_disk_number": Entry(
        Severity.INVALID,
        "cached disk number: direct reads asked for {asked_bytes:mega} MB but the device moved "
        "{device_bytes:mega} MB; {cached_frac:whole percent} came from a cache below the file "
        "system[ ({caches}); choose a directory on the disk itself, or attach the image by losetup "
        "--direct-io=on|; choose a directory on a disk that nothing caches]",
    ),
    "memory_file_system": Entry(
        Severity.INVALID,
        "memory file system: {file_system} keeps the data file in memory, so direct requests never "
        "reach a device; choose a directory on a disk",
    ),
    "not_steady": Entry(
        Severity.SUSPECT,
        "not steady: the rate still changed within the {warm_up_s_max:.3f} s of warm-up allowed "
        "(limits.warm_up_s_max); the window may hold a transient",
    ),
    "time_cap": Entry(
        Severity.NOTE,
        "time cap reached [after {requests} of {requests_max} requests; more --seconds have room "
        "for all|before the asked accuracy: ±{half_width_frac:percent} instead of "
        "±{accuracy_frac:percent} over {runs} runs; more --seconds, or more --runs, narrow it|"
        "before the asked accuracy: ±{half_width_frac:percent} instead of "
        "±{accuracy_frac:percent} after {wall_s:.3f} s]",
    ),
    "runs_differ": Entry(
        Severity.SUSPECT,
        "runs differ by more than the asked accuracy: ±{half_width_frac:percent} instead of "
        "±{accuracy_frac:percent} over {runs} runs, though each of them ended early, sure of its "
        "own rate, after {wall_s:seconds} in all; more --runs narrow it",
    ),
    "no_interval": Entry(Severity.SUSPECT, "the window was too short for an interval"),
    "no_plateau": Entry(
        Severity.SUSPECT,
        "precondition: no plateau after {written_bytes:bytes} written [(--precondition "
        "{more_bytes:typed} would allow more)|(the job's time was up; allow it more)]",
    ),
    "generator_bound": Entry(
        Severity.SUSPECT,
        "generator-bound: this is within 20 % of the {ceiling_iops:millions} million requests/s "
        "that Leadline reaches here against nothing; the target may be faster than it could be "
        "asked",
    ),
    "size_above_data": Entry(
        Severity.NOTE, "size_mean is above unique_bytes: every request is as long as unique_bytes"
    ),
    "stall": Entry(
        Severity.SUSPECT,
        "stall: [Leadline itself did not run for {own_s:.2f} s, from {start_s:.2f} s on; something "
        "stopped it or took every processor, the target may be blameless|no request completed for "
        "{target_s:.2f} s, from {start_s:.2f} s on (the maximum shows it; a closed loop counts it "
        "once per issuer only)]",
    ),
    "level_shift": Entry(
        Severity.SUSPECT,
        "level shift: {first_mb_s:mb_s} until {until_s:.2f} s, [{last_mb_s:mb_s} at the end, "
        "{levels} levels in all; the mean describes none of them|then {last_mb_s:mb_s}; the mean "
        "of both describes neither]",
    ),
    "simulation_capped": Entry(
        Severity.NOTE, "the simulation ended after {requests} requests, before the time asked for"
    ),
    "stopped": Entry(
        Severity.SUSPECT,
        "Stopped after {points} of {planned} planned points; what is shown rests on those. The "
        "same command with --resume goes on.",
    ),
    "unfinished": Entry(
        Severity.SUSPECT,
        "unfinished: {points} of {planned} planned points are measured; workloads read once are "
        "judged by that reading. --resume goes on.",
    ),
    "step": Entry(
        Severity.SUSPECT,
        "The system [fell by {fell_frac:share}|rose by {rose_frac:share}][ ({low_frac:share} to "
        "{high_frac:share})] at about {at_s:seconds} into the survey (between {after_s:seconds} "
        "and {before_s:seconds}), as when burst credits are spent or a processor gets hot: the "
        "repeated points before and after it differ. The points ran in random order, so the curves "
        "mix both speeds.",
    ),
    "drift": Entry(
        Severity.SUSPECT,
        "The system drifted: the repeated points became [{slower_frac:.0%} slower|"
        "{faster_frac:.0%} faster] over the survey (95 %: {low_frac:+.0%} to {high_frac:+.0%}). "
        "The points ran in random order, so the curves keep their shape, but absolute numbers "
        "depend on when they were taken.",
    ),
    "drift_of_sizes": Entry(
        Severity.SUSPECT,
        "The system became [{slower_frac:.0%} slower|{faster_frac:.0%} faster] while it was "
        "measured (95 %: {low_frac:+.0%} to {high_frac:+.0%}); the points ran in mixed order, so "
        "sizes keep.",
    ),
    "drift_since_survey": Entry(
        Severity.SUSPECT,
        "drift: the focal points read {change} against the survey[ ({regions})]; this much of the "
        "error is the system's, not the model's. Nothing was corrected: survey it again to tell "
        "them apart.",
    ),
    "drift_within": Entry(
        Severity.SUSPECT,
        "drift within: the repeated points became [{slower_frac:share} slower|{faster_frac:share} "
        "faster] over the validation ({change}). They ran in random order, so all models and "
        "rivals are hit alike, but the errors hold some of it.",
    ),
    "borders_gone": Entry(
        Severity.SUSPECT,
        "The [{borders} borders|border] found at first did not show again: the points measured "
        "later at the middle of each region lie too near each other. What made the difference has "
        "changed since, or was chance; survey again before relying on the levels.",
    ),
    "no_cache_end": Entry(
        Severity.NOTE,
        "counted and throughput: no read left the file cache at any size measured, so what changes "
        "at {border} is not where it ends (writes that wait for the device, or the processor's own "
        "caches, look the same).",
    ),
    "border_by_count_alone": Entry(
        Severity.NOTE,
        "counted and throughput: reads begin to miss the file cache at {border}, where the "
        "throughput shows no border: the device is about as fast there, or what was measured is "
        "too noisy to tell.",
    ),
    "borders_apart": Entry(
        Severity.NOTE,
        "counted and throughput: the throughput {way} the file cache was full, at {border}, while "
        "reads were counted from the cache up to {counted_bytes:bytes}: the count stands (writes "
        "that wait for the device and other programs move the throughput alone).",
    ),
    "points_inadmissible": Entry(
        Severity.SUSPECT,
        "{inadmissible} of {points} points are not admissible and carry [no curve: {for_curves}|"
        "nothing: {for_sizes}].",
    ),
    "readings_inadmissible": Entry(
        Severity.SUSPECT,
        "not admissible: {inadmissible} of {points} readings were left out of the scores "
        "({reasons})",
    ),
    "points_generator_bound": Entry(
        Severity.SUSPECT,
        "generator-bound: {bound} of {points} points are within 20 % of what Leadline itself "
        "reaches on this machine; there the storage may be faster than shown.",
    ),
    "points_shifted": Entry(
        Severity.SUSPECT,
        "level shift: the rate changed within {shifted} of {points} points, most at point {worst}: "
        "{first_mb_s:mb_s} at first, {last_mb_s:mb_s} at the end. Their means describe neither "
        "rate; a longer --budget or --precondition lets a point settle.",
    ),
    "points_stalled": Entry(
        Severity.SUSPECT,
        "stall: nothing completed for a while at {stalled} of {points} points, for "
        "{longest_s:seconds} at the longest[; at {own} of them Leadline itself did not run|].",
    ),
    "points_lengthened": Entry(
        Severity.NOTE,
        "lengthened: {longer} of {points} points saw no request end in the {own_s:seconds} that "
        "each had, and were measured for longer; that took {took_s:seconds} of the budget. A "
        "longer --budget gives every point its time.",
    ),
    "focal_unsettled": Entry(
        Severity.SUSPECT,
        "The focal vector had not settled at the step limit: the curves' own half-way points lie "
        "more than a factor of three from the focal values used.",
    ),
    "search_unsettled": Entry(
        Severity.SUSPECT,
        "The focal vector had not settled when its search ended; the sentence on it says how far "
        "it came. A larger --budget gives the search more points.",
    ),
    "points_foreign_load": Entry(
        Severity.SUSPECT,
        "Other programs used more than {foreign_frac:.0%} of a processor during {busy} of {points} "
        "points; on an idle machine the numbers may be better. Predictions count those less that "
        "had more of such company than the others.",
    ),
    "no_border": Entry(
        Severity.NOTE,
        "No border was found up to {max_bytes:bytes}: either there is one level only, or the next "
        "one begins beyond the data that was allowed (--max-bytes).",
    ),
    "foreign_load": Entry(
        Severity.SUSPECT,
        "Other programs used more than {foreign_frac:.0%} of a processor during {busy} of {points} "
        "points.",
    ),
    "points_found": Entry(Severity.SUSPECT, "{found} of {points} points: {example}"),
    "cache_disturbed": Entry(
        Severity.SUSPECT,
        "{disturbed} of {points} points of {kind} reached the device more than larger workloads "
        "did: meanwhile something else wrote the cache out or took it (a sync, other programs' "
        "memory, changed dirty limits). The size is right only where undisturbed points surround "
        "it; measure again on an idle machine.",
    ),
    "validation_extrapolated": Entry(
        Severity.SUSPECT,
        "extrapolated: {outside} of {scored} scored workloads lie outside what was surveyed, so "
        "the errors are not those of predictions inside it",
    ),
    "rival_left_out": Entry(
        Severity.NOTE,
        "rival left out: {rival}: no admissible reading of [{lost} of its {workloads} workloads|"
        "its workload][ ({reasons})|]",
    ),
    "not_surveyed": Entry(
        Severity.NOTE,
        "not surveyed: [size_dist={size_dist}; predicted as normal sizes of the same mean, which "
        "is near as long as time grows evenly with size|sizes of one fixed value; predicted as "
        "sizes scattered about {size_mean:bytes}, which touch as many pages, which is near as long "
        "as time grows evenly with size|queue_depth={queue_depth}; predicted as {processes} "
        "processes with one request each|the job goes by {job_backend}, the survey went by "
        "{survey_backend}|sizes of one fixed value; predicted as sizes scattered about the same "
        "mean, which is near as long as time grows evenly with size]",
    ),
    "extrapolated": Entry(Severity.SUSPECT, "extrapolated: {beyond}"),
    "region_border": Entry(
        Severity.NOTE,
        "region border: unique_bytes={unique_bytes:bytes} lies where one level ends and the next "
        "begins ({low_bytes:bytes} to {high_bytes:bytes}); throughput is unsteady there and errors "
        "are largest",
    ),
    "job_differs": Entry(Severity.NOTE, "{said}"),
    "job_asks_less": Entry(
        Severity.NOTE,
        "differs: the job asks for no more than {rate_per_s:g} requests/s; predicted is what the "
        "system could do",
    ),
    "survey_drifted": Entry(
        Severity.SUSPECT,
        "it became [{slower_frac:share} slower|{faster_frac:share} faster] meanwhile",
    ),
    "survey_disturbed": Entry(
        Severity.SUSPECT, "{lost_frac:share} of the processors' time went to others"
    ),
    "survey_unsteady": Entry(
        Severity.SUSPECT,
        "{unsteady} of {points} points not steady, level shifts up to x{contrast:.3g}",
    ),
    "one_drive": Entry(
        Severity.NOTE,
        "{directory} lies on the device of an earlier directory: together they are no two drives",
    ),
    "paper_cached": Entry(
        Severity.SUSPECT,
        "8 MB fit the file cache of today: read_8192 was answered from memory, and the clock of "
        "the writes stopped before the drive had the data. Leave --paper out to measure the drive",
    ),
    "no_raw_rate": Entry(
        Severity.NOTE,
        "a directory takes no direct I/O, so its drive's own rate, and with it the percentage of "
        "the raw device, is not known",
    ),
    "files_in_memory": Entry(
        Severity.SUSPECT, "the existing file system is memory: its rates are no drive's"
    ),
    "drives_share_disk": Entry(
        Severity.NOTE,
        "the drives of the made file systems are loop devices of one directory: they share its "
        "disk, so several at once show contention, not a second arm",
    ),
    "intervals_wide": Entry(
        Severity.NOTE,
        "{wide} of {rows} intervals reach further than ±{most_frac:whole percent}; more than "
        "--runs {runs} narrow them",
    ),
    "numbers_starred": Entry(
        Severity.SUSPECT, "{starred} of {rows} numbers carry a star: {reasons}"
    ),
    "one_disk": Entry(
        Severity.NOTE,
        "{directory} lies on the file system of an earlier one: together they are no two disks",
    ),
    "budget_ended": Entry(Severity.NOTE, "the budget ended after {done} of {planned} runs"),
    "no_capacities": Entry(
        Severity.NOTE,
        "no capacities were measured, so nothing can be said of what gives out; "
        "`leadline stream scale DIR…` measures them beside the kernels",
    ),
    "no_bound": Entry(Severity.NOTE, "there is no bound, because no capacities are known: {why}"),
    "io_off_model": Entry(
        Severity.SUSPECT,
        "{kernel} {phase} on {disks:disks}: its I/O is {error_frac:signed} from its model; a cache "
        "served or kept part of it, or the file system wrote more",
    ),
    "copies_off_model": Entry(
        Severity.NOTE,
        "{kernel} {phase}: the program copied {counted:.2f} bytes for each that it moved and the "
        "model has {modelled:.2f}; its memory traffic is not as modelled",
    ),
    "used_more_than_all": Entry(
        Severity.SUSPECT,
        "{kernel} {phase}: it used {use_frac:share} of what {resource} gave when measured; they "
        "gave less then, or a cache served part of it: measure again, while nothing else runs, "
        "before its bound and balance are trusted",
    ),
    "disks_on_one_device": Entry(
        Severity.NOTE,
        "{one} and {other} lie on one device ({devices}): they count as two disks here and are "
        "one; give directories of different devices",
    ),
    "trials_failed": Entry(
        Severity.SUSPECT, "{trials:trials} failed and counted for nothing; the last one: {why}"
    ),
    "trials_server_lost": Entry(
        Severity.SUSPECT, "the server was lost in {trials:trials}; the last one: {why}"
    ),
    "trials_generator_short": Entry(
        Severity.SUSPECT,
        "the generator fell short in {trials:trials}, which say nothing of the server; the last "
        "one: {why}",
    ),
    "trials_sent_late": Entry(
        Severity.SUSPECT,
        "the generator sent up to {late_ms} ms late (99 %) in {trials:trials}; response times hold "
        "that",
    ),
    "trials_waited": Entry(
        Severity.NOTE,
        "in trials that kept the target up to {waited_frac:share} of the response was waiting to "
        "be sent: {slots} at most are under way at once (process_num × queue_depth), and with more "
        "the rate may be higher",
    ),
    "trials_moved": Entry(
        Severity.NOTE, "{trials:trials} lost their machine and ran again on another"
    ),
    "samples_not_found": Entry(Severity.NOTE, "not found as asked: {samples}"),
    "load_of_two_kinds": Entry(
        Severity.NOTE,
        "Trials at {rate_per_s:.6g} requests/s are of two kinds; no mean stands for both.",
    ),
    "trials_of_two_kinds": Entry(
        Severity.NOTE, "Trials are of two kinds, slower and faster ones; the rate is that of both."
    ),
    "saturated_below_clear": Entry(
        Severity.NOTE,
        "Saturated at {low_per_s:.6g} requests/s but far from it at {high_per_s:.6g}: trials are "
        "of two kinds, or the response does not rise with the load.",
    ),
    "saturated_below": Entry(
        Severity.NOTE,
        "Saturated at {low_per_s:.6g} requests/s but not at {high_per_s:.6g}: the response does "
        "not rise with the load throughout.",
    ),
    "bounds_irregular": Entry(
        Severity.NOTE,
        "Irregular: {upper_per_s:.6g} requests/s is an upper bound and {lower_per_s:.6g} a lower.",
    ),
    "trials_contradict": Entry(
        Severity.SUSPECT,
        "Trials contradict each other: {bad_per_s:.6g} requests/s was clearly too much in one, "
        "{good_per_s:.6g} clearly not in another.",
    ),
    "trial_disturbed": Entry(
        Severity.SUSPECT,
        "Trial {trial} at {rate_per_s:.6g} requests/s disturbed: one stall {at_s:.3g} s into the "
        "window, longest response {longest_ms:.3g} ms; not counted, {after}.",
    ),
    "model_left_out": Entry(Severity.NOTE, "model left out: {model}: {why}"),
    "measured_by_fio": Entry(
        Severity.NOTE,
        "measured by fio, which does not tell where the bytes came from, whether the rate was "
        "steady, or how exact one run is",
    ),
    "fio_cut_short": Entry(
        Severity.NOTE,
        "the time limit of {total_s_max:g} s left fio {measure_s:.1f} s of the asked "
        "{measure_s_max:g} s",
    ),
}
"""What is found before a run, about it, in a study, and about predictions."""

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_VALUE = re.compile(r"\{(\w+)(?::([^{}]*))?\}")


def _grouped(number: float) -> str:
    return f"{number:.2f}" if number % 1 and number < 100 else f"{number:,.0f}"


_WRITTEN: Mapping[str, Callable[[float], str]] = {
    "percent": lambda frac: f"{100 * frac:.1f} %",
    "whole percent": lambda frac: f"{100 * frac:.0f} %",
    "grouped": _grouped,
    "mb_s": format_rate,
    "share": say_percent,
    "signed": lambda frac: say_percent(frac, signed=True),
    "trials": lambda count: f"{count:.0f} trial{'' if count == 1 else 's'}",
    "disks": lambda count: f"{count:.0f} disk{'' if count == 1 else 's'}",
    "bytes": format_bytes,
    "typed": lambda size: format_bytes(size).replace(" ", ""),
    "seconds": format_seconds,
    "mega": lambda number: f"{number / 1e6:.1f}",
    "millions": lambda number: f"{number / 1e6:.2f}",
}


def _render(text: str, values: Mapping[str, int | float | str]) -> str:
    def chosen(choice: re.Match[str]) -> str:
        parts = choice[1].split("|")
        fits = (part for part in parts if {m[1] for m in _VALUE.finditer(part)} <= values.keys())
        return next(fits, "")

    def written(value: re.Match[str]) -> str:
        found, how = values[value[1]], value[2] or ""
        if how in _WRITTEN and not isinstance(found, str):
            return _WRITTEN[how](found)
        return format(found, how)

    return _VALUE.sub(written, _CHOICE.sub(chosen, text))


def drift_values(change: Interval) -> dict[str, float]:
    """Return what a sentence says of a change whose interval does not hold none."""
    way = "slower_frac" if change.value < 0 else "faster_frac"
    ends = {"low_frac": change.low, "high_frac": change.high}
    return {way: abs(change.value), **{name: end for name, end in ends.items() if end is not None}}
