//! Packets of rtc-interceptor, which are those of the crates rtc-rtcp and rtc-rtp: each side reads what the
//! other writes, field by field.

use bytes::{Bytes, BytesMut};
use rtc_rtcp::goodbye::Goodbye;
use rtc_rtcp::packet::{Packet as Part, marshal, unmarshal};
use rtc_rtcp::payload_feedbacks::full_intra_request::{FirEntry, FullIntraRequest};
use rtc_rtcp::payload_feedbacks::picture_loss_indication::PictureLossIndication;
use rtc_rtcp::payload_feedbacks::receiver_estimated_maximum_bitrate::ReceiverEstimatedMaximumBitrate;
use rtc_rtcp::receiver_report::ReceiverReport;
use rtc_rtcp::reception_report::ReceptionReport;
use rtc_rtcp::sender_report::SenderReport;
use rtc_rtcp::source_description::{
    SdesType, SourceDescription, SourceDescriptionChunk, SourceDescriptionItem,
};
use rtc_rtcp::transport_feedbacks::cc_feedback_report::{
    CcFeedbackMetricBlock, CcFeedbackReport, CcFeedbackReportBlock, Ecn as RtcEcn,
};
use rtc_rtcp::transport_feedbacks::transport_layer_cc::{
    PacketStatusChunk, RecvDelta, RunLengthChunk, StatusChunkTypeTcc, StatusVectorChunk,
    SymbolSizeTypeTcc, SymbolTypeTcc, TYPE_TCC_DELTA_SCALE_FACTOR, TransportLayerCc,
};
use rtc_rtcp::transport_feedbacks::transport_layer_nack::{NackPair, TransportLayerNack};
use rtc_rtp::header::{Extension, Header};
use rtc_rtp::packet::Packet as RtcPacket;
use rtc_shared::marshal::{Marshal, Unmarshal};
use talkspurt_proto::rtcp::congestion::{CongestionControl, Metric, Stream};
use talkspurt_proto::rtcp::feedback::{self, IntraRequest};
use talkspurt_proto::rtcp::{
    Compound, Feedback, Lost, Message, NtpTime, ReportBlock, SenderInfo, TransportWide,
};
use talkspurt_proto::rtp::Packet;
use talkspurt_proto::wire::{self, Hints};
use talkspurt_proto::{Frame, Payload, Rng};

use crate::random::{self, COUNT, Limits};

const LIMITS: Limits = Limits { rfc8888: true, late_runs: true, entries: 40 };
/// Cumulative losses have 24 bits with a sign (RFC 3550 §6.4.1), which rtc-rtcp reads without.
const LOST: u32 = 0xff_ffff;

fn ours(block: &ReceptionReport) -> ReportBlock {
    ReportBlock {
        ssrc: block.ssrc,
        fraction_lost: block.fraction_lost,
        cumulative_lost: (block.total_lost << 8) as i32 >> 8,
        highest_sequence: block.last_sequence_number,
        jitter: block.jitter,
        last_sr: block.last_sender_report,
        delay_since_last_sr: block.delay,
    }
}

fn theirs(block: &ReportBlock) -> ReceptionReport {
    ReceptionReport {
        ssrc: block.ssrc,
        fraction_lost: block.fraction_lost,
        total_lost: block.cumulative_lost as u32 & LOST,
        last_sequence_number: block.highest_sequence,
        jitter: block.jitter,
        last_sender_report: block.last_sr,
        delay: block.delay_since_last_sr,
    }
}

fn statuses(chunk: &PacketStatusChunk) -> Vec<SymbolTypeTcc> {
    match chunk {
        PacketStatusChunk::RunLengthChunk(run) => {
            vec![run.packet_status_symbol; run.run_length.into()]
        }
        PacketStatusChunk::StatusVectorChunk(vector) => vector.symbol_list.clone(),
    }
}

