//! A handshake of QUIC without cryptography, for a simulation: the transport parameters are exchanged in
//! clear, sixteen zeros take the place of each authentication tag, and nothing is random.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    self, AeadKey, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey,
    KeyPair, Keys, PacketKey, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

/// As long as the tags of AES-GCM.
const TAG: [u8; 16] = [0; 16];

/// All keys.
pub(crate) struct Plain;

impl PacketKey for Plain {
    fn encrypt(&self, _: u64, _: &mut [u8], _: usize) {}
    fn decrypt(&self, _: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let length = payload.len().checked_sub(TAG.len()).ok_or(CryptoError)?;
        payload.truncate(length);
        Ok(())
    }
    fn tag_len(&self) -> usize {
        TAG.len()
    }
    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }
    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for Plain {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}
    fn encrypt(&self, _: usize, _: &mut [u8]) {}
    fn sample_size(&self) -> usize {
        TAG.len()
    }
}

/// FNV-1a, so that different connections have different reset tokens.
impl HmacKey for Plain {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for out in signature {
            for byte in data {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
            *out = (hash >> 56) as u8;
        }
    }
    fn signature_len(&self) -> usize {
        32
    }
    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut own = vec![0; signature.len()];
        self.sign(data, &mut own);
        if own == signature { Ok(()) } else { Err(CryptoError) }
    }
}

impl HandshakeTokenKey for Plain {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self)
    }
}

impl AeadKey for Plain {
    fn seal(&self, data: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        data.extend_from_slice(&TAG);
        Ok(())
    }
    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let length = data.len().checked_sub(TAG.len()).ok_or(CryptoError)?;
        Ok(&mut data[..length])
    }
}

fn keys() -> Keys {
    Keys { header: KeyPair { local: Box::new(Plain), remote: Box::new(Plain) }, packet: pair() }
}

fn pair() -> KeyPair<Box<dyn PacketKey>> {
    KeyPair { local: Box::new(Plain), remote: Box::new(Plain) }
}

/// Messages of the handshake, each behind its length of two bytes. The client sends its parameters; the server
/// a hello without content and then its parameters; the client a last message without content.
struct Handshake {
    side: Side,
    parameters: Vec<u8>,
    others: Option<TransportParameters>,
    /// Messages received and sent.
    received: u8,
    sent: u8,
    /// The client's keys for the handshake are given out.
    has_keys: bool,
    inbox: Vec<u8>,
}

impl Handshake {
    fn new(side: Side, parameters: &TransportParameters) -> Box<dyn Session> {
        let mut bytes = Vec::new();
        parameters.write(&mut bytes);
        let (parameters, inbox) = (bytes, Vec::new());
        Box::new(Self {
            side,
            parameters,
            others: None,
            received: 0,
            sent: 0,
            has_keys: false,
            inbox,
        })
    }

    fn next_message(&mut self) -> Option<Vec<u8>> {
        let (length, _) = self.inbox.split_first_chunk()?;
        let end = 2 + usize::from(u16::from_be_bytes(*length));
        (self.inbox.len() >= end).then(|| self.inbox.drain(..end).skip(2).collect())
    }

    fn send(&mut self, content: &[u8], out: &mut Vec<u8>) {
        self.sent += 1;
        let length = u16::try_from(content.len()).expect("parameters are short");
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(content);
    }
}

impl Session for Handshake {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        keys()
    }
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }
    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }
    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }
    fn early_data_accepted(&self) -> Option<bool> {
        None
    }
    fn is_handshaking(&self) -> bool {
        !(self.received == 2 && self.sent == 2)
    }
    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.inbox.extend_from_slice(bytes);
        while let Some(message) = self.next_message() {
            self.received += 1;
            if !message.is_empty() {
                self.others = Some(TransportParameters::read(self.side, &mut &message[..])?);
            }
        }
        Ok(false)
    }
    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.others)
    }
    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let parameters = self.parameters.clone();
        match (self.side, self.received, self.sent) {
            (Side::Client, 0, 0) => {
                self.send(&parameters, out);
                None
            }
            (Side::Client, 1.., 1) if !std::mem::replace(&mut self.has_keys, true) => Some(keys()),
            (Side::Client, 2, 1) => {
                self.send(&[], out);
                Some(keys())
            }
            (Side::Server, 1, 0) => {
                self.send(&[], out);
                Some(keys())
            }
            (Side::Server, 1, 1) => {
                self.send(&parameters, out);
                Some(keys())
            }
            _ => None,
        }
    }
    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(pair())
    }
    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }
    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

impl crypto::ClientConfig for Plain {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Handshake::new(Side::Client, parameters))
    }
}

impl crypto::ServerConfig for Plain {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }
    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        TAG
    }
    fn start_session(
        self: Arc<Self>,
        _: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn Session> {
        Handshake::new(Side::Server, parameters)
    }
}
