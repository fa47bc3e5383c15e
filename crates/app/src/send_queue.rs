//! Frames that wait while the transport has no room: the limit, and which frame is dropped when the queue is
//! full or frames are too old. The queue assigns no numbers and reads no clock; instants are arguments.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::validate::{ConfigError, ConfigErrors, Validate};

/// Queue of frames before the transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Limit in frames; with 0, a frame that the transport does not take at once is dropped. Absent: the
    /// default of the transport's profile (`rfc` 50, `ns2` 1000, `linux` 5), and of video that has
    /// `repair`, or goes over UDP under a `controller`, 1250.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u32>,
    /// Which frame is dropped when the queue is full.
    #[serde(default)]
    pub drop: Drop,
    /// With `drop = "stale"`: maximum wait of a frame. Absent: 150 ms, above which a conversation begins to
    /// suffer (ITU-T G.114).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<Duration>,
}

/// Upper bound of a frame's lifetime.
const MAX_LIFETIME: Duration = Duration::from_secs(60);

impl Validate for Config {
    fn errors(&self) -> Vec<ConfigError> {
        let mut found = ConfigErrors::default();
        let Some(lifetime) = self.lifetime else { return found.0 };
        if self.drop != Drop::Stale {
            let why = "only the policy \"stale\" asks how long a frame has waited";
            found.add_with_hint("lifetime", why, "add drop = \"stale\", or leave it out");
        } else if lifetime.is_zero() {
            let hint = "packets = 0 says so: what the transport does not take is dropped";
            found.add_with_hint("lifetime", "0ms lets no frame wait", hint);
        } else {
            found.at_most("lifetime", lifetime, MAX_LIFETIME);
        }
        found.0
    }
}

/// Which frame a full send queue drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Drop {
    /// The newest.
    #[default]
    Newest,
    /// The oldest.
    Oldest,
    /// Those that have waited longer than `lifetime`, even if the queue is not full: they are dropped when
    /// another frame arrives or the transport has room again. If the queue is full of younger ones, the oldest.
    Stale,
}

impl Config {
    /// Default limit if neither the scenario nor a profile sets one.
    pub const PACKETS: u32 = 50;
    /// Default maximum wait of a frame.
    pub const LIFETIME: Duration = Duration::from_millis(150);
}

/// The queue. Every packet checks whether it is empty; all else is rare.
#[derive(Debug)]
#[repr(C)]
pub struct SendQueue {
    waiting: VecDeque<Waiting>,
    /// Of the frames that wait.
    bytes: u64,
    lifetime: Duration,
    packets: u32,
    drop: Drop,
}

/// A queued frame.
#[derive(Debug)]
struct Waiting {
    index: u32,
    since: Instant,
    frame: Frame,
}

