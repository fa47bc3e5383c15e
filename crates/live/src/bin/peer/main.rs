//! One side of a conversation with another stack, over raw IP, UDP or a TUN device; used for validation against
//! the Linux kernel and usrsctp. Prints results as one JSON object per line, and writes the packets sent and
//! received as pcapng.

#[cfg(target_os = "linux")]
mod dccp;
#[cfg(target_os = "linux")]
mod echo;
#[cfg(target_os = "linux")]
mod ends;
#[cfg(target_os = "linux")]
mod path;
#[cfg(target_os = "linux")]
mod rig;
#[cfg(target_os = "linux")]
mod round_robin;
#[cfg(target_os = "linux")]
mod sctp;
#[cfg(target_os = "linux")]
mod tcp;
#[cfg(target_os = "linux")]
mod watch;

/// What is spoken with the peer.
#[cfg(target_os = "linux")]
#[derive(Debug, clap::Parser)]
enum Ask {
    /// A DCCP echo test over raw IP (protocol 33, RFC 4340 §19.1), with a peer that counts the same way.
    Dccp(dccp::Ask),
    /// An SCTP echo test over raw IP (protocol 132) or UDP (RFC 6951), on one or several paths, with
    /// a peer that counts the same way.
    Sctp(sctp::Ask),
    /// TCP on the TUN device that is the standard input (IFF_TUN | IFF_NO_PI), a file in each
    /// direction, with any TCP as peer.
    Tcp(tcp::Ask),
}

/// The status is 0 if the conversation ended before its limit, otherwise 2.
#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let ended = match <Ask as clap::Parser>::parse() {
        Ask::Dccp(ask) => dccp::run(&ask),
        Ask::Sctp(ask) => sctp::run(&ask),
        Ask::Tcp(ask) => tcp::run(&ask),
    };
    match ended {
        Ok(true) => std::process::ExitCode::SUCCESS,
        Ok(false) => std::process::ExitCode::from(2),
        Err(error) => {
            error.to_string().lines().for_each(|line| eprintln!("peer: {line}"));
            std::process::ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("peer: its sockets are spoken on Linux only");
    std::process::ExitCode::FAILURE
}
