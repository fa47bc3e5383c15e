//! Ports on Linux: raw IP sockets, which carry IP packets unchanged, and UDP sockets, whose datagrams get their
//! headers back (RFC 768, 791, 8200), so that all ports behave alike.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd as _};

use nix::cmsg_space;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use nix::sys::time::{TimeSpec, TimeValLike as _};
use socket2::{Domain, Protocol, Socket, Type};
use talkspurt_proto::time::Duration;
use talkspurt_proto::wire::{Ends, ipv4, ipv6, udp};

use crate::ip::Ip;
use crate::line::Port;

/// Longest IP packet.
const LONGEST: usize = 65_535;

/// A raw IP socket of one protocol, IP headers included. Needs root (or `CAP_NET_RAW`).
#[derive(Debug)]
pub struct RawIp {
    socket: Socket,
    local: IpAddr,
    protocol: u8,
    overruns: u32,
}

impl RawIp {
    /// A socket for a protocol on this local address; over IPv4 the unspecified address stands for all local
    /// addresses.
    ///
    /// # Errors
    /// System errors, mostly missing privileges.
    pub fn open(local: IpAddr, protocol: u8) -> io::Result<Self> {
        Self::on(Self::unbound(protocol, local.is_ipv6())?, protocol, SocketAddr::new(local, 0))
    }

    /// A raw socket of a protocol that has no address yet, for [`Self::on`]. Only this needs the privilege.
    ///
    /// # Errors
    /// System errors, mostly missing privileges.
    pub fn unbound(protocol: u8, ipv6: bool) -> io::Result<Socket> {
        let domain = if ipv6 { Domain::IPV6 } else { Domain::IPV4 };
        Socket::new(domain, Type::RAW, Some(Protocol::from(i32::from(protocol))))
    }

    /// A raw socket of this protocol on the local address; its port does not matter.
    ///
    /// # Errors
    /// System errors.
    pub fn on(socket: Socket, protocol: u8, mut local: SocketAddr) -> io::Result<Self> {
        local.set_port(0);
        socket.bind(&local.into())?;
        match local {
            SocketAddr::V4(_) => socket.set_header_included_v4(true)?,
            SocketAddr::V6(_) => {
                socket.set_header_included_v6(true)?;
                socket.set_recv_tclass_v6(true)?;
            }
        }
        setsockopt(&socket, sockopt::RxqOvfl, &1)?;
        Ok(Self { socket, local: local.ip(), protocol, overruns: 0 })
    }

    /// The socket, for its options.
    #[must_use]
    pub const fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Packets that the system dropped before the last one received because the socket's buffer was full, since
    /// the socket was made.
    #[must_use]
    pub const fn overruns(&self) -> u32 {
        self.overruns
    }
}

impl Port for RawIp {
    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        let to = SocketAddr::new(destination(packet), 0);
        self.socket.send_to(packet, &to.into()).map(drop)
    }

    fn receive(&mut self, wait: Option<Duration>, packet: &mut Vec<u8>) -> io::Result<bool> {
        let Some(message) = Datagram::receive(&self.socket, wait)? else { return Ok(false) };
        self.overruns = message.overruns;
        packet.clear();
        match self.local {
            // An IPv4 raw socket includes the header (raw(7)), an IPv6 one does not (RFC 3542 §3).
            IpAddr::V4(_) => packet.extend_from_slice(&message.bytes),
            IpAddr::V6(_) => {
                let (src, dst) = (message.from.ip(), self.local);
                packet.resize(ipv6::HEADER, 0);
                packet.extend_from_slice(&message.bytes);
                write_header(src, dst, self.protocol, message.class, packet);
            }
        }
        Ok(true)
    }
}

/// A UDP socket: its datagrams are the packets without IP and UDP headers.
#[derive(Debug)]
pub struct UdpPort {
    socket: Socket,
    local: SocketAddr,
    class: u8,
}

impl UdpPort {
    /// A socket on this address and port; port 0 selects a free one.
    ///
    /// # Errors
    /// System errors.
    pub fn bind(local: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(domain(local.ip()), Type::DGRAM, Some(Protocol::UDP))?;
        socket.bind(&local.into())?;
        // A socket of IPv6 also hears IPv4, from mapped addresses.
        socket.set_recv_tos_v4(true)?;
        if local.is_ipv6() {
            socket.set_recv_tclass_v6(true)?;
        }
        setsockopt(&socket, sockopt::RxqOvfl, &1)?;
        let local = socket.local_addr()?.as_socket().expect("a UDP socket has an IP address");
        Ok(Self { socket, local, class: 0 })
    }

    /// Its address and port.
    #[must_use]
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// The socket, for its options.
    #[must_use]
    pub const fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Sends a datagram with this type of service or traffic class.
    ///
    /// # Errors
    /// Errors of the socket.
    pub fn send_datagram(&mut self, bytes: &[u8], to: SocketAddr, class: u8) -> io::Result<()> {
        if class != self.class {
            self.socket.set_tos_v4(u32::from(class))?;
            if self.local.is_ipv6() {
                self.socket.set_tclass_v6(u32::from(class))?;
            }
            self.class = class;
        }
        self.socket.send_to(bytes, &to.into()).map(drop)
    }

    /// Waits this long (or forever) for a datagram; `None` if none came.
    ///
    /// # Errors
    /// Errors of the socket.
    pub fn receive_datagram(&mut self, wait: Option<Duration>) -> io::Result<Option<Datagram>> {
        Datagram::receive(&self.socket, wait)
    }
}

