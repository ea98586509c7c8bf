/* A gRPC client that does little more than wait: unary calls with requests that lie ready in a file.
 *
 *     load HOST PORT AUTHORITY PATH CLIENTS open|closed REQUESTS LATENCIES
 *
 * REQUESTS holds, in this machine's byte order: the count (u64), then of each request the second at which it is to be
 * sent (f64, counted from the start, ascending), its length (u32) and its bytes. CLIENTS connections carry one call at a
 * time each. An open loop sends at those seconds, or as soon after as a connection is free, and counts a call's time
 * from that second; a closed loop sends the next request as soon as a connection is free, and counts from then.
 * LATENCIES takes the seconds of each call (f64), in the order of the requests; a call that failed takes -1.
 * Stdout: "calls failed elapsed_s own_cpu_s reply_bytes".
 *
 * A reply counts as one when its whole message arrived: gRPC sends none with an error. Headers are therefore not decoded.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };
enum { FRAME_HEAD = 9, MESSAGE_HEAD = 5, LARGEST_FRAME = 16384, IN_BYTES = 1 << 17, OUT_BYTES = 1 << 16 };
#define LARGEST_WINDOW 0x7fffffffLL
#define FIRST_WINDOW 65535LL

typedef struct {
    double due_s;
    uint32_t length;
    const uint8_t *bytes;
} Request;

typedef struct {
    int fd;
    uint32_t stream;      /* of the call under way */
    long call;            /* its request; -1 when idle */
    double start_s;       /* what its time is counted from */
    int64_t send_window;  /* of the connection */
    int64_t taken;        /* bytes received and not yet given back to the peer's window */
    uint64_t reply_bytes; /* of the call under way, its head included */
    uint8_t reply_head[MESSAGE_HEAD];
    uint8_t in[IN_BYTES];
    size_t in_size;
    uint8_t out[OUT_BYTES];
    size_t out_size;
} Connection;

static void fail(const char *what) {
    fprintf(stderr, "load: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
}

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

static void append(Connection *connection, const void *bytes, size_t length) {
    if (connection->out_size + length > OUT_BYTES) fail("the peer does not read");
    memcpy(connection->out + connection->out_size, bytes, length);
    connection->out_size += length;
}

static void append_u32(Connection *connection, uint32_t value) {
    uint8_t bytes[4] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8), (uint8_t)value};
    append(connection, bytes, sizeof bytes);
}

static void append_frame_head(Connection *connection, size_t length, int type, int flags, uint32_t stream) {
    uint8_t head[5] = {(uint8_t)(length >> 16), (uint8_t)(length >> 8), (uint8_t)length, (uint8_t)type, (uint8_t)flags};
    append(connection, head, sizeof head);
    append_u32(connection, stream);
}

static void append_window(Connection *connection, uint32_t increment) {
    append_frame_head(connection, 4, WINDOW_UPDATE, 0, 0);
    append_u32(connection, increment);
}

static void flush(Connection *connection) {
    while (connection->out_size) {
        ssize_t sent = send(connection->fd, connection->out, connection->out_size, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EAGAIN || errno == EINTR) return;
            fail("send");
        }
        connection->out_size -= (size_t)sent;
        memmove(connection->out, connection->out + sent, connection->out_size);
    }
}

static void open_connection(Connection *connection, const char *host, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail("HOST is no IPv4 address");
    connection->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connection->fd < 0 || connect(connection->fd, (struct sockaddr *)&address, sizeof address)) fail("connect");
    int yes = 1;
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    fcntl(connection->fd, F_SETFL, O_NONBLOCK);
    connection->stream = (uint32_t)-1;
    connection->call = -1;
    connection->send_window = FIRST_WINDOW;
    append(connection, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    /* HEADER_TABLE_SIZE 0, ENABLE_PUSH 0, INITIAL_WINDOW_SIZE the largest: replies never wait for us. */
    append_frame_head(connection, 18, SETTINGS, 0, 0);
    append(connection, "\0\1\0\0\0\0\0\2\0\0\0\0\0\4\x7f\xff\xff\xff", 18);
    append_window(connection, (uint32_t)(LARGEST_WINDOW - FIRST_WINDOW));
    flush(connection);
}

