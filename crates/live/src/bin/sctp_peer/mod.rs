//! Arguments in, a conversation, results out.

mod ask;
mod spread;
mod watch;

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use ask::{Ask, Role};
use clap::Parser as _;
use serde::Serialize;
use spread::Spread;
use talkspurt_live::{
    Exchange, Fate, Line, Mishaps, Passage, Port, RawIp, Setup, Tally, Terms, UdpPort, drive,
};
use talkspurt_proto::dice::Dice;
use talkspurt_proto::sctp::{Config, Sctp};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::wire::udp;
use talkspurt_record::pcapng::{Direction, Pcapng, Remarks};
use watch::Watch;

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Said<'a> {
    Listening,
    Result {
        tally: &'a Tally,
        packets: &'a Watch,
        mishaps: &'a watch::Mishaps,
        unsent_packets: u64,
        seconds: f64,
    },
}

/// What the tap of the line fills; shared, because the line owns the tap.
#[derive(Default)]
struct Seen {
    mishaps: watch::Mishaps,
    capture: Option<Pcapng>,
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

/// Holds the conversation; true if it ended before its limit.
fn run(ask: &Ask) -> Result<bool, Box<dyn Error>> {
    let config = ask.config()?;
    let here = ask.local.ip();
    match ask.udp {
        Some(udp) => converse(ask, &config, UdpPort::bind(SocketAddr::new(here, udp.local_port))?),
        None if ask.paths.is_empty() => converse(ask, &config, RawIp::sctp(here)?),
        // One socket hears all addresses.
        None => converse(ask, &config, RawIp::sctp(Ipv4Addr::UNSPECIFIED.into())?),
    }
}

fn converse<L: Port>(ask: &Ask, config: &Config, port: L) -> Result<bool, Box<dyn Error>> {
    let dice = chances(ask.endpoint_seed)?;
    let sctp = match ask.role {
        Role::Client => Sctp::client(config, dice),
        Role::Server => Sctp::listener(config, dice),
    };
    let seen = Arc::new(Mutex::new(Seen::default()));
    let capture = ask.pcapng.as_deref().map(|path| Pcapng::create(path, &["peer"]));
    seen.lock().expect("one thread").capture = capture.transpose()?;
    let mut line = Line::new(port, setup(ask, Arc::clone(&seen)));
    let mut sctp = sctp.over(line.version());
    if ask.udp.is_some() {
        // RFC 6951 §5.6: UDP's header is there too.
        sctp = sctp.under(udp::HEADER as u32);
    }
    if !ask.paths.is_empty() {
        // RFC 9260 §3.3.2.1: who has several addresses names them all.
        let addresses: Vec<IpAddr> =
            [ask.local.ip()].into_iter().chain(ask.paths.iter().map(|path| path.0)).collect();
        sctp = sctp.on_paths(addresses.len() as u8).with_addresses(&addresses);
    }
    let mut endpoint = Spread::new(sctp, ask.streams);
    let mut app = Exchange::new(terms(ask)).awaiting(ask.awaited).on_streams(ask.streams.into());
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
        mishaps: &seen.mishaps,
        unsent_packets: line.unsent_packets(),
        seconds: line.now().as_secs_f64(),
    })?;
    Ok(!app.tally().gave_up)
}

/// What the endpoint draws its numbers from: RFC 9260 §5.3.1 wants tags, and §5.1.3 keys of cookies,
/// that nobody can guess.
fn chances(seed: Option<u64>) -> Result<Dice, Box<dyn Error>> {
    if let Some(seed) = seed {
        return Ok(Dice::new(seed, "sctp"));
    }
    let mut state = [0; 32];
    getrandom::fill(&mut state)?;
    Ok(Dice::from_entropy(state))
}

fn terms(ask: &Ask) -> Terms {
    Terms {
        packets: ask.packets,
        bytes: ask.bytes,
        interval: ask.interval,
        connection: true,
        opens: ask.role == Role::Client,
        closes: ask.closes,
        quiet: ask.quiet,
        // Where packets are lost, the last may be: a SHUTDOWN ACK is repeated after RTO.Min, 1 s, or a
        // little more, and then wants an answer (RFC 9260 §8.4 rule 5).
        linger: Duration::from_millis(if ask.loss > 0.0 { 2500 } else { 300 }),
        limit: Instant::ZERO + ask.limit,
    }
}

fn setup(ask: &Ask, seen: Arc<Mutex<Seen>>) -> Setup {
    let mishaps = |direction| Mishaps {
        delay: ask.delay,
        loss: ask.loss,
        held: ask.held,
        hold: ask.hold,
        dice: Dice::new(ask.seed, direction),
    };
    let mut setup = Setup::new(ask.local, ask.remote);
    setup.further.clone_from(&ask.paths);
    setup.cuts.clone_from(&ask.cuts);
    setup.encapsulation = ask.udp;
    let names = if ask.mirror { ["outbound", "inbound"] } else { ["inbound", "outbound"] };
    [setup.inbound, setup.outbound] = names.map(mishaps);
    let inside = ask.udp.map(|udp| udp.inside);
    setup.tap = Some(Box::new(move |now, passage, fate, bytes| {
        let mut seen = seen.lock().expect("one thread");
        seen.mishaps.count(passage, fate, inside, bytes);
        if let Some(capture) = &mut seen.capture {
            write(capture, now, passage, fate, bytes);
        }
    }));
    setup
}

fn write(capture: &mut Pcapng, now: Instant, passage: Passage, fate: Fate, bytes: &[u8]) {
    let direction = match passage {
        Passage::Inbound => Direction::Inbound,
        Passage::Outbound => Direction::Outbound,
    };
    let comment = match fate {
        Fate::Passed => None,
        Fate::Lost => Some("lost on purpose".to_owned()),
        Fate::Held(time) => Some(format!("held {time} longer")),
    };
    let remarks = Remarks { comment: comment.as_deref(), direction: Some(direction) };
    capture.packet(0, now, bytes, bytes.len() as u32, remarks);
}

fn say(said: &Said<'_>) -> serde_json::Result<()> {
    println!("{}", serde_json::to_string(said)?);
    Ok(())
}