fn report(read: &TransportLayerCc) -> TransportWide {
    let base = read.base_sequence_number;
    let mut deltas = read.recv_deltas.iter();
    let all = read.packet_chunks.iter().flat_map(statuses);
    let numbered = (0..read.packet_status_count).zip(all);
    let received = numbered.filter(|(_, status)| *status != SymbolTypeTcc::PacketNotReceived);
    let received = received.map(|(place, status)| {
        let delta = deltas.next().expect("one of each");
        assert_eq!(delta.type_tcc_packet, status);
        let ticks = delta.delta / TYPE_TCC_DELTA_SCALE_FACTOR;
        (base.wrapping_add(place), Some(ticks as i16))
    });
    let received = received.collect();
    assert_eq!(deltas.next(), None);
    TransportWide {
        base,
        count: read.packet_status_count,
        reference_time: read.reference_time,
        feedback_count: read.fb_pkt_count,
        received,
    }
}

/// Chunks of any form that fits.
fn chunks(rng: &mut Rng, mut rest: &[SymbolTypeTcc]) -> Vec<PacketStatusChunk> {
    let mut chunks = Vec::new();
    while let Some(first) = rest.first() {
        let run = rest.iter().take_while(|one| *one == first).count();
        let small = |one: &&SymbolTypeTcc| (**one as u16) < 2;
        let taken = match rng.below(3) {
            0 => {
                let run_length = 1 + rng.below(run as u64) as u16;
                chunks.push(PacketStatusChunk::RunLengthChunk(RunLengthChunk {
                    type_tcc: StatusChunkTypeTcc::RunLengthChunk,
                    packet_status_symbol: *first,
                    run_length,
                }));
                run_length.into()
            }
            form => {
                let one_bit =
                    form == 1 && rest.iter().take(14).filter(small).count() == 14.min(rest.len());
                let (symbol_size, room) = if one_bit {
                    (SymbolSizeTypeTcc::OneBit, 14)
                } else {
                    (SymbolSizeTypeTcc::TwoBit, 7)
                };
                let taken = room.min(rest.len());
                let mut symbol_list = rest[..taken].to_vec();
                symbol_list.resize(room, SymbolTypeTcc::PacketNotReceived);
                chunks.push(PacketStatusChunk::StatusVectorChunk(StatusVectorChunk {
                    type_tcc: StatusChunkTypeTcc::StatusVectorChunk,
                    symbol_size,
                    symbol_list,
                }));
                taken
            }
        };
        rest = &rest[taken..];
    }
    chunks
}

fn transport_layer(
    rng: &mut Rng,
    sender: u32,
    media: u32,
    report: &TransportWide,
) -> TransportLayerCc {
    let mut received = report.received.iter().peekable();
    let mut all = Vec::new();
    let mut recv_deltas = Vec::new();
    for place in 0..report.count {
        let number = report.base.wrapping_add(place);
        let Some((_, delta)) = received.next_if(|(one, _)| *one == number) else {
            all.push(SymbolTypeTcc::PacketNotReceived);
            continue;
        };
        let delta = delta.expect("times are there");
        let small = u8::try_from(delta).is_ok();
        let symbol = if small {
            SymbolTypeTcc::PacketReceivedSmallDelta
        } else {
            SymbolTypeTcc::PacketReceivedLargeDelta
        };
        all.push(symbol);
        let delta = i64::from(delta) * TYPE_TCC_DELTA_SCALE_FACTOR;
        recv_deltas.push(RecvDelta { type_tcc_packet: symbol, delta });
    }
    TransportLayerCc {
        sender_ssrc: sender,
        media_ssrc: media,
        base_sequence_number: report.base,
        packet_status_count: report.count,
        reference_time: report.reference_time,
        fb_pkt_count: report.feedback_count,
        packet_chunks: chunks(rng, &all),
        recv_deltas,
    }
}

fn metric(block: &CcFeedbackMetricBlock) -> Metric {
    let bits = u16::from(block.received) << 15 | (block.ecn as u16) << 13;
    Metric::from_bits(bits | block.arrival_time_offset)
}

fn metric_block(metric: Metric) -> CcFeedbackMetricBlock {
    let bits = metric.to_bits();
    let ecn = [RtcEcn::NotEct, RtcEcn::Ect1, RtcEcn::Ect0, RtcEcn::Ce][usize::from(bits >> 13 & 3)];
    CcFeedbackMetricBlock { received: bits >> 15 == 1, ecn, arrival_time_offset: bits & 0x1fff }
}

