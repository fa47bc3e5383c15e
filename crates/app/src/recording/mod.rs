//! Recorded speech: a WAV file becomes mono PCM at the codec's sample rate.
//! Resampling uses floating point. Audio is outside the run's digest, which covers packets and not
//! their contents.

mod wav;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use rubato::{
    Fft, FixedSync, Resampler as _, WindowFunction, audioadapter_buffers::direct::InterleavedSlice,
};

use crate::codec::Codec;
use crate::file::{Fault, Files};

/// Sample rates a recording may have, in Hz; outside, the header is more likely wrong than true.
pub const RATES: std::ops::RangeInclusive<u32> = 1_000..=768_000;

/// Length of a recording's file at most: more than two hours of 16 bits at 16 kHz.
pub const MAX_BYTES: u64 = 256 << 20;
/// Seconds of a recording at most, which limits what a low sample rate is resampled to.
pub const MAX_SECONDS: u64 = 4 * 3600;

/// Speech, ready to be cut into packets.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Mono linear PCM at `sample_rate`, before the codec.
    pub sent: Arc<[i16]>,
    /// The same, encoded by a codec without state: the payloads of all packets end to end. `None` where
    /// packets are encoded as they are sent.
    pub encoded: Option<Bytes>,
    /// Samples in a second, the codec's.
    pub sample_rate: u32,
    /// The codec of `encoded`.
    pub codec: Codec,
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

/// The system's words without its error number.
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
    /// It cannot be opened or read.
    #[error("cannot be read: {}", plain(.0))]
    Unreadable(#[source] std::io::Error),
    /// A folder or device.
    #[error("is not a regular file; expected a WAV file")]
    NotAFile,
    /// More bytes than are read.
    #[error("is longer than {} MiB; cut it", .0 >> 20)]
    TooManyBytes(u64),
    /// More speech than is kept.
    #[error("claims {0} s of sound; expected at most {most} s", most = MAX_SECONDS)]
    TooLong(u64),
    /// No bytes at all.
    #[error("is empty (0 bytes); expected a WAV file")]
    Empty,
    /// Does not begin as a WAV file does.
    #[error("is not a WAV file (no RIFF/WAVE header)")]
    NotWav,
    /// Ends before its header says.
    #[error(
        "is truncated: its header announces {announced} bytes of samples, it holds {present}; \
         copy it again, or rewrite it with `sox --ignore-length in.wav out.wav`"
    )]
    Truncated {
        /// Bytes of sample data by the header.
        announced: u64,
        /// Bytes there.
        present: u64,
    },
    /// Ends within its header.
    #[error("is truncated: it ends within the WAV header")]
    TruncatedHeader,
    /// Samples, but not integers.
    #[error(
        "holds {0}; expected integer PCM of 8, 16, 24 or 32 bits; convert with e.g. \
         `sox in.wav -b 16 -e signed-integer out.wav`"
    )]
    NotIntegerPcm(String),
    /// The header contradicts itself.
    #[error("has a damaged WAV header ({0})")]
    BadHeader(String),
    /// A sample rate no recording has.
    #[error(
        "claims {0} samples a second; expected {low} to {high} Hz",
        low = RATES.start(), high = RATES.end()
    )]
    RateOutOfRange(u32),
    /// Nothing here encodes it.
    #[error("cannot be heard in {0}: only {heard} are encoded here; leave out `file`", heard = Codec::heard())]
    NoEncoder(&'static str),
    /// Nothing to say.
    #[error("holds no samples")]
    NoSamples,
}

impl Recording {
    /// Reads a WAV file of integer PCM, mixes its channels evenly to one and resamples it to the
    /// codec's rate. A file already mono, 16 bits and at that rate stays sample for sample.
    ///
    /// # Errors
    /// [`RecordingError`] names the file and says what is wrong and what was expected.
    pub fn open(files: &dyn Files, path: &Path, codec: Codec) -> Result<Self, RecordingError> {
        let read = || -> Result<Vec<i16>, Why> {
            if !codec.is_heard() {
                return Err(Why::NoEncoder(codec.name()));
            }
            let bytes = files.read(path, MAX_BYTES).map_err(|fault| match fault {
                Fault::Unreadable(error) => Why::Unreadable(error),
                Fault::NotAFile => Why::NotAFile,
                Fault::TooLong(max) => Why::TooManyBytes(max),
            })?;
            let (rate, mono) = wav::read_mono(&bytes)?;
            Ok(quantise(&resample(mono, rate, codec.sample_rate())))
        };
        match read() {
            Ok(pcm) => Ok(Self::from_pcm(pcm, codec)),
            Err(why) => Err(RecordingError { path: path.to_owned(), why }),
        }
    }
    /// Speech that is already mono PCM at the codec's rate.
    #[must_use]
    pub fn from_pcm(pcm: Vec<i16>, codec: Codec) -> Self {
        let sound = codec.spec().sound.filter(|sound| sound.stateless);
        let encoded = sound.map(|sound| (sound.encoder)().encode(&pcm, None));
        Self { sent: pcm.into(), encoded, sample_rate: codec.sample_rate(), codec }
    }
}

/// From `rate` to `wanted`, without delay; the length is scaled and rounded up.
fn resample(mono: Vec<f64>, rate: u32, wanted: u32) -> Vec<f64> {
    if rate == wanted {
        return mono;
    }
    let (from, to) = (rate as usize, wanted as usize);
    // The shortest stretch that is whole at both rates, and even, so that the filter's delay of
    // half a chunk is whole too; 20 ms or more of it, well beyond a pitch period.
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

/// To 16 bits, rounding to nearest; what resampling overshoots is clipped.
fn quantise(mono: &[f64]) -> Vec<i16> {
    mono.iter().map(|x| x.round() as i16).collect()
}
