//! Arguments in, a conversation, results out.

mod ask;
mod watch;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use ask::{Ask, Role};
use clap::Parser as _;
use serde::Serialize;
use talkspurt_live::{Exchange, Fate, Line, Mishaps, Passage, RawIp, Setup, Tally, Terms, drive};
use talkspurt_proto::dccp::{Config, Dccp};
use talkspurt_proto::dice::Dice;
use talkspurt_proto::time::{Duration, Instant};
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
    let ask = Ask::parse();
    let config = match ask.config() {
        Ok(config) => config,
        Err(found) => {
            found.iter().for_each(|wrong| eprintln!("dccp-peer: {wrong}"));
            return ExitCode::FAILURE;
        }
    };
    match run(&ask, &config) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(error) => {
            eprintln!("dccp-peer: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Holds the conversation; true if it ended before its limit.
fn run(ask: &Ask, config: &Config) -> Result<bool, Box<dyn Error>> {
    let port = RawIp::dccp(ask.local.ip())?;
    let dice = chances(ask.endpoint_seed)?;
    let endpoint = match ask.role {
        Role::Client => Dccp::client(config, dice),
        Role::Server => Dccp::listener(config, dice),
    };
    let seen = Arc::new(Mutex::new(Seen::default()));
    seen.lock().expect("one thread").capture = ask.pcapng.as_deref().map(capture).transpose()?;
    let mut line = Line::new(port, setup(ask, Arc::clone(&seen)));
    let mut endpoint = endpoint.over(line.version());
    let mut app = Exchange::new(terms(ask));
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

/// What the endpoint draws its numbers from: RFC 4340 §7.2 and §18 want initial sequence numbers
/// that nobody can guess, and §8.1.4 the keys of cookies.
fn chances(seed: Option<u64>) -> Result<Dice, Box<dyn Error>> {
    if let Some(seed) = seed {
        return Ok(Dice::new(seed, "dccp"));
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
        linger: Duration::from_millis(300),
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
    setup.inbound = mishaps("inbound");
    setup.outbound = mishaps("outbound");
    setup.tap = Some(Box::new(move |now, passage, fate, bytes| {
        let mut seen = seen.lock().expect("one thread");
        seen.mishaps.count(passage, fate, bytes);
        if let Some(capture) = &mut seen.capture {
            write(capture, now, passage, fate, bytes);
        }
    }));
    setup
}

fn capture(path: &Path) -> std::io::Result<Pcapng> {
    Pcapng::create(path, &["peer"])
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

#[cfg(test)]
mod tests {
    use talkspurt_proto::dccp::WireSeq;
    use talkspurt_proto::endpoint::{Endpoint as _, Input, Output};
    use talkspurt_proto::packet::Body;

    use super::*;

    /// The Sequence Number of the first Request of a client with these chances.
    fn initial_number(seed: Option<u64>) -> WireSeq {
        let config = serde_json::from_str(r#"{"ccid": 2}"#).expect("a configuration");
        let mut client = Dccp::client(&config, chances(seed).expect("the system has chances"));
        client.handle(Instant::ZERO, Input::Open, &mut ());
        match client.poll(Instant::ZERO, &mut ()) {
            Output::Transmit(transmit) => match transmit.body {
                Body::Dccp(packet) => packet.seq,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn initial_sequence_numbers_are_of_the_seed_or_of_nobody() {
        // RFC 4340 §7.2. Three draws of 48 bits are the same once in 2⁹⁶.
        let drawn = [None; 3].map(initial_number);
        assert!(drawn[0] != drawn[1] || drawn[1] != drawn[2], "{drawn:?}");
        assert_eq!(initial_number(Some(7)), initial_number(Some(7)));
    }
}
