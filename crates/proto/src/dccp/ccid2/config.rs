//! Parameters of CCID 2, and their defaults by profile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::profile::{Profile, parameters};
use crate::time::Duration;
use crate::validate::{ConfigError, ConfigErrors};

/// How the window grows below the slow-start threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SlowStart {
    /// By one packet per two newly acknowledged, at most half the Ack Ratio per acknowledgement: by
    /// about half in a round trip (RFC 4341 §5).
    Rfc4341,
    /// By one packet per newly acknowledged packet: doubles in a round trip (ns-2).
    PerPacket,
}

/// Window growth while the application sends less than the window allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limited {
    /// It continues to grow (ns-2).
    Grow,
    /// It grows only as far as if the largest flight so far had filled it
    /// (draft-ietf-ccwg-ratelimited-increase).
    Limit,
    /// It falls half-way to the size used, once per retransmission timeout (RFC 2861 §3; Linux).
    Validate,
}

/// The window after being idle for longer than a retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Idle {
    /// It stays unchanged (ns-2).
    Keep,
    /// It restarts from the initial window (RFC 5681 §4.1).
    Restart,
    /// It is halved per timeout spent idle, down to the initial window (RFC 2861 §3; Linux).
    Halve,
}

parameters! {
    /// Parameters of CCID 2. Absent ones have the profile's value.
    pub struct Config {
        /// Initial congestion window in packets. Absent: `rfc` and `linux` min(4, max(2, 4380 B / size
        /// of the first data packet)) (RFC 4341 §5, RFC 3390), `ns2` 3 (`initial_cwnd_`).
        initial_window -> u32,
        /// Initial slow-start threshold in packets; absent means unbounded (RFC 4341 §5: arbitrarily
        /// high; ns-2 `initial_ssthresh_`, there 65535).
        initial_ssthresh -> u32,
        /// How slow start grows. Absent: `rfc` and `linux` `rfc4341`, `ns2` `per_packet`.
        slow_start: SlowStart = SlowStart::Rfc4341,
        /// Window growth while the application does not fill the window. Absent: `rfc` `limit`, `ns2`
        /// `grow`, `linux` `validate`.
        application_limited: Limited = Limited::Limit,
        /// Window after an idle period. Absent: `rfc` `restart`, `ns2` `keep`, `linux` `halve`.
        idle: Idle = Idle::Restart,
        /// Timeout before the first round-trip time is known. Absent: `rfc` 1 s (RFC 6298 §2.1), `ns2`
        /// (`initial_rto_`) and `linux` 3 s (RFC 2988 §2.1).
        initial_rto: Duration = Duration::from_secs(1),
        /// Lower bound of the timeout. Absent: `rfc` 1 s (RFC 6298 §2.4; RFC 4341 §5 does not require it,
        /// but an acknowledgement may be 200 ms late), `ns2` 1 s (`min_rto_`), `linux` 200 ms.
        min_rto: Duration = Duration::from_secs(1),
        /// Upper bound of the timeout. Absent: `rfc` and `ns2` 60 s (RFC 6298 §2.5), `linux` 64 s.
        max_rto: Duration = Duration::from_secs(60),
        /// Initial Ack Ratio: data packets per acknowledgement from the other side (RFC 4340 §11.3). Absent: 2.
        ack_ratio: u16 = 2,
        /// Congestion control of acknowledgements: Ack Ratio is adapted as in RFC 4341 §6.1.2; false: it is
        /// constant. Absent: true.
        ack_ratio_control: bool = true,
        /// Maximum delay of an acknowledgement while waiting for the packets of Ack Ratio (RFC 4340 §11.3).
        /// Absent: `rfc` and `ns2` 200 ms (`dack_delay_`); `linux` has no such timer.
        ack_delay -> Duration,
        /// Acknowledgements carry their delay, if any, as Elapsed Time (RFC 4340 §13.2); without it the
        /// sender counts the delay as round-trip time. Absent: `rfc` true, `ns2` and `linux` false.
        elapsed_time: bool = true,
    }

    /// All parameters of CCID 2.
    pub struct Parameters {
        /// Initial window in packets; `None`: by the first data packet's size (RFC 3390).
        initial_window_packets: Option<u64> = None,
        /// Initial slow-start threshold in packets, if there is one.
        initial_ssthresh_packets: Option<u64> = None,
        /// The window grows with every newly acknowledged packet, including those sent before a loss was
        /// detected (ns-2); otherwise not for a window of data with a loss in it (RFC 4341 §5).
        grows_in_recovery: bool = false,
        /// Maximum delay of an acknowledgement, if limited.
        ack_delay: Option<Duration> = Some(Duration::from_millis(200)),
        /// A data packet that is marked, or whose number says that one is missing, is acknowledged at once
        /// (RFC 4340 §11.3: SHOULD); otherwise like any other, as in ns-2 (`recv_packetRecv`) and in Linux
        /// (`ccid2_hc_rx_packet_recv`).
        acknowledges_gaps: bool = true,
    }
}

