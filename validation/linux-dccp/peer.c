/*
 * The kernel's endpoint of a test: a small DCCP program for the guest. Both endpoints send messages at
 * a constant rate. It uses only the socket API.
 */
#define _GNU_SOURCE
#include <poll.h>

#include "../talk.h"

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
enum { NONE = -1 };

/* What getsockopt returns for a CCID 3 sender. */
struct tfrc_sender {
	uint64_t rate, receive_rate; /* 1/64 byte/s */
	uint32_t equation_rate;      /* byte/s */
	uint32_t rtt;                /* us */
	uint32_t loss;               /* 1e-6 */
	uint32_t rto, gap;           /* us */
};

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

static int ccid_of(int socket, int option)
{
	int value = NONE;
	socklen_t bytes = sizeof value;

	return getsockopt(socket, DCCP_LEVEL, option, &value, &bytes) == 0 ? value : NONE;
}

/* Accepts or opens a connection; returns its socket. */
static int connection(void)
{
	struct sockaddr_storage there;
	socklen_t bytes = address(&there, ask.host, ask.port);
	int fd = open_socket(), listener = fd;

	if (strcmp(ask.role, "client") == 0) {
		if (connect(fd, (void *)&there, bytes) != 0)
			give_up("connect");
	} else {
		if (bind(fd, (void *)&there, bytes) != 0 || listen(fd, 1) != 0)
			give_up("listen");
		printf("{\"event\":\"listening\"}\n");
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		errno = ETIMEDOUT;
		if (poll(&wait, 1, ask.limit_ms) <= 0 || (fd = accept(listener, NULL, NULL)) < 0)
			give_up("accept");
		close(listener);
		int one = 1;
		if (ask.timewait)
			set(fd, SERVER_TIMEWAIT, &one, sizeof one, "server timewait");
	}
	printf("{\"event\":\"connected\",\"sending_ccid\":%d,\"receiving_ccid\":%d}\n",
	       ccid_of(fd, CCID_SENDING), ccid_of(fd, CCID_RECEIVING));
	return fd;
}

/* Sends one message; returns false if the kernel's queue is full. */
static bool put(int socket)
{
	static uint8_t message[LONGEST];

	write_message(message, count.sent_packets);
	if (send(socket, message, ask.bytes, MSG_DONTWAIT | MSG_NOSIGNAL) != ask.bytes) {
		count.queue_full++;
		return false;
	}
	count.sent_packets++;
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
		static uint8_t message[LONGEST];
		ssize_t bytes = recv(socket, message, sizeof message, MSG_DONTWAIT);
		if (bytes == 0)
			return "peer";
		if (bytes < 0 && errno != EAGAIN) {
			tell_failure("receive");
			return "error";
		}
		if (bytes > 0) {
			heard = now_us();
			take(message, bytes, 0);
		}
	}
}

int main(int arguments, char **argument)
{
	if (!read_words(arguments, argument))
		return usage();
	int fd = connection();
	uint64_t start = now_us();
	const char *ended_by = converse(fd);

	tell_sender(fd, now_us() - start);
	close(fd);
	tell_counts(ended_by, start);
	return strcmp(ended_by, "self") != 0 && strcmp(ended_by, "peer") != 0;
}
