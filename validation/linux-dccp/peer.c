/*
 * The kernel's endpoint of a test: a small DCCP program for the guest. Both endpoints send a given
 * number of messages at a constant rate and check what they receive. It prints one JSON object per
 * line and uses only the socket API.
 *
 * All messages together form one stream of words of eight bytes. Each word is its own offset in
 * hexadecimal digits, so that the first word of a message gives its position, and every byte can be
 * checked.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The constants of the socket API, from <linux/dccp.h>. */
enum {
	DCCP_SOCKET = 6,
	DCCP_PROTOCOL = 33,
	DCCP_LEVEL = 269,
	SERVICE = 2,
	SERVER_TIMEWAIT = 6,
	CCID_BOTH = 13,
	CCID_SENDING = 14,
	CCID_RECEIVING = 15,
	CCID_SENDING_INFO = 192,
};
enum { NONE = -1, MOST_MESSAGES = 100000, LONGEST = 1400 };

/* What getsockopt returns for a CCID 3 sender. */
struct tfrc_sender {
	uint64_t rate, receive_rate; /* 1/64 byte/s */
	uint32_t equation_rate;      /* byte/s */
	uint32_t rtt;                /* us */
	uint32_t loss;               /* 1e-6 */
	uint32_t rto, gap;           /* us */
};

/* The digits of the words in a payload. */
static const char DIGITS[] = "0123456789abcdef";

static struct {
	const char *role, *host, *port;
	int ccid, sending_ccid, receiving_ccid, family;
	uint32_t service;
	long packets, bytes, gap_us, limit_ms, quiet_ms, every_ms;
	bool closes, timewait;
} ask = {
	.ccid = NONE, .sending_ccid = NONE, .receiving_ccid = NONE, .family = AF_INET,
	.service = 42, .packets = 100, .bytes = 160, .gap_us = 20000, .limit_ms = 20000,
	.quiet_ms = 700,
};

static struct {
	long sent_packets, sent_bytes, refusals;
	long received_packets, received_bytes, distinct, reordered, foreign;
	uint64_t highest;
	bool seen[MOST_MESSAGES];
} count;

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ull + now.tv_nsec / 1000;
}

static void failed(const char *what, int error)
{
	printf("{\"event\":\"failed\",\"what\":\"%s\",\"errno\":%d,\"text\":\"%s\"}\n", what, error,
	       strerror(error));
}

static void give_up(const char *what)
{
	failed(what, errno);
	exit(1);
}

static void set(int socket, int option, const void *value, socklen_t bytes, const char *what)
{
	if (setsockopt(socket, DCCP_LEVEL, option, value, bytes) != 0)
		give_up(what);
}