/* The header block of every call: literals that enter no table, so that it is the same bytes each time. */
static size_t header_block(uint8_t *block, const char *authority, const char *path) {
    uint8_t *at = block;
    *at++ = 0x80 | 3; /* :method POST */
    *at++ = 0x80 | 6; /* :scheme http */
    *at++ = 4;        /* :path */
    *at++ = (uint8_t)strlen(path);
    at = (uint8_t *)stpcpy((char *)at, path);
    *at++ = 1; /* :authority */
    *at++ = (uint8_t)strlen(authority);
    at = (uint8_t *)stpcpy((char *)at, authority);
    *at++ = 15; /* content-type: 31, in two bytes */
    *at++ = 31 - 15;
    *at++ = 16;
    at = (uint8_t *)stpcpy((char *)at, "application/grpc");
    *at++ = 0;
    *at++ = 2;
    at = (uint8_t *)stpcpy((char *)at, "te");
    *at++ = 8;
    at = (uint8_t *)stpcpy((char *)at, "trailers");
    return (size_t)(at - block);
}

static int can_call(const Connection *connection, const Request *request) {
    return connection->call < 0 && connection->send_window >= (int64_t)request->length + MESSAGE_HEAD;
}

static void call(Connection *connection, const Request *request, long number, const uint8_t *block, size_t block_size) {
    connection->stream += 2;
    connection->call = number;
    connection->reply_bytes = 0;
    append_frame_head(connection, block_size, HEADERS, END_HEADERS, connection->stream);
    append(connection, block, block_size);
    append_frame_head(connection, request->length + MESSAGE_HEAD, DATA, END_STREAM, connection->stream);
    append(connection, "\0", 1);
    append_u32(connection, request->length);
    append(connection, request->bytes, request->length);
    connection->send_window -= (int64_t)request->length + MESSAGE_HEAD;
    flush(connection);
}

static uint32_t u32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void take_data(Connection *connection, const uint8_t *bytes, size_t length) {
    for (size_t i = 0; i < length && connection->reply_bytes + i < MESSAGE_HEAD; i++)
        connection->reply_head[connection->reply_bytes + i] = bytes[i];
    connection->reply_bytes += length;
    connection->taken += (int64_t)length;
    if (connection->taken > LARGEST_WINDOW / 2) {
        append_window(connection, (uint32_t)connection->taken);
        connection->taken = 0;
    }
}

/* Returns 1 when it ends the call under way. */
static int take_frame(Connection *connection, int type, int flags, uint32_t stream, const uint8_t *bytes, size_t length) {
    int is_ours = connection->call >= 0 && stream == connection->stream;
    switch (type) {
        case DATA:
            if (is_ours) take_data(connection, bytes, length);
            return is_ours && (flags & END_STREAM);
        case HEADERS:
            return is_ours && (flags & END_STREAM);
        case RST_STREAM:
            if (is_ours) connection->reply_bytes = 0;
            return is_ours;
        case SETTINGS:
            if (!(flags & ACK)) append_frame_head(connection, 0, SETTINGS, ACK, 0);
            return 0;
        case PING:
            if (!(flags & ACK)) {
                append_frame_head(connection, 8, PING, ACK, 0);
                append(connection, bytes, 8);
            }
            return 0;
        case WINDOW_UPDATE:
            if (stream == 0) connection->send_window += u32(bytes) & 0x7fffffff;
            return 0;
        case GOAWAY:
            errno = 0;
            fail("the server ends the connection");
    }
    return 0;
}

static int is_whole(const Connection *connection) {
    return connection->reply_bytes >= MESSAGE_HEAD &&
           connection->reply_bytes == (uint64_t)u32(connection->reply_head + 1) + MESSAGE_HEAD;
}

