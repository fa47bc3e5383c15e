//! Agreement on the codecs of a call in DCCP's handshake (RFC 4340 §8.1.1, §8.1.3).

use bytes::Bytes;
use talkspurt_app::transport::Transport;
use talkspurt_flow::{Materials, Parts, Peer, parts};
use talkspurt_proto::dccp;
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::Payload;
use talkspurt_scenario::Point;

use crate::Failure;

/// Agrees on codecs: takes the application data of the other end's Request or Response, and returns the parts
/// of our peer and, for the answering end, the data of its Response.
pub(crate) type Agree<'a> = dyn FnMut(&[u8]) -> Result<(Parts, Vec<u8>), Failure> + Send + 'a;

/// A call whose codecs are offered and agreed in DCCP's handshake (RFC 4340 §8.1.1, §8.1.3).
pub(crate) struct Opening<'a> {
    /// Application data of the opening end's Request.
    pub(crate) offer: Vec<u8>,
    pub(crate) agree: Box<Agree<'a>>,
}

impl Opening<'_> {
    /// Takes the codecs from a packet of the handshake that has them, and gives our peer its source and sink;
    /// true if they are agreed on now. An error says why the call ends here.
    pub(crate) fn take(
        &mut self,
        client: bool,
        packet: &dccp::Packet,
        peer: &mut Peer,
    ) -> Result<bool, Failure> {
        let (expected, empty) = match packet.kind {
            dccp::Kind::Request { .. } => (!client, "the other end offered no codecs"),
            dccp::Kind::Response { .. } => (client, "the other end agreed to no codec"),
            _ => return Ok(false),
        };
        if !expected {
            return Ok(false);
        }
        let data = match &packet.payload {
            Frame::Data(Payload::Real(bytes)) if !bytes.is_empty() => bytes,
            _ => return Err(Failure::Refused(empty.to_owned())),
        };
        let (parts, answer) = (self.agree)(data)?;
        peer.converse(&parts);
        if !client {
            set_opening_data(peer, answer);
        }
        Ok(true)
    }
}

/// Both peers of a call, without source and sink.
pub(crate) fn silent(point: &Point, opening: &Opening<'_>) -> Vec<Peer> {
    let both = parts(&point.scenario, &point.network, &Materials::default(), 0);
    let both = both.into_iter().flatten().map(|parts| {
        let mut peer = Peer::new(Parts { source: None, sink: None, ..parts });
        set_opening_data(&mut peer, opening.offer.clone());
        peer
    });
    both.collect()
}

fn set_opening_data(peer: &mut Peer, data: Vec<u8>) {
    if let Transport::Dccp(dccp) = peer.transport() {
        dccp.set_opening_data(Bytes::from(data));
    }
}
