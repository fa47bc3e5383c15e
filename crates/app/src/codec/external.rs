//! Codecs whose encoder and decoder the program supplies around this library: [`register`] takes them. The
//! Python package supplies FFmpeg's through PyAV. Without them, the codecs send packets of their size and rate,
//! and a recording needs a stand-in.
//!
//! A [`Library`] codes single frames. Their payload format is applied here: frames of G.723.1 follow each other
//! (RFC 3551 §4.5.3), those of AMR have a header and a table of contents (RFC 4867 §4.4, octet-aligned mode
//! without interleaving and CRCs).

use std::fmt;
use std::sync::OnceLock;

use bytes::{BufMut, Bytes, BytesMut};
use talkspurt_proto::units::Rate;

pub use super::Codec;
use super::{Decoder, Encoder, Encoding, Sound, Spec};

/// Encoders and decoders of codecs, by their [`Codec`].
pub trait Library: fmt::Debug + Send + Sync {
    /// Why it cannot be used, with the remedy, if it cannot.
    fn error(&self) -> Option<String>;
    /// An encoder or decoder of this codec.
    ///
    /// # Errors
    /// What failed.
    fn coder(&self, codec: Codec, role: Role) -> Result<Box<dyn Coder>, String>;
}

/// What a coder does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Samples become frames.
    Encodes,
    /// Frames become samples.
    Decodes,
}

/// An encoder or decoder of single frames.
pub trait Coder: fmt::Debug + Send {
    /// Encodes the samples of one frame, or decodes the bytes of one frame into samples, 16-bit little endian.
    /// A frame of AMR begins with its entry of the table of contents.
    ///
    /// # Errors
    /// What failed.
    fn code(&mut self, frame: &[u8]) -> Result<Vec<u8>, String>;
}

static LIBRARY: OnceLock<Box<dyn Library>> = OnceLock::new();

/// Supplies the coders, once per process; later calls have no effect.
pub fn register(library: Box<dyn Library>) {
    LIBRARY.get_or_init(|| library);
}

/// Why these codecs cannot be encoded and decoded, with the remedy, if they cannot.
#[must_use]
pub fn error() -> Option<String> {
    LIBRARY.get().map_or_else(
        || {
            Some("its encoder is not in this program; set stand_in = \"opus-for-av\" to hear Opus in its place".to_owned())
        },
        |library| library.error(),
    )
}

/// The sound of an external codec.
pub(super) const SOUND: Sound = Sound {
    encoder: |encoding| Box::new(Sender { coder: Lazy::new(encoding.codec, Role::Encodes) }),
    decoder: |encoding| {
        let Encoding { codec, .. } = *encoding;
        Box::new(Receiver { coder: Lazy::new(codec, Role::Decodes), can_conceal: false })
    },
    stateless: false,
};

/// A coder that is created when it is first needed.
#[derive(Debug)]
struct Lazy {
    codec: Codec,
    role: Role,
    coder: Option<Box<dyn Coder>>,
}

impl Lazy {
    fn new(codec: Codec, role: Role) -> Self {
        Self { codec, role, coder: None }
    }

    fn spec(&self) -> &'static Spec {
        self.codec.spec()
    }

    /// Codes a frame.
    ///
    /// # Panics
    /// If the library fails, although the scenario's checks found it.
    fn code(&mut self, frame: &[u8]) -> Vec<u8> {
        let made = match &mut self.coder {
            Some(coder) => Ok(coder),
            empty => {
                let library = LIBRARY.get().expect("the scenario's checks require a library");
                library.coder(self.codec, self.role).map(|coder| empty.insert(coder))
            }
        };
        match made.and_then(|coder| coder.code(frame)) {
            Ok(coded) => coded,
            Err(why) => panic!("{}: {why}", self.codec.spec().name),
        }
    }
}

/// CMR 15: no mode is requested (RFC 4867 §4.3.1); four reserved bits are zero (§4.4.1).
const AMR_HEADER: u8 = 0xF0;
/// F of an entry of the table of contents: another one follows (RFC 4867 §4.3.2).
const AMR_FOLLOWS: u8 = 0x80;
/// An entry for a lost frame: FT 15 (NO_DATA), Q 0 (RFC 4867 §4.3.2).
const AMR_NO_DATA: u8 = 0x78;

#[derive(Debug)]
struct Sender {
    coder: Lazy,
}

