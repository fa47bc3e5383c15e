//! The control connection while media runs: signs of life, and how long those of the other end are missing.

use std::io;
use std::sync::atomic::Ordering;

use talkspurt_live::Clock;
use talkspurt_proto::time::{Duration, Instant};

use crate::channel::{BEAT, BEGIN, Channel, IDLE, Message};
use crate::shared::Shared;

/// Longest wait for a message: how late a request to stop can be seen.
const STEP: Duration = Duration::from_millis(50);

/// The control connection of an end whose media runs.
pub(crate) struct Control<'a> {
    pub(crate) channel: &'a mut Channel,
    shared: &'a Shared,
    clock: Clock,
    heard: Instant,
    beaten: Instant,
    /// When the other end, which says when it is finished, should have said so.
    latest: Instant,
}

impl<'a> Control<'a> {
    /// Of a plan that ends then; time begins now.
    pub(crate) fn new(channel: &'a mut Channel, shared: &'a Shared, end: Instant) -> Self {
        let clock = Clock::start();
        let now = clock.now();
        Self { channel, shared, clock, heard: now, beaten: now, latest: end + IDLE }
    }

    /// Time since the other end was heard.
    pub(crate) fn silence(&self) -> Duration {
        self.clock.now().saturating_since(self.heard)
    }

    /// Whether the client has not begun in time.
    pub(crate) fn waits_for_begin(&self) -> bool {
        let has_begun = self.shared.started.load(Ordering::Acquire);
        !has_begun && self.clock.now() >= Instant::ZERO + BEGIN
    }

    /// Whether the other end has not finished some time after it should have.
    pub(crate) fn waits_for_finish(&mut self) -> bool {
        let now = self.clock.now();
        if self.shared.is_over() {
            self.latest = self.latest.min(now + IDLE);
        }
        now >= self.latest
    }

    /// Gives a sign of life if one is due, and waits a little for a message.
    pub(crate) fn turn(&mut self) -> io::Result<Option<Message>> {
        let now = self.clock.now();
        if now.saturating_since(self.beaten) >= BEAT {
            self.beaten = now;
            self.channel.send(&Message::Beat)?;
        }
        let message = self.channel.receive(STEP)?;
        if message.is_some() {
            self.heard = self.clock.now();
        }
        Ok(message)
    }
}
