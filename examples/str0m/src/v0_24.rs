//! What is special to version 0.24.

use str0m::bwe::{Bitrate, Bwe};
use str0m::crypto::CryptoProvider;
use str0m_0_24 as str0m;

#[path = "stack.rs"]
mod stack;

pub(crate) use stack::kind;

const NAME: &str = "str0m-0.24.1";

/// What DTLS says of data that it takes.
type Accepted = ();

fn accepted(_: &[u8]) -> Accepted {}

fn provider() -> CryptoProvider {
    use stack::plain::PLAIN;
    CryptoProvider {
        srtp_provider: &PLAIN,
        sha1_hmac_provider: &PLAIN,
        sha256_provider: &PLAIN,
        dtls_provider: &PLAIN,
    }
}

fn desire(mut bwe: Bwe<'_>, rate: Bitrate) {
    bwe.set_desired_bitrate(rate);
}
