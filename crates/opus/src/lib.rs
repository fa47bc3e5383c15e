//! A safe interface to libopus (RFC 6716, RFC 8251), as far as talkspurt needs it: one encoder and one decoder
//! with 16-bit samples, in-band FEC, and deep redundancy (DRED). They run at 48 kHz, or at a lower rate that
//! libopus resamples to; redundancy is decoded at 48 kHz only.
//!
//! Samples of two channels are interleaved. A number of samples counts both channels.

mod dred;

use std::ffi::c_int;
use std::fmt;
use std::ptr::NonNull;

use opusic_sys as sys;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use dred::Dred;

/// Whether libopus was built with its models: those of deep redundancy (DRED), and the neural networks that
/// conceal gaps and enhance speech. The library is asked: a program may be linked with another build of it.
#[must_use]
pub fn has_models() -> bool {
    matches!(Dred::new(), Ok(Some(_)))
}

/// Samples per second and channel, of the encoder's input and the decoder's output.
pub const SAMPLE_RATE: usize = 48_000;
/// Samples per channel of the shortest frame, 2.5 ms.
pub const SHORTEST: usize = SAMPLE_RATE / 400;
/// Samples per channel of the longest packet, 120 ms (RFC 6716 §3.2.5).
pub const LONGEST: usize = SAMPLE_RATE * 12 / 100;
/// Samples per channel of one unit of deep redundancy, 40 ms.
const LATENT: usize = SAMPLE_RATE / 25;
/// Maximum length of a packet: six frames of 20 ms of 1275 bytes with their lengths (RFC 6716 §3.4).
const MAX_PACKET: usize = 6 * 1277 + 2;

/// What libopus refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Error(c_int);

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.0 {
            sys::OPUS_BAD_ARG => "invalid argument",
            sys::OPUS_BUFFER_TOO_SMALL => "buffer too small",
            sys::OPUS_INTERNAL_ERROR => "internal error",
            sys::OPUS_INVALID_PACKET => "corrupt packet",
            sys::OPUS_UNIMPLEMENTED => "not implemented",
            sys::OPUS_INVALID_STATE => "invalid state",
            sys::OPUS_ALLOC_FAIL => "out of memory",
            _ => "unknown error",
        };
        write!(f, "libopus: {what} ({})", self.0)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl std::error::Error for Error {}

/// A result of libopus: a count, or an error below zero.
fn count(result: c_int) -> Result<usize, Error> {
    usize::try_from(result).map_err(|_| Error(result))
}

/// The packet, unless it is empty: libopus reads the first byte anyway, or treats it as lost.
fn filled(packet: &[u8]) -> Result<&[u8], Error> {
    if packet.is_empty() { Err(Error(sys::OPUS_INVALID_PACKET)) } else { Ok(packet) }
}

/// True if a packet has in-band FEC for the packet before.
///
/// # Errors
/// If it is no Opus packet.
pub fn has_fec(packet: &[u8]) -> Result<bool, Error> {
    let packet = filled(packet)?;
    // SAFETY: the packet has that length, and the byte that is read without a check.
    let has = unsafe { sys::opus_packet_has_lbrr(packet.as_ptr(), packet.len() as i32) };
    count(has).map(|has| has > 0)
}

/// What the encoder is optimised for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[repr(i32)]
pub enum Application {
    /// Intelligible speech: linear prediction at low rates.
    #[default]
    Voip = sys::OPUS_APPLICATION_VOIP,
    /// Sound like the original, for music.
    Audio = sys::OPUS_APPLICATION_AUDIO,
    /// A look-ahead of 2.5 instead of 6.5 ms, without linear prediction, FEC and DRED.
    LowDelay = sys::OPUS_APPLICATION_RESTRICTED_LOWDELAY,
}

/// Largest coded audio bandwidth (RFC 6716 §2, table 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[repr(i32)]
pub enum Bandwidth {
    /// Narrowband, 4 kHz.
    #[serde(rename = "nb")]
    Narrow = sys::OPUS_BANDWIDTH_NARROWBAND,
    /// Medium band, 6 kHz.
    #[serde(rename = "mb")]
    Medium = sys::OPUS_BANDWIDTH_MEDIUMBAND,
    /// Wideband, 8 kHz.
    #[serde(rename = "wb")]
    Wide = sys::OPUS_BANDWIDTH_WIDEBAND,
    /// Super-wideband, 12 kHz.
    #[serde(rename = "swb")]
    SuperWide = sys::OPUS_BANDWIDTH_SUPERWIDEBAND,
    /// Fullband, 20 kHz.
    #[default]
    #[serde(rename = "fb")]
    Full = sys::OPUS_BANDWIDTH_FULLBAND,
}

