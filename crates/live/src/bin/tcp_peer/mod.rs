//! Arguments, a file in each direction, results.

mod watch;

use std::error::Error;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use serde::Serialize;
use talkspurt_live::{Line, Plan, Record, Transfer, Tun, drive};
use talkspurt_proto::tcp::{Config, Tcp};
use talkspurt_proto::time::{Duration, Instant};
use watch::{Watch, bears_data};

use crate::peer::{ImpairmentCounts, Path, address, chances};

/// Speaks TCP on the TUN device that is its standard input (IFF_TUN | IFF_NO_PI).
#[derive(Debug, Parser)]
struct Ask {
    /// Whether it opens the connection or waits for one.
    role: Role,
    /// Our address and port; the address is not the device's own but one routed to it.
    #[arg(long, value_parser = address)]
    local: SocketAddr,
    /// The peer's; a server may leave it out.
    #[arg(long, required_if_eq("role", "client"), value_parser = address)]
    remote: Option<SocketAddr>,
    /// The connection's parameters as JSON, as in a scenario: {"controller": "cubic"}.
    #[arg(long, value_parser = config)]
    tcp: Config,
    /// File to send.
    #[arg(long)]
    send: Option<PathBuf>,
    /// File for the received data.
    #[arg(long)]
    receive: Option<PathBuf>,
    /// Closes its direction as soon as all data is sent instead of after the peer has closed.
    #[arg(long)]
    closes: bool,
    /// Time to wait for the peer's last packets after the end.
    #[arg(long, default_value = "500ms")]
    linger: Duration,
    /// Time limit of the run.
    #[arg(long, default_value = "60s")]
    limit: Duration,
    #[command(flatten)]
    path: Path,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Role {
    Client,
    Server,
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Said<'a> {
    Listening,
    Result {
        record: &'a Record,
        segments: &'a Watch,
        impairments: &'a ImpairmentCounts,
        unsent_packets: u64,
        seconds: f64,
    },
}

fn config(text: &str) -> Result<Config, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

pub(crate) fn main() -> ExitCode {
    match run(&Ask::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(error) => {
            eprintln!("tcp-peer: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the transfer; true if it ended before its limit.
fn run(ask: &Ask) -> Result<bool, Box<dyn Error>> {
    if let Some(remote) = ask.remote
        && remote.is_ipv4() != ask.local.is_ipv4()
    {
        return Err("--local and --remote: one is IPv4, the other IPv6".into());
    }
    let rng = chances(ask.path.endpoint_seed, "tcp")?;
    let endpoint = match ask.role {
        Role::Client => Tcp::client(&ask.tcp, rng),
        Role::Server => Tcp::listener(&ask.tcp, rng),
    };
    let (setup, seen) = ask.path.setup(ask.local, ask.remote, bears_data)?;
    let mut line = Line::new(Tun::new(io::stdin().as_fd().try_clone_to_owned()?), setup);
    let mut endpoint = endpoint.over(line.version());
    let mut app = Transfer::new(Plan {
        opens: ask.role == Role::Client,
        send: ask.send.as_deref().map(fs::read).transpose()?.unwrap_or_default().into(),
        closes: ask.closes,
        linger: ask.linger,
        limit: Instant::ZERO + ask.limit,
    });
    let mut watch = Watch::default();
    if ask.role == Role::Server {
        say(&Said::Listening)?;
    }
    drive(&mut endpoint, &mut app, &mut line, &mut watch)?;
    if let Some(path) = &ask.receive {
        fs::write(path, app.received())?;
    }
    let mut seen = seen.lock().expect("one thread");
    if let Some(capture) = seen.capture.take() {
        capture.finish()?;
    }
    say(&Said::Result {
        record: app.record(),
        segments: &watch,
        impairments: &seen.impairments,
        unsent_packets: line.unsent_packets(),
        seconds: line.now().as_secs_f64(),
    })?;
    Ok(!app.record().gave_up)
}

fn say(said: &Said<'_>) -> serde_json::Result<()> {
    println!("{}", serde_json::to_string(said)?);
    Ok(())
}
