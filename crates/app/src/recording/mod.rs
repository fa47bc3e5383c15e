//! Recorded speech: converts a WAV file to PCM at the codecs' sample rates, in as many channels as they encode.
//! Resampling uses floating point. Audio is outside the run's digest, which covers packets but not their
//! contents.

mod activity;
mod microphone;
mod wav;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use activity::Vad;
use bytes::Bytes;
pub use microphone::Microphone;
use rubato::{
    Fft, FixedSync, Resampler as _, WindowFunction, audioadapter_buffers::direct::InterleavedSlice,
};
use talkspurt_proto::time::Duration;

use crate::codec::Encoding;
use crate::file::{Fault, Files};

/// Valid sample rates of a recording, in Hz; others suggest a wrong header.
pub const RATES: std::ops::RangeInclusive<u32> = 1_000..=768_000;

/// Maximum length of a recording's file: more than two hours of 16 bits at 16 kHz.
pub const MAX_BYTES: u64 = 256 << 20;
/// Maximum duration in seconds, which limits the result of resampling a low sample rate.
pub const MAX_SECONDS: u64 = 4 * 3600;

/// Speech, ready for packetisation.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Linear PCM at `sample_rate` before the codec; two channels are interleaved.
    pub sent: Arc<[i16]>,
    /// The same at the lower sample rates of the other codecs of a ladder.
    pub lower: Vec<(u32, Arc<[i16]>)>,
    /// The same, encoded by a stateless codec: the payloads of all packets end to end. `None` if packets are
    /// encoded as they are sent.
    pub encoded: Option<Bytes>,
    /// Samples per second: the codec's rate, the highest in a ladder.
    pub sample_rate: u32,
    /// Channels of `sent`, 1 or 2.
    pub channels: usize,
    /// When speech is active, in order and apart; `None` without voice activity detection.
    pub activity: Option<Arc<[Range<Duration>]>>,
    /// Its samples come while it is sent, in place of those above.
    pub microphone: Option<Arc<Microphone>>,
    /// True if nobody hears it: see [`Encoding::unheard_encoder`].
    pub is_unheard: bool,
}

/// Why a recording cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct RecordingError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: Why,
}

/// The system's error text without its number.
fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

/// What is wrong with a recording.
#[derive(Debug, thiserror::Error)]
pub enum Why {
    /// The file cannot be opened or read.
    #[error("cannot be read: {}", plain(.0))]
    Unreadable(#[source] std::io::Error),
    /// A folder or device.
    #[error("is not a regular file; expected a WAV file")]
    NotAFile,
    /// The file is too large.
    #[error("is longer than {} MiB; cut it", .0 >> 20)]
    TooManyBytes(u64),
    /// The sound is too long.
    #[error("claims {0} s of sound; expected at most {most} s", most = MAX_SECONDS)]
    TooLong(u64),
    /// The file is empty.
    #[error("is empty (0 bytes); expected a WAV file")]
    Empty,
    /// Not a WAV file.
    #[error("is not a WAV file (no RIFF/WAVE header)")]
    NotWav,
    /// The file is shorter than its header says.
    #[error(
        "is truncated: its header announces {announced} bytes of samples, it holds {present}; \
         copy it again, or rewrite it with `sox --ignore-length in.wav out.wav`"
    )]
    Truncated {
        /// Bytes of sample data according to the header.
        announced: u64,
        /// Bytes present.
        present: u64,
    },
    /// The file ends within its header.
    #[error("is truncated: it ends within the WAV header")]
    TruncatedHeader,
    /// The recording has more than two channels.
    #[error("has {0} channels; expected one or two; mix them with e.g. `sox in.wav -c 1 out.wav`")]
    TooManyChannels(u16),
    /// The samples are neither integers nor floating point.
    #[error(
        "holds {0}; expected PCM of 8, 16, 24 or 32 bits, or 32-bit float; convert with e.g. \
         `sox in.wav -b 16 -e signed-integer out.wav`"
    )]
    NotIntegerPcm(String),
    /// The header is inconsistent.
    #[error("has a damaged WAV header ({0})")]
    BadHeader(String),
    /// Invalid sample rate.
    #[error(
        "claims {0} samples a second; expected {low} to {high} Hz",
        low = RATES.start(), high = RATES.end()
    )]
    RateOutOfRange(u32),
    /// The codec is not implemented.
    #[error("cannot be heard in {0}: {1}")]
    NoEncoder(&'static str, String),
    /// No samples.
    #[error("holds no samples")]
    NoSamples,
}

