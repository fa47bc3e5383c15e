//! Parameters of a TCP endpoint.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{TICK, Tcp};
pub use crate::congestion::{Controller, LossRecovery};
use crate::packet::IpVersion;
use crate::rfc4571;
use crate::time::Duration;
use crate::transport::{Setup, Side, TransportConfig};
use crate::units::Size;
use crate::validate::{ConfigError, ConfigErrors, Validate};

/// Options take up to 40 bytes of a segment; a smaller MSS would leave no room for data.
const MIN_MSS: u64 = 64;
/// RFC 7323 §2.3: the window must stay below 2^30.
const MAX_WINDOW: u64 = 1 << 30;
/// Linux keeps these counts in 8 bits (`tcp_retries2`, `tcp_synack_retries`).
const MAX_RETRANSMISSIONS: u32 = 255;

/// How the congestion window grows and shrinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowRule {
    /// RFC 5681 §3.1: bytes are counted. The window grows by one segment per window acknowledged if it
    /// was full; a loss reduces it to half the data in flight.
    #[default]
    Rfc5681,
    /// ns-2.35 (`tcp.cc`, `tcp-reno.cc`, `tcp-newreno.cc`): each acknowledgement adds a segment in slow
    /// start and 1/cwnd of one after it, even if the window was not full. A loss halves the window; the
    /// threshold is this half in whole segments. Recovery ends with the window after the loss, plus
    /// 1/cwnd. A fast retransmission restarts the retransmission timer. Idle time changes nothing.
    Ns2,
}

/// Parameters of both ends of a TCP connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Congestion controller; there is no default.
    pub controller: Controller,
    /// Loss detection and recovery; absent means the controller's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LossRecovery")]
    pub recovery: Option<LossRecovery>,
    /// How the window of `tahoe`, `reno` and `newreno` grows and shrinks. With `ns2`, their throughput
    /// under random loss matches ns-2.35's. Other controllers have no such choice.
    #[serde(default)]
    pub window_rule: WindowRule,
    /// CUBIC leaves slow start when round-trip times increase (HyStart++, RFC 9406), as real hosts do.
    /// Absent means `true` with `cubic`; not available with other controllers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub hystart: Option<bool>,
    /// Detect and undo spurious timeouts (F-RTO, RFC 5682, with the response of RFC 4015), as Linux
    /// does. Absent means `true` with the recoveries `sack` and `rack`, `false` with the older ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub f_rto: Option<bool>,
    /// Send segments at a rate, two or a millisecond's worth at once, instead of as fast as the window
    /// allows. The rate is the controller's with `bbr` and `prague`; with others, as in Linux, two windows per
    /// smoothed round trip below half the slow-start threshold and 1.2 above it. Absent means `true`
    /// with `bbr` and `prague`, `false` with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub pacing: Option<bool>,
    /// Largest payload of a segment without options, in bytes; lowered to fit the path's first link and
    /// by Packet Too Big (RFC 9293 §3.7.1; ns-2 `packetSize_`).
    #[serde(default = "Config::default_mss")]
    pub mss: Size,
    /// Initial congestion window in segments (RFC 6928 §2: min(10 MSS, max(2 MSS, 14600 B))).
    #[serde(default = "Config::default_initial_window")]
    pub initial_window: u32,
    /// Initial slow-start threshold in segments; absent means unbounded (RFC 5681 §3.1). Not available
    /// with `bbr`, which has no such threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_ssthresh: Option<u32>,
    /// Receive buffer, which limits the advertised window (ns-2 `window_`, in bytes here).
    #[serde(default = "Config::default_receive_buffer")]
    pub receive_buffer: Size,
    /// Send buffer: unsent and unacknowledged bytes accepted from the application.
    #[serde(default = "Config::default_send_buffer")]
    pub send_buffer: Size,
    /// Limit of unsent bytes in the send buffer. At or above it the endpoint accepts no more data,
    /// which then waits in the flow's send queue under its drop policy (Linux `TCP_NOTSENT_LOWAT`).
    /// Absent means the buffer's size, as by default in Linux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Size")]
    pub notsent_lowat: Option<Size>,
    /// Acknowledge every second full segment or after `ack_delay` (RFC 5681 §4.2); false: each segment.
    #[serde(default = "Config::yes")]
    pub delayed_ack: bool,
    /// Maximum delay of a delayed acknowledgement (RFC 5681 §4.2: below 500 ms; Linux 40 ms).
    #[serde(default = "Config::default_ack_delay")]
    pub ack_delay: Duration,
    /// Hold back small segments while data is unacknowledged (Nagle, RFC 9293 §3.7.4).
    #[serde(default)]
    pub nagle: bool,
    /// Timestamps option, RTT measured on every acknowledgement and PAWS (RFC 7323 §3, §5).
    #[serde(default = "Config::yes")]
    pub timestamps: bool,
    /// Window scale option (RFC 7323 §2).
    #[serde(default = "Config::yes")]
    pub window_scaling: bool,
    /// Explicit congestion notification (RFC 3168) if both ends agree (ns-2 `ecn_`): data is sent with
    /// ECT(0), with `prague` with ECT(1). Absent means `true` with `dctcp` and `prague`, which need it,
    /// `false` with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub ecn: Option<bool>,
    /// Lower bound of the retransmission timeout (RFC 6298 §2.4 says 1 s; Linux uses 200 ms).
    #[serde(default = "Config::default_min_rto")]
    pub min_rto: Duration,
    /// Upper bound of the retransmission timeout (RFC 6298 §2.5: at least 60 s).
    #[serde(default = "Config::default_max_rto")]
    pub max_rto: Duration,
    /// Retransmissions of one segment before the connection is aborted (RFC 9293 §3.8.3, R2); at most
    /// 255, as Linux's `tcp_retries2`.
    #[serde(default = "Config::default_max_retransmissions")]
    pub max_retransmissions: u32,
    /// Retransmissions of an unanswered SYN-ACK before the listener listens again, if fewer than
    /// `max_retransmissions`. With 7 it waits 183 s (RFC 9293 §3.8.3: R2 of a SYN is at least 3 min;
    /// Linux `tcp_synack_retries` is 5); at most 255, as in Linux.
    #[serde(default = "Config::default_max_synack_retransmissions")]
    pub max_synack_retransmissions: u32,
    /// Maximum segment lifetime; TIME-WAIT lasts twice as long (RFC 9293 §3.4.1 says 2 min).
    #[serde(default = "Config::default_msl")]
    pub msl: Duration,
}

