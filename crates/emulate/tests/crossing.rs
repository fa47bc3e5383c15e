//! Packets between two programs, over sockets in place of TUN devices: their bytes, their times, the account.

#![cfg(target_os = "linux")]

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use talkspurt_emulate::{Account, Control, Emulated, Host, routes, run};
use talkspurt_experiment::{Finished, Shared};
use talkspurt_live::Clock;
use talkspurt_record::Tables;
use talkspurt_scenario::Point;

const NETWORK: &str = "
title = 'Three hosts'
duration = '20s'
[links.near]
from = 'a'
to = 'r'
rate = '10Mbit/s'
delay = '3ms'
queue = { kind = 'droptail', packets = 50 }
[links.far]
from = 'r'
to = 'b'
rate = '10Mbit/s'
delay = '20ms'
mtu = '600B'
queue = { kind = 'droptail', packets = 5 }
[links.apart]
from = 'x'
to = 'y'
rate = '10Mbit/s'
delay = '1ms'
queue = { kind = 'droptail', packets = 5 }
[flows.other]
from = 'a'
to = 'b'
transport = { kind = 'udp' }
source = { kind = 'speech', codec = 'pcmu' }
playout = { kind = 'fixed' }
";

fn point(network: &str) -> Point {
    let study = talkspurt_scenario::load(network, "test", Path::new("."), &[], None);
    study.unwrap_or_else(|problems| panic!("{problems}")).points[0].clone()
}

fn sum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

fn add_sum(bytes: &mut [u8]) {
    bytes[10..12].fill(0);
    let header = sum(&bytes[..20]);
    bytes[10..12].copy_from_slice(&header.to_be_bytes());
}

/// A UDP datagram without UDP checksum, between hosts by their numbers.
fn datagram(from: u8, to: u8, ttl: u8, payload: usize) -> Vec<u8> {
    let length = (28 + payload) as u16;
    let mut bytes =
        vec![0x45, 0x02, 0, 0, 0, 7, 0x40, 0, ttl, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to];
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    add_sum(&mut bytes);
    bytes.extend_from_slice(&[0x13, 0x88, 0x17, 0x70]);
    bytes.extend_from_slice(&(length - 20).to_be_bytes());
    bytes.extend_from_slice(&[0, 0]);
    bytes.resize(usize::from(length), b'x');
    bytes
}

/// Emulates while `programs` has the sockets of `a` and `b`.
fn emulate(programs: impl FnOnce(&UnixDatagram, &UnixDatagram)) -> (Finished, Account) {
    emulate_over(NETWORK, None, programs)
}

fn emulate_over(
    network: &str,
    folder: Option<&Path>,
    programs: impl FnOnce(&UnixDatagram, &UnixDatagram),
) -> (Finished, Account) {
    let (control, shared) = (Control::default(), Shared::default());
    let pair = || {
        let (ours, theirs) = UnixDatagram::pair().expect("a pair of sockets");
        theirs.set_nonblocking(true).expect("a socket");
        ours.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
        (ours, OwnedFd::from(theirs))
    };
    let ((a, device_a), (b, device_b)) = (pair(), pair());
    let hosts = [("a", device_a), ("b", device_b)];
    let hosts = hosts.map(|(node, device)| Host { node: node.to_owned(), device });
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let to = (&shared, &control);
            run(&point(network), hosts.into(), folder, Tables::memory(), to).expect("it runs")
        });
        programs(&a, &b);
        control.end.store(true, Ordering::Relaxed);
        while !control.ended.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        control.close.store(true, Ordering::Release);
        let Emulated { finished, account, .. } = thread.join().expect("no panic");
        account.assert_balance();
        assert_eq!(account.uncaptured_packets, 0);
        (finished, account)
    })
}

fn receive(socket: &UnixDatagram) -> Vec<u8> {
    let mut bytes = vec![0; 2000];
    let length = socket.recv(&mut bytes).expect("a packet");
    bytes.truncate(length);
    bytes
}

