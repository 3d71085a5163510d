/* The independent client that bench/nfs_crosscheck.py holds Leadline against: libnfs, and nothing
 * of Leadline's.
 *
 * NFS version 3, one TCP connection, DEPTH requests in flight: each answer issues the next request.
 * Places are drawn uniformly among the file's blocks of one size (splitmix64), each request is a
 * read with chance READ_FRAC. Writes are UNSTABLE, or FILE_SYNC for a file opened with O_SYNC. What
 * completes in the warm-up is not counted; a window counts what completes in it, and its time is
 * the time between its ends. libnfs keeps no data of its own here: no read-ahead, no page cache.
 *
 * usage: nfs_bare URL FILE lay FILE_BYTES            writes a file of random bytes, then commits it
 *        nfs_bare URL FILE run FILE_BYTES REQUEST_BYTES DEPTH READ_FRAC SYNC WARM_S SECONDS SEED
 *        nfs_bare URL FILE remove
 * `run` prints: requests per second, MB/s, mean, median and 99th percentile of latency in us, count
 */
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <nfsc/libnfs.h> /* needs what stands above */

enum { DEPTH_MAX = 1024, LAY_BYTES = 256 << 10, TIMEOUT_MS = 15000, LATENCIES_MAX = 1 << 23 };

struct request {
    double issued_s;
};

static struct nfs_context *client;
static struct nfsfh *file;
static uint64_t blocks, request_bytes, random_state, in_flight, done;
static double read_frac, count_from_s, end_s;
static float *latency_us;
static char *payload;

static void stop(const char *what)
{
    fprintf(stderr, "nfs_bare: %s: %s\n", what, client ? nfs_get_error(client) : "");
    exit(1);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint64_t draw(void)
{
    uint64_t z = (random_state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void fill(char *bytes, size_t count)
{
    for (size_t at = 0; at + 8 <= count; at += 8) {
        uint64_t word = draw();
        memcpy(bytes + at, &word, 8);
    }
}

static void issue(struct request *own);

static void answered(int status, struct nfs_context *context, void *data, void *argument)
{
    (void)context;
    struct request *own = argument;
    double now = now_s();
    in_flight--;
    if (status != (int)request_bytes) {
        fprintf(stderr, "nfs_bare: answered %d: %s\n", status, status < 0 ? (char *)data : "short");
        exit(1);
    }
    if (now >= count_from_s && now < end_s) {
        if (done < LATENCIES_MAX)
            latency_us[done] = (float)(1e6 * (now - own->issued_s));
        done++;
    }
    if (now < end_s)
        issue(own);
}

static void issue(struct request *own)
{
    uint64_t place = draw() % blocks * request_bytes;
    int reads = (double)(draw() >> 11) * 0x1p-53 < read_frac;
    own->issued_s = now_s();
    int refused = reads
        ? nfs_pread_async(client, file, place, request_bytes, answered, own)
        : nfs_pwrite_async(client, file, place, request_bytes, payload, answered, own);
    if (refused)
        stop("request");
    in_flight++;
}

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void run(uint64_t depth, double warm_s, double seconds)
{
    static struct request requests[DEPTH_MAX];
    count_from_s = now_s() + warm_s;
    end_s = count_from_s + seconds;
    for (uint64_t i = 0; i < depth; i++)
        issue(&requests[i]);
    while (in_flight) {
        struct pollfd ready = {.fd = nfs_get_fd(client), .events = (short)nfs_which_events(client)};
        if (poll(&ready, 1, 1000) < 0 || nfs_service(client, ready.revents) < 0)
            stop("connection");
        if (now_s() > end_s + TIMEOUT_MS / 1e3)
            stop("the server is silent");
    }
    uint64_t kept = done < LATENCIES_MAX ? done : LATENCIES_MAX;
    if (!kept)
        stop("nothing was answered");
    double sum = 0;
    for (uint64_t i = 0; i < kept; i++)
        sum += latency_us[i];
    qsort(latency_us, kept, sizeof *latency_us, ascending);
    double per_s = (double)done / seconds;
    printf("%.1f %.4f %.2f %.2f %.2f %llu\n", per_s, per_s * (double)request_bytes / 1e6,
           sum / (double)kept, (double)latency_us[kept / 2], (double)latency_us[kept * 99 / 100],
           (unsigned long long)done);
}

static void lay(const char *path, uint64_t file_bytes)
{
    if (nfs_creat(client, path, 0600, &file))
        stop(path);
    for (uint64_t at = 0; at < file_bytes; at += LAY_BYTES) {
        uint64_t count = file_bytes - at < LAY_BYTES ? file_bytes - at : LAY_BYTES;
        fill(payload, LAY_BYTES);
        if (nfs_pwrite(client, file, at, count, payload) != (int)count)
            stop("write");
    }
    if (nfs_fsync(client, file) || nfs_close(client, file))
        stop("commit");
}

int main(int count, char **words)
{
    client = nfs_init_context();
    payload = malloc(LAY_BYTES);
    latency_us = malloc(LATENCIES_MAX * sizeof *latency_us);
    if (count < 4 || !client || !payload || !latency_us)
        return fprintf(stderr, "usage: nfs_bare URL FILE lay|run|remove ..., see nfs_bare.c\n"), 2;
    struct nfs_url *url = nfs_parse_url_dir(client, words[1]);
    if (!url)
        stop(words[1]);
    nfs_set_timeout(client, TIMEOUT_MS);
    nfs_set_autoreconnect(client, 0);
    if (nfs_mount(client, url->server, url->path))
        stop(words[1]);
    const char *path = words[2], *what = words[3];
    if (!strcmp(what, "remove") && count == 4)
        return nfs_unlink(client, path) ? (stop(path), 1) : 0;
    if (!strcmp(what, "lay") && count == 5)
        return lay(path, strtoull(words[4], NULL, 10)), 0;
    if (strcmp(what, "run") || count != 12)
        return fprintf(stderr, "nfs_bare: bad arguments, see nfs_bare.c\n"), 2;
    request_bytes = strtoull(words[5], NULL, 10);
    uint64_t depth = strtoull(words[6], NULL, 10);
    read_frac = strtod(words[7], NULL);
    random_state = strtoull(words[11], NULL, 10);
    if (!request_bytes || request_bytes > LAY_BYTES || !depth || depth > DEPTH_MAX)
        return fprintf(stderr, "nfs_bare: a request or depth out of range\n"), 2;
    blocks = strtoull(words[4], NULL, 10) / request_bytes;
    fill(payload, LAY_BYTES);
    int flags = (read_frac < 1 ? O_RDWR : O_RDONLY) | (atoi(words[8]) ? O_SYNC : 0);
    if (!blocks || nfs_open(client, path, flags, &file))
        stop(path);
    run(depth, strtod(words[9], NULL), strtod(words[10], NULL));
    return 0;
}
