/*
 * The kernel's endpoint of a test: a small SCTP program for the guest. It uses only the socket API
 * (RFC 6458), as declared in <linux/sctp.h>.
 */
#define _GNU_SOURCE
#include <poll.h>

#include "../talk.h"

#include <linux/sctp.h>

enum { LEVEL = 132 };

static const char *ended_by;
static uint64_t start_us;

static void set(int socket, int option, const void *value, socklen_t bytes, const char *what)
{
	if (setsockopt(socket, LEVEL, option, value, bytes) != 0)
		give_up(what);
}

static int open_socket(void)
{
	int fd = socket(ask.family, SOCK_STREAM, LEVEL), one = 1, level = 2;
	struct sctp_initmsg init = { .sinit_num_ostreams = 64, .sinit_max_instreams = 64 };
	struct sctp_event news = { .se_type = SCTP_ASSOC_CHANGE, .se_on = 1 };
	struct sctp_assoc_value value = { .assoc_value = 1 };

	if (fd < 0)
		give_up("socket");
	set(fd, SCTP_INITMSG, &init, sizeof init, "streams");
	set(fd, SCTP_EVENT, &news, sizeof news, "events");
	news.se_type = SCTP_PEER_ADDR_CHANGE;
	set(fd, SCTP_EVENT, &news, sizeof news, "events");
	set(fd, SCTP_RECVRCVINFO, &one, sizeof one, "stream numbers");
	set(fd, SCTP_NODELAY, &one, sizeof one, "no delay");
	if (ask.interleaves) {
		set(fd, SCTP_FRAGMENT_INTERLEAVE, &level, sizeof level, "interleaving level");
		set(fd, SCTP_INTERLEAVING_SUPPORTED, &value, sizeof value, "interleaving");
	}
	if (ask.rto_min_ms >= 0) {
		struct sctp_rtoinfo rto = { .srto_min = ask.rto_min_ms };

		set(fd, SCTP_RTOINFO, &rto, sizeof rto, "RTO.Min");
	}
	if (ask.path_retransmissions >= 0) {
		struct sctp_paddrparams path = { .spp_pathmaxrxt = ask.path_retransmissions };

		set(fd, SCTP_PEER_ADDR_PARAMS, &path, sizeof path, "Path.Max.Retrans");
	}
	return fd;
}

/* Opens or accepts the association; returns its socket. */
static int association(void)
{
	struct sockaddr_storage there, here;
	bool is_client = strcmp(ask.role, "client") == 0;
	socklen_t bytes = address(&there, ask.host, ask.port);
	int fd = open_socket(), accepted, at = 0;

	if (!is_client && bind(fd, (void *)&there, bytes) != 0)
		give_up("bind");
	if (is_client && ask.locals > 0) {
		bytes = address(&here, ask.local[at++], 0);
		if (bind(fd, (void *)&here, bytes) != 0)
			give_up("bind");
	}
	if (at < ask.locals) {
		/* Additional addresses use the port of the first. */
		socklen_t have = sizeof here;
		int port;

		getsockname(fd, (void *)&here, &have);
		port = ntohs(((struct sockaddr_in *)&here)->sin_port);
		for (; at < ask.locals; at++) {
			bytes = address(&here, ask.local[at], port);
			set(fd, SCTP_SOCKOPT_BINDX_ADD, &here, bytes, "a further address");
		}
	}
	if (is_client) {
		if (connect(fd, (void *)&there, bytes) != 0)
			give_up("connect");
		return fd;
	}
	if (listen(fd, 1) != 0)
		give_up("listen");
	printf("{\"event\":\"listening\"}\n");
	accepted = accept(fd, NULL, NULL);
	if (accepted < 0)
		give_up("accept");
	close(fd);
	return accepted;
}

static void on_notification(const union sctp_notification *news)
{
	static const char *states[] = { "up", "lost", "restarted", "shut down", "refused" };
	static const char *paths[] = { "available", "unreachable", "removed", "added", "primary",
				       "confirmed", "potentially failed" };
	unsigned long long us = now_us() - start_us;

	if (news->sn_header.sn_type == SCTP_ASSOC_CHANGE) {
		unsigned state = news->sn_assoc_change.sac_state;

		printf("{\"event\":\"association\",\"state\":\"%s\",\"us\":%llu}\n",
		       state < 5 ? states[state] : "?", us);
		if (state == SCTP_COMM_LOST)
			ended_by = "lost";
		if (state == SCTP_SHUTDOWN_COMP && !ended_by)
			ended_by = "peer"; /* a shutdown of its own: no end of data is told */
	} else if (news->sn_header.sn_type == SCTP_PEER_ADDR_CHANGE) {
		const struct sctp_paddr_change *change = &news->sn_paddr_change;
		const struct sockaddr_in *four = (const void *)&change->spc_aaddr;
		unsigned state = change->spc_state;
		char text[INET_ADDRSTRLEN] = "";

		inet_ntop(AF_INET, &four->sin_addr, text, sizeof text);
		printf("{\"event\":\"path\",\"address\":\"%s\",\"state\":\"%s\",\"us\":%llu}\n", text,
		       state < 7 ? paths[state] : "?", us);
	}
}

