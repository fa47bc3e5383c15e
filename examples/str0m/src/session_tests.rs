//! RTP and RTCP of str0m: each side reads what the other writes, field by field.

use std::collections::BTreeMap;

use talkspurt_proto::rtcp::feedback;
use talkspurt_proto::rtcp::{
    Compound, Feedback, Lost, Message, NtpTime, ReportBlock, SenderInfo, TransportWide,
};
use talkspurt_proto::rtp::{Packet, rtx};
use talkspurt_proto::wire::Hints;
use talkspurt_proto::{Instant as OurInstant, Rng};

use super::*;
use crate::random::{self, COUNT, Limits};
use str0m::media::KeyframeRequestKind;
use str0m::rtp::RawPacket;
use str0m::rtp::rtcp::{ReceptionReport, Rtcp, SdesType, Twcc};

/// It reads no more entries of a NACK and has no RFC 8888; and behind a run of times of two bytes it goes on in
/// the middle of that run, where the draft has two bytes for each (draft-holmer-rmcat-transport-wide-cc-extensions-01
/// §3.1.5): `buf = &buf[n..]` in its `rtp/rtcp/twcc.rs`.
const LIMITS: Limits = Limits { rfc8888: false, late_runs: false, entries: 31 };
const SSRC: u32 = 42;
const STEP: StdDuration = StdDuration::from_millis(10);
/// Tag and index of SRTCP, whose first bit says that the packet is encrypted (RFC 7714 §9.2).
const SRTCP_BYTES: usize = plain::TAG + 4;

/// Two ends that are connected.
struct Pair {
    now: StdInstant,
    ends: [Box<Rtc>; 2],
    rtcp_sent: u32,
    seen: Seen,
}

/// What left the ends, and what they said of it.
#[derive(Default)]
struct Seen {
    rtcp: Vec<(Vec<u8>, Vec<Rtcp>)>,
    rtp: Vec<(Vec<u8>, RtpHeaderAndBytes)>,
    read: Vec<Rtcp>,
    read_rtp: Vec<RtpHeaderAndBytes>,
    delivered: Vec<str0m::rtp::RtpPacket>,
}

type RtpHeaderAndBytes = (str0m::rtp::RtpHeader, Vec<u8>);

impl Pair {
    fn new() -> Self {
        let now = StdInstant::now() + StdDuration::from_secs(86_400);
        let ends = [true, false].map(|opens| {
            let mut rtc = start(config(opens).enable_raw_packets(true), now, opens);
            let mut direct = rtc.direct_api();
            let (ssrc, again) = (SSRC.into(), Some(repair(SSRC).into()));
            if opens {
                direct.declare_stream_tx(ssrc, again, mid(), None);
            } else {
                direct.expect_stream_rx(ssrc, again, mid(), None);
            }
            rtc
        });
        let mut pair = Self { now, ends, rtcp_sent: 0, seen: Seen::default() };
        for _ in 0..200 {
            pair.step(|_, _| true);
        }
        pair.seen = Seen::default();
        pair
    }

    /// One step of time; a datagram arrives if `passes` says so of its sender's place and its bytes.
    fn step(&mut self, mut passes: impl FnMut(usize, &[u8]) -> bool) {
        self.now += STEP;
        for place in 0..2 {
            self.ends[place].handle_input(str0m::Input::Timeout(self.now)).expect("alive");
            for bytes in self.drain(place) {
                if passes(place, &bytes) {
                    self.arrive(1 - place, &bytes);
                }
            }
        }
    }

    fn arrive(&mut self, place: usize, bytes: &[u8]) {
        let ends = [address(true), address(false)];
        let received = Receive::new(Protocol::Udp, ends[1 - place], ends[place], bytes);
        let input = str0m::Input::Receive(self.now, received.expect("a datagram"));
        self.ends[place].handle_input(input).expect("alive");
    }

