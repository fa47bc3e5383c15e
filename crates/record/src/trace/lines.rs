//! The text of traces: ns-2's twelve columns (The ns Manual, "Trace and Monitoring Support") and
//! nam's events. Times are seconds to the nanosecond; integers are formatted here, a line costs no
//! allocation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use talkspurt_proto::packet::Ecn;

use super::Word;
use crate::layout::Layout;

/// Which reader a trace is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `trace-all` of ns-2: event, time, from, to, type, bytes, flags, flow, source, destination,
    /// sequence number, packet.
    Ns2,
    /// `namtrace-all` of ns-2, for the network animator.
    Nam,
}

/// What happened, in the order in which a trace has it at equal times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Act {
    Received,
    Enqueued,
    Dequeued,
    Dropped,
}

/// A line that waits to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) at: u64,
    pub(super) seq: u64,
    pub(super) uid: u32,
    pub(super) link: u32,
    pub(super) ip_bytes: u32,
    pub(super) flow: u32,
    pub(super) src: u32,
    pub(super) dst: u32,
    /// Which of the nodes that the link leads to.
    pub(super) to: u32,
    pub(super) act: Act,
    pub(super) word: Word,
    pub(super) flags: u8,
}

const _: () = assert!(size_of::<Line>() <= 48);

/// ns-2's words for kinds of packet (`packet_t` in its `common/packet.h`); ns-2 knows no RTCP apart, no
/// Sync of DCCP and no ICMP.
const WORDS: [&str; 20] = [
    "udp",
    "cbr",
    "exp",
    "rtp",
    "rtcp",
    "tcp",
    "ack",
    "sctp",
    "tcpFriend",
    "tcpFriendCtl",
    "DCCP_Request",
    "DCCP_Response",
    "DCCP_Ack",
    "DCCP_Data",
    "DCCP_DataAck",
    "DCCP_Close",
    "DCCP_CloseReq",
    "DCCP_Reset",
    "DCCP",
    "icmp",
];
pub(super) const UDP: Word = 0;
pub(super) const RTP: Word = 3;
pub(super) const RTCP: Word = 4;
pub(super) const TCP: Word = 5;
pub(super) const ACK: Word = 6;
pub(super) const SCTP: Word = 7;
pub(super) const TFRC: Word = 8;
pub(super) const TFRC_ACK: Word = 9;
pub(super) const DCCP: Word = 10;
pub(super) const ICMP: Word = 19;

/// ns-2's flags: C of an ECN-Echo, A of a window reduced, E of a mark, N of an ECN-capable packet.
pub(super) const ECHO: u8 = 1;
pub(super) const REDUCED: u8 = 2;
const MARKED: u8 = 4;
const CAPABLE: u8 = 8;

/// The flags of an IP header's ECN field.
pub(super) fn ecn(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect0 | Ecn::Ect1 => CAPABLE,
        Ecn::Ce => CAPABLE | MARKED,
    }
}

/// What ns-2 calls datagrams of a source of this kind.
pub(super) fn source(kind: Option<&str>) -> Word {
    let word = match kind {
        Some("cbr") => "cbr",
        Some("on_off") => "exp",
        _ => "udp",
    };
    WORDS.iter().position(|known| *known == word).unwrap_or_default() as Word
}

/// What does not change from line to line.
#[derive(Debug)]
pub(super) struct Lines {
    dialect: Dialect,
    links: Vec<Wire>,
    flags: Vec<[u8; 7]>,
}

/// A link.
#[derive(Debug)]
struct Wire {
    from: u32,
    /// The nodes it leads to.
    to: Vec<u32>,
    /// For each of them, both ends as the dialect has them.
    texts: Vec<Vec<u8>>,
    /// Where there are several: which of them the packets of a route go to.
    receivers: BTreeMap<u32, usize>,
}

impl Lines {
    /// The text of these links, and what stands before the first line.
    pub(super) fn new(
        layout: &Layout,
        nodes: &BTreeMap<String, u32>,
        dialect: Dialect,
    ) -> (Self, Vec<u8>) {
        let links = layout.links.iter().map(|link| {
            let from = nodes[&link.from];
            let to: Vec<u32> = link.to.iter().map(|name| nodes[name]).collect();
            let text = |to: &u32| match dialect {
                Dialect::Ns2 => format!(" {from} {to} ").into_bytes(),
                Dialect::Nam => format!(" -s {from} -d {to} -p ").into_bytes(),
            };
            let texts = to.iter().map(text).collect();
            Wire { from, to, texts, receivers: link.receivers.clone() }
        });
        let flags = (0..16_u8).map(|bits| {
            let letter = |bit, letter| if bits & bit != 0 { letter } else { b'-' };
            let (echo, reduced) = (letter(ECHO, b'C'), letter(REDUCED, b'A'));
            let (marked, capable) = (letter(MARKED, b'E'), letter(CAPABLE, b'N'));
            [echo, b'-', b'-', reduced, marked, b'-', capable]
        });
        let lines = Self { dialect, links: links.collect(), flags: flags.collect() };
        let head = match dialect {
            Dialect::Ns2 => String::new(),
            Dialect::Nam => head(layout, nodes),
        };
        (lines, head.into_bytes())
    }

    /// The node before a link.
    pub(super) fn from(&self, link: u32) -> u32 {
        self.links[link as usize].from
    }

