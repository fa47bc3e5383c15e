//! Impairments of a path: a bottleneck, a delay, and random events drawn from a seed, so that a run can be
//! repeated. [`Impaired`] is a port behind such a path.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::{io, iter, mem};

use talkspurt_live::{Clock, Port, is_a_loss};
use talkspurt_proto::packet::{Ecn, PathId};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;
use talkspurt_proto::wire::{ipv4, ipv6};
use talkspurt_record::pcapng::Direction;

/// Decision of a line on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Forwarded in order.
    Passed,
    /// Lost at random.
    Lost,
    /// Lost because the bottleneck's queue is full.
    Overflowed,
    /// Delayed by this much more; others overtake it.
    Held(Duration),
    /// Forwarded twice.
    Copied,
    /// Forwarded with "congestion experienced" (RFC 3168 §5), if it is ECN-capable.
    Marked,
}

impl Verdict {
    /// Whether the packet arrives.
    pub(crate) const fn arrives(self) -> bool {
        !matches!(self, Self::Lost | Self::Overflowed)
    }
}

/// Impairments of one direction: a bottleneck and a delay for all packets, and random events, independent per
/// packet. Packets lost at random do not reach the bottleneck.
#[derive(Clone, Debug)]
pub(crate) struct Impairments {
    /// Rate of the bottleneck, counted over whole IP packets; absent means no bottleneck.
    pub(crate) rate: Option<Rate>,
    /// Longest queueing time at the bottleneck; a packet that would wait longer is lost.
    pub(crate) queue: Duration,
    /// Delay of every packet, excluding the bottleneck.
    pub(crate) delay: Duration,
    /// Probability that a packet is lost, 0 to 1.
    pub(crate) loss: f64,
    /// Probability that a packet is held, 0 to 1.
    pub(crate) held: f64,
    /// Hold time, in addition to the delay.
    pub(crate) hold: Duration,
    /// Probability that a packet arrives twice, 0 to 1.
    pub(crate) copied: f64,
    /// Probability that a packet is marked, 0 to 1.
    pub(crate) marked: f64,
    /// Random source of these events.
    pub(crate) rng: Rng,
}

impl Impairments {
    /// No impairments.
    pub(crate) fn none() -> Self {
        Self {
            rate: None,
            queue: Duration::ZERO,
            delay: Duration::ZERO,
            loss: 0.0,
            held: 0.0,
            hold: Duration::ZERO,
            copied: 0.0,
            marked: 0.0,
            rng: Rng::new(0, "none"),
        }
    }

    /// Draws the random verdict on the next packet.
    fn draw(&mut self) -> Verdict {
        // Always draw all of them, so that one probability does not shift the random numbers of the others.
        let chances = [self.loss, self.held, self.copied, self.marked];
        match chances.map(|chance| self.rng.chance(chance)) {
            [true, ..] => Verdict::Lost,
            [_, true, ..] => Verdict::Held(self.hold),
            [_, _, true, _] => Verdict::Copied,
            [_, _, _, true] => Verdict::Marked,
            _ => Verdict::Passed,
        }
    }
}

/// State of one direction of a path.
#[derive(Debug)]
pub(crate) struct Way {
    impairments: Impairments,
    /// When the bottleneck becomes free.
    free: Instant,
}

impl Way {
    pub(crate) const fn new(impairments: Impairments) -> Self {
        Self { impairments, free: Instant::ZERO }
    }

    /// The verdict on the next packet, of this length, and when it comes out.
    pub(crate) fn take(&mut self, now: Instant, bytes: usize) -> (Verdict, Instant) {
        let verdict = self.impairments.draw();
        if !verdict.arrives() {
            return (verdict, now);
        }
        let mut through = now;
        if let Some(time) = self.impairments.rate.and_then(|rate| rate.time_for(bytes as u64)) {
            if self.free.saturating_since(now) > self.impairments.queue {
                return (Verdict::Overflowed, now);
            }
            self.free = self.free.max(now) + time;
            through = self.free;
        }
        let hold = if let Verdict::Held(hold) = verdict { hold } else { Duration::ZERO };
        (verdict, through + self.impairments.delay + hold)
    }
}