impl Encoder for Sender {
    fn encode(&mut self, pcm: &[i16], _: Option<Rate>) -> Bytes {
        let spec = self.coder.spec();
        let samples =
            (spec.frame.as_nanos() * u64::from(spec.sample_rate) / 1_000_000_000) as usize;
        let frames: Vec<_> = pcm
            .chunks(samples)
            .map(|frame| {
                let samples: Vec<u8> = frame.iter().flat_map(|x| x.to_le_bytes()).collect();
                self.coder.code(&samples)
            })
            .collect();
        let mut out = BytesMut::new();
        if spec.header_bytes > 0 {
            out.put_u8(AMR_HEADER);
            for (number, frame) in frames.iter().enumerate() {
                let follows = if number + 1 < frames.len() { AMR_FOLLOWS } else { 0 };
                out.put_u8(frame[0] | follows);
            }
            frames.iter().for_each(|frame| out.put_slice(&frame[1..]));
        } else {
            frames.iter().for_each(|frame| out.put_slice(frame));
        }
        out.freeze()
    }
}

/// The frames of a payload, those of AMR with their entries of the table of contents. `None` if the payload is
/// none of this codec.
fn frames(spec: &Spec, payload: &[u8]) -> Option<Vec<Vec<u8>>> {
    let bytes = spec.frame_bytes as usize;
    if spec.header_bytes == 0 {
        let whole = !payload.is_empty() && payload.len().is_multiple_of(bytes);
        return whole.then(|| payload.chunks(bytes).map(<[u8]>::to_vec).collect());
    }
    let rest = payload.get(1..)?;
    let entries = rest.iter().position(|entry| entry & AMR_FOLLOWS == 0)? + 1;
    let (entries, data) = rest.split_at(entries);
    (data.len() == entries.len() * (bytes - 1)).then(|| {
        let entries = entries.iter().zip(data.chunks(bytes - 1));
        entries.map(|(entry, data)| [&[entry & !AMR_FOLLOWS], data].concat()).collect()
    })
}

#[derive(Debug)]
struct Receiver {
    coder: Lazy,
    /// Something was decoded.
    can_conceal: bool,
}

impl Receiver {
    fn samples(&mut self, frame: &[u8]) -> Vec<i16> {
        let coded = self.coder.code(frame);
        coded.chunks_exact(2).map(|x| i16::from_le_bytes([x[0], x[1]])).collect()
    }

    /// A frame in place of a lost one, for which the decoder generates sound.
    fn lost_frame(&self) -> Vec<u8> {
        let spec = self.coder.spec();
        if spec.header_bytes > 0 {
            return vec![AMR_NO_DATA];
        }
        // G.723.1 has no such frame. A forbidden value of the pitch lag has the same effect, as after bit
        // errors; the first two bits of the first byte are the rate.
        let mut frame = vec![0xFF; spec.frame_bytes as usize];
        frame[0] = 0xFC;
        frame
    }
}

impl Decoder for Receiver {
    fn decode(&mut self, payload: &[u8]) -> Vec<i16> {
        let Some(frames) = frames(self.coder.spec(), payload) else { return Vec::new() };
        self.can_conceal = true;
        frames.iter().flat_map(|frame| self.samples(frame)).collect()
    }

    fn conceal(&mut self, samples: usize) -> Option<Vec<i16>> {
        if !self.can_conceal {
            return None;
        }
        let (mut sound, lost) = (Vec::with_capacity(samples), self.lost_frame());
        while sound.len() < samples {
            let more = self.samples(&lost);
            if more.is_empty() {
                return None;
            }
            sound.extend(more);
        }
        Some(sound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_amr_follow_their_table_of_contents() {
        // The example of RFC 4867 §4.4.5.1: CMR 6, two frames of 7.95 kbit/s (FT 5) of 159 bits, F and Q.
        let spec = Codec::Amr795.spec();
        let contents = [0b0110_0000, 0b1010_1100, 0b0010_1100];
        let payload = [&contents[..], &[1; 20], &[2; 20]].concat();
        let frame = |data: u8| [&[0b0010_1100][..], &[data; 20]].concat();
        assert_eq!(frames(spec, &payload), Some(vec![frame(1), frame(2)]));
        assert_eq!(frames(spec, &payload[..42]), None);
        assert_eq!(frames(spec, &[]), None);
        let two = frames(Codec::G7231At63.spec(), &[7; 48]);
        assert_eq!(two, Some(vec![vec![7; 24]; 2]));
        assert_eq!(frames(Codec::G7231At63.spec(), &[7; 40]), None);
    }
}