#[test]
fn a_packet_arrives_after_the_delay_with_a_smaller_ttl() {
    let (finished, account) = emulate(|a, b| {
        let clock = Clock::start();
        let sent = datagram(1, 3, 64, 100);
        a.send(&sent).expect("it is sent");
        let came = receive(b);
        // Two links, and 128 bytes at 10 Mbit/s on each.
        assert!(clock.now().as_nanos() >= 23_000_000 + 2 * 102_400);
        assert_eq!((came[8], sum(&came[..20])), (63, 0));
        assert_eq!((&came[..8], &came[12..]), (&sent[..8], &sent[12..]));
        b.send(&datagram(3, 1, 64, 100)).expect("it is sent");
        assert_eq!(receive(a)[8], 63);
    });
    let names: Vec<_> = finished.recording.flows.iter().map(|flow| &*flow.name).collect();
    assert_eq!(names[..2], ["other", "udp a:5000-b:6000"]);
    // The answer has the same ports, not the reverse ones.
    assert_eq!(names[2..], ["udp b:5000-a:6000"]);
    assert_eq!(
        (account.sent_packets, account.arrived_packets, account.in_flight_packets),
        (2, 2, 0)
    );
    assert_eq!(account.lateness.packets, 2);
    assert!(finished.digest.is_empty());
}

#[test]
fn everything_sent_is_accounted_for() {
    let (mut datagrams, mut messages) = (0, Vec::new());
    let (finished, account) = emulate(|a, b| {
        // At once, for a queue of five.
        (0..10).for_each(|_| {
            b.send(&datagram(3, 1, 64, 500)).expect("it is sent");
        });
        // No packet; to nobody; from somebody else; too big for the second link; at its last hop.
        a.send(b"no packet").expect("it is sent");
        a.send(&datagram(1, 99, 64, 10)).expect("it is sent");
        a.send(&datagram(3, 1, 64, 10)).expect("it is sent");
        let mut whole = datagram(1, 3, 64, 800);
        a.send(&whole).expect("it is sent");
        a.send(&datagram(1, 3, 1, 10)).expect("it is sent");
        a.set_read_timeout(Some(Duration::from_millis(400))).expect("a socket");
        let mut bytes = [0; 2000];
        while a.recv(&mut bytes).is_ok() {
            match (bytes[9], bytes[20], bytes[21]) {
                (17, 0x13, 0x88) => datagrams += 1,
                (1, kind, code) => messages.push((kind, code)),
                other => panic!("{other:?}"),
            }
        }
        // This one is on its way at the end.
        whole = datagram(1, 3, 64, 100);
        a.send(&whole).expect("it is sent");
        std::thread::sleep(Duration::from_millis(5));
    });
    messages.sort_unstable();
    assert_eq!(messages, [(3, 0), (3, 0), (3, 4), (11, 0)]);
    assert!((6..10).contains(&datagrams), "{datagrams}");
    let [a, b] = &account.hosts[..] else { panic!("two hosts") };
    assert_eq!((a.read_packets, a.sent_packets), (6, 3));
    assert_eq!((a.malformed_packets, a.unroutable_packets, a.answered_packets), (1, 2, 2));
    assert_eq!((b.read_packets, b.sent_packets, b.written_packets), (10, 10, 0));
    assert_eq!((a.written_packets, a.refused_packets), (datagrams + 4, 0));
    assert_eq!((account.sent_packets, account.message_packets), (13, 2));
    assert_eq!((account.arrived_packets, account.expired_packets), (datagrams + 2, 1));
    // The datagrams that did not come, and the one that was too big.
    assert_eq!((account.dropped_packets, account.in_flight_packets), (10 - datagrams + 1, 1));
    let far = finished.recording.links.iter().find(|link| link.name == "far.back");
    assert_eq!(far.and_then(|far| far.sent_packets), Some(datagrams));
}

