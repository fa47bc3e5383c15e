//! The server: waits for clients that know the secret, and serves each of them a measurement at a time, within
//! limits.
//!
//! A thread per connection. Those that have not proved the secret yet are limited in number and time; when
//! there are too many, one of the network with most of them is closed, at random. A flood from one network
//! closes its own, and no flood can tell which others it closes.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use talkspurt_flow::Materials;
use talkspurt_live::Clock;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Rate;

use talkspurt_app::codec::Codec;

use crate::Failure;
use crate::call::{CallEnd, Called, Voice};
use crate::channel::{BEAT, Channel, HANDSHAKE, IDLE, LOST, Message, SILENT, Secret};
use crate::codecs::{agree, names};
use crate::control::Control;
use crate::direct;
use crate::exchange::give_notes;
use crate::invitation::Invitation;
use crate::lock::lock;
use crate::media::{Media, MediaOutcome};
use crate::plan::{Plan, Traffic};
use crate::privileges::Privileges;
use crate::seal::Key;
use crate::shared::{Shared, Watch};
use crate::wire::Wire;

/// Connections that have not proved the secret.
const MAX_PENDING: usize = 64;
/// Attempts to find a port of UDP and TCP that is free.
const TRIES: usize = 10;
/// Lines kept for the log.
const MAX_LINES: usize = 1000;

/// What a server permits.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Sum of the rates of both directions of a session.
    pub max_rate: Rate,
    /// Longest measurement.
    pub max_duration: Duration,
    /// Sessions at the same time.
    pub max_sessions: usize,
    /// First and last port for media, of UDP and TCP; absent: any.
    pub ports: Option<(u16, u16)>,
    /// What becomes of the privileges of the process once its sockets are open.
    pub privileges: Privileges,
    /// Permits DCCP and SCTP directly over IP. If it answers no calls, it does not start without raw sockets.
    pub direct: bool,
    /// Answers calls with this voice, and measures nothing.
    pub voice: Option<Voice>,
}

/// The sockets of a server that has not started. Its process has given up its privileges.
pub struct Listening {
    config: Config,
    listener: TcpListener,
    raw: direct::Pool,
}

/// A running server.
pub struct Server {
    state: Arc<State>,
    listener: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

pub(crate) struct State {
    config: Config,
    secret: Secret,
    /// For flows directly over IP.
    raw: direct::Pool,
    stop: AtomicBool,
    sessions: AtomicUsize,
    pending: Mutex<Vec<Pending>>,
    lines: Mutex<VecDeque<String>>,
    /// The call in progress, and those that have ended.
    call: Mutex<Option<Watch>>,
    called: Mutex<VecDeque<Called>>,
    /// What is known of a call before the caller's notes come.
    half: Mutex<Option<Called>>,
}

/// A connection that has not proved the secret.
struct Pending {
    number: u64,
    network: IpAddr,
    stream: TcpStream,
}

impl Listening {
    /// Opens all sockets, and gives up the privileges of this thread, whose children have none then: it should
    /// be the only one.
    ///
    /// # Errors
    /// The address cannot be used, or privileges cannot be dropped.
    pub fn open(config: Config) -> Result<Self, Failure> {
        let at = config.listen;
        let listener = TcpListener::bind(at)
            .map_err(|error| Failure::System(format!("{at}: cannot listen: {error}")))?;
        let raw = match config.direct {
            true => direct::Pool::open(at.ip(), config.max_sessions),
            false => direct::Pool::default(),
        };
        config.privileges.apply()?;
        Ok(Self { config, listener, raw })
    }

    /// Starts a server that answers calls with this voice.
    ///
    /// # Errors
    /// The system refuses what the server needs.
    pub fn answer(mut self, voice: Voice, secret: Secret) -> Result<Server, Failure> {
        self.config.voice = Some(voice);
        self.start(secret)
    }

    fn start(self, secret: Secret) -> Result<Server, Failure> {
        let Self { config, listener, raw } = self;
        let at = config.listen;
        if let (None, Some(why)) = (&config.voice, raw.missing()) {
            return Err(why);
        }
        let failed = |error: io::Error| Failure::System(format!("{at}: {error}"));
        let local = listener.local_addr().map_err(failed)?;
        // The thread looks for a request to stop now and then.
        listener.set_nonblocking(true).map_err(failed)?;
        let state = Arc::new(State::new(config, secret, raw));
        let inner = Arc::clone(&state);
        let thread = thread::spawn(move || inner.listen(&listener));
        Ok(Server { state, listener: local, thread: Some(thread) })
    }
}

impl Server {
    /// Listens, and gives up its privileges.
    ///
    /// # Errors
    /// The address cannot be used, or privileges cannot be dropped.
    pub fn start(config: Config, secret: Secret) -> Result<Self, Failure> {
        Listening::open(config)?.start(secret)
    }

