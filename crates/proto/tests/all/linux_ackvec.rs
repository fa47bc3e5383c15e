//! The Ack Vectors of a Linux 6.1 kernel, as recorded: ours, fed the packets the kernel was fed, says
//! the same of each; and the kernel's, read by us, name the packets that its network dropped and
//! reordered, as the network and the receiving program counted them
//! (`tests/data/linux-dccp/README.md`).
//!
//! Where the kernel departs from RFC 4340:
//! * Its vectors begin behind the handshake: what the Request, the Response and the Ack after it were
//!   is never told, though §11.4.2 has the vector cover what the other side is not known to know.
//! * It goes on telling what the other side has acknowledged to know (§11.4.2, A.3), now and then:
//!   longer vectors, never other ones.
//! * Its window grows with acknowledgements of packets sent before a loss was seen (RFC 4341 §5: with
//!   each window "acknowledged without lost or marked packets").

use crate::captures;
use std::collections::BTreeMap;

use crate::captures::Captured;
use talkspurt_proto::dccp::ackvec::{AckVector, Run, State, runs};
use talkspurt_proto::dccp::ccid::{Acknowledgement, Departure, Sender as _};
use talkspurt_proto::dccp::ccid2::{Parameters, Sender};
use talkspurt_proto::dccp::options::Opt;
use talkspurt_proto::dccp::{Kind, Options, SeqNo, WireSeq};
use talkspurt_proto::profile::Profile;

/// One side of a recording: numbers of both directions as places.
#[derive(Default)]
struct Numbers {
    own: Option<SeqNo>,
    theirs: Option<SeqNo>,
}

fn place(base: &mut Option<SeqNo>, wire: WireSeq) -> SeqNo {
    let WireSeq::Extended(value) = wire else { panic!("the kernel sends extended numbers") };
    base.get_or_insert(SeqNo::first(value)).near(wire)
}

/// Acknowledgement Numbers that acknowledge: those of Sync and `SyncAck` do not (§5.7).
fn acknowledged(kind: &Kind) -> Option<WireSeq> {
    match kind {
        Kind::Sync { .. } | Kind::SyncAck { .. } => None,
        _ => kind.ack(),
    }
}

fn cells(options: &Options) -> Vec<u8> {
    options
        .iter()
        .flat_map(|option| match option {
            Ok(Opt::AckVector { cells, .. }) => cells.to_vec(),
            _ => Vec::new(),
        })
        .collect()
}

fn packets(run: &Run) -> impl Iterator<Item = SeqNo> {
    (0..=run.newest.since(run.oldest)).map(|behind| run.newest.back(behind))
}

/// What came of holding one side's vectors against ours.
#[derive(Debug, Default, PartialEq, Eq)]
struct Compared {
    vectors: usize,
    /// States of packets that are the same, and that are not.
    same: usize,
    other: usize,
    /// Vectors that are cell by cell the same; that cover more than ours, or less.
    identical: usize,
    longer: usize,
    shorter: usize,
}

/// Feeds our buffer what one side received, and compares where that side sends a vector.
fn compare(recording: &[Captured], client: bool) -> Compared {
    let (mut vector, mut numbers) = (AckVector::new(), Numbers::default());
    let mut compared = Compared::default();
    for captured in recording {
        let (packet, own) = (&captured.packet, captured.is_from_client(recording) == client);
        let ack = acknowledged(&packet.kind);
        if !own {
            vector.on_packet(place(&mut numbers.theirs, packet.seq), captured.ecn);
            if let Some(ack) = ack {
                let ack = place(&mut numbers.own, ack);
                vector.on_ack_of_ack(ack, &packet.options);
            }
            continue;
        }
        let seq = place(&mut numbers.own, packet.seq);
        let Some(ack) = ack.map(|ack| place(&mut numbers.theirs, ack)) else { continue };
        let all: Vec<_> = runs(ack, &packet.options).collect();
        let Some(oldest) = all.last().map(|run| run.oldest) else { continue };
        for run in &all {
            for state in packets(run).filter_map(|seq| vector.state(seq)) {
                compared.same += usize::from(state == run.state);
                compared.other += usize::from(state != run.state);
            }
        }
        compared.vectors += 1;
        let mut options = Options::default();
        vector.write(&mut options);
        vector.on_sent(seq);
        compared.identical += usize::from(cells(&options) == cells(&packet.options));
        compared.longer += usize::from(Some(oldest) < vector.oldest());
        compared.shorter += usize::from(Some(oldest) > vector.oldest());
    }
    compared
}

#[test]
fn ours_says_of_each_packet_what_the_kernel_said() {
    // Only directions without an emulated path: there the recording has what the kernel received.
    let vectors_same_identical_longer_shorter = [
        ("ccid2", true, [29, 29, 27, 0, 2]),
        ("ccid2", false, [29, 31, 28, 0, 1]),
        ("ccid2-bidir", true, [98, 151, 51, 49, 2]),
        ("ccid2-bidir", false, [99, 109, 47, 59, 2]),
        ("ccid2-loss", true, [769, 8932, 680, 91, 3]),
        ("ccid2-reorder", true, [147, 198, 125, 29, 2]),
    ];
    for (name, client, expected) in vectors_same_identical_longer_shorter {
        let compared = compare(&captures::read(name), client);
        let [vectors, same, identical, longer, shorter] = expected;
        let expected = Compared { vectors, same, other: 0, identical, longer, shorter };
        assert_eq!(compared, expected, "{name}, the client {client}");
    }
}

