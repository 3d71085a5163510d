"""A fio job file read as workloads: what maps, and a warning for everything that does not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from leadline.fio.errors import FioJobRefused
from leadline.fio.options import not_mapped
from leadline.fio.pacing import read_arrivals, read_think_time
from leadline.fio.quantities import read_bytes, read_pair, read_seconds, read_switch, read_whole
from leadline.fio.sections import Section, read_sections
from leadline.fio.sizes import Sizes, distance, mixed, normal_split, read_sizes
from leadline.fio.skew import histogram_of, read_distribution, zipf_differs
from leadline.fio.waiting import read_sync
from leadline.inputs import InputRefused, read_text
from leadline.record import PROCESSES_MAX, Access, Arrivals, Workload, WorkloadError
from leadline.record.access import COMPRESS_MAX
from leadline.record.finding import Finding
from leadline.record.jobs.skew import Places, Zipf
from leadline.record.workload import QUEUE_DEPTH_MAX, SizeDist
from leadline.units import format_bytes

BACKENDS = {
    "sync": "pread",
    "psync": "pread",
    "vsync": "pread",
    "pvsync": "pread",
    "pvsync2": "pread",
    "libaio": "uring",
    "io_uring": "uring",
    "posixaio": "uring",
    "mmap": "mmap",
}
"""Leadline's backend for each of fio's engines that does file I/O."""
GRANULE_BYTES = 512
NORMAL_CV = 0.616
"""Coefficient of variation of Leadline's normal sizes (crates/engine/src/access/sizes.rs)."""
FIXED_BELOW_CV = NORMAL_CV / 2
"""Sizes that vary less than this are nearer to one fixed size than to the normal ones."""
ALIKE = 0.045
"""Largest distance at which a bssplit is Leadline's normal sizes: two of its slices of 2%."""
_READS = {"read": 1.0, "randread": 1.0, "write": 0.0, "randwrite": 0.0}


class FioWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """One job of a fio file, as Leadline runs or predicts it."""

    name: str
    workload: Workload
    access: Access
    """How it reaches storage."""
    arrivals: Arrivals = Arrivals()
    seconds: float | None = None
    """`runtime`, the ramp time apart; None when the job ends by its size."""
    findings: tuple[Finding, ...] = ()
    """What differs: `not_mapped`, `approximated`, `differs` and `own_files`."""


def read_job(
    source: str | Path, *, environment: Mapping[str, str] | None = None, direct: bool = False
) -> tuple[FioWorkload, ...]:
    """Read a job file, given as a path or as its text; one workload per job section.

    Args:
        source: a Path, or text with at least one `[section]`.
        environment: values of `${NAME}`; none by default.
        direct: read every job as if it had `direct=1` last, which decides what its depth means.

    Raises:
        FioJobRefused: what cannot be read or has no meaning here, and what to write instead.

    """
    if isinstance(source, Path):
        try:
            text = read_text(source)
        except InputRefused as error:
            raise FioJobRefused(f"{error}; give a fio job file") from error
    else:
        text = source
    jobs = read_sections(text, environment or {})
    at_once = sum(not read_switch(options.get("stonewall", "0")) for _, options in jobs[1:])
    forced = {"direct": "1"} if direct else {}
    try:
        return tuple(
            _workload((name, _put_last(options, forced)), at_once=at_once) for name, options in jobs
        )
    except FioJobRefused as error:
        where = f"{source}: " if isinstance(source, Path) else ""
        raise FioJobRefused(f"{where}{error}") from error


def _put_last(options: dict[str, str], forced: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in options.items() if key not in forced} | forced


def _workload(job: Section, *, at_once: int) -> FioWorkload:
    name, options = job
    try:
        return _Reader(name, options).read(at_once=at_once)
    except (FioJobRefused, WorkloadError) as error:
        raise FioJobRefused(f"[{name}]: {error}") from error


