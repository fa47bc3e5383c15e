//! Parameters of an SCTP association, the same at both ends of a flow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::path::TICK;
use super::{KEPT_BYTES, Sctp};
use crate::packet::IpVersion;
use crate::time::Duration;
use crate::transport::{Setup, Side, TransportConfig};
use crate::units::Size;
use crate::validate::{ConfigError, ConfigErrors, Validate, config};

/// RFC 791: what every host can take; and the longest IP packet.
const MTU: std::ops::RangeInclusive<u64> = 68..=65_535;
/// RFC 9260 §6: every receiver can take this much.
const MIN_BUFFER: Size = Size::from_bytes(1500);
/// a_rwnd has 32 bits; larger buffers are out of range.
const MAX_BUFFER: u64 = 1 << 30;
const HOUR: Duration = Duration::from_secs(3600);

/// Which stream's message is sent next (RFC 8260 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scheduler {
    /// First come, first served (§3.1).
    #[default]
    Fcfs,
    /// Streams in turn, a message each; with interleaving a chunk each (§3.2, §3.3).
    RoundRobin,
    /// The stream with the lowest number that has something to send (§3.4).
    Priority,
}

config! {
    /// Parameters of both ends of an SCTP association.
    pub struct Config {
        /// Messages arrive in the order they were sent in (RFC 9260 §6.6); false: as they come.
        ordered: bool = true,
        /// A message is given up so long after it was handed over (RFC 3758 §4, timed reliability);
        /// absent: never.
        #[serde(skip_serializing_if = "Option::is_none")]
        lifetime: Option<Duration> = None,
        /// A message is given up when it would be sent once more than this (RFC 7496 §3.1, limited
        /// retransmissions); absent: no limit.
        #[serde(skip_serializing_if = "Option::is_none")]
        max_retransmissions: Option<u32> = None,
        /// Name of a flow of SCTP between the same ends, in whose association this flow's messages travel.
        /// Everything else about the association is said there; a flow within it says for its own messages
        /// alone whether they are `ordered`, and `lifetime` or `max_retransmissions`. For a flow with a
        /// `count`, `*` in the name is its number.
        #[serde(skip_serializing_if = "Option::is_none")]
        association: Option<String> = None,
        /// Where several flows share the association: each on a stream of its own, in the order of the file
        /// from stream 0, which is this flow's, on; false: all on stream 0, in one order (RFC 9260 §6.6).
        /// Either way each flow's messages have a Payload Protocol Identifier of their own.
        multistreaming: bool = true,
        /// Streams each way that are asked for and allowed (RFC 9260 §5.1.1). A flow's messages go on one of
        /// them, and those of an association that carries no other flow on stream 0.
        streams: u16 = 10,
        /// Which stream's message is sent next (RFC 8260 §3).
        scheduler: Scheduler = Scheduler::default(),
        /// Explicit Congestion Notification, if both ends want it: data leaves as ECT(0), and a mark counts
        /// as a loss once a window (RFC 4960 appendix A).
        ecn: bool = false,
        /// Parts of messages of several streams may be mixed, if both ends can (RFC 8260 §2: I-DATA).
        interleaving: bool = false,
        /// Largest IP packet of the paths as first assumed; lowered by Packet Too Big for messages not
        /// yet sent (RFC 9260 §7.3).
        mtu: Size = Size::from_bytes(1500),
        /// Initial congestion window in bytes of DATA chunks; absent: min(4 · PMDCS, max(2 · PMDCS,
        /// 4404 B)), over IPv6 4344 B, where PMDCS is the largest DATA chunk that fits (RFC 9260 §7.2.1).
        #[serde(skip_serializing_if = "Option::is_none")]
        initial_window: Option<Size> = None,
        /// Initial slow-start threshold in bytes; absent: unbounded (RFC 9260 §7.2.1 lets it be high).
        #[serde(skip_serializing_if = "Option::is_none")]
        initial_ssthresh: Option<Size> = None,
        /// Packets of new data sent at one opportunity at most: when a SACK or timeout comes, or messages are
        /// handed over at one instant (RFC 9260 §6.1 D, §16: Max.Burst, 4).
        max_burst: u32 = 4,
        /// Receive buffer, which bounds the window offered: a_rwnd (RFC 9260 §3.3.2).
        receive_buffer: Size = Size::from_bytes(4_000_000),
        /// Send buffer: bytes of messages the endpoint holds, sent and unacknowledged ones included.
        send_buffer: Size = Size::from_bytes(4_000_000),
        /// Longest wait of a SACK (RFC 9260 §6.2: 200 ms, at most 500 ms).
        sack_delay: Duration = Duration::from_millis(200),
        /// Packets with data for each SACK at least (RFC 9260 §6.2: 2); 1 acknowledges each at once.
        sack_frequency: u32 = 2,
        /// Messages that wait together leave together, as many as fit a packet (RFC 9260 §6.10).
        bundling: bool = true,
        /// Hold back what does not fill a packet while data is unacknowledged (Nagle, RFC 9260 §6.1).
        nagle: bool = false,
        /// Hold back all new data while any is unacknowledged, until a SACK comes in: then all that waits
        /// leaves, full packets or not; SACKs leave without data. So does ns-2.35, which bundles what has
        /// waited for a round trip. (Its associations are silent for ever once a SACK finds nothing
        /// waiting; here a message that finds nothing in flight leaves at once.)
        ack_clocked: bool = false,
        /// Retransmission timeout before the first measurement (RFC 9260 §16: RTO.Initial, 1 s).
        rto_initial: Duration = Duration::from_secs(1),
        /// Its lower bound (RFC 9260 §16: RTO.Min, 1 s).
        rto_min: Duration = Duration::from_secs(1),
        /// Its upper bound (RFC 9260 §16: RTO.Max, 60 s).
        rto_max: Duration = Duration::from_secs(60),
        /// Timeouts in a row, on whichever path, before the association is given up (RFC 9260 §16:
        /// Association.Max.Retrans, 10).
        association_max_retrans: u32 = 10,
        /// Timeouts in a row before a path is given up (RFC 9260 §16: Path.Max.Retrans, 5).
        path_max_retrans: u32 = 5,
        /// Retransmissions of INIT and of COOKIE ECHO (RFC 9260 §16: Max.Init.Retransmits, 8).
        max_init_retransmits: u32 = 8,
        /// Timeouts in a row that a path survives without being potentially failed (RFC 7829 §3: PFMR,
        /// 0 recommended); absent: there is no such state.
        #[serde(skip_serializing_if = "Option::is_none")]
        potentially_failed: Option<u32> = None,
        /// Time between HEARTBEATs on an idle path, its timeout apart (RFC 9260 §16: HB.interval, 30 s);
        /// 0 s: none are sent once the path is confirmed, potentially failed or not (RFC 7829 §3.2).
        heartbeat_interval: Duration = Duration::from_secs(30),
        /// Life of a State Cookie (RFC 9260 §16: Valid.Cookie.Life, 60 s).
        cookie_life: Duration = Duration::from_secs(60),
    }
}

