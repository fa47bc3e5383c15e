//! What talks and listens: sources, codecs, the send queue, playout and quality, and the `Peer`
//! that ties one end of a flow together for simulated and real time alike.

// So that the files in `docs/adding-a-*.md` read the same here and as the tests that compile them.
extern crate self as talkspurt_app;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-a-source.md")]
mod adding_a_source {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-a-codec.md")]
mod adding_a_codec {}

pub mod clock;
pub mod codec;
pub mod conceal;
pub mod file;
pub mod peer;
pub mod playout;
pub mod quality;
pub mod recording;
pub mod send_queue;
pub mod source;
pub mod transport;