/// Marks an IP packet "congestion experienced" if it is ECN-capable (RFC 3168 §5).
pub(crate) fn mark(bytes: &mut [u8]) {
    let capable = |ecn| matches!(ecn, Ecn::Ect0 | Ecn::Ect1);
    let written = match bytes.first().map(|byte| byte >> 4) {
        Some(4) => match ipv4::Header::parse(bytes) {
            Ok((header, _)) if capable(header.ecn) => {
                ipv4::Header { ecn: Ecn::Ce, ..header }.write(bytes)
            }
            _ => Ok(()),
        },
        Some(6) => match ipv6::Header::parse(bytes) {
            Ok((header, _)) if capable(header.ecn) => {
                ipv6::Header { ecn: Ecn::Ce, ..header }.write(bytes)
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    };
    written.expect("a header that was read can be written");
}

/// Observes every packet on the local side: time sent, received or lost, direction, verdict, bytes.
pub(crate) type Tap = Box<dyn FnMut(Instant, Direction, Verdict, &[u8]) + Send>;

/// What happens to packets between us and the peer.
pub(crate) struct Impairing {
    /// Impairments of the peer's packets.
    pub(crate) inbound: Impairments,
    /// Impairments of our packets.
    pub(crate) outbound: Impairments,
    /// Our address and the peer's of each path beyond the first, as in [`talkspurt_live::Setup`].
    pub(crate) further: Vec<(IpAddr, IpAddr)>,
    /// Outages of paths: from, and until.
    pub(crate) cuts: Vec<(PathId, Instant, Instant)>,
    /// The observer.
    pub(crate) tap: Option<Tap>,
}

impl Default for Impairing {
    fn default() -> Self {
        let [inbound, outbound] = [(); 2].map(|()| Impairments::none());
        Self { inbound, outbound, further: Vec::new(), cuts: Vec::new(), tap: None }
    }
}

/// A port behind an impaired path.
pub(crate) struct Impaired<L> {
    port: L,
    clock: Clock,
    inbound: Way,
    outbound: Way,
    further: Vec<(IpAddr, IpAddr)>,
    cuts: Vec<(PathId, Instant, Instant)>,
    tap: Option<Tap>,
    /// Packets in flight, by the time they come out and the order in which they entered.
    underway: BTreeMap<(Instant, u64), (Direction, Verdict, Vec<u8>)>,
    began: u64,
    /// Packets in flight that could not be sent when they came out.
    pub(crate) unsent_packets: u64,
}

impl<L: Port> Impaired<L> {
    /// A port whose clock starts now.
    pub(crate) fn new(port: L, path: Impairing) -> Self {
        let Impairing { inbound, outbound, further, cuts, tap } = path;
        Self {
            port,
            clock: Clock::start(),
            inbound: Way::new(inbound),
            outbound: Way::new(outbound),
            further,
            cuts,
            tap,
            underway: BTreeMap::new(),
            began: 0,
            unsent_packets: 0,
        }
    }

    /// Sends all outbound packets in flight at once: the end of a run loses no packet.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        for (direction, _, bytes) in mem::take(&mut self.underway).into_values() {
            if direction == Direction::Outbound {
                self.transmit(&bytes)?;
            }
        }
        Ok(())
    }

    /// The impairments of a packet, and when it comes out; random numbers are drawn even during an outage.
    fn meet(&mut self, now: Instant, direction: Direction, bytes: &[u8]) -> (Verdict, Instant) {
        let way = match direction {
            Direction::Inbound => &mut self.inbound,
            Direction::Outbound => &mut self.outbound,
        };
        let met = way.take(now, bytes.len());
        let path = addresses(bytes).map(|(src, dst)| {
            let pair = if direction == Direction::Inbound { (dst, src) } else { (src, dst) };
            let further = self.further.iter().position(|further| *further == pair);
            PathId(further.map_or(0, |index| index as u8 + 1))
        });
        let cut = |(of, from, until): &(PathId, Instant, Instant)| {
            Some(*of) == path && (*from..*until).contains(&now)
        };
        if self.cuts.iter().any(cut) { (Verdict::Lost, now) } else { met }
    }

    /// Handles a packet from the socket.
    fn accept(&mut self, bytes: Vec<u8>) {
        let now = self.clock.now();
        let (verdict, through) = self.meet(now, Direction::Inbound, &bytes);
        if !verdict.arrives() {
            return self.look(now, Direction::Inbound, verdict, &bytes);
        }
        self.begin(through, Direction::Inbound, verdict, bytes);
    }

    fn look(&mut self, now: Instant, direction: Direction, verdict: Verdict, bytes: &[u8]) {
        if let Some(tap) = &mut self.tap {
            tap(now, direction, verdict, bytes);
        }
    }

    fn begin(
        &mut self,
        through: Instant,
        direction: Direction,
        mut verdict: Verdict,
        bytes: Vec<u8>,
    ) {
        for bytes in passing(verdict, bytes) {
            self.began += 1;
            self.underway.insert((through, self.began), (direction, verdict, bytes));
            // The tap counts a packet's impairment once.
            verdict = Verdict::Passed;
        }
    }

    /// Releases packets that are due: sends ours; returns the first of the peer's.
    fn release(&mut self, now: Instant) -> io::Result<Option<(Verdict, Vec<u8>)>> {
        while let Some(first) = self.underway.first_entry()
            && first.key().0 <= now
        {
            match first.remove() {
                (Direction::Inbound, verdict, bytes) => return Ok(Some((verdict, bytes))),
                (Direction::Outbound, _, bytes) => self.transmit(&bytes)?,
            }
        }
        Ok(None)
    }

    fn transmit(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.port.send(bytes) {
            Err(error) if is_a_loss(&error) => {
                self.unsent_packets += 1;
                Ok(())
            }
            sent => sent,
        }
    }
}

