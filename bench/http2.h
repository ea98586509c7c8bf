/* As much of HTTP/2 as unary gRPC calls need, one at a time on a connection.
 *
 * A reply counts as one when its whole message arrived: gRPC sends none with an error. Headers are therefore not decoded.
 */
#ifndef HTTP2_H
#define HTTP2_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };
enum { FRAME_HEAD = 9, MESSAGE_HEAD = 5, LARGEST_FRAME = 16384, IN_BYTES = 1 << 17, OUT_BYTES = 1 << 16 };
enum { LARGEST_REPLY = 1 << 20 };
#define LARGEST_WINDOW 0x7fffffffLL
#define FIRST_WINDOW 65535LL

typedef struct {
    int fd;
    uint32_t stream;      /* of the call under way */
    long call;            /* its request; -1 when idle */
    double start_s;       /* what its time is counted from */
    int64_t send_window;  /* of the connection */
    int64_t taken;        /* bytes received and not yet given back to the peer's window */
    uint8_t reply[LARGEST_REPLY];
    size_t reply_bytes; /* of the call under way, its head included */
    uint8_t in[IN_BYTES];
    size_t in_size;
    uint8_t out[OUT_BYTES];
    size_t out_size;
} Connection;

static void fail(const char *what) {
    fprintf(stderr, "load: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
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

static int can_call(const Connection *connection, uint32_t length) {
    return connection->call < 0 && connection->send_window >= (int64_t)length + MESSAGE_HEAD;
}

/* The caller has asked `can_call`. */
static void call(Connection *connection, long number, const uint8_t *block, size_t block_size, const uint8_t *bytes,
                 uint32_t length) {
    connection->stream += 2;
    connection->call = number;
    connection->reply_bytes = 0;
    append_frame_head(connection, block_size, HEADERS, END_HEADERS, connection->stream);
    append(connection, block, block_size);
    append_frame_head(connection, length + MESSAGE_HEAD, DATA, END_STREAM, connection->stream);
    append(connection, "\0", 1);
    append_u32(connection, length);
    append(connection, bytes, length);
    connection->send_window -= (int64_t)length + MESSAGE_HEAD;
    flush(connection);
}

static uint32_t u32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void take_data(Connection *connection, const uint8_t *bytes, size_t length) {
    if (connection->reply_bytes + length > LARGEST_REPLY) errno = 0, fail("a reply is larger than 1 MiB");
    memcpy(connection->reply + connection->reply_bytes, bytes, length);
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
           connection->reply_bytes == (size_t)u32(connection->reply + 1) + MESSAGE_HEAD;
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

#endif
