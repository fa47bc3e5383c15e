//! When packets of probe clusters leave (as libwebrtc's `BitrateProber`). It holds no packets.

use std::collections::VecDeque;

use super::Cluster;
use crate::time::{Duration, Instant};

/// A cluster begins with a packet of at least this size, so that it does not begin with a few bytes of audio.
const LEAST_PACKET: u64 = 200;
/// A cluster that is this late says nothing any more.
const LATEST: Duration = Duration::from_millis(10);
/// Clusters wait this long, and no more of them.
const PATIENCE: Duration = Duration::from_secs(5);
const MOST: usize = 5;

/// Clusters that wait, and the one that leaves. It leaves in bursts: what its rate carries in
/// [`Cluster::spacing`] at once.
#[derive(Clone, Debug, Default)]
pub struct Clusters {
    waiting: VecDeque<Leaving>,
    /// When the next burst is due, if the first cluster has begun.
    next: Option<Instant>,
    /// Nothing was there to be sent in the last burst.
    is_stalled: bool,
}

#[derive(Clone, Copy, Debug)]
struct Leaving {
    cluster: Cluster,
    asked: Instant,
    began: Option<Instant>,
    bytes: u64,
    bursts: u32,
    /// Bytes of this burst.
    burst: u64,
}

impl Leaving {
    fn of_rate(&self, time: Duration) -> u64 {
        let bits = u128::from(self.cluster.rate.as_bps()) * u128::from(time.as_nanos());
        (bits / 8_000_000_000) as u64
    }
}

impl Clusters {
    /// A cluster is to be sent.
    pub fn add(&mut self, now: Instant, cluster: Cluster) {
        while self.waiting.front().is_some_and(|first| first.asked + PATIENCE < now)
            || self.waiting.len() > MOST
        {
            self.waiting.pop_front();
        }
        let (bytes, bursts, burst) = (0, 0, 0);
        self.waiting.push_back(Leaving { cluster, asked: now, began: None, bytes, bursts, burst });
        if self.waiting.len() == 1 {
            self.next = None;
        }
    }

    /// A packet of this size is there to be sent.
    pub fn on_packet(&mut self, bytes: u64) {
        let least = self.waiting.front().map(|it| it.of_rate(it.cluster.spacing));
        if self.next.is_none() && least.is_some_and(|least| bytes >= least.min(LEAST_PACKET)) {
            self.next = Some(Instant::ZERO);
        }
    }

