/* The limit that bench/engine.py holds Leadline against: a loop of pread and nothing else.
 *
 * Places are drawn before the loop; the clock is read before it and after it. A first, shorter loop
 * finds how many reads fill the time asked for, and warms the processor up. 2^20 places of 4 bytes
 * are read one after the other, which the processor's prefetcher hides: 4 bytes beside the 512 or
 * 4096 of a request. Fewer places would come round too soon: with 512-byte requests the same few
 * megabytes would be copied again and again out of a processor cache that a true random load misses.
 *
 * usage: bare_pread FILE FILE_BYTES REQUEST_BYTES SECONDS CPU [CPU ...]     (one thread per CPU)
 * prints: reads per second of all threads together, CPU microseconds per read
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bare.h"

enum { FIRST_READS = 1 << 16, BUFFER_BYTES = 2 << 20, THREADS_MAX = 64 };

static const char *path;
static uint64_t file_bytes, request_bytes;
static double seconds;
static pthread_barrier_t start;

struct issuer {
    int cpu;
    uint64_t reads;
    double reads_per_s, cpu_s;
};

static double loop(int file, char *buffer, const uint32_t *places, uint64_t reads)
{
    double begin = now_s(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < reads; i++) {
        off_t place = (off_t)(places[i & (PLACES - 1)] * request_bytes);
        if (pread(file, buffer, request_bytes, place) != (ssize_t)request_bytes)
            stop("pread");
    }
    return now_s(CLOCK_MONOTONIC) - begin;
}

static void *issue(void *argument)
{
    struct issuer *own = argument;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(own->cpu, &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus))
        stop("sched_setaffinity");
    int file = open(path, O_RDONLY);
    if (file < 0)
        stop(path);
    uint32_t *places = malloc(PLACES * sizeof *places);
    char *buffer = aligned_alloc(BUFFER_BYTES, BUFFER_BYTES);
    if (!places || !buffer)
        stop("memory");
    madvise(buffer, BUFFER_BYTES, MADV_HUGEPAGE);
    uint64_t state = (uint64_t)own->cpu + 1;
    for (int i = 0; i < PLACES; i++)
        places[i] = (uint32_t)(draw(&state) % (file_bytes / request_bytes));
    pthread_barrier_wait(&start);
    own->reads = (uint64_t)(FIRST_READS * seconds / loop(file, buffer, places, FIRST_READS)) + 1;
    pthread_barrier_wait(&start);
    double cpu_before_s = now_s(CLOCK_THREAD_CPUTIME_ID);
    own->reads_per_s = (double)own->reads / loop(file, buffer, places, own->reads);
    own->cpu_s = now_s(CLOCK_THREAD_CPUTIME_ID) - cpu_before_s;
    return NULL;
}

int main(int count, char **words)
{
    int threads = count - 5;
    if (threads < 1 || threads > THREADS_MAX) {
        fprintf(stderr, "usage: bare_pread FILE FILE_BYTES REQUEST_BYTES SECONDS CPU [CPU ...]\n");
        return 2;
    }
    path = words[1];
    file_bytes = strtoull(words[2], NULL, 10);
    request_bytes = strtoull(words[3], NULL, 10);
    seconds = strtod(words[4], NULL);
    if (!request_bytes || request_bytes > BUFFER_BYTES || file_bytes < request_bytes)
        return 2;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    pthread_t thread[THREADS_MAX];
    struct issuer issuers[THREADS_MAX];
    for (int i = 0; i < threads; i++) {
        issuers[i] = (struct issuer){.cpu = atoi(words[5 + i])};
        if (pthread_create(&thread[i], NULL, issue, &issuers[i]))
            stop("pthread_create");
    }
    double reads_per_s = 0, reads = 0, cpu_s = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
        reads_per_s += issuers[i].reads_per_s;
        reads += (double)issuers[i].reads;
        cpu_s += issuers[i].cpu_s;
    }
    printf("%.1f %.6f\n", reads_per_s, 1e6 * cpu_s / reads);
    return 0;
}
