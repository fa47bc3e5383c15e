//! Packet lengths for links and tables: with every header at its RFC length, or as counted by ns-2.35, with
//! lengths taken from its traces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::body::Body;
use talkspurt_proto::packet::IpVersion;
use talkspurt_proto::{dccp, tfrc};

use crate::transport;

/// How packet lengths are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sizing {
    /// Every header at its RFC length.
    #[default]
    Rfc,
    /// As ns-2.35: a UDP packet counts its payload, a TCP segment its payload and 40 bytes plus 8 per SACK
    /// block, a TFRC packet its payload and 32 bytes or, as feedback, 40 in all, a DCCP packet its payload,
    /// options and 32 bytes, 36 with an acknowledgement, and 88 (CCID 2) or 104 (CCID 3) in all when it opens
    /// the connection, an SCTP packet as in the RFC. RTP headers do not count.
    Ns2,
}

impl Sizing {
    /// Length of the IP packet. `opening_bytes` is a DCCP Request as counted by ns-2.
    #[inline(always)]
    pub(super) fn ip_bytes(self, version: IpVersion, body: &Body, opening_bytes: u32) -> u32 {
        match self {
            Self::Rfc => version.header_bytes() + body.layers().total(),
            Self::Ns2 => ns2_bytes(version, body, opening_bytes),
        }
    }

    /// The same for a UDP datagram with `media` header bytes and `payload` bytes.
    #[inline(always)]
    pub(super) fn datagram_bytes(self, version: IpVersion, media: u32, payload: u32) -> u32 {
        match self {
            Self::Rfc => version.header_bytes() + UDP_HEADER + media + payload,
            Self::Ns2 if payload > 0 => payload,
            Self::Ns2 => media,
        }
    }
}

/// Bytes of a packet that opens a connection in ns-2.35; the rate-based CCIDs request more features.
pub(super) const fn opening_bytes(transport: &transport::Config) -> u32 {
    match transport {
        transport::Config::Dccp(config) if config.ccid.is_rate_based() => 104,
        _ => 88,
    }
}

/// RFC 768.
const UDP_HEADER: u32 = 8;

fn ns2_bytes(version: IpVersion, body: &Body, opening_bytes: u32) -> u32 {
    let layers = body.layers();
    match body {
        Body::Dccp(packet) => ns2_dccp_bytes(packet, opening_bytes) + layers.payload,
        Body::Tfrc(tfrc::Packet::Data(_)) => 32 + layers.payload,
        Body::Tfrc(tfrc::Packet::Feedback(_)) => 40,
        Body::Udp(_) => Sizing::Ns2.datagram_bytes(version, layers.media, layers.payload),
        Body::Tcp(segment) => {
            let blocks = segment.sack.as_ref().map_or(0, |sack| sack.as_slice().len() as u32);
            40 + 8 * blocks + layers.payload
        }
        // An SCTP packet is as on the wire, except for RTP's header.
        Body::Sctp(_) => version.header_bytes() + layers.transport + layers.payload,
        // As on the wire.
        _ => version.header_bytes() + layers.total(),
    }
}

/// Bytes of a DCCP packet without payload: an IPv4 header, DCCP's with short sequence numbers throughout, and
/// the options. A Request or Response has the length of the feature options of ns-2's CCID, since ours differ.
fn ns2_dccp_bytes(packet: &dccp::Packet, opening_bytes: u32) -> u32 {
    let options = packet.options.as_bytes().len().next_multiple_of(4) as u32;
    let own = match packet.kind {
        dccp::Kind::Request { .. } | dccp::Kind::Response { .. } => return opening_bytes,
        dccp::Kind::Reset { .. } => 4,
        _ => 0,
    };
    let acknowledgement = if packet.kind.ack().is_some() { 4 } else { 0 };
    20 + 12 + acknowledgement + own + options
}

#[cfg(test)]
mod tests {
    use super::*;
    use dccp::{Kind, ResetCode, SeqNo};
    use talkspurt_proto::frame::Frame;
    use talkspurt_proto::packet::PacketBox;
    use talkspurt_proto::packet::Payload;
    use talkspurt_proto::tcp;

