"""A program that does known I/O in every way that Python can, and says nothing.

usage: captured_program.py FOLDER

Every size stands for one way, so that a record tells which it is of.
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading

MADE = 4099 * 50
"""Bytes of the file that the others go on with."""

EXPECTED = {
    # bytes: (R or W, offsets in order)
    4099: ("W", [4099 * number for number in range(50)]),  # write
    17: ("R", list(range(1000))),  # so that it is enough to be described
    1234: ("R", [7 * number for number in range(40)]),  # pread
    2345: ("W", [11 * number for number in range(30)]),  # pwrite
    1111: ("R", [1111 * number for number in range(20)]),  # read after lseek, by a child
    333: ("R", [100, 433]),  # readv on a duplicate, the same place for both
    444: ("W", [1000]),  # pwritev
    555: ("R", [2000]),  # preadv2
    616: ("W", [0, 616, 1232]),  # O_APPEND, three descriptors
    777: ("R", [3000]),  # sendfile from there, to a pipe
    888: ("RW", [500, 0]),  # copy_file_range, from an offset to one
    999: ("R", [999 * number for number in range(10)]),  # in a thread
    1010: ("W", [0]),  # after O_TRUNC: another file
}


def main(folder: str) -> None:
    """Do all of it in a folder."""
    path, second = folder + "/data", folder + "/second"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    for _ in range(50):
        os.write(fd, b"w" * 4099)
    for number in range(1000):
        os.pread(fd, 17, number)
    for number in range(40):
        os.pread(fd, 1234, 7 * number)
    for number in range(30):
        os.pwrite(fd, b"p" * 2345, 11 * number)
    os.fdatasync(fd)
    os.fsync(fd)
    in_a_child(fd)
    twice(fd)
    os.pwritev(fd, [b"v" * 222, b"v" * 222], 1000)
    os.preadv(fd, [bytearray(555)], 2000, os.RWF_HIPRI)
    append(second)
    send(fd)
    copy(fd, second)
    thread = threading.Thread(target=read_by_itself, args=(path,))
    thread.start()
    thread.join()
    os.close(os.open(second, os.O_WRONLY | os.O_TRUNC))
    third = os.open(second, os.O_WRONLY)
    os.write(third, b"t" * 1010)
    os.unlink(second)  # noqa: PTH108 - each line is one call
    os.execv("/bin/true", ["true"])  # noqa: S606 - it is what is watched


def in_a_child(fd: int) -> None:
    """Read in a child, which moves the place of both."""
    if os.fork() == 0:
        os.lseek(fd, 0, os.SEEK_SET)
        for _ in range(20):
            os.read(fd, 1111)
        os._exit(0)
    os.wait()


def twice(fd: int) -> None:
    """Read by a second name of the same, which shares its place."""
    os.lseek(fd, 100, os.SEEK_SET)
    other = os.dup(fd)
    os.readv(other, [bytearray(111), bytearray(222)])
    os.readv(fd, [bytearray(333)])
    fcntl.fcntl(other, fcntl.F_SETFD, 0)
    os.close(other)


def append(path: str) -> None:
    """Write to the end, whoever else did."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for each in [os.open(path, flags, 0o600) for _ in range(3)]:
        os.write(each, b"a" * 616)
        os.close(each)


def send(fd: int) -> None:
    """Into a pipe, and out of it, which is no file."""
    out, into = os.pipe()
    os.sendfile(into, fd, 3000, 777)
    os.read(out, 777)


def copy(fd: int, path: str) -> None:
    """From a place to a place, in the kernel."""
    other = os.open(path, os.O_WRONLY)
    os.copy_file_range(fd, other, 888, 500, 0)
    os.close(other)


def read_by_itself(path: str) -> None:
    """In a thread, with a place of its own."""
    own = os.open(path, os.O_RDONLY)
    buffer = bytearray(999)
    for _ in range(10):
        os.readv(own, [buffer])
    os.close(own)


if __name__ == "__main__":
    main(sys.argv[1])