/// A rate as the float of rtc-rtcp holds it, and as the application's data here say it.
fn same_rate(data: &[u8], bitrate: f32) {
    let rate = feedback::remb(data).expect("REMB").as_bps();
    assert_eq!(bitrate as u64, rate);
}

/// What rtc-rtcp read, in our form.
fn read(parts: &[Box<dyn Part>], written: &Compound) -> Compound {
    let mut found = Compound { reduced: true, ..Compound::default() };
    for part in parts {
        let part = part.as_any();
        let mut add = |sender, message| found.feedback.push(Feedback { sender, message });
        if let Some(sr) = part.downcast_ref::<SenderReport>() {
            (found.ssrc, found.reduced) = (sr.ssrc, false);
            found.sender = Some(SenderInfo {
                ntp: NtpTime(sr.ntp_time),
                rtp_timestamp: sr.rtp_time,
                packets: sr.packet_count,
                octets: sr.octet_count,
            });
            found.reports = sr.reports.iter().map(ours).collect();
        } else if let Some(rr) = part.downcast_ref::<ReceiverReport>() {
            (found.ssrc, found.reduced) = (rr.ssrc, false);
            found.reports = rr.reports.iter().map(ours).collect();
        } else if let Some(sdes) = part.downcast_ref::<SourceDescription>() {
            let [chunk] = &sdes.chunks[..] else { panic!("{sdes:?}") };
            let [item] = &chunk.items[..] else { panic!("{sdes:?}") };
            assert_eq!((chunk.source, item.sdes_type), (found.ssrc, SdesType::SdesCname));
            found.cname = String::from_utf8(item.text.to_vec()).expect("UTF-8");
        } else if let Some(bye) = part.downcast_ref::<Goodbye>() {
            assert_eq!(bye.sources, [found.ssrc]);
            found.bye = true;
        } else if let Some(nack) = part.downcast_ref::<TransportLayerNack>() {
            let lost = |pair: &NackPair| {
                let lost = Lost { first: pair.packet_id, following: pair.lost_packets };
                assert_eq!(pair.packet_list(), lost.sequences().collect::<Vec<_>>());
                lost
            };
            let lost = nack.nacks.iter().map(lost).collect();
            add(nack.sender_ssrc, Message::Nack { media: nack.media_ssrc, lost });
        } else if let Some(pli) = part.downcast_ref::<PictureLossIndication>() {
            add(pli.sender_ssrc, Message::PictureLoss { media: pli.media_ssrc });
        } else if let Some(fir) = part.downcast_ref::<FullIntraRequest>() {
            assert_eq!(fir.media_ssrc, 0);
            let one = |entry: &FirEntry| IntraRequest {
                ssrc: entry.ssrc,
                sequence: entry.sequence_number,
            };
            add(fir.sender_ssrc, Message::FullIntra(fir.fir.iter().map(one).collect()));
        } else if let Some(wide) = part.downcast_ref::<TransportLayerCc>() {
            let message = Message::TransportWide { media: wide.media_ssrc, report: report(wide) };
            add(wide.sender_ssrc, message);
        } else if let Some(remb) = part.downcast_ref::<ReceiverEstimatedMaximumBitrate>() {
            // It has a float in place of the bytes, which are compared by their meaning.
            let place = found.feedback.len();
            let Message::Application { media: 0, data } = &written.feedback[place].message else {
                panic!("{remb:?}");
            };
            same_rate(data, remb.bitrate);
            let streams: Vec<u8> = remb.ssrcs.iter().flat_map(|ssrc| ssrc.to_be_bytes()).collect();
            assert_eq!((usize::from(data[4]), &data[8..]), (remb.ssrcs.len(), &streams[..]));
            found.feedback.push(Feedback {
                sender: remb.sender_ssrc,
                message: written.feedback[place].message.clone(),
            });
        } else if let Some(control) = part.downcast_ref::<CcFeedbackReport>() {
            let stream = |block: &CcFeedbackReportBlock| Stream {
                ssrc: block.media_ssrc,
                begin: block.begin_sequence,
                metrics: block.metric_blocks.iter().map(metric).collect(),
            };
            let streams = control.report_blocks.iter().map(stream).collect();
            let timestamp = control.report_timestamp;
            let control_message = CongestionControl { streams, timestamp };
            add(control.sender_ssrc, Message::CongestionControl(control_message));
        } else {
            panic!("{part:?}");
        }
    }
    if found.reduced {
        found.ssrc = found.feedback[0].sender;
    }
    found
}

