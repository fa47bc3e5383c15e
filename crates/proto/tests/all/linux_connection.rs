//! A Linux kernel's conversations (`tests/data/linux-dccp`), spoken again with one side played by
//! ours: given the recorded initial sequence number and what the application did, ours answers the
//! kernel's packets with the same types of packets, and ends in the same states.
//!
//! Where the kernel departs from the RFC, or does what it leaves open, and ours does otherwise:
//!
//! | the kernel | ours |
//! |---|---|
//! | every packet with data under CCID 2 is a `DataAck` | a `DataAck` if an acknowledgement is due |
//! | acknowledges every packet while its window is small (Ack Ratio 1) | keeps the ratio asked for |
//! | shrinks its Sequence Window to 50 and 32 in mid-connection | follows, and never shrinks its own |
//! | says Allow Short Seqnos 0, the initial value, Mandatory | says nothing of it |
//! | under CCID 3 says Ack Ratio 0 and Send Ack Vector 0 | says nothing of them; confirms |
//! | says what it sends (Change L 6, 7, 192) besides asking the other side for it | asks only |
//! | repeats a Close after 200 ms at the earliest | after two round trips |
//! | Padding before the options | Padding behind them |
//! | a client's Reset 2 when it closes with unread data | Close: what was delivered was read |
//!
//! Behind the handshake, Acknowledgement Numbers of recorded packets are moved to what ours has
//! sent, since it acknowledges less often, and Confirms are left out: they answer the kernel's
//! Changes of Ack Ratio, not ours.

use crate::captures;
use crate::captures::Captured;
use talkspurt_proto::dccp::Location::{Here, There};
use talkspurt_proto::dccp::options::{Opt, feature as name};
use talkspurt_proto::dccp::{
    Ccid, Config, Dccp, Kind, Options, Packet, ResetCode, Service, State, WireSeq,
};
use talkspurt_proto::endpoint::{Endpoint, Event, Input};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Damage, IpVersion, Payload};
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rng::Rng;
use talkspurt_testing::dccp::*;

/// The kernel's configuration in a recording.
fn config(ccid: Ccid, back: Ccid) -> Config {
    Config {
        ccid_back: Some(back),
        profile: Profile::Linux,
        service: Service(42),
        ..Config::new(ccid)
    }
}

/// One side of a recording, played by ours.
struct Replay {
    recording: Vec<Captured>,
    side: Side,
    alone: Alone,
    /// What ours sent in answer to each recorded packet.
    sent: Vec<Packet>,
    states: Vec<State>,
}

impl Replay {
    fn new(name: &str, side: Side, config: &Config) -> Self {
        let recording = captures::read(name);
        let first = recording
            .iter()
            .find(|captured| captured.is_from_client(&recording) == (side == Client))
            .expect("both sides speak");
        let rng = Rng::new(1, "replay");
        let dccp = match side {
            Client => Dccp::client(config, rng),
            Server => Dccp::listener(config, rng),
        };
        let version = if first.ends.src.is_ipv6() { IpVersion::V6 } else { IpVersion::V4 };
        let alone = Alone::new(dccp.numbered_from(wire(first.packet.seq)).over(version));
        Self { recording, side, alone, sent: Vec::new(), states: Vec::new() }
    }

    fn run(mut self) -> Self {
        for index in 0..self.recording.len() {
            let captured = self.recording[index].clone();
            self.alone.pass(captured.at - self.alone.now);
            let ours = captured.is_from_client(&self.recording) == (self.side == Client);
            if ours {
                self.act(index)
            } else {
                self.hear(captured)
            }
            let state = self.alone.endpoint.state();
            if self.states.last() != Some(&state) {
                self.states.push(state);
            }
        }
        self.sent = self.alone.sent.clone();
        self
    }

