"""The commands of the docs, typed where they are for: two machines, and a pod without rights."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

import without_io_uring
from command import LEADLINE, environment, leadline
from places import ROOT

pytestmark = pytest.mark.real


def typed(page: str, heading: str) -> list[str]:
    """The first commands under a heading of a page, without what follows a `#`."""
    text = (ROOT / "docs" / page).read_text("utf-8").partition(heading)[2]
    block = re.search(r"(?:^    .*\n)+", text, re.MULTILINE)
    assert block is not None
    return [line.partition("#")[0].strip() for line in block[0].splitlines()]


def run(line: str, folder: Path, store: Path) -> subprocess.CompletedProcess[str]:
    """Type a line of the docs in a folder."""
    own = environment(store) | {"PATH": f"{Path(LEADLINE).parent}:{os.environ['PATH']}"}
    return subprocess.run(
        ["sh", "-euc", line],
        cwd=folder,
        env=own,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_two_machines_bring_their_surveys_together(tmp_path: Path) -> None:
    """Each machine has a store of its own, and a third one has neither study."""
    export, *there = typed("guide/shared-store.md", "# Results of several machines")
    for name, profile in (("atlas", "two-level"), ("borea", "four-level")):
        store = tmp_path / f"{name}.sqlite"
        words = ("survey", f"sim:{profile}", "--budget", "1m", "--learn", "0", "--name", name)
        assert leadline(*words, store=store).returncode == 0
        done = run(export.replace("atlas", name), tmp_path, store)
        assert done.returncode == 0, done.stderr
    store = tmp_path / "third.sqlite"
    said = [run(line, tmp_path, store) for line in there]
    assert [done.returncode for done in said] == [0, 0], [done.stderr for done in said]
    assert "atlas faster on" in said[1].stdout


def manifest(*options: str, store: Path) -> list[dict[str, Any]]:
    """The documents of the command of the docs."""
    line = next(
        each
        for each in typed("guide/kubernetes.md", "# A storage class")
        if each.startswith("leadline k8s")
    )
    words = line.partition(" > ")[0].split()[1:]
    done = leadline(*words, *options, store=store)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def test_the_manifest_is_valid_and_passes_pod_security_restricted(tmp_path: Path) -> None:
    claim, job = manifest("--memory", "1GiB", store=tmp_path / "s.sqlite")
    for each in (claim, job):
        kubernetes_validate.validate(each, "1.30", strict=True)
    assert claim["spec"]["storageClassName"] == "standard"
    assert int(claim["spec"]["resources"]["requests"]["storage"]) == 4 << 30
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    # Pod Security Standards, "restricted", each control that is about a field.
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert {kind for volume in pod["volumes"] for kind in volume} == {
        "name",
        "persistentVolumeClaim",
        "emptyDir",
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()


@pytest.mark.parametrize(
    "words", [("Fast_SSD", "--image", "i"), ("fast", "--image", "i; rm"), ("fast",)]
)
def test_what_would_be_no_manifest_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    done = leadline("k8s", *words, store=tmp_path / "s.sqlite")
    assert (done.returncode, done.stdout) == (2, "")
    assert not done.stderr.startswith("Traceback")


POD = """\
mount --make-rprivate /
mount -t tmpfs none /tmp
mkdir /tmp/leadline
mount --bind "$1" "$1"
mount --bind /proc/sys /proc/sys
findmnt -rno TARGET | grep -v -e ^/tmp -e "^$1" -e "^/proc$" | while read -r place; do
  mount -o remount,bind,ro "$place" 2>/dev/null || true
done
shift
exec unshare --user --map-user=65532 --map-group=65532 \
  setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$@"
"""
"""A pod's namespaces: all but its volumes is only read, and it has no rights outside. Mapped, its
user may still read what root may, so that this checkout can be run."""


def test_a_pod_without_rights_surveys_and_its_log_is_imported(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root makes a pod's namespaces, with setpriv")
    (ROOT / "build").mkdir(exist_ok=True)
    # Not below /tmp, of which the pod has one of its own.
    with tempfile.TemporaryDirectory(prefix="leadline-pod-", dir=ROOT / "build") as data_text:
        data = Path(data_text)
        _, job = manifest("--budget", "45s", store=tmp_path / "s.sqlite")
        (container,) = job["spec"]["template"]["spec"]["containers"]
        script = container["args"][0].replace("/data", str(data))
        assert str(data) in script
        own = {each["name"]: each["value"] for each in container["env"]}
        own["PATH"] = f"{Path(LEADLINE).parent}:{os.environ['PATH']}"
        namespaces = ("unshare", "--mount", "sh", "-euc", POD, "pod")
        filtered = (sys.executable, without_io_uring.__file__)
        done = subprocess.run(
            [*namespaces, data, *filtered, *container["command"], script],
            env=own,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert list(data.iterdir()) == []
    unable = [line for line in done.stderr.splitlines() if line.startswith("  no ")]
    for name in ("io_uring", "memory cgroup", "dirty limits", "BPF", "loop devices"):
        assert any(name in line for line in unable), (name, done.stderr)
    log, store = tmp_path / "survey.log", tmp_path / "other.sqlite"
    lines = (f"2026-11-24T00:00:00Z {line}\n" for line in (done.stderr + done.stdout).splitlines())
    log.write_text("".join(lines))
    imported = leadline("import", str(log), store=store)
    assert imported.returncode == 0, imported.stderr
    (row,) = json.loads(leadline("systems", "--json", store=store).stdout)
    assert (row["system"], row["target"]) == ("standard", str(data))
    for cut, why in ((-200, "ends within"), (0, "damaged")):
        text = log.read_text()
        body = text.index("BEGIN LEADLINE") + 200
        log.write_text(text[:cut] if cut else text[:body] + "*" + text[body + 1 :])
        refused = leadline("import", str(log), store=tmp_path / "third.sqlite")
        assert refused.returncode == 2
        assert why in refused.stderr
        log.write_text(text)
