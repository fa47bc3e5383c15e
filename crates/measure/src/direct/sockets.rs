//! Raw sockets for DCCP and SCTP. Opening them needs the privilege `CAP_NET_RAW`: a server, which gives up its
//! privileges, opens those of all its sessions before. Its descriptors can send any IP packet from any address
//! and hear these two protocols; the privilege would also let it hear all others and see every interface.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use socket2::{SockFilter, Socket};
use talkspurt_live::{Port as _, RawIp};
use talkspurt_proto::time::Duration;

use crate::Failure;
use crate::plan::Plan;
use crate::protocol::Protocol;

/// Buffer of a socket: a second at 16 Mbit/s, so that a busy machine loses no packets here.
pub(crate) const SOCKET_BUFFER: usize = 2 << 20;

/// Most sockets of a server by protocol and IP version: descriptors are few.
const MOST: usize = 32;
/// Instructions of classic BPF: load four bytes at k, load a byte's low half times four into X, load two bytes
/// at X + k, jump if equal, return.
const LOAD: u16 = 0x20;
const LOAD_HEADER: u16 = 0xb1;
const LOAD_AT_X: u16 = 0x48;
const JUMP_EQUAL: u16 = 0x15;
const LOAD_X: u16 = 0x01;
const RETURN: u16 = 0x06;
/// Where the IP header begins, as k (`SKF_NET_OFF` of Linux).
const IP_HEADER: u32 = (-0x10_0000_i32) as u32;
/// The BPF program that passes no packet.
const NOTHING: [SockFilter; 1] = [SockFilter::new(RETURN, 0, 0, 0)];

/// An unbound raw socket whose filter passes nothing yet.
pub(crate) struct UnboundSocket {
    protocol: Protocol,
    ipv6: bool,
    socket: Socket,
    /// Overruns that were seen in earlier sessions. Others know by it that the socket is in use.
    overruns: Arc<AtomicU32>,
}

impl UnboundSocket {
    fn open(protocol: Protocol, ipv6: bool) -> Result<Self, Failure> {
        let opened = || {
            let socket = RawIp::unbound(protocol.number(), ipv6)?;
            socket.attach_filter(&NOTHING)?;
            // The system gives what it permits.
            let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
            Ok(socket)
        };
        let socket = opened().map_err(|error: io::Error| {
            let name = protocol.name();
            Failure::System(match error.kind() {
                io::ErrorKind::PermissionDenied => format!(
                    "{name} directly over IP needs the privilege CAP_NET_RAW, which root has"
                ),
                _ => format!("no raw socket for {name}: {error}"),
            })
        })?;
        Ok(Self { protocol, ipv6, socket, overruns: Arc::default() })
    }

    /// The same socket in another descriptor.
    fn share(&self) -> io::Result<Self> {
        let Self { protocol, ipv6, ref socket, ref overruns } = *self;
        Ok(Self { protocol, ipv6, socket: socket.try_clone()?, overruns: Arc::clone(overruns) })
    }

    /// Receives what arrives at this address from or to the server's port: all other packets of the
    /// protocol on this machine do not wake us.
    pub(super) fn bind(
        self,
        local: SocketAddr,
        server: u16,
        client: bool,
    ) -> io::Result<BoundSocket> {
        let Self { protocol, ipv6, socket, overruns } = self;
        let mut raw = RawIp::on(socket, protocol.number(), local)?;
        // What an earlier session left; the filter still lets nothing pass.
        let mut packet = Vec::new();
        while raw.receive(Some(Duration::ZERO), &mut packet)? {}
        let before = overruns.load(Ordering::Relaxed).max(raw.overruns());
        overruns.store(before, Ordering::Relaxed);
        let filter = Filter { port: server, is_source: client, ipv6 };
        raw.socket().attach_filter(&filter.program(None))?;
        Ok(BoundSocket { protocol, raw, filter, overruns, before })
    }
}

