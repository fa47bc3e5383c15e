//! An echo test: its messages, and its result.

use std::error::Error;
use std::sync::Mutex;

use clap::{Args, value_parser};
use serde::Serialize;
use talkspurt_live::{Line, Port};
use talkspurt_proto::body::Body;
use talkspurt_proto::endpoint::Listener;
use talkspurt_proto::probe::Probe;
use talkspurt_proto::time::{Duration, Instant};

use crate::ends::{Ends, conclude};
use crate::path::Seen;
use crate::rig::{EchoConfig, EchoTest, Impaired, drive};

/// The messages of an echo test.
#[derive(Debug, Args)]
pub(crate) struct Echo {
    /// Messages to send, a million at most.
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u64).range(..=1_000_000))]
    packets: u64,
    /// Message length in bytes, a multiple of 8. One of DCCP must fit a packet.
    #[arg(long, default_value_t = 160, value_parser = whole_words)]
    pub(crate) bytes: u64,
    /// Time between two messages.
    #[arg(long, default_value = "20ms")]
    interval: Duration,
    /// Closes when all messages are sent and nothing arrived for --quiet.
    #[arg(long)]
    closes: bool,
    /// Silence after which the peer is considered finished.
    #[arg(long, default_value = "700ms")]
    quiet: Duration,
    /// Time limit of the run.
    #[arg(long, default_value = "20s")]
    limit: Duration,
}

impl Echo {
    /// The test, which waits this long for the last packets.
    pub(crate) fn test(&self, ends: &Ends, linger: Duration) -> EchoTest {
        EchoTest::new(EchoConfig {
            packets: self.packets,
            bytes: self.bytes,
            interval: self.interval,
            connection: true,
            opens: ends.opens(),
            closes: self.closes,
            quiet: self.quiet,
            linger,
            limit: Instant::ZERO + self.limit,
        })
    }
}

/// Runs the test; true if it ended before its limit.
pub(crate) fn converse<E: Listener<Packet: Into<Body> + TryFrom<Body>>, L: Port>(
    ends: &Ends,
    mut endpoint: E,
    mut test: EchoTest,
    (mut line, seen): (Line<Impaired<L>>, &Mutex<Seen>),
    mut watch: impl Probe + Serialize,
) -> Result<bool, Box<dyn Error>> {
    ends.listening();
    drive(&mut endpoint, &mut test, &mut line, &mut watch)?;
    conclude(&mut line, seen, ("tally", test.tally()), ("packets", &watch))?;
    Ok(!test.tally().gave_up)
}

fn whole_words(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(bytes) if bytes > 0 && bytes % 8 == 0 => Ok(bytes),
        _ => Err("not a positive multiple of 8".to_owned()),
    }
}
