//! The interface of a protocol endpoint: [`Endpoint::handle`] takes inputs, [`Endpoint::poll`]
//! returns outputs. An endpoint uses no socket, clock, thread or global.
//!
//! Drivers call `poll` after every `handle` until it returns [`Output::Idle`], and pass in
//! [`Input::Timeout`] at the deadline it names.

use crate::frame::Frame;
use crate::gauge::EndpointProbe;
use crate::packet::{Damage, Ecn, PathId, Quote};
use crate::time::Instant;
use crate::units::Rate;

/// An input to an endpoint with packet type `T`. The tag is explicit: a niche in the packet would
/// hide it from the optimiser.
#[derive(Debug)]
#[repr(u8)]
pub enum Input<T> {
    /// The application opens the connection (a listener needs no opening).
    Open,
    /// The application hands over at most [`Endpoint::send_capacity`] bytes of data.
    Frame(Frame),
    /// A packet arrived.
    Packet {
        /// How it arrived.
        arrival: Arrival,
        /// Its parsed form.
        packet: T,
    },
    /// A router reports that a packet on this path was longer than a link's MTU (RFC 1191, RFC 8201).
    TooBig {
        /// The path.
        path: PathId,
        /// MTU of the link in bytes of IP packet.
        mtu: u32,
        /// Which packet it dropped.
        quote: Quote,
    },
    /// The state of a path changed.
    Path(PathId, PathNews),
    /// The deadline of [`Output::Idle`] was reached.
    Timeout,
    /// The application has no more data: finish and close in order.
    Close,
    /// The application gives up: reset.
    Abort,
}

impl<T> Input<T> {
    /// Converts the packet, if there is one, with `form`.
    #[inline(always)]
    pub fn map<U>(self, form: impl FnOnce(T) -> U) -> Input<U> {
        match self {
            Self::Packet { arrival, packet } => Input::Packet { arrival, packet: form(packet) },
            Self::TooBig { path, mtu, quote } => Input::TooBig { path, mtu, quote },
            Self::Open => Input::Open,
            Self::Frame(frame) => Input::Frame(frame),
            Self::Path(path, news) => Input::Path(path, news),
            Self::Timeout => Input::Timeout,
            Self::Close => Input::Close,
            Self::Abort => Input::Abort,
        }
    }
}

/// How a packet arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// The path.
    pub path: PathId,
    /// The ECN field.
    pub ecn: Ecn,
    /// Whether the payload is undamaged.
    pub damage: Damage,
}

/// A change of a path's local interface. Router messages arrive as [`Input::TooBig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathNews {
    /// The local interface went down.
    Down,
    /// The local interface came back.
    Up,
}

/// An output of an endpoint; the tag is explicit as in [`Input`].
#[derive(Debug)]
#[repr(u8)]
pub enum Output<T> {
    /// Send this packet.
    Transmit(Transmit<T>),
    /// Hand this to the application.
    Deliver(Frame),
    /// Tell the application.
    Event(Event),
    /// Nothing to do; call again with [`Input::Timeout`] at `until`, if set.
    Idle {
        /// The next deadline.
        until: Option<Instant>,
    },
}

/// A packet to send; the driver adds the IP header.
#[derive(Debug)]
pub struct Transmit<T> {
    /// Path to send on.
    pub path: PathId,
    /// ECN field to set.
    pub ecn: Ecn,
    /// The parsed packet.
    pub packet: T,
}

impl<T> Output<T> {
    /// Converts the packet, if there is one, with `form`.
    #[inline(always)]
    pub fn map<U>(self, form: impl FnOnce(T) -> U) -> Output<U> {
        match self {
            Self::Transmit(Transmit { path, ecn, packet }) => {
                Output::Transmit(Transmit { path, ecn, packet: form(packet) })
            }
            Self::Deliver(frame) => Output::Deliver(frame),
            Self::Event(event) => Output::Event(event),
            Self::Idle { until } => Output::Idle { until },
        }
    }
}

/// Connection events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection is open in both directions.
    Connected,
    /// The peer has finished sending.
    PeerClosed,
    /// The connection is closed in order.
    Closed,
    /// The peer, or this side, reset the connection.
    Reset,
    /// Retransmissions were given up (RFC 9293 §3.8.3 R2).
    TimedOut,
    /// The peer has lost the connection and set it up again; what was in flight is lost (RFC 9260 §5.2.4 A).
    Restarted,
    /// Send capacity has grown: the application may hand over more data.
    Writable,
    /// The controller asks the source for this rate, including media headers but not transport
    /// headers. A source with a codec ladder selects the best encoding that fits.
    TargetRate(Rate),
}

