//! Reads captures: the frames of pcap and pcapng files (`container`), the IP packets in them (`frame`), the
//! headers of RTP, TCP, SCTP and DCCP in these (`headers`), and all as Arrow tables (`table`). Depends on no
//! other crate of talkspurt. `etherparse` reads IP, UDP and TCP; it has neither SCTP nor DCCP nor RTP.

pub mod container;
pub mod frame;
pub mod headers;
pub mod table;