/// The packets that a socket receives: those from or to a port.
#[derive(Clone, Copy)]
struct Filter {
    port: u16,
    is_source: bool,
    /// The system gives the program packets of IPv4 with their IP header, and of IPv6 without.
    ipv6: bool,
}

impl Filter {
    /// The BPF program that passes these packets, from one address or from all.
    fn program(self, from: Option<IpAddr>) -> Vec<SockFilter> {
        let (first, address) = match from {
            None => (0, Vec::new()),
            Some(IpAddr::V4(four)) => (12, four.octets().to_vec()),
            Some(IpAddr::V6(six)) => (8, six.octets().to_vec()),
        };
        let words =
            address.chunks_exact(4).map(|it| u32::from_be_bytes([it[0], it[1], it[2], it[3]]));
        let mut program = Vec::new();
        for (at, word) in (first..).step_by(4).zip(words) {
            program.push((LOAD, IP_HEADER.wrapping_add(at)));
            program.push((JUMP_EQUAL, word));
        }
        program.push(if self.ipv6 { (LOAD_X, 0) } else { (LOAD_HEADER, 0) });
        program.push((LOAD_AT_X, if self.is_source { 0 } else { 2 }));
        program.push((JUMP_EQUAL, u32::from(self.port)));
        program.extend([(RETURN, u32::MAX), (RETURN, 0)]);
        let last = program.len() - 1;
        let instruction = |(at, (code, k)): (usize, (u16, u32))| {
            // What is not equal goes to the last one.
            let other = if code == JUMP_EQUAL { last - at - 1 } else { 0 };
            SockFilter::new(code, 0, other as u8, k)
        };
        program.into_iter().enumerate().map(instruction).collect()
    }
}

/// A raw socket of a session.
pub(super) struct BoundSocket {
    pub(super) protocol: Protocol,
    pub(super) raw: RawIp,
    filter: Filter,
    overruns: Arc<AtomicU32>,
    before: u32,
}

impl BoundSocket {
    /// Receives packets from this address only.
    pub(super) fn hear(&self, from: IpAddr) {
        // Without it, packets from elsewhere cost time, and are not opened.
        let _ = self.raw.socket().attach_filter(&self.filter.program(Some(from)));
    }

    /// Overruns in this session.
    pub(super) fn overruns(&self) -> u32 {
        self.raw.overruns().saturating_sub(self.before)
    }
}

impl Drop for BoundSocket {
    fn drop(&mut self) {
        self.overruns.fetch_max(self.raw.overruns(), Ordering::Relaxed);
        // Nothing is lost if it goes on to hear: it is emptied before it is used again.
        let _ = self.raw.socket().attach_filter(&NOTHING);
    }
}

/// The sockets that this end needs for a plan.
///
/// # Errors
/// What is missing here.
pub(crate) fn open(plan: &Plan) -> Result<Vec<UnboundSocket>, Failure> {
    plan.direct()
        .into_iter()
        .map(|protocol| {
            check_kernel(protocol)?;
            UnboundSocket::open(protocol, plan.ipv6)
        })
        .collect()
}

/// Whether this end can use a protocol directly over IP.
///
/// # Errors
/// What is missing here.
pub(crate) fn check(protocol: Protocol) -> Result<(), Failure> {
    check_kernel(protocol)?;
    UnboundSocket::open(protocol, false).map(drop)
}

/// A kernel that speaks the protocol would answer packets of connections that it does not know.
fn check_kernel(protocol: Protocol) -> Result<(), Failure> {
    let known = fs::read_to_string("/proc/net/protocols").unwrap_or_default();
    match speaks(&known, protocol) {
        false => Ok(()),
        true => Err(Failure::System(format!(
            "the kernel of this machine speaks {name} itself and would answer with {answer}: unload its \
             module {module}",
            name = protocol.name(),
            answer = match protocol {
                Protocol::Dccp => "Resets",
                Protocol::Sctp => "ABORTs",
            },
            module = protocol.name().to_lowercase(),
        ))),
    }
}