    /// What an end sends, until it waits. Its descriptions of a datagram follow it.
    fn drain(&mut self, place: usize) -> Vec<Vec<u8>> {
        let (mut sent, mut calls) = (Vec::new(), 0);
        loop {
            match self.ends[place].poll_output().expect("alive") {
                str0m::Output::Timeout(next) if next <= self.now && calls < CALLS => {
                    calls += 1;
                    let input = str0m::Input::Timeout(self.now);
                    self.ends[place].handle_input(input).expect("alive");
                }
                str0m::Output::Timeout(_) => return sent,
                str0m::Output::Transmit(one) => sent.push(one.contents.to_vec()),
                str0m::Output::Event(str0m::Event::RawPacket(raw)) => match *raw {
                    RawPacket::RtcpTx(part) => {
                        let bytes = sent.last().expect("it was sent");
                        match self.seen.rtcp.last_mut() {
                            Some((same, parts)) if same == bytes => parts.push(part),
                            _ => self.seen.rtcp.push((bytes.clone(), vec![part])),
                        }
                    }
                    RawPacket::RtpTx(header, bytes) => {
                        let datagram = sent.last().expect("it was sent");
                        let plain = datagram[..datagram.len() - plain::TAG].to_vec();
                        self.seen.rtp.push((plain, (header, bytes)));
                    }
                    RawPacket::RtcpRx(part) => self.seen.read.push(part),
                    RawPacket::RtpRx(header, bytes) => self.seen.read_rtp.push((header, bytes)),
                },
                str0m::Output::Event(str0m::Event::RtpPacket(packet)) => {
                    self.seen.delivered.push(packet);
                }
                str0m::Output::Event(_) => {}
            }
        }
    }

    /// RTCP of ours arrives at an end.
    fn rtcp_arrives(&mut self, place: usize, rtcp: &[u8]) {
        self.rtcp_sent += 1;
        let index = (1 << 31 | self.rtcp_sent).to_be_bytes();
        self.arrive(place, &[rtcp, &[0; plain::TAG], &index].concat());
        self.drain(place);
    }

    /// RTP of ours arrives at an end.
    fn rtp_arrives(&mut self, place: usize, rtp: &[u8]) {
        self.arrive(place, &[rtp, &[0; plain::TAG]].concat());
        self.drain(place);
    }

    /// The sender sends a packet of its video.
    fn send(&mut self, number: u64, payload: Vec<u8>, marker: bool) {
        let now = self.now;
        let time = number as u32 * 3000;
        let write = RtpWrite::new(Pt::from(VIDEO), number.into(), time, now, payload);
        let mut direct = self.ends[0].direct_api();
        let stream = direct.stream_tx(&SSRC.into()).expect("declared");
        stream.write_rtp(write.marker(marker).nackable(true));
        // No second change before this one is drained.
        self.drain(0).into_iter().for_each(|bytes| self.arrive(1, &bytes));
        self.drain(1);
    }
}

fn block(report: &ReceptionReport) -> ReportBlock {
    ReportBlock {
        ssrc: *report.ssrc,
        fraction_lost: report.fraction_lost,
        cumulative_lost: (report.packets_lost << 8) as i32 >> 8,
        highest_sequence: report.max_seq,
        jitter: report.jitter,
        last_sr: report.last_sr_time,
        delay_since_last_sr: report.last_sr_delay,
    }
}

/// A report as packets and their times, which is what str0m makes of it.
fn times(report: &TransportWide) -> Vec<(u16, Option<i64>)> {
    let mut times: BTreeMap<u16, i64> = BTreeMap::new();
    for (number, at) in report.arrivals_us() {
        times.insert(number.wrapping_sub(report.base), at.expect("all times"));
    }
    (0..report.count).map(|place| (place, times.get(&place).copied())).collect()
}

fn times_of(twcc: &Twcc) -> Vec<(u16, Option<i64>)> {
    // Far enough from its origin for times before it.
    let origin = StdInstant::now() + StdDuration::from_secs(86_400 * 30);
    let statuses = twcc.clone().into_iter(origin, u64::from(twcc.base_seq).into());
    let read = statuses.map(|(number, _, at)| {
        let us = at.map(|at| {
            at.checked_duration_since(origin).map_or_else(
                || -(origin.duration_since(at).as_micros() as i64),
                |since| since.as_micros() as i64,
            )
        });
        ((*number as u16).wrapping_sub(twcc.base_seq), us)
    });
    read.collect()
}

