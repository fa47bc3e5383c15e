//! The engine and the peers tested from outside: against closed forms, against a simulator with two
//! events per hop written here, against conservation and common random numbers, and by audio. One
//! module per topic; each builds its worlds from a few lines of scenario through [`support`].

mod association;
mod bbr;
mod buckets;
mod cancel;
mod capacities;
mod cell;
mod clocks;
mod closed_forms;
mod conservation;
mod determinism;
mod digest;
mod dualpi2;
mod external;
mod late_service;
mod lone_link;
mod media;
mod outages;
mod path_mtu;
mod paths;
mod peers;
mod queueing;
mod queues;
mod sctp;
mod speech;
mod support;
mod tcp;
mod wakes;
