"""Write the first inputs of the fuzz targets, and what was found before (corpus/).

fuzz/seeds.py FOLDER     fills FOLDER/TARGET for each: the wire's examples, the shipped profiles,
                         answers as NFS servers give them
"""

from __future__ import annotations

import json
import shutil
import struct
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = ("job", "profile", "histogram", "reply", "nfs", "layout", "server", "trace")


def main(folder: Path) -> None:
    """Fill one folder per target."""
    for target in TARGETS:
        (folder / target).mkdir(parents=True, exist_ok=True)
        for found in sorted((ROOT / "fuzz" / "corpus" / target).glob("*")):
            shutil.copyfile(found, folder / target / f"found-{found.name}")
    for name, data in {**nfs_seeds(), **other_seeds()}.items():
        (folder / name).write_bytes(data)
    for example in ROOT.glob("protocol/examples/**/*valid/*.json"):
        seed = folder / "job" / f"{example.parent.parent.name}-{example.parent.name}-{example.name}"
        # Without white space, which would waste the mutations.
        document = json.loads(example.read_text(encoding="utf-8"))
        seed.write_text(json.dumps(document, separators=(",", ":")), encoding="utf-8")
    for profile in ROOT.glob("python/leadline/profiles/**/*.toml"):
        system = tomllib.loads(profile.read_text(encoding="utf-8"))
        seed = folder / "profile" / f"{profile.stem}.json"
        seed.write_text(json.dumps(system, separators=(",", ":")), encoding="utf-8")
    (folder / "histogram" / "counting").write_bytes(bytes(range(256)))


def words(*values: int) -> bytes:
    """Return words of a server's."""
    return struct.pack(f">{len(values)}I", *values)


def attributes(kind: int) -> bytes:
    """Return a file's (1) or directory's (2) attributes, of RFC 1813 `fattr3`."""
    return words(kind, 0o700, 1, 0, 0) + bytes(4) + words(8192) + bytes(56)


HANDLE = words(4) + b"hand"
INFO = words(0, 0, *[65536] * 7) + bytes(16) + words(0x1B)
STAT = words(0, 0) + bytes(52)
LISTING = words(0, 0) + bytes(8) + words(1, 0, 5, 8) + b"data.bin" + words(0, 1, 0, 1)
LOOKED_UP = words(0) + HANDLE + words(1) + attributes(1) + words(0)
MADE = words(0, 1) + HANDLE + words(0, 0, 0)
WROTE = words(0, 0, 0, 4096, 2, 1, 2)
READ = words(0, 0, 8192, 1, 8192) + bytes(8192)
"""Bodies of answers that make sense."""


def nfs_seeds() -> dict[str, bytes]:
    """Return a whole conversation, and each of its answers with a head."""
    mounted, found = words(0) + HANDLE + words(1, 1), words(0) + attributes(2)
    said = [
        mounted,
        found,
        INFO,
        STAT,
        LISTING,
        LOOKED_UP,
        words(0, 0, 5, 1, 5) + b"bytes" + bytes(3),
    ]
    said += [MADE, words(0) + attributes(1), INFO, words(0, 0, 800, 1, 800) + bytes(800), WROTE]
    said += [words(0, 0, 800, 0, 800) + bytes(800), WROTE, words(0, 0, 0, 1, 2)]
    script = b"".join(bytes([len(body) // 4, 0]) + body for body in said)
    head = words(77, 1, 0, 0, 0, 0)
    each = {f"reply/{number}": head + body for number, body in enumerate([*said, READ[:600]])}
    return {"nfs/whole": script, "nfs/mounted": script[: len(mounted) + 2], **each}


def other_seeds() -> dict[str, bytes]:
    """Return a layout, and simulated servers of both families."""
    part = {"files": ["/disk1/set.part0.stripe0", "/disk2/set.part0.stripe1"], "bytes": 1000}
    layout = {"version": 1, "parts": [part | {"stripe_bytes": 65536}]}
    found = {"layout/two": json.dumps(layout).encode(), **trace_seeds()}
    for trial in sorted(ROOT.glob("protocol/examples/simulated_trials/valid/*.json")):
        server = json.loads(trial.read_text(encoding="utf-8"))["server"]
        found[f"server/{trial.name}"] = json.dumps(server, separators=(",", ":")).encode()
    for experiment in sorted(ROOT.glob("workloads/*.toml")):
        server = tomllib.loads(experiment.read_text(encoding="utf-8"))["server"]["system"]
        found[f"server/{experiment.stem}"] = json.dumps(server, separators=(",", ":")).encode()
    return found


def trace_seeds() -> dict[str, bytes]:
    """Return a few requests in every format that is read as text, and one of blktrace's records."""
    msr = [
        f"1281668{n:011},usr,0,{'Read' if n % 3 else 'Write'},{n % 9 * 4096},4096,{n}"
        for n in range(60)
    ]
    alibaba = [
        f"0,{'RW'[n % 2]},{n % 9 * 4096},4096,{1577808000000000 + 100 * n}" for n in range(60)
    ]
    tencent = [f"{1538323200 + n // 10},{8 * (n % 9)},8,{n % 2},1063" for n in range(60)]
    strace = [
        f'7 1700000000.{n:06} pread64(3</a>, "x"..., 4096, {n % 9 * 4096}) = 4096 <0.000100>'
        for n in range(60)
    ]
    strace += ["7 1700000001.000000 fsync(3</a>) = 0 <0.000200>"]
    iolog = ["fio version 3 iolog", "0 /a add", "1 /a open"]
    iolog += [f"{n} /a read {n % 9 * 4096} 4096" for n in range(2, 60)]
    dxt = ["# DXT, file_id: 1, file_name: /a", "# DXT, rank: 0, hostname: h"]
    dxt += [f" X_POSIX 0 read {n} {n % 9 * 4096} 4096 {n}.0 {n}.1" for n in range(60)]
    texts = {"msr": msr, "alibaba": alibaba, "tencent": tencent, "strace": strace}
    texts |= {"iolog": iolog, "dxt": dxt}
    head = struct.pack("<IIQQIIIIIHH", 0x65617407, 1, 1000, 8, 4096, 1 << 16 | 1, 7, 8, 0, 0, 0)
    return {
        "trace/blktrace": head * 20,
        **{f"trace/{name}": ("\n".join(lines) + "\n").encode() for name, lines in texts.items()},
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
