//! The two doors of a protocol endpoint: [`Endpoint::handle`] takes what happened,
//! [`Endpoint::poll`] gives what is to be done. No socket, clock, thread or global behind them.
//!
//! The rule for drivers: after every `handle`, call `poll` until it answers [`Output::Idle`], and
//! hand in [`Input::Timeout`] when the instant it named has come.

use crate::frame::Frame;
use crate::gauge::EndpointProbe;
use crate::packet::{Damage, Ecn, PathId, Quote};
use crate::time::Instant;
use crate::units::Rate;

/// What can happen to an endpoint whose packets are of type `T`. The tag is explicit: a niche in the
/// packet would hide it from the optimiser.
#[derive(Debug)]
#[repr(u8)]
pub enum Input<T> {
    /// The application opens the connection (a listener needs no opening).
    Open,
    /// The application hands over data; only as much as [`Endpoint::send_capacity`] allows.
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
    /// The network says something about a path.
    Path(PathId, PathNews),
    /// The instant named by [`Output::Idle`] has come.
    Timeout,
    /// The application has no more data: finish and close in order.
    Close,
    /// The application gives up: reset.
    Abort,
}

impl<T> Input<T> {
    /// The same with its packet, if it has one, in another form.
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
    /// On which path.
    pub path: PathId,
    /// With which ECN field.
    pub ecn: Ecn,
    /// Whether its payload is undamaged.
    pub damage: Damage,
}

/// What the local network can say about a path. What routers say comes as [`Input::TooBig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathNews {
    /// The local interface went down.
    Down,
    /// The local interface came back.
    Up,
}

/// What an endpoint wants done; the tag is explicit as in [`Input`].
#[derive(Debug)]
#[repr(u8)]
pub enum Output<T> {
    /// Send this packet.
    Transmit(Transmit<T>),
    /// Hand this to the application.
    Deliver(Frame),
    /// Tell the application.
    Event(Event),
    /// Nothing now; wake with [`Input::Timeout`] at `until`, or never.
    Idle {
        /// The next deadline.
        until: Option<Instant>,
    },
}

/// A packet on its way out; the driver adds the IP header.
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
    /// The same with its packet, if it has one, in another form.
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

/// Changes in the life of a connection.
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
    /// The peer has lost the connection and set it up again; what was in flight is lost (RFC 9260
    /// §5.2.4 A).
    Restarted,
    /// More room than before: the application may hand over more data.
    Writable,
    /// The controller asks the source to send at this rate, the media's headers included and those of
    /// the transport apart. A source with a ladder of codecs takes the best that fits.
    TargetRate(Rate),
}

/// PendingEvents for the application, each at most once outstanding, told in the order of
/// [`PendingEvents::ORDER`].
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

    /// This happened.
    pub(crate) fn add(&mut self, event: Event) {
        let known = Self::ORDER.iter().position(|known| *known == event);
        self.0 |= 1 << known.expect("an encoding is asked for by the controller, and not news");
    }

    /// That the connection opened, perhaps again, which is reported before any data is delivered.
    #[inline]
    pub(crate) fn opening<T>(&mut self) -> Option<Output<T>> {
        self.next_of(0b11)
    }

    /// The next, told when all data was.
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

/// A protocol endpoint, driven by simulated or real time alike.
pub trait Endpoint {
    /// Its packets in parsed form.
    type Packet;
    /// Takes in what happened at `now`.
    fn handle<P: EndpointProbe>(&mut self, now: Instant, input: Input<Self::Packet>, probe: &mut P);
    /// [`Input::Packet`] of a packet that stays where it is: the endpoint takes out of it what it
    /// needs. For drivers that keep packets in a pool and would have to move them otherwise.
    fn receive<P: EndpointProbe>(
        &mut self,
        now: Instant,
        arrival: Arrival,
        packet: &mut Self::Packet,
        probe: &mut P,
    );
    /// Gives the next thing to do; called until it answers [`Output::Idle`].
    fn poll<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) -> Output<Self::Packet>;
    /// Bytes of payload (for message transports: of messages) the endpoint takes now.
    fn send_capacity(&self) -> usize;
    /// Bytes of the longest message it carries at all, whatever it has room for now: what is longer
    /// never leaves.
    fn max_message(&self) -> usize {
        usize::MAX
    }
    /// Whether it waits for a peer and belongs to none: a driver with one socket then hears anybody.
    fn is_listening(&self) -> bool {
        false
    }
    /// Names both ends of the packet that comes next, their addresses and ports in bytes of the
    /// driver's choice, to an endpoint that listens and may be called by many: what it hands out to
    /// be shown again (an Init Cookie, RFC 4340 §8.1.4) then opens nothing between other ends.
    /// Without it a listener has one possible peer, as in a simulation, and a cookie proves that the
    /// client received an answer and nothing about its address.
    fn between(&mut self, _ends: &[u8]) {}
    /// Whether a packet carries what its peer alone can know, so that where it came from is where the
    /// peer is: SCTP's Verification Tag (RFC 6951 §5.4). Protocols that bind a connection to its
    /// addresses and ports recognise nobody.
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