impl Port for UdpPort {
    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        let (header, class) = match self.local {
            SocketAddr::V4(_) => (ipv4::HEADER, packet[1]),
            SocketAddr::V6(_) => (ipv6::HEADER, packet[0] << 4 | packet[1] >> 4),
        };
        let port = u16::from_be_bytes([packet[header + 2], packet[header + 3]]);
        let to = SocketAddr::new(destination(packet), port);
        self.send_datagram(&packet[header + udp::HEADER..], to, class)
    }

    fn receive(&mut self, wait: Option<Duration>, packet: &mut Vec<u8>) -> io::Result<bool> {
        let Some(message) = Datagram::receive(&self.socket, wait)? else { return Ok(false) };
        let (from, here) = (message.from, self.local);
        let ends =
            Ends { src: from.ip(), dst: here.ip(), src_port: from.port(), dst_port: here.port() };
        wrap(&ends, message.class, &message.bytes, packet);
        Ok(true)
    }
}

/// Replaces the contents of `packet` by a datagram with its IP and UDP headers.
///
/// # Panics
/// The payload is longer than a datagram can be, or the addresses are not of one family.
pub fn wrap(ends: &Ends, class: u8, payload: &[u8], packet: &mut Vec<u8>) {
    packet.clear();
    packet.resize(if ends.src.is_ipv4() { ipv4::HEADER } else { ipv6::HEADER }, 0);
    let write = |out: &mut Vec<u8>| {
        out.extend_from_slice(payload);
        Ok(())
    };
    udp::emit(ends, write, packet).expect("a datagram that came fits a datagram");
    write_header(ends.src, ends.dst, udp::PROTOCOL, class, packet);
}

/// A message from a socket.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// Its payload.
    pub bytes: Vec<u8>,
    /// Its sender.
    pub from: SocketAddr,
    /// Type of service, or traffic class.
    pub class: u8,
    /// Datagrams that the system dropped before this one because the socket's buffer was full, since the socket
    /// was made.
    pub overruns: u32,
}

impl Datagram {
    fn receive(socket: &Socket, wait: Option<Duration>) -> io::Result<Option<Self>> {
        if !is_readable(socket, wait)? {
            return Ok(None);
        }
        let mut bytes = vec![0; LONGEST];
        let mut control = cmsg_space!(i32, u8, u32);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::MSG_DONTWAIT;
        let received =
            recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags);
        let received = match received {
            Ok(received) => received,
            // An error for an earlier packet (host unreachable), or no packet after all.
            Err(nix::Error::ECONNREFUSED | nix::Error::EAGAIN | nix::Error::EINTR) => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let class = received.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::Ipv4Tos(class) => Some(class),
            ControlMessageOwned::Ipv6TClass(class) => Some(class as u8),
            _ => None,
        });
        let overruns = received.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::RxqOvfl(count) => Some(count),
            _ => None,
        });
        let from = received.address.and_then(|address| address_of(&address));
        let length = received.bytes;
        bytes.truncate(length);
        let Some(from) = from else { return Ok(None) };
        Ok(Some(Self { bytes, from, class: class.unwrap_or(0), overruns: overruns.unwrap_or(0) }))
    }
}

/// Waits until the file is readable, for this long or forever.
///
/// # Errors
/// System errors.
pub fn is_readable(file: &impl AsFd, wait: Option<Duration>) -> io::Result<bool> {
    let mut files = [PollFd::new(file.as_fd(), PollFlags::POLLIN)];
    let wait = wait.map(|wait| {
        let nanos = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
        TimeSpec::nanoseconds(nanos)
    });
    match ppoll(&mut files, wait, None) {
        Ok(count) => Ok(count > 0),
        Err(nix::Error::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn address_of(address: &SockaddrStorage) -> Option<SocketAddr> {
    let four =
        address.as_sockaddr_in().map(|four| SocketAddr::from(std::net::SocketAddrV4::from(*four)));
    four.or_else(|| address.as_sockaddr_in6().map(|six| std::net::SocketAddrV6::from(*six).into()))
}

const fn domain(address: IpAddr) -> Domain {
    if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 }
}

/// Destination address of an IP packet created here.
fn destination(packet: &[u8]) -> IpAddr {
    if packet[0] >> 4 == 4 {
        IpAddr::from(*packet[16..].first_chunk::<4>().expect("an IPv4 header"))
    } else {
        IpAddr::from(*packet[24..].first_chunk::<16>().expect("an IPv6 header"))
    }
}

/// Writes the IP header that a socket removed in front of its message.
fn write_header(src: IpAddr, dst: IpAddr, protocol: u8, class: u8, packet: &mut [u8]) {
    let header = Ip::new((src, dst), protocol, class).expect("a socket hears its own IP version");
    header.write(packet).expect("what came in one packet fits one");
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    /// Type of service and ECN reach a socket of both families, and the sender of its answer.
    #[test]
    fn a_socket_of_both_families_hears_the_class_of_both() {
        let mut both = UdpPort::bind((Ipv6Addr::UNSPECIFIED, 0).into()).expect("IPv6 is there");
        let port = both.local().port();
        let wait = Some(Duration::from_secs(10));
        for client in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            let mut client = UdpPort::bind((client, 0).into()).expect("loopback has ports");
            let to = SocketAddr::new(client.local().ip(), port);
            client.send_datagram(b"there", to, 0xb9).expect("it is there");
            let there = both.receive_datagram(wait).expect("no error").expect("it came");
            assert_eq!(there.class, 0xb9, "{to}");
            both.send_datagram(b"back", there.from, 0x22).expect("it is there");
            let back = client.receive_datagram(wait).expect("no error").expect("it came");
            assert_eq!((&back.bytes[..], back.class), (&b"back"[..], 0x22), "{to}");
        }
    }
}