    /// Where it listens.
    #[must_use]
    pub const fn local(&self) -> SocketAddr {
        self.listener
    }

    /// Lines about sessions since the last call.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        lock(&self.state.lines).drain(..).collect()
    }

    /// The call in progress.
    #[must_use]
    pub fn call(&self) -> Option<Watch> {
        lock(&self.state.call).clone()
    }

    /// The first call that has ended and was not returned yet.
    #[must_use]
    pub fn called(&self) -> Option<Called> {
        lock(&self.state.called).pop_front()
    }

    /// What was heard in the call that has just ended, while the notes of both ends are exchanged; once.
    #[must_use]
    pub fn half(&self) -> Option<Called> {
        lock(&self.state.half).take()
    }

    /// Stops listening, and asks all sessions to end.
    pub fn stop(&mut self) {
        self.state.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, it has ended too.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

impl State {
    pub(crate) fn new(config: Config, secret: Secret, raw: direct::Pool) -> Self {
        Self {
            config,
            secret,
            raw,
            stop: AtomicBool::new(false),
            sessions: AtomicUsize::new(0),
            pending: Mutex::default(),
            lines: Mutex::default(),
            call: Mutex::default(),
            called: Mutex::default(),
            half: Mutex::default(),
        }
    }

    fn listen(self: &Arc<Self>, listener: &TcpListener) {
        let mut number = 0;
        while !self.stop.load(Ordering::Acquire) {
            let (stream, from) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Nobody is there, or a connection is gone already.
                    if is_out_of_descriptors(&error) {
                        close_one(&mut lock(&self.pending));
                    }
                    thread::sleep(std::time::Duration::from_millis(10));
                    continue;
                }
            };
            number += 1;
            if !self.admit(number, from, &stream) {
                continue;
            }
            let state = Arc::clone(self);
            let id = number;
            let work = move || {
                let channel = Channel::accept(stream, &state.secret);
                let request = channel.and_then(|mut channel| {
                    let request = channel.receive(HANDSHAKE).ok().flatten()?;
                    Some((channel, request))
                });
                lock(&state.pending).retain(|other| other.number != id);
                // The request is the first message that only who knows the secret could write: the first of the
                // handshake may have been recorded.
                if let Some((channel, request)) = request {
                    state.serve(channel, request);
                }
            };
            if thread::Builder::new().spawn(work).is_err() {
                lock(&self.pending).retain(|other| other.number != number);
            }
        }
    }

    /// Keeps a connection until the secret is proved; closes another one if there are too many.
    fn admit(&self, number: u64, from: SocketAddr, stream: &TcpStream) -> bool {
        let mut pending = lock(&self.pending);
        let Ok(stream) = stream.try_clone() else {
            close_one(&mut pending);
            return false;
        };
        if pending.len() >= MAX_PENDING {
            close_one(&mut pending);
        }
        pending.push(Pending { number, network: network(from.ip()), stream });
        true
    }

    fn say(&self, line: String) {
        let mut lines = lock(&self.lines);
        if lines.len() < MAX_LINES {
            lines.push_back(line);
        }
    }

    fn serve(&self, mut channel: Channel, request: Message) {
        let Ok(peer) = channel.peer() else { return };
        let client = peer.ip();
        let session = Counted::new(&self.sessions);
        let most = self.config.max_sessions;
        let busy = session.before >= most;
        let why = match (&self.config.voice, &request) {
            (Some(_), _) if busy => Some("busy: in another call; try again later".to_owned()),
            (None, _) if busy => Some(format!(
                "the server has {most} sessions, as many as it permits; try again later"
            )),
            (None, Message::Invite { .. }) => {
                Some("it serves measurements: calls need `talkspurt answer` there".to_owned())
            }
            (Some(_), Message::Request { .. }) => {
                Some("it answers calls: measurements need `talkspurt serve` there".to_owned())
            }
            _ => None,
        };
        if let Some(why) = why {
            if busy {
                self.say(format!("{client}: refused: {why}"));
            }
            // Whoever left does not need to know.
            let _ = channel.send(&Message::Refuse { why });
            return;
        }
        let request = match (&self.config.voice, request) {
            (Some(voice), Message::Invite { release, invitation }) => {
                if let Err(why) = self.answer(channel, peer, voice, &release, *invitation) {
                    self.say(format!("{client}: {why}"));
                }
                return;
            }
            (_, request) => request,
        };
        let mut next = Some(request);
        while let Some(request) = next.take() {
            match self.measure(&mut channel, client, request) {
                Ok(()) => next = self.next_request(&mut channel),
                Err(why) => self.say(format!("{client}: {why}")),
            }
        }
    }