    /// What the kernel's application did when the kernel sent this.
    fn act(&mut self, index: usize) {
        let packet = &self.recording[index].packet;
        let unasked = !matches!(self.alone.endpoint.state(), State::CloseReq | State::Closing);
        match packet.kind {
            Kind::Request { .. } => drop(self.alone.input(Input::Open)),
            Kind::Data | Kind::DataAck { .. } if self.alone.endpoint.send_capacity() > 0 => {
                self.alone.send(packet.payload.wire_bytes() as u32);
            }
            Kind::CloseReq { .. } | Kind::Close { .. } if unasked => {
                self.alone.input(Input::Close);
            }
            _ => {}
        }
    }

    fn hear(&mut self, captured: Captured) {
        let mut packet = captured.packet;
        let last = WireSeq::Extended(self.alone.last);
        let handshake = self.alone.endpoint.state() < State::PartOpen;
        match &mut packet.kind {
            _ if handshake => {}
            Kind::Ack { ack }
            | Kind::DataAck { ack }
            | Kind::Close { ack }
            | Kind::CloseReq { ack }
            | Kind::Reset { ack, .. }
            | Kind::SyncAck { ack }
            | Kind::Sync { ack } => *ack = last,
            _ => {}
        }
        if !handshake {
            let kept: Vec<Opt<'_>> = captured_options(&packet)
                .filter(|option| !matches!(option, Opt::ConfirmL(_) | Opt::ConfirmR(_)))
                .collect();
            packet.options = with(&kept);
        }
        self.alone.input(arriving(packet, captured.ecn, Damage::None));
    }

    /// Types without those that carry data and what acknowledges it; a repeated one counts once.
    fn skeleton<'a>(packets: impl Iterator<Item = &'a Packet>) -> Vec<u8> {
        let kinds = packets.map(|packet| packet.kind.number());
        let mut kinds: Vec<u8> =
            kinds.filter(|kind| ![DATA, DATA_ACK, ACK].contains(kind)).collect();
        kinds.dedup();
        kinds
    }
    /// The same of the kernel in our place.
    fn recorded(&self) -> Vec<u8> {
        let theirs = self
            .recording
            .iter()
            .filter(|captured| captured.is_from_client(&self.recording) == (self.side == Client));
        Self::skeleton(theirs.map(|captured| &captured.packet))
    }
    fn answers_alike(&self, name: &str) {
        assert_eq!(Self::skeleton(self.sent.iter()), self.recorded(), "{name} {:?}", self.side);
    }
}

/// Recordings of whole connections, and their CCIDs there and back.
const WHOLE: [(&str, Ccid, Ccid); 9] = [
    ("default", Ccid::Two, Ccid::Two),
    ("ccid2", Ccid::Two, Ccid::Two),
    ("ccid2-loss", Ccid::Two, Ccid::Two),
    ("ccid3", Ccid::Three, Ccid::Three),
    ("ccid3-loss", Ccid::Three, Ccid::Three),
    ("cscov", Ccid::Two, Ccid::Two),
    ("ipv6", Ccid::Two, Ccid::Two),
    ("server-close", Ccid::Two, Ccid::Two),
    ("userspace-client", Ccid::Two, Ccid::Two),
];

fn service(name: &str) -> Service {
    let Kind::Request { service } = captures::read(name)[0].packet.kind else { panic!("{name}") };
    Service(service)
}