static int open_socket(void)
{
	int one = 1, fd = socket(ask.family, DCCP_SOCKET, DCCP_PROTOCOL);
	uint32_t service = htonl(ask.service);
	uint8_t ccid;

	if (fd < 0)
		give_up("socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	set(fd, SERVICE, &service, sizeof service, "service code");
	if (ask.ccid != NONE)
		set(fd, CCID_BOTH, (ccid = ask.ccid, &ccid), 1, "CCID");
	if (ask.sending_ccid != NONE)
		set(fd, CCID_SENDING, (ccid = ask.sending_ccid, &ccid), 1, "sending CCID");
	if (ask.receiving_ccid != NONE)
		set(fd, CCID_RECEIVING, (ccid = ask.receiving_ccid, &ccid), 1, "receiving CCID");
	return fd;
}

/* Writes the requested address and port; returns its length. */
static socklen_t address(struct sockaddr_storage *out)
{
	struct sockaddr_in *four = (void *)out;
	struct sockaddr_in6 *six = (void *)out;
	bool is_four = ask.family == AF_INET;

	memset(out, 0, sizeof *out);
	out->ss_family = ask.family;
	four->sin_port = htons(atoi(ask.port)); /* at the same place in both */
	if (inet_pton(ask.family, ask.host, is_four ? (void *)&four->sin_addr : (void *)&six->sin6_addr) != 1) {
		errno = EINVAL;
		give_up("address");
	}
	return is_four ? sizeof *four : sizeof *six;
}

static int ccid_of(int socket, int option)
{
	int value = NONE;
	socklen_t bytes = sizeof value;

	return getsockopt(socket, DCCP_LEVEL, option, &value, &bytes) == 0 ? value : NONE;
}

/* Accepts or opens a connection; returns its socket, or -1. */
static int connection(void)
{
	struct sockaddr_storage there;
	socklen_t bytes = address(&there);
	int fd = open_socket(), listener = fd;

	if (strcmp(ask.role, "client") == 0) {
		if (connect(fd, (void *)&there, bytes) != 0) {
			failed("connect", errno);
			return -1;
		}
	} else {
		if (bind(fd, (void *)&there, bytes) != 0 || listen(fd, 1) != 0)
			give_up("listen");
		printf("{\"event\":\"listening\"}\n");
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		if (poll(&wait, 1, ask.limit_ms) <= 0) {
			failed("accept", ETIMEDOUT);
			return -1;
		}
		fd = accept(listener, NULL, NULL);
		if (fd < 0) {
			failed("accept", errno);
			return -1;
		}
		close(listener);
		int one = 1;
		if (ask.timewait)
			set(fd, SERVER_TIMEWAIT, &one, sizeof one, "server timewait");
	}
	printf("{\"event\":\"connected\",\"sending_ccid\":%d,\"receiving_ccid\":%d}\n",
	       ccid_of(fd, CCID_SENDING), ccid_of(fd, CCID_RECEIVING));
	return fd;
}

static uint64_t word_at(const uint8_t *bytes)
{
	uint64_t word = 0;

	for (int i = 0; i < 8; i++) {
		const char *digit = memchr(DIGITS, bytes[i], 16);

		if (digit == NULL)
			return UINT64_MAX;
		word = word << 4 | (uint64_t)(digit - DIGITS);
	}
	return word;
}

static void take(const uint8_t *message, long bytes)
{
	uint64_t offset = word_at(message);
	bool intact = bytes == ask.bytes && offset % ask.bytes == 0;

	for (long at = 0; intact && at < bytes; at += 8)
		intact = word_at(message + at) == offset + at;
	if (!intact || offset / ask.bytes >= MOST_MESSAGES) {
		count.foreign++;
		return;
	}
	count.received_packets++;
	count.received_bytes += bytes;
	count.reordered += count.distinct > 0 && offset < count.highest;
	count.highest = offset > count.highest ? offset : count.highest;
	count.distinct += !count.seen[offset / ask.bytes];
	count.seen[offset / ask.bytes] = true;
}

/* Sends one message; returns false if the kernel's queue is full. */
static bool put(int socket)
{
	uint8_t message[LONGEST];
	uint64_t offset = (uint64_t)count.sent_packets * ask.bytes;

	for (long at = 0; at < ask.bytes; at++)
		message[at] = DIGITS[(offset + at / 8 * 8) >> (4 * (7 - at % 8)) & 15];
	if (send(socket, message, ask.bytes, MSG_DONTWAIT | MSG_NOSIGNAL) != ask.bytes) {
		count.refusals++;
		return false;
	}
	count.sent_packets++;
	count.sent_bytes += ask.bytes;
	return true;
}

/* Prints the state of a CCID 3 sender, with the time since the connection was open. */
static void tell_sender(int socket, uint64_t time_us)
{
	struct tfrc_sender told;
	socklen_t bytes = sizeof told;

	if (getsockopt(socket, DCCP_LEVEL, CCID_SENDING_INFO, &told, &bytes) != 0)
		return;
	printf("{\"event\":\"sender\",\"time_us\":%llu,\"rate_bytes_per_second\":%.0f,"
	       "\"receive_rate\":%.0f,\"equation_rate\":%u,\"rtt_us\":%u,"
	       "\"loss_event_rate\":%.6f}\n",
	       (unsigned long long)time_us, told.rate / 64.0, told.receive_rate / 64.0,
	       told.equation_rate, told.rtt, told.loss / 1e6);
}

/* Sends and receives until an endpoint closes; returns which one did, or why the test ended. */
static const char *converse(int socket)
{
	uint64_t start = now_us(), next = start, heard = start, told = start;

	for (;;) {
		uint64_t now = now_us(), wake = now + 100000;
		bool sending = count.sent_packets < ask.packets;

		if (now - start > ask.limit_ms * 1000ull)
			return "limit";
		if (ask.closes && !sending && now - heard > ask.quiet_ms * 1000ull)
			return "self";
		if (sending && now >= next)
			next = put(socket) ? next + ask.gap_us : now + 1000;
		if (sending && next < wake)
			wake = next;
		if (ask.every_ms > 0 && now >= told) {
			tell_sender(socket, now - start);
			told += ask.every_ms * 1000ull;
		}
		struct pollfd wait = { .fd = socket, .events = POLLIN };
		struct timespec span = { 0, wake > now ? (wake - now) * 1000 : 0 };
		if (ppoll(&wait, 1, &span, NULL) <= 0)
			continue;
		uint8_t message[LONGEST];
		ssize_t bytes = recv(socket, message, sizeof message, MSG_DONTWAIT);
		if (bytes == 0)
			return "peer";
		if (bytes < 0 && errno != EAGAIN) {
			failed("receive", errno);
			return "error";
		}
		if (bytes > 0) {
			heard = now_us();
			take(message, bytes);
		}
	}
}

static void tell_counts(const char *closed_by)
{
	printf("{\"event\":\"result\",\"closed_by\":\"%s\",\"sent_packets\":%ld,\"sent_bytes\":%ld,"
	       "\"queue_full\":%ld,\"received_packets\":%ld,\"received_bytes\":%ld,"
	       "\"distinct_packets\":%ld,\"reordered_packets\":%ld,\"foreign_packets\":%ld}\n",
	       closed_by, count.sent_packets, count.sent_bytes, count.refusals,
	       count.received_packets, count.received_bytes, count.distinct, count.reordered,
	       count.foreign);
}

static int usage(void)
{
	fprintf(stderr, "usage: peer [options] server|client ADDRESS PORT\n"
			"  -c CCID both ways  -t CCID sending  -r CCID receiving  -s SERVICE  -6 IPv6\n"
			"  -n MESSAGES  -l BYTES (multiple of 8)  -g MICROSECONDS between messages\n"
			"  -k closes when all was sent and nothing was heard for -q MILLISECONDS\n"
			"  -w the server holds TIMEWAIT  -d MILLISECONDS at most\n"
			"  -i MILLISECONDS between reports of the sender's state\n");
	return 2;
}

int main(int arguments, char **argument)
{
	for (int option; (option = getopt(arguments, argument, "c:t:r:s:6n:l:g:kq:wd:i:")) != -1;) {
		switch (option) {
		case 'c': ask.ccid = atoi(optarg); break;
		case 't': ask.sending_ccid = atoi(optarg); break;
		case 'r': ask.receiving_ccid = atoi(optarg); break;
		case 's': ask.service = strtoul(optarg, NULL, 0); break;
		case '6': ask.family = AF_INET6; break;
		case 'n': ask.packets = atol(optarg); break;
		case 'l': ask.bytes = atol(optarg); break;
		case 'g': ask.gap_us = atol(optarg); break;
		case 'k': ask.closes = true; break;
		case 'q': ask.quiet_ms = atol(optarg); break;
		case 'w': ask.timewait = true; break;
		case 'd': ask.limit_ms = atol(optarg); break;
		case 'i': ask.every_ms = atol(optarg); break;
		default: return usage();
		}
	}
	if (arguments - optind != 3 || ask.packets > MOST_MESSAGES || ask.bytes % 8 != 0 ||
	    ask.bytes < 8 || ask.bytes > LONGEST)
		return usage();
	ask.role = argument[optind];
	ask.host = argument[optind + 1];
	ask.port = argument[optind + 2];
	setvbuf(stdout, NULL, _IOLBF, 0);
	int fd = connection();
	if (fd < 0)
		return 1;
	uint64_t start = now_us();
	const char *closed_by = converse(fd);
	tell_sender(fd, now_us() - start);
	close(fd);
	tell_counts(closed_by);
	return strcmp(closed_by, "self") != 0 && strcmp(closed_by, "peer") != 0;
}