/// Whether `/proc/net/protocols` has a protocol, for IPv4 or IPv6.
fn speaks(known: &str, protocol: Protocol) -> bool {
    let names = known.lines().filter_map(|line| line.split_whitespace().next());
    let name = protocol.name();
    names.into_iter().any(|it| it.strip_prefix(name).is_some_and(|it| ["", "v6"].contains(&it)))
}

/// The raw sockets of a server, for sessions one after another; none by default.
#[derive(Default)]
pub(crate) struct Pool(Mutex<Vec<Kind>>);

/// The sockets of a protocol and IP version.
struct Kind {
    protocol: Protocol,
    ipv6: bool,
    /// Or why there are none.
    sockets: Result<Vec<UnboundSocket>, Failure>,
}

impl Pool {
    /// As many sockets of each kind as there can be sessions, as far as the system gives them.
    pub(crate) fn open(listen: IpAddr, sessions: usize) -> Self {
        let versions = match listen.to_canonical() {
            IpAddr::V4(_) => &[false][..],
            IpAddr::V6(six) if six.is_unspecified() => &[false, true],
            IpAddr::V6(_) => &[true],
        };
        let kinds = Protocol::ALL.into_iter().flat_map(|protocol| {
            versions.iter().map(move |ipv6| {
                let sockets = (0..sessions.min(MOST)).map(|_| UnboundSocket::open(protocol, *ipv6));
                Kind { protocol, ipv6: *ipv6, sockets: sockets.collect() }
            })
        });
        Self(Mutex::new(kinds.collect()))
    }

    /// Why there are no sockets of some kind.
    pub(crate) fn missing(&self) -> Option<Failure> {
        let kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kinds.iter().find_map(|kind| kind.sockets.as_ref().err().cloned())
    }

    /// The sockets of a plan for a session on this address.
    ///
    /// # Errors
    /// What is missing here.
    pub(crate) fn take(&self, plan: &Plan, local: IpAddr) -> Result<Vec<UnboundSocket>, Failure> {
        let kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |protocol: Protocol| {
            if kinds.is_empty() {
                let name = protocol.name();
                return Err(Failure::System(format!(
                    "the server was started without --raw-ip, which {name} directly over IP needs"
                )));
            }
            check_kernel(protocol)?;
            let local = local.to_canonical();
            let name = protocol.name();
            // A socket that was bound to such an address stays on its interface.
            if matches!(local, IpAddr::V6(six) if six.is_unicast_link_local()) {
                return Err(Failure::System(format!(
                    "{name} directly over IP is not served at link-local addresses"
                )));
            }
            let mut kinds = kinds.iter();
            let kind = kinds.find(|it| it.protocol == protocol && it.ipv6 == local.is_ipv6());
            let sockets = match kind.map(|kind| &kind.sockets) {
                Some(Ok(sockets)) => &sockets[..],
                Some(Err(why)) => {
                    return Err(Failure::System(format!("the server has no raw sockets: {why}")));
                }
                None => &[],
            };
            let free = sockets.iter().find(|it| Arc::strong_count(&it.overruns) == 1);
            let free = free
                .ok_or_else(|| Failure::System(format!("all raw sockets for {name} are in use")))?;
            free.share().map_err(|error| Failure::System(format!("no descriptor: {error}")))
        };
        plan.direct().into_iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_speaks_the_protocol_is_known() {
        let table = "protocol  size sockets  memory\nSCTPv6    1 0\nUDPLITEv6 1 0\nTCP 2 3\n";
        assert!(speaks(table, Protocol::Sctp) && !speaks(table, Protocol::Dccp));
        assert!(speaks("DCCP 1 0", Protocol::Dccp) && !speaks("DCCPX 1 0", Protocol::Dccp));
    }
}
