//! What all conversations have: two ends, a path between them, and the result.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Mutex;

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::json;
use talkspurt_live::{Line, Port};
use talkspurt_proto::rng::Rng;

use crate::path::{Path, Seen};
use crate::rig::Impaired;

/// The two ends, and the path between them.
#[derive(Debug, Args)]
pub(crate) struct Ends {
    /// Whether it opens the connection or waits for one.
    pub(crate) role: Role,
    /// Our address and port. On a TUN device, the address is not the device's own but one routed to it.
    #[arg(long, value_parser = address)]
    pub(crate) local: SocketAddr,
    /// The peer's; a server may leave it out, unless it sends DCCP-Listen packets.
    #[arg(long, required_if_eq("role", "client"), value_parser = address)]
    pub(crate) remote: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) path: Path,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    Client,
    Server,
}

impl Ends {
    pub(crate) fn opens(&self) -> bool {
        self.role == Role::Client
    }

    /// What is wrong with the addresses.
    pub(crate) fn error(&self) -> Option<String> {
        let differs = self.remote.is_some_and(|remote| remote.is_ipv4() != self.local.is_ipv4());
        differs.then(|| "--local and --remote: one is IPv4, the other IPv6".to_owned())
    }

    /// The random source of our endpoint.
    pub(crate) fn chances(&self, name: &str) -> Result<Rng, Box<dyn Error>> {
        chances(self.path.endpoint_seed, name)
    }

    /// Tells that a server can be called.
    pub(crate) fn listening(&self) {
        if self.role == Role::Server {
            println!("{}", json!({ "event": "listening" }));
        }
    }
}

/// The random source of an endpoint: RFC 4340 §7.2 and RFC 9293 §3.4.1 require unpredictable initial sequence
/// numbers, RFC 4340 §8.1.4 unpredictable cookie keys.
pub(crate) fn chances(seed: Option<u64>, name: &str) -> Result<Rng, Box<dyn Error>> {
    if let Some(seed) = seed {
        return Ok(Rng::new(seed, name));
    }
    let mut state = [0; 32];
    getrandom::fill(&mut state)?;
    Ok(Rng::from_entropy(state))
}

/// Completes the capture and prints the result, with an account of the data and one of the packets under these
/// names.
pub(crate) fn conclude<L: Port>(
    line: &mut Line<Impaired<L>>,
    seen: &Mutex<Seen>,
    data: (&str, &impl Serialize),
    packets: (&str, &impl Serialize),
) -> Result<(), Box<dyn Error>> {
    let mut seen = seen.lock().expect("one thread");
    if let Some(capture) = seen.capture.take() {
        capture.finish()?;
    }
    let result = json!({
        "event": "result",
        data.0: data.1,
        packets.0: packets.1,
        "impairments": seen.impairments,
        "unsent_packets": line.unsent_packets() + line.port().unsent_packets,
        "seconds": line.now().as_secs_f64(),
    });
    println!("{result}");
    Ok(())
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| "not an ADDRESS:PORT".to_owned())?;
    if address.ip().is_unspecified() || address.port() == 0 {
        return Err("address and port must both be given".to_owned());
    }
    Ok(address)
}
