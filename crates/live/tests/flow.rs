//! One scenario, run in virtual time by `sim` and in real time by `live`: over a path without loss
//! the same peers deliver the same frames, and speech is played identically frame by frame.
//!
//! In real time delays depend on the machine's load, so the playout buffer is long, and
//! times are not compared.
#![cfg(target_os = "linux")]

#[path = "../src/bin/peer/rig/mod.rs"]
mod rig;

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;

use talkspurt_app::playout::Received;
use talkspurt_flow::{Disk, Materials, Peer, hints, peers};
use talkspurt_live::{Line, Port, Setup, UdpPort, run_peer};
use talkspurt_proto::probe::{Note, Place, Probe, Topic};
use talkspurt_proto::time::Instant;
use talkspurt_scenario::{Point, load};
use talkspurt_sim::build::build;

use rig::Tun;

/// Data that reached one end of a flow.
#[derive(Clone, Debug, Default, PartialEq)]
struct Delivered {
    /// Frames of media by number and bytes, in order of number.
    frames: Vec<(u32, u32)>,
    /// Bytes of plain data.
    data_bytes: u64,
    /// Payloads that were played, by place in time.
    played: Vec<Option<Vec<u8>>>,
}

/// Collects what is delivered at each peer.
#[derive(Default)]
struct Deliveries {
    at: [Vec<(u32, u32)>; 2],
}

impl Probe for Deliveries {
    fn wants(&self, topic: Topic) -> bool {
        matches!(topic, Topic::Frame)
    }
    fn record(&mut self, _: Instant, place: Place, note: &Note<'_>) {
        if let (Place::Peer(peer), Note::Delivered { index, bytes }) = (place, note) {
            self.at[peer as usize].push((*index, *bytes));
        }
    }
}

impl Deliveries {
    fn of(mut self, peer: &Peer, media: bool) -> Delivered {
        let Place::Peer(number) = peer.place() else { panic!("a peer is at a peer's place") };
        let mut notes = std::mem::take(&mut self.at[number as usize]);
        notes.sort_unstable();
        let data_bytes = notes.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
        let payload = |it: &Received| it.payload.to_vec();
        let played = peer.played().iter().map(|packet| packet.as_ref().map(payload));
        Delivered {
            frames: if media { notes } else { Vec::new() },
            data_bytes,
            played: played.collect(),
        }
    }
}

fn point(transport: &str, source: &str, reverse: &str) -> Point {
    let text = format!(
        "title = 'both worlds'\nduration = '2500ms'\nseed = 7\n\
         [links.wire]\nfrom = 'a'\nto = 'b'\nrate = '50Mbit/s'\ndelay = '1ms'\nqueue = {{ kind = 'droptail', packets = 1000 }}\n\
         [flows.call]\nfrom = 'a'\nto = 'b'\nstart = '100ms'\nstop = '1500ms'\n\
         transport = {transport}\nsource = {source}\n{reverse}\n"
    );
    let speech = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../speech");
    let study = load(&text, "both.toml", &speech, &[], None);
    study.unwrap_or_else(|problems| panic!("{transport}: {problems:?}")).points.remove(0)
}

fn in_virtual_time(point: &Point, materials: &Materials) -> [Delivered; 2] {
    let flow = &point.scenario.flows[0];
    let reversed = flow.reverse.as_ref().is_some_and(|source| source.is_media());
    let media = [reversed, flow.source.is_media()];
    let mut ends = [0, 1].map(|_| Delivered::default());
    let probe = Deliveries::default();
    let mut world = build(&point.scenario, &point.network, materials, probe);
    let end = Instant::ZERO + point.scenario.duration;
    assert!(world.run_until(end, &AtomicBool::new(false)));
    let notes = world.probe.at.clone();
    for (side, end) in ends.iter_mut().enumerate() {
        *end = Deliveries { at: notes.clone() }.of(world.peers()[side], media[side]);
    }
    ends
}

