//! What the kernel knows of a TCP connection (`struct tcp_info`), asked over netlink (`sock_diag(7)`), which
//! needs no privilege and, unlike `getsockopt`, no unsafe code.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};
use talkspurt_proto::gauge::Gauge;

/// Type of question and answer, of `linux/sock_diag.h`.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST` of `linux/netlink.h`.
const REQUEST: u16 = 1;
/// Length of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Length of `struct inet_diag_msg`, after which attributes follow.
const MESSAGE: usize = 72;
/// The attribute with `struct tcp_info`, of `linux/inet_diag.h`.
const INFO: u16 = 2;
const TCP: u8 = 6;
/// An unbounded slow-start threshold, `TCP_INFINITE_SSTHRESH`.
const UNBOUNDED: u32 = 0x7fff_ffff;

/// A socket for questions.
pub(crate) struct Diagnosis(OwnedFd);

/// Quantities of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpInfo {
    mss: u32,
    cwnd: u32,
    ssthresh: u32,
    /// Segments that are not acknowledged, of which so many are selectively acknowledged, deemed lost, and sent
    /// again.
    unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    rtt_us: u32,
    rto_us: u32,
    /// Segments with data sent, and of these again.
    pub(crate) segments: u32,
    pub(crate) retransmitted: u32,
}

impl Diagnosis {
    pub(crate) fn open() -> io::Result<Self> {
        let kind = (SockType::Datagram, SockProtocol::NetlinkSockDiag);
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        Ok(Self(socket(AddressFamily::Netlink, kind.0, flags, kind.1)?))
    }

    /// What is known of the connection between our address and another; `None` if the kernel tells nothing.
    pub(crate) fn ask(&self, ours: SocketAddr, theirs: SocketAddr) -> Option<TcpInfo> {
        let fd = self.0.as_raw_fd();
        let (kernel, question) = (NetlinkAddr::new(0, 0), question(ours, theirs));
        sendto(fd, &question, &kernel, MsgFlags::empty()).ok()?;
        let mut answer = [0; 4096];
        // The kernel has answered when the question is sent.
        let length = recv(fd, &mut answer, MsgFlags::empty()).ok()?;
        TcpInfo::of_answer(&answer[..length])
    }
}

/// A `struct inet_diag_req_v2` for the connection.
fn question(ours: SocketAddr, theirs: SocketAddr) -> Vec<u8> {
    let family = if ours.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let mut body = vec![family as u8, TCP, 1 << (INFO - 1), 0];
    body.extend(u32::MAX.to_ne_bytes());
    for end in [ours, theirs] {
        body.extend(end.port().to_be_bytes());
    }
    for end in [ours, theirs] {
        let mut address = [0; 16];
        match end.ip() {
            IpAddr::V4(four) => address[..4].copy_from_slice(&four.octets()),
            IpAddr::V6(six) => address = six.octets(),
        }
        body.extend(address);
    }
    let interface = match theirs {
        SocketAddr::V6(six) => six.scope_id(),
        SocketAddr::V4(_) => 0,
    };
    body.extend(interface.to_ne_bytes());
    // Any cookie.
    body.extend([0xff; 8]);
    let mut out = Vec::with_capacity(HEADER + body.len());
    out.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    out.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    out.extend(REQUEST.to_ne_bytes());
    out.extend([0; 8]);
    out.extend(body);
    out
}

impl TcpInfo {
    fn of_answer(answer: &[u8]) -> Option<Self> {
        let kind = answer.get(4..)?.first_chunk().map(|kind| u16::from_ne_bytes(*kind))?;
        let mut rest = answer.get(HEADER + MESSAGE..)?;
        while kind == SOCK_DIAG_BY_FAMILY && rest.len() >= 4 {
            let length = usize::from(u16::from_ne_bytes([rest[0], rest[1]]));
            if u16::from_ne_bytes([rest[2], rest[3]]) == INFO {
                return Self::of_struct(rest.get(4..length)?);
            }
            rest = rest.get(length.next_multiple_of(4).max(4)..)?;
        }
        None
    }

    /// By the offsets of `struct tcp_info` in `linux/tcp.h`, which do not change.
    fn of_struct(info: &[u8]) -> Option<Self> {
        let at = |offset: usize| {
            info.get(offset..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
        };
        Some(Self {
            rto_us: at(8)?,
            mss: at(16)?,
            unacked: at(24)?,
            sacked: at(28)?,
            lost: at(32)?,
            retrans: at(36)?,
            rtt_us: at(68)?,
            ssthresh: at(76)?,
            cwnd: at(80)?,
            retransmitted: at(100)?,
            segments: at(156)?,
        })
    }

    /// The quantities that the simulator's TCP has, too.
    pub(crate) fn gauges(&self) -> impl Iterator<Item = (Gauge, f64)> {
        let bytes = |segments: u32| f64::from(segments) * f64::from(self.mss);
        // Linux's tcp_packets_in_flight.
        let flight = (self.unacked + self.retrans).saturating_sub(self.sacked + self.lost);
        let bounded = (self.ssthresh < UNBOUNDED).then(|| bytes(self.ssthresh));
        // Not measured yet.
        let rtt = (self.rtt_us > 0).then(|| f64::from(self.rtt_us) / 1e6);
        [
            (Gauge::Cwnd, Some(bytes(self.cwnd))),
            (Gauge::Ssthresh, bounded),
            (Gauge::Flight, Some(bytes(flight))),
            (Gauge::Srtt, rtt),
            (Gauge::Rto, Some(f64::from(self.rto_us) / 1e6)),
        ]
        .into_iter()
        .filter_map(|(gauge, value)| Some((gauge, value?)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv6Addr, TcpListener, TcpStream};

    use proptest::prelude::*;
    use socket2::SockRef;

    use super::*;

    /// Both families, against what socket options say.
    #[test]
    fn the_kernel_tells_of_a_connection() {
        for local in [IpAddr::from([127, 0, 0, 1]), Ipv6Addr::LOCALHOST.into()] {
            let listener = TcpListener::bind((local, 0)).expect("loopback has ports");
            let at = listener.local_addr().expect("it is bound");
            let mut ours = TcpStream::connect(at).expect("it listens");
            let (mut theirs, _) = listener.accept().expect("it has connected");
            ours.set_nodelay(true).expect("it is TCP");
            for _ in 0..3 {
                ours.write_all(b"speech").expect("it is open");
                theirs.read_exact(&mut [0; 6]).expect("it came");
            }
            let diagnosis = Diagnosis::open().expect("Linux has it");
            let info = diagnosis.ask(ours.local_addr().expect("it is bound"), at);
            let info = info.expect("it is there");
            assert_eq!(Ok(info.mss), SockRef::from(&ours).tcp_mss().map_err(|_| ()));
            assert_eq!((info.segments, info.retransmitted), (3, 0));
            assert!(info.cwnd >= 3 && info.ssthresh >= 2);
            assert!(0 < info.rtt_us && info.rtt_us < 10_000_000 && info.rto_us > info.rtt_us);
            let nobody = SocketAddr::new(local, 1);
            assert_eq!(diagnosis.ask(nobody, nobody), None, "there is no such connection");
        }
    }

    proptest! {
        #[test]
        fn any_answer_is_read(answer: Vec<u8>, rest in prop::collection::vec(0_u8..9, 0..300)) {
            let _ = TcpInfo::of_answer(&answer);
            let mut whole = vec![0; HEADER + MESSAGE];
            whole[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
            whole.extend(rest);
            let _ = TcpInfo::of_answer(&whole);
        }
    }
}
