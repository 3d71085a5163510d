"""Survey six really different storage systems on this one machine, and compare them on one page.

ext4, XFS and Btrfs on loop devices with direct I/O, tmpfs, and this disk twice: behind a block-I/O
throttle at two speeds, with two sizes of the page cache. What differs is known, so the page can be
held against it. Needs root, mkfs.xfs, mkfs.btrfs and cgroups of version 1 (the throttle); what is
missing is said and left out.

    .venv/bin/python bench/six_systems.py [--budget 90s] [--only xfs …] [-o six.html]

Everything is mounted in a mount namespace of this process, on loop devices that the kernel clears
with the last mount and images without a name: an end of any kind leaves nothing mounted.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from leadline.machine.loop_devices import loop_device

IMAGE_BYTES = 3 * 2**30
"""1 GiB stays free on any file system, the rest is for data."""
DATA_BYTES = 768 * 2**20
CACHE_MIB = 96
THROTTLES = Path("/sys/fs/cgroup/blkio")
IN_NAMESPACE = "LEADLINE_SIX_SYSTEMS"

WORKLOADS = (
    "unique_bytes=72MiB,size_mean=16KiB,read_frac=0.5,seq_frac=0.5,process_num=4",
    "unique_bytes=320MiB,size_mean=8KiB,read_frac=0.5,seq_frac=0,process_num=4",
    "unique_bytes=320MiB,size_mean=64KiB,read_frac=1,seq_frac=0.5,process_num=4",
    "unique_bytes=320MiB,size_mean=256KiB,read_frac=1,seq_frac=1,process_num=4",
    "unique_bytes=320MiB,size_mean=64KiB,read_frac=0,seq_frac=1,process_num=4",
)
"""Inside most of the caches; a database; a file server; a scan; a log. In every survey's ranges:
six times the least cache, and one number of processes that all of them tried."""


@dataclass(frozen=True)
class System:
    """One system: where its files lie, and what stands before its disk."""

    name: str
    make: tuple[str, ...] = ()
    """mkfs and its options, for a loop device; none for this disk and for tmpfs."""
    type: str = ""
    cache_mib: int | None = CACHE_MIB
    throttle_mb_s: int | None = None


SYSTEMS = (
    System("ext4", ("mkfs.ext4", "-q", "-E", "lazy_itable_init=0"), "ext4"),
    System("xfs", ("mkfs.xfs", "-q"), "xfs"),
    System("btrfs", ("mkfs.btrfs", "-q"), "btrfs"),
    System("tmpfs", (), "tmpfs", cache_mib=None),
    System("disk-40", cache_mib=64, throttle_mb_s=40),
    System("disk-160", cache_mib=192, throttle_mb_s=160),
)


def missing(system: System) -> str:
    """Say why a system cannot be made here; nothing when it can."""
    if system.make and shutil.which(system.make[0]) is None:
        return f"{system.make[0]} is not installed"
    if system.throttle_mb_s and not (THROTTLES / "blkio.throttle.read_bps_device").exists():
        return "no blkio cgroup of version 1 here"
    return ""


@contextlib.contextmanager
def mounted(system: System, folder: Path) -> Iterator[Path]:
    """Give the directory to survey; unmounted when the block ends."""
    point = folder / system.name
    point.mkdir()
    with contextlib.ExitStack() as stack:
        if system.type == "tmpfs":
            run("mount", "-t", "tmpfs", "-o", f"size={IMAGE_BYTES}", "tmpfs", str(point))
        elif system.type:
            device = stack.enter_context(image_device(system, folder))
            run("mount", "-t", system.type, str(device), str(point))
        if system.type:
            stack.callback(run, "umount", str(point))
        yield point


@contextlib.contextmanager
def image_device(system: System, folder: Path) -> Iterator[Path]:
    """Make a file system on a nameless image behind a loop device."""
    image = folder / f"{system.name}.img"
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    with loop_device(image) as device:
        image.unlink()
        run(*system.make, str(device.path))
        yield device.path


@contextlib.contextmanager
def throttled(system: System, folder: Path) -> Iterator[Path | None]:
    """Make a cgroup whose reads and writes of the folder's device are slowed down."""
    if system.throttle_mb_s is None:
        yield None
        return
    remove_stale()
    group = THROTTLES / f"leadline-six-{os.getpid()}"
    group.mkdir()
    try:
        number = folder.stat().st_dev
        limit = f"{os.major(number)}:{os.minor(number)} {system.throttle_mb_s * 10**6}"
        for way in ("read", "write"):
            (group / f"blkio.throttle.{way}_bps_device").write_text(limit)
        yield group
    finally:
        group.rmdir()


def remove_stale() -> None:
    """Remove the groups of runs that were killed."""
    for group in THROTTLES.glob("leadline-six-*"):
        if not Path(f"/proc/{group.name.rpartition('-')[2]}").exists():
            group.rmdir()


def survey(system: System, folder: Path, store: Path, budget: str) -> None:
    """Survey one system into the store."""
    cap = f"{system.cache_mib}MiB" if system.cache_mib else "none"
    with mounted(system, folder) as point, throttled(system, folder) as group:
        command = [
            *leadline(store),
            "survey",
            str(point),
            "--name",
            system.name,
            "--budget",
            budget,
            "--max-bytes",
            str(DATA_BYTES),
            "--cache-limit",
            cap,
        ]
        join = f'echo $$ > "{group}/cgroup.procs"; ' if group else ""
        done = subprocess.run(["bash", "-c", join + 'exec "$@"', "bash", *command], check=False)
        if done.returncode not in (0, 3):
            sys.exit(f"the survey of {system.name} ended with {done.returncode}")


def leadline(store: Path) -> list[str]:
    """Give the command of this checkout."""
    return [str(Path(sys.executable).with_name("leadline")), "--store", str(store)]


def run(*command: str) -> str:
    """Run a command to its end; its words are part of the error."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def in_own_namespace() -> None:
    """Start again where mounts are this process's own."""
    if os.geteuid():
        sys.exit("mounting needs root: run this as root")
    if IN_NAMESPACE not in os.environ:
        os.environ[IN_NAMESPACE] = "1"
        command = ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv]
        os.execvp("unshare", command)  # noqa: S606 - no shell is wanted


def main(arguments: Sequence[str] | None = None) -> None:
    """Survey what can be surveyed, then write the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", default="90s", help="of each survey")
    parser.add_argument("--only", nargs="+", choices=[system.name for system in SYSTEMS])
    parser.add_argument("--folder", type=Path, default=Path(), help="on the disk to use")
    parser.add_argument("-o", "--output", type=Path, default=Path("six-systems.html"))
    options = parser.parse_args(arguments)
    in_own_namespace()
    chosen = [s for s in SYSTEMS if options.only is None or s.name in options.only]
    store = options.output.resolve().with_suffix(".sqlite")
    surveyed = []
    with tempfile.TemporaryDirectory(prefix="six-", dir=options.folder) as folder:
        for system in chosen:
            if why := missing(system):
                print(f"{system.name}: left out, {why}")
                continue
            survey(system, Path(folder).resolve(), store, options.budget)
            surveyed.append(system.name)
    asked = [word for workload in WORKLOADS for word in ("--workload", workload)]
    compare = [*leadline(store), "compare", *surveyed, *asked, "-o", str(options.output), "--force"]
    sys.exit(subprocess.run(compare, check=False).returncode)


if __name__ == "__main__":
    main()