impl Recording {
    /// Reads a WAV file of PCM or 32-bit float, mixes its channels evenly to mono unless the `encodings` have
    /// two, and resamples it to the rate of each codec. A 16-bit mono file at that rate is unchanged. A mono
    /// file sounds in both of two channels. With `vad`, voice activity is detected in the file's own samples.
    ///
    /// # Errors
    /// [`RecordingError`] names the file, the fault and what was expected.
    ///
    /// # Panics
    /// Without `encodings`.
    pub fn open(
        files: &dyn Files,
        path: &Path,
        encodings: &[Encoding],
        vad: Option<&Vad>,
    ) -> Result<Self, RecordingError> {
        let of_rate = |encoding: &Encoding| encoding.codec.spec().sample_rate;
        let mut rates: Vec<_> = encodings.iter().map(of_rate).collect();
        rates.sort_unstable_by_key(|rate| std::cmp::Reverse(*rate));
        rates.dedup();
        let read = || -> Result<(Vec<Vec<i16>>, _), Why> {
            if let Some((codec, why)) =
                encodings.iter().find_map(|it| it.mute_error().map(|why| (it.codec, why)))
            {
                return Err(Why::NoEncoder(codec.spec().name, why));
            }
            let (rate, channels) = wav::read(&bytes_of(files, path)?, encodings[0].channels())?;
            let activity = vad.map(|vad| activity::find(&channels, rate, vad).into());
            let at = |wanted: &u32| {
                let resampled = channels.iter().map(|it| resample(it.clone(), rate, *wanted));
                interleave(&resampled.collect::<Vec<_>>())
            };
            Ok((rates.iter().map(at).collect(), activity))
        };
        let (mut pcm, activity) = match read() {
            Ok((pcm, activity)) => (pcm.into_iter(), activity),
            Err(why) => return Err(RecordingError { path: path.to_owned(), why }),
        };
        let best = encodings.iter().max_by_key(|it| of_rate(it)).expect("at least one encoding");
        let recording = Self::from_pcm(pcm.next().unwrap_or_default(), best);
        let lower = rates.into_iter().skip(1).zip(pcm.map(Arc::from)).collect();
        Ok(Self { lower, activity, ..recording })
    }
    /// The duration of a WAV file in seconds.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn seconds(files: &dyn Files, path: &Path) -> Result<f64, RecordingError> {
        let read = || wav::seconds(&bytes_of(files, path)?);
        read().map_err(|why| RecordingError { path: path.to_owned(), why })
    }

    /// Speech that is already PCM at the codec's rate and in the encoding's channels.
    #[must_use]
    pub fn from_pcm(pcm: Vec<i16>, encoding: &Encoding) -> Self {
        let encoder = encoding.is_stateless().then(|| encoding.encoder()).flatten();
        let encoded = encoder.map(|mut encoder| encoder.encode(&pcm, None));
        let (sample_rate, channels) = (encoding.codec.spec().sample_rate, encoding.channels());
        Self {
            sent: pcm.into(),
            lower: Vec::new(),
            encoded,
            sample_rate,
            channels,
            activity: None,
            microphone: None,
            is_unheard: false,
        }
    }

    /// Speech from a sound device. The codecs of all encodings have one sample rate, at which it comes.
    #[must_use]
    pub fn live(microphone: Arc<Microphone>, encoding: &Encoding) -> Self {
        let nothing = Self::from_pcm(Vec::new(), encoding);
        Self { encoded: None, microphone: Some(microphone), ..nothing }
    }

    /// The same with silence after it, up to this duration; `encodings` are those that it was opened for.
    ///
    /// # Panics
    /// Without `encodings`.
    #[must_use]
    pub fn lasting(self, duration: Duration, encodings: &[Encoding]) -> Self {
        let padded = |pcm: &[i16], rate: u32| {
            let samples = u128::from(duration.as_nanos()) * u128::from(rate) / 1_000_000_000;
            let mut all = pcm.to_vec();
            all.resize(pcm.len().max(samples as usize * self.channels), 0);
            all
        };
        let best = encodings.iter().max_by_key(|it| it.codec.spec().sample_rate);
        let sent = padded(&self.sent, self.sample_rate);
        let lower = self.lower.iter().map(|(rate, pcm)| (*rate, padded(pcm, *rate).into()));
        let lower = lower.collect();
        Self { lower, activity: self.activity, ..Self::from_pcm(sent, best.expect("an encoding")) }
    }

    /// Linear PCM at the sample rate of one of the codecs.
    ///
    /// # Panics
    /// If it was not opened for this rate.
    #[must_use]
    pub fn pcm(&self, rate: u32) -> &Arc<[i16]> {
        let lower = || self.lower.iter().find(|(other, _)| *other == rate).map(|(_, pcm)| pcm);
        let own = (rate == self.sample_rate).then_some(&self.sent);
        own.or_else(lower).expect("a recording has the sample rates of its codecs")
    }

    /// Number of whole samples in a duration at a rate of its own, all channels.
    #[must_use]
    pub fn samples_for(&self, span: Duration) -> usize {
        let samples = u128::from(span.as_nanos()) * u128::from(self.sample_rate) / 1_000_000_000;
        samples as usize * self.channels
    }

    /// Its duration.
    #[must_use]
    pub fn duration(&self) -> Duration {
        let samples = (self.sent.len() / self.channels) as u64;
        Duration::from_nanos(samples * 1_000_000_000 / u64::from(self.sample_rate))
    }
}

