//! What the ends of a call exchange when it is over: notes, and what they said and heard.

use talkspurt_live::Clock;
use talkspurt_proto::time::{Duration, Instant};

use crate::channel::{BEAT, Channel, MAX_NOTES, Message, NOTES, PIECE};
use crate::ended::Ended;
use crate::merge::End;
use crate::notes::Log;

/// Most bytes of sound that are exchanged after a call, and the time for it.
const MAX_SOUND: usize = 128 << 20;
const SOUND_TIME: Duration = Duration::from_secs(15);
/// Bytes of sound in a message: small, so that each passes a slow path in time.
const SOUND_PIECE: usize = 8 * 1024;

/// What the other end knows.
pub(super) struct Theirs {
    pub(super) end: End,
    /// What it said and heard, if all of it came.
    pub(super) sounds: Option<[Vec<i16>; 2]>,
}

/// Gives our notes and sound.
pub(super) fn give(
    channel: &mut Channel,
    own: &(Log, Ended, [Vec<i16>; 2]),
) -> std::io::Result<()> {
    let (log, ended, sounds) = own;
    for piece in log.bytes().chunks(PIECE) {
        channel.send(&Message::Notes { bytes: piece.to_vec() })?;
    }
    channel.send(&Message::Done { ended: ended.clone() })?;
    let clock = Clock::start();
    let bytes: usize = sounds.iter().map(|sound| 2 * sound.len()).sum();
    let mut complete = bytes <= MAX_SOUND;
    'all: for (sound, heard) in sounds.iter().zip([false, true]) {
        for piece in sound.chunks(SOUND_PIECE / 2) {
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

/// Takes the other end's notes and sound.
pub(super) fn take(channel: &mut Channel) -> Result<Theirs, String> {
    let (mut notes, mut sounds) = (Vec::new(), [Vec::new(), Vec::new()]);
    let (mut end, mut complete) = (None, false);
    let clock = Clock::start();
    let (mut last, mut until) = (clock.now(), Instant::HORIZON);
    while clock.now().saturating_since(last) < NOTES && clock.now() < until {
        let Ok(message) = channel.receive(BEAT) else { break };
        let Some(message) = message else { continue };
        last = clock.now();
        match message {
            Message::Notes { bytes } => {
                notes.extend(bytes);
                if notes.len() > MAX_NOTES {
                    return Err("the other end's notes are longer than 1 GB".to_owned());
                }
            }
            Message::Done { ended } => {
                end = Some(End { rows: Log::rows(&notes)?, ended });
                until = clock.now() + SOUND_TIME * 2;
            }
            Message::Sound { heard, bytes } => {
                let sound = &mut sounds[usize::from(heard)];
                sound.extend(bytes.chunks_exact(2).map(|it| i16::from_le_bytes([it[0], it[1]])));
                if 2 * sound.len() > MAX_SOUND {
                    break;
                }
            }
            Message::Over { complete: all } => {
                complete = all;
                break;
            }
            _ => {}
        }
    }
    let lost = || "the control connection was lost before the other end's notes came".to_owned();
    let end = end.ok_or_else(lost)?;
    Ok(Theirs { end, sounds: complete.then_some(sounds) })
}
