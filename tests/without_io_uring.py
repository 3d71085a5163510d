"""Runs a program without io_uring, as container runtimes and RHEL do.

usage: python without_io_uring.py PROGRAM [ARGUMENTS]
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys

_IO_URING_SETUP = 425
"""The number of the system call, the same on every architecture."""
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


class _Statement(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("if_true", ctypes.c_ubyte),
        ("if_false", ctypes.c_ubyte),
        ("k", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("statements", ctypes.POINTER(_Statement)))


def forbid_io_uring() -> None:
    """Have this process, and all that it starts, refused io_uring with EPERM."""
    statements = (_Statement * 4)(
        _Statement(_LOAD, 0, 0, 0),
        _Statement(_JUMP_IF_EQUAL, 0, 1, _IO_URING_SETUP),
        _Statement(_RETURN, 0, 0, _ERRNO | errno.EPERM),
        _Statement(_RETURN, 0, 0, _ALLOW),
    )
    program = _Program(len(statements), statements)
    libc = ctypes.CDLL(None, use_errno=True)
    for words in ((_NO_NEW_PRIVILEGES, 1, 0, 0, 0), (_SECCOMP, _FILTER, ctypes.byref(program))):
        if libc.prctl(*(ctypes.c_ulong(w) if isinstance(w, int) else w for w in words)) != 0:
            raise OSError(ctypes.get_errno(), "no seccomp filter can be set")


if __name__ == "__main__":
    forbid_io_uring()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - no shell is wanted
