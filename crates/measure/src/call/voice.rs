//! What an end of a call says: a WAV file, or what comes from a microphone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use talkspurt_app::codec::{Codec, Encoding};
use talkspurt_app::file::{Disk, Files as _};
use talkspurt_app::recording::{MAX_BYTES, Recording};
use talkspurt_proto::time::Duration;

use crate::Failure;
use crate::codecs::{call_codecs, codec, encoding};
use crate::devices::Devices;

/// What one end says, and the codecs that it has.
#[derive(Clone, Debug)]
pub struct Voice {
    says: Says,
    pub(super) codecs: Vec<Codec>,
    /// A loudspeaker plays what is heard while the call lasts.
    has_loudspeaker: bool,
}

#[derive(Clone, Debug)]
enum Says {
    File {
        file: PathBuf,
        bytes: Bytes,
        duration: Duration,
    },
    /// What comes from a microphone.
    Microphone,
}

impl Voice {
    /// Reads a WAV file and checks it.
    ///
    /// # Errors
    /// The file cannot be used, or a codec is unknown or has no sound here.
    pub fn open(file: &Path, codecs: &[String]) -> Result<Self, Failure> {
        let voice = Self::of_microphone(codecs)?;
        let recording = Recording::open(&Disk, file, &[encoding(voice.codecs[0])], None);
        let duration = recording.map_err(|error| Failure::Input(error.to_string()))?.duration();
        let bytes = Disk.read(file, MAX_BYTES);
        let bytes =
            bytes.map_err(|fault| Failure::Input(format!("{}: {fault}", file.display())))?;
        Ok(Self { says: Says::File { file: file.to_owned(), bytes, duration }, ..voice })
    }

    /// What comes from a microphone, through [`Devices`].
    ///
    /// # Errors
    /// A codec is unknown or has no sound here.
    pub fn of_microphone(codecs: &[String]) -> Result<Self, Failure> {
        let known = call_codecs();
        let unknown = codecs.iter().filter(|name| !known.contains(name));
        let unknown: Vec<_> = unknown.map(String::as_str).collect();
        if !unknown.is_empty() || codecs.is_empty() {
            let (unknown, known) = (unknown.join(", "), known.join(", "));
            return Err(Failure::Input(format!(
                "codec {unknown}: expected one or more of {known}"
            )));
        }
        let codecs = codecs.iter().filter_map(|name| codec(name)).collect();
        Ok(Self { says: Says::Microphone, codecs, has_loudspeaker: false })
    }

    /// The same with a loudspeaker, through [`Devices`].
    #[must_use]
    pub fn with_loudspeaker(self) -> Self {
        Self { has_loudspeaker: true, ..self }
    }

    /// Length of the file, if it says what is in one.
    #[must_use]
    pub const fn duration(&self) -> Option<Duration> {
        match self.says {
            Says::File { duration, .. } => Some(duration),
            Says::Microphone => None,
        }
    }

    pub(crate) fn codecs(&self) -> &[Codec] {
        &self.codecs
    }

    /// What is said in these encodings: a file has silence after it, up to this duration.
    pub(super) fn recording(
        &self,
        encodings: &[Encoding],
        duration: Duration,
    ) -> Result<Recording, Failure> {
        match &self.says {
            Says::File { file, bytes, .. } => {
                let files = BTreeMap::from([(file.clone(), bytes.clone())]);
                let recording = Recording::open(&files, file, encodings, None);
                let recording = recording.map_err(|error| Failure::Input(error.to_string()))?;
                Ok(recording.lasting(duration, encodings))
            }
            Says::Microphone => Ok(Recording::live(Arc::default(), &encodings[0])),
        }
    }

    /// The devices for a recording of this voice, if there are any.
    pub(super) fn devices(
        &self,
        encodings: Vec<Encoding>,
        recording: &Recording,
    ) -> Option<Arc<Devices>> {
        let microphone = recording.microphone.clone();
        let heard = self.has_loudspeaker.then(Mutex::default);
        let any = microphone.is_some() || heard.is_some();
        any.then(|| Arc::new(Devices { encodings, microphone, heard }))
    }
}