fn bytes_of(files: &dyn Files, path: &Path) -> Result<Bytes, Why> {
    files.read(path, MAX_BYTES).map_err(|fault| match fault {
        Fault::Unreadable(error) => Why::Unreadable(error),
        Fault::NotAFile => Why::NotAFile,
        Fault::TooLong(max) => Why::TooManyBytes(max),
    })
}

/// `len` samples of a recording in `channels` from `begin` on, which are sent in steps of `step`. If the
/// recording ends within a step, the last sample of each channel is held; then it starts over if `repeat`.
pub(crate) fn excerpt(
    pcm: &[i16],
    channels: usize,
    (begin, len): (usize, usize),
    step: usize,
    repeat: bool,
) -> Vec<i16> {
    let (held, whole) = (pcm.len() - channels, pcm.len().next_multiple_of(step));
    let at = |at: usize| {
        let at = if repeat { at % whole } else { at };
        pcm[if at < pcm.len() { at } else { held + at % channels }]
    };
    (begin..begin + len).map(at).collect()
}

/// Resamples one channel from `rate` to `wanted`, without delay; the length is scaled and rounded up.
pub(crate) fn resample(mono: Vec<f64>, rate: u32, wanted: u32) -> Vec<f64> {
    if rate == wanted {
        return mono;
    }
    let (from, to) = (rate as usize, wanted as usize);
    // The shortest duration with an integer, even number of samples at both rates, so that the filter's delay
    // of half a chunk is an integer too; 20 ms or more of it, well above a pitch period.
    let stretch = 2 * from / gcd(from, to);
    let chunk = stretch * (from / 50).div_ceil(stretch);
    let mut fft =
        Fft::new_custom(from, to, chunk, 1, 1, WindowFunction::BlackmanHarris2, FixedSync::Both)
            .expect("both rates and the chunk are positive");
    let input = InterleavedSlice::new(&mono, 1, mono.len()).expect("one channel, its own length");
    fft.process_all(&input, mono.len(), None).expect("the output was sized for it").take_data()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The channels sample by sample, rounded to 16 bits; overshoot from resampling is clipped.
fn interleave(channels: &[Vec<f64>]) -> Vec<i16> {
    let frame = |at: usize| channels.iter().map(move |channel| channel[at].round() as i16);
    (0..channels[0].len()).flat_map(frame).collect()
}
