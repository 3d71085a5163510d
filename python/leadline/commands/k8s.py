"""`leadline k8s STORAGECLASS`: a claim and a job that survey a storage class of a cluster."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from leadline.terminal.options import duration, positive_bytes, reader
from leadline.terminal.talk import put_bytes, talk

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""Of an object of Kubernetes (RFC 1123, a subdomain)."""
_IMAGE = re.compile(r"[A-Za-z0-9][-A-Za-z0-9._/:@]*")
USER = 65532
"""Nobody's by convention; the claim is given to it (fsGroup)."""
TIMES_MEMORY = 4
"""The volume against the pod's memory: a survey sees the device only beyond the page cache."""

# One pass of Pod Security's "restricted" (kubernetes.io, Pod Security Standards): no root, no
# rights, no new ones, the runtime's seccomp filter, and a root file system that is only read. The
# memory limit is the page cache's as well: what the pod may hold, the survey finds.
_MANIFEST = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {name}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: {storage_class}
  resources:
    requests:
      storage: "{size_bytes}"
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
spec:
  backoffLimit: 0
  activeDeadlineSeconds: {deadline_s}
  template:
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      securityContext:
        runAsNonRoot: true
        runAsUser: {user}
        runAsGroup: {user}
        fsGroup: {user}
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: leadline
          image: {image}
          command: [sh, -euc]
          args:
            - |
              leadline doctor /data >&2
              # 3: the budget ended before the survey; what was measured is kept.
              leadline survey /data --name {storage_class} --budget {budget_s:g}s || test $? = 3
              leadline export {storage_class} --format text
          env:
            - {{name: HOME, value: /tmp}}
            - {{name: LEADLINE_STORE, value: /tmp/leadline.sqlite}}
          resources:
            requests: {{cpu: "2", memory: "{memory_bytes}"}}
            limits: {{memory: "{memory_bytes}"}}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          volumeMounts:
            - {{name: data, mountPath: /data}}
            - {{name: tmp, mountPath: /tmp}}
      volumes:
        - name: data
          persistentVolumeClaim:
            claimName: {name}
        - name: tmp
          emptyDir: {{}}
"""


def command(
    *,
    storage_class: Annotated[str, typer.Argument(metavar="STORAGECLASS", help="What to survey.")],
    image: Annotated[
        str, typer.Option(metavar="IMAGE", help="Leadline's image, of its Containerfile.")
    ],
    memory: Annotated[
        int,
        typer.Option(
            parser=reader(positive_bytes),
            metavar="SIZE",
            help="Of the pod; the page cache is within it.",
        ),
    ] = 2 << 30,
    size: Annotated[
        int | None,
        typer.Option(
            parser=reader(positive_bytes),
            metavar="SIZE",
            help="Of the volume.  [default: four times the memory]",
        ),
    ] = None,
    budget: Annotated[float, duration("Of the survey.")] = 1200.0,
    name: Annotated[str, typer.Option(metavar="NAME", help="Of the claim and the job.")] = (
        "leadline"
    ),
) -> None:
    """Print a claim and a job that survey a storage class.

    Example: leadline k8s standard-rwo --image registry.example/leadline
    """
    for said, pattern, text in (
        ("a storage class", _NAME, storage_class),
        ("a name of Kubernetes", _NAME, name),
        ("an image", _IMAGE, image),
    ):
        if pattern.fullmatch(text) is None:
            raise typer.BadParameter(f"{text!r} is not {said}")
    manifest = _MANIFEST.format(
        name=name,
        storage_class=storage_class,
        image=image,
        size_bytes=size or TIMES_MEMORY * memory,
        memory_bytes=memory,
        budget_s=budget,
        deadline_s=round(2 * budget + 600),
        user=USER,
    )
    put_bytes(manifest.encode())
    talk(
        f"next: … | kubectl apply -f -; kubectl wait --for=condition=complete job/{name} "
        f"--timeout={round(2 * budget + 600)}s; kubectl logs job/{name} > {name}.log; "
        f"leadline import {name}.log; kubectl delete job/{name} pvc/{name}"
    )
