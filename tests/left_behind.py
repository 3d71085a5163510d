"""What a command may leave behind on a machine: loop devices, mounts, processes."""

from __future__ import annotations

from pathlib import Path


def loops_of(place: Path) -> list[str]:
    """Loop devices whose image lies below a directory."""
    found = []
    for device in Path("/sys/block").glob("loop*"):
        try:
            backing = (device / "loop/backing_file").read_text().strip()
        except OSError:
            continue
        if backing.startswith(f"{place}/"):
            found.append(device.name)
    return found


def mounted_below(place: Path, process: str = "self") -> list[str]:
    """Mount points below a directory, as a process sees them."""
    try:
        lines = Path(f"/proc/{process}/mountinfo").read_text().splitlines()
    except OSError:
        return []
    return [line.split()[4] for line in lines if line.split()[4].startswith(f"{place}/")]


def children_of(pid: int) -> list[str]:
    """Processes that a process has started and that live: a command's engines."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    return children.read_text().split() if children.exists() else []


def processes_with(mark: str) -> list[str]:
    """Processes whose environment has this line, each with its command."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found.append(f"{process.name} {words[:120]}")
        except OSError:
            continue
    return found
