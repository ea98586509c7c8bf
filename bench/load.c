/* A gRPC client that does little more than wait: unary calls with requests that lie ready in a file.
 *
 *     load HOST PORT AUTHORITY PATH CLIENTS open|closed REQUESTS LATENCIES REPLIES
 *
 * REQUESTS holds, in this machine's byte order: the count (u64), then of each request the second at which it is to be
 * sent (f64, counted from the start, ascending), its length (u32) and its bytes. CLIENTS connections carry one call at a
 * time each. An open loop sends at those seconds, or as soon after as a connection is free, and counts a call's time
 * from that second; a closed loop sends the next request as soon as a connection is free, and counts from then.
 * LATENCIES takes the seconds of each call (f64), in the order of the requests; a call that failed takes -1.
 * REPLIES takes the answers to the first request and to every 16th behind it, as they come: length (u32) and message.
 * Stdout: "calls failed elapsed_s own_cpu_s reply_bytes".
 */
#include <sys/resource.h>
#include <sys/select.h>
#include <time.h>

#include "http2.h"

enum { KEPT_ONE_IN = 16 };

typedef struct {
    double due_s;
    uint32_t length;
    const uint8_t *bytes;
} Request;

/* What is known of all calls so far. */
typedef struct {
    long next, done, failed;
    uint64_t reply_bytes;
    double *latencies_s;
    FILE *replies;
} Tally;

static double now_s(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double cpu_s(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static Request *read_requests(const char *path, long *count) {
    FILE *file = fopen(path, "rb");
    if (!file) fail(path);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    uint8_t *all = malloc((size_t)size);
    if (!all || fread(all, 1, (size_t)size, file) != (size_t)size) fail(path);
    fclose(file);
    uint64_t stated;
    memcpy(&stated, all, sizeof stated);
    Request *requests = calloc(stated, sizeof *requests);
    if (!requests) fail("no memory");
    const uint8_t *at = all + sizeof stated;
    for (uint64_t i = 0; i < stated; i++) {
        memcpy(&requests[i].due_s, at, sizeof(double));
        memcpy(&requests[i].length, at + sizeof(double), sizeof(uint32_t));
        requests[i].bytes = at + sizeof(double) + sizeof(uint32_t);
        at = requests[i].bytes + requests[i].length;
        if (requests[i].length + MESSAGE_HEAD > LARGEST_FRAME) fail("a request is larger than one frame");
    }
    *count = (long)stated;
    return requests;
}

static void wait_for(Connection *connections, int clients, double until_s, fd_set *readable) {
    fd_set writable;
    FD_ZERO(readable);
    FD_ZERO(&writable);
    int largest = 0;
    for (int i = 0; i < clients; i++) {
        FD_SET(connections[i].fd, readable);
        if (connections[i].out_size) FD_SET(connections[i].fd, &writable);
        if (connections[i].fd > largest) largest = connections[i].fd;
    }
    double left_s = until_s - now_s();
    if (left_s < 0) left_s = 0;
    struct timeval limit = {.tv_sec = (long)left_s, .tv_usec = (int)((left_s - (double)(long)left_s) * 1e6)};
    if (select(largest + 1, readable, &writable, NULL, &limit) < 0) {
        if (errno != EINTR) fail("select");
        FD_ZERO(readable);
    }
    for (int i = 0; i < clients; i++)
        if (connections[i].out_size) flush(&connections[i]);
}

/* Sends what is due to connections that are free. */
static void send_due(Connection *connections, int clients, const Request *requests, long count, int is_open,
                     double start_s, const uint8_t *block, size_t block_size, Tally *tally) {
    for (int i = 0; i < clients && tally->next < count; i++) {
        const Request *request = &requests[tally->next];
        double at_s = now_s();
        if (is_open && start_s + request->due_s > at_s) return;
        if (!can_call(&connections[i], request->length)) continue;
        connections[i].start_s = is_open ? start_s + request->due_s : at_s;
        call(&connections[i], tally->next++, block, block_size, request->bytes, request->length);
    }
}

static void keep_reply(FILE *file, const Connection *connection) {
    uint32_t length = (uint32_t)(connection->reply_bytes - MESSAGE_HEAD);
    const uint8_t *message = connection->reply + MESSAGE_HEAD;
    if (fwrite(&length, sizeof length, 1, file) != 1 || fwrite(message, 1, length, file) != length) fail("REPLIES");
}

/* Notes the call that has ended, and frees its connection. */
static void note_end(Connection *connection, Tally *tally) {
    int is_answered = is_whole(connection);
    tally->latencies_s[connection->call] = is_answered ? now_s() - connection->start_s : -1;
    tally->failed += !is_answered;
    tally->reply_bytes += connection->reply_bytes;
    if (is_answered && connection->call % KEPT_ONE_IN == 0) keep_reply(tally->replies, connection);
    connection->call = -1;
    tally->done++;
}

int main(int count_of_arguments, char **arguments) {
    if (count_of_arguments != 10)
        fail("usage: load HOST PORT AUTHORITY PATH CLIENTS open|closed REQUESTS LATENCIES REPLIES");
    int clients = atoi(arguments[5]), is_open = !strcmp(arguments[6], "open");
    if (clients < 1 || clients > FD_SETSIZE / 2) fail("CLIENTS is out of range");
    if (strlen(arguments[3]) > 126 || strlen(arguments[4]) > 126) fail("AUTHORITY or PATH is too long");
    long count;
    Request *requests = read_requests(arguments[7], &count);
    uint8_t block[512];
    size_t block_size = header_block(block, arguments[3], arguments[4]);
    Connection *connections = calloc((size_t)clients, sizeof *connections);
    Tally tally = {.latencies_s = calloc((size_t)count, sizeof(double)), .replies = fopen(arguments[9], "wb")};
    if (!connections || !tally.latencies_s) fail("no memory");
    if (!tally.replies) fail(arguments[9]);
    for (int i = 0; i < clients; i++) open_connection(&connections[i], arguments[1], atoi(arguments[2]));

    double cpu_before_s = cpu_s(), start_s = now_s();
    while (tally.done < count) {
        send_due(connections, clients, requests, count, is_open, start_s, block, block_size, &tally);
        int is_one_idle = 0;
        for (int i = 0; i < clients; i++) is_one_idle |= connections[i].call < 0;
        int is_timed = is_open && tally.next < count && is_one_idle;
        fd_set readable;
        wait_for(connections, clients, is_timed ? start_s + requests[tally.next].due_s : now_s() + 60, &readable);
        for (int i = 0; i < clients; i++)
            if (FD_ISSET(connections[i].fd, &readable) && receive(&connections[i])) note_end(&connections[i], &tally);
    }
    double elapsed_s = now_s() - start_s;
    FILE *file = fopen(arguments[8], "wb");
    if (!file || fwrite(tally.latencies_s, sizeof(double), (size_t)count, file) != (size_t)count || fclose(file))
        fail(arguments[8]);
    if (fclose(tally.replies)) fail(arguments[9]);
    printf("%ld %ld %.9f %.9f %llu\n", tally.done, tally.failed, elapsed_s, cpu_s() - cpu_before_s,
           (unsigned long long)tally.reply_bytes);
    return 0;
}
