//! The kept scripts of the fuzz target, and how those called `genuine` are made.

use crate::build::*;
use crate::{hostile, links, tunnels};

#[test]
fn kept_scripts_are_harmless() {
    talkspurt_testing::fuzz::replay("capture", hostile::play);
}

/// `FUZZ_SEEDS=FOLDER` writes them.
#[test]
fn genuine_scripts_are_harmless() {
    let frames =
        links::frames().into_iter().map(|(link, frame)| (format!("link_{link}"), link, frame));
    let packets = tunnels::tunnels(&call())
        .into_iter()
        .map(|(name, packet)| (name.to_lowercase().replace([' ', '\''], "_"), 101, packet));
    let folder = std::env::var("FUZZ_SEEDS").ok();
    let save = |name: String, script: &[u8]| {
        hostile::play(script);
        if let Some(folder) = &folder {
            std::fs::write(std::path::Path::new(folder).join(format!("genuine_{name}")), script)
                .expect("a folder");
        }
    };
    for (number, (name, link, frame)) in frames.chain(packets).enumerate() {
        save(
            format!("{name}_{number}"),
            &[&(link as u16).to_be_bytes()[..], &[0, 0], &frame].concat(),
        );
    }
    for order in [u32::to_le_bytes, u32::to_be_bytes] as [Order; 2] {
        let end = if order(1)[0] == 1 { "little" } else { "big" };
        let frame = ethernet(0x0800, &call());
        for magic in [0xa1b2_c3d4, 0xa1b2_3c4d, 0xa1b2_cd34] {
            let file = pcap(magic, order, 1, &[frame.clone(), frame.clone()]);
            save(format!("pcap_{magic:x}_{end}"), &file);
        }
        let blocks = [
            section(order),
            interface(order, 0, &[]),
            stamped(order, 6, 5_000_000, &frame),
            stamped(order, 2, 5_020_000, &frame),
            simple(order, frame.len() as u32, &frame),
        ];
        save(format!("pcapng_{end}"), &blocks.concat());
    }
}