/// RFC 4443 §2.4 (f), and as many as the account has.
#[test]
fn a_router_sends_few_messages_at_once() {
    let (mut came, mut took) = (0, Duration::ZERO);
    let begin = Clock::start();
    let (_, account) = emulate(|a, _| {
        for _ in 0..400 {
            a.send(&datagram(1, 99, 64, 10)).expect("it is sent");
        }
        a.set_read_timeout(Some(Duration::from_millis(200))).expect("a socket");
        while a.recv(&mut [0; 2000]).is_ok() {
            came += 1;
        }
        took = Duration::from_nanos(begin.now().as_nanos());
    });
    let host = &account.hosts[0];
    let messages = host.answered_packets;
    // The socket holds fewer.
    assert_eq!((host.unroutable_packets, messages), (400, came + host.refused_packets));
    // Fifty, and one for each further millisecond.
    assert!(messages >= 50 && u128::from(messages) <= 50 + took.as_millis(), "{messages}");
}

/// RFC 1191 §4, whatever the protocol: the quote is what was sent, and the captures have it, too.
#[test]
fn packets_that_are_too_big_are_answered_and_captured() {
    let network = NETWORK
        .replace(
            "to = 'b'\nrate = '10Mbit/s'\ndelay = '20ms'",
            "to = 's'\nrate = '10Mbit/s'\ndelay = '1ms'",
        )
        .replace("[links.apart]\nfrom = 'x'\nto = 'y'", "[links.last]\nfrom = 's'\nto = 'b'")
        .replace("duration = '20s'", "duration = '20s'\nrecord = { pcapng = ['near', 'far'] }");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("too-big");
    std::fs::create_dir_all(&folder).expect("a folder");
    let change = |at: usize, value: u8| {
        let mut bytes = datagram(1, 4, 64, 800);
        bytes[at] = value;
        add_sum(&mut bytes);
        bytes
    };
    // A datagram, one whose TTL ends behind the small link, an echo request with an identifier of 0, and generic
    // routing encapsulation.
    let mut echo = change(9, 1);
    echo[20..28].copy_from_slice(&[8, 0, 0, 0, 0, 0, 0, 1]);
    let sent = [change(8, 64), change(8, 2), echo, change(9, 47)];
    let (_, account) = emulate_over(&network, Some(&folder), |a, _| {
        for bytes in &sent {
            a.send(bytes).expect("it is sent");
            let answer = receive(a);
            assert_eq!(answer[12..20], [10, 0, 0, 2, 10, 0, 0, 1]);
            assert_eq!((&answer[20..22], &answer[24..28]), (&[3, 4][..], &[0, 0, 2, 88][..]));
            assert_eq!((sum(&answer[20..]), &answer[28..]), (0, &bytes[..548]));
        }
    });
    assert_eq!((account.sent_packets, account.message_packets, account.arrived_packets), (4, 4, 4));
    assert_eq!((account.dropped_packets, account.in_flight_packets), (4, 0));
    let real = |name: &str| captured(&folder.join(name), 500).len();
    assert_eq!((real("near.pcapng"), real("far.pcapng")), (8, 0));
}

/// The packets of a capture that are longer than this: those of the simulated call are shorter.
fn captured(file: &Path, longer: usize) -> Vec<Vec<u8>> {
    let file = std::fs::read(file).expect("a capture");
    let (mut rest, mut found) = (&file[..], Vec::new());
    while !rest.is_empty() {
        let word =
            |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().expect("4 bytes")) as usize;
        // Enhanced packet blocks.
        if word(0) == 6 && word(24) > longer {
            found.push(rest[28..28 + word(20)].to_vec());
        }
        rest = &rest[word(4)..];
    }
    found
}