/// Runs both ends, each on its own thread with its own clock.
fn in_real_time<L: Port + Send + 'static>(
    point: &Point,
    materials: &Materials,
    ports: [L; 2],
    addresses: [SocketAddr; 2],
) -> [Delivered; 2] {
    let flow = &point.scenario.flows[0];
    let reversed = flow.reverse.as_ref().is_some_and(|source| source.is_media());
    let media = [reversed, flow.source.is_media()];
    let hints = hints(flow);
    let end = Instant::ZERO + point.scenario.duration;
    let both = peers(&point.scenario, &point.network, materials);
    let mut threads = Vec::new();
    for (side, (mut peer, port)) in both.into_iter().zip(ports).enumerate() {
        let mut setup = Setup::new(addresses[side], Some(addresses[1 - side]));
        setup.hints = hints;
        threads.push(thread::spawn(move || {
            let mut probe = Deliveries::default();
            let mut line = Line::new(port, setup);
            run_peer(&mut peer, &mut line, end, &AtomicBool::new(false), &mut probe)
                .expect("the ports work");
            assert_eq!(line.unsent_packets(), 0);
            probe.of(&peer, media[side])
        }));
    }
    let mut ends = threads.into_iter().map(|thread| thread.join().expect("a side ends"));
    [ends.next(), ends.next()].map(|end| end.expect("there are two sides"))
}

const SPEECH: &str = "{ kind = 'speech', codec = 'pcmu', file = 'sense-and-sensibility.wav' }";
const LONG_BUFFER: &str = "playout = { buffer = '900ms' }";

/// Both ends on files that carry IP packets as a TUN device does: a pair of sockets.
fn compare(transport: &str, source: &str, reverse: &str) {
    let point = point(transport, source, reverse);
    let materials = Materials::load(&point.scenario, &Disk).expect("the recording is there");
    let simulated = in_virtual_time(&point, &materials);
    let (a, b) = UnixDatagram::pair().expect("a pair of sockets");
    let ports = [a, b].map(|socket| {
        socket.set_nonblocking(true).expect("a socket can");
        Tun::new(socket.into())
    });
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let live = in_real_time(&point, &materials, ports, [at(5004), at(5006)]);
    assert_same(transport, &simulated, &live);
}

fn assert_same(what: &str, simulated: &[Delivered; 2], live: &[Delivered; 2]) {
    assert!(simulated[1].data_bytes > 0, "{what}: nothing was delivered");
    for side in 0..2 {
        assert_eq!(live[side].frames, simulated[side].frames, "{what}: frames at side {side}");
        assert_eq!(live[side].data_bytes, simulated[side].data_bytes, "{what}: side {side}");
        assert!(live[side].played == simulated[side].played, "{what}: speech at side {side}");
    }
}

#[test]
fn speech_over_each_transport_arrives_as_in_simulation() {
    let transports = [
        "{ kind = 'udp' }",
        "{ kind = 'tcp', controller = 'cubic' }",
        "{ kind = 'sctp' }",
        "{ kind = 'dccp', ccid = 2 }",
        "{ kind = 'dccp', ccid = 3 }",
        "{ kind = 'dccp', ccid = 4 }",
        "{ kind = 'tfrc' }",
    ];
    let runs: Vec<_> = transports
        .map(|transport| thread::spawn(move || compare(transport, SPEECH, LONG_BUFFER)))
        .into();
    runs.into_iter().for_each(|run| run.join().expect("both worlds agree"));
}

#[test]
fn speech_both_ways_arrives_as_in_simulation() {
    compare("{ kind = 'udp' }", SPEECH, &format!("reverse = {SPEECH}\n{LONG_BUFFER}"));
}

#[test]
fn a_file_over_each_reliable_transport_arrives_whole_as_in_simulation() {
    for transport in ["{ kind = 'tcp', controller = 'cubic' }", "{ kind = 'sctp' }"] {
        compare(transport, "{ kind = 'bulk', total = '200kB' }", "");
    }
}

#[test]
fn speech_over_udp_sockets_arrives_as_in_simulation() {
    let point = point("{ kind = 'udp' }", SPEECH, LONG_BUFFER);
    let materials = Materials::load(&point.scenario, &Disk).expect("the recording is there");
    let simulated = in_virtual_time(&point, &materials);
    let ports = [0, 1].map(|_| {
        UdpPort::bind((Ipv4Addr::LOCALHOST, 0).into()).expect("the loopback interface has ports")
    });
    let addresses = [ports[0].local(), ports[1].local()];
    let live = in_real_time(&point, &materials, ports, addresses);
    assert_same("UDP sockets", &simulated, &live);
}
