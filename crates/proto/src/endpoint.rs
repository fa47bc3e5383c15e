//! The two doors of a protocol endpoint: [`Endpoint::handle`] takes what happened,
//! [`Endpoint::poll`] gives what is to be done. No socket, clock, thread or global behind them.
//!
//! The rule for drivers: after every `handle`, call `poll` until it answers [`Output::Idle`], and
//! hand in [`Input::Timeout`] when the instant it named has come.

use crate::packet::{Body, Damage, Ecn, Frame, PathId};
use crate::probe::Probe;
use crate::time::Instant;

/// What can happen to an endpoint. It has a tag of its own, which the compiler knows where one is made
/// and handed in; one hidden in the body's is as unknown as the body.
#[derive(Debug)]
#[repr(u8)]
pub enum Input {
    /// The application opens the connection (a listener needs no opening).
    Open,
    /// The application hands over data; only as much as [`Endpoint::send_capacity`] allows.
    Frame(Frame),
    /// A packet arrived.
    Packet {
        /// On which path.
        path: PathId,
        /// With which ECN field.
        ecn: Ecn,
        /// Whether it is whole.
        damage: Damage,
        /// Its parsed form.
        body: Body,
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

/// What the local network can say about a path. What routers say comes as a packet
/// ([`Body::TooBig`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathNews {
    /// The local interface went down.
    Down,
    /// The local interface came back.
    Up,
}

/// What an endpoint wants done; its tag is its own, as that of [`Input`].
#[derive(Debug)]
#[repr(u8)]
pub enum Output {
    /// Send this packet.
    Transmit(Transmit),
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
pub struct Transmit {
    /// Path to send on.
    pub path: PathId,
    /// ECN field to set.
    pub ecn: Ecn,
    /// The parsed packet.
    pub body: Body,
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
    /// The peer has lost the connection and set it up anew; what was under way is lost (RFC 9260
    /// §5.2.4 A).
    Restarted,
    /// More room than before: the application may hand over more data.
    Writable,
    /// The controller asks the source for this rung of its ladder, 0 being the best.
    Encoding(u8),
}

/// PendingEvents for the application, each at most once outstanding, told in the order of [`PendingEvents::ORDER`].
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

    /// That the connection opened, anew perhaps, which is told before any data is delivered.
    #[inline]
    pub(crate) fn opening(&mut self) -> Option<Output> {
        self.next_of(0b11)
    }

    /// The next, told when all data was.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Output> {
        self.next_of(u8::MAX)
    }

    #[inline]
    fn next_of(&mut self, mask: u8) -> Option<Output> {
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
    /// Takes in what happened at `now`.
    fn handle<P: Probe>(&mut self, now: Instant, input: Input, probe: &mut P);
    /// [`Input::Packet`] of a body that lies elsewhere: what the endpoint wants of it, it takes; the
    /// rest is the driver's to drop. For drivers that would have to move bodies otherwise.
    #[inline]
    fn receive<P: Probe>(
        &mut self,
        now: Instant,
        (path, ecn, damage): (PathId, Ecn, Damage),
        body: &mut Body,
        probe: &mut P,
    ) {
        let body = std::mem::take(body);
        self.handle(now, Input::Packet { path, ecn, damage, body }, probe);
    }
    /// Gives the next thing to do; called until it answers [`Output::Idle`].
    fn poll<P: Probe>(&mut self, now: Instant, probe: &mut P) -> Output;
    /// Bytes of payload (for message transports: of messages) the endpoint takes now.
    fn send_capacity(&self) -> usize;
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
    /// Whether a packet bears what its peer alone can know, so that where it came from is where the
    /// peer is: SCTP's Verification Tag (RFC 6951 §5.4). Protocols that bind a connection to its
    /// addresses and ports recognise nobody.
    fn recognises(&self, _: &Body) -> bool {
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
        let told = |output: Option<Output>| match output {
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
