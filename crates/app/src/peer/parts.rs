//! What a peer is made of.

use std::net::IpAddr;

use talkspurt_proto::packet::IpVersion;
use talkspurt_proto::rate::Rung;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::Instant;
use talkspurt_proto::units::Rate;
use talkspurt_proto::{rtcp, rtp};

use super::incoming::Sink;
use super::outgoing::Outgoing;
use super::session::{Asked, Session, SharedControl, Takes};
use super::sizing::Sizing;
use crate::clock::Clock;
use crate::codec::Encoding;
use crate::transport::{self, Side};
use crate::{flexfec, send_queue, source};

/// The parts of a peer.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Its number in notes, as in [`Place::Peer`](talkspurt_proto::probe::Place::Peer).
    pub number: u32,
    /// Which end it is.
    pub side: Side,
    /// Transport of the flow.
    pub transport: transport::Config,
    /// Its node's clock.
    pub clock: Clock,
    /// IP version of its packets.
    pub version: IpVersion,
    /// Its addresses, one per path if there are several; empty for a single path.
    pub addresses: Vec<IpAddr>,
    /// DSCP of its packets.
    pub dscp: u8,
    /// How its packet lengths are counted.
    pub sizing: Sizing,
    /// When the flow opens, in true time.
    pub start: Instant,
    /// When its sources stop, in true time.
    pub stop: Instant,
    /// What it sends.
    pub source: Option<(source::Config, source::Material)>,
    /// Limit of frames waiting for the transport.
    pub send_queue: send_queue::Config,
    /// Handling of media, if the other side sends any.
    pub sink: Option<Sink>,
    /// When the other side stops at the latest, in true time, if it sends data without media.
    pub others_until: Option<Instant>,
    /// RTCP of a flow with media.
    pub rtcp: rtcp::Config,
    /// Congestion control of its media, beside the transport's own; clones share it.
    pub control: Option<SharedControl>,
    /// Weight among the flows of its session.
    pub priority: f64,
    /// Seed of the run and name of the flow and side: the roots of its random streams.
    pub seed: u64,
    /// For example `"flow/call/from"`.
    pub name: String,
    /// The other side's name.
    pub other: String,
}

impl Parts {
    /// The random stream shared by both sides of a conversation, and whether this one opens the flow.
    pub(super) fn conversation(&self) -> (Rng, bool) {
        let opens = self.side == Side::Opens;
        let opener = if opens { &self.name } else { &self.other };
        (Rng::new(self.seed, &format!("{opener}/conversation")), opens)
    }

    /// The RTP session of a flow with media: its RTCP and its controller. RTCP's bandwidth is that of one
    /// direction's packets in their best encoding, headers included (RFC 3550 §6.2); a side that only listens
    /// reports under its own SSRC. A side whose half of a stream is plain data sends none: nothing would
    /// distinguish the two (RFC 4571 §2).
    pub(super) fn session(
        &self,
        outgoing: Option<&Outgoing>,
        start: Instant,
        mut rng: Rng,
    ) -> Option<Box<Session>> {
        let sender = outgoing.and_then(Outgoing::rtp);
        let best = |encodings: &[Encoding]| encodings.first().map(|best| best.rung());
        let protected = |rung: Option<Rung>, flexfec: Option<flexfec::Config>| {
            flexfec.map_or(rung, |flexfec| rung.map(|rung| flexfec.protected(rung)))
        };
        let listens = self.sink.as_ref().and_then(|sink| match sink {
            Sink::Played(sink) => protected(best(&sink.encodings), sink.flexfec),
            Sink::Counted(format) => Some(format.mean),
        });
        let speaks = self.source.as_ref().and_then(|(source, material)| match source {
            source::Config::Speech(speech) => protected(best(&speech.encodings()), speech.flexfec),
            other => other.packet_format(material).map(|format| format.mean),
        });
        if self.transport.is_stream() && self.source.is_some() && speaks.is_none() {
            return None;
        }
        let mean = speaks.or(listens).filter(|_| self.rtcp.enabled)?;
        let lower_layers = self.transport.header_bytes() + self.version.header_bytes();
        let bits = 8 * (u64::from(mean.packet_bytes) + u64::from(lower_layers));
        let bandwidth = Rate::from_bps(bits * 1_000_000_000 / mean.interval.as_nanos().max(1));
        let ssrc = sender.map_or_else(|| rng.bits() as u32, rtp::Sender::ssrc);
        let cname = self.name.clone();
        let rtcp = rtcp::Session::new(&self.rtcp, bandwidth, lower_layers, ssrc, cname, start, rng);
        let source = self.source.as_ref().map(|(source, _)| source);
        let goes_first = matches!(source, Some(source::Config::Speech(_)));
        let is_elastic = !goes_first && source.is_some_and(|source| source.any_rate());
        let video = match source {
            Some(source::Config::Video(video)) => video.encoder.as_ref().map(|it| (it, video)),
            _ => None,
        };
        let least = |(encoder, video): (&source::EncoderConfig, &source::Video)| {
            // A packet a frame, or as many as are full.
            let full = encoder.min.as_bps() as f64 / 8.0 / (video.packet.as_bytes() + 12) as f64;
            let packets = full.max(1.0 / video.frame().as_secs_f64());
            Rate::from_bps(encoder.min.as_bps() + (8.0 * f64::from(lower_layers) * packets) as u64)
        };
        let takes = Takes {
            most: (!is_elastic).then(|| speaks.map_or(Rate::ZERO, Rung::rate)),
            goes_first,
            priority: self.priority,
            useful: video.map_or(Rate::from_bps(u64::MAX), |(encoder, _)| encoder.max),
            least: video.map_or(speaks.map_or(Rate::ZERO, |_| bandwidth), least),
        };
        let control = self.control.as_ref().map(|control| control.join(takes));
        let asked = sender.filter(|_| self.repairs_own()).map(|_| Asked::default());
        Some(Box::new(Session { rtcp, control, asked }))
    }

    /// True if it repairs what it sends.
    fn repairs_own(&self) -> bool {
        let format = |(source, material): &(source::Config, _)| source.packet_format(material);
        self.source.as_ref().and_then(format).is_some_and(|format| format.repair.is_some())
    }

    /// True if either side repairs what it sends.
    pub(super) fn repairs(&self) -> bool {
        let of_other = matches!(&self.sink, Some(Sink::Counted(format)) if format.repair.is_some());
        of_other || self.repairs_own()
    }
}
