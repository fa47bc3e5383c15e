//! Whether and how much data may leave: the CCID's permit (RFC 4340 §10) and the maximum packet size (§14).

use super::ccid::{Sender as _, SenderHalf};
use super::options::feature;
use super::{Dccp, Location, State, departure, wire};
use crate::endpoint::{Endpoint as _, Event};
use crate::frame::Frame;
use crate::gauge::{EndpointProbe, RxError};
use crate::packet::Quoted;
use crate::rate::Permit;
use crate::time::Instant;

/// Bytes a data packet reserves for options sent with data.
const DATA_OPTIONS: usize = 32;
/// Bytes of the path MTU that a data packet reserves, excluding the IP header: the DCCP header with an
/// Acknowledgement Number and the options sent with data.
pub const KEPT_BYTES: u32 = (departure::ACK_BYTES + DATA_OPTIONS) as u32;

impl Dccp {
    /// RFC 4340 §14: the maximum packet size after the handshake, regardless of the permit.
    #[must_use]
    pub fn largest(&self) -> usize {
        self.space(departure::ACK_BYTES).saturating_sub(DATA_OPTIONS)
    }

    /// The maximum packet size while the CCID permits a packet, otherwise 0.
    pub(super) fn open_room(&self) -> usize {
        if !self.permitted || !self.may_send() {
            return 0;
        }
        let options = match self.state {
            State::PartOpen => DATA_OPTIONS + self.cookies.echoed().len(),
            _ => DATA_OPTIONS,
        };
        self.space(departure::ACK_BYTES).saturating_sub(options)
    }

    /// Bytes left in an IP packet after its headers, without options.
    pub(super) fn space(&self, fixed_bytes: usize) -> usize {
        let below_bytes = self.version.header_bytes().saturating_add(self.overhead_bytes);
        (self.path_mtu.saturating_sub(below_bytes) as usize).saturating_sub(fixed_bytes)
    }

    /// True while the application may send: the connection is open and not closed by this side.
    pub(super) fn may_send(&self) -> bool {
        matches!(self.state, State::PartOpen | State::Open)
    }

    /// Takes a frame from the application, which has checked `send_capacity`.
    pub(super) fn on_frame(&mut self, frame: Frame) {
        assert!(
            frame.wire_bytes() <= self.send_capacity() && self.may_send(),
            "the application handed over a datagram that DCCP had no room for"
        );
        self.permitted = false;
        self.frame = Some(frame);
    }

    /// True while the CCID is not negotiated, or is CCID 2 without negotiated Ack Vectors.
    pub(super) fn lacks_agreement(&self) -> bool {
        let vectors = self.features.is_on(feature::SEND_ACK_VECTOR, Location::There);
        let blind = matches!(self.sender, Some(SenderHalf::Two(_))) && !vectors;
        blind || self.features.is_undecided(feature::CCID, Location::Here)
    }

    /// Asks the CCID whether data may leave.
    pub(super) fn ask(&mut self, now: Instant) {
        let was = std::mem::replace(&mut self.permitted, false);
        self.permit_at = None;
        if !self.may_send() || self.frame.is_some() {
            return;
        }
        // §6.3.1: no data under a CCID that was not negotiated.
        // RFC 4341 §4: nor under CCID 2 before the other side has agreed to send Ack Vectors.
        self.undecided = self.undecided && self.lacks_agreement();
        if self.undecided {
            return;
        }
        // §7.5.2: "MUST NOT persistently send more than Sequence Window/A packets per RTT"; a window that
        // follows the packets in flight is always larger.
        let outstanding = self.sender.as_ref().map_or(0, SenderHalf::outstanding);
        if outstanding >= self.windows.ours {
            return;
        }
        match self.sender.as_mut().map(|sender| sender.permit(now)) {
            Some(Permit::Now) => self.permitted = true,
            Some(Permit::At(at)) if at <= now => self.permitted = true,
            Some(Permit::At(at)) => self.permit_at = Some(at),
            Some(Permit::Blocked) | None => {}
        }
        if self.permitted && !was {
            self.news.add(Event::Writable);
        }
    }

    /// RFC 4340 §14.1: accepted only for a packet that may still be in the network.
    pub(super) fn on_too_big<P: EndpointProbe>(
        &mut self,
        now: Instant,
        mtu: u32,
        quoted: &Quoted,
        probe: &mut P,
    ) {
        let in_flight = wire::quoted_seq(quoted)
            .is_some_and(|seq| self.windows.acks(self.windows.ours_at(seq)));
        if !in_flight {
            return probe.rx_error(now, RxError::OutOfWindow);
        }
        self.path_mtu = self.path_mtu.min(mtu.max(self.version.least_mtu()));
    }
}