/// Events pending for the application, each at most once, reported in the order of [`PendingEvents::ORDER`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PendingEvents(u8);

impl PendingEvents {
    const ORDER: [Event; 7] = [
        Event::Connected,
        Event::Restarted,
        Event::PeerClosed,
        Event::Writable,
        Event::Closed,
        Event::Reset,
        Event::TimedOut,
    ];

    /// Records an event.
    pub(crate) fn add(&mut self, event: Event) {
        let known = Self::ORDER.iter().position(|known| *known == event);
        self.0 |= 1 << known.expect("a target rate is not a pending event");
    }

    /// A pending `Connected` or `Restarted`, which is reported before any data is delivered.
    #[inline]
    pub(crate) fn opening<T>(&mut self) -> Option<Output<T>> {
        self.next_of(0b11)
    }

    /// The next event, reported after all data.
    #[inline]
    pub(crate) fn next<T>(&mut self) -> Option<Output<T>> {
        self.next_of(u8::MAX)
    }

    #[inline]
    fn next_of<T>(&mut self, mask: u8) -> Option<Output<T>> {
        let news = self.0 & mask;
        if news == 0 {
            return None;
        }
        let bit = news.trailing_zeros();
        self.0 &= !(1 << bit);
        Some(Output::Event(Self::ORDER[bit as usize]))
    }
}

/// A protocol endpoint, driven by simulated or real time.
pub trait Endpoint {
    /// Its packets in parsed form.
    type Packet;
    /// Processes an input at `now`.
    fn handle<P: EndpointProbe>(&mut self, now: Instant, input: Input<Self::Packet>, probe: &mut P);
    /// [`Input::Packet`] of a packet processed in place: the endpoint takes what it needs from it.
    /// Drivers with a packet pool avoid a move this way.
    fn receive<P: EndpointProbe>(
        &mut self,
        now: Instant,
        arrival: Arrival,
        packet: &mut Self::Packet,
        probe: &mut P,
    );
    /// Returns the next output; called until it returns [`Output::Idle`].
    fn poll<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) -> Output<Self::Packet>;
    /// Bytes of payload (for message transports: of messages) the endpoint accepts now.
    fn send_capacity(&self) -> usize;
    /// Maximum message size in bytes, whatever the current capacity; longer messages are never sent.
    fn max_message(&self) -> usize {
        usize::MAX
    }
    /// True if closing also ends the other side's direction.
    fn closes_both_ways(&self) -> bool {
        false
    }
}

/// An endpoint whose peer can be unknown, or can change its address: a driver with one socket asks it whom to
/// accept packets from.
pub trait Listener: Endpoint {
    /// True if it listens without a peer: the driver then accepts packets from anywhere.
    fn is_listening(&self) -> bool {
        false
    }
    /// Sets the addresses and ports of both ends of the next packet, in an encoding of the driver's
    /// choice, for a listener with many possible peers. An Init Cookie (RFC 4340 §8.1.4) is then
    /// valid only between these ends. Without this call a listener has one possible peer, as in a
    /// simulation, and a cookie proves that the client received an answer, but not its address.
    fn between(&mut self, _ends: &[u8]) {}
    /// True if a packet carries a value only the peer can know, so that its source is the peer's
    /// address: SCTP's Verification Tag (RFC 6951 §5.4). False for protocols that bind a connection
    /// to its addresses and ports.
    fn recognises(&self, _: &Self::Packet) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_is_told_once_each_and_in_order() {
        let mut news = PendingEvents::default();
        for event in [Event::TimedOut, Event::Writable, Event::Connected, Event::Writable] {
            news.add(event);
        }
        let told = |output: Option<Output<()>>| match output {
            Some(Output::Event(event)) => Some(event),
            None => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(told(news.opening()), Some(Event::Connected));
        assert_eq!(told(news.opening()), None);
        let rest: Vec<Event> = std::iter::from_fn(|| told(news.next())).collect();
        assert_eq!(rest, [Event::Writable, Event::TimedOut]);
        for event in PendingEvents::ORDER {
            news.add(event);
            assert_eq!(told(news.next()), Some(event));
        }
    }
}