/// The same in the form of rtc-rtcp.
fn write(rng: &mut Rng, compound: &Compound) -> Vec<Box<dyn Part>> {
    let mut parts: Vec<Box<dyn Part>> = Vec::new();
    let ssrc = compound.ssrc;
    if !compound.reduced {
        let reports = compound.reports.iter().map(theirs).collect();
        parts.push(match compound.sender {
            Some(info) => Box::new(SenderReport {
                ssrc,
                ntp_time: info.ntp.0,
                rtp_time: info.rtp_timestamp,
                packet_count: info.packets,
                octet_count: info.octets,
                reports,
                profile_extensions: Bytes::new(),
            }),
            None => Box::new(ReceiverReport { ssrc, reports, profile_extensions: Bytes::new() }),
        });
        let text = Bytes::copy_from_slice(compound.cname.as_bytes());
        let items = vec![SourceDescriptionItem { sdes_type: SdesType::SdesCname, text }];
        let chunks = vec![SourceDescriptionChunk { source: ssrc, items }];
        parts.push(Box::new(SourceDescription { chunks }));
    }
    for Feedback { sender, message } in &compound.feedback {
        let sender_ssrc = *sender;
        parts.push(match message {
            Message::Nack { media, lost } => {
                let pair =
                    |one: &Lost| NackPair { packet_id: one.first, lost_packets: one.following };
                let nacks = lost.iter().map(pair).collect();
                Box::new(TransportLayerNack { sender_ssrc, media_ssrc: *media, nacks })
            }
            Message::PictureLoss { media } => {
                Box::new(PictureLossIndication { sender_ssrc, media_ssrc: *media })
            }
            Message::FullIntra(requests) => {
                let entry =
                    |one: &IntraRequest| FirEntry { ssrc: one.ssrc, sequence_number: one.sequence };
                let fir = requests.iter().map(entry).collect();
                Box::new(FullIntraRequest { sender_ssrc, media_ssrc: 0, fir })
            }
            Message::TransportWide { media, report } => {
                Box::new(transport_layer(rng, sender_ssrc, *media, report))
            }
            Message::Application { data, .. } => {
                let bitrate = feedback::remb(data).expect("REMB").as_bps() as f32;
                let (ssrcs, _) = data[8..].as_chunks::<4>();
                let ssrcs = ssrcs.iter().map(|ssrc| u32::from_be_bytes(*ssrc)).collect();
                Box::new(ReceiverEstimatedMaximumBitrate { sender_ssrc, bitrate, ssrcs })
            }
            Message::CongestionControl(control) => {
                let block = |stream: &Stream| CcFeedbackReportBlock {
                    media_ssrc: stream.ssrc,
                    begin_sequence: stream.begin,
                    metric_blocks: stream.metrics.iter().copied().map(metric_block).collect(),
                };
                let report_blocks = control.streams.iter().map(block).collect();
                let report_timestamp = control.timestamp;
                Box::new(CcFeedbackReport { sender_ssrc, report_blocks, report_timestamp })
            }
            other => panic!("{other:?}"),
        });
    }
    if compound.bye {
        parts.push(Box::new(Goodbye { sources: vec![ssrc], reason: Bytes::new() }));
    }
    parts
}

#[test]
fn rtc_reads_our_rtcp() {
    let mut rng = Rng::new(1, "ours");
    for number in 0..COUNT {
        let written = random::compound(&mut rng, LIMITS);
        let mut bytes = Vec::new();
        wire::emit_frame(&Frame::Rtcp(Box::new(written.clone())), &mut bytes);
        let parts = unmarshal(&mut Bytes::from(bytes.clone()));
        let parts = parts.unwrap_or_else(|why| panic!("{number}: {why}: {written:?}"));
        assert_eq!(read(&parts, &written), written, "{number}");
    }
}

/// A rate may be written with another exponent: the bytes are compared by their meaning.
fn by_rate(compound: &mut Compound) {
    for Feedback { message, .. } in &mut compound.feedback {
        if let Message::Application { data, .. } = message {
            let rate = feedback::remb(data).expect("REMB").as_bps();
            data.splice(5..8, rate.to_be_bytes());
        }
    }
}

