//! What talks and listens: sources, codecs, the send queue, playout and quality, and the `Peer`
//! that ties one end of a flow together for simulated and real time alike.

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