    /// Which of the nodes that a link leads to takes the packets of a route: that of a route which no
    /// flow has (a router's answer) is the node it ends at.
    #[inline]
    pub(super) fn receiver(&self, link: u32, route: u32, end: u32) -> u32 {
        let wire = &self.links[link as usize];
        if wire.to.len() < 2 {
            return 0;
        }
        let known = wire.receivers.get(&route).copied();
        known.or_else(|| wire.to.iter().position(|node| *node == end)).unwrap_or_default() as u32
    }

    fn ends(&self, line: &Line) -> &[u8] {
        &self.links[line.link as usize].texts[line.to as usize]
    }

    /// Appends the text of a line.
    pub(super) fn write(&self, line: &Line, text: &mut Vec<u8>) {
        match self.dialect {
            Dialect::Ns2 => self.ns2(line, text),
            Dialect::Nam => {
                let letter = b"r+-d"[line.act as usize];
                self.nam(letter, line, text);
                if line.act == Act::Dequeued {
                    self.nam(b'h', line, text);
                }
            }
        }
    }

    fn ns2(&self, line: &Line, text: &mut Vec<u8>) {
        text.extend_from_slice(&[b"r+-d"[line.act as usize], b' ']);
        seconds(line.at, text);
        text.extend_from_slice(self.ends(line));
        text.extend_from_slice(WORDS[usize::from(line.word)].as_bytes());
        text.push(b' ');
        integer(line.ip_bytes.into(), text);
        text.push(b' ');
        text.extend_from_slice(&self.flags[usize::from(line.flags)]);
        text.push(b' ');
        integer(line.flow.into(), text);
        for node in [line.src, line.dst] {
            text.push(b' ');
            integer(node.into(), text);
            text.push(b'.');
            integer(line.flow.into(), text);
        }
        text.push(b' ');
        integer(line.seq, text);
        text.push(b' ');
        integer(line.uid.into(), text);
        text.push(b'\n');
    }

    fn nam(&self, letter: u8, line: &Line, text: &mut Vec<u8>) {
        text.extend_from_slice(&[letter, b' ', b'-', b't', b' ']);
        seconds(line.at, text);
        text.extend_from_slice(self.ends(line));
        text.extend_from_slice(WORDS[usize::from(line.word)].as_bytes());
        let numbers: [(&[u8], u64); 4] = [
            (b" -e ", line.ip_bytes.into()),
            (b" -c ", line.flow.into()),
            (b" -i ", line.uid.into()),
            (b" -a ", line.flow.into()),
        ];
        for (word, number) in numbers {
            text.extend_from_slice(word);
            integer(number, text);
        }
        text.extend_from_slice(b" -x {");
        for node in [line.src, line.dst] {
            integer(node.into(), text);
            text.push(b'.');
            integer(line.flow.into(), text);
            text.push(b' ');
        }
        integer(line.seq, text);
        text.push(b' ');
        text.extend_from_slice(&self.flags[usize::from(line.flags)]);
        text.extend_from_slice(b" null}\n");
    }
}

/// Okabe and Ito's colours, by names that X11 has.
const COLOURS: [&str; 7] =
    ["blue", "DarkOrange", "SeaGreen", "magenta", "SkyBlue", "firebrick", "black"];

/// What nam wants to know first: its version, addresses, colours of flows, nodes, and links.
fn head(layout: &Layout, nodes: &BTreeMap<String, u32>) -> String {
    let mut text = String::from(
        "V -t * -v 1.0a5 -a 0\nA -t * -n 1 -p 0 -o 0x7fffffff -c 30 -a 1\n\
         A -t * -h 1 -m 1073741823 -s 0\n",
    );
    let mut line = |words: std::fmt::Arguments<'_>| {
        let _ = text.write_fmt(words);
    };
    for (flow, colour) in (0..layout.flows.len()).zip(COLOURS.iter().cycle()) {
        line(format_args!("c -t * -i {flow} -n {colour}\n"));
    }
    let mut order: Vec<_> = nodes.iter().collect();
    order.sort_by_key(|(_, number)| **number);
    for (_, number) in &order {
        line(format_args!("n -t * -a {number} -s {number} -S UP -v circle -c black -i black\n"));
    }
    // nam draws one link for both directions; of a cell, each transmitter is one.
    let mut drawn = BTreeSet::new();
    let hops = layout.links.iter().flat_map(|link| link.to.iter().map(move |to| (link, to)));
    for (link, to) in hops {
        let (from, to) = (nodes[&link.from], nodes[to]);
        if !drawn.insert((from.min(to), from.max(to))) {
            continue;
        }
        let (rate, delay) = (link.rate_bps, link.delay.as_secs_f64());
        line(format_args!("l -t * -s {from} -d {to} -S UP -r {rate} -D {delay} -c black\n"));
        for (from, to) in [(from, to), (to, from)] {
            line(format_args!("q -t * -s {from} -d {to} -a 0.5\n"));
        }
    }
    // Behind the links: nam places the nodes by those it knows when it meets a line with a time.
    for (name, number) in order {
        line(format_args!("n -t 0 -s {number} -S DLABEL -l \"{name}\" -L \"\"\n"));
    }
    text
}

/// Seconds with nine decimals.
fn seconds(nanos: u64, text: &mut Vec<u8>) {
    integer(nanos / 1_000_000_000, text);
    text.push(b'.');
    let mut rest = (nanos % 1_000_000_000) as u32;
    let mut digits = [b'0'; 9];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text.extend_from_slice(&digits);
}

fn integer(mut value: u64, text: &mut Vec<u8>) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[at..]);
}