/* Reads available data; returns false if there is none. */
static bool receive(int fd)
{
	static uint8_t part[LONGEST];
	union {
		struct cmsghdr header;
		uint8_t bytes[CMSG_SPACE(sizeof(struct sctp_rcvinfo))];
	} control;
	struct iovec vector = { .iov_base = part, .iov_len = sizeof part };
	struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof control };
	ssize_t bytes = recvmsg(fd, &message, MSG_DONTWAIT);
	int stream = 0;

	if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (bytes <= 0) {
		if (!ended_by)
			ended_by = bytes == 0 ? "peer" : "error";
		return false;
	}
	if (message.msg_flags & MSG_NOTIFICATION) {
		on_notification((void *)part);
		return true;
	}
	for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(&message, at))
		if (at->cmsg_level == LEVEL && at->cmsg_type == SCTP_RCVINFO)
			stream = ((struct sctp_rcvinfo *)CMSG_DATA(at))->rcv_sid;
	assemble(part, bytes, stream, message.msg_flags & MSG_EOR);
	return true;
}

/* Sends a message; returns false if the kernel has no buffer space. */
static bool put(int fd)
{
	static uint8_t bytes[LONGEST];
	union {
		struct cmsghdr header;
		uint8_t bytes[CMSG_SPACE(sizeof(struct sctp_sndinfo)) + CMSG_SPACE(sizeof(struct sctp_prinfo))];
	} control = { 0 };
	struct iovec vector = { .iov_base = bytes, .iov_len = ask.bytes };
	struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = CMSG_SPACE(sizeof(struct sctp_sndinfo)) };
	bool timed = ask.lifetime_ms >= 0, partial = timed || ask.retransmissions >= 0;
	struct sctp_sndinfo info = { .snd_sid = count.sent_packets % ask.streams,
				     .snd_flags = ask.unordered ? SCTP_UNORDERED : 0 };
	struct sctp_prinfo policy = { .pr_policy = timed ? SCTP_PR_SCTP_TTL : SCTP_PR_SCTP_RTX,
				      .pr_value = timed ? ask.lifetime_ms : ask.retransmissions };
	struct cmsghdr *at;

	if (partial)
		message.msg_controllen = sizeof control.bytes;
	at = CMSG_FIRSTHDR(&message);
	*at = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof info), .cmsg_level = LEVEL,
				.cmsg_type = SCTP_SNDINFO };
	memcpy(CMSG_DATA(at), &info, sizeof info);
	if (partial) {
		at = CMSG_NXTHDR(&message, at);
		*at = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof policy), .cmsg_level = LEVEL,
					.cmsg_type = SCTP_PRINFO };
		memcpy(CMSG_DATA(at), &policy, sizeof policy);
	}
	write_message(bytes, count.sent_packets);
	if (sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) != ask.bytes) {
		if (errno != EAGAIN && errno != ENOBUFS)
			ended_by = "refused";
		count.queue_full++;
		return false;
	}
	count.sent_packets++;
	return true;
}

static void converse(int fd)
{
	uint64_t next = start_us;
	bool shut = false;

	while (!ended_by) {
		uint64_t now = now_us(), wake = now + 50000;
		bool full = false;

		if (now - start_us > ask.limit_ms * 1000ull) {
			ended_by = "limit";
			break;
		}
		while (count.sent_packets < ask.packets && now >= next && !full && !ended_by) {
			full = !put(fd);
			next += full ? 0 : ask.gap_us;
		}
		if (count.sent_packets >= ask.packets && ask.closes && !shut && is_quiet(next)) {
			shutdown(fd, SHUT_WR);
			shut = true;
		}
		if (count.sent_packets < ask.packets && !full && next < wake)
			wake = next;
		struct pollfd wait = { .fd = fd, .events = POLLIN | (full ? POLLOUT : 0) };
		struct timespec span = { 0, wake > now ? (wake - now) * 1000 : 0 };
		if (ppoll(&wait, 1, &span, NULL) > 0)
			while (!ended_by && receive(fd))
				;
	}
	if (shut && strcmp(ended_by, "peer") == 0)
		ended_by = "self";
}

int main(int arguments, char **argument)
{
	if (!read_words(arguments, argument))
		return usage();
	int fd = association();

	start_us = now_us();
	printf("{\"event\":\"connected\"}\n");
	converse(fd);
	tell_counts(ended_by, start_us);
	close(fd);
	return strcmp(ended_by, "self") != 0 && strcmp(ended_by, "peer") != 0;
}