class _Reader:
    """One section on its way to a workload; collects what differs."""

    def __init__(self, name: str, options: dict[str, str]) -> None:
        self.name = options.get("name", name)
        self.options = options
        self.kb_base = read_whole("kb_base", options.get("kb_base", "1024"), 1000, 1024)
        if self.kb_base not in (1000, 1024):
            raise FioJobRefused(f"kb_base={self.kb_base}: fio takes 1000 or 1024")
        self.found: list[Finding] = []

    def read(self, *, at_once: int) -> FioWorkload:
        for key, value in self.options.items():
            what = not_mapped(key, value)
            if what:
                self._tell("not_mapped", what)
        kind, read_frac = self._kind()
        direct = self._direct()
        backend, depth = self._backend(direct=direct)
        process_num = read_whole("numjobs", self.options.get("numjobs", "1"), 1, PROCESSES_MAX)
        seq_frac = self._seq_frac(kind, read_frac)
        read, write = (read_sizes(self.options, index, self.kb_base) for index in (0, 1))
        think_time_s, depth = read_think_time(self.options, depth, self._tell)
        paced = read_arrivals(
            self.options,
            sizes=(read, write),
            read_frac=read_frac,
            process_num=process_num,
            kb_base=self.kb_base,
            tell=self._tell,
        )
        read_frac = paced.read_frac
        if paced.arrivals.kind != "closed" and think_time_s:
            self._tell("not_mapped", "thinktime beside a rate; the rate is kept")
            think_time_s = 0.0
        unique_bytes = self._unique_bytes(process_num, min(read.min_bytes, write.min_bytes))
        self._alignment(seq_frac, read_frac, read, write)
        sizes = mixed(read, write, read_frac)
        size_mean, size_dist = self._sizes(sizes, read, write, read_frac, unique_bytes)
        access = self._access(seq_frac, unique_bytes, sizes.min_bytes, size_mean)
        self._caching(seq_frac, read_frac, direct=direct, process_num=process_num)
        if at_once:
            self._tell(
                "differs",
                "fio runs this file's jobs at the same time (no stonewall); here each is "
                "taken by itself",
            )
        return FioWorkload(
            name=self.name,
            workload=Workload(
                unique_bytes=unique_bytes,
                size_mean=size_mean,
                read_frac=read_frac,
                seq_frac=seq_frac,
                process_num=process_num,
                size_dist=size_dist,
                queue_depth=depth,
                think_time_s=think_time_s,
                access=access,
            ),
            access=Access(
                backend=backend,
                direct=direct,
                sync=read_sync(self.options, read_frac, self._tell),
                **self._content(),
            ),
            arrivals=paced.arrivals,
            seconds=self._seconds(),
            findings=tuple(self.found),
        )

    def _tell(self, code: str, what: str) -> None:
        self.found.append(Finding.of(code, what=what))

    def _kind(self) -> tuple[str, float]:
        kind = self.options.get("rw", "read").partition(":")[0].strip()
        if "trim" in kind:
            raise FioJobRefused(f"rw={kind}: Leadline does not trim; give reads and writes")
        if kind in _READS:
            return kind, _READS[kind]
        if kind not in ("rw", "readwrite", "randrw"):
            raise FioJobRefused(
                f"rw={kind}: not one of read, write, randread, randwrite, rw, readwrite, randrw"
            )
        percent = 50
        # Each sets both; the later one counts.
        for key, value in self.options.items():
            if key == "rwmixread":
                percent = read_whole(key, value, 0, 100)
            elif key == "rwmixwrite":
                percent = 100 - read_whole(key, value, 0, 100)
        return kind, percent / 100

    def _seq_frac(self, kind: str, read_frac: float) -> float:
        _, _, every = self.options.get("rw", "read").partition(":")
        if not kind.startswith("rand"):
            if every:
                self._tell(
                    "not_mapped",
                    f"rw={kind}:{every} makes it ANOTHER workload: fio leaves a hole "
                    "after each request; here the next one follows at once",
                )
            return 1.0
        shares = [
            read_whole("percentage_random", value or "100", 0, 100) / 100
            for value in read_pair(self.options.get("percentage_random", "100"))
        ]
        random_frac = round(read_frac * shares[0] + (1 - read_frac) * shares[1], 12)
        if shares[0] != shares[1] and 0 < read_frac < 1:
            self._tell(
                "approximated",
                "percentage_random differs for reads and writes; here both have "
                f"their mean, {random_frac:.0%}",
            )
        if not every:
            return round(1.0 - random_frac, 12)
        if self.options.get("rw_sequencer", "sequential") != "sequential":
            self._tell(
                "not_mapped",
                f"rw={kind}:{every} with rw_sequencer=identical makes it ANOTHER "
                "workload: fio asks for the same place again and again",
            )
            return round(1.0 - random_frac, 12)
        self._tell(
            "approximated",
            f"rw={kind}:{every} takes every {every}th place at random in fio; here "
            "each request draws that share",
        )
        return 1.0 - random_frac / read_whole("rw", every, 1, 2**31)

    def _direct(self) -> bool:
        direct = False
        for key, value in self.options.items():
            if key in ("direct", "buffered"):
                direct = read_switch(value) == (key == "direct")
        return direct

    def _backend(self, *, direct: bool) -> tuple[str, int]:
        engine = self.options.get("ioengine", "psync").partition(":")[0]
        if engine not in BACKENDS:
            raise FioJobRefused(
                f"ioengine={engine}: not file I/O that Leadline does; it takes "
                f"{', '.join(BACKENDS)}"
            )
        depth = read_whole("iodepth", self.options.get("iodepth", "1"), 1, QUEUE_DEPTH_MAX)
        backend = BACKENDS[engine]
        if engine == "posixaio":
            self._tell("approximated", "ioengine=posixaio uses threads; here io_uring")
        waits = backend != "uring" or (engine == "libaio" and not direct)
        if waits and depth > 1:
            why = "without direct=1" if engine == "libaio" else "which waits for each request"
            self._tell(
                "differs", f"iodepth={depth} does nothing with ioengine={engine} {why}; taken as 1"
            )
        if waits:
            return ("pread" if engine == "libaio" else backend), 1
        return backend, depth

    def _unique_bytes(self, process_num: int, size_min: int) -> int:
        files = read_whole("nrfiles", self.options.get("nrfiles", "1"), 1, 2**31)
        named = self.options.get("filename", "").replace("\\:", "")
        if named:
            files = named.count(":") + 1
        size = self._size(files, size_min)
        if files > 1:
            self._tell("differs", f"{files} files in fio; here one of their size together")
        if named.startswith("/dev/"):
            self._tell(
                "differs", f"fio goes to the raw device {named}; here to a file on the target"
            )
        shared = named or "filename_format" in self.options
        if shared and not named:
            self._tell("differs", "filename_format is taken as files that jobs share")
        if shared or process_num == 1:
            return size
        self.found.append(
            Finding.of(
                "own_files",
                process_num=process_num,
                file_bytes=size,
                shared_bytes=process_num * size,
            )
        )
        return process_num * size

    def _size(self, files: int, size_min: int) -> int:
        """Return the bytes that one process goes over."""
        found: list[int] = []
        if "filesize" in self.options:
            low, _, high = self.options["filesize"].replace(":", "-").partition("-")
            ends = [read_bytes("filesize", end, self.kb_base) for end in (low, high or low)]
            if ends[0] != ends[1]:
                self._tell("approximated", "files of various sizes; taken as their mean")
            found.append(files * sum(ends) // 2)
        if "size" in self.options:
            found.append(read_bytes("size", self.options["size"], self.kb_base))
        if not found:
            raise FioJobRefused("it has no size=, so only fio sees how much data there is; add one")
        size = min(found)  # of larger files fio uses no more than `size`
        if size < size_min:
            raise FioJobRefused(
                f"requests of at least {size_min} bytes do not fit into {size} bytes of data, and "
                "fio refuses the job too; give a larger size="
            )
        self._end(size)
        return size

    def _end(self, size: int) -> None:
        """Warn when `io_size` ends a process before it has been everywhere."""
        text = self.options.get("io_size")
        if text is None or read_switch(self.options.get("time_based", "0")):
            return
        if text.endswith("%"):
            end = size * read_whole("io_size", text[:-1], 0, 2**31) // 100
        else:
            end = read_bytes("io_size", text, self.kb_base)
        if 0 < end < size:
            self._tell(
                "not_mapped",
                f"io_size={text} makes it ANOTHER workload: fio ends after those bytes "
                f"(no time_based); here the run goes on over all {format_bytes(size)}",
            )

    def _alignment(self, seq_frac: float, read_frac: float, read: Sizes, write: Sizes) -> None:
        """Warn when random places are further apart than the smallest request is long."""
        aligned = read_pair(self.options.get("ba", ""))
        used = ((read_frac > 0, read), (read_frac < 1, write))
        for text, (is_used, sizes) in zip(aligned, used, strict=True):
            if not (is_used and text) or seq_frac == 1:
                continue
            if read_bytes("ba", text, self.kb_base) > sizes.min_bytes:
                self._tell(
                    "not_mapped",
                    f"ba={self.options['ba']} makes it ANOTHER workload: fio's places "
                    "are that far apart and leave gaps; here every part is asked for",
                )
                return

    def _sizes(
        self, sizes: Sizes, read: Sizes, write: Sizes, read_frac: float, unique_bytes: int
    ) -> tuple[int, SizeDist]:
        mean = max(round(sizes.mean_bytes), GRANULE_BYTES)
        if sizes.cv == 0.0:
            whole = max(round(mean / GRANULE_BYTES), 1) * GRANULE_BYTES
            if whole != sizes.mean_bytes:
                self._tell(
                    "approximated",
                    f"requests of {sizes.mean_bytes:g} bytes; a fixed size here is "
                    f"a multiple of 512, taken as {whole} (to fio KiB is 1000 bytes and k is "
                    "1024, unless kb_base=1000)",
                )
            return whole, "fixed"
        if sizes.split and mean <= unique_bytes:
            own = normal_split(mean, unique_bytes, self._granule())
            if distance(sizes.split, own) <= ALIKE:
                return mean, "normal"
        histogram = histogram_of(sizes.split)
        if histogram is not None:
            return mean, histogram
        dist: SizeDist = "fixed" if sizes.cv < FIXED_BELOW_CV else "normal"
        if dist == "fixed":
            mean = round(mean / GRANULE_BYTES) * GRANULE_BYTES
        apart = read != write and 0 < read_frac < 1
        which = "sizes of reads and writes apart" if apart else "various sizes"
        taken = "every request that long" if dist == "fixed" else f"normal, CV {NORMAL_CV}"
        self._tell(
            "approximated",
            f"{which}: mean {format_bytes(sizes.mean_bytes)}, CV {sizes.cv:.2f}; taken as {taken}",
        )
        return mean, dist

    def _access(
        self, seq_frac: float, unique_bytes: int, smallest_bytes: int, size_mean: int
    ) -> Places:
        """Return which places are asked for more often than others."""
        spread = self.options.get("random_distribution", "random")
        if seq_frac == 1:
            return UNSET
        access = read_distribution(spread)
        if isinstance(access, Zipf):
            differs = zipf_differs(unique_bytes, smallest_bytes, size_mean)
            self.found += [Finding.of("approximated", what=f"{access}: {said}") for said in differs]
        if access is not None:
            return access
        self._tell(
            "not_mapped",
            f"random_distribution={spread} makes it ANOTHER workload: some places "
            "are asked for more often in fio; here all are alike",
        )
        return UNSET

    def _granule(self) -> int:
        text = read_pair(self.options.get("ba", ""))[0]
        return read_bytes("ba", text, self.kb_base) if text else GRANULE_BYTES

    def _caching(
        self, seq_frac: float, read_frac: float, *, direct: bool, process_num: int
    ) -> None:
        """Warn where fio's defaults make the page cache, or who goes where, another one."""
        options = self.options
        spread = options.get("random_distribution", "random").partition(":")[0]
        if (
            seq_frac < 1
            and spread == "random"
            and not read_switch(options.get("norandommap", "0"))
            and not direct
        ):
            self._tell(
                "differs",
                "without norandommap=1 fio asks for no place twice before it has asked "
                "for all, so a cache that holds a share c serves c + (1-c)·ln(1-c) of the "
                "requests instead of c",
            )
        pre_read = read_switch(options.get("pre_read", "0"))
        if not direct and read_switch(options.get("invalidate", "1")) and not pre_read:
            self._tell(
                "differs",
                "without invalidate=0 fio drops the file from the cache at the start and "
                "at each pass; here it stays as it is in use",
            )
        if read_frac < 1 and not read_switch(options.get("time_based", "0")):
            self._tell(
                "differs",
                "without time_based=1 fio writes each byte of size= once and ends; here a run "
                "writes until its rate is known (--max-written is a limit)",
            )
        reads_on = read_frac > 0 and seq_frac > 0 and not direct
        if reads_on and options.get("fadvise_hint", "1") != "0":
            self._tell(
                "differs",
                "without fadvise_hint=0 fio tells the kernel the pattern, which changes "
                "its read-ahead; Leadline does not",
            )
        if seq_frac > 0 and 0 < read_frac < 1:
            self._tell(
                "differs",
                "in fio reads and writes each continue their own last request; here a "
                "sequential request continues the last one of either kind",
            )
        if seq_frac == 1 and process_num > 1 and options.get("filename"):
            self._tell(
                "differs",
                "fio's processes all begin at byte 0 and walk in step, so that one reads "
                "what another has just brought in; here each begins at a place of its own",
            )

    def _content(self) -> dict[str, Any]:
        """Return what data are written, as far as the job says it."""
        shares = {
            key: read_whole(key, self.options[key], 0, 100) / 100
            for key in ("buffer_compress_percentage", "dedupe_percentage")
            if key in self.options
        }
        said: dict[str, float] = {}
        if "buffer_compress_percentage" in shares:
            zeros, most = shares["buffer_compress_percentage"], 1 - 1 / COMPRESS_MAX
            if zeros > most:
                self._tell(
                    "approximated",
                    f"buffer_compress_percentage={100 * zeros:.0f}; here data compress to a "
                    f"{COMPRESS_MAX:g}th at most, which is taken",
                )
            said["compress"] = round(1 / (1 - min(zeros, most)), 9)
        if "dedupe_percentage" in shares:
            said["dedup"] = shares["dedupe_percentage"]
        return said

    def _seconds(self) -> float | None:
        if "runtime" not in self.options:
            return None
        seconds = read_seconds("runtime", self.options["runtime"])
        return seconds or None
