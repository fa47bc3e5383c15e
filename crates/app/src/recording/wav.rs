//! Reads a WAV file into samples with 16-bit full scale, and diagnoses its faults.

use std::io::ErrorKind;

use hound::{SampleFormat, WavReader};

use super::{MAX_SECONDS, RATES, Why};

/// The sample rate, and the samples of each of the `wanted` channels with 16-bit full scale (fractions kept):
/// the mean of the file's channels if one is wanted, the file's one channel twice if two are.
pub(super) fn read(bytes: &[u8], wanted: usize) -> Result<(u32, Vec<Vec<f64>>), Why> {
    if bytes.is_empty() {
        return Err(Why::Empty);
    }
    let mut wav = WavReader::new(bytes).map_err(|error| diagnose(bytes, error))?;
    let spec = wav.spec();
    if !(1..=2).contains(&spec.channels) {
        return Err(Why::TooManyChannels(spec.channels));
    }
    if spec.bits_per_sample > 32 {
        return Err(Why::NotIntegerPcm(format!("{}-bit samples", spec.bits_per_sample)));
    }
    if !RATES.contains(&spec.sample_rate) {
        return Err(Why::RateOutOfRange(spec.sample_rate));
    }
    let claimed = u64::from(wav.len()) * u64::from(spec.bits_per_sample).div_ceil(8);
    let seconds = u64::from(wav.duration()) / u64::from(spec.sample_rate);
    // A truncated file is reported when its samples are read.
    if seconds > MAX_SECONDS && claimed <= bytes.len() as u64 {
        return Err(Why::TooLong(seconds));
    }
    let all = samples(&mut wav).map_err(|error| diagnose(bytes, error))?;
    if all.len() < usize::from(spec.channels) {
        return Err(Why::NoSamples);
    }
    let frames = all.chunks_exact(usize::from(spec.channels));
    let channels = match (spec.channels, wanted) {
        (_, 1) => vec![frames.map(|all| all.iter().sum::<f64>() / all.len() as f64).collect()],
        (1, _) => vec![all; wanted],
        _ => (0..wanted).map(|channel| frames.clone().map(|all| all[channel]).collect()).collect(),
    };
    Ok((spec.sample_rate, channels))
}

/// All samples, of two channels interleaved. Integers are scaled from their depth to 16 bits, floating-point
/// samples from 1; one that is not a number is silent.
fn samples(wav: &mut WavReader<&[u8]>) -> Result<Vec<f64>, hound::Error> {
    let spec = wav.spec();
    match spec.sample_format {
        SampleFormat::Int => {
            let full = (1_u64 << spec.bits_per_sample) as f64 / 65_536.0;
            wav.samples::<i32>().map(|sample| Ok(f64::from(sample?) / full)).collect()
        }
        SampleFormat::Float => {
            let scaled = |sample: f32| {
                if sample.is_finite() { f64::from(sample) * 32_768.0 } else { 0.0 }
            };
            wav.samples::<f32>().map(|sample| sample.map(scaled)).collect()
        }
    }
}

/// Converts the reader's error and the file header into a message that users can act on.
fn diagnose(bytes: &[u8], error: hound::Error) -> Why {
    if !b"RIFF".starts_with(&bytes[..bytes.len().min(4)]) || !is_wave(bytes) && bytes.len() >= 12 {
        return Why::NotWav;
    }
    let layout = Layout::of(bytes);
    if let Some(what) = layout.not_integer_pcm() {
        return Why::NotIntegerPcm(what);
    }
    match error {
        // hound reports a short data chunk as its own I/O error.
        hound::Error::IoError(io)
            if !matches!(io.kind(), ErrorKind::UnexpectedEof | ErrorKind::Other) =>
        {
            Why::Unreadable(io)
        }
        hound::Error::IoError(_) => match layout.data {
            Some((start, announced)) => {
                Why::Truncated { announced, present: (bytes.len() as u64).saturating_sub(start) }
            }
            None => Why::TruncatedHeader,
        },
        hound::Error::FormatError(why) => Why::BadHeader(why.to_owned()),
        _ => Why::NotIntegerPcm(format!("{}-bit samples", layout.bits)),
    }
}

fn is_wave(head: &[u8]) -> bool {
    head.get(8..12) == Some(b"WAVE")
}

/// Contents of the header chunks.
#[derive(Default)]
struct Layout {
    /// `wFormatTag`, or the first two bytes of the extensible format's GUID, which are equal to it.
    tag: u16,
    bits: u16,
    /// Offset of the samples and their length according to the header.
    data: Option<(u64, u64)>,
}

impl Layout {
    fn of(head: &[u8]) -> Self {
        let mut layout = Self::default();
        let mut at = 12;
        while let (Some(kind), Some(len)) = (head.get(at..at + 4), u32_at(head, at + 4)) {
            let body = at + 8;
            match kind {
                b"fmt " => layout.read_fmt(head, body),
                b"data" => {
                    layout.data = Some((body as u64, u64::from(len)));
                    break;
                }
                _ => {}
            }
            at = body.saturating_add(len as usize);
        }
        layout
    }
    fn read_fmt(&mut self, head: &[u8], body: usize) {
        const EXTENSIBLE: u16 = 0xFFFE;
        self.tag = u16_at(head, body).unwrap_or(0);
        if self.tag == EXTENSIBLE {
            self.tag = u16_at(head, body + 24).unwrap_or(0);
        }
        self.bits = u16_at(head, body + 14).unwrap_or(0);
    }
    /// The encoding by its registered tag (RFC 2361), unless it is integer PCM or unknown.
    fn not_integer_pcm(&self) -> Option<String> {
        Some(match self.tag {
            0 | 1 => return None,
            2 | 0x11 => "ADPCM-compressed samples".to_owned(),
            3 if self.bits == 32 => return None,
            3 => format!("{}-bit float samples", self.bits),
            6 => "A-law samples".to_owned(),
            7 => "µ-law samples".to_owned(),
            0x55 => "MP3-compressed sound".to_owned(),
            tag => format!("samples in format 0x{tag:04X}"),
        })
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
