/*
 * Shared by the test peers of all stacks: the options, the byte stream, and the counters. A peer sends
 * a given number of messages, with SCTP on its streams in turn, and checks what it receives. It prints
 * one JSON object per line.
 *
 * All messages together form one stream of words of eight bytes. Each word is its own offset in
 * hexadecimal digits, so that the first word of a message gives its position, and every byte can be
 * checked. Message n goes on stream n modulo the number of streams.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_MESSAGES = 1000000, LONGEST = 65536, MOST_STREAMS = 64, MOST_ADDRESSES = 8 };

/* The digits of the words in a payload. */
static const char DIGITS[] = "0123456789abcdef";

static struct {
	const char *role, *host, *local[MOST_ADDRESSES];
	int port, family, locals, streams, lifetime_ms, retransmissions, udp_port, remote_udp_port;
	int ccid, sending_ccid, receiving_ccid, service;
	long packets, awaited, bytes, gap_us, limit_ms, sending_ms, quiet_ms, rto_min_ms, path_retransmissions;
	long every_ms;
	bool closes, unordered, interleaves, timewait;
} ask = {
	.ccid = -1, .sending_ccid = -1, .receiving_ccid = -1, .service = 42,
	.streams = 1, .lifetime_ms = -1, .retransmissions = -1, .packets = 100, .awaited = 100,
	.bytes = 160, .gap_us = 20000, .limit_ms = 20000, .quiet_ms = 700, .rto_min_ms = -1,
	.path_retransmissions = -1,
};

static struct {
	long sent_packets, queue_full, received_packets, distinct, reordered, foreign;
	uint64_t first_us, last_us, silence_us;
	int64_t highest[MOST_STREAMS];
	bool seen[MOST_MESSAGES];
} count;

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ull + now.tv_nsec / 1000;
}

static void tell_failure(const char *what)
{
	printf("{\"event\":\"failed\",\"what\":\"%s\",\"errno\":%d,\"text\":\"%s\"}\n", what, errno,
	       strerror(errno));
}

static void give_up(const char *what)
{
	tell_failure(what);
	exit(1);
}

/* Returns the length of the address written. */
static inline socklen_t address(struct sockaddr_storage *out, const char *host, int port)
{
	struct sockaddr_in *four = (void *)out;
	struct sockaddr_in6 *six = (void *)out;
	bool is_four = ask.family == AF_INET;

	memset(out, 0, sizeof *out);
	out->ss_family = ask.family;
	four->sin_port = htons(port); /* at the same place in both */
	if (inet_pton(ask.family, host, is_four ? (void *)&four->sin_addr : (void *)&six->sin6_addr) != 1) {
		errno = EINVAL;
		give_up("address");
	}
	return is_four ? sizeof *four : sizeof *six;
}

