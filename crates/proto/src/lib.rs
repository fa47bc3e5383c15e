//! Protocols as deterministic state machines without I/O.
//!
//! The path of a packet through this crate: the application's [`frame::Frame`] enters an
//! [`endpoint::Endpoint`] by `handle(now, Input::Frame)`, comes out of `poll(now)` as an
//! [`endpoint::Transmit`] whose body is a parsed packet, travels as a [`packet::Packet`] label
//! through queues that cannot open it, enters the far endpoint by `handle(now, Input::Packet)`,
//! and comes out again as `Output::Deliver`. Read `endpoint`, then `udp`, then the rest.
//!
//! The types that drivers and extensions need are also at the root of the crate.
//!
//! This crate uses no sockets, clocks or files; time is an argument. `docs/adding-a-transport.md` adds a
//! protocol step by step.

// Lets the files in `docs/adding-a-*.md` use the same paths here and in the tests that compile them.
extern crate self as talkspurt_proto;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-a-transport.md")]
mod adding_a_transport {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-a-controller.md")]
mod adding_a_controller {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-a-media-controller.md")]
mod adding_a_media_controller {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-a-metric.md")]
mod adding_a_metric {}

/// Defines a trait, and implements it for an enum whose variants hold implementations: `dispatch` is a macro
/// that evaluates an expression with what any variant holds. Receivers are written in full, since a macro
/// cannot make `self`.
macro_rules! dispatched {
    (
        $(#[$about:meta])*
        pub trait $trait:ident for $enum:ident by $dispatch:ident {$(
            $(#[doc = $doc:literal])*
            $(#[inline $($hint:tt)?])?
            fn $name:ident $(<$probe:ident: $bound:ident>)? (
                $of:ident: $own:ty $(, $argument:ident: $type:ty)* $(,)?
            ) $(-> $result:ty)?;
        )*}
        provided {$(
            $(#[doc = $doc2:literal])*
            $(#[inline $($hint2:tt)?])?
            fn $name2:ident (
                $of2:ident: $own2:ty $(, $argument2:ident: $type2:ty)* $(,)?
            ) $(-> $result2:ty)? $body:block
        )*}
    ) => {
        $(#[$about])*
        #[allow(clippy::needless_arbitrary_self_type, reason = "a macro cannot make `self`")]
        pub trait $trait {
            $($(#[doc = $doc])* fn $name $(<$probe: $bound>)? (
                $of: $own $(, $argument: $type)*
            ) $(-> $result)?;)*
            $(
                $(#[doc = $doc2])*
                #[allow(unused_variables, reason = "a default may ignore its arguments")]
                fn $name2($of2: $own2 $(, $argument2: $type2)*) $(-> $result2)? $body
            )*
        }

        #[allow(clippy::needless_arbitrary_self_type, reason = "a macro cannot make `self`")]
        impl $trait for $enum {
            $($(#[inline $($hint)?])? fn $name $(<$probe: $bound>)? (
                $of: $own $(, $argument: $type)*
            ) $(-> $result)? {
                $dispatch!($of, held => held.$name($($argument),*))
            })*
            $($(#[inline $($hint2)?])? fn $name2($of2: $own2 $(, $argument2: $type2)*) $(-> $result2)? {
                $dispatch!($of2, held => held.$name2($($argument2),*))
            })*
        }
    };
}

pub mod body;
pub mod congestion;
pub mod dccp;
pub mod endpoint;
pub mod external;
pub mod frame;
pub mod gauge;
pub mod math;
pub mod media;
pub mod metric;
pub mod octets;
pub mod packet;
pub mod prefetch;
pub mod probe;
pub mod profile;
pub mod rate;
pub mod rfc4571;
pub mod rng;
pub mod rtcp;
pub mod rtp;
pub mod rtt;
pub mod sctp;
pub mod seq;
pub mod tcp;
pub mod tfrc;
pub mod time;
pub mod transport;
pub mod udp;
pub mod units;
pub mod validate;
pub mod wire;

// What drivers of endpoints, and authors of transports, controllers and stacks, need.
pub use congestion::{Ack, Congestion, CongestionControl, RateSample, Start};
pub use endpoint::{Arrival, Endpoint, Event, Input, Listener, Output, PathNews, Transmit};
pub use frame::Frame;
pub use gauge::{EndpointNote, EndpointProbe, Gauge, RxError};
pub use packet::{Damage, Ecn, PathId, Payload};
pub use rng::Rng;
pub use rtt::RttEstimator;
pub use time::{Duration, Instant};
pub use transport::{Layers, PacketFormat, Rung, Setup, Side, TransportConfig};
pub use units::{Rate, Size};
pub use validate::{ConfigError, Validate};
