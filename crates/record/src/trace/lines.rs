//! The text of traces: ns-2's twelve columns (The ns Manual, "Trace and Monitoring Support") and nam's
//! events. Times are seconds with nine decimals. All lines of a packet share their end; the start differs
//! by event, time and link. A line is assembled by copying these pieces.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use talkspurt_proto::packet::Ecn;

use super::digits::{Short, eight};
use crate::layout::Layout;

/// The target format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `trace-all` of ns-2: event, time, from, to, type, bytes, flags, flow, source, destination,
    /// sequence number, packet.
    Ns2,
    /// `namtrace-all` of ns-2, for the network animator.
    Nam,
}

/// The kind of event, in the order that a trace uses at equal times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Act {
    Received,
    Enqueued,
    Dequeued,
    Dropped,
}

/// The kind of a packet: an index into [`WORDS`].
pub(super) type Word = u8;

/// The fields of a packet's lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) word: Word,
    /// ns-2's eighth flag, of SCTP alone and with `show_sctphdr_`: D for data; its letters for other
    /// chunks are not written.
    pub(super) chunk: Option<u8>,
    pub(super) ip_bytes: u32,
    pub(super) flow: u32,
    pub(super) src: u32,
    pub(super) dst: u32,
    pub(super) seq: u64,
    pub(super) uid: u32,
}

/// The end of a packet's lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    /// Fits words of 13 letters and the longest possible numbers.
    text: Short<168>,
    /// Position of its flags.
    flags: u8,
}

/// Maximum bytes per event: two lines in nam.
pub(super) const MOST: usize = 512;

/// ns-2's names of packet kinds (`packet_t` in its `common/packet.h`); ns-2 has no separate RTCP, no DCCP
/// Sync and no ICMP.
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

/// ns-2's flags: C for ECN-Echo, A for a reduced window, E for a mark, N for an ECN-capable packet.
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

/// ns-2's name for datagrams of a source of this kind.
pub(super) fn source(kind: Option<&str>) -> Word {
    let word = match kind {
        Some("cbr") => "cbr",
        Some("on_off") => "exp",
        _ => "udp",
    };
    WORDS.iter().position(|known| *known == word).unwrap_or_default() as Word
}

/// State shared by all lines.
#[derive(Debug)]
pub(super) struct Lines {
    dialect: Dialect,
    links: Vec<Wire>,
    flags: Vec<[u8; 7]>,
    /// The second of the last line, and its digits up to the point.
    second: (u64, Short<24>),
}

/// A link.
#[derive(Debug)]
struct Wire {
    from: u32,
    /// The receiving nodes.
    to: Vec<u32>,
    /// For each of them, both ends in the format of the dialect.
    texts: Vec<Short<40>>,
    /// With several receivers: the index of the receiver of each route's packets.
    receivers: BTreeMap<u32, usize>,
}

