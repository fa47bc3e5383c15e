//! Reads captures: the frames of pcap and pcapng files (`container`), the IP packets in them (`frame`) and in
//! tunnels (`tunnel`), the headers of UDP, TCP, SCTP and DCCP in these (`headers`), the media after them
//! (`media`), and all as Arrow tables (`table`). Depends on no other crate of talkspurt. `etherparse` reads IP,
//! UDP and TCP; it has neither SCTP nor DCCP nor RTP.

pub mod container;
pub mod frame;
pub mod headers;
mod media;
pub mod table;
mod tunnel;
