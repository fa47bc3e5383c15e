//! What a caller asks for.

use serde::{Deserialize, Serialize};
use talkspurt_app::codec::Codec;
#[cfg(test)]
use talkspurt_proto::time::Duration;

use crate::codecs::names;
use crate::plan::{FlowPlan, Plan, Traffic};
use crate::transport::Transport;

/// Name of the flow, from the caller; the other direction is its reverse.
pub(crate) const FLOW: &str = "call";

/// What the caller asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Invitation {
    /// Root of the random streams of both ends.
    pub seed: u64,
    /// Length of the call in nanoseconds.
    pub duration: u64,
    /// Longest IP packet on the path, in bytes.
    pub mtu: u16,
    /// Whether the path is IPv6.
    pub ipv6: bool,
    /// The transport.
    pub transport: Transport,
    /// The kind of the controller of the session in scenarios, if it has one.
    pub controller: Option<String>,
    /// Names of the codecs offered, in order of preference; none if DCCP's handshake offers them.
    pub codecs: Vec<String>,
}

impl Invitation {
    /// Whether DCCP's handshake offers the codecs.
    pub(crate) const fn in_handshake(&self) -> bool {
        self.transport.is_dccp()
    }

    /// The call in these codecs; before they are agreed on, in a placeholder that determines none of its
    /// packets.
    pub(crate) fn plan(&self, agreed: Option<&[Codec]>) -> Plan {
        let codecs = names(agreed.unwrap_or(&[Codec::Pcmu]));
        let speech = Some(Traffic::Speech { codecs, controller: self.controller.clone() });
        let (up, down) = (speech.clone(), speech);
        let flow = FlowPlan { name: FLOW.to_owned(), transport: self.transport.clone(), up, down };
        let Self { seed, duration, mtu, ipv6, .. } = *self;
        Plan { seed, duration, mtu, ipv6, flows: vec![flow] }
    }

    #[cfg(test)]
    pub(crate) fn example(transport: Transport, codecs: &[&str]) -> Self {
        let codecs = codecs.iter().map(|name| (*name).to_owned()).collect();
        let duration = Duration::from_secs(2).as_nanos();
        Self { seed: 3, duration, mtu: 1500, ipv6: false, transport, controller: None, codecs }
    }
}