impl Lines {
    /// The state for these links, and the header text.
    pub(super) fn new(
        layout: &Layout,
        nodes: &BTreeMap<String, u32>,
        dialect: Dialect,
    ) -> (Self, Vec<u8>) {
        let links = layout.links.iter().map(|link| {
            let from = nodes[&link.from];
            let to: Vec<u32> = link.to.iter().map(|name| nodes[name]).collect();
            let text = |to: &u32| {
                let mut ends = Short::EMPTY;
                let words: [&[u8]; 3] = match dialect {
                    Dialect::Ns2 => [b" ", b" ", b" "],
                    Dialect::Nam => [b" -s ", b" -d ", b" -p "],
                };
                ends.text(words[0]).number(from.into());
                ends.text(words[1]).number((*to).into()).text(words[2]);
                ends
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
        let second = (u64::MAX, Short::EMPTY);
        let lines = Self { dialect, links: links.collect(), flags: flags.collect(), second };
        let head = match dialect {
            Dialect::Ns2 => String::new(),
            Dialect::Nam => head(layout, nodes),
        };
        (lines, head.into_bytes())
    }

    /// The sending node of a link.
    pub(super) fn from(&self, link: u32) -> u32 {
        self.links[link as usize].from
    }

    /// The receiver of a route's packets on a link; for a route without a flow (a router's answer), its
    /// final node.
    #[inline]
    pub(super) fn receiver(&self, link: u32, route: u32, end: u32) -> u32 {
        let wire = &self.links[link as usize];
        if wire.to.len() < 2 {
            return 0;
        }
        let known = wire.receivers.get(&route).copied();
        known.or_else(|| wire.to.iter().position(|node| *node == end)).unwrap_or_default() as u32
    }

    /// The end of a packet's lines.
    pub(super) fn tail(&self, named: &Named, flags: u8) -> Tail {
        let Named { word, chunk, ip_bytes, flow, src, dst, seq, uid } = *named;
        let [ip_bytes, flow, src, dst, uid] = [ip_bytes, flow, src, dst, uid].map(u64::from);
        let flags = &self.flags[usize::from(flags)];
        let (mut tail, mut at) = (Short::EMPTY, 0);
        tail.text(WORDS[usize::from(word)].as_bytes());
        match self.dialect {
            Dialect::Ns2 => {
                tail.text(b" ").number(ip_bytes).text(b" ");
                at += tail.len();
                tail.text(flags).text(chunk.as_slice()).text(b" ").number(flow);
                tail.text(b" ").number(src).text(b".").number(flow);
                tail.text(b" ").number(dst).text(b".").number(flow);
                tail.text(b" ").number(seq).text(b" ").number(uid).text(b"\n");
            }
            Dialect::Nam => {
                tail.text(b" -e ").number(ip_bytes).text(b" -c ").number(flow);
                tail.text(b" -i ").number(uid).text(b" -a ").number(flow);
                tail.text(b" -x {").number(src).text(b".").number(flow);
                tail.text(b" ").number(dst).text(b".").number(flow);
                tail.text(b" ").number(seq).text(b" ");
                at += tail.len();
                tail.text(flags).text(b" null}\n");
            }
        }
        Tail { text: tail, flags: at as u8 }
    }

    /// Changes the flags in a packet's lines.
    pub(super) fn flag(&self, tail: &mut Tail, flags: u8) {
        tail.text.replace(tail.flags.into(), &self.flags[usize::from(flags)]);
    }

    /// Writes an event of a packet on a link to one of its receivers; returns the number of bytes, at most
    /// [`MOST`].
    #[inline]
    pub(super) fn write(
        &mut self,
        act: Act,
        nanos: u64,
        (link, to): (u32, u32),
        tail: &Tail,
        text: &mut [u8],
    ) -> usize {
        let (second, rest) = (nanos / SECOND, nanos % SECOND);
        if self.second.0 != second {
            self.second = (second, Short::EMPTY);
            self.second.1.number(second).text(b".");
        }
        let ends = &self.links[link as usize].texts[to as usize];
        let letter = b"r+-d"[act as usize];
        let mut line = |at: usize, head: [u8; 5], length: usize| {
            text[at..at + 5].copy_from_slice(&head);
            let at = self.second.1.copy(at + length, text);
            text[at] = b'0' + (rest / 100_000_000) as u8;
            text[at + 1..at + 9].copy_from_slice(&eight(rest % 100_000_000));
            tail.text.copy(ends.copy(at + 9, text), text)
        };
        match self.dialect {
            Dialect::Ns2 => line(0, [letter, b' ', b' ', b' ', b' '], 2),
            Dialect::Nam => {
                let end = line(0, [letter, b' ', b'-', b't', b' '], 5);
                if act == Act::Dequeued { line(end, *b"h -t ", 5) } else { end }
            }
        }
    }
}

const SECOND: u64 = 1_000_000_000;

/// Okabe and Ito's colours, by their X11 names.
const COLOURS: [&str; 7] =
    ["blue", "DarkOrange", "SeaGreen", "magenta", "SkyBlue", "firebrick", "black"];

/// The header for nam: version, addresses, colours of flows, nodes, and links.
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
    for (name, number) in &order {
        let colour = layout.colours.get(*name).map_or("black", String::as_str);
        line(format_args!(
            "n -t * -a {number} -s {number} -S UP -v circle -c {colour} -i {colour}\n"
        ));
    }
    // nam draws one link for both directions; in a cell, each transmitter is one.
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
    // After the links: at the first line with a time, nam places the nodes it knows.
    for (name, number) in order {
        line(format_args!("n -t 0 -s {number} -S DLABEL -l \"{name}\" -L \"\"\n"));
    }
    text
}