#[test]
fn we_read_the_rtcp_of_rtc() {
    let mut rng = Rng::new(2, "theirs");
    let mut padded = 0;
    for number in 0..COUNT {
        let mut wanted = random::compound(&mut rng, LIMITS);
        let bytes = marshal(&write(&mut rng, &wanted)).expect("valid");
        padded += usize::from(bytes[0] & 0x20 != 0);
        let mut found =
            wire::rtcp::parse(&bytes).unwrap_or_else(|why| panic!("{number}: {why}: {wanted:?}"));
        by_rate(&mut found);
        by_rate(&mut wanted);
        assert_eq!(found, wanted, "{number}");
    }
    assert!(padded > 50, "{padded} begin with padded feedback");
}

#[test]
fn rtc_reads_our_rtp() {
    let mut rng = Rng::new(3, "ours");
    for number in 0..COUNT {
        let written = random::packet(&mut rng);
        let mut bytes = Vec::new();
        wire::emit_frame(&Frame::Rtp(written.clone()), &mut bytes);
        let read = RtcPacket::unmarshal(&mut Bytes::from(bytes.clone())).expect("valid");
        let header = &read.header;
        let transport = header
            .extensions
            .iter()
            .find(|one| one.id == 3)
            .map(|one| u16::from_be_bytes(one.payload[..].try_into().expect("two bytes")));
        let padding = if header.padding { bytes[bytes.len() - 1] } else { 0 };
        let found = Packet {
            payload_type: header.payload_type,
            marker: header.marker,
            sequence: header.sequence_number,
            timestamp: header.timestamp,
            ssrc: header.ssrc,
            csrc: header.csrc.first().and_then(|csrc| (*csrc).try_into().ok()),
            transport,
            padding,
            payload: Payload::Real(read.payload.clone()),
        };
        assert_eq!(found, written, "{number}");
        assert_eq!(header.csrc.len(), usize::from(written.csrc.is_some()));
        assert_eq!(header.extension, written.transport.is_some());
    }
}

#[test]
fn we_read_the_rtp_of_rtc() {
    let mut rng = Rng::new(4, "theirs");
    for number in 0..COUNT {
        let mut wanted = random::packet(&mut rng);
        let Payload::Real(payload) = wanted.payload.clone() else { unreachable!() };
        // Both forms of RFC 8285 §4, with other elements around ours.
        let two_byte = rng.chance(0.5);
        let mut extensions: Vec<Extension> = (0..rng.below(4))
            .map(|_| {
                let length = 1 + rng.below(if two_byte { 40 } else { 16 }) as usize;
                let payload = vec![rng.bits() as u8; length].into();
                Extension { id: 4 + rng.below(10) as u8, payload }
            })
            .collect();
        if let Some(transport) = wanted.transport {
            let place = rng.below(extensions.len() as u64 + 1) as usize;
            let payload = Bytes::copy_from_slice(&transport.to_be_bytes());
            extensions.insert(place, Extension { id: 3, payload });
        }
        let more = (0..rng.below(15)).map(|_| rng.bits() as u32);
        let csrc: Vec<u32> = wanted
            .csrc
            .map_or_else(Vec::new, |first| std::iter::once(first.get()).chain(more).collect());
        let packet = RtcPacket {
            header: Header {
                version: 2,
                padding: wanted.padding > 0,
                extension: !extensions.is_empty(),
                marker: wanted.marker,
                payload_type: wanted.payload_type,
                sequence_number: wanted.sequence,
                timestamp: wanted.timestamp,
                ssrc: wanted.ssrc,
                csrc,
                extension_profile: if two_byte { 0x1000 } else { 0xbede },
                extensions,
                extensions_padding: 0,
            },
            payload: payload.clone(),
        };
        let bytes: BytesMut = packet.marshal().expect("valid");
        if wanted.padding > 0 {
            // It pads to whole words.
            wanted.padding = 4 - (payload.len() % 4) as u8;
        }
        let found = wire::rtp::parse(&bytes.freeze(), Hints::default());
        assert_eq!(found, Ok(wanted), "{number}");
    }
}
