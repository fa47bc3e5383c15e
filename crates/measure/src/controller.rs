//! Congestion controllers of the kernel's TCP, by name.

use std::fmt;

use serde::{Deserialize, Serialize};
use socket2::{Domain, Protocol, Socket, Type};

use crate::Failure;

/// Longest name: `TCP_CA_NAME_MAX` less the final zero.
const LONGEST: usize = 15;

/// The name of a congestion controller as a kernel has it, such as `cubic`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Controller {
    bytes: [u8; LONGEST],
    length: u8,
}

impl Controller {
    /// A controller by its name.
    ///
    /// # Errors
    /// No controller can have this name.
    pub fn named(name: &str) -> Result<Self, Failure> {
        let plain = |it: u8| it.is_ascii_alphanumeric() || b"-_".contains(&it);
        if name.is_empty() || name.len() > LONGEST || !name.bytes().all(plain) {
            let words = "name of a congestion controller: expected up to 15 letters, digits, - _";
            return Err(Failure::Input(words.to_owned()));
        }
        let mut bytes = [0; LONGEST];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Ok(Self { bytes, length: name.len() as u8 })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        let name = std::str::from_utf8(&self.bytes[..usize::from(self.length)]);
        name.expect("it was checked")
    }

    /// Whether this end may use it.
    ///
    /// # Errors
    /// It may not, in words that list what there is.
    pub fn check(&self) -> Result<(), Failure> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP));
        let set = socket.and_then(|socket| socket.set_tcp_congestion(self.name().as_bytes()));
        let Err(error) = set else { return Ok(()) };
        let listed = |what: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{what}"));
            text.map_or_else(|_| "unknown".to_owned(), |text| text.trim().replace(' ', ", "))
        };
        let why = match nix::Error::from_raw(error.raw_os_error().unwrap_or(0)) {
            nix::Error::ENOENT => {
                let known = listed("tcp_available_congestion_control");
                format!("the kernel has no congestion controller {self}; it has {known}")
            }
            nix::Error::EPERM => {
                let allowed = listed("tcp_allowed_congestion_control");
                format!(
                    "congestion controller {self} needs the privilege CAP_NET_ADMIN, or its name in the \
                     sysctl net.ipv4.tcp_allowed_congestion_control, which has {allowed}"
                )
            }
            _ => format!("congestion controller {self}: {error}"),
        };
        Err(Failure::System(why))
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl TryFrom<String> for Controller {
    type Error = Failure;

    fn try_from(name: String) -> Result<Self, Failure> {
        Self::named(&name)
    }
}

impl From<Controller> for String {
    fn from(controller: Controller) -> Self {
        controller.name().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_kernel_has_reno_and_not_another() {
        // Linux builds Reno in, and permits it to everybody (tcp_cong.c).
        assert_eq!(Controller::named("reno").and_then(|it| it.check()), Ok(()));
        let none = Controller::named("no-such").and_then(|it| it.check());
        let why = none.expect_err("no kernel has it").to_string();
        assert!(
            why.starts_with("the kernel has no congestion controller no-such; it has"),
            "{why}"
        );
        assert!(why.contains("reno"), "{why}");
    }

    proptest! {
        /// A name that a message holds is a name that the sockets can be given, or an error.
        #[test]
        fn names_come_back_or_are_refused(name in ".{0,20}") {
            let bytes = postcard::to_stdvec(&name).expect("a text has a form");
            match postcard::from_bytes::<Controller>(&bytes) {
                Ok(controller) => {
                    prop_assert_eq!(controller.name(), &name);
                    prop_assert_eq!(postcard::to_stdvec(&controller), Ok(bytes));
                }
                Err(_) => prop_assert!(Controller::named(&name).is_err()),
            }
        }
    }
}