/// Our server opens, takes all the data, and closes as the kernel did.
#[test]
fn our_server_answers_the_kernels_client() {
    for (name, ccid, back) in WHOLE {
        let mut config = Config { service: service(name), ..config(ccid, back) };
        config.minimum_checksum_coverage = u8::from(name == "cscov");
        let replay = Replay::new(name, Server, &config).run();
        replay.answers_alike(name);
        let last = if name == "server-close" {
            vec![State::Listen, State::Respond, State::Open, State::CloseReq, State::Closed]
        } else {
            vec![State::Listen, State::Respond, State::Open, State::Closed]
        };
        let states: Vec<State> =
            std::iter::once(State::Listen).chain(replay.states.clone()).collect();
        let mut states = states;
        states.dedup();
        assert_eq!(states, last, "{name}");
        let client = |captured: &&Captured| captured.is_from_client(&replay.recording);
        let data = replay.recording.iter().filter(client).filter(|c| c.packet.kind.is_data());
        let mut sent: Vec<u64> = data.map(|captured| wire(captured.packet.seq)).collect();
        sent.dedup();
        if !name.ends_with("loss") {
            assert_eq!(replay.alone.received.len(), sent.len(), "{name}");
        }
        assert!(
            replay.alone.notes.rx_error.is_empty(),
            "{name}: {:?}",
            replay.alone.notes.rx_error
        );
    }
}

/// Our client opens, and closes as the kernel did; the kernel's Resets put it to TIMEWAIT.
#[test]
fn our_client_answers_the_kernels_server() {
    for (name, ccid, back) in WHOLE {
        let mut config = Config { service: service(name), ..config(ccid, back) };
        config.checksum_coverage = u8::from(name == "cscov");
        let replay = Replay::new(name, Client, &config).run();
        replay.answers_alike(name);
        assert_eq!(
            replay.states,
            [State::Request, State::PartOpen, State::Open, State::Closing, State::TimeWait],
            "{name}"
        );
        let events: Vec<Event> = replay
            .alone
            .events
            .iter()
            .filter(|event| **event != Event::Writable)
            .copied()
            .collect();
        assert_eq!(events.last(), Some(&Event::Closed), "{name}");
    }
}

/// A server that holds TIMEWAIT: Close, and the client's Reset 1.
#[test]
fn the_server_may_hold_timewait() {
    let name = "server-close-timewait";
    let config = Config { server_timewait: true, ..config(Ccid::Two, Ccid::Two) };
    let server = Replay::new(name, Server, &config).run();
    server.answers_alike(name);
    assert_eq!(server.states.last(), Some(&State::TimeWait));
    let client = Replay::new(name, Client, &config).run();
    client.answers_alike(name);
    assert_eq!(client.states.last(), Some(&State::Closed));
    assert_eq!(reset(&[client.sent.last().unwrap().clone()]).0, ResetCode::CLOSED);
}

/// The handshake packet by packet: types, numbers, acknowledgements, Service Code. Every Change of
/// the kernel is confirmed, with the value the kernel's other side confirmed.
#[test]
fn the_handshake() {
    for (name, ccid, back) in WHOLE {
        let mut config = Config { service: service(name), ..config(ccid, back) };
        config.checksum_coverage = u8::from(name == "cscov");
        config.minimum_checksum_coverage = u8::from(name == "cscov");
        let recording = captures::read(name);
        let [request, response, ack] = [0, 1, 2].map(|index: usize| &recording[index].packet);
        let server = Replay::new(name, Server, &config).run();
        let ours = &server.sent[0];
        assert_eq!((ours.seq, ours.kind), (response.seq, response.kind), "{name}");
        confirmed(request, ours, name);
        let client = Replay::new(name, Client, &config).run();
        let [ours, done] = [&client.sent[0], &client.sent[1]];
        assert_eq!((ours.seq, ours.kind), (request.seq, request.kind), "{name}");
        assert_eq!(done.seq, ack.seq, "{name}");
        assert_eq!(done.kind.ack(), ack.kind.ack(), "{name}");
        confirmed(response, done, name);
    }
}

fn captured_options(packet: &Packet) -> impl Iterator<Item = Opt<'_>> {
    packet.options.iter().map(|option| option.expect("the kernel sends sound options"))
}