impl TransportConfig for Config {
    type Endpoint = Sctp;

    fn build(&self, setup: Setup<'_>) -> Sctp {
        let sctp = match setup.side {
            Side::Opens => Sctp::client(self, setup.rng),
            Side::Answers => Sctp::listener(self, setup.rng),
        };
        let sctp = sctp.over(setup.version);
        match setup.addresses {
            [_, others @ ..] => {
                let count = setup.addresses.len();
                let count = u8::try_from(count).expect("paths are counted in eight bits");
                sctp.on_paths(count).with_addresses(others)
            }
            [] => sctp,
        }
    }
    /// `-pr` for partially reliable and `-unordered` messages, and the flow whose association
    /// carries them, if another.
    fn name(&self) -> String {
        let partial = self.lifetime.is_some() || self.max_retransmissions.is_some();
        let order = if self.ordered { "" } else { "-unordered" };
        let partial = if partial { "-pr" } else { "" };
        let owner = self.association.as_ref();
        let within = owner.map_or_else(String::new, |owner| format!(" in {owner}"));
        format!("sctp{partial}{order}{within}")
    }
    fn protocol(&self) -> &'static str {
        "SCTP"
    }
    /// The common header's 12 and the 16 or 20 of a DATA or I-DATA chunk.
    fn header_bytes(&self) -> u32 {
        12 + if self.interleaving { 20 } else { 16 }
    }
    fn max_header_bytes(&self) -> u32 {
        KEPT_BYTES
    }
    fn has_handshake(&self) -> bool {
        true
    }
    fn association(&self) -> Option<&str> {
        self.association.as_deref()
    }
    /// RFC 9260 §7.3: the MTU itself.
    fn fit(&mut self, mtu: Size, _: IpVersion) {
        self.mtu = self.mtu.min(mtu);
    }
}

