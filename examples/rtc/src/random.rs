//! Random packets that are valid.

use std::num::NonZeroU32;

use bytes::Bytes;
use talkspurt_proto::rtcp::congestion::{ArrivalOffset, CongestionControl, Metric, Stream};
use talkspurt_proto::rtcp::feedback::IntraRequest;
use talkspurt_proto::rtcp::{
    Compound, Feedback, Lost, Message, NtpTime, ReportBlock, SenderInfo, TransportWide,
};
use talkspurt_proto::rtp::Packet;
use talkspurt_proto::{Ecn, Payload, Rng};

/// Inputs of each test.
pub(crate) const COUNT: usize = 4000;

/// What a peer does not know is left out.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) rfc8888: bool,
    /// Runs of times of two bytes in transport-wide feedback.
    pub(crate) late_runs: bool,
    /// Entries of a NACK or a FIR.
    pub(crate) entries: u64,
}

fn word(rng: &mut Rng) -> u32 {
    rng.bits() as u32
}

fn some(rng: &mut Rng, most: u64) -> usize {
    1 + rng.below(most) as usize
}

fn several<T>(rng: &mut Rng, count: usize, mut one: impl FnMut(&mut Rng) -> T) -> Vec<T> {
    (0..count).map(|_| one(rng)).collect()
}

fn block(rng: &mut Rng) -> ReportBlock {
    ReportBlock {
        ssrc: word(rng),
        fraction_lost: word(rng) as u8,
        cumulative_lost: word(rng) as i32 >> 8,
        highest_sequence: word(rng),
        jitter: word(rng),
        last_sr: word(rng),
        delay_since_last_sr: word(rng),
    }
}

fn metric(rng: &mut Rng) -> Metric {
    if rng.chance(0.3) {
        return Metric::NotReceived;
    }
    let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][rng.below(4) as usize];
    let arrival = match rng.below(8) {
        0 => ArrivalOffset::OverRange,
        1 => ArrivalOffset::Unavailable,
        _ => ArrivalOffset::Known(rng.below(0x1ffe) as u16),
    };
    Metric::Received { ecn, arrival }
}

fn stream(rng: &mut Rng) -> Stream {
    let count = rng.below(60) as usize;
    let metrics = several(rng, count, metric);
    Stream { ssrc: word(rng), begin: word(rng) as u16, metrics }
}

/// Runs of packets that are lost, come soon, or late or out of order.
fn transport_wide(rng: &mut Rng, limits: Limits) -> TransportWide {
    let base = word(rng) as u16;
    let mut statuses = Vec::new();
    let mut was_late = false;
    for _ in 0..some(rng, 12) {
        let kind = rng.below(if was_late && !limits.late_runs { 2 } else { 3 });
        was_late = kind == 2;
        let most = [1, 3, 40][rng.below(3) as usize];
        let most = if was_late && !limits.late_runs { 1 } else { most };
        for _ in 0..some(rng, most) {
            statuses.push(match kind {
                0 => None,
                1 => Some(rng.below(256) as i16),
                _ => Some(word(rng) as i16),
            });
        }
    }
    // The last one reported on was received.
    statuses.push(Some(rng.below(256) as i16));
    let numbered = (0..).zip(&statuses);
    let received = numbered
        .filter_map(|(place, delta)| delta.map(|delta| (base.wrapping_add(place), Some(delta))));
    TransportWide {
        base,
        count: statuses.len() as u16,
        reference_time: word(rng) >> 8,
        feedback_count: word(rng) as u8,
        received: received.collect(),
    }
}

/// REMB of draft-alvestrand-rmcat-remb-03 §2.2, with a rate that a 32-bit float holds too.
fn remb(rng: &mut Rng) -> Message {
    let streams = some(rng, 5);
    let bits = (rng.below(40) as u32) << 18 | some(rng, 0x3_fffe) as u32;
    let mut data = b"REMB".to_vec();
    data.extend_from_slice(&((streams as u32) << 24 | bits).to_be_bytes());
    (0..streams).for_each(|_| data.extend_from_slice(&word(rng).to_be_bytes()));
    Message::Application { media: 0, data }
}

fn message(rng: &mut Rng, limits: Limits) -> Message {
    let media = word(rng);
    let entries = some(rng, limits.entries);
    match rng.below(if limits.rfc8888 { 6 } else { 5 }) {
        0 => {
            let lost =
                |rng: &mut Rng| Lost { first: word(rng) as u16, following: word(rng) as u16 };
            Message::Nack { media, lost: several(rng, entries, lost) }
        }
        1 => Message::PictureLoss { media },
        2 => {
            let one = |rng: &mut Rng| IntraRequest { ssrc: word(rng), sequence: word(rng) as u8 };
            Message::FullIntra(several(rng, entries, one))
        }
        3 => Message::TransportWide { media, report: transport_wide(rng, limits) },
        4 => remb(rng),
        _ => {
            let count = rng.below(4) as usize;
            let streams = several(rng, count, stream);
            Message::CongestionControl(CongestionControl { streams, timestamp: word(rng) })
        }
    }
}

/// A compound packet, one in four of them reduced.
pub(crate) fn compound(rng: &mut Rng, limits: Limits) -> Compound {
    let reduced = rng.chance(0.25);
    let count = if reduced { some(rng, 3) } else { rng.below(4) as usize };
    let feedback =
        several(rng, count, |rng| Feedback { sender: word(rng), message: message(rng, limits) });
    if reduced {
        return Compound { ssrc: feedback[0].sender, feedback, reduced, ..Compound::default() };
    }
    let sender = rng.chance(0.5).then(|| SenderInfo {
        // In this century, which other libraries' clocks hold.
        ntp: NtpTime(rng.bits() % (1 << 61) + (0xe000_0000 << 32)),
        rtp_timestamp: word(rng),
        packets: word(rng),
        octets: word(rng),
    });
    let blocks = rng.below(32) as usize;
    let letters = some(rng, 60);
    let cname = several(rng, letters, |rng| ['a', 'Z', '0', '@', 'é', '✓'][rng.below(6) as usize]);
    Compound {
        ssrc: word(rng),
        sender,
        reports: several(rng, blocks, block),
        cname: cname.into_iter().collect(),
        feedback,
        bye: rng.chance(0.2),
        reduced,
    }
}

/// A packet with everything that a header here can have.
pub(crate) fn packet(rng: &mut Rng) -> Packet {
    let length = some(rng, 300);
    let payload: Bytes = several(rng, length, |rng| word(rng) as u8).into();
    Packet {
        payload_type: word(rng) as u8 & 0x7f,
        marker: rng.chance(0.5),
        sequence: word(rng) as u16,
        timestamp: word(rng),
        ssrc: word(rng),
        csrc: rng.chance(0.3).then(|| NonZeroU32::new(word(rng) | 1)).flatten(),
        transport: rng.chance(0.5).then(|| word(rng) as u16),
        padding: if rng.chance(0.3) { word(rng) as u8 } else { 0 },
        payload: Payload::Real(payload),
    }
}
