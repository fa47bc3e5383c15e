//! TCP: arguments, a file in each direction.

use std::error::Error;
use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::path::PathBuf;

use clap::Args;
use talkspurt_live::{Line, Setup};
use talkspurt_proto::tcp::{Config, Tcp};
use talkspurt_proto::time::{Duration, Instant};

use crate::ends::{Ends, Role, conclude};
use crate::rig::{Impaired, Plan, Transfer, Tun, drive};
use crate::watch::Watch;
use crate::watch::tcp::{Both, bears_data};

#[derive(Debug, Args)]
pub(crate) struct Ask {
    #[command(flatten)]
    ends: Ends,
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
}

fn config(text: &str) -> Result<Config, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Runs the transfer; true if it ended before its limit.
pub(crate) fn run(ask: &Ask) -> Result<bool, Box<dyn Error>> {
    let ends = &ask.ends;
    if let Some(error) = ends.error() {
        return Err(error.into());
    }
    let rng = ends.chances("tcp")?;
    let endpoint = match ends.role {
        Role::Client => Tcp::client(&ask.tcp, rng),
        Role::Server => Tcp::listener(&ask.tcp, rng),
    };
    let (path, seen) = ends.path.impairing(bears_data)?;
    let port = Impaired::new(Tun::new(io::stdin().as_fd().try_clone_to_owned()?), path);
    let mut line = Line::new(port, Setup::new(ends.local, ends.remote));
    let mut endpoint = endpoint.over(line.version());
    let mut app = Transfer::new(Plan {
        opens: ends.opens(),
        send: ask.send.as_deref().map(fs::read).transpose()?.unwrap_or_default().into(),
        closes: ask.closes,
        linger: ask.linger,
        limit: Instant::ZERO + ask.limit,
    });
    let mut watch = Watch::<Both>::default();
    ends.listening();
    drive(&mut endpoint, &mut app, &mut line, &mut watch)?;
    if let Some(path) = &ask.receive {
        fs::write(path, app.received())?;
    }
    conclude(&mut line, &seen, ("record", app.record()), ("segments", &watch))?;
    Ok(!app.record().gave_up)
}