/// What str0m says of the parts of a compound packet is what they say in our form.
fn same(parts: &[Rtcp], ours: &Compound) {
    let mut reports = Vec::new();
    let mut feedback = ours.feedback.iter();
    let mut has_report = false;
    for part in parts {
        let mut next = |sender: u32| {
            let one = feedback.next().unwrap_or_else(|| panic!("{parts:?}: {ours:?}"));
            assert_eq!(sender, one.sender);
            &one.message
        };
        match part {
            Rtcp::SenderReport(sr) => {
                has_report = true;
                let info = sr.sender_info;
                let since = info.ntp_time.duration_since(std::time::UNIX_EPOCH).expect("now");
                let mine = ours.sender.expect("a sender report");
                assert_eq!(*info.ssrc, ours.ssrc);
                // It computes with floats, whose 53 bits are fractions of half a microsecond.
                let ntp = NtpTime::from(OurInstant::from_nanos(since.as_nanos() as u64));
                assert!(ntp.0.abs_diff(mine.ntp.0) < 1 << 12, "{ntp:?} {mine:?}");
                let theirs = SenderInfo {
                    ntp: mine.ntp,
                    rtp_timestamp: info.rtp_time.numer() as u32,
                    packets: info.sender_packet_count,
                    octets: info.sender_octet_count,
                };
                assert_eq!(theirs, mine);
                reports.extend(sr.reports.iter().map(block));
            }
            Rtcp::ReceiverReport(rr) => {
                has_report = true;
                assert_eq!(*rr.sender_ssrc, ours.ssrc);
                reports.extend(rr.reports.iter().map(block));
            }
            Rtcp::SourceDescription(all) => {
                for sdes in all.reports.iter().filter(|sdes| *sdes.ssrc == ours.ssrc) {
                    let names = sdes.values.iter().filter(|(kind, _)| *kind == SdesType::CNAME);
                    let names: Vec<&str> = names.map(|(_, name)| name.as_str()).collect();
                    assert_eq!(names, [&ours.cname]);
                }
            }
            Rtcp::Goodbye(bye) => {
                assert_eq!(bye.reports.iter().any(|ssrc| **ssrc == ours.ssrc), ours.bye);
            }
            Rtcp::Nack(nack) => {
                let entry = |pid, blp| Lost { first: pid, following: blp };
                let lost = nack.reports.iter().map(|one| entry(one.pid, one.blp)).collect();
                let theirs = Message::Nack { media: *nack.ssrc, lost };
                assert_eq!(theirs, *next(*nack.sender_ssrc));
            }
            Rtcp::Pli(pli) => {
                let theirs = Message::PictureLoss { media: *pli.ssrc };
                assert_eq!(theirs, *next(*pli.sender_ssrc));
            }
            Rtcp::Fir(fir) => {
                let request = |ssrc, sequence| feedback::IntraRequest { ssrc, sequence };
                let all = fir.reports.iter().map(|one| request(*one.ssrc, one.seq_no));
                let theirs = Message::FullIntra(all.collect());
                assert_eq!(theirs, *next(*fir.sender_ssrc));
            }
            Rtcp::Twcc(twcc) => {
                let Message::TransportWide { media, report } = next(*twcc.sender_ssrc) else {
                    panic!("{twcc:?}");
                };
                let theirs = (*twcc.ssrc, twcc.base_seq, twcc.status_count);
                assert_eq!(theirs, (*media, report.base, report.count));
                let theirs = (twcc.reference_time, twcc.feedback_count);
                assert_eq!(theirs, (report.reference_time, report.feedback_count));
                assert_eq!(times_of(twcc), times(report));
            }
            Rtcp::Remb(remb) => {
                let Message::Application { media: 0, data } = next(*remb.sender_ssrc) else {
                    panic!("{remb:?}");
                };
                let rate = feedback::remb(data).expect("REMB");
                // What it sends is cut to the bits of the field.
                let cut = (remb.bitrate as u64).saturating_sub(rate.as_bps());
                assert!(cut <= rate.as_bps() >> 17, "{remb:?} {rate:?}");
                let streams: Vec<u8> =
                    remb.ssrcs.iter().flat_map(|ssrc| ssrc.to_be_bytes()).collect();
                assert_eq!(data[8..], streams);
            }
            Rtcp::ExtendedReport(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(feedback.next(), None::<&Feedback>);
    assert_eq!((has_report, &reports), (!ours.reduced, &ours.reports));
}

#[test]
fn str0m_reads_our_rtcp() {
    let mut pair = Pair::new();
    let mut rng = Rng::new(5, "ours");
    for number in 0..COUNT {
        let written = random::compound(&mut rng, LIMITS);
        let mut bytes = Vec::new();
        wire::emit_frame(&Frame::Rtcp(Box::new(written.clone())), &mut bytes);
        if bytes.len() > 1400 {
            // Its datagrams are no longer.
            continue;
        }
        pair.rtcp_arrives(0, &bytes);
        let parts = std::mem::take(&mut pair.seen.read);
        assert!(!parts.is_empty(), "{number}: {written:?}");
        same(&parts, &written);
    }
}

fn ours(header: &str0m::rtp::RtpHeader, padding: u8, payload: &[u8]) -> Packet {
    let csrc = header.csrc.first().filter(|_| header.csrc_count > 0);
    Packet {
        payload_type: *header.payload_type,
        marker: header.marker,
        sequence: header.sequence_number,
        timestamp: header.timestamp,
        ssrc: *header.ssrc,
        csrc: csrc.and_then(|csrc| (*csrc).try_into().ok()),
        transport: header.ext_vals.transport_cc,
        padding,
        payload: Payload::Real(Bytes::copy_from_slice(payload)),
    }
}

#[test]
fn str0m_reads_our_rtp() {
    let mut pair = Pair::new();
    let mut rng = Rng::new(6, "ours");
    for number in 0..COUNT {
        let mut written = random::packet(&mut rng);
        (written.payload_type, written.ssrc) = (VIDEO, SSRC);
        // It counts what it was sent once, and not what is far ahead.
        written.sequence = (number as u16).wrapping_mul(3);
        let mut bytes = Vec::new();
        wire::emit_frame(&Frame::Rtp(written.clone()), &mut bytes);
        pair.rtp_arrives(1, &bytes);
        let mut read = std::mem::take(&mut pair.seen.read_rtp);
        let (header, payload) = read.pop().unwrap_or_else(|| panic!("{number}: {written:?}"));
        assert_eq!(header.has_padding, written.padding > 0);
        assert_eq!(ours(&header, written.padding, &payload), written, "{number}");
    }
}

/// A call in which packets are lost, with everything that str0m then sends.
#[test]
fn we_read_what_str0m_sends() {
    let mut pair = Pair::new();
    let mut rng = Rng::new(7, "theirs");
    let mut originals = BTreeMap::new();
    for number in 0..3000_u64 {
        let length = 1 + rng.below(1000) as usize;
        let payload: Vec<u8> = (0..length).map(|_| rng.bits() as u8).collect();
        let sequence = 60_000 + number;
        originals.insert(sequence as u16, payload.clone());
        let mut direct = pair.ends[1].direct_api();
        let stream = direct.stream_rx(&SSRC.into()).expect("expected");
        match rng.below(40) {
            0 => stream.request_keyframe(KeyframeRequestKind::Pli),
            1 => stream.request_keyframe(KeyframeRequestKind::Fir),
            2 => stream.request_remb(Bitrate::from(1 + rng.below(1 << 40))),
            _ => {}
        }
        pair.drain(1).into_iter().for_each(|bytes| pair.arrive(0, &bytes));
        pair.drain(0);
        pair.send(sequence, payload, rng.chance(0.3));
        for _ in 0..rng.below(3) {
            pair.step(|place, bytes| {
                let is_media = place == 0 && bytes[0] >> 6 == 2 && !(192..224).contains(&bytes[1]);
                !(is_media && rng.chance(0.1))
            });
        }
    }
    let mut kinds = BTreeMap::new();
    for (bytes, parts) in &pair.seen.rtcp {
        let read = wire::rtcp::parse(&bytes[..bytes.len() - SRTCP_BYTES]);
        let read = read.unwrap_or_else(|why| panic!("{why}: {parts:?}"));
        same(parts, &read);
        for part in parts {
            let name = format!("{part:?}");
            let name = name.split(['(', ' ', '{']).next().unwrap_or_default().to_owned();
            *kinds.entry(name).or_insert(0) += 1;
        }
    }
    for kind in [
        "SenderReport",
        "ReceiverReport",
        "SourceDescription",
        "Nack",
        "Pli",
        "Fir",
        "Twcc",
        "Remb",
    ] {
        assert!(kinds.get(kind).is_some_and(|count| *count > 5), "{kind}: {kinds:?}");
    }
    let mut again = 0;
    for (bytes, (header, written)) in &pair.seen.rtp {
        let read = wire::rtp::parse(&bytes.clone().into(), Hints::default()).expect("valid");
        let Payload::Real(payload) = &read.payload else { panic!("{read:?}") };
        assert_eq!(header.has_padding, read.padding > 0);
        assert_eq!(ours(header, read.padding, payload), read);
        assert!(
            written.ends_with(&bytes[bytes.len() - payload.len() - usize::from(read.padding)..])
        );
        if *header.ssrc == repair(SSRC) && read.padding == 0 {
            let original = rtx::original(&read, VIDEO, SSRC).expect("a retransmission");
            let Payload::Real(payload) = &original.payload else { panic!("{original:?}") };
            assert_eq!(originals[&original.sequence], payload[..]);
            assert_eq!((original.payload_type, original.ssrc), (VIDEO, SSRC));
            again += 1;
        }
    }
    assert!(again > 100, "{again} retransmissions");
}

/// What we repeat is a packet that str0m missed.
#[test]
fn str0m_reads_our_retransmissions() {
    let mut pair = Pair::new();
    let mut rng = Rng::new(8, "ours");
    let mut history = rtx::History::new(VIDEO + 1, 90_000, &mut rng);
    let mut now = OurInstant::ZERO;
    let mut missing = BTreeMap::new();
    let rtt = talkspurt_proto::Duration::from_millis(10);
    for number in 0..COUNT as u16 {
        now = OurInstant::from_nanos(u64::from(number) * 10_000_000);
        let mut packet = random::packet(&mut rng);
        (packet.payload_type, packet.ssrc, packet.sequence) = (VIDEO, SSRC, number);
        (packet.csrc, packet.padding, packet.transport) = (None, 0, None);
        history.on_sent(now, &packet, rtt);
        if number > 0 && rng.chance(0.2) {
            missing.insert(number, packet);
            continue;
        }
        let mut bytes = Vec::new();
        wire::emit_frame(&Frame::Rtp(packet), &mut bytes);
        pair.rtp_arrives(1, &bytes);
        pair.seen.delivered.clear();
        let Some((number, lost)) = missing.pop_first() else { continue };
        let mut again = history.again(now, number, rtt).expect("it was sent");
        history.on_repeated(now, &again);
        again.ssrc = repair(SSRC);
        let mut bytes = Vec::new();
        wire::emit_frame(&Frame::Rtp(again), &mut bytes);
        pair.rtp_arrives(1, &bytes);
        let found = pair.seen.delivered.pop().expect("a packet");
        let found = Packet { transport: None, ..ours(&found.header, 0, &found.payload) };
        assert_eq!(found, lost);
    }
    assert!(now > OurInstant::ZERO);
}
