//! What the ends exchange when a measurement or a call is over: notes and, after a call, what they said and
//! heard. What comes is limited by a [`Budget`] before it is kept.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use talkspurt_live::Clock;
use talkspurt_proto::time::{Duration, Instant};

use crate::budget::{Budget, LEAVE};
use crate::channel::{BEAT, Channel, Message, NOTES, PIECE};
use crate::end_report::EndReport;
use crate::merge::End;
use crate::notes::Log;
use crate::plan::Plan;
use crate::shared::Shared;
use crate::timed::IntoStd as _;

/// Most bytes of sound that are exchanged after a call, and the time for that of one end.
const MAX_SOUND: usize = 128 << 20;
const SOUND_TIME: Duration = Duration::from_secs(15);

/// Why there are no notes of the other end.
pub(crate) const LOST_NOTES: &str =
    "the control connection was lost before the other end's notes came";

/// The notes and the sound of the other end.
pub(crate) struct RemoteEnd {
    pub(crate) end: End,
    /// What it said and heard, if all of it came.
    pub(crate) sounds: Option<[Vec<i16>; 2]>,
}

/// Time that runs out, and sooner once a user has asked for the end.
struct Deadline<'a> {
    shared: &'a Shared,
    clock: Clock,
    until: Instant,
}

impl<'a> Deadline<'a> {
    fn new(shared: &'a Shared, time: Duration) -> Self {
        let clock = Clock::start();
        Self { shared, until: clock.now() + time, clock }
    }

    fn has_passed(&self) -> bool {
        self.clock.now() >= self.until || self.shared.is_left_for(LEAVE)
    }
}

/// Does some work while beats tell the other end that this one is there.
pub(crate) fn beating<T>(channel: &mut Channel, work: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let (working, done) = mpsc::channel::<()>();
        scope.spawn(move || {
            while done.recv_timeout(BEAT.into_std()) == Err(RecvTimeoutError::Timeout)
                && channel.send(&Message::Beat).is_ok()
            {}
        });
        let found = work();
        drop(working);
        found
    })
}

/// Gives our notes.
pub(crate) fn give_notes(
    channel: &mut Channel,
    (log, ended): (&Log, &EndReport),
    (plan, shared): (&Plan, &Shared),
) -> std::io::Result<()> {
    // Whoever takes them slowly does not hold this end up.
    let deadline = Deadline::new(shared, Budget::of(plan, log.rows).time);
    for piece in log.bytes().chunks(PIECE) {
        if deadline.has_passed() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        channel.send(&Message::Notes { bytes: piece.to_vec() })?;
    }
    channel.send(&Message::Done { ended: ended.clone() })
}

/// Gives our sound, as far as there is time.
pub(crate) fn give_sounds(
    channel: &mut Channel,
    sounds: &[Vec<i16>; 2],
    shared: &Shared,
) -> std::io::Result<()> {
    let deadline = Deadline::new(shared, SOUND_TIME);
    let bytes: usize = sounds.iter().map(|sound| 2 * sound.len()).sum();
    let mut complete = bytes <= MAX_SOUND;
    'all: for (sound, heard) in sounds.iter().zip([false, true]) {
        for piece in sound.chunks(PIECE / 2) {
            complete &= !deadline.has_passed();
            if !complete {
                break 'all;
            }
            let bytes = piece.iter().flat_map(|sample| sample.to_le_bytes()).collect();
            channel.send(&Message::Sound { heard, bytes })?;
        }
    }
    channel.send(&Message::Over { complete })
}

/// The messages of the other end.
struct Taking<'a> {
    channel: &'a mut Channel,
    deadline: Deadline<'a>,
    beaten: Instant,
}

impl<'a> Taking<'a> {
    fn new(channel: &'a mut Channel, shared: &'a Shared, time: Duration) -> Self {
        let deadline = Deadline::new(shared, time);
        Self { channel, beaten: deadline.clock.now(), deadline }
    }

    /// The next message; `None` if the connection is lost, nothing comes for a while, or the time for all is
    /// over. What comes is answered by beats: the other end, which gave all it has to its socket, sees that it
    /// still arrives here.
    fn next(&mut self) -> Option<Message> {
        let until = self.deadline.clock.now() + NOTES;
        while self.deadline.clock.now() < until && !self.deadline.has_passed() {
            match self.channel.receive(BEAT) {
                Ok(None) => {}
                Ok(message) => {
                    let now = self.deadline.clock.now();
                    if message != Some(Message::Beat) && now.saturating_since(self.beaten) >= BEAT {
                        self.beaten = now;
                        self.channel.send(&Message::Beat).ok()?;
                    }
                    return message;
                }
                Err(_) => break,
            }
        }
        None
    }
}

/// Takes the other end's notes of a plan.
pub(crate) fn take_notes(
    channel: &mut Channel,
    (plan, budget): (&Plan, Budget),
    shared: &Shared,
) -> Result<End, String> {
    let mut notes = Vec::new();
    let mut taking = Taking::new(channel, shared, budget.time);
    while let Some(message) = taking.next() {
        match message {
            Message::Notes { bytes } => {
                if bytes.len() > budget.bytes - notes.len() {
                    return Err("the other end's notes are longer than those of this plan can be"
                        .to_owned());
                }
                notes.extend(bytes);
            }
            Message::Done { ended } => {
                let rows = Log::rows(&notes, budget.rows)?;
                return Ok(End { rows, ended: ended.sifted(plan) });
            }
            _ => {}
        }
    }
    Err(match taking.deadline.has_passed() {
        true => "the other end's notes did not come in time".to_owned(),
        false => LOST_NOTES.to_owned(),
    })
}

/// Takes what the other end said and heard, each of so many samples at most; `None` if not all of it comes in
/// time.
pub(crate) fn take_sounds(
    channel: &mut Channel,
    samples: usize,
    shared: &Shared,
) -> Option<[Vec<i16>; 2]> {
    let samples = samples.min(MAX_SOUND / 2);
    let mut sounds = [Vec::new(), Vec::new()];
    let mut taking = Taking::new(channel, shared, SOUND_TIME * 2);
    loop {
        match taking.next()? {
            Message::Sound { heard, bytes } => {
                let sound = &mut sounds[usize::from(heard)];
                if bytes.len() / 2 > samples - sound.len() {
                    return None;
                }
                sound.extend(bytes.chunks_exact(2).map(|it| i16::from_le_bytes([it[0], it[1]])));
            }
            Message::Over { complete } => return complete.then_some(sounds),
            _ => {}
        }
    }
}

/// Waits until the other end has taken all and closes, for as long as it may take. A socket that is closed
/// while beats are in it unread resets the connection, and what is on the way to the other end is lost.
pub(crate) fn await_end(channel: &mut Channel, shared: &Shared) {
    let mut taking = Taking::new(channel, shared, SOUND_TIME * 2);
    while taking.next().is_some() {}
}