/* Writes message number `number`. */
static void write_message(uint8_t *message, long number)
{
	uint64_t offset = (uint64_t)number * ask.bytes;

	for (long at = 0; at < ask.bytes; at++)
		message[at] = DIGITS[(offset + at / 8 * 8) >> (4 * (7 - at % 8)) & 15];
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

/* Counts a complete message on this stream. */
static void take(const uint8_t *message, long bytes, int stream)
{
	uint64_t offset = bytes >= 8 ? word_at(message) : 0, now = now_us();
	uint64_t number = offset / ask.bytes;
	bool intact = bytes == ask.bytes && offset % ask.bytes == 0 && number < MOST_MESSAGES &&
		      (int)(number % ask.streams) == stream;

	for (long at = 0; intact && at < bytes; at += 8)
		intact = word_at(message + at) == offset + at;
	if (!intact) {
		count.foreign++;
		return;
	}
	if (count.received_packets++ == 0)
		count.first_us = count.last_us = now;
	if (now - count.last_us > count.silence_us)
		count.silence_us = now - count.last_us;
	count.last_us = now;
	count.reordered += count.highest[stream] > (int64_t)number;
	if (count.highest[stream] < (int64_t)number)
		count.highest[stream] = number;
	count.distinct += !count.seen[number];
	count.seen[number] = true;
}

/* Of SCTP: appends to the message of this stream, and counts it if this is its end. */
static inline void assemble(const uint8_t *part, long bytes, int stream, bool is_end)
{
	static uint8_t parts[MOST_STREAMS][LONGEST];
	static long filled[MOST_STREAMS];

	if (stream >= MOST_STREAMS || filled[stream] + bytes > LONGEST) {
		count.foreign++;
		return;
	}
	memcpy(parts[stream] + filled[stream], part, bytes);
	filled[stream] += bytes;
	if (!is_end)
		return;
	take(parts[stream], filled[stream], stream);
	filled[stream] = 0;
}

static void tell_counts(const char *ended_by, uint64_t start_us)
{
	printf("{\"event\":\"result\",\"ended_by\":\"%s\",\"sent_packets\":%ld,\"sent_bytes\":%lld,"
	       "\"queue_full\":%ld,\"received_packets\":%ld,\"received_bytes\":%lld,\"distinct_packets\":%ld,"
	       "\"reordered_packets\":%ld,\"foreign_packets\":%ld,\"receiving_us\":%llu,"
	       "\"longest_silence_us\":%llu,\"us\":%llu}\n",
	       ended_by, count.sent_packets, (long long)count.sent_packets * ask.bytes,
	       count.queue_full, count.received_packets,
	       (long long)count.received_packets * ask.bytes, count.distinct, count.reordered,
	       count.foreign, (unsigned long long)(count.last_us - count.first_us),
	       (unsigned long long)count.silence_us, (unsigned long long)(now_us() - start_us));
}

/* Of SCTP: whether everything has arrived, or neither endpoint has sent anything for a while. */
static inline bool is_quiet(uint64_t sent_us)
{
	uint64_t heard = count.last_us > sent_us ? count.last_us : sent_us, now = now_us();
	long silence_ms = count.distinct >= ask.awaited ? 300 : ask.quiet_ms;

	return now > heard && now - heard > silence_ms * 1000ull;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: peer [options] server|client ADDRESS PORT\n"
		"  -a ADDRESS to bind to, of a client; further ones of either\n"
		"  -n MESSAGES  -m MESSAGES awaited  -l BYTES (multiple of 8)  -g MICROSECONDS between\n"
		"  -s STREAMS  -u unordered  -t MILLISECONDS of life  -x RETRANSMISSIONS  -i I-DATA\n"
		"  -k closes when all was sent and all has come, or nothing was heard for -q MILLISECONDS\n"
		"  -e OURS[:THEIRS] UDP ports  -r MILLISECONDS RTO.Min  -p Path.Max.Retrans\n"
		"  -f MILLISECONDS after which usrsctp's peer sends no more  -d MILLISECONDS at most\n"
		"  of DCCP: -c CCID both ways  -S CCID sending  -R CCID receiving  -v SERVICE\n"
		"  -w the server holds TIMEWAIT  -I MILLISECONDS between reports of the sender's state\n");
	return 2;
}

static bool read_words(int arguments, char **argument)
{
	for (int option; (option = getopt(arguments, argument, "a:n:m:l:g:s:ut:x:ikq:e:r:p:f:d:c:S:R:v:wI:")) != -1;) {
		switch (option) {
		case 'a':
			if (ask.locals == MOST_ADDRESSES)
				return false;
			ask.local[ask.locals++] = optarg;
			break;
		case 'n': ask.packets = atol(optarg); break;
		case 'm': ask.awaited = atol(optarg); break;
		case 'l': ask.bytes = atol(optarg); break;
		case 'g': ask.gap_us = atol(optarg); break;
		case 's': ask.streams = atoi(optarg); break;
		case 'u': ask.unordered = true; break;
		case 't': ask.lifetime_ms = atoi(optarg); break;
		case 'x': ask.retransmissions = atoi(optarg); break;
		case 'i': ask.interleaves = true; break;
		case 'k': ask.closes = true; break;
		case 'q': ask.quiet_ms = atol(optarg); break;
		case 'e':
			ask.udp_port = atoi(optarg);
			if (strchr(optarg, ':'))
				ask.remote_udp_port = atoi(strchr(optarg, ':') + 1);
			break;
		case 'r': ask.rto_min_ms = atol(optarg); break;
		case 'p': ask.path_retransmissions = atol(optarg); break;
		case 'f': ask.sending_ms = atol(optarg); break;
		case 'd': ask.limit_ms = atol(optarg); break;
		case 'c': ask.ccid = atoi(optarg); break;
		case 'S': ask.sending_ccid = atoi(optarg); break;
		case 'R': ask.receiving_ccid = atoi(optarg); break;
		case 'v': ask.service = atoi(optarg); break;
		case 'w': ask.timewait = true; break;
		case 'I': ask.every_ms = atol(optarg); break;
		default: return false;
		}
	}
	if (arguments - optind != 3 || ask.packets > MOST_MESSAGES || ask.awaited > MOST_MESSAGES ||
	    ask.bytes % 8 != 0 || ask.bytes < 8 || ask.bytes > LONGEST || ask.streams < 1 ||
	    ask.streams > MOST_STREAMS)
		return false;
	ask.role = argument[optind];
	ask.host = argument[optind + 1];
	ask.family = strchr(ask.host, ':') ? AF_INET6 : AF_INET;
	ask.port = atoi(argument[optind + 2]);
	memset(count.highest, -1, sizeof count.highest);
	setvbuf(stdout, NULL, _IOLBF, 0);
	return true;
}