/// What a recording's server said of each packet of the client's over time, in order of its
/// acknowledgements.
fn history(recording: &[Captured]) -> BTreeMap<SeqNo, Vec<State>> {
    let mut numbers = Numbers::default();
    let mut history: BTreeMap<SeqNo, Vec<State>> = BTreeMap::new();
    for captured in recording {
        if captured.is_from_client(recording) {
            place(&mut numbers.theirs, captured.packet.seq);
            continue;
        }
        let Some(ack) = acknowledged(&captured.packet.kind) else { continue };
        let ack = place(&mut numbers.theirs, ack);
        for run in runs(ack, &captured.packet.options) {
            for seq in packets(&run) {
                let states = history.entry(seq).or_default();
                if states.last() != Some(&run.state) {
                    states.push(run.state);
                }
            }
        }
    }
    history
}

#[test]
fn the_kernels_vectors_name_the_packets_its_network_dropped() {
    // netem: "Sent 96744 bytes 750 pkt (dropped 25, ...)"; the program at the other end: rx_pkts
    // 746, rx_missing 25. The recording lies before netem and has all 771 of the data packets.
    let recording = captures::read("ccid2-loss");
    let mut told = BTreeMap::new();
    for states in history(&recording).values() {
        *told.entry(states.clone()).or_insert(0) += 1;
    }
    // The Close at the end is the 772nd; the Request and the Ack of the handshake are not told of.
    let (lost, received) = (vec![State::NotYet], vec![State::Received]);
    assert_eq!(told, BTreeMap::from([(lost, 25), (received, 747)]));
}

#[test]
fn the_kernels_vectors_keep_to_the_table_of_states() {
    // §11.4.1: of a packet delayed by netem's reordering the kernel says first that it has not come,
    // then that it has; never the other way round.
    let recording = captures::read("ccid2-reorder");
    let history = history(&recording);
    let late = vec![State::NotYet, State::Received];
    assert_eq!(history.values().filter(|states| **states == late).count(), 1);
    assert!(history.values().all(|states| states.len() == 1 || *states == late));
}

/// Our sender in the place of the kernel's: it sends when that sent and hears what that heard. Gives
/// for each data packet our window and our pipe before it, and the sender at the end.
fn follow(recording: &[Captured]) -> (Vec<(u64, u64)>, Sender) {
    let mut numbers = Numbers::default();
    let mut sender = Sender::new(&Parameters::of(Profile::Linux));
    let mut departures = Vec::new();
    for captured in recording {
        let (packet, now) = (&captured.packet, captured.at);
        if sender.deadline().is_some_and(|deadline| deadline <= now) {
            sender.on_timeout(now, &mut ());
        }
        if captured.is_from_client(recording) {
            let seq = place(&mut numbers.own, packet.seq);
            let data = packet.kind.is_data().then(|| packet.payload.wire_bytes() as u32);
            if data.is_some() {
                departures.push((sender.window(), sender.pipe()));
            }
            sender.on_sent(now, &Departure { seq, data_bytes: data }, &mut ());
        } else if let Some(ack) = acknowledged(&packet.kind) {
            let (seq, ack) = (place(&mut numbers.theirs, packet.seq), place(&mut numbers.own, ack));
            let (options, ecn) = (&packet.options, captured.ecn);
            let ack = Acknowledgement { seq, ack, options, ecn, elapsed: None, echo_rtt: None };
            sender.on_ack(now, &ack, &mut ());
        }
    }
    (departures, sender)
}

#[test]
fn our_window_allows_what_the_kernels_allowed() {
    for name in ["ccid2", "ccid2-bidir", "ccid2-reorder"] {
        let (departures, _) = follow(&captures::read(name));
        assert!(departures.iter().all(|(window, pipe)| pipe < window), "{name}");
    }
    // 771 data packets, 25 lost: slow start from 4 to the first loss, packet by packet.
    let (departures, sender) = follow(&captures::read("ccid2-loss"));
    assert_eq!(departures.len(), 771);
    assert_eq!(sender.pipe(), 0, "all of them are acknowledged or inferred lost");
    let fall = departures.windows(2).position(|pair| pair[1].0 < pair[0].0 - 1).unwrap() + 1;
    let (slow_start, after) = departures.split_at(fall);
    assert!(slow_start.iter().all(|(window, pipe)| pipe < window));
    assert_eq!(slow_start.last(), Some(&(48, 47)), "the kernel's window was full too");
    assert_eq!(after[0].0, 24);
    // From then on the kernel's window is a few packets larger: it grows with the acknowledgements
    // of packets sent before the loss was seen, which RFC 4341 §5 does not count.
    let excess = after.iter().map(|(window, pipe)| (pipe + 1).saturating_sub(*window)).max();
    assert_eq!(excess, Some(4));
}
