/*
 * usrsctp's endpoint of a test, encapsulated in UDP (RFC 6951). One thread receives, the other sends.
 */
#include <pthread.h>
#include <usrsctp.h>

#include "../talk.h"

/* RFC 8260 section 4.3.1. Headers of some versions do not declare it. */
enum { INTERLEAVING_SUPPORTED = 0x1206 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *volatile ended_by;
static uint64_t start_us;

static void set(struct socket *socket, int option, const void *value, socklen_t bytes, const char *what)
{
	if (usrsctp_setsockopt(socket, IPPROTO_SCTP, option, value, bytes) != 0)
		give_up(what);
}

static struct socket *open_socket(void)
{
	struct socket *socket = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
	struct sctp_initmsg init = { .sinit_num_ostreams = 64, .sinit_max_instreams = 64 };
	struct sctp_event event = { .se_assoc_id = SCTP_FUTURE_ASSOC, .se_type = SCTP_ASSOC_CHANGE,
				    .se_on = 1 };
	struct sctp_assoc_value value = { .assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = 1 };
	int one = 1, level = 2;

	if (!socket)
		give_up("socket");
	set(socket, SCTP_INITMSG, &init, sizeof init, "streams");
	set(socket, SCTP_EVENT, &event, sizeof event, "events");
	set(socket, SCTP_RECVRCVINFO, &one, sizeof one, "stream numbers");
	set(socket, SCTP_NODELAY, &one, sizeof one, "no delay");
	if (ask.interleaves) {
		set(socket, SCTP_FRAGMENT_INTERLEAVE, &level, sizeof level, "interleaving level");
		set(socket, INTERLEAVING_SUPPORTED, &value, sizeof value, "interleaving");
	}
	if (ask.remote_udp_port) {
		struct sctp_udpencaps udp = { .sue_port = htons(ask.remote_udp_port) };

		udp.sue_address.ss_family = AF_INET;
		set(socket, SCTP_REMOTE_UDP_ENCAPS_PORT, &udp, sizeof udp, "UDP port");
	}
	return socket;
}

static struct socket *association(void)
{
	struct socket *socket = open_socket(), *accepted;
	bool is_client = strcmp(ask.role, "client") == 0;
	struct sockaddr_storage there, here;
	socklen_t bytes = address(&there, ask.host, ask.port);

