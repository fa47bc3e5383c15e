//! Files, links, tunnels and media, built byte by byte; and bytes that nobody would send.

mod build;
mod files;
mod hostile;
mod links;
mod media;
mod seeds;
mod tunnels;
