//! What talks and listens: sources, codecs, the send queue, playout and quality, and the `Peer`
//! that ties one end of a flow together for simulated and real time alike.

pub mod codec;
pub mod conceal;
pub mod playout;
pub mod quality;
pub mod recording;
pub mod source;
