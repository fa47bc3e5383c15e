//! Frames that wait because the transport has no room.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::packet::Frame;

/// Frames that wait for the transport.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How many may wait.
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
            (true, Drop::Oldest) => self.waiting.pop_front().map(|(oldest, _)| oldest),
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
