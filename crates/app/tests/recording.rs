//! Recordings: every supported kind of WAV is read correctly, every other kind is rejected with a helpful
//! message.

use std::path::{Path, PathBuf};

use hound::{SampleFormat, WavSpec, WavWriter};
use proptest::prelude::*;
use talkspurt_app::codec::Codec::{self, Opus, Pcma, Pcmu};
use talkspurt_app::codec::{Encoding, opus};
use talkspurt_app::file::Disk;
use talkspurt_app::recording::Recording;
use talkspurt_proto::math::sin;
use talkspurt_proto::time::Duration;

fn of(codec: Codec) -> Encoding {
    Encoding::new(codec, Duration::from_millis(20))
}

/// A separate folder for each test, removed at the end.
struct Folder(PathBuf);
impl Folder {
    fn new(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("recording-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
    fn file(&self, bytes: &[u8]) -> PathBuf {
        let path = self.0.join("in.wav");
        std::fs::write(&path, bytes).unwrap();
        path
    }
    fn wav(&self, rate: u32, channels: u16, bits: u16, samples: &[i32]) -> PathBuf {
        let path = self.0.join("in.wav");
        let spec = WavSpec {
            channels,
            sample_rate: rate,
            bits_per_sample: bits,
            sample_format: SampleFormat::Int,
        };
        let mut wav = WavWriter::create(&path, spec).unwrap();
        samples.iter().for_each(|&x| wav.write_sample(x).unwrap());
        wav.finalize().unwrap();
        path
    }
}
impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A header according to RFC 2361 and the RIFF specification, written by hand.
fn header(tag: u16, channels: u16, rate: u32, bits: u16, data_bytes: u32) -> Vec<u8> {
    let align = channels * bits / 8;
    let mut out = b"RIFF".to_vec();
    out.extend((36 + data_bytes).to_le_bytes());
    out.extend(b"WAVEfmt ");
    out.extend(16_u32.to_le_bytes());
    out.extend(tag.to_le_bytes());
    out.extend(channels.to_le_bytes());
    out.extend(rate.to_le_bytes());
    out.extend(rate.wrapping_mul(u32::from(align)).to_le_bytes());
    out.extend(align.to_le_bytes());
    out.extend(bits.to_le_bytes());
    out.extend(b"data");
    out.extend(data_bytes.to_le_bytes());
    out
}

fn sent(path: &Path) -> Vec<i16> {
    Recording::open(&Disk, path, &[of(Pcmu)], None).unwrap().sent.to_vec()
}
/// The message, without the file name it must begin with.
#[track_caller]
fn refusal(path: &Path) -> String {
    let message = Recording::open(&Disk, path, &[of(Pcmu)], None).unwrap_err().to_string();
    message.strip_prefix(&format!("{}: ", path.display())).expect("names the file").to_owned()
}

#[test]
fn eight_khz_mono_16_bit_is_untouched() {
    let folder = Folder::new("untouched");
    let all: Vec<i32> = (-32_768..=32_767).collect();
    let pcm = sent(&folder.wav(8000, 1, 16, &all));
    assert!(pcm.iter().map(|&x| i32::from(x)).eq(all));
}

#[test]
fn every_depth_keeps_full_scale() {
    let folder = Folder::new("depths");
    for (bits, scale) in [(8, 1 << 7), (16, 1 << 15), (24, 1 << 23), (32, 1_i64 << 31)] {
        let levels = [-scale, -scale / 2, 0, scale / 2, scale / 4];
        let samples: Vec<i32> = levels.iter().map(|&x| x as i32).collect();
        let pcm = sent(&folder.wav(8000, 1, bits, &samples));
        assert_eq!(pcm, [-32_768, -16_384, 0, 16_384, 8_192], "{bits} bits");
    }
    // Rounded, and clipped instead of wrapped: 24 bits of just below full scale.
    assert_eq!(sent(&folder.wav(8000, 1, 24, &[0x7F_FFFF, 0x180, -0x181])), [32_767, 2, -2]);
}

#[test]
fn channels_are_averaged() {
    let folder = Folder::new("channels");
    assert_eq!(sent(&folder.wav(8000, 2, 16, &[100, 300, -32_768, -32_768])), [200, -32_768]);
    let many = refusal(&folder.wav(8000, 8, 16, &[0; 8]));
    assert!(many.starts_with("has 8 channels; expected one or two"), "{many}");
}

#[test]
fn floating_point_has_its_full_scale_at_one() {
    let folder = Folder::new("float");
    let samples = [-1.0_f32, 0.5, 0.25, 1.5, f32::NAN, f32::INFINITY];
    let data: Vec<u8> = samples.iter().flat_map(|x| x.to_le_bytes()).collect();
    let bytes = [header(3, 1, 8000, 32, data.len() as u32), data].concat();
    assert_eq!(sent(&folder.file(&bytes)), [-32_768, 16_384, 8_192, 32_767, 0, 0]);
}

/// Amplitude and phase-exact error of a tone after resampling, away from the ends.
fn tone(rate: u32, hz: f64) -> (f64, f64) {
    let folder = Folder::new(&format!("tone-{rate}-{hz}"));
    let wave = |rate: f64, n: usize| 16_000.0 * sin(std::f64::consts::TAU * hz * n as f64 / rate);
    let samples: Vec<i32> =
        (0..rate as usize).map(|n| wave(f64::from(rate), n).round() as i32).collect();
    let pcm = sent(&folder.wav(rate, 1, 16, &samples));
    assert!(pcm.len().abs_diff(8000) <= 1, "{} samples of a second at {rate} Hz", pcm.len());
    let middle = 2000..6000;
    let power: f64 = middle.clone().map(|n| f64::from(pcm[n]) * f64::from(pcm[n])).sum();
    let error = |n: usize| (f64::from(pcm[n]) - wave(8000.0, n)).abs();
    ((2.0 * power / 4000.0).sqrt(), middle.map(error).fold(0.0, f64::max))
}

#[test]
fn resampling_neither_delays_nor_colours() {
    for rate in [11_025, 16_000, 22_050, 44_100, 48_000, 96_000, 44_101] {
        for hz in [300.0, 1000.0, 2500.0] {
            let (_, error) = tone(rate, hz);
            // A delay of a tenth of a sample would be an error of 1250 at 1 kHz.
            assert!(error < 20.0, "{hz} Hz from {rate} Hz is off by {error} of 16000");
        }
    }
}

#[test]
fn resampling_does_not_alias() {
    // 5 kHz would alias to 3 kHz; 60 dB below is inaudible under µ-law's noise.
    for rate in [16_000, 44_100, 48_000] {
        assert!(tone(rate, 5000.0).0 < 16.0);
    }
}

#[test]
fn encoded_is_a_byte_a_sample_and_round_trips() {
    let folder = Folder::new("encoded");
    let path = folder.wav(8000, 1, 16, &[0, 1000, -1000, 32_767]);
    for codec in [Pcmu, Pcma] {
        let recording = Recording::open(&Disk, &path, &[of(codec)], None).unwrap();
        let encoded = recording.encoded.expect("a codec without state");
        assert_eq!((encoded.len(), recording.sample_rate), (4, 8000));
        let (mut encoder, mut decoder) = of(codec).encoder().zip(of(codec).decoder()).unwrap();
        let one_by_one = recording.sent.iter().map(|&x| encoder.encode(&[x], None)[0]);
        assert_eq!(decoder.decode(&encoded), decoder.decode(&one_by_one.collect::<Vec<_>>()));
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_reason() {
    let folder = Folder::new("refused");
    let why = |bytes: &[u8]| refusal(&folder.file(bytes));
    let with = |mut header: Vec<u8>, samples: usize| {
        header.resize(header.len() + samples, 1);
        header
    };
    insta::assert_snapshot!(refusal(&folder.0.join("missing.wav")),
        @"cannot be read: there is no such file");
    insta::assert_snapshot!(refusal(&folder.0), @"is not a regular file; expected a WAV file");
    insta::assert_snapshot!(why(b""), @"is empty (0 bytes); expected a WAV file");
    insta::assert_snapshot!(why(b"OggS and so on"), @"is not a WAV file (no RIFF/WAVE header)");
    insta::assert_snapshot!(why(b"RIFF\x04\0\0\0AVI and so on"), @"is not a WAV file (no RIFF/WAVE header)");
    insta::assert_snapshot!(why(b"RIF"), @"is truncated: it ends within the WAV header");
    insta::assert_snapshot!(why(&header(1, 1, 8000, 16, 320)[..30]), @"is truncated: it ends within the WAV header");
    insta::assert_snapshot!(why(&header(1, 1, 8000, 16, 320)[..38]), @"is truncated: it ends within the WAV header");
    insta::assert_snapshot!(why(&with(header(1, 1, 8000, 16, 320), 100)), @"is truncated: its header announces 320 bytes of samples, it holds 100; copy it again, or rewrite it with `sox --ignore-length in.wav out.wav`");
    insta::assert_snapshot!(why(&with(header(1, 1, 8000, 16, u32::MAX - 36 - 1), 100)), @"is truncated: its header announces 4294967258 bytes of samples, it holds 100; copy it again, or rewrite it with `sox --ignore-length in.wav out.wav`");
    insta::assert_snapshot!(why(&with(header(3, 1, 8000, 64, 320), 320)), @"holds 64-bit float samples; expected PCM of 8, 16, 24 or 32 bits, or 32-bit float; convert with e.g. `sox in.wav -b 16 -e signed-integer out.wav`");
    insta::assert_snapshot!(why(&with(header(7, 1, 8000, 8, 320), 320)), @"holds µ-law samples; expected PCM of 8, 16, 24 or 32 bits, or 32-bit float; convert with e.g. `sox in.wav -b 16 -e signed-integer out.wav`");
    insta::assert_snapshot!(why(&with(header(2, 1, 8000, 8, 320), 320)), @"holds ADPCM-compressed samples; expected PCM of 8, 16, 24 or 32 bits, or 32-bit float; convert with e.g. `sox in.wav -b 16 -e signed-integer out.wav`");
    insta::assert_snapshot!(why(&with(header(0x161, 1, 8000, 8, 320), 320)), @"holds samples in format 0x0161; expected PCM of 8, 16, 24 or 32 bits, or 32-bit float; convert with e.g. `sox in.wav -b 16 -e signed-integer out.wav`");
    insta::assert_snapshot!(why(&header(1, 1, 8000, 16, 0)), @"holds no samples");
    insta::assert_snapshot!(why(&with(header(1, 0, 8000, 16, 320), 320)), @"has a damaged WAV header (zero channels)");
    insta::assert_snapshot!(why(&with(header(1, 1, 0, 16, 320), 320)), @"claims 0 samples a second; expected 1000 to 768000 Hz");
    insta::assert_snapshot!(why(&with(header(1, 1, 2_000_000_000, 16, 320), 320)), @"claims 2000000000 samples a second; expected 1000 to 768000 Hz");
    insta::assert_snapshot!(why(&with(header(1, 1, 8000, 64, 320), 320)), @"holds 64-bit samples; expected PCM of 8, 16, 24 or 32 bits, or 32-bit float; convert with e.g. `sox in.wav -b 16 -e signed-integer out.wav`");
}

/// Chunk by chunk, as RIFF has it: a name, a length, the content, and a byte of padding if it is odd.
fn riff(kind: &[u8; 4], len: u32, chunks: &[(&[u8; 4], u32, &[u8])]) -> Vec<u8> {
    let mut out = [kind.as_slice(), &len.to_le_bytes(), b"WAVE"].concat();
    for (name, len, content) in chunks {
        out.extend([name.as_slice(), &len.to_le_bytes(), content].concat());
        out.resize(out.len().next_multiple_of(2), 0);
    }
    out
}

/// What each of these kinds of file is to sox 14.4.2 (`--ignore-length` for a length of 0) and ffmpeg 5.1.9:
/// the same four samples. Both write the lengths of a pipe that are named here.
#[test]
fn chunks_and_lengths_are_those_of_real_writers() {
    let folder = Folder::new("chunks");
    let samples = [100_i16, -200, 300, -400];
    let data: Vec<u8> = samples.iter().flat_map(|x| x.to_le_bytes()).collect();
    let fmt = &header(1, 1, 8000, 16, 0)[20..36];
    let extensible = |guid: &[u8]| {
        let more = [&[22, 0, 16, 0, 4, 0, 0, 0], guid].concat();
        [&[0xFE, 0xFF], &fmt[2..], &more].concat()
    };
    let guid = *b"\x01\0\0\0\0\0\x10\0\x80\0\0\xAA\0\x38\x9B\x71";
    let registered = extensible(&guid);
    let plain = |len: u32| (b"data", len, data.as_slice());
    let ds64 =
        |riff: u64, len: u64| [riff.to_le_bytes(), len.to_le_bytes(), 4_u64.to_le_bytes()].concat();
    let (ds64_known, ds64_open) = ([ds64(72, 8), vec![0; 4]].concat(), [0; 28]);
    let one_more = [data.as_slice(), &[7]].concat();
    let all =
        |kind, len, chunks: &[(&[u8; 4], u32, &[u8])]| sent(&folder.file(&riff(kind, len, chunks)));
    let fmt = (b"fmt ", 16, fmt);
    let mut piped = riff(b"RIFF", u32::MAX, &[fmt, (b"data", u32::MAX, &one_more)]);
    // Who does not know the length writes no padding.
    piped.pop();
    for (what, found) in [
        ("odd chunk", all(b"RIFF", 58, &[(b"iXML", 5, b"hello"), fmt, plain(8)])),
        ("even chunk", all(b"RIFF", 58, &[(b"iXML", 6, b"hello!"), fmt, plain(8)])),
        ("odd chunk behind", all(b"RIFF", 58, &[fmt, plain(8), (b"LIST", 5, b"INFO!")])),
        ("extensible", all(b"RIFF", 68, &[(b"fmt ", 40, &registered), plain(8)])),
        ("ffmpeg's pipe", all(b"RIFF", u32::MAX, &[fmt, plain(u32::MAX)])),
        ("sox' pipe", all(b"RIFF", 0x7FFF_F024, &[fmt, plain(0x7FFF_F000)])),
        ("arecord's pipe", all(b"RIFF", 0x8000_0024, &[fmt, plain(0x8000_0000)])),
        ("header first", all(b"RIFF", 36, &[fmt, plain(0)])),
        ("no lengths", all(b"RIFF", 0, &[fmt, plain(0)])),
        ("RF64", all(b"RF64", u32::MAX, &[(b"ds64", 28, &ds64_known), fmt, plain(u32::MAX)])),
        (
            "RF64 in a pipe",
            all(b"RF64", u32::MAX, &[(b"ds64", 28, &ds64_open), fmt, plain(u32::MAX)]),
        ),
        ("a byte of a fifth", all(b"RIFF", 45, &[fmt, (b"data", 9, &one_more)])),
        ("the same in a pipe", sent(&folder.file(&piped))),
    ] {
        assert_eq!(found, samples, "{what}");
    }
    let why = |kind, len, chunks: &[(&[u8; 4], u32, &[u8])]| {
        refusal(&folder.file(&riff(kind, len, chunks)))
    };
    // As long as the file says, and without samples.
    let none = why(b"RIFF", 48, &[fmt, (b"data", 0, &[]), (b"LIST", 4, b"INFO")]);
    insta::assert_snapshot!(none, @"holds no samples");
    let (behind, other) = (why(b"RIFF", 44, &[plain(8), fmt]), extensible(&[7; 16]));
    insta::assert_snapshot!(behind, @"has a damaged WAV header (samples before their format)");
    let other = why(b"RIFF", 68, &[(b"fmt ", 40, &other), plain(8)]);
    insta::assert_snapshot!(other, @"holds samples in a format without a number; expected PCM of 8, 16, 24 or 32 bits, or 32-bit float; convert with e.g. `sox in.wav -b 16 -e signed-integer out.wav`");
    let long = [ds64(1 << 33, 1 << 33), vec![0; 4]].concat();
    let cut = why(b"RF64", u32::MAX, &[(b"ds64", 28, &long), fmt, plain(u32::MAX)]);
    assert!(cut.starts_with("is truncated: its header announces 8589934592 bytes"), "{cut}");
    let lost = why(b"RIFF", 90, &[(b"iXML", 0xFFFF_FFF0, b"hello!"), fmt, plain(8)]);
    insta::assert_snapshot!(lost, @"is truncated: it ends within the WAV header");
}

#[test]
fn the_shipped_recording_opens() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../speech/sense-and-sensibility.wav");
    let recording = Recording::open(&Disk, &path, &[of(Pcmu)], None).unwrap();
    assert_eq!(recording.sent.len(), 80_720); // 10.09 s
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// A file truncated or altered anywhere is read or rejected; nothing panics.
    #[test]
    fn damage_is_an_error_at_most(
        at in 0..60_usize, value in any::<u8>(), keep in 0..400_usize,
    ) {
        let folder = Folder::new("damage");
        let mut bytes = header(1, 2, 16_000, 16, 320);
        bytes.resize(bytes.len() + 320, 3);
        bytes[at] = value;
        bytes.truncate(keep);
        if let Err(error) = Recording::open(&Disk, &folder.file(&bytes), &[of(Pcmu)], None) {
            prop_assert!(error.to_string().contains("in.wav"));
        }
    }
}

#[test]
fn recordings_longer_than_are_kept_are_refused_before_they_are_read() {
    let folder = Folder::new("long");
    // Four hours and a second at the lowest sample rate: sixteen times as much at 16 kHz.
    let path = folder.wav(1_000, 1, 8, &[0]);
    let samples = 1_000 * (4 * 3600 + 1);
    let head = std::fs::read(&path).unwrap();
    let data = head.windows(4).position(|bytes| bytes == b"data").unwrap();
    let mut bytes = head[..data + 8].to_vec();
    bytes[data + 4..].copy_from_slice(&(samples as u32).to_le_bytes());
    bytes.resize(data + 8 + samples, 128);
    std::fs::write(&path, &bytes).unwrap();
    let told = Recording::open(&Disk, &path, &[of(Pcmu)], None).unwrap_err().to_string();
    assert!(told.ends_with("claims 14401 s of sound; expected at most 14400 s"), "{told}");
    // Gigabytes only claimed by the file's length: nothing is read.
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(6 << 30).unwrap();
    let told = Recording::open(&Disk, &path, &[of(Pcmu)], None).unwrap_err().to_string();
    assert!(told.ends_with("is longer than 256 MiB; cut it"), "{told}");
}

#[test]
fn a_pipe_is_no_recording_and_is_not_waited_for() {
    let folder = Folder::new("pipe");
    let path = folder.0.join("pipe.wav");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    if !made.is_ok_and(|status| status.success()) {
        return; // a system without named pipes
    }
    let told = Recording::open(&Disk, &path, &[of(Pcmu)], None).unwrap_err().to_string();
    assert!(told.ends_with("is not a regular file; expected a WAV file"), "{told}");
}

#[test]
fn two_channels_are_kept_if_they_are_encoded() {
    let folder = Folder::new("stereo");
    let opus = opus::Config { channels: 2, ..opus::Config::default() };
    let encoding = Encoding { opus, ..of(Opus) };
    let open = |path: &Path| Recording::open(&Disk, path, &[encoding], None).unwrap();
    let stereo = open(&folder.wav(48_000, 2, 16, &[1, -1, 2, -2, 3, -3]));
    assert_eq!((&stereo.sent[..], stereo.channels), (&[1, -1, 2, -2, 3, -3][..], 2));
    assert_eq!(stereo.duration(), Duration::from_nanos(3 * 1_000_000_000 / 48_000));
    // A mono file sounds on both sides.
    assert_eq!(open(&folder.wav(48_000, 1, 16, &[1, 2, 3])).sent[..], [1, 1, 2, 2, 3, 3]);
    // One channel of two is their mean.
    let mono =
        Recording::open(&Disk, &folder.wav(48_000, 2, 16, &[4, 8, -2, 2]), &[of(Opus)], None);
    assert_eq!(mono.unwrap().sent[..], [6, 0]);
    // An incomplete last sample is no sample.
    let one = header(1, 2, 48_000, 16, 2).into_iter().chain([1, 0]).collect::<Vec<_>>();
    let told =
        Recording::open(&Disk, &folder.file(&one), &[encoding], None).unwrap_err().to_string();
    assert!(told.ends_with("holds no samples"), "{told}");
}