fn confirmed(asking: &Packet, answering: &Packet, name: &str) {
    let answers = options(answering);
    for option in options(asking) {
        let answered = |theirs: bool, number: u8| {
            answers.iter().any(|answer| match answer {
                Opt::ConfirmR(confirm) => {
                    theirs && confirm.number == number && !confirm.value.is_empty()
                }
                Opt::ConfirmL(confirm) => {
                    !theirs && confirm.number == number && !confirm.value.is_empty()
                }
                _ => false,
            })
        };
        match option {
            Opt::ChangeL(change) => assert!(answered(true, change.number), "{name} {change:?}"),
            Opt::ChangeR(change) => assert!(answered(false, change.number), "{name} {change:?}"),
            _ => {}
        }
    }
}

/// What was agreed under CCID 3, on both sides of the conversation.
#[test]
fn features_under_ccid_3() {
    let config = config(Ccid::Three, Ccid::Three);
    for side in [Client, Server] {
        let mut replay = Replay::new("ccid3", side, &config);
        replay.recording.truncate(10);
        let dccp = replay.run().alone.endpoint;
        for (number, value) in [
            (name::CCID, 3),
            (name::ALLOW_SHORT_SEQNOS, 0),
            (name::ECN_INCAPABLE, 1),
            (name::SEND_ACK_VECTOR, 0),
            (name::SEND_NDP_COUNT, 1),
            (name::SEND_LOSS_EVENT_RATE, 1),
        ] {
            for location in [Here, There] {
                assert_eq!(dccp.feature(number, location), value, "{side:?} {number} {location:?}");
            }
        }
        assert_eq!(dccp.feature(name::ACK_RATIO, There), 0);
    }
}

/// Refusals, byte for byte but for the options: another service, another CCID, nobody there.
#[test]
fn refusals() {
    let listener = |config: &Config| Dccp::listener(config, Rng::new(1, "refuses"));
    let two = config(Ccid::Two, Ccid::Two);
    let three = config(Ccid::Three, Ccid::Three);
    let closed = Dccp::client(&two, Rng::new(1, "refuses"));
    for (name, dccp) in [
        ("bad-service-code", listener(&two)),
        ("ccid-disagree", listener(&three)),
        ("refused", closed),
    ] {
        let recording = captures::read(name);
        assert_eq!(recording.len(), 2);
        let mut alone = Alone::new(dccp);
        let answer = alone.packet(recording[0].packet.clone());
        let none = Frame::Data(Payload::default());
        let kernel = &recording[1].packet;
        let expected = Packet { options: Options::default(), payload: none, ..kernel.clone() };
        assert_eq!(answer, [expected], "{name}");
    }
}

/// The client's side of the same: a Reset in REQUEST ends it.
#[test]
fn refused() {
    for name in ["bad-service-code", "ccid-disagree", "refused"] {
        let config = Config { service: service(name), ..config(Ccid::Two, Ccid::Two) };
        let replay = Replay::new(name, Client, &config).run();
        assert_eq!(replay.states, [State::Request, State::TimeWait], "{name}");
        assert_eq!(replay.alone.events, [Event::Reset], "{name}");
        replay.answers_alike(name);
    }
}

/// Data both ways, and two CCIDs in one connection.
#[test]
fn both_directions() {
    for (name, ccid, back) in [
        ("ccid2-bidir", Ccid::Two, Ccid::Two),
        ("ccid3-bidir", Ccid::Three, Ccid::Three),
        ("tx3-rx2", Ccid::Three, Ccid::Two),
    ] {
        for side in [Client, Server] {
            let replay = Replay::new(name, side, &config(ccid, back)).run();
            let theirs = replay
                .recording
                .iter()
                .filter(|c| c.is_from_client(&replay.recording) == (side == Server))
                .filter(|c| c.packet.kind.is_data())
                .count();
            let (got, rx_error) = (replay.alone.received.len(), &replay.alone.notes.rx_error);
            // What came behind the end is no longer delivered.
            assert!(got + 3 >= theirs, "{name} {side:?}: {got} of {theirs}, {rx_error:?}");
            assert!(replay.sent.iter().filter(|packet| packet.kind.is_data()).count() >= 40);
        }
    }
}