impl Config {
    crate::defaults! {
        default_mss: Size = Size::from_bytes(1460);
        default_initial_window: u32 = 10;
        default_receive_buffer: Size = Size::from_bytes(4_000_000);
        default_send_buffer: Size = Size::from_bytes(4_000_000);
        yes: bool = true;
        default_ack_delay: Duration = Duration::from_millis(40);
        default_min_rto: Duration = Duration::from_secs(1);
        default_max_rto: Duration = Duration::from_secs(60);
        default_max_retransmissions: u32 = 15;
        default_max_synack_retransmissions: u32 = 7;
        default_msl: Duration = Duration::from_secs(30);
    }

    /// The defaults with this controller.
    #[must_use]
    pub const fn new(controller: Controller) -> Self {
        Self {
            controller,
            recovery: None,
            window_rule: WindowRule::Rfc5681,
            hystart: None,
            f_rto: None,
            pacing: None,
            mss: Self::default_mss(),
            initial_window: Self::default_initial_window(),
            initial_ssthresh: None,
            receive_buffer: Self::default_receive_buffer(),
            send_buffer: Self::default_send_buffer(),
            notsent_lowat: None,
            delayed_ack: true,
            ack_delay: Self::default_ack_delay(),
            nagle: false,
            timestamps: true,
            window_scaling: true,
            ecn: None,
            min_rto: Self::default_min_rto(),
            max_rto: Self::default_max_rto(),
            max_retransmissions: Self::default_max_retransmissions(),
            max_synack_retransmissions: Self::default_max_synack_retransmissions(),
            msl: Self::default_msl(),
        }
    }

    /// The recovery in use.
    #[must_use]
    pub fn loss_recovery(&self) -> LossRecovery {
        self.recovery.unwrap_or(self.controller.abilities().recovery)
    }

    /// True if segments are paced.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        self.pacing.unwrap_or(self.controller.abilities().paces)
    }

    /// True if ECN is negotiated.
    #[must_use]
    pub fn uses_ecn(&self) -> bool {
        self.ecn.unwrap_or(self.controller.abilities().ecn.is_some())
    }
}

impl TransportConfig for Config {
    type Endpoint = Tcp;

    fn build(&self, setup: Setup<'_>) -> Tcp {
        let tcp = match setup.side {
            Side::Opens => Tcp::client(self, setup.rng),
            Side::Answers => Tcp::listener(self, setup.rng),
        };
        tcp.over(setup.version)
    }
    /// `tcp-newreno`, or `tcp-newreno+sack` with another recovery than its own.
    fn name(&self) -> String {
        let controller = self.controller.name();
        match self.recovery.filter(|recovery| *recovery != self.controller.abilities().recovery) {
            None => format!("tcp-{controller}"),
            Some(recovery) => format!("tcp-{controller}+{}", recovery.name()),
        }
    }
    fn protocol(&self) -> &'static str {
        "TCP"
    }
    /// 20 with the timestamps (RFC 7323) and the two length bytes in front of a packet (RFC 4571).
    fn header_bytes(&self) -> u32 {
        20 + if self.timestamps { 12 } else { 0 } + rfc4571::LENGTH_BYTES as u32
    }
    fn unit_bytes(&self) -> u32 {
        self.mss.as_bytes() as u32
    }
    fn is_stream(&self) -> bool {
        true
    }
    /// A stream accepts writes up to its capacity; with a limit on unsent data, each write decides
    /// whether another is accepted.
    fn joins_writes(&self) -> bool {
        self.notsent_lowat.is_none()
    }
    fn has_handshake(&self) -> bool {
        true
    }
    /// RFC 9293 §3.7.1: the MTU less the fixed headers of IP and TCP.
    fn fit(&mut self, mtu: Size, version: IpVersion) {
        let headers = u64::from(version.header_bytes()) + 20;
        let fits = mtu.as_bytes().saturating_sub(headers).max(1);
        self.mss = self.mss.min(Size::from_bytes(fits));
    }
}

