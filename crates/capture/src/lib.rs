//! Reads captures: the frames of pcap and pcapng files (`container`), the IP packets in them (`frame`) and in
//! tunnels (`tunnel`), the headers of UDP, TCP, SCTP and DCCP in these (`headers`), the media after them
//! (`media`), and all as Arrow tables (`table`); session descriptions (`sdp`), the reports of RTCP (`rtcp`),
//! whose common parts are those of `proto`, and round-trip times in these (`round_trip`). `etherparse` reads
//! IP, UDP and TCP; it has neither SCTP nor DCCP nor RTP.

pub mod container;
pub mod frame;
pub mod headers;
mod media;
pub mod round_trip;
pub mod rtcp;
pub mod sdp;
pub mod table;
mod tunnel;
