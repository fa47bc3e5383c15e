//! Reads a WAV file into samples with 16-bit full scale, and diagnoses its faults.
//!
//! Chunks have even lengths: one of odd length is followed by a byte that it does not count (RIFF).
//! RF64 (EBU Tech 3306) has its lengths in the chunk `ds64`. Programs that write to a pipe cannot know
//! the length of the samples and announce none, or the most possible; then all that follows is samples.
//! The crate `hound` reads none of these; `symphonia` would add six crates.

use super::{MAX_SECONDS, RATES, Why};

/// The sample rate, and the samples of each of the `wanted` channels with 16-bit full scale (fractions kept):
/// the mean of the file's channels if one is wanted, the file's one channel twice if two are.
pub(super) fn read(bytes: &[u8], wanted: usize) -> Result<(u32, Vec<Vec<f64>>), Why> {
    let (format, samples) = layout(bytes)?;
    let Format { channels, rate, .. } = format;
    let all: Vec<f64> = samples.chunks_exact(format.sample_bytes()).map(format.sample()).collect();
    let frames = all.chunks_exact(channels.into());
    if frames.len() == 0 {
        return Err(Why::NoSamples);
    }
    let channels = match (channels, wanted) {
        (_, 1) => vec![frames.map(|all| all.iter().sum::<f64>() / all.len() as f64).collect()],
        (1, _) => vec![all; wanted],
        _ => (0..wanted).map(|channel| frames.clone().map(|all| all[channel]).collect()).collect(),
    };
    Ok((rate, channels))
}

/// The duration of the sound in seconds.
pub(super) fn seconds(bytes: &[u8]) -> Result<f64, Why> {
    let (format, samples) = layout(bytes)?;
    Ok((samples.len() / usize::from(format.frame_bytes)) as f64 / f64::from(format.rate))
}

/// The format, and the bytes of all samples.
fn layout(bytes: &[u8]) -> Result<(Format, &[u8]), Why> {
    if bytes.is_empty() {
        return Err(Why::Empty);
    }
    let Some(kind) = bytes.get(..12) else {
        let begins = KINDS.iter().any(|kind| kind.starts_with(&bytes[..bytes.len().min(4)]));
        return Err(if begins { Why::TruncatedHeader } else { Why::NotWav });
    };
    if !KINDS.iter().any(|known| kind.starts_with(known)) || !kind.ends_with(b"WAVE") {
        return Err(Why::NotWav);
    }
    let riff = u32_at(bytes, 4).unwrap_or(0);
    let (mut format, mut long, mut at) = (None, None, 12);
    loop {
        let Some((name, len)) = bytes.get(at..at + 4).zip(u32_at(bytes, at + 4)) else {
            return Err(Why::TruncatedHeader);
        };
        let body = at + 8;
        match name {
            b"fmt " => {
                let fields = bytes.get(body..body.saturating_add(len as usize));
                format = Some(Format::of(fields.ok_or(Why::TruncatedHeader)?)?);
            }
            // The length of the file, then that of the samples.
            b"ds64" => long = u64_at(bytes, body + 8),
            b"data" => {
                let format = format.ok_or_else(|| damaged("samples before their format"))?;
                let announced = match len {
                    u32::MAX => long,
                    len => Some(len.into()),
                };
                return samples(&bytes[body..], announced, (body, riff), format);
            }
            _ => {}
        }
        at = body.saturating_add(len as usize).saturating_add(len as usize % 2);
    }
}

/// The first bytes of a file.
const KINDS: [&[u8]; 3] = [b"RIFF", b"RF64", b"BW64"];
/// Lengths by which programs say that they do not know it: sox 0x7FFF_F000, others near it.
const UNKNOWN: std::ops::RangeInclusive<u64> = 0x7FFF_0000..=0x8000_0000;

/// The samples of a chunk that announces so many bytes, from its `body` on.
fn samples(
    rest: &[u8],
    announced: Option<u64>,
    (body, riff): (usize, u32),
    format: Format,
) -> Result<(Format, &[u8]), Why> {
    let present = rest.len() as u64;
    // None are announced, and the whole file ends where they begin, or nowhere.
    let is_open = riff == u32::MAX || (riff as usize).saturating_add(8) <= body;
    let announced = announced.filter(|len| !UNKNOWN.contains(len) && (*len > 0 || !is_open));
    let len = announced.unwrap_or(present);
    if len > present {
        return Err(Why::Truncated { announced: len, present });
    }
    let seconds = len / u64::from(format.frame_bytes) / u64::from(format.rate);
    if seconds > MAX_SECONDS {
        return Err(Why::TooLong(seconds));
    }
    Ok((format, &rest[..len as usize]))
}