/// Reports all values that contradict each other or the RFCs.
impl Validate for Config {
    fn errors(&self) -> Vec<ConfigError> {
        errors(self)
    }
}

fn errors(tcp: &Config) -> Vec<ConfigError> {
    let mut found = ConfigErrors::default();
    let (able, controller) = (tcp.controller.abilities(), tcp.controller.name());
    if !(MIN_MSS..=65_495).contains(&tcp.mss.as_bytes()) {
        found.add("mss", format!("{} is not a segment size: 64B to 65495B", tcp.mss));
    }
    if !(1..=65_535).contains(&tcp.initial_window) {
        found.add("initial_window", "must be 1 to 65535 segments");
    }
    if tcp.initial_ssthresh.is_some_and(|segments| segments < 2) {
        found.add("initial_ssthresh", "must be at least 2 segments (RFC 5681 §3.1)");
    }
    if tcp.initial_ssthresh.is_some() && !able.has_threshold {
        let message =
            format!("{controller} has no threshold: its startup ends when the path is full");
        found.add_with_hint("initial_ssthresh", message, "leave it out");
    }
    if tcp.hystart.is_some() && !able.has_hystart {
        let message = format!("only cubic has it, not {}", tcp.controller.name());
        found.add_with_hint("hystart", message, "leave it out");
    }
    if able.ecn.is_some() && tcp.ecn == Some(false) {
        let message = format!("{controller} goes by marks and needs it");
        found.add_with_hint("ecn", message, "leave it out");
    }
    if tcp.window_rule == WindowRule::Ns2 && !able.has_ns2_windows {
        let name = tcp.controller.name();
        let message = format!("only tahoe, reno and newreno have ns-2's, not {name}");
        found.add_with_hint("window_rule", message, "leave it out");
    }
    for (key, count) in [
        ("max_retransmissions", tcp.max_retransmissions),
        ("max_synack_retransmissions", tcp.max_synack_retransmissions),
    ] {
        if count > MAX_RETRANSMISSIONS {
            let message = format!("{count} is out of range: at most {MAX_RETRANSMISSIONS}");
            found.add(key, message);
        }
    }
    let recovery = tcp.loss_recovery();
    if able.needs_sack && !matches!(recovery, LossRecovery::Sack | LossRecovery::Rack) {
        let message = format!(
            "\"{}\" does not tell what arrived when, by which {controller} goes: \"sack\" or \"rack\"",
            recovery.name()
        );
        found.add("recovery", message);
    }
    buffer("receive_buffer", tcp.receive_buffer, tcp.mss, &mut found);
    buffer("send_buffer", tcp.send_buffer, tcp.mss, &mut found);
    if tcp.notsent_lowat.is_some_and(|lowat| lowat.as_bytes() == 0) {
        found.add("notsent_lowat", "0B would let nothing be sent: the least is 1B");
    }
    if let Some(lowat) = tcp.notsent_lowat.filter(|lowat| *lowat > tcp.send_buffer) {
        let message = format!("{lowat} is more than send_buffer ({}) holds", tcp.send_buffer);
        found.add("notsent_lowat", message);
    }
    // RFC 9293 §3.8.6.3 (MUST-40): the delay is less than 0.5 seconds.
    if tcp.ack_delay >= Duration::from_millis(500) {
        let message = format!("{} is not below 500ms (RFC 9293 §3.8.6.3)", tcp.ack_delay);
        found.add("ack_delay", message);
    }
    if tcp.min_rto < TICK {
        let message = format!("{} is below {TICK}, the tick of the clock of TCP", tcp.min_rto);
        found.add("min_rto", message);
    } else if tcp.min_rto > tcp.max_rto {
        let message = format!("{} is above max_rto ({})", tcp.min_rto, tcp.max_rto);
        found.add("min_rto", message);
    }
    found.at_most("max_rto", tcp.max_rto, Duration::from_secs(3600));
    found.at_most("msl", tcp.msl, Duration::from_secs(3600));
    found.0
}

fn buffer(key: &str, size: Size, mss: Size, found: &mut ConfigErrors) {
    if size < mss {
        found.add(key, format!("{size} does not hold one segment ({mss})"));
    } else if size.as_bytes() > MAX_WINDOW {
        found.add(key, format!("{size} is above the largest window, 1 GiB (RFC 7323 §2.3)"));
    }
}
