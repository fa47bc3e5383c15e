//! Impairments of one direction of a path: a bottleneck, a delay, and random events drawn from a seed, so that
//! a run can be repeated.

use talkspurt_proto::packet::Ecn;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;
use talkspurt_proto::wire::{ipv4, ipv6};

/// Decision of a line on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
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
    #[must_use]
    pub const fn arrives(self) -> bool {
        !matches!(self, Self::Lost | Self::Overflowed)
    }
}

/// Impairments of one direction: a bottleneck and a delay for all packets, and random events, independent per
/// packet. Packets lost at random do not reach the bottleneck.
#[derive(Clone, Debug)]
pub struct Impairments {
    /// Rate of the bottleneck, counted over whole IP packets; absent means no bottleneck.
    pub rate: Option<Rate>,
    /// Longest queueing time at the bottleneck; a packet that would wait longer is lost.
    pub queue: Duration,
    /// Delay of every packet, excluding the bottleneck.
    pub delay: Duration,
    /// Probability that a packet is lost, 0 to 1.
    pub loss: f64,
    /// Probability that a packet is held, 0 to 1.
    pub held: f64,
    /// Hold time, in addition to the delay.
    pub hold: Duration,
    /// Probability that a packet arrives twice, 0 to 1.
    pub copied: f64,
    /// Probability that a packet is marked, 0 to 1.
    pub marked: f64,
    /// Random source of these events.
    pub rng: Rng,
}

impl Impairments {
    /// No impairments.
    #[must_use]
    pub fn none() -> Self {
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