/// How the length of packets follows the sound (RFC 6716 §2.1.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RateControl {
    /// Constant: all packets have the same length.
    #[default]
    #[serde(rename = "cbr")]
    Constant,
    /// Variable within a buffer of one frame.
    #[serde(rename = "cvbr")]
    Constrained,
    /// Variable.
    #[serde(rename = "vbr")]
    Variable,
}

/// The `OPUS_SET_*` requests that take one integer.
macro_rules! set {
    ($self:ident, $request:ident, $value:expr) => {{
        // SAFETY: the pointer is valid for as long as `self`, and the request takes one `opus_int32`.
        let result = unsafe {
            sys::opus_encoder_ctl($self.0.as_ptr(), sys::$request, c_int::try_from($value).unwrap())
        };
        count(result).map(drop)
    }};
}

/// An encoder.
#[derive(Debug)]
pub struct Encoder(NonNull<sys::OpusEncoder>, usize);

// SAFETY: the state belongs to this value alone, and libopus keeps none of its own.
unsafe impl Send for Encoder {}

impl Drop for Encoder {
    fn drop(&mut self) {
        // SAFETY: created by `opus_encoder_create`, destroyed once.
        unsafe { sys::opus_encoder_destroy(self.0.as_ptr()) }
    }
}

impl Encoder {
    /// An encoder for one or two channels with libopus's defaults.
    ///
    /// # Errors
    /// Without memory, or with other `channels`.
    pub fn new(channels: u8, application: Application) -> Result<Self, Error> {
        Self::at(SAMPLE_RATE, channels, application)
    }

    /// The same at another sample rate: 8, 12, 16, 24 or 48 kHz.
    ///
    /// # Errors
    /// Like [`Encoder::new`], and at another rate.
    pub fn at(rate: usize, channels: u8, application: Application) -> Result<Self, Error> {
        let mut error = sys::OPUS_OK;
        // SAFETY: `error` outlives the call.
        let state = unsafe {
            sys::opus_encoder_create(
                rate as i32,
                c_int::from(channels),
                application as c_int,
                &raw mut error,
            )
        };
        NonNull::new(state).map(|state| Self(state, usize::from(channels))).ok_or(Error(error))
    }