    fn next_request(&self, channel: &mut Channel) -> Option<Message> {
        let clock = Clock::start();
        while clock.now().as_nanos() < IDLE.as_nanos() && !self.stop.load(Ordering::Acquire) {
            match channel.receive(BEAT) {
                Ok(Some(Message::Beat)) | Ok(None) => {}
                Ok(Some(request)) => return Some(request),
                Err(_) => return None,
            }
        }
        None
    }

    /// Answers a call; an error is for the log, of a call that has not begun.
    fn answer(
        &self,
        mut channel: Channel,
        peer: SocketAddr,
        voice: &Voice,
        release: &str,
        invitation: Invitation,
    ) -> Result<(), String> {
        let client = peer.ip();
        let plan = invitation.plan(None);
        let checked =
            self.check_release(release).and_then(|()| self.check_call(&invitation, voice));
        let codecs = |agreed: &Option<Vec<Codec>>| agreed.as_deref().map_or_else(Vec::new, names);
        let (agreed, wire) = self.accept(&mut channel, &plan, checked, codecs)?;
        let watch = Watch::default();
        *lock(&self.call) = Some(watch.clone());
        let end = CallEnd {
            invitation,
            voice,
            agreed,
            limit: self.config.max_rate,
            greeted_by: Some(client),
        };
        let keep = |half| *lock(&self.half) = Some(half);
        let called = end.converse(&mut channel, wire, peer, (&watch, &self.stop), keep);
        lock(&self.half).take();
        let failed = called.map(|called| lock(&self.called).push_back(called));
        *lock(&self.call) = None;
        failed.map_err(|why| why.to_string())
    }

    /// The codecs to which we agree, unless DCCP's handshake will name them.
    pub(crate) fn check_call(
        &self,
        invitation: &Invitation,
        voice: &Voice,
    ) -> Result<Option<Vec<Codec>>, Failure> {
        let agreed = match invitation.in_handshake() {
            true => None,
            false => Some(agree(&invitation.codecs, voice.codecs())?),
        };
        let most = self.config.max_duration;
        if invitation.duration > most.as_nanos() {
            return Err(Failure::Refused(format!("a call of more than {most}")));
        }
        let plan = invitation.plan(agreed.as_deref());
        plan.point()?;
        plan.check_controllers(false)?;
        Ok(agreed)
    }

    /// Serves a request; an error ends the session and is for the log.
    fn measure(
        &self,
        channel: &mut Channel,
        client: IpAddr,
        request: Message,
    ) -> Result<(), String> {
        let Message::Request { release, plan } = request else {
            return Err("no request".to_owned());
        };
        let local = channel.local().map_err(|error| error.to_string())?;
        let checked = self.check(&release, &plan).and_then(|point| {
            if !plan.direct().is_empty() {
                plan.check_route(false, direct::mtu(local.ip(), client))?;
            }
            Ok(point)
        });
        let (point, wire) = self.accept(channel, &plan, checked, |_| Vec::new())?;
        let max_rate = self.config.max_rate;
        self.say(format!("{client}: {}", told(&plan)));
        let shared = Shared::default();
        let materials = Materials::default();
        let MediaOutcome { log, mut ended, .. } = thread::scope(|scope| {
            let media = scope.spawn(|| {
                let (mut wire, files) = (wire, (&point, &materials));
                wire.be_greeted(client, &shared)
                    .then(|| Media::new(&plan, files, wire, false, max_rate, None, &shared).run())
            });
            let finished = self.watch(channel, &shared, &plan);
            let media = media.join().map_err(|_| "internal error in the media loop".to_owned())?;
            finished?;
            media.ok_or_else(|| "no datagram came from the client".to_owned())
        })?;
        ended.early = ended.early.filter(|why| why != FINISHED);
        let early = ended.early.clone().map_or_else(String::new, |why| format!(" ({why})"));
        give_notes(channel, (&log, &ended), (&plan, &shared))
            .map_err(|error| format!("lost while sending notes: {error}"))?;
        self.say(format!("{client}: done{early}"));
        Ok(())
    }