	address(&here, is_client ? (ask.locals ? ask.local[0] : "0.0.0.0") : ask.host,
		is_client ? 0 : ask.port);
	if (usrsctp_bind(socket, (struct sockaddr *)&here, bytes) != 0)
		give_up("bind");
	if (is_client) {
		if (usrsctp_connect(socket, (struct sockaddr *)&there, bytes) != 0)
			give_up("connect");
		return socket;
	}
	if (usrsctp_listen(socket, 1) != 0)
		give_up("listen");
	printf("{\"event\":\"listening\"}\n");
	accepted = usrsctp_accept(socket, NULL, NULL);
	if (!accepted)
		give_up("accept");
	usrsctp_close(socket);
	return accepted;
}

static void on_notification(const union sctp_notification *news)
{
	static const char *states[] = { "", "up", "lost", "restarted", "shut down", "refused" };

	if (news->sn_header.sn_type != SCTP_ASSOC_CHANGE)
		return;
	int state = news->sn_assoc_change.sac_state;
	printf("{\"event\":\"association\",\"state\":\"%s\",\"us\":%llu}\n", states[state],
	       (unsigned long long)(now_us() - start_us));
	if (state == SCTP_COMM_LOST)
		ended_by = "lost";
}

static void *receive(void *argument)
{
	static uint8_t part[LONGEST];
	struct socket *socket = argument;

	for (;;) {
		struct sctp_rcvinfo info = { 0 };
		socklen_t info_bytes = sizeof info, from_bytes = 0;
		unsigned kind = 0;
		int flags = 0;
		ssize_t bytes = usrsctp_recvv(socket, part, sizeof part, NULL, &from_bytes, &info,
					      &info_bytes, &kind, &flags);
		if (bytes <= 0) {
			if (!ended_by)
				ended_by = bytes == 0 ? "peer" : "error";
			return NULL;
		}
		if (flags & MSG_NOTIFICATION) {
			on_notification((void *)part);
			continue;
		}
		pthread_mutex_lock(&lock);
		assemble(part, bytes, kind == SCTP_RECVV_RCVINFO ? info.rcv_sid : 0, flags & MSG_EOR);
		pthread_mutex_unlock(&lock);
	}
}

/* Sends a message once there is buffer space; returns false if the association refuses it. */
static bool put(struct socket *socket)
{
	static uint8_t message[LONGEST];
	struct sctp_sendv_spa how = { .sendv_flags = SCTP_SEND_SNDINFO_VALID };

	how.sendv_sndinfo.snd_sid = count.sent_packets % ask.streams;
	how.sendv_sndinfo.snd_flags = ask.unordered ? SCTP_UNORDERED : 0;
	if (ask.lifetime_ms >= 0 || ask.retransmissions >= 0) {
		bool timed = ask.lifetime_ms >= 0;

		how.sendv_flags |= SCTP_SEND_PRINFO_VALID;
		how.sendv_prinfo.pr_policy = timed ? SCTP_PR_SCTP_TTL : SCTP_PR_SCTP_RTX;
		how.sendv_prinfo.pr_value = timed ? ask.lifetime_ms : ask.retransmissions;
	}
	write_message(message, count.sent_packets);
	if (usrsctp_sendv(socket, message, ask.bytes, NULL, 0, &how, sizeof how, SCTP_SENDV_SPA, 0) !=
	    ask.bytes)
		return false;
	count.sent_packets++;
	return true;
}

static void converse(struct socket *socket)
{
	uint64_t next = start_us;
	bool shut = false;

	while (!ended_by) {
		uint64_t now = now_us();

		if (ask.sending_ms && now - start_us > ask.sending_ms * 1000ull)
			ask.packets = count.sent_packets;
		if (now - start_us > ask.limit_ms * 1000ull) {
			ended_by = "limit";
		} else if (count.sent_packets < ask.packets && now >= next) {
			if (!put(socket))
				ended_by = "refused";
			next += ask.gap_us;
			if (next < now)
				next = now;
		} else {
			pthread_mutex_lock(&lock);
			bool done = count.sent_packets >= ask.packets && is_quiet(next);
			pthread_mutex_unlock(&lock);
			if (done && ask.closes && !shut) {
				usrsctp_shutdown(socket, SHUT_WR);
				shut = true;
			}
			usleep(500);
		}
	}
	if (shut && strcmp((const char *)ended_by, "peer") == 0)
		ended_by = "self";
}

int main(int arguments, char **argument)
{
	if (!read_words(arguments, argument))
		return usage();
	usrsctp_init(ask.udp_port, NULL, NULL);
	usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
	if (ask.rto_min_ms >= 0)
		usrsctp_sysctl_set_sctp_rto_min_default(ask.rto_min_ms);
	struct socket *socket = association();
	pthread_t receiver;

	start_us = now_us();
	printf("{\"event\":\"connected\"}\n");
	pthread_create(&receiver, NULL, receive, socket);
	converse(socket);
	tell_counts((const char *)ended_by, start_us);
	usrsctp_close(socket);
	/* If the SHUTDOWN COMPLETE was lost, the peer retransmits after its RTO, and the stack must still
	 * be there to answer (RFC 9260 section 8.4, item 5). */
	sleep(3);
	for (int turn = 0; turn < 50 && usrsctp_finish() != 0; turn++)
		usleep(20000);
	_exit(strcmp((const char *)ended_by, "self") != 0 && strcmp((const char *)ended_by, "peer") != 0);
}