/// All values that contradict each other or the RFCs.
impl Validate for Config {
    fn errors(&self) -> Vec<ConfigError> {
        errors(self)
    }
}

fn errors(sctp: &Config) -> Vec<ConfigError> {
    let mut found = ConfigErrors::default();
    if !MTU.contains(&sctp.mtu.as_bytes()) {
        let message = format!("{} is not the size of an IP packet: 68B to 65535B", sctp.mtu);
        found.add("mtu", message);
    }
    if sctp.streams == 0 {
        found.add("streams", "an association has a stream (RFC 9260 §3.3.2)");
    }
    for (key, size) in [("receive_buffer", sctp.receive_buffer), ("send_buffer", sctp.send_buffer)]
    {
        if size < MIN_BUFFER {
            found.add(key, format!("{size} is below {MIN_BUFFER} (RFC 9260 §6)"));
        } else if size.as_bytes() > MAX_BUFFER {
            found.add(key, format!("{size} is above 1 GiB"));
        }
    }
    if sctp.sack_frequency == 0 {
        found.add("sack_frequency", "0 packets need no SACK: 1 acknowledges each");
    }
    if sctp.max_burst == 0 {
        found.add("max_burst", "0 packets at once let nothing out");
    }
    if sctp.initial_window == Some(Size::from_bytes(0)) {
        found.add("initial_window", "a window of 0 bytes lets nothing out");
    }
    reliability(sctp, &mut found);
    timers(sctp, &mut found);
    found.0
}

/// RFC 7496 §3: a message has one policy.
fn reliability(sctp: &Config, found: &mut ConfigErrors) {
    if sctp.lifetime.is_some_and(Duration::is_zero) {
        found.add("lifetime", "0ms gives every message up before it is sent");
    }
    if sctp.lifetime.is_some() && sctp.max_retransmissions.is_some() {
        found.add_with_hint(
            "max_retransmissions",
            "a message has one policy (RFC 7496 §3)",
            "leave it or `lifetime` out",
        );
    }
}

fn timers(sctp: &Config, found: &mut ConfigErrors) {
    // RFC 9260 §6.2: the delay is not above 0.5 seconds.
    if sctp.sack_delay > Duration::from_millis(500) {
        let message = format!("{} is above 500ms (RFC 9260 §6.2)", sctp.sack_delay);
        found.add("sack_delay", message);
    }
    for (key, span) in [("rto_min", sctp.rto_min), ("rto_initial", sctp.rto_initial)] {
        if span < TICK {
            let message = format!("{span} is below {TICK}, the tick of the clock of SCTP");
            found.add(key, message);
        }
    }
    if sctp.rto_initial > sctp.rto_max {
        let message = format!("{} is above rto_max ({})", sctp.rto_initial, sctp.rto_max);
        found.add("rto_initial", message);
    }
    if sctp.cookie_life.is_zero() {
        found.add("cookie_life", "a cookie of no life opens no association");
    }
    if sctp.rto_min > sctp.rto_max {
        let message = format!("{} is above rto_max ({})", sctp.rto_min, sctp.rto_max);
        found.add("rto_min", message);
    }
    for (key, span) in [
        ("rto_max", sctp.rto_max),
        ("heartbeat_interval", sctp.heartbeat_interval),
        ("cookie_life", sctp.cookie_life),
    ] {
        found.at_most(key, span, HOUR);
    }
    if let Some(most) = sctp.potentially_failed
        && most >= sctp.path_max_retrans
    {
        let message = format!(
            "{most} timeouts are not fewer than those a path survives, path_max_retrans = {} (RFC 7829 §3)",
            sctp.path_max_retrans
        );
        found.add("potentially_failed", message);
    }
}