    /// Accepts what a client asks for if it was `checked`, or refuses it; `codecs` are those of a call. An
    /// error is for the log.
    fn accept<T>(
        &self,
        channel: &mut Channel,
        plan: &Plan,
        checked: Result<T, Failure>,
        codecs: impl Fn(&T) -> Vec<String>,
    ) -> Result<(T, Wire), String> {
        let keys = keys();
        let local = channel.local().map_err(|error| error.to_string())?;
        let bound = checked.and_then(|found| Ok((found, self.bind(local, &keys, plan)?)));
        let (found, wire) = bound.map_err(|why| {
            // Whoever left does not need to know.
            let _ = channel.send(&Message::Refuse { why: why.to_string() });
            format!("refused: {why}")
        })?;
        let ([up, down], port) = (keys, wire.local().port());
        let (max_rate, codecs) = (self.config.max_rate.as_bps(), codecs(&found));
        let accept = Message::Accept { port, up, down, max_rate, codecs };
        channel.send(&accept).map_err(|error| format!("lost: {error}"))?;
        Ok((found, wire))
    }

    /// Watches the control connection until the client has finished; an error if it was lost.
    fn watch(&self, channel: &mut Channel, shared: &Shared, plan: &Plan) -> Result<(), String> {
        let mut control = Control::new(channel, shared, plan.end());
        let mut told = false;
        let lost = |error: io::Error| format!("lost: {error}");
        let mut watch = || loop {
            if self.stop.load(Ordering::Acquire) {
                return Err("the server stops".to_owned());
            }
            let silence = control.silence();
            if silence >= LOST && !told {
                // Media stops. Perhaps it was the reason, and the client still asks for the notes.
                told = true;
                shared.stop(SILENT);
                control.channel.send(&Message::Stop).map_err(lost)?;
            }
            if silence >= IDLE {
                return Err("lost: no sign of life from the client".to_owned());
            }
            if control.waits_for_begin() {
                return Err("lost: the client did not begin in time".to_owned());
            }
            if control.waits_for_finish() {
                return Err("lost: the client did not finish in time".to_owned());
            }
            match control.turn().map_err(lost)? {
                Some(Message::Start) => shared.started.store(true, Ordering::Release),
                Some(Message::Stop) => shared.stop("the client stopped"),
                Some(Message::Finish) => {
                    shared.stop(FINISHED);
                    return Ok(());
                }
                _ => {}
            }
        };
        watch().inspect_err(|_| shared.stop("the control connection was lost"))
    }

    fn check_release(&self, release: &str) -> Result<(), Failure> {
        let ours = env!("CARGO_PKG_VERSION");
        if release == ours {
            return Ok(());
        }
        Err(Failure::Refused(format!(
            "the server is talkspurt {ours}, and the client {release}: install the same release at both ends"
        )))
    }

    pub(crate) fn check(
        &self,
        release: &str,
        plan: &Plan,
    ) -> Result<talkspurt_scenario::Point, Failure> {
        self.check_release(release)?;
        if plan.is_call() {
            return Err(Failure::Refused("a call is no measurement".to_owned()));
        }
        let Config { max_rate, max_duration, .. } = &self.config;
        let point = plan.point()?;
        let mut faults = Vec::new();
        faults.extend(plan.check_controllers(false).err().map(|why| why.to_string()));
        if plan.duration > max_duration.as_nanos() {
            let asked = Duration::from_nanos(plan.duration);
            faults.push(format!("a duration of {asked}: the server permits {max_duration}"));
        }
        let rate = plan.rate();
        if rate > *max_rate {
            faults.push(format!(
                "{rate} with all headers and directions: the server permits {max_rate} a session"
            ));
        }
        if faults.is_empty() { Ok(point) } else { Err(Failure::Refused(faults.join("; "))) }
    }

    fn bind(&self, mut local: SocketAddr, keys: &[Key; 2], plan: &Plan) -> Result<Wire, Failure> {
        let raw = self.raw.take(plan, local.ip())?;
        let mut bind = |port| {
            local.set_port(port);
            Wire::listen(local, keys, plan)
        };
        let mut wire = if let Some((first, last)) = self.config.ports {
            let found = (first..=last).find_map(|port| bind(port).ok());
            found.ok_or_else(|| {
                Failure::System(format!("all ports from {first} to {last} are in use"))
            })?
        } else {
            // TCP may be using the port that UDP gets.
            let found = (0..TRIES).find_map(|_| bind(0).ok()).map_or_else(|| bind(0), Ok);
            found.map_err(|error| Failure::System(format!("no port: {error}")))?
        };
        let failed = |error| Failure::System(format!("no raw socket: {error}"));
        wire.use_raw(plan, raw, keys, None).map_err(failed)?;
        Ok(wire)
    }
}