    /// Bits per second, 500 to 512 000.
    ///
    /// # Errors
    /// If libopus refuses the value, as of all setters.
    pub fn set_bitrate(&mut self, bps: u32) -> Result<(), Error> {
        set!(self, OPUS_SET_BITRATE_REQUEST, bps)
    }
    /// How the length of packets follows the sound.
    ///
    /// # Errors
    /// See [`Encoder::set_bitrate`].
    pub fn set_rate_control(&mut self, control: RateControl) -> Result<(), Error> {
        set!(self, OPUS_SET_VBR_REQUEST, i32::from(control != RateControl::Constant))?;
        let constrained = i32::from(control == RateControl::Constrained);
        set!(self, OPUS_SET_VBR_CONSTRAINT_REQUEST, constrained)
    }
    /// Largest bandwidth; the encoder selects a lower one at low rates.
    ///
    /// # Errors
    /// See [`Encoder::set_bitrate`].
    pub fn set_max_bandwidth(&mut self, bandwidth: Bandwidth) -> Result<(), Error> {
        set!(self, OPUS_SET_MAX_BANDWIDTH_REQUEST, bandwidth as c_int)
    }
    /// Effort, 0 to 10.
    ///
    /// # Errors
    /// See [`Encoder::set_bitrate`].
    pub fn set_complexity(&mut self, complexity: u8) -> Result<(), Error> {
        set!(self, OPUS_SET_COMPLEXITY_REQUEST, complexity)
    }
    /// In-band FEC: each packet may repeat the sound before it at a lower rate.
    ///
    /// # Errors
    /// See [`Encoder::set_bitrate`].
    pub fn set_fec(&mut self, fec: bool) -> Result<(), Error> {
        set!(self, OPUS_SET_INBAND_FEC_REQUEST, i32::from(fec))
    }
    /// Expected loss in percent, 0 to 100, by which the encoder divides the rate between sound and redundancy.
    ///
    /// # Errors
    /// See [`Encoder::set_bitrate`].
    pub fn set_expected_loss(&mut self, percent: u8) -> Result<(), Error> {
        set!(self, OPUS_SET_PACKET_LOSS_PERC_REQUEST, percent)
    }
    /// Discontinuous transmission: packets of one or two bytes in silence.
    ///
    /// # Errors
    /// See [`Encoder::set_bitrate`].
    pub fn set_dtx(&mut self, dtx: bool) -> Result<(), Error> {
        set!(self, OPUS_SET_DTX_REQUEST, i32::from(dtx))
    }
    /// Depth of the deep redundancy in steps of 10 ms, 0 to 104. Packets contain it only with an expected loss.
    ///
    /// # Errors
    /// See [`Encoder::set_bitrate`]; also if libopus was built without it.
    pub fn set_dred(&mut self, tens_of_ms: u8) -> Result<(), Error> {
        set!(self, OPUS_SET_DRED_DURATION_REQUEST, tens_of_ms)
    }
    /// Samples per channel by which the decoded sound is later than the encoder's input.
    ///
    /// # Errors
    /// See [`Encoder::set_bitrate`].
    pub fn look_ahead(&mut self) -> Result<usize, Error> {
        let mut samples: i32 = 0;
        let out = &raw mut samples;
        // SAFETY: the pointer is valid for as long as `self`, and the request writes one `opus_int32`.
        let result =
            unsafe { sys::opus_encoder_ctl(self.0.as_ptr(), sys::OPUS_GET_LOOKAHEAD_REQUEST, out) };
        count(result)?;
        count(samples)
    }
    /// Encodes one packet of 2.5, 5, 10, 20, 40, 60, 80, 100 or 120 ms, into at most `max` bytes.
    ///
    /// # Errors
    /// If the number of samples is none of these.
    pub fn encode(&mut self, pcm: &[i16], max: usize) -> Result<Vec<u8>, Error> {
        let mut packet = vec![0; max.min(MAX_PACKET)];
        let samples = (pcm.len() / self.1).min(LONGEST + 1);
        // SAFETY: `pcm` has that many samples in each channel, and `packet` its length.
        let len = unsafe {
            sys::opus_encode(
                self.0.as_ptr(),
                pcm.as_ptr(),
                samples as c_int,
                packet.as_mut_ptr(),
                packet.len() as i32,
            )
        };
        packet.truncate(count(len)?);
        Ok(packet)
    }
}

/// Pads a packet to `len` bytes (RFC 6716 §3.2.5). A packet of that length or more is unchanged.
///
/// # Errors
/// If it is no Opus packet.
pub fn pad(packet: &mut Vec<u8>, len: usize) -> Result<(), Error> {
    let own = packet.len();
    if own >= len {
        return Ok(());
    }
    packet.resize(len, 0);
    // SAFETY: the buffer has `len` bytes, the first `own` of which are the packet.
    count(unsafe { sys::opus_packet_pad(packet.as_mut_ptr(), own as i32, len as i32) }).map(drop)
}

/// A decoder.
#[derive(Debug)]
pub struct Decoder {
    state: NonNull<sys::OpusDecoder>,
    channels: usize,
    /// If libopus has it.
    dred: Option<Dred>,
}

// SAFETY: the state belongs to this value alone, and libopus keeps none of its own.
unsafe impl Send for Decoder {}

impl Drop for Decoder {
    fn drop(&mut self) {
        // SAFETY: created by `opus_decoder_create`, destroyed once.
        unsafe { sys::opus_decoder_destroy(self.state.as_ptr()) }
    }
}

impl Decoder {
    /// A decoder for one or two channels. Complexity 5 and above conceals gaps with a neural network (deep
    /// PLC), 6 and 7 also enhance speech of low rates; 0 to 4 do neither. Without [`has_models`] none does.
    ///
    /// # Errors
    /// Without memory, or with other `channels` or a `complexity` above 10.
    pub fn new(channels: u8, complexity: u8) -> Result<Self, Error> {
        Self::at(SAMPLE_RATE, channels, complexity)
    }