/// Maximum window in packets, beyond any path.
const MAX_WINDOW_PACKETS: u32 = 65_535;
const MAX_TIMEOUT: Duration = Duration::from_secs(3600);
const MAX_ACK_DELAY: Duration = Duration::from_secs(60);

impl Default for Parameters {
    fn default() -> Self {
        Self::of(Profile::Rfc)
    }
}

impl Parameters {
    /// A profile's values.
    #[must_use]
    pub const fn of(profile: Profile) -> Self {
        match profile {
            Profile::Rfc => Self::RFC,
            Profile::Ns2 => Self {
                initial_window_packets: Some(3),
                slow_start: SlowStart::PerPacket,
                application_limited: Limited::Grow,
                idle: Idle::Keep,
                grows_in_recovery: true,
                initial_rto: Duration::from_secs(3),
                elapsed_time: false,
                acknowledges_gaps: false,
                ..Self::RFC
            },
            Profile::Linux => Self {
                application_limited: Limited::Validate,
                idle: Idle::Halve,
                initial_rto: Duration::from_secs(3),
                min_rto: Duration::from_millis(200),
                max_rto: Duration::from_secs(64),
                ack_delay: None,
                elapsed_time: false,
                acknowledges_gaps: false,
                ..Self::RFC
            },
        }
    }
}

impl Config {
    /// The given parameters, and the profile's values for the rest.
    #[must_use]
    pub fn resolve(&self, profile: Profile) -> Parameters {
        let all = Parameters::of(profile).replaced_by(self);
        let packets = |given: Option<u32>| given.map(u64::from);
        Parameters {
            initial_window_packets: packets(self.initial_window).or(all.initial_window_packets),
            initial_ssthresh_packets: packets(self.initial_ssthresh)
                .or(all.initial_ssthresh_packets),
            ack_delay: self.ack_delay.or(all.ack_delay),
            ..all
        }
    }

    /// All errors, with the profile's values for absent keys; empty if there are none.
    #[must_use]
    pub fn errors(&self, profile: Profile) -> Vec<ConfigError> {
        let all = self.resolve(profile);
        let mut found = ConfigErrors::default();
        match self.initial_window {
            Some(0) => {
                let why = "0 packets: nothing could ever be sent; RFC 3390 has 2 to 4";
                found.add("initial_window", why);
            }
            Some(packets) if packets > MAX_WINDOW_PACKETS => {
                let why =
                    format!("{packets} packets are out of range: at most {MAX_WINDOW_PACKETS}");
                found.add("initial_window", why);
            }
            _ => {}
        }
        // RFC 4341 §5
        if let Some(packets @ 0..2) = self.initial_ssthresh {
            let why = "the threshold is never less than 2 packets (RFC 4341 §5)";
            found.add("initial_ssthresh", format!("{packets}: {why}"));
        }
        // RFC 4340 §11.3: 0 is for CCIDs without Ack Ratio.
        if all.ack_ratio == 0 {
            found.add("ack_ratio", "0: CCID 2 needs acknowledgements (RFC 4341 §6)");
        }
        for (key, time, most) in [
            ("initial_rto", Some(all.initial_rto), MAX_TIMEOUT),
            ("ack_delay", all.ack_delay, MAX_ACK_DELAY),
            ("max_rto", Some(all.max_rto), MAX_TIMEOUT),
        ] {
            time.into_iter().for_each(|time| found.timer(key, time, most));
        }
        let (least, most) = (all.min_rto, all.max_rto);
        if least > most {
            found.add("min_rto", format!("{least} is longer than max_rto ({most})"));
        }
        if least.is_zero() {
            found.add("min_rto", "0ms: a timer needs time");
        }
        found.0
    }
}
