//! Frames that wait because the transport has no room.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::packet::Frame;

/// Frames that wait for the transport.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How many may wait; with 0, what the transport does not take at once is dropped.
    #[serde(default = "Config::default_packets")]
    pub packets: u32,
    /// Which goes when they are too many.
    #[serde(default)]
    pub drop: Drop,
}

/// Which frame a full send queue drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Drop {
    /// The one that came last.
    #[default]
    Newest,
    /// The one that waited longest.
    Oldest,
}

impl Config {
    const fn default_packets() -> u32 {
        50
    }
}
impl Default for Config {
    fn default() -> Self {
        Self { packets: Self::default_packets(), drop: Drop::default() }
    }
}

/// The queue.
#[derive(Debug)]
pub struct SendQueue {
    config: Config,
    waiting: VecDeque<(u32, Frame)>,
}

impl SendQueue {
    /// An empty queue.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, waiting: VecDeque::new() }
    }

    /// A frame joins; the number of the one that had to go is returned.
    pub fn push(&mut self, index: u32, frame: Frame) -> Option<u32> {
        let full = self.waiting.len() >= self.config.packets as usize;
        let dropped = match (full, self.config.drop) {
            (false, _) => None,
            (true, Drop::Newest) => return Some(index),
            (true, Drop::Oldest) => match self.waiting.pop_front() {
                Some((oldest, _)) => Some(oldest),
                // There is no place at all.
                None => return Some(index),
            },
        };
        self.waiting.push_back((index, frame));
        dropped
    }

    /// The next frame, if `room` bytes suffice for it.
    pub fn pop(&mut self, room: usize) -> Option<(u32, Frame)> {
        let fits = self.waiting.front().is_some_and(|(_, frame)| frame.wire_bytes() <= room);
        fits.then(|| self.waiting.pop_front()).flatten()
    }

    /// True if nothing waits.
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

    fn frame(bytes: u64) -> Frame {
        Frame::Data(Payload::Virtual { offset: 0, len: bytes })
    }
    fn queue(packets: u32, drop: Drop) -> SendQueue {
        SendQueue::new(Config { packets, drop })
    }
    /// Frames 0 to 4 join a queue of three; those that had to go, and those that stayed.
    fn five_into_three(drop: Drop) -> (Vec<u32>, Vec<u32>) {
        let mut queue = queue(3, drop);
        let mut gone = Vec::new();
        for index in 0..5 {
            gone.extend(queue.push(index, frame(10)));
        }
        let stayed = std::iter::from_fn(|| queue.pop(usize::MAX)).map(|(index, _)| index);
        (gone, stayed.collect())
    }

    #[test]
    fn the_newest_or_the_oldest_goes() {
        assert_eq!(five_into_three(Drop::Newest), (vec![3, 4], vec![0, 1, 2]));
        assert_eq!(five_into_three(Drop::Oldest), (vec![0, 1], vec![2, 3, 4]));
    }

    #[test]
    fn a_frame_is_not_cut_to_the_room() {
        let mut queue = queue(3, Drop::Newest);
        queue.push(0, frame(10));
        queue.push(1, frame(1));
        assert_eq!(queue.pop(9), None);
        assert_eq!(queue.pop(10).map(|(index, _)| index), Some(0));
        assert_eq!(queue.pop(1).map(|(index, _)| index), Some(1));
        assert!(queue.is_empty());
    }

    proptest! {
        #[test]
        fn order_is_kept_and_no_more_wait_than_may(
            packets in 0_u32..5,
            oldest: bool,
            rooms in prop::collection::vec(0_usize..40, 0..100),
        ) {
            let drop = if oldest { Drop::Oldest } else { Drop::Newest };
            let mut queue = queue(packets, drop);
            let (mut popped, mut gone) = (Vec::new(), Vec::new());
            for (index, room) in (0..).zip(&rooms) {
                gone.extend(queue.push(index, frame(10)));
                prop_assert!(queue.waiting.len() <= packets as usize);
                let taken = std::iter::from_fn(|| queue.pop(*room));
                popped.extend(taken.take(room / 10).map(|(index, _)| index));
            }
            prop_assert!(popped.is_sorted() && gone.is_sorted());
            prop_assert_eq!(popped.len() + gone.len() + queue.waiting.len(), rooms.len());
        }
    }
}