    /// The same at another sample rate: 8, 12, 16, 24 or 48 kHz. The shortest and longest durations are the
    /// same, and so have fewer samples than [`SHORTEST`] and [`LONGEST`].
    ///
    /// # Errors
    /// Like [`Decoder::new`], and at another rate.
    pub fn at(rate: usize, channels: u8, complexity: u8) -> Result<Self, Error> {
        let mut error = sys::OPUS_OK;
        // SAFETY: `error` outlives the call.
        let state =
            unsafe { sys::opus_decoder_create(rate as i32, c_int::from(channels), &raw mut error) };
        let state = NonNull::new(state).ok_or(Error(error))?;
        let decoder = Self { state, channels: usize::from(channels), dred: Dred::new()? };
        // SAFETY: the pointer is valid, and the request takes one `opus_int32`.
        count(unsafe {
            sys::opus_decoder_ctl(
                state.as_ptr(),
                sys::OPUS_SET_COMPLEXITY_REQUEST,
                c_int::from(complexity),
            )
        })?;
        Ok(decoder)
    }

    /// Decodes a packet.
    ///
    /// # Errors
    /// If it is no Opus packet.
    pub fn decode(&mut self, packet: &[u8]) -> Result<Vec<i16>, Error> {
        self.run(Some(filled(packet)?), LONGEST * self.channels, false)
    }
    /// Conceals `samples` of lost sound, a multiple of [`SHORTEST`] up to [`LONGEST`] in each channel.
    ///
    /// # Errors
    /// With another number of samples.
    pub fn conceal(&mut self, samples: usize) -> Result<Vec<i16>, Error> {
        self.run(None, samples, false)
    }
    /// The sound of a lost packet of `samples` from the in-band FEC of the packet after it; `None` if that has
    /// none.
    ///
    /// # Errors
    /// If it is no Opus packet, or with a number of samples that [`Decoder::conceal`] does not take.
    pub fn recover(&mut self, next: &[u8], samples: usize) -> Result<Option<Vec<i16>>, Error> {
        if has_fec(next)? { self.run(Some(next), samples, true).map(Some) } else { Ok(None) }
    }
    /// Samples before this packet that its deep redundancy covers.
    ///
    /// # Errors
    /// If it is no Opus packet.
    pub fn dred_samples(&mut self, packet: &[u8]) -> Result<usize, Error> {
        let packet = filled(packet)?;
        let Some(dred) = &mut self.dred else { return Ok(0) };
        Ok(dred.parse(packet, 2 * SAMPLE_RATE, true)? * self.channels)
    }
    /// The sound of a lost packet of `samples` from the deep redundancy of a later packet, which begins
    /// `ahead` samples after the lost one; `None` if that does not reach back so far.
    ///
    /// # Errors
    /// If it is no Opus packet, or with a number of samples that [`Decoder::conceal`] does not take.
    pub fn redeem(
        &mut self,
        later: &[u8],
        ahead: usize,
        samples: usize,
    ) -> Result<Option<Vec<i16>>, Error> {
        let ahead = ahead / self.channels;
        // Two latents more than that: libopus does not count the distance of the newest one from the packet.
        let later = filled(later)?;
        let Some(dred) = &mut self.dred else { return Ok(None) };
        if dred.parse(later, ahead + 2 * LATENT, false)? < ahead {
            return Ok(None);
        }
        let mut pcm = vec![0; samples];
        // SAFETY: `pcm` has that many samples in each channel.
        let decoded = unsafe {
            let samples = (samples / self.channels) as c_int;
            dred.decode(self.state, ahead as c_int, pcm.as_mut_ptr(), samples)
        };
        pcm.truncate(count(decoded)? * self.channels);
        Ok(Some(pcm))
    }

    fn run(&mut self, packet: Option<&[u8]>, samples: usize, fec: bool) -> Result<Vec<i16>, Error> {
        let mut pcm = vec![0; samples];
        let (data, len) = packet.map_or((std::ptr::null(), 0), |it| (it.as_ptr(), it.len()));
        // SAFETY: `data` is null or has `len` bytes, and `pcm` that many samples in each channel.
        let decoded = unsafe {
            sys::opus_decode(
                self.state.as_ptr(),
                data,
                len as i32,
                pcm.as_mut_ptr(),
                (samples / self.channels) as c_int,
                c_int::from(fec),
            )
        };
        pcm.truncate(count(decoded)? * self.channels);
        Ok(pcm)
    }
}

#[cfg(all(test, feature = "models"))]
#[expect(clippy::disallowed_methods, reason = "the results are compared with tolerances")]
mod tests;