/// Whether the process or the system has no descriptors left.
fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(nix::libc::EMFILE | nix::libc::ENFILE))
}

/// Closes one of the connections that have not proved the secret, if there is one.
fn close_one(pending: &mut Vec<Pending>) {
    let networks: Vec<_> = pending.iter().map(|it| it.network).collect();
    if !networks.is_empty() {
        let closed = pending.swap_remove(victim(&networks, random()));
        // Fails if it is closed already.
        let _ = closed.stream.shutdown(Shutdown::Both);
    }
}

/// Addresses that one host can take: an address of IPv4, or 64 bits of IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits() >> 64 << 64).into(),
        four => four,
    }
}

/// Which of the connections from these networks to close: one of the network that has most of them.
fn victim(networks: &[IpAddr], random: u64) -> usize {
    let mut counts = BTreeMap::<_, usize>::new();
    for network in networks {
        *counts.entry(network).or_default() += 1;
    }
    let most = counts.values().max();
    let places = 0..networks.len();
    let places: Vec<_> = places.filter(|at| counts.get(&networks[*at]) == most).collect();
    places[random as usize % places.len()]
}

/// A session that is counted while it lasts, however it ends.
struct Counted<'a> {
    sessions: &'a AtomicUsize,
    /// Sessions that were there before.
    before: usize,
}

impl<'a> Counted<'a> {
    fn new(sessions: &'a AtomicUsize) -> Self {
        Self { sessions, before: sessions.fetch_add(1, Ordering::AcqRel) }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.sessions.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Not a reason for an early end.
const FINISHED: &str = "finished";

/// A key for each direction, up and down.
fn keys() -> [Key; 2] {
    [(); 2].map(|()| {
        let mut key = [0; 32];
        getrandom::fill(&mut key).expect("the system has random numbers");
        key
    })
}

fn random() -> u64 {
    getrandom::u64().expect("the system has random numbers")
}

/// A plan in a line.
pub(crate) fn told(plan: &Plan) -> String {
    let flow = |flow: &crate::FlowPlan| {
        let traffic = |way: &str, it: &Option<Traffic>| {
            it.as_ref().map(|traffic| match traffic {
                Traffic::Cbr { rate, .. } => format!("{way} {}", Rate::from_bps(*rate)),
                Traffic::Talkspurts { codec } => format!("{way} {codec}"),
                Traffic::Bulk { .. } => format!("{way} bulk"),
                Traffic::Video { rate, .. } => format!("{way} video {}", Rate::from_bps(*rate)),
                Traffic::Speech { codecs, .. } => format!("{way} {}", codecs.join(", ")),
            })
        };
        let ways = [traffic("up", &flow.up), traffic("down", &flow.down)];
        let ways: Vec<_> = ways.into_iter().flatten().collect();
        format!("{} {}", flow.transport.name(), ways.join(", "))
    };
    let flows: Vec<_> = plan.flows.iter().map(flow).collect();
    format!("{} for {}", flows.join(" and "), Duration::from_nanos(plan.duration))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(addresses: &[&str]) -> Vec<IpAddr> {
        let parsed = addresses.iter().map(|text| text.parse().expect("an address"));
        parsed.map(network).collect()
    }

    /// A flood closes its own connections; one from many networks closes any.
    #[test]
    fn a_flood_closes_connections_of_the_network_with_most() {
        let flood = ["::ffff:10.0.0.9", "10.0.0.9", "10.0.0.9"];
        let others = ["10.0.0.1", "2001:db8::1", "2001:db8:0:1::1"];
        let six = ["2001:db8:7::1", "2001:db8:7::2", "2001:db8:7::ffff:0:3"];
        for flood in [flood, six] {
            let all = networks(&[&others[..2], &flood[..], &others[2..]].concat());
            let closed: Vec<_> = (0..9).map(|random| victim(&all, random)).collect();
            assert_eq!(closed, [2, 3, 4, 2, 3, 4, 2, 3, 4]);
        }
        let all = networks(&others);
        assert_eq!([0, 1, 2, u64::MAX].map(|random| victim(&all, random)), [0, 1, 2, 0]);
    }
}
