//! Ack Vectors (RFC 4340 §11.4 and appendix A): which packets arrived, run by run.

/// What a receiver knows of the packets it must still acknowledge.
#[derive(Debug, Default)]
pub struct AckVector {}
