//! The MTU of the route to the other end, as the system knows it: of the interface, of the route, or from ICMP.
//! Packets directly over IP are not fragmented, and the system refuses longer ones.

use std::net::{IpAddr, UdpSocket};

use nix::sys::socket::{getsockopt, sockopt};
// The macro needs these names.
use nix::{getsockopt_impl, libc, sockopt_impl};

sockopt_impl!(
    /// The MTU of the route of a connected socket of IPv6 (RFC 3542 §11.3 has it as `IPV6_PATHMTU`).
    Ipv6Mtu,
    GetOnly,
    libc::IPPROTO_IPV6,
    libc::IPV6_MTU,
    libc::c_int
);

/// MTU in bytes of the route between these addresses, if it is known. Sends nothing.
pub(crate) fn mtu(local: IpAddr, remote: IpAddr) -> Option<u32> {
    // Any port: that of the service "discard".
    const PORT: u16 = 9;
    let (local, remote) = (local.to_canonical(), remote.to_canonical());
    let socket = UdpSocket::bind((local, 0)).ok()?;
    socket.connect((remote, PORT)).ok()?;
    let found = match remote {
        IpAddr::V4(_) => getsockopt(&socket, sockopt::IpMtu),
        IpAddr::V6(_) => getsockopt(&socket, Ipv6Mtu),
    };
    u32::try_from(found.ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn the_mtu_of_loopback_is_that_of_its_interface() {
        let text = std::fs::read_to_string("/sys/class/net/lo/mtu").expect("Linux has it");
        // No packet of IPv4 is longer than that.
        let known = text.trim().parse::<u32>().ok().map(|mtu| mtu.min(65_535));
        for address in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            assert_eq!(mtu(address, address).map(|mtu| mtu.min(65_535)), known, "{address}");
        }
        let mapped = IpAddr::from(Ipv4Addr::LOCALHOST.to_ipv6_mapped());
        assert_eq!(mtu(mapped, mapped), known);
    }
}
