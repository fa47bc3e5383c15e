//! The client: asks a server for measurements, runs its end, and makes a run of both ends' notes.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::thread;

use serde_json::Value;
use talkspurt_experiment::Finished;
use talkspurt_flow::Materials;
use talkspurt_live::Clock;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;
use talkspurt_scenario::{Point, to_toml};

use crate::Failure;
use crate::budget::{Budget, shortened};
use crate::channel::{BEAT, Channel, LOST, Message, SILENT, Secret};
use crate::control::Control;
use crate::direct::{self, UnboundSocket};
use crate::end_report::EndReport;
use crate::exchange::{LOST_NOTES, beating, take_notes};
use crate::media::{Media, MediaOutcome};
use crate::merge::{End, Merged, merge};
use crate::plan::Plan;
use crate::shared::{STOPPED, Shared, Watch};
use crate::timed::IntoStd as _;
use crate::transport::Transport;
use crate::wire::Wire;

/// Why results are without the server's notes when they are first kept.
const UNASKED: &str = "the server was not asked for its notes; results are of what this end knows";

/// A server, by name or address.
#[derive(Clone, Debug)]
pub struct Target {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// A session with a server, or with the end that answers a call.
pub struct Session {
    server: SocketAddr,
    /// As long as the server can be asked.
    channel: Option<Channel>,
}

/// Results of a measurement.
pub struct Measured {
    /// Tables, as of a run.
    pub finished: Finished,
    /// What no table has: clocks, round-trip times, reordering, what was refused.
    pub facts: Value,
    /// The scenario with every default written out, without the network, which is not known.
    pub scenario: String,
    /// Why the measurement is not what was asked for; results are of the part that there is.
    pub broken: Option<String>,
}

/// Whether this end has what a transport needs: the congestion controller if it `sends`, or raw sockets.
///
/// # Errors
/// What is missing.
pub fn check_transport(transport: &Transport, sends: bool) -> Result<(), Failure> {
    match transport {
        Transport::Tcp(Some(controller)) if sends => controller.check(),
        _ => transport.direct().map_or(Ok(()), direct::check),
    }
}

impl Session {
    /// Connects to the first address of a host that answers.
    ///
    /// # Errors
    /// In words: nobody is there, has another secret, speaks another version.
    pub fn connect(target: &Target, secret: &Secret) -> Result<Self, Failure> {
        let Target { host, port } = target;
        let unknown = |error| Failure::Unreachable(format!("{host}: {error}"));
        let found = (host.as_str(), *port).to_socket_addrs().map_err(unknown)?;
        let mut failure = Failure::Unreachable(format!("{host}: has no address"));
        for address in found {
            match Channel::connect(address, secret, std::time::Duration::from_secs(5)) {
                Ok(channel) => {
                    let failed =
                        |error: std::io::Error| Failure::Unreachable(format!("{address}: {error}"));
                    let server = channel.peer().map_err(failed)?;
                    return Ok(Self { server, channel: Some(channel) });
                }
                Err(why) => failure = why,
            }
        }
        Err(failure)
    }

    /// The server's address.
    #[must_use]
    pub const fn server(&self) -> SocketAddr {
        self.server
    }

    /// The control connection, which is closed unless it is given back.
    pub(crate) fn take(&mut self) -> Result<Channel, Failure> {
        let over = || Failure::Lost(format!("{}: the session is over", self.server));
        self.channel.take().ok_or_else(over)
    }

