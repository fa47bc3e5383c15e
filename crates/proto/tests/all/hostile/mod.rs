//! Ends under attack, by a script of bytes: each step delivers a genuine packet, loses it, repeats
//! it, changes bytes of it or forges another, lets time pass, or has the application act. Whatever
//! the script, nothing panics, no step is answered by a storm, memory is bounded, deadlines do not
//! lie in the past, an address that is not proven gets no more than it sent, and what is delivered
//! was sent, unless somebody who knows the numbers forged it.
//!
//! Shared by the tests of `proto`, which try random scripts and those kept in `fuzz/seeds`, and by
//! the targets in `fuzz/`, which look for scripts that reach what none has reached.

pub mod dccp;
pub mod media;
mod repair;
pub mod sctp;
pub mod tcp;
pub mod wire;

use std::collections::VecDeque;
use std::net::IpAddr;

use talkspurt_proto::body::Body;
use talkspurt_proto::endpoint::{Arrival, Endpoint, Input, Output, PathNews};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Damage, Ecn, Packet, PathId, Payload, Quote};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::wire::{Ends, Hints, emit, parse};
pub use talkspurt_testing::fuzz::Script;

use repair::repair;

/// Steps of a script that are played; more would only be slower.
const MAX_STEPS: usize = 400;
/// Timers that run out in one step: with a round-trip time near zero CCID 3 has one each four of them
/// (RFC 5348 §4.3).
const MAX_TIMEOUTS: usize = 2000;
/// Packets in flight, and packets remembered for replays.
const MAX_FLYING: usize = 256;
const MAX_LOGGED: usize = 64;
/// Bytes of an IPv4 header without options.
const IP: usize = 20;

/// A transport that can be attacked.
pub trait Subject: Endpoint<Packet: Into<Body> + TryFrom<Body, Error = Body>> + Sized {
    /// Packets with which one input may be answered.
    const BURST: usize;
    /// Packets a timer may send an address that is not proven.
    const UNASKED: usize;
    /// Bytes that an end may hold.
    const MAX_BYTES: usize;
    /// What is delivered is one stream of bytes; otherwise messages.
    const STREAM: bool;
    /// No message is delivered twice.
    const ONCE: bool;

