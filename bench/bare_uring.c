/* The limit that bench/engine.py holds Leadline's direct requests against: io_uring and nothing else.
 *
 * One ring with a registered file and registered buffers, made with SINGLE_ISSUER and DEFER_TASKRUN.
 * Each completion is followed at once by the next read, at a place that was drawn before the loop.
 * The clock is read once in 64 completions; the first 0.3 s, as fio's, do not count.
 *
 * usage: bare_uring FILE FILE_BYTES REQUEST_BYTES SECONDS DEPTH
 * prints: reads per second, CPU microseconds per read
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bare.h"

enum { DEPTH_MAX = 256, LOOK_EVERY = 64 };
static const double RAMP_S = 0.3;

static int ring;
static struct io_uring_sqe *entries;
static struct io_uring_cqe *completions;
static unsigned *sent, *taken, *ended, *slots, sent_mask, ended_mask;

static void open_ring(unsigned depth)
{
    struct io_uring_params found = {.flags = IORING_SETUP_SINGLE_ISSUER |
                                             IORING_SETUP_DEFER_TASKRUN};
    ring = (int)syscall(SYS_io_uring_setup, depth, &found);
    if (ring < 0)
        stop("io_uring_setup");
    size_t bytes = found.cq_off.cqes + found.cq_entries * sizeof(struct io_uring_cqe);
    size_t own = found.sq_off.array + found.sq_entries * sizeof(unsigned);
    char *at = mmap(NULL, bytes > own ? bytes : own, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING);
    entries = mmap(NULL, found.sq_entries * sizeof *entries, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES);
    if (at == MAP_FAILED || entries == MAP_FAILED)
        stop("mmap");
    sent = (unsigned *)(at + found.sq_off.tail);
    sent_mask = *(unsigned *)(at + found.sq_off.ring_mask);
    slots = (unsigned *)(at + found.sq_off.array);
    taken = (unsigned *)(at + found.cq_off.head);
    ended = (unsigned *)(at + found.cq_off.tail);
    ended_mask = *(unsigned *)(at + found.cq_off.ring_mask);
    completions = (struct io_uring_cqe *)(at + found.cq_off.cqes);
}

static void give(void *buffer, uint32_t bytes, uint64_t place, unsigned slot)
{
    unsigned tail = *sent, index = tail & sent_mask;
    entries[index] = (struct io_uring_sqe){.opcode = IORING_OP_READ_FIXED,
                                           .flags = IOSQE_FIXED_FILE,
                                           .off = place,
                                           .addr = (uint64_t)(uintptr_t)buffer,
                                           .len = bytes,
                                           .user_data = slot,
                                           .buf_index = (uint16_t)slot};
    slots[index] = index;
    __atomic_store_n(sent, tail + 1, __ATOMIC_RELEASE);
}

static void enter(unsigned count, unsigned wanted)
{
    if (syscall(SYS_io_uring_enter, ring, count, wanted, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
        stop("io_uring_enter");
}

int main(int count, char **words)
{
    if (count != 6)
        return 2;
    uint64_t file_bytes = strtoull(words[2], NULL, 10), bytes = strtoull(words[3], NULL, 10);
    double seconds = strtod(words[4], NULL);
    unsigned depth = (unsigned)atoi(words[5]);
    if (!bytes || file_bytes < bytes || !depth || depth > DEPTH_MAX)
        return 2;
    int file = open(words[1], O_RDONLY | O_DIRECT);
    uint32_t *places = malloc(PLACES * sizeof *places);
    char *memory = aligned_alloc(4096, depth * bytes);
    if (file < 0 || !places || !memory)
        stop(words[1]);
    uint64_t state = (uint64_t)time(NULL);
    for (int i = 0; i < PLACES; i++)
        places[i] = (uint32_t)(draw(&state) % (file_bytes / bytes));
    memset(memory, 0, depth * bytes);
    open_ring(depth);
    struct iovec buffers[DEPTH_MAX];
    for (unsigned slot = 0; slot < depth; slot++)
        buffers[slot] = (struct iovec){memory + slot * bytes, bytes};
    if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, buffers, depth) < 0 ||
        syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, &file, 1) < 0)
        stop("io_uring_register");
    uint64_t reads = 0, first = 0;
    double begin_s = now_s(CLOCK_MONOTONIC), took_s = 0, cpu_s = 0;
    for (unsigned slot = 0; slot < depth; slot++) {
        give(buffers[slot].iov_base, (uint32_t)bytes, places[slot] * bytes, slot);
        enter(1, 0);
    }
    while (took_s < seconds) {
        unsigned head = *taken;
        if (head == __atomic_load_n(ended, __ATOMIC_ACQUIRE)) {
            enter(0, 1);
            continue;
        }
        struct io_uring_cqe done = completions[head & ended_mask];
        __atomic_store_n(taken, head + 1, __ATOMIC_RELEASE);
        if (done.res != (int)bytes)
            stop("read");
        unsigned slot = (unsigned)done.user_data;
        give(buffers[slot].iov_base, (uint32_t)bytes,
             places[(++reads + depth) & (PLACES - 1)] * bytes, slot);
        enter(1, depth == 1);
        if (reads % LOOK_EVERY)
            continue;
        took_s = now_s(CLOCK_MONOTONIC) - begin_s;
        if (!first && took_s > RAMP_S) {
            first = reads;
            begin_s += took_s;
            took_s = 0;
            cpu_s = now_s(CLOCK_PROCESS_CPUTIME_ID);
        }
    }
    double counted = (double)(reads - first);
    cpu_s = now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu_s;
    printf("%.1f %.6f\n", counted / took_s, 1e6 * cpu_s / counted);
    return 0;
}
