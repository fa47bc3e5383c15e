//! What is special to version 0.25.

use str0m::bwe::{Bitrate, Bwe};
use str0m::crypto::{CryptoProvider, Sha1Provider};
use str0m_0_25 as str0m;

#[path = "stack.rs"]
mod stack;

pub(crate) use stack::kind;

const NAME: &str = "str0m-0.25.0";

/// What DTLS says of data that it takes.
type Accepted = usize;

fn accepted(data: &[u8]) -> Accepted {
    data.len()
}

fn provider() -> CryptoProvider {
    use stack::plain::PLAIN;
    CryptoProvider {
        srtp_provider: &PLAIN,
        sha1_hmac_provider: &PLAIN,
        sha1_provider: &PLAIN,
        sha256_provider: &PLAIN,
        dtls_provider: &PLAIN,
    }
}

impl Sha1Provider for stack::plain::Plain {
    fn sha1(&self, _: &[u8]) -> [u8; 20] {
        unreachable!("fingerprints are of SHA-256")
    }
}

fn desire(mut bwe: Bwe<'_>, rate: Bitrate) {
    bwe.set_bitrate(Bitrate::ZERO, rate);
}
