/* Fails the n-th call that SQLite makes, in the manner of SQLite's own ioerr and malloc tests.
 *
 * Loaded with LD_PRELOAD. `fail_call` arms it; only calls on files whose path holds "store.sqlite",
 * and allocations made from within libsqlite3, are counted.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { NONE, READ, WRITE, FULL, SYNC, OPEN, MEMORY };

static int armed = NONE, lasting;
static long at, counted;
static char *text_from, *text_to;

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

static int find_sqlite(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    if (!strstr(info->dlpi_name, "libsqlite3"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_flags & PF_X) {
            text_from = (char *)info->dlpi_addr + part->p_vaddr;
            text_to = text_from + part->p_memsz;
        }
    }
    return 1;
}

/* Fail the n-th call of a kind, or from it on; returns whether SQLite was found. */
int fail_call(int kind, long nth, int from_then_on) {
    dl_iterate_phdr(find_sqlite, NULL);
    at = nth, lasting = from_then_on, counted = 0, armed = kind;
    return text_from != NULL;
}

/* Stop failing; returns how many calls of the kind there were. */
long calls_made(void) {
    armed = NONE;
    return counted;
}

static int fails_now(void) {
    counted++;
    return counted == at || (lasting && counted > at);
}

static int of_store(int fd) {
    char link[40], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return strstr(path, "store.sqlite") != NULL;
}

static int fails_on(int fd, int kind, int number) {
    if (armed != kind || !of_store(fd) || !fails_now())
        return 0;
    errno = number;
    return 1;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRITE_FAILS(fd) (fails_on(fd, WRITE, EIO) || fails_on(fd, FULL, ENOSPC))

ssize_t read(int fd, void *to, size_t n) {
    return fails_on(fd, READ, EIO) ? -1 : NEXT(read)(fd, to, n);
}
ssize_t pread(int fd, void *to, size_t n, off_t o) {
    return fails_on(fd, READ, EIO) ? -1 : NEXT(pread)(fd, to, n, o);
}
ssize_t pread64(int fd, void *to, size_t n, off64_t o) {
    return fails_on(fd, READ, EIO) ? -1 : NEXT(pread64)(fd, to, n, o);
}
ssize_t write(int fd, const void *from, size_t n) {
    return WRITE_FAILS(fd) ? -1 : NEXT(write)(fd, from, n);
}
ssize_t pwrite(int fd, const void *from, size_t n, off_t o) {
    return WRITE_FAILS(fd) ? -1 : NEXT(pwrite)(fd, from, n, o);
}
ssize_t pwrite64(int fd, const void *from, size_t n, off64_t o) {
    return WRITE_FAILS(fd) ? -1 : NEXT(pwrite64)(fd, from, n, o);
}
int ftruncate(int fd, off_t n) { return WRITE_FAILS(fd) ? -1 : NEXT(ftruncate)(fd, n); }
int ftruncate64(int fd, off64_t n) { return WRITE_FAILS(fd) ? -1 : NEXT(ftruncate64)(fd, n); }
int fsync(int fd) { return fails_on(fd, SYNC, EIO) ? -1 : NEXT(fsync)(fd); }
int fdatasync(int fd) { return fails_on(fd, SYNC, EIO) ? -1 : NEXT(fdatasync)(fd); }

static int open_fails(const char *path) {
    if (armed != OPEN || !strstr(path, "store.sqlite") || !fails_now())
        return 0;
    errno = EMFILE;
    return 1;
}
static mode_t mode_of(int flags, va_list rest) { return flags & O_CREAT ? va_arg(rest, int) : 0; }

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return open_fails(path) ? -1 : NEXT(open)(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return open_fails(path) ? -1 : NEXT(open64)(path, flags, mode);
}

static int out_of_memory(void *caller) {
    char *from = caller;
    return armed == MEMORY && from >= text_from && from < text_to && fails_now();
}

void *malloc(size_t n) {
    return out_of_memory(__builtin_return_address(0)) ? NULL : __libc_malloc(n);
}
void *calloc(size_t n, size_t size) {
    return out_of_memory(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}
void *realloc(void *old, size_t n) {
    return out_of_memory(__builtin_return_address(0)) ? NULL : __libc_realloc(old, n);
}