    fn data(len: u64) -> Frame {
        Frame::Data(Payload::Virtual { offset: 0, len })
    }
    fn dccp_bytes(kind: Kind, payload: u64, option_bytes: usize) -> u32 {
        let mut options = dccp::Options::default();
        (0..option_bytes).for_each(|_| options.push(dccp::options::Opt::Padding));
        let seq = SeqNo::first(7).extended();
        let packet =
            dccp::Packet { seq, ccval: 0, cscov: 0, kind, options, payload: data(payload) };
        Sizing::Ns2.ip_bytes(IpVersion::V4, &Body::Dccp(PacketBox::new(packet)), 88)
    }

    /// ns-2.35's trace of 160-byte packets over Agent/DCCP/TCPlike and Agent/DCCP/TFRC: types and their
    /// lengths, with options where their length is known.
    #[test]
    fn dccp_packets_are_as_long_as_in_ns2s_traces() {
        let ack = SeqNo::first(9).extended();
        assert_eq!(dccp_bytes(Kind::Request { service: 0 }, 0, 0), 88);
        assert_eq!(dccp_bytes(Kind::Response { ack, service: 0 }, 0, 3), 88);
        assert_eq!(dccp_bytes(Kind::Data, 160, 0), 192);
        assert_eq!(dccp_bytes(Kind::Ack { ack }, 0, 0), 36);
        assert_eq!(dccp_bytes(Kind::Ack { ack }, 0, 3), 40);
        assert_eq!(dccp_bytes(Kind::Ack { ack }, 0, 8), 44);
        assert_eq!(dccp_bytes(Kind::DataAck { ack }, 160, 4), 200);
        assert_eq!(dccp_bytes(Kind::Close { ack }, 0, 0), 36);
        let (code, data) = (ResetCode::CLOSED, [0; 3]);
        assert_eq!(dccp_bytes(Kind::Reset { ack, code, data }, 0, 0), 40);
    }

    /// The same for Agent/TCPSink/Sack1: 40, and 48, 56 or 64 with blocks.
    #[test]
    fn blocks_of_tcp_are_as_long_as_in_ns2s_traces() {
        let bytes = |blocks: u32| {
            let sack = tcp::SackBlocks::of((0..blocks).map(|i| (20 * i + 10, 20 * i + 20)));
            let ack = tcp::Segment { sack, ..tcp::Segment::default() };
            Sizing::Ns2.ip_bytes(IpVersion::V4, &Body::Tcp(ack), 88)
        };
        assert_eq!([0, 1, 2, 3].map(bytes), [40, 48, 56, 64]);
    }

    /// The same for Agent/UDP, with the RFC lengths (RFC 768, RFC 3550 §5.1).
    #[test]
    fn datagrams_are_as_long_as_in_ns2s_traces() {
        let bytes = |sizing: Sizing| {
            [(12, 160), (0, 160), (76, 0)]
                .map(|(media, payload)| sizing.datagram_bytes(IpVersion::V4, media, payload))
        };
        assert_eq!(bytes(Sizing::Ns2), [160, 160, 76]);
        assert_eq!(bytes(Sizing::Rfc), [200, 188, 104]);
        let body = Body::Udp(data(160));
        assert_eq!(Sizing::Ns2.ip_bytes(IpVersion::V4, &body, 88), 160);
        assert_eq!(Sizing::Rfc.ip_bytes(IpVersion::V4, &body, 88), 188);
    }

    /// The same for Agent/TFRC (`tcpFriend` and `tcpFriendCtl`).
    #[test]
    fn tfrc_packets_are_as_long_as_in_ns2s_traces() {
        let packet = tfrc::Data { seq: 0, timestamp: 0, rtt: 0, timeout: 0, payload: data(160) };
        let body = Body::Tfrc(tfrc::Packet::Data(packet));
        assert_eq!(Sizing::Ns2.ip_bytes(IpVersion::V4, &body, 88), 192);
        let feedback =
            tfrc::Feedback { timestamp: 0, delay: 0, receive_rate: 0, loss_event_rate: 0 };
        let body = Body::Tfrc(tfrc::Packet::Feedback(feedback));
        assert_eq!(Sizing::Ns2.ip_bytes(IpVersion::V4, &body, 88), 40);
    }
}
