//! Congestion control of live media. A [`MediaController`] decides at which rate the sources of a session
//! encode and its packets leave; packets, pacing, feedback and timers are the session's, in the crate `app`.
//!
//! `docs/adding-a-media-controller.md` adds one step by step: a file, and its line in `media_controllers!`.
//!
//! Controllers see what was sent, and a [`PacketReport`] on each packet. RFC 8888 and transport-wide feedback
//! both provide these.

pub mod breaker;
mod clusters;
mod coupling;
pub mod gcc;
pub mod nada;
mod pacer;

use std::fmt::Debug;

use breaker::Trip;
pub use clusters::Clusters;
pub use coupling::FlowStateExchange;
pub use pacer::Pacer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gauge::Gauge;
use crate::packet::Ecn;
use crate::rtcp::PacketReport;
use crate::time::{Duration, Instant};
use crate::units::Rate;
use crate::validate::Validate;

/// Congestion control of a session.
///
/// [`on_reports`](Self::on_reports) and [`decision`](Self::decision) are all that a controller needs.
pub trait MediaController: Debug + Send {
    /// A feedback packet arrived: reports on single packets, in the order in which they were sent. A packet may
    /// be reported again, and one that was lost in an earlier report may have arrived in a later one.
    fn on_reports(&mut self, now: Instant, reports: &[PacketReport], feedback: &FeedbackInfo);
    /// What it decided last.
    fn decision(&self) -> Decision;
    /// What all sources of the session need at least, in the bytes that the controller counts, before it
    /// begins.
    fn on_sources(&mut self, _least: Rate) {}
    /// Packets may leave from now on.
    fn on_start(&mut self, _now: Instant) {}
    /// RTCP of the other side arrived, feedback or not.
    fn on_contact(&mut self, _now: Instant) {}
    /// Receiver reports of the other side arrived (RFC 3550 §6.4).
    fn on_receiver_report(&mut self, _now: Instant, _report: &ReceiverReport) {}
    /// The receiver asks for this rate at most (REMB); zero for any.
    fn on_receiver_limit(&mut self, _now: Instant, _limit: Rate) {}
    /// A packet left; whether that changed the decision or asks for a cluster.
    fn on_sent(&mut self, _now: Instant, _sent: &Sent) -> bool {
        false
    }
    /// The pacer's queue changed to this length.
    fn on_queue(&mut self, _now: Instant, _bytes: u64) {}
    /// When it wants [`on_timeout`](Self::on_timeout).
    fn deadline(&self) -> Option<Instant> {
        None
    }
    /// Its deadline was reached.
    fn on_timeout(&mut self, _now: Instant) {}
    /// The next cluster of packets that it wants to be sent, until there is none.
    fn take_cluster(&mut self) -> Option<Cluster> {
        None
    }
    /// The rate that sessions at a shared bottleneck exchange (RFC 8699), of a controller that can be coupled.
    fn coupled_rate(&self) -> Option<Rate> {
        None
    }
    /// It takes this rate over from the exchange.
    fn set_coupled_rate(&mut self, _rate: Rate) {}
    /// Its quantities, for a probe.
    fn observe(&self, _tell: &mut dyn FnMut(Gauge, f64)) {}
}

/// A packet of a session that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its number in sending order, as in [`PacketReport::sequence`].
    pub sequence: u64,
    /// Its size, as the controller counts it ([`Bytes`]).
    pub bytes: u32,
}

/// Packets that leave faster than the others, to learn whether the path carries that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Its number, from 1; that of its packets in [`PacketReport::probe`].
    pub id: u32,
    /// The rate at which they leave.
    pub rate: Rate,
    /// It has what the rate carries in this time at least, and this many packets.
    pub duration: Duration,
    /// See there.
    pub packets: u32,
    /// What the rate carries in this time leaves at once.
    pub spacing: Duration,
}

/// What receiver reports say since the ones before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverReport {
    /// Round-trip time, if it is known.
    pub rtt: Option<Duration>,
    /// Packets lost, less those that came twice.
    pub lost: i64,
    /// Packets expected less those lost.
    pub received: i64,
}

/// Format of feedback about single packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FeedbackFormat {
    /// RFC 8888.
    #[default]
    Rfc8888,
    /// Transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01), which needs a header
    /// extension of 8 bytes in each packet.
    TransportWide,
}

/// What a feedback packet says beside its reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedbackInfo {
    /// Time between sending the newest of the packets that arrived and this feedback's arrival, without the
    /// time for which the receiver held its report back; `None` if none arrived.
    pub rtt: Option<Duration>,
}

/// What a controller decides.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decision {
    /// Rate at which all sources of the session together should encode, in the bytes that the controller
    /// counts.
    pub target: Rate,
    /// Rate at which packets leave.
    pub pacing: Rate,
    /// Rate up to which padding fills what the sources leave.
    pub padding: Rate,
    /// Share of pictures that sources should skip, since too much is in flight.
    pub skip: f64,
    /// Nothing is sent from now on, and why.
    pub stop: Option<Trip>,
}

/// What of a packet a controller counts as its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bytes {
    /// The IP packet.
    #[default]
    Ip,
    /// The RTP payload.
    Payload,
}

/// What the session needs to know of a controller's configuration.
pub trait MediaControllerConfig: Validate {
    /// The controller at its start.
    fn build(&self) -> Box<dyn MediaController>;
    /// Its name in tables, with the profile if it is not the first.
    fn name(&self) -> String;
    /// What it counts as bytes.
    fn bytes(&self) -> Bytes;
    /// ECN field of the packets that it controls.
    fn ecn(&self) -> Ecn;
    /// Time between two feedback packets; `None` for 50 to 250 ms by the rate, as deployed.
    fn feedback_interval(&self) -> Option<Duration>;
    /// Packets leave together that do within this time; and whether nothing leaves then until that is over.
    fn burst(&self) -> (Duration, bool) {
        (Duration::from_millis(5), false)
    }
    /// Format of the feedback that it needs.
    fn feedback(&self) -> FeedbackFormat {
        FeedbackFormat::Rfc8888
    }
    /// The highest rate that it will decide on.
    fn max(&self) -> Rate;
}

/// Generates [`Config`].
macro_rules! media_controllers {
    ($($(#[$about:meta])* $kind:ident($config:ty) $name:literal;)*) => {
        /// Congestion control of a session of live media.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind")]
        pub enum Config {
            $($(#[$about])* #[serde(rename = $name)] $kind($config),)*
        }

        impl std::ops::Deref for Config {
            type Target = dyn MediaControllerConfig;

            /// A controller is built once in a run, so that these calls need not be fast.
            fn deref(&self) -> &Self::Target {
                match self {
                    $(Self::$kind(config) => config,)*
                }
            }
        }
    };
}

media_controllers! {
    /// Network-Assisted Dynamic Adaptation (RFC 8698).
    Nada(nada::Config) "nada";
    /// Google Congestion Control as libwebrtc ships it.
    Gcc(gcc::Config) "gcc";
    /// A fixed rate, until a circuit breaker of RFC 8083 stops the session.
    Fixed(breaker::Config) "fixed";
}