    /// When the next burst is due, if packets leave for a cluster.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.next.filter(|_| !self.is_stalled)
    }

    /// The cluster of a packet that leaves now.
    pub fn current(&mut self, now: Instant) -> Option<u32> {
        let next = self.next.filter(|next| *next <= now)?;
        if next > Instant::ZERO && now > next + LATEST {
            self.pop();
        }
        let first = self.waiting.front().filter(|_| self.next.is_some_and(|next| next <= now));
        first.map(|it| it.cluster.id)
    }

    /// Bytes that the burst which is due still has; zero if none is.
    #[must_use]
    pub fn missing(&self, now: Instant) -> u64 {
        let is_due = self.next.is_some_and(|next| next <= now);
        let first = self.waiting.front().filter(|_| is_due);
        first.map_or(0, |it| it.of_rate(it.cluster.spacing).max(1).saturating_sub(it.burst))
    }

    /// True if nothing of the cluster that is due has left.
    #[must_use]
    pub fn begins(&self, now: Instant) -> bool {
        let is_due = self.next.is_some_and(|next| next <= now);
        is_due && self.waiting.front().is_some_and(|it| it.bytes + it.burst == 0)
    }

    /// A packet of the current cluster leaves.
    pub fn on_sent(&mut self, now: Instant, bytes: u64) {
        let Some(first) = self.waiting.front_mut() else { return };
        first.burst += bytes;
        self.is_stalled = false;
        if self.missing(now) == 0 {
            self.end_burst(now);
        }
    }

    /// No more packets are there for the burst that is due.
    pub fn end_burst(&mut self, now: Instant) {
        if self.next.is_none_or(|next| next > now) {
            return;
        }
        let Some(first) = self.waiting.front_mut() else { return };
        if first.burst == 0 {
            self.is_stalled = true;
            return;
        }
        let began = *first.began.get_or_insert(now);
        first.bytes += std::mem::take(&mut first.burst);
        first.bursts += 1;
        let (bytes, least) = (first.bytes, first.of_rate(first.cluster.duration));
        self.next = first.cluster.rate.time_for(bytes).map(|time| began + time);
        if bytes >= least && first.bursts >= first.cluster.packets {
            self.pop();
        }
    }

    /// The first cluster is over; the next one follows at once.
    fn pop(&mut self) {
        self.waiting.pop_front();
        if self.waiting.is_empty() {
            self.next = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;

    const MS: Duration = Duration::from_millis(1);

    fn cluster(id: u32, kbps: u64) -> Cluster {
        let rate = Rate::from_bps(kbps * 1000);
        Cluster { id, rate, duration: MS * 15, packets: 5, spacing: MS * 2 }
    }

    /// Packets of 1000 bytes as they leave: when, and for which cluster.
    fn leave(clusters: &mut Clusters, from: Instant) -> Vec<(Instant, u32)> {
        let (mut now, mut left) = (from, Vec::new());
        clusters.on_packet(1000);
        while let Some(due) = clusters.due() {
            now = now.max(due);
            while clusters.missing(now) > 0 {
                left.extend(clusters.current(now).map(|id| (now, id)));
                clusters.on_sent(now, 1000);
            }
        }
        left
    }

    #[test]
    fn clusters_leave_at_their_rates_one_after_the_other() {
        let mut clusters = Clusters::default();
        let at = Instant::ZERO + MS * 1000;
        clusters.add(at, cluster(1, 900));
        clusters.add(at, cluster(2, 8000));
        let left = leave(&mut clusters, at);
        let of = |id| left.iter().filter(|it| it.1 == id).map(|it| it.0).collect::<Vec<_>>();
        // 900 kbit/s: five bursts of a packet, though 15 ms are two packets. 8 Mbit/s: two packets each 2 ms.
        let (first, second) = (of(1), of(2));
        assert_eq!((first.len(), second.len()), (5, 16));
        let rate = |times: &[Instant]| {
            let time = (times[times.len() - 1] - times[0]).as_secs_f64();
            8000.0 * (times.len() - 1) as f64 / time
        };
        assert!((rate(&first) / 9e5 - 1.0).abs() < 0.01, "{}", rate(&first));
        assert!((rate(&second) / 8e6 - 1.0).abs() < 0.1, "{}", rate(&second));
        assert_eq!(clusters.due(), None);
    }

    #[test]
    fn a_cluster_begins_with_a_packet_that_is_not_small() {
        let mut clusters = Clusters::default();
        clusters.add(Instant::ZERO, cluster(1, 900));
        clusters.on_packet(199);
        assert_eq!(clusters.due(), None);
        clusters.on_packet(200);
        assert_eq!(clusters.due(), Some(Instant::ZERO));
    }

    #[test]
    fn what_is_late_is_given_up_and_nothing_waits_for_ever() {
        let mut clusters = Clusters::default();
        let at = Instant::ZERO + MS * 1000;
        clusters.add(at, cluster(1, 900));
        clusters.on_packet(1000);
        assert_eq!(clusters.current(at), Some(1));
        clusters.on_sent(at, 1000);
        // The next is due 8.9 ms later.
        assert_eq!(clusters.current(at + MS * 8), None);
        assert_eq!(clusters.current(at + MS * 9), Some(1));
        assert_eq!(clusters.current(at + MS * 20), None, "11 ms late");
        // Nothing to send: the burst waits for a packet.
        clusters.add(at, cluster(2, 900));
        clusters.on_packet(1000);
        clusters.end_burst(at);
        assert_eq!((clusters.due(), clusters.current(at)), (None, Some(2)));
        for id in 3..100 {
            clusters.add(at + PATIENCE * 2, cluster(id, 900));
            assert!(clusters.waiting.len() <= MOST + 1);
        }
    }
}
