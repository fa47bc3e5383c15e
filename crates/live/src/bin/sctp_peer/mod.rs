//! Arguments, an echo test, results.

mod ask;
mod round_robin;
mod watch;

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use ask::{Ask, Role};
use clap::Parser as _;
use round_robin::RoundRobin;
use serde::Serialize;
use talkspurt_live::{EchoConfig, EchoReport, EchoTest, Line, Port, RawIp, UdpPort, drive};
use talkspurt_proto::sctp::{Config, Sctp};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::wire::udp;
use watch::{Watch, bears_data};

use crate::peer::{ImpairmentCounts, chances};

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Said<'a> {
    Listening,
    Result {
        tally: &'a EchoReport,
        packets: &'a Watch,
        impairments: &'a ImpairmentCounts,
        unsent_packets: u64,
        seconds: f64,
    },
}

pub(crate) fn main() -> ExitCode {
    match run(&Ask::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(error) => {
            eprintln!("sctp-peer: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the echo test; true if it ended before its limit.
fn run(ask: &Ask) -> Result<bool, Box<dyn Error>> {
    let config = ask.config()?;
    let here = ask.local.ip();
    match ask.udp {
        Some(udp) => converse(ask, &config, UdpPort::bind(SocketAddr::new(here, udp.local_port))?),
        None if ask.further.is_empty() => converse(ask, &config, RawIp::sctp(here)?),
        // One socket receives for all addresses.
        None => converse(ask, &config, RawIp::sctp(Ipv4Addr::UNSPECIFIED.into())?),
    }
}

fn converse<L: Port>(ask: &Ask, config: &Config, port: L) -> Result<bool, Box<dyn Error>> {
    let rng = chances(ask.path.endpoint_seed, "sctp")?;
    let sctp = match ask.role {
        Role::Client => Sctp::client(config, rng),
        Role::Server => Sctp::listener(config, rng),
    };
    let inside = ask.udp.map(|udp| udp.inside);
    let (mut setup, seen) =
        ask.path.setup(ask.local, ask.remote, move |bytes| bears_data(bytes, inside))?;
    setup.further.clone_from(&ask.further);
    setup.cuts.clone_from(&ask.cuts);
    setup.encapsulation = ask.udp;
    let mut line = Line::new(port, setup);
    let mut sctp = sctp.over(line.version());
    if ask.udp.is_some() {
        // RFC 6951 §5.6: the UDP header is present too.
        sctp = sctp.under(udp::HEADER as u32);
    }
    if !ask.further.is_empty() {
        // RFC 9260 §3.3.2.1: a multihomed endpoint lists all its addresses.
        let addresses: Vec<IpAddr> =
            [ask.local.ip()].into_iter().chain(ask.further.iter().map(|path| path.0)).collect();
        sctp = sctp.on_paths(addresses.len() as u8).with_addresses(&addresses);
    }
    let mut endpoint = RoundRobin::new(sctp, ask.streams);
    let mut app = EchoTest::new(terms(ask)).awaiting(ask.awaited).on_streams(ask.streams.into());
    let mut watch = Watch::default();
    if ask.role == Role::Server {
        say(&Said::Listening)?;
    }
    drive(&mut endpoint, &mut app, &mut line, &mut watch)?;
    let mut seen = seen.lock().expect("one thread");
    if let Some(capture) = seen.capture.take() {
        capture.finish()?;
    }
    say(&Said::Result {
        tally: app.tally(),
        packets: &watch,
        impairments: &seen.impairments,
        unsent_packets: line.unsent_packets(),
        seconds: line.now().as_secs_f64(),
    })?;
    Ok(!app.tally().gave_up)
}

fn terms(ask: &Ask) -> EchoConfig {
    EchoConfig {
        packets: ask.packets,
        bytes: ask.bytes,
        interval: ask.interval,
        connection: true,
        opens: ask.role == Role::Client,
        closes: ask.closes,
        quiet: ask.quiet,
        // With losses the last packet may be lost: a SHUTDOWN ACK is repeated after RTO.Min, 1 s, or slightly
        // later, and then needs an answer (RFC 9260 §8.4 rule 5).
        linger: Duration::from_millis(if ask.path.loss > 0.0 { 2500 } else { 300 }),
        limit: Instant::ZERO + ask.limit,
    }
}

fn say(said: &Said<'_>) -> serde_json::Result<()> {
    println!("{}", serde_json::to_string(said)?);
    Ok(())
}
