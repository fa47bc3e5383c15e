//! DTLS and SRTP without cryptography, for a simulation: as many bytes and round trips as with it, and nothing
//! random.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::super::str0m::crypto::dtls::{
    DtlsCert, DtlsImplError, DtlsInstance, DtlsOutput, DtlsProvider, DtlsVersion, KeyingMaterial,
    ProtocolVersion, SrtpProfile,
};
use super::super::str0m::crypto::{
    AeadAes128GcmCipher, CryptoError, Sha1HmacProvider, Sha256Provider, SrtpProvider,
    SupportedAeadAes128Gcm, SupportedAeadAes256Gcm, SupportedAes128CmSha1_80,
};
use super::super::{Accepted, accepted};

/// As long as the tags of AES-GCM.
pub(super) const TAG: usize = 16;
/// Of AEAD_AES_128_GCM: two keys of 16 bytes and two salts of 12 (RFC 7714 §12).
const KEYS: [u8; 56] = [7; 56];
const CERTIFICATE: [u8; 300] = [1; 300];
/// Datagrams of the handshake, as long as a client's and a server's flights are about.
const HELLO: [u8; 500] = first(22);
const ANSWER: [u8; 900] = first(22);
/// Until the client repeats its hello.
const REPEAT: Duration = Duration::from_millis(200);

/// RFC 7983 §7: a first byte of 20 to 63 is one of DTLS.
const fn first<const N: usize>(byte: u8) -> [u8; N] {
    let mut bytes = [0; N];
    bytes[0] = byte;
    bytes
}

/// All of it.
#[derive(Debug)]
pub(crate) struct Plain;

pub(crate) static PLAIN: Plain = Plain;

/// FNV-1a, so that different messages have different hashes.
fn hash<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let bytes = parts.iter().flat_map(|part| part.iter());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    std::array::from_fn(|place| hash.to_be_bytes()[place % 8])
}

impl Sha1HmacProvider for Plain {
    fn sha1_hmac(&self, key: &[u8], payloads: &[&[u8]]) -> [u8; 20] {
        hash(&[&[key][..], payloads].concat())
    }
}

impl Sha256Provider for Plain {
    fn sha256(&self, data: &[u8]) -> [u8; 32] {
        hash(&[data])
    }
}

impl SrtpProvider for Plain {
    fn aes_128_cm_sha1_80(&self) -> &'static dyn SupportedAes128CmSha1_80 {
        unreachable!("the handshake chooses AEAD_AES_128_GCM")
    }
    fn aead_aes_128_gcm(&self) -> &'static dyn SupportedAeadAes128Gcm {
        &PLAIN
    }
    fn aead_aes_256_gcm(&self) -> &'static dyn SupportedAeadAes256Gcm {
        unreachable!("the handshake chooses AEAD_AES_128_GCM")
    }
    fn srtp_aes_128_ecb_round(&self, _: &[u8], input: &[u8], output: &mut [u8]) {
        output[..input.len()].copy_from_slice(input);
    }
    fn srtp_aes_256_ecb_round(&self, _: &[u8], input: &[u8], output: &mut [u8]) {
        output[..input.len()].copy_from_slice(input);
    }
}

impl SupportedAeadAes128Gcm for Plain {
    fn create_cipher(&self, _: [u8; 16], _: bool) -> Box<dyn AeadAes128GcmCipher> {
        Box::new(Self)
    }
}

impl AeadAes128GcmCipher for Plain {
    fn encrypt(
        &mut self,
        _: &[u8; 12],
        _: &[u8],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CryptoError> {
        output[..input.len()].copy_from_slice(input);
        output[input.len()..input.len() + TAG].fill(0);
        Ok(())
    }
    fn decrypt(
        &mut self,
        _: &[u8; 12],
        _: &[&[u8]],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<usize, CryptoError> {
        let length =
            input.len().checked_sub(TAG).ok_or_else(|| CryptoError::Other("no tag".to_owned()))?;
        output[..length].copy_from_slice(&input[..length]);
        Ok(length)
    }
}

impl DtlsProvider for Plain {
    fn generate_certificate(&self) -> Option<DtlsCert> {
        Some(DtlsCert { certificate: CERTIFICATE.to_vec(), private_key: vec![2; 32] })
    }
    fn new_dtls(
        &self,
        _: &DtlsCert,
        now: Instant,
        _: DtlsVersion,
        _: Option<usize>,
    ) -> Result<Box<dyn DtlsInstance>, CryptoError> {
        let steps = VecDeque::new();
        Ok(Box::new(Handshake { is_client: false, now, repeats: None, steps, is_open: false }))
    }
}

#[derive(Debug)]
enum Step {
    Packet(&'static [u8]),
    Certificate,
    Keys,
    Connected,
}

/// The client sends a hello until the server answers; each is connected when it has the other's datagram.
#[derive(Debug)]
struct Handshake {
    is_client: bool,
    now: Instant,
    repeats: Option<Instant>,
    steps: VecDeque<Step>,
    is_open: bool,
}

impl Handshake {
    fn hello(&mut self) {
        self.steps.push_back(Step::Packet(&HELLO));
        self.repeats = Some(self.now + REPEAT);
    }
}

impl DtlsInstance for Handshake {
    fn set_active(&mut self, active: bool) {
        self.is_client = active;
        if active {
            self.hello();
        }
    }
    fn handle_packet(&mut self, _: &[u8]) -> Result<(), DtlsImplError> {
        if !self.is_client {
            self.steps.push_back(Step::Packet(&ANSWER));
        }
        if !std::mem::replace(&mut self.is_open, true) {
            self.repeats = None;
            self.steps.extend([Step::Certificate, Step::Keys, Step::Connected]);
        }
        Ok(())
    }
    fn poll_output<'a>(&mut self, buffer: &'a mut [u8]) -> DtlsOutput<'a> {
        let mut copied = |bytes: &[u8]| {
            buffer[..bytes.len()].copy_from_slice(bytes);
            bytes.len()
        };
        match self.steps.pop_front() {
            Some(Step::Packet(bytes)) => {
                let length = copied(bytes);
                DtlsOutput::Packet(&buffer[..length])
            }
            Some(Step::Certificate) => {
                let length = copied(&CERTIFICATE);
                DtlsOutput::PeerCert(&buffer[..length])
            }
            Some(Step::Keys) => {
                let keys = KeyingMaterial::new(&KEYS);
                DtlsOutput::KeyingMaterial(keys, SrtpProfile::AEAD_AES_128_GCM)
            }
            Some(Step::Connected) => DtlsOutput::Connected,
            None => DtlsOutput::Timeout(self.repeats.unwrap_or(self.now + 1000 * REPEAT)),
        }
    }
    fn handle_timeout(&mut self, now: Instant) -> Result<(), DtlsImplError> {
        self.now = now;
        if self.repeats.is_some_and(|at| at <= now) {
            self.hello();
        }
        Ok(())
    }
    fn send_application_data(&mut self, data: &[u8]) -> Result<Accepted, DtlsImplError> {
        Ok(accepted(data))
    }
    fn is_active(&self) -> bool {
        self.is_client
    }
    fn protocol_version(&self) -> Option<ProtocolVersion> {
        None
    }
    fn close(&mut self) -> Result<(), DtlsImplError> {
        Ok(())
    }
}