    /// Measures a plan; takes as long as it says. [`Measured::broken`] tells if less was measured. `keep` gets
    /// what this end knows before the server is asked for its notes.
    ///
    /// # Errors
    /// Nothing could be measured, in words.
    pub fn measure(
        &mut self,
        plan: &Plan,
        watch: &Watch,
        keep: impl FnOnce(Measured),
    ) -> Result<Measured, Failure> {
        let server = self.server;
        let mut channel = self.take()?;
        let point = plan.point()?;
        plan.check_controllers(true)?;
        let raw = direct::open(plan)?;
        if !raw.is_empty() {
            let route = channel.local().ok().and_then(|it| direct::mtu(it.ip(), server.ip()));
            plan.check_route(true, route)?;
        }
        let lost =
            |what: &str| Failure::Lost(format!("{server}: the control connection was lost {what}"));
        let release = env!("CARGO_PKG_VERSION").to_owned();
        let request = Message::Request { release, plan: plan.clone() };
        channel.send(&request).map_err(|_| lost("before the measurement"))?;
        let shared = &*watch.0;
        let Accepted { wire, limit, round_trip, .. } =
            negotiate(&mut channel, server, (plan, raw), shared)?;
        channel.send(&Message::Start).map_err(|_| lost("before the measurement"))?;
        // Both ends start at about the same time, so that their flows do.
        thread::sleep((round_trip / 2).into_std());
        let materials = Materials::default();
        let media = Media::new(plan, (&point, &materials), wire, true, limit, None, shared);
        let (MediaOutcome { log, ended, .. }, failed) = thread::scope(|scope| {
            let media = scope.spawn(|| media.run());
            let failed = watch_control(&mut channel, plan, shared, || media.is_finished());
            (media.join().expect("the media loop does not panic"), failed)
        });
        let own = End { rows: log.own_rows(), ended };
        if failed.is_none() {
            let conclude = || measured(plan, &point, server, own.clone(), Err(UNASKED.to_owned()));
            beating(&mut channel, || conclude().map(keep))?;
        }
        let theirs = match failed {
            None => fetch(&mut channel, plan, log.rows, shared),
            Some(why) => Err(why),
        };
        self.channel = theirs.is_ok().then_some(channel);
        measured(plan, &point, server, own, theirs)
    }
}

/// What the server knows.
fn fetch(
    channel: &mut Channel,
    plan: &Plan,
    own_rows: usize,
    shared: &Shared,
) -> Result<End, String> {
    let asked = channel.send(&Message::Finish);
    let end = asked
        .map_err(|_| LOST_NOTES.to_owned())
        .and_then(|()| take_notes(channel, (plan, Budget::of(plan, own_rows)), shared));
    end.map_err(|why| format!("{why}; results are of what this end knows"))
}

/// Exchanges signs of life until the end; returns why the connection was lost, if it was.
fn watch_control(
    channel: &mut Channel,
    plan: &Plan,
    shared: &Shared,
    is_over: impl Fn() -> bool,
) -> Option<String> {
    let mut control = Control::new(channel, shared, plan.end());
    let mut told = false;
    let mut watch = || -> std::io::Result<()> {
        while !is_over() {
            if control.silence() >= LOST {
                // Perhaps media was the reason, and the server's notes still come.
                shared.stop(SILENT);
            }
            // The media loop, which sends nothing more, ends soon.
            if shared.is_over() && !told {
                told = true;
                control.channel.send(&Message::Stop)?;
            }
            if control.turn()? == Some(Message::Stop) {
                // The server has not heard us for that long.
                shared.stop(SILENT);
            }
        }
        Ok(())
    };
    let lost = "the control connection was lost; results are of the time until then, as far as this end \
                knows";
    watch().err().map(|_| {
        shared.stop(lost);
        lost.to_owned()
    })
}

/// Results of a measurement from our notes and the server's, or why there are none of these.
fn measured(
    plan: &Plan,
    point: &Point,
    server: SocketAddr,
    mut own: End,
    theirs: Result<End, String>,
) -> Result<Measured, Failure> {
    let (theirs, mut broken) = match theirs {
        Ok(end) => (Some(end), None),
        Err(why) => (None, Some(why)),
    };
    let stopped = own.ended.early.as_deref() == Some(STOPPED);
    let early = |end: &EndReport| {
        end.early.clone().filter(|why| why != STOPPED && why != "the client stopped")
    };
    let ours = early(&own.ended).filter(|_| broken.is_none());
    let others = theirs.as_ref().and_then(|end| early(&end.ended));
    broken = match (broken, early(&own.ended)) {
        // What came first explains what came then.
        (Some(then), Some(first)) if first != then => Some(format!("{first}; then {then}")),
        (broken, _) => broken.or(ours).or(others.map(|why| format!("at the server, {why}"))),
    };
    if stopped {
        broken = Some(STOPPED.to_owned());
    }
    own.ended.early.clone_from(&broken);
    let broken = broken.map(|why| if why == STOPPED { why } else { format!("{server}: {why}") });
    let Merged { finished, facts, contradiction } = merge(plan, point, own, theirs)?;
    let broken = broken.or(contradiction.map(|why| format!("{server}: {why}")));
    Ok(Measured { finished, facts, scenario: shown(point), broken })
}

/// A request that the server has accepted.
pub(crate) struct Accepted {
    pub(crate) wire: Wire,
    /// What both ends together may send.
    pub(crate) limit: Rate,
    pub(crate) round_trip: Duration,
    /// Of a call: the codecs that the server agrees to.
    pub(crate) codecs: Vec<String>,
}

/// Waits until the server has accepted the request, finds the way to its socket, and opens the streams of the
/// plan. `raw` are the sockets for its flows directly over IP.
pub(crate) fn negotiate(
    channel: &mut Channel,
    server: SocketAddr,
    (plan, raw): (&Plan, Vec<UnboundSocket>),
    shared: &Shared,
) -> Result<Accepted, Failure> {
    let clock = Clock::start();
    let until = Instant::ZERO + Duration::from_secs(10);
    while clock.now() < until && !shared.is_over() {
        match channel.receive(BEAT) {
            Ok(Some(Message::Accept { port, up, down, max_rate, codecs })) => {
                let failed = |error| Failure::System(format!("{server}: no UDP port: {error}"));
                let mut local = channel.local().map_err(failed)?;
                local.set_port(0);
                let mut wire = Wire::bind(local, &up, &down).map_err(failed)?;
                let mut to = server;
                to.set_port(port);
                let failed = |error| Failure::System(format!("{server}: no raw socket: {error}"));
                wire.use_raw(plan, raw, &[up, down], Some(to)).map_err(failed)?;
                let round_trip = greet(&mut wire, to, shared)?;
                let mut beaten = Instant::ZERO;
                let meanwhile = || {
                    if clock.now().saturating_since(beaten) >= BEAT {
                        beaten = clock.now();
                        // If it is lost, that is seen soon.
                        let _ = channel.send(&Message::Beat);
                    }
                };
                wire.open_streams(plan, &[up, down], to, meanwhile)?;
                return Ok(Accepted { wire, limit: Rate::from_bps(max_rate), round_trip, codecs });
            }
            Ok(Some(Message::Refuse { why })) => {
                return Err(Failure::Refused(format!("{server}: refused: {}", shortened(&why))));
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    Err(match shared.is_over() {
        true => Failure::Stopped,
        false => Failure::Lost(format!(
            "{server}: the control connection was lost before anything was sent"
        )),
    })
}

/// The round-trip time to the server's socket.
fn greet(wire: &mut Wire, to: SocketAddr, shared: &Shared) -> Result<Duration, Failure> {
    let greeted = wire.greet(to, shared);
    let passes =
        greeted.map_err(|error| Failure::System(format!("{to}: UDP cannot be sent: {error}")))?;
    passes.ok_or_else(|| match shared.is_over() {
        true => Failure::Stopped,
        false => Failure::Unreachable(format!(
            "{to}: no UDP datagram came back within 2 s: is a firewall in between?"
        )),
    })
}

/// The resolved scenario without its only link, which stands for the path.
pub(crate) fn shown(point: &Point) -> String {
    let mut scenario = point.scenario.clone();
    scenario.links.clear();
    to_toml(&scenario)
}
