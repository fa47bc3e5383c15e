//! A folder with a recording beside it, as scenarios expect: `scenarios/` and `speech/call.wav`.

use std::path::{Path, PathBuf};

/// The scenarios' folder of the stage.
pub(crate) fn folder() -> PathBuf {
    let stage = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stage");
    let (scenarios, speech) = (stage.join("scenarios"), stage.join("speech"));
    std::fs::create_dir_all(&scenarios).expect("temporary folder");
    std::fs::create_dir_all(&speech).expect("temporary folder");
    let file = speech.join("call.wav");
    if !file.exists() {
        // Written under another name and renamed: tests run concurrently, and none may see half a file.
        let own = speech.join(format!("{}-{:?}", std::process::id(), std::thread::current().id()));
        std::fs::write(&own, wav()).expect("temporary file");
        std::fs::rename(&own, &file).expect("temporary file");
    }
    scenarios
}

/// A second of silence, 8 kHz, 16 bit, mono.
fn wav() -> Vec<u8> {
    let data = vec![0_u8; 16_000];
    let mut wav = Vec::new();
    wav.extend_from_slice(b"RIFF");
    wav.extend_from_slice(&(36 + data.len() as u32).to_le_bytes());
    wav.extend_from_slice(b"WAVEfmt ");
    for (value, bytes) in [(16_u32, 4), (1, 2), (1, 2), (8000, 4), (16_000, 4), (2, 2), (16, 2)] {
        wav.extend_from_slice(&value.to_le_bytes()[..bytes]);
    }
    wav.extend_from_slice(b"data");
    wav.extend_from_slice(&(data.len() as u32).to_le_bytes());
    wav.extend_from_slice(&data);
    wav
}
