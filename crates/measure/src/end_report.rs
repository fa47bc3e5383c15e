//! How a measurement ended at one end, as the ends tell each other.

use serde::{Deserialize, Serialize};

use crate::budget::shortened;
use crate::controller::Controller;
use crate::plan::Plan;

/// How a measurement ended at one end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct EndReport {
    /// Nanoseconds on its clock.
    pub(crate) at: u64,
    /// Why before its time, if it did.
    pub(crate) early: Option<String>,
    /// Flows that a circuit breaker or a broken connection stopped: number, nanoseconds, why.
    pub(crate) tripped: Vec<(u8, u64, String)>,
    /// Of flows over TCP.
    pub(crate) streams: Vec<StreamEnd>,
    /// Packets beyond the server's rate limit, which this end did not send.
    pub(crate) policed_packets: u64,
    /// Packets that the system refused to send.
    pub(crate) unsent_packets: u64,
    /// How many of them were longer than the MTU of the route, and this MTU in bytes, if it is known.
    pub(crate) too_long: Option<(u64, Option<u32>)>,
    /// Datagrams that were not authentic, not new, or beyond the other end's part of the rate limit.
    pub(crate) refused_datagrams: u64,
    /// Datagrams that arrived while the socket's buffer was full: lost at this machine, not on the path.
    pub(crate) overrun_datagrams: u64,
}

impl EndReport {
    /// What of the other end's report an honest end can say of a plan: of each flow at most once, in few words.
    pub(crate) fn sifted(mut self, plan: &Plan) -> Self {
        let mut of_flows = vec![[false; 2]; plan.flows.len()];
        let mut is_first = |flow: u8, kind: usize| {
            let of = of_flows.get_mut(usize::from(flow));
            of.is_some_and(|of| !std::mem::replace(&mut of[kind], true))
        };
        self.tripped.retain(|(flow, ..)| is_first(*flow, 0));
        self.streams.retain(|of| is_first(of.flow, 1) && Controller::named(&of.controller).is_ok());
        self.tripped.iter_mut().for_each(|(_, _, why)| *why = shortened(why));
        self.early = self.early.as_deref().map(shortened);
        self
    }
}

/// One end of the stream of a flow when it is over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StreamEnd {
    pub(crate) flow: u8,
    /// The congestion controller.
    pub(crate) controller: String,
    /// Segments with data that were sent, and how many of them again; absent if the kernel does not tell.
    pub(crate) segments: Option<(u32, u32)>,
}