impl<L: Port> Port for Impaired<L> {
    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        let now = self.clock.now();
        let (verdict, through) = self.meet(now, Direction::Outbound, packet);
        self.look(now, Direction::Outbound, verdict, packet);
        if !verdict.arrives() {
            return Ok(());
        }
        if through > now {
            self.begin(through, Direction::Outbound, verdict, packet.to_vec());
            return Ok(());
        }
        for bytes in passing(verdict, packet.to_vec()) {
            self.transmit(&bytes)?;
        }
        Ok(())
    }

    fn receive(&mut self, wait: Option<Duration>, packet: &mut Vec<u8>) -> io::Result<bool> {
        let until = wait.map(|wait| self.clock.now() + wait);
        loop {
            let now = self.clock.now();
            if let Some((verdict, bytes)) = self.release(now)? {
                self.look(now, Direction::Inbound, verdict, &bytes);
                *packet = bytes;
                return Ok(true);
            }
            let due = self.underway.keys().next().map(|key| key.0);
            let wake = until.into_iter().chain(due).min();
            let wait = wake.map(|at| at.saturating_since(now));
            if self.port.receive(wait, packet)? {
                self.accept(mem::take(packet));
            } else if until.is_some() && wake == until && wake != due {
                return Ok(false);
            }
        }
    }
}

/// Source and destination of an IP packet.
fn addresses(bytes: &[u8]) -> Option<(IpAddr, IpAddr)> {
    if bytes.first()? >> 4 == 4 {
        let (header, _) = ipv4::Header::parse(bytes).ok()?;
        Some((header.src.into(), header.dst.into()))
    } else {
        let (header, _) = ipv6::Header::parse(bytes).ok()?;
        Some((header.src.into(), header.dst.into()))
    }
}

/// Copies of a packet to forward: one, possibly marked, or two.
fn passing(verdict: Verdict, mut bytes: Vec<u8>) -> impl Iterator<Item = Vec<u8>> {
    if verdict == Verdict::Marked {
        mark(&mut bytes);
    }
    let copy = (verdict == Verdict::Copied).then(|| bytes.clone());
    iter::once(bytes).chain(copy)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_bottleneck_serves_one_after_the_other_and_loses_what_would_wait_too_long() {
        let mut impairments = Impairments::none();
        // 1000 bytes take a millisecond.
        impairments.rate = Some(Rate::from_bps(8_000_000));
        (impairments.queue, impairments.delay) =
            (Duration::from_millis(2), Duration::from_millis(10));
        let mut way = Way::new(impairments);
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        assert_eq!(way.take(at(1), 1000), (Verdict::Passed, at(12)));
        assert_eq!(way.take(at(1), 1000), (Verdict::Passed, at(13)));
        assert_eq!(way.take(at(1), 1000), (Verdict::Passed, at(14)));
        assert_eq!(way.take(at(1), 1000).0, Verdict::Overflowed);
        assert_eq!(way.take(at(2), 1000), (Verdict::Passed, at(15)));
        assert_eq!(way.take(at(9), 500).1, at(19) + Duration::from_micros(500));
    }

    #[test]
    fn each_misfortune_is_as_frequent_as_asked() {
        let mut impairments =
            Impairments { loss: 0.1, held: 0.2, copied: 0.3, ..Impairments::none() };
        (impairments.marked, impairments.hold) = (0.4, Duration::from_millis(3));
        let mut way = Way::new(impairments);
        let fates: Vec<_> = (0..20_000).map(|_| way.take(Instant::ZERO, 40).0).collect();
        let share = |verdict| fates.iter().filter(|f| **f == verdict).count() as f64 / 20_000.0;
        // Each is checked only if none before it occurred; six standard errors.
        let held = Verdict::Held(Duration::from_millis(3));
        for (verdict, expected) in [
            (Verdict::Lost, 0.1),
            (held, 0.18),
            (Verdict::Copied, 0.216),
            (Verdict::Marked, 0.2016),
        ] {
            assert!((share(verdict) - expected).abs() < 0.018, "{verdict:?}: {}", share(verdict));
        }
    }

    #[test]
    fn only_what_is_ecn_capable_is_marked() {
        for (before, after) in [(Ecn::Ect0, Ecn::Ce), (Ecn::NotEct, Ecn::NotEct)] {
            let (src, dst) = (Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST);
            let (dscp, ttl, protocol, identification) = (5, 9, 6, 77);
            let sent = ipv4::Header { dscp, ecn: before, identification, ttl, protocol, src, dst };
            let mut bytes = [0; 40];
            sent.write(&mut bytes).expect("it fits");
            mark(&mut bytes);
            let (header, _) = ipv4::Header::parse(&bytes).expect("its checksum is right");
            assert_eq!(header, ipv4::Header { ecn: after, ..sent });
        }
    }
}