/// RFC 791 §3.2, RFC 1812 §4.2.2.7: fragments as they arrive, are captured and are counted; a message about their
/// TTL for the first only.
#[test]
fn packets_that_may_be_fragmented_are() {
    let network = NETWORK
        .replace("duration = '20s'", "duration = '20s'\nrecord = { pcapng = ['near', 'far'] }");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fragments");
    std::fs::create_dir_all(&folder).expect("a folder");
    let may = |ttl, payload| {
        let mut bytes = datagram(1, 3, ttl, payload);
        // The data differs from byte to byte.
        (28..).zip(&mut bytes[28..]).for_each(|(at, byte): (u32, _)| *byte = at as u8);
        bytes[6] = 0;
        add_sum(&mut bytes);
        bytes
    };
    let whole = may(64, 1300);
    let mut pieces = Vec::new();
    let (finished, account) = emulate_over(&network, Some(&folder), |a, b| {
        a.send(&whole).expect("it is sent");
        pieces.extend((0..3).map(|_| receive(b)));
        // Its last hop is the link that cuts it: the router there has no TTL to send it on, nor to cut it.
        a.send(&may(1, 1300)).expect("it is sent");
        let answer = receive(a);
        assert_eq!((answer[20..22].to_vec(), answer[28 + 8]), (vec![11, 0], 1));
    });
    let told: Vec<_> = pieces.iter().map(|it| (it.len(), it[1] & 3, it[6], it[7], it[8])).collect();
    assert_eq!(told, [(596, 2, 0x20, 0, 63), (596, 2, 0x20, 72, 63), (176, 2, 0, 144, 63)]);
    let data: Vec<u8> = pieces.iter().flat_map(|piece| piece[20..].to_vec()).collect();
    assert_eq!(data, whole[20..]);
    assert!(pieces.iter().all(|piece| sum(&piece[..20]) == 0));
    assert_eq!((account.sent_packets, account.fragment_packets), (2, 2));
    assert_eq!((account.arrived_packets, account.expired_packets), (4, 1));
    assert_eq!((account.message_packets, account.dropped_packets), (1, 0));
    // The delay and the loss of the packet, and all bytes.
    let flow = finished.recording.flows.iter().find(|flow| flow.name.starts_with("udp a"));
    let flow = flow.expect("its flow");
    assert_eq!((flow.sent_packets, flow.received_packets, flow.lost_packets), (2, 2, 0));
    let seconds = finished.duration_s;
    // Fragments, and the whole packet that ended at the router.
    assert_eq!(
        (flow.throughput_bps.expect("a rate") * seconds / 8.0).round(),
        f64::from(596 + 596 + 176 + 1328)
    );
    assert_eq!((flow.goodput_bps.expect("a rate") * seconds / 8.0).round(), 1300.0);
    // On the first link whole; behind it in pieces, with the TTL of their hop.
    let ours = |name: &str| {
        let all = captured(&folder.join(name), 0).into_iter();
        all.filter(|it| it[4..6] == [0, 7]).collect::<Vec<_>>()
    };
    assert_eq!(ours("near.pcapng").iter().map(Vec::len).collect::<Vec<_>>(), [1328, 1328]);
    assert_eq!(ours("far.pcapng"), pieces);
}

/// A datagram that may be cut.
fn long(from: u8, to: u8, payload: usize) -> Vec<u8> {
    let mut bytes = datagram(from, to, 64, payload);
    bytes[6] = 0;
    add_sum(&mut bytes);
    bytes
}

/// Packets sent, received and lost, and the bytes of goodput, of the only flow of real packets.
fn counted(finished: &Finished) -> (u64, u64, u64, f64) {
    let real = |flow: &&talkspurt_record::FlowSummary| flow.name.starts_with("udp");
    let flow = finished.recording.flows.iter().find(real).expect("its flow");
    let bytes = flow.goodput_bps.expect("a rate") * finished.duration_s / 8.0;
    (flow.sent_packets, flow.received_packets, flow.lost_packets, bytes.round())
}

/// Nine fragments at once, for a queue of five behind the one that leaves: what arrives of them is of no use.
#[test]
fn a_packet_is_lost_with_any_of_its_fragments() {
    let network = NETWORK.replace("delay = '3ms'", "delay = '3ms'\nmtu = '9000B'");
    let (finished, account) = emulate_over(&network, None, |a, b| {
        a.send(&long(1, 3, 1300)).expect("it is sent");
        (0..3).for_each(|_| drop(receive(b)));
        a.send(&long(1, 3, 5000)).expect("it is sent");
        (0..6).for_each(|_| drop(receive(b)));
    });
    assert_eq!((account.sent_packets, account.fragment_packets), (2, 2 + 8));
    assert_eq!((account.arrived_packets, account.dropped_packets), (3 + 6, 3));
    assert_eq!(counted(&finished), (2, 1, 1, 1300.0));
}