    /// Client and server, configured by the script.
    fn pair(script: &mut Script<'_>) -> (Self, Self);
    /// The peer has shown that it receives what is sent to it.
    fn is_open(&self) -> bool;
    fn footprint(&self) -> usize;
    /// A packet made from nothing but what can be seen of those its supposed sender sent.
    fn forge(script: &mut Script<'_>, seen: &[Body]) -> Option<Vec<u8>>;
    /// Whether a changed or forged packet fits the numbers so well that what it says may be taken
    /// for its supposed sender's word, given what that one really sent.
    fn fits(forged: &Body, seen: &[Body]) -> bool;
}

struct End<S> {
    endpoint: S,
    wake: Option<Instant>,
    proven: bool,
    /// Packets sent by timers to an address that is not proven, since it last sent one.
    unasked: usize,
    /// Somebody who knows the numbers spoke in the peer's name.
    deceived: bool,
    /// Bytes, or messages, handed over by the application.
    written: u64,
    /// Bytes, or messages, delivered to it.
    delivered: u64,
    seen: Vec<u64>,
    /// What it sent, last last.
    log: VecDeque<(Body, Vec<u8>)>,
}

struct Rig<S> {
    now: Instant,
    ends: [End<S>; 2],
    /// To whom, and bytes of whole IP packets.
    flying: VecDeque<(usize, Vec<u8>)>,
}

/// Plays a script.
pub fn play<S: Subject>(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let (client, server) = S::pair(&mut script);
    let end = |endpoint: S, proven| End {
        endpoint,
        wake: None,
        proven,
        unasked: 0,
        deceived: false,
        written: 0,
        delivered: 0,
        seen: Vec::new(),
        log: VecDeque::new(),
    };
    // A client has chosen whom to talk to; a listener has not.
    let ends = [end(client, true), end(server, false)];
    let mut rig = Rig { now: Instant::ZERO, ends, flying: VecDeque::new() };
    rig.hand(0, Input::Open, 0);
    for _ in 0..MAX_STEPS {
        if script.is_over() {
            break;
        }
        rig.step(&mut script);
    }
}

impl<S: Subject> Rig<S> {
    fn step(&mut self, script: &mut Script<'_>) {
        match script.byte() % 16 {
            0..=2 => self.arrive(script.byte(), None),
            3 => (0..16).for_each(|_| self.arrive(0, None)),
            4 => drop(self.flying.pop_front()),
            5 => self.arrive(0, Some(script)),
            6 => {
                // Repeated: as it was, or changed.
                let from = usize::from(script.bit());
                let (which, change) = (usize::from(script.byte()), script.bit());
                let log = &self.ends[from].log;
                if log.is_empty() {
                    return;
                }
                let bytes = log[log.len() - 1 - which % log.len()].1.clone();
                self.flying.push_front((1 - from, bytes));
                self.arrive(0, change.then_some(script));
            }
            7 | 8 => {
                let from = usize::from(script.bit());
                let seen: Vec<Body> = self.ends[from].log.iter().map(|one| one.0.clone()).collect();
                if let Some(bytes) = S::forge(script, &seen) {
                    self.flying.push_front((1 - from, bytes));
                    self.altered(1 - from, script.byte());
                }
            }
            9 | 10 => {
                let spans = [1, 7, 40, 200, 500, 1000, 3000, 20_000, 70_000, 400_000];
                self.pass(Duration::from_millis(script.pick(&spans)));
            }
            11 | 12 => self.write(usize::from(script.bit()), script.u16()),
            13 => {
                // A router's word on a packet that was sent, or something like it.
                let from = usize::from(script.bit());
                let which = usize::from(script.byte());
                let (mtu, mark) = (u32::from(script.u16()), script.bit());
                let log = &self.ends[from].log;
                let body = log.get(which % log.len().max(1)).map(|one| &one.0);
                if let Some(quote) = body.and_then(|body| Quote::of(&label(), body)) {
                    let ecn = if mark { Ecn::Ce } else { Ecn::NotEct };
                    let arrival = Arrival { path: PathId(0), ecn, damage: Damage::None };
                    self.hand_body(from, arrival, Body::TooBig { mtu, quote }, usize::MAX / 4);
                }
            }
            14 => {
                let side = usize::from(script.bit());
                let news = script.pick(&[PathNews::Down, PathNews::Up]);
                self.hand(side, Input::Path(PathId(script.byte() % 3), news), 0);
            }
            _ => {
                // The application seldom ends what it began.
                let side = usize::from(script.bit());
                match script.byte() {
                    0..=60 => self.hand(side, Input::Close, 0),
                    61..=70 => self.hand(side, Input::Abort, 0),
                    _ => self.pass(Duration::from_millis(30)),
                }
            }
        }
    }

    /// One of the first packets in flight arrives, changed if there is a script for it. A network
    /// may mark it.
    fn arrive(&mut self, how: u8, change: Option<&mut Script<'_>>) {
        let which = usize::from(how % 4) % self.flying.len().max(1);
        let Some((to, mut bytes)) = self.flying.remove(which) else { return };
        let Some(script) = change else {
            let parsed = parse(&bytes, Hints::default()).expect("an end's own packet");
            let (path, damage, body) = (PathId(0), parsed.damage, parsed.body);
            let marked = how >= 224 && parsed.ecn != Ecn::NotEct;
            let ecn = if marked { Ecn::Ce } else { parsed.ecn };
            return self.hand_body(to, Arrival { path, ecn, damage }, body, bytes.len());
        };
        mutate(&mut bytes, script);
        self.flying.push_front((to, bytes));
        self.altered(to, script.byte());
    }

    /// The first packet in flight is none of the peer's own making.
    fn altered(&mut self, to: usize, how: u8) {
        let Some((_, bytes)) = self.flying.pop_front() else { return };
        let Ok(parsed) = parse(&bytes, Hints::default()) else { return };
        let seen: Vec<Body> = self.ends[1 - to].log.iter().map(|one| one.0.clone()).collect();
        self.ends[to].deceived |= S::fits(&parsed.body, &seen);
        let damage = if how % 16 == 1 { Damage::Payload } else { parsed.damage };
        let ecn = if how % 16 == 2 { Ecn::Ce } else { parsed.ecn };
        let path = PathId(u8::from(how % 16 == 3));
        self.hand_body(to, Arrival { path, ecn, damage }, parsed.body, bytes.len());
    }

    /// The application hands over as much as there is room for.
    fn write(&mut self, side: usize, wish: u16) {
        let end = &mut self.ends[side];
        let len = end.endpoint.send_capacity().min(usize::from(wish) % 4000);
        if len < 8 {
            return;
        }
        let bytes: Vec<u8> = if S::STREAM {
            let bytes = (end.written..).take(len).map(pattern).collect();
            end.written += len as u64;
            bytes
        } else {
            end.written += 1;
            message(end.written - 1, len)
        };
        self.hand(side, Input::Frame(Frame::Data(Payload::Real(bytes.into()))), 0);
    }

    /// Time passes, and timers run out; after very many no more of it.
    fn pass(&mut self, span: Duration) {
        let (until, mut at_once) = (self.now + span, 0);
        for _ in 0..MAX_TIMEOUTS {
            let next = self.ends.iter().filter_map(|end| end.wake).min();
            let Some(next) = next.filter(|next| *next <= until) else {
                self.now = until;
                return;
            };
            at_once = if next <= self.now { at_once + 1 } else { 0 };
            assert!(at_once < 64, "timers run out without time passing");
            self.now = self.now.max(next);
            let due = |end: &End<S>| end.wake.is_some_and(|wake| wake <= next);
            let side = usize::from(!due(&self.ends[0]));
            self.hand(side, Input::Timeout, 0);
        }
    }

    /// Hands in a body; one of another protocol is nothing to the endpoint.
    fn hand_body(&mut self, side: usize, arrival: Arrival, body: Body, asked_bytes: usize) {
        if let Ok(input) = talkspurt_testing::road::input_of(arrival, body) {
            self.hand(side, input, asked_bytes);
        }
    }

    /// Hands in what came in so many bytes, and looks at what is done about it.
    fn hand(&mut self, side: usize, input: Input<S::Packet>, asked_bytes: usize) {
        let (now, timer) = (self.now, matches!(input, Input::Timeout));
        let stranger = asked_bytes > 0;
        self.ends[side].endpoint.handle(now, input, &mut ());
        let (mut packets, mut sent_bytes) = (0, 0);
        for count in 0.. {
            assert!(count < S::BURST + 8 + 4096, "one input is answered for ever");
            match self.ends[side].endpoint.poll(now, &mut ()) {
                Output::Transmit(transmit) => {
                    let (ecn, sent): (_, Body) = (transmit.ecn, transmit.packet.into());
                    let bytes = bytes_of(&sent, ecn).expect("an end sends what can be sent");
                    let parsed = parse(&bytes, Hints::default()).expect("and what can be read");
                    let again = bytes_of(&parsed.body, ecn);
                    assert_eq!(again.as_ref(), Some(&bytes), "bytes are read as they were meant");
                    packets += 1;
                    sent_bytes += bytes.len();
                    let log = &mut self.ends[side].log;
                    log.push_back((sent, bytes.clone()));
                    if log.len() > MAX_LOGGED {
                        log.pop_front();
                    }
                    if self.flying.len() < MAX_FLYING {
                        self.flying.push_back((1 - side, bytes));
                    }
                }
                Output::Deliver(frame) => self.deliver(side, &frame),
                Output::Event(_) => {}
                Output::Idle { until } => {
                    assert!(until.is_none_or(|until| until >= now), "{until:?} is before {now:?}");
                    self.ends[side].wake = until;
                    break;
                }
            }
        }
        assert!(packets <= S::BURST, "one input is answered by {packets} packets");
        let end = &mut self.ends[side];
        end.proven |= end.endpoint.is_open();
        let held = end.endpoint.footprint();
        assert!(held <= S::MAX_BYTES, "{held} bytes are held");
        if end.proven {
            return;
        }
        // What an address gets that may be anybody's.
        if timer {
            end.unasked += packets;
            assert!(end.unasked <= S::UNASKED, "{} packets without being asked", end.unasked);
        } else if stranger {
            end.unasked = 0;
            assert!(packets <= 1, "{packets} packets for one");
            assert!(sent_bytes <= 3 * asked_bytes, "{sent_bytes} bytes for {asked_bytes}");
        } else {
            assert!(packets <= 1, "{packets} packets for none");
        }
    }

    fn deliver(&mut self, side: usize, frame: &Frame) {
        let written = self.ends[1 - side].written;
        let end = &mut self.ends[side];
        let Frame::Data(payload) = frame else { panic!("only data was sent") };
        assert!(!S::STREAM || !payload.is_empty(), "nothing is no delivery");
        // A forged packet without data may be a datagram without data.
        if end.deceived || payload.is_empty() {
            return;
        }
        let Payload::Real(bytes) = payload else { panic!("only real bytes were sent") };
        if S::STREAM {
            let right = (end.delivered..).zip(bytes).all(|(at, byte)| pattern(at) == *byte);
            assert!(right, "bytes differ from those sent");
            end.delivered += bytes.len() as u64;
            assert!(end.delivered <= written, "bytes that were never sent");
        } else {
            let number = bytes.iter().take(8).fold(0, |n, byte| n << 8 | u64::from(*byte));
            assert!(number < written, "a message that was never sent");
            assert!(**bytes == *message(number, bytes.len()), "a message differs from that sent");
            assert!(!S::ONCE || !end.seen.contains(&number), "message {number} a second time");
            end.seen.push(number);
        }
    }
}

/// The byte at this place of any stream.
fn pattern(at: u64) -> u8 {
    (at ^ at >> 7 ^ at >> 15) as u8
}
/// A message that shows its number.
fn message(number: u64, len: usize) -> Vec<u8> {
    let rest = (0..).map(|at| pattern(number * 31 + at));
    number.to_be_bytes().into_iter().chain(rest).take(len).collect()
}

/// Changes a packet of real bytes, and mostly mends its checksums.
fn mutate(packet: &mut Vec<u8>, script: &mut Script<'_>) {
    for _ in 0..=script.byte() % 4 {
        let at = IP + usize::from(script.u16()) % (packet.len() - IP).max(1);
        match script.byte() % 6 {
            _ if at >= packet.len() => {}
            0 => packet[at] = script.byte(),
            1 => packet[at] ^= 1 << (script.byte() % 8),
            2 if at + 4 <= packet.len() => {
                let word: [u8; 4] = packet[at..at + 4].try_into().expect("four bytes");
                let word = u32::from_be_bytes(word).wrapping_add_signed(script.step());
                packet[at..at + 4].copy_from_slice(&word.to_be_bytes());
            }
            3 => packet.truncate(at),
            4 => {
                let length = usize::from(script.byte() % 24);
                packet.splice(at..at, script.bytes(length).iter().copied());
            }
            _ => {
                let tail = packet[at..].to_vec();
                packet.extend_from_slice(&tail[..tail.len().min(200)]);
            }
        }
    }
    if script.byte() % 32 != 31 {
        repair(packet);
    }
}

fn label() -> Packet {
    Packet { ..Packet::default() }
}

/// The whole IP packet, if it can be one.
fn bytes_of(body: &Body, ecn: Ecn) -> Option<Vec<u8>> {
    let address = |last| IpAddr::from([10, 0, 0, last]);
    let ends = Ends { src: address(1), dst: address(2), src_port: 1, dst_port: 2 };
    let mut bytes = Vec::new();
    emit(&Packet { ecn, ..label() }, body, &ends, &mut bytes).ok().map(|()| bytes)
}
