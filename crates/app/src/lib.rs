//! Application side: sources, codecs, the send queue, playout and quality, and the `Peer` that combines them
//! into one end of a flow, in simulated and real time alike. The types that drivers and extensions need are
//! also at the root of the crate.

// Lets the files in `docs/adding-a-*.md` compile unchanged both here and as tests.
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
pub mod flexfec;
pub mod peer;
pub mod playout;
pub mod quality;
pub mod recording;
pub mod send_queue;
pub mod source;
pub mod table;
pub mod transport;

// What drivers of peers, and authors of sources and codecs, need.
pub use codec::{Bpl, Codec, Decoder, Encoder, Encoding, Sound, Spec};
pub use peer::{Parts, Peer};
pub use source::{Generator, Material, Setting, Source, SourceConfig, Unit};
pub use transport::Transport;