#[test]
fn copies_of_fragments_count_no_second_time() {
    let network = NETWORK.replace("mtu = '600B'", "mtu = '600B'\nduplicate = 1.0");
    let (finished, account) = emulate_over(&network, None, |a, b| {
        a.send(&long(1, 3, 1300)).expect("it is sent");
        (0..6).for_each(|_| drop(receive(b)));
    });
    assert_eq!((account.copied_packets, account.arrived_packets), (3, 6));
    assert_eq!(counted(&finished), (1, 1, 0, 1300.0));
}

/// Fragments that the sender made are packets of their own; what is delivered is their datagram.
#[test]
fn fragments_of_the_sender_are_delivered_together() {
    let cut = |identification: u8| {
        let whole = long(1, 3, 1000);
        [(0, 512, 0x20), (512, 496, 0)].map(|(at, length, more)| {
            let mut piece = [&whole[..20], &whole[20 + at..20 + at + length]].concat();
            let total = (20 + length) as u16;
            piece[2..4].copy_from_slice(&total.to_be_bytes());
            (piece[5], piece[6], piece[7]) = (identification, more, (at / 8) as u8);
            add_sum(&mut piece);
            piece
        })
    };
    let (finished, _) = emulate(|a, b| {
        let ([first, last], [alone, _], [begin, end]) = (cut(8), cut(9), cut(10));
        // In another order, and one without its end.
        for piece in [last, alone, first, begin, end] {
            a.send(&piece).expect("it is sent");
            receive(b);
        }
    });
    let real: Vec<_> =
        finished.recording.flows.iter().filter(|flow| flow.name.starts_with("udp")).collect();
    // The fragment that came before the first has no ports.
    let goodput: f64 = real.iter().filter_map(|flow| flow.goodput_bps).sum();
    assert_eq!((goodput * finished.duration_s / 8.0).round(), 2000.0);
    assert_eq!(real.iter().map(|flow| flow.received_packets).sum::<u64>(), 5);
}

/// A link behind the small one carries even less: all are counted, and the destination can put them together.
#[test]
fn fragments_are_fragmented_again() {
    let network = NETWORK.replace("delay = '3ms'", "delay = '3ms'\nmtu = '300B'");
    let mut bytes = datagram(3, 1, 64, 1300);
    (28..).zip(&mut bytes[28..]).for_each(|(at, byte): (u32, _)| *byte = at as u8);
    bytes[6] = 0;
    add_sum(&mut bytes);
    let (_, account) = emulate_over(&network, None, |a, b| {
        b.send(&bytes).expect("it is sent");
        // 1308 bytes as 576, 576 and 156, these as 280, 280 and 16.
        let mut data = vec![None; 1308];
        for _ in 0..7 {
            let piece = receive(a);
            assert!(piece.len() <= 300 && sum(&piece[..20]) == 0);
            let offset = (usize::from(piece[6] & 0x1f) << 8 | usize::from(piece[7])) * 8;
            assert_eq!(piece[6] & 0x20 == 0, offset + piece.len() - 20 == 1308);
            (offset..).zip(&piece[20..]).for_each(|(at, byte)| {
                assert_eq!(data[at].replace(*byte), None);
            });
        }
        assert!(data.into_iter().eq(bytes[20..].iter().map(|byte| Some(*byte))));
    });
    assert_eq!((account.sent_packets, account.fragment_packets), (1, 6));
    assert_eq!((account.arrived_packets, account.dropped_packets), (7, 0));
}

#[test]
fn hosts_must_be_nodes_with_links_between_them() {
    let network = point(NETWORK).network;
    let said = |names: &[&str]| routes(&network, names.iter().copied()).err().unwrap_or_default();
    assert_eq!(said(&["a", "b"]), "");
    assert_eq!(said(&["a", "nowhere"]), "\"nowhere\" is no node");
    assert_eq!(said(&["a", "x"]), "no links lead from \"a\" to \"x\"");
}