/// What the chunk `fmt ` says.
#[derive(Clone, Copy)]
struct Format {
    is_float: bool,
    channels: u16,
    rate: u32,
    /// Bits of a sample, which are the lowest of its bytes.
    bits: u16,
    /// Bytes of one sample of each channel.
    frame_bytes: u16,
}

impl Format {
    fn of(fields: &[u8]) -> Result<Self, Why> {
        const EXTENSIBLE: u16 = 0xFFFE;
        /// The rest of a GUID that stands for a registered format.
        const REGISTERED: [u8; 14] = [0, 0, 0, 0, 16, 0, 128, 0, 0, 170, 0, 56, 155, 113];
        let field = |at| u16_at(fields, at).ok_or_else(|| damaged("the chunk `fmt ` is too short"));
        let (tag, channels, frame_bytes, bits) = (field(0)?, field(2)?, field(12)?, field(14)?);
        let rate = u32_at(fields, 4).unwrap_or(0);
        let tag = match tag {
            EXTENSIBLE if fields.get(26..40) != Some(&REGISTERED) => {
                return Err(Why::NotIntegerPcm("samples in a format without a number".to_owned()));
            }
            EXTENSIBLE => field(24)?,
            plain => plain,
        };
        if let Some(what) = not_integer_pcm(tag, bits) {
            return Err(Why::NotIntegerPcm(what));
        }
        if channels == 0 {
            return Err(damaged("zero channels"));
        }
        if channels > 2 {
            return Err(Why::TooManyChannels(channels));
        }
        if !matches!(bits, 8 | 16 | 24 | 32) {
            return Err(Why::NotIntegerPcm(format!("{bits}-bit samples")));
        }
        let bytes = frame_bytes / channels;
        if frame_bytes % channels != 0 || bytes != bits / 8 && (bytes, bits) != (4, 24) {
            return Err(damaged("the length of a frame is not that of its samples"));
        }
        if !RATES.contains(&rate) {
            return Err(Why::RateOutOfRange(rate));
        }
        Ok(Self { is_float: tag == 3, channels, rate, bits, frame_bytes })
    }

    fn sample_bytes(&self) -> usize {
        usize::from(self.frame_bytes / self.channels)
    }

    /// Converts a sample: integers from their depth to 16 bits, those of 8 bits without sign; floating-point
    /// samples from 1. One that is not a number is silent.
    fn sample(self) -> impl Fn(&[u8]) -> f64 {
        let full = (1_u64 << self.bits) as f64 / 65_536.0;
        move |bytes| {
            let mut word = [0; 4];
            word[..bytes.len()].copy_from_slice(bytes);
            let word = u32::from_le_bytes(word);
            match (self.is_float, self.bits) {
                (true, _) => {
                    let sample = f64::from(f32::from_bits(word));
                    if sample.is_finite() { sample * 32_768.0 } else { 0.0 }
                }
                (false, 8) => (f64::from(word) - 128.0) / full,
                (false, bits) => {
                    let above = 32 - u32::from(bits);
                    f64::from((word << above).cast_signed() >> above) / full
                }
            }
        }
    }
}

/// The encoding by its registered tag (RFC 2361), unless it is integer PCM or 32-bit float.
fn not_integer_pcm(tag: u16, bits: u16) -> Option<String> {
    Some(match tag {
        0 | 1 => return None,
        2 | 0x11 => "ADPCM-compressed samples".to_owned(),
        3 if bits == 32 => return None,
        3 => format!("{bits}-bit float samples"),
        6 => "A-law samples".to_owned(),
        7 => "µ-law samples".to_owned(),
        0x55 => "MP3-compressed sound".to_owned(),
        tag => format!("samples in format 0x{tag:04X}"),
    })
}

fn damaged(what: &str) -> Why {
    Why::BadHeader(what.to_owned())
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}
fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}