impl SendQueue {
    /// An empty queue.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            packets: config.packets.unwrap_or(Config::PACKETS),
            bytes: 0,
            drop: config.drop,
            lifetime: config.lifetime.unwrap_or(Config::LIFETIME),
            waiting: VecDeque::new(),
        }
    }

    /// Bytes of the frames that wait.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How long the oldest frame has waited.
    #[must_use]
    pub fn wait(&self, now: Instant) -> Duration {
        self.waiting.front().map_or(Duration::ZERO, |oldest| now.saturating_since(oldest.since))
    }

    fn take(&mut self) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        self.bytes -= first.frame.wire_bytes() as u64;
        Some(first)
    }

    /// Removes a frame that has waited too long and returns its number; call until `None` before [`Self::push`]
    /// and before [`Self::pop`].
    pub fn expire(&mut self, now: Instant) -> Option<u32> {
        let oldest = self.waiting.front().filter(|_| self.drop == Drop::Stale)?;
        let stale = now.saturating_since(oldest.since) > self.lifetime;
        stale.then(|| self.take()).flatten().map(|gone| gone.index)
    }

    /// Adds a frame; returns the number of the dropped one, if any.
    pub fn push(&mut self, now: Instant, index: u32, frame: Frame) -> Option<u32> {
        let full = self.waiting.len() >= self.packets as usize;
        let dropped = match (full, self.drop) {
            (false, _) => None,
            (true, Drop::Newest) => return Some(index),
            (true, Drop::Oldest | Drop::Stale) => match self.take() {
                Some(oldest) => Some(oldest.index),
                // The limit is 0.
                None => return Some(index),
            },
        };
        self.bytes += frame.wire_bytes() as u64;
        self.waiting.push_back(Waiting { index, since: now, frame });
        dropped
    }

    /// How many more frames it holds without dropping one.
    #[must_use]
    pub fn places(&self) -> usize {
        (self.packets as usize).saturating_sub(self.waiting.len())
    }

    /// Adds a frame before all others. So that it hides none, it counts as old as the first of them.
    pub fn push_first(&mut self, now: Instant, index: u32, frame: Frame) {
        let since = self.waiting.front().map_or(now, |first| first.since);
        self.bytes += frame.wire_bytes() as u64;
        self.waiting.push_front(Waiting { index, since, frame });
    }

    /// Removes the next frame if it exceeds the largest the transport can carry, and returns its number; call
    /// until `None` before [`Self::pop`].
    pub fn expel(&mut self, largest: usize) -> Option<u32> {
        let misfit = self.waiting.front().is_some_and(|first| first.frame.wire_bytes() > largest);
        misfit.then(|| self.take()).flatten().map(|gone| gone.index)
    }

    /// The next frame, if it fits in `room` bytes.
    pub fn pop(&mut self, room: usize) -> Option<(u32, Frame)> {
        let fits = self.waiting.front().is_some_and(|first| first.frame.wire_bytes() <= room);
        let first = fits.then(|| self.take()).flatten()?;
        Some((first.index, first.frame))
    }

    /// True if the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use talkspurt_proto::packet::Payload;

    const DROPS: [Drop; 3] = [Drop::Newest, Drop::Oldest, Drop::Stale];

    fn frame(bytes: u64) -> Frame {
        Frame::Data(Payload::Virtual { offset: 0, len: bytes })
    }
    fn ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }
    fn queue(packets: u32, drop: Drop, lifetime: Duration) -> SendQueue {
        SendQueue::new(Config { packets: Some(packets), drop, lifetime: Some(lifetime) })
    }
    /// Adds a frame at `at`; returns the dropped ones.
    fn join(queue: &mut SendQueue, at: Instant, index: u32) -> Vec<u32> {
        let mut gone: Vec<u32> = std::iter::from_fn(|| queue.expire(at)).collect();
        gone.extend(queue.push(at, index, frame(10)));
        gone
    }
    /// Adds frames 0 to 4 to a queue of three, one every 20 ms; returns those dropped and those kept.
    fn five_into_three(drop: Drop, lifetime: Duration) -> (Vec<u32>, Vec<u32>) {
        let mut queue = queue(3, drop, lifetime);
        let gone =
            (0..5).flat_map(|index| join(&mut queue, ms(20 * u64::from(index)), index)).collect();
        let stayed = std::iter::from_fn(|| queue.pop(usize::MAX)).map(|(index, _)| index);
        (gone, stayed.collect())
    }

    #[test]
    fn the_newest_or_the_oldest_goes() {
        let ever = Duration::from_secs(1);
        assert_eq!(five_into_three(Drop::Newest, ever), (vec![3, 4], vec![0, 1, 2]));
        assert_eq!(five_into_three(Drop::Oldest, ever), (vec![0, 1], vec![2, 3, 4]));
    }

    #[test]
    fn stale_frames_go_before_the_queue_is_full_and_else_the_oldest() {
        // At 80 ms the frames of 0, 20 and 40 ms have waited longer than 39 ms, that of 60 ms has not.
        let short = Duration::from_millis(39);
        assert_eq!(five_into_three(Drop::Stale, short), (vec![0, 1, 2], vec![3, 4]));
        let long = Duration::from_millis(500);
        assert_eq!(five_into_three(Drop::Stale, long), (vec![0, 1], vec![2, 3, 4]));
    }

    #[test]
    fn a_lifetime_is_kept_to_the_nanosecond_and_only_by_the_stale_policy() {
        for (drop, goes) in [(Drop::Newest, false), (Drop::Oldest, false), (Drop::Stale, true)] {
            let mut queue = queue(3, drop, Duration::from_millis(150));
            queue.push(Instant::ZERO, 7, frame(10));
            assert_eq!(queue.expire(ms(150)), None);
            let later = ms(150) + Duration::from_nanos(1);
            assert_eq!(queue.expire(later), goes.then_some(7));
            assert_eq!(queue.is_empty(), goes);
        }
    }

    #[test]
    fn a_frame_is_not_cut_to_the_room() {
        let mut queue = queue(3, Drop::Newest, Duration::MAX);
        queue.push(Instant::ZERO, 0, frame(10));
        queue.push(Instant::ZERO, 1, frame(1));
        assert_eq!(queue.pop(9), None);
        assert_eq!(queue.pop(10).map(|(index, _)| index), Some(0));
        assert_eq!(queue.pop(1).map(|(index, _)| index), Some(1));
        assert!(queue.is_empty());
    }

    #[test]
    fn what_never_fits_goes_and_what_waits_for_a_permit_stays() {
        let mut queue = queue(3, Drop::Newest, Duration::MAX);
        for (index, bytes) in [(0, 30), (1, 20), (2, 10)] {
            queue.push(Instant::ZERO, index, frame(bytes));
        }
        assert_eq!((queue.expel(30), queue.pop(0)), (None, None));
        let gone: Vec<u32> = std::iter::from_fn(|| queue.expel(19)).collect();
        assert_eq!(gone, [0, 1]);
        assert_eq!(queue.pop(19).map(|(index, _)| index), Some(2));
    }

    proptest! {
        #[test]
        fn order_is_kept_and_no_more_wait_than_may(
            packets in 0_u32..5,
            drop in 0_usize..3,
            lifetime in 0_u64..50,
            steps in prop::collection::vec((0_usize..40, 0_u64..20), 0..100),
        ) {
            let mut queue = queue(packets, DROPS[drop], Duration::from_millis(lifetime));
            let (mut popped, mut gone, mut now) = (Vec::new(), Vec::new(), 0);
            for (index, (room, wait)) in (0..).zip(&steps) {
                now += wait;
                gone.extend(join(&mut queue, ms(now), index));
                prop_assert!(queue.waiting.len() <= packets as usize);
                prop_assert_eq!(queue.bytes(), 10 * queue.waiting.len() as u64);
                let taken = std::iter::from_fn(|| queue.pop(*room));
                popped.extend(taken.take(room / 10).map(|(index, _)| index));
            }
            prop_assert!(popped.is_sorted() && gone.is_sorted());
            prop_assert_eq!(popped.len() + gone.len() + queue.waiting.len(), steps.len());
        }
    }
}