/* Reads what is there; returns 1 when the call under way has ended. */
static int receive(Connection *connection) {
    ssize_t got = recv(connection->fd, connection->in + connection->in_size, IN_BYTES - connection->in_size, 0);
    if (got == 0) errno = 0, fail("the server hung up");
    if (got < 0) {
        if (errno == EAGAIN || errno == EINTR) return 0;
        fail("recv");
    }
    connection->in_size += (size_t)got;
    size_t at = 0;
    int has_ended = 0;
    while (connection->in_size - at >= FRAME_HEAD) {
        const uint8_t *head = connection->in + at;
        size_t length = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        if (length > LARGEST_FRAME) errno = 0, fail("a frame is too large");
        if (connection->in_size - at < FRAME_HEAD + length) break;
        has_ended |= take_frame(connection, head[3], head[4], u32(head + 5) & 0x7fffffff, head + FRAME_HEAD, length);
        at += FRAME_HEAD + length;
    }
    connection->in_size -= at;
    memmove(connection->in, connection->in + at, connection->in_size);
    flush(connection);
    return has_ended;
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

int main(int count_of_arguments, char **arguments) {
    if (count_of_arguments != 9) fail("usage: load HOST PORT AUTHORITY PATH CLIENTS open|closed REQUESTS LATENCIES");
    int clients = atoi(arguments[5]), is_open = !strcmp(arguments[6], "open");
    if (clients < 1 || clients > FD_SETSIZE / 2) fail("CLIENTS is out of range");
    if (strlen(arguments[3]) > 126 || strlen(arguments[4]) > 126) fail("AUTHORITY or PATH is too long");
    long count;
    Request *requests = read_requests(arguments[7], &count);
    uint8_t block[512];
    size_t block_size = header_block(block, arguments[3], arguments[4]);
    Connection *connections = calloc((size_t)clients, sizeof *connections);
    double *latencies_s = calloc((size_t)count, sizeof *latencies_s);
    if (!connections || !latencies_s) fail("no memory");
    for (int i = 0; i < clients; i++) open_connection(&connections[i], arguments[1], atoi(arguments[2]));

    double cpu_before_s = cpu_s(), start_s = now_s();
    long next = 0, done = 0, failed = 0;
    uint64_t reply_bytes = 0;
    while (done < count) {
        for (int i = 0; i < clients && next < count; i++) {
            double at_s = now_s();
            if (is_open && start_s + requests[next].due_s > at_s) break;
            if (!can_call(&connections[i], &requests[next])) continue;
            connections[i].start_s = is_open ? start_s + requests[next].due_s : at_s;
            call(&connections[i], &requests[next], next, block, block_size);
            next++;
        }
        int is_one_idle = 0;
        for (int i = 0; i < clients; i++) is_one_idle |= connections[i].call < 0;
        int is_timed = is_open && next < count && is_one_idle;
        fd_set readable;
        wait_for(connections, clients, is_timed ? start_s + requests[next].due_s : now_s() + 60, &readable);
        for (int i = 0; i < clients; i++) {
            if (!FD_ISSET(connections[i].fd, &readable) || !receive(&connections[i])) continue;
            long number = connections[i].call;
            int is_answered = is_whole(&connections[i]);
            latencies_s[number] = is_answered ? now_s() - connections[i].start_s : -1;
            failed += !is_answered;
            reply_bytes += connections[i].reply_bytes;
            connections[i].call = -1;
            done++;
        }
    }
    double elapsed_s = now_s() - start_s;
    FILE *file = fopen(arguments[8], "wb");
    if (!file || fwrite(latencies_s, sizeof *latencies_s, (size_t)count, file) != (size_t)count || fclose(file))
        fail(arguments[8]);
    printf("%ld %ld %.9f %.9f %llu\n", done, failed, elapsed_s, cpu_s() - cpu_before_s, (unsigned long long)reply_bytes);
    return 0;
}
