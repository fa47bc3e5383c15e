//! What the ends of a call exchange when it is over: notes, and what they said and heard.

use talkspurt_live::Clock;
use talkspurt_proto::time::{Duration, Instant};

use crate::channel::{BEAT, Channel, MAX_NOTES, Message, NOTES, PIECE};
use crate::end_report::EndReport;
use crate::merge::End;
use crate::notes::Log;

/// Most bytes of sound that are exchanged after a call, and the time for it.
const MAX_SOUND: usize = 128 << 20;
const SOUND_TIME: Duration = Duration::from_secs(15);

/// The notes and the sound of the other end.
pub(super) struct RemoteEnd {
    pub(super) end: End,
    /// What it said and heard, if all of it came.
    pub(super) sounds: Option<[Vec<i16>; 2]>,
}

/// Gives our notes.
pub(super) fn give_notes(
    channel: &mut Channel,
    (log, ended): (&Log, &EndReport),
) -> std::io::Result<()> {
    for piece in log.bytes().chunks(PIECE) {
        channel.send(&Message::Notes { bytes: piece.to_vec() })?;
    }
    channel.send(&Message::Done { ended: ended.clone() })
}

/// Gives our sound, as far as there is time.
pub(super) fn give_sounds(channel: &mut Channel, sounds: &[Vec<i16>; 2]) -> std::io::Result<()> {
    let clock = Clock::start();
    let bytes: usize = sounds.iter().map(|sound| 2 * sound.len()).sum();
    let mut complete = bytes <= MAX_SOUND;
    'all: for (sound, heard) in sounds.iter().zip([false, true]) {
        for piece in sound.chunks(PIECE / 2) {
            complete &= clock.now() < Instant::ZERO + SOUND_TIME;
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
    clock: Clock,
    beaten: Instant,
}

impl<'a> Taking<'a> {
    fn new(channel: &'a mut Channel) -> Self {
        let clock = Clock::start();
        Self { channel, beaten: clock.now(), clock }
    }

    /// The next message; `None` if the connection is lost, or nothing comes for a while. What comes is answered
    /// by beats: the other end, which gave all it has to its socket, sees that it still arrives here.
    fn next(&mut self) -> Option<Message> {
        let until = self.clock.now() + NOTES;
        while self.clock.now() < until {
            match self.channel.receive(BEAT) {
                Ok(None) => {}
                Ok(message) => {
                    let now = self.clock.now();
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

/// Takes the other end's notes.
pub(super) fn take_notes(channel: &mut Channel) -> Result<End, String> {
    let mut notes = Vec::new();
    let mut taking = Taking::new(channel);
    while let Some(message) = taking.next() {
        match message {
            Message::Notes { bytes } => {
                notes.extend(bytes);
                if notes.len() > MAX_NOTES {
                    return Err("the other end's notes are longer than 1 GB".to_owned());
                }
            }
            Message::Done { ended } => return Ok(End { rows: Log::rows(&notes)?, ended }),
            _ => {}
        }
    }
    Err("the control connection was lost before the other end's notes came".to_owned())
}

/// Takes what the other end said and heard; `None` if not all of it comes in time.
pub(super) fn take_sounds(channel: &mut Channel) -> Option<[Vec<i16>; 2]> {
    let mut sounds = [Vec::new(), Vec::new()];
    let mut taking = Taking::new(channel);
    while taking.clock.now() < Instant::ZERO + SOUND_TIME * 2 {
        match taking.next()? {
            Message::Sound { heard, bytes } => {
                let sound = &mut sounds[usize::from(heard)];
                sound.extend(bytes.chunks_exact(2).map(|it| i16::from_le_bytes([it[0], it[1]])));
                if 2 * sound.len() > MAX_SOUND {
                    return None;
                }
            }
            Message::Over { complete } => return complete.then_some(sounds),
            _ => {}
        }
    }
    None
}

/// Waits until the other end has taken all and closes, for as long as it may take. A socket that is closed
/// while beats are in it unread resets the connection, and what is on the way to the other end is lost.
pub(super) fn await_end(channel: &mut Channel) {
    let mut taking = Taking::new(channel);
    while taking.clock.now() < Instant::ZERO + SOUND_TIME * 2 && taking.next().is_some() {}
}
