//! Has qlog files read by another's reader: how many of their events it reads, and which of them it
//! knows. Ends with status 1 when one is left out or out of order.
//!
//! ```sh
//! talkspurt export runs/first-call --to qlog
//! cargo run --manifest-path validation/qlog/Cargo.toml -- runs/first-call.qlog/*.sqlog
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::Cursor;
use std::process::ExitCode;

use qlog::events::EventData;
use qlog::reader::{Event, QlogSeqReader};

fn main() -> ExitCode {
    let mut whole = true;
    for path in std::env::args().skip(1) {
        match read(&path) {
            Ok(told) => println!("{path}: {told}"),
            Err(error) => {
                println!("{path}: {error}");
                whole = false;
            }
        }
    }
    if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How many events of each name were read, those the reader has a type for first.
fn read(path: &str) -> Result<String, Box<dyn Error>> {
    let bytes = fs::read(path)?;
    let records = bytes.iter().filter(|byte| **byte == 0x1e).count();
    let reader = QlogSeqReader::new(Box::new(Cursor::new(bytes)))?;
    let version = reader.qlog.qlog_version.clone();
    let (mut known, mut others) = (BTreeMap::new(), BTreeMap::new());
    let (mut count, mut last) = (0, f32::NEG_INFINITY);
    for event in reader {
        let (kinds, name, time) = match event {
            Event::Qlog(event) => (&mut known, name_of(&event.data), event.time),
            Event::Json(event) => (&mut others, event.name, event.time),
        };
        *kinds.entry(name).or_insert(0) += 1;
        count += 1;
        if time < last {
            return Err(format!("event {count} is earlier than the one before").into());
        }
        last = time;
    }
    if count + 1 != records {
        return Err(format!("{count} of {} events were read", records - 1).into());
    }
    Ok(format!("version {version}, {count} events; known {known:?}, others {others:?}"))
}

fn name_of(data: &EventData) -> String {
    match data {
        EventData::PacketSent(_) => "packet_sent".to_owned(),
        EventData::PacketReceived(_) => "packet_received".to_owned(),
        EventData::MetricsUpdated(_) => "metrics_updated".to_owned(),
        other => format!("{other:?}"),
    }
}
