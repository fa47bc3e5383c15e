//! Frames of video in the output of ffprobe, with `-show_packets` or `-show_frames`: its writers `default`,
//! `json`, `csv` and `compact`, complete or restricted by `-show_entries`.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::table::{Lines, decimal};

/// What ffprobe says of a packet or frame.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Entry {
    /// Number of its line; 0 if unknown.
    #[serde(skip)]
    line: usize,
    /// `packet` or `frame`.
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(alias = "codec_type")]
    media_type: Option<String>,
    stream_index: Option<Value>,
    #[serde(alias = "pkt_size")]
    size: Option<String>,
    dts_time: Option<String>,
    pts_time: Option<String>,
    best_effort_timestamp_time: Option<String>,
    pkt_pts_time: Option<String>,
    pkt_dts_time: Option<String>,
}

/// A time in nanoseconds, a size in bytes, and the number of its line.
pub(super) type Sized = (Option<i64>, u64, usize);

#[derive(Deserialize)]
struct Document {
    packets: Option<Vec<Entry>>,
    frames: Option<Vec<Entry>>,
    packets_and_frames: Option<Vec<Entry>>,
}

/// The times and sizes of the video's packets or frames; `None` if this is not ffprobe's output.
pub(super) fn read(text: &str) -> Option<Result<Vec<Sized>, String>> {
    let mut text = text.trim_start_matches('\u{feff}').trim_start();
    while text.starts_with('#') {
        text = text.split_once('\n').map_or("", |(_, rest)| rest.trim_start());
    }
    if text.starts_with('{') {
        let read = serde_json::from_str(text).map_err(|fault| fault.to_string());
        let entries = read.and_then(|Document { packets, frames, packets_and_frames }| {
            let lists = [packets, packets_and_frames, frames];
            lists.into_iter().flatten().next().ok_or_else(|| "it has neither".to_owned())
        });
        let fault = |fault| format!("is not ffprobe's JSON of frames or packets: {fault}");
        return Some(entries.map_err(fault).and_then(sizes));
    }
    let head = text.lines().next().unwrap_or_default().trim();
    let begins = |line: &str| matches!(line.trim(), "[PACKET]" | "[FRAME]");
    if head.starts_with('[') && text.lines().any(begins) {
        return Some(sections(text).and_then(sizes));
    }
    // Numbers alone are a list of sizes.
    let mut cells = head.split([',', '|']);
    let is_record = matches!(cells.next(), Some("packet" | "frame"))
        && cells.next().is_some_and(|cell| cell.parse::<f64>().is_err());
    is_record.then(|| records(text).and_then(sizes))
}

fn entry(line: usize, mut pairs: Map<String, Value>) -> Result<Entry, String> {
    // Deserialisation refuses two names of one field.
    for (first, second) in [("size", "pkt_size"), ("codec_type", "media_type")] {
        if pairs.contains_key(first) {
            pairs.remove(second);
        }
    }
    let entry: Entry = serde_json::from_value(Value::Object(pairs))
        .map_err(|fault| format!("line {line}: {fault}"))?;
    Ok(Entry { line, ..entry })
}

/// Writer `default`: sections of `key=value`. What a section contains in sections of its own follows its
/// fields, so that the first of equal keys is its own.
fn sections(text: &str) -> Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    // Other sections follow, with `-show_format` or `-show_streams`.
    let mut open: Option<(usize, Map<String, Value>)> = None;
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        match (line, &mut open) {
            ("[PACKET]" | "[FRAME]", _) => {
                let kind = if line == "[PACKET]" { "packet" } else { "frame" };
                open = Some((number, Map::from_iter([("type".to_owned(), kind.into())])));
            }
            ("[/PACKET]" | "[/FRAME]", _) => {
                if let Some((begin, pairs)) = open.take() {
                    entries.push(entry(begin, pairs)?);
                }
            }
            (_, Some((_, pairs))) => {
                if let Some((key, value)) = line.split_once('=') {
                    pairs.entry(key).or_insert_with(|| value.into());
                }
            }
            (_, None) => {}
        }
    }
    match open {
        None => Ok(entries),
        Some((begin, _)) => Err(format!("ends within the entry of line {begin}")),
    }
}

/// Writers `csv` and `compact`: an entry a line, with or without the names of its fields.
fn records(text: &str) -> Result<Vec<Entry>, String> {
    let lines = Lines::of(text).filter(|line| matches!(&*line.cells[0], "packet" | "frame"));
    let of = |line: crate::table::Line| {
        let mut pairs = Map::new();
        for (key, value) in line.cells.iter().filter_map(|cell| cell.split_once('=')) {
            pairs.entry(key).or_insert_with(|| value.into());
        }
        if pairs.is_empty() {
            return nameless(line.number, &line.cells);
        }
        pairs.insert("type".to_owned(), line.cells[0].clone().into());
        entry(line.number, pairs)
    };
    lines.map(of).collect()
}

/// A complete record without names. Fields differ between versions of ffprobe, but the first ones and those
/// beside the first word do not: `size`, `pos` and `flags` of packets, `pkt_size`, `width`, `height` and
/// `pix_fmt` of frames.
fn nameless(line: usize, cells: &[String]) -> Result<Entry, String> {
    let unknown =
        || format!("line {line}: the fields have no names; let ffprobe write them: -of csv=nk=0");
    let is_number = |cell: &String| cell == "N/A" || cell.parse::<f64>().is_ok();
    let (packet, words) = (cells[0] == "packet", 3);
    if !matches!(cells.get(1).map(String::as_str), Some("video" | "audio" | "subtitle" | "data")) {
        return Err(unknown());
    }
    let word = words + cells.iter().skip(words).position(|cell| !is_number(cell)).unwrap_or(0);
    let (back, times) = if packet { (2, [4, 6]) } else { (3, [5, 5]) };
    // Between the time and the size there are the duration and the position.
    if word < times[1] + 3 + back {
        // An audio frame ends elsewhere, and is not read.
        let other = Entry { line, media_type: Some("other".to_owned()), ..Entry::default() };
        return if cells[1] == "video" { Err(unknown()) } else { Ok(other) };
    }
    Ok(Entry {
        line,
        kind: Some(cells[0].clone()),
        media_type: Some(cells[1].clone()),
        stream_index: Some(cells[2].clone().into()),
        size: Some(cells[word - back].clone()),
        pts_time: Some(cells[times[0]].clone()),
        dts_time: packet.then(|| cells[times[1]].clone()),
        ..Entry::default()
    })
}

fn sizes(mut entries: Vec<Entry>) -> Result<Vec<Sized>, String> {
    let is_packet = |entry: &Entry| entry.kind.as_deref() == Some("packet");
    if entries.iter().any(is_packet) {
        // Each picture is a packet and a frame.
        entries.retain(is_packet);
    }
    entries.retain(|entry| entry.media_type.as_deref().is_none_or(|kind| kind == "video"));
    let plain = |stream: &Value| stream.to_string().trim_matches('"').to_owned();
    let mut streams: Vec<_> = entries.iter().filter_map(|it| it.stream_index.as_ref()).collect();
    streams.dedup();
    if let [first, other, ..] = streams[..] {
        let (first, other) = (plain(first), plain(other));
        return Err(format!(
            "holds the video streams {first} and {other}; let ffprobe write one: -select_streams v:0"
        ));
    }
    // Decoding times are those of sending; frames have only times of presentation.
    type Field = fn(&Entry) -> &Option<String>;
    const TIMES: [Field; 5] = [
        |entry| &entry.dts_time,
        |entry| &entry.pts_time,
        |entry| &entry.best_effort_timestamp_time,
        |entry| &entry.pkt_pts_time,
        |entry| &entry.pkt_dts_time,
    ];
    let time = |entry: &Entry, field: Field| decimal(field(entry).as_deref()?, 9);
    let complete =
        TIMES.iter().find(|field| entries.iter().all(|entry| time(entry, **field).is_some()));
    if complete.is_none()
        && let Some(lacks) = entries.iter().find(|it| TIMES.iter().all(|f| time(it, *f).is_none()))
        && entries.iter().any(|it| TIMES.iter().any(|f| time(it, *f).is_some()))
    {
        return Err(format!("line {}: has no time, unlike others", lacks.line));
    }
    let mut times: Vec<_> =
        entries.iter().map(|entry| complete.and_then(|field| time(entry, *field))).collect();
    if entries.iter().any(|entry| time(entry, TIMES[0]).is_none()) {
        // ffprobe may not know the first decoding times of a file with B pictures. In decoding order, those of
        // presentation in their order take their place.
        times.sort_unstable();
    }
    let of = |(entry, at): (&Entry, Option<i64>)| {
        let size = entry.size.as_deref().and_then(|size| size.parse().ok());
        let size = size.ok_or_else(|| match entry.line {
            0 => "has an entry without size".to_owned(),
            line => format!("line {line}: has no size"),
        })?;
        Ok((at, size, entry.line))
    };
    entries.iter().zip(times).map(of).collect()
}

#[cfg(test)]
mod tests {
    use talkspurt_proto::time::Duration;

    use crate::source::FrameTrace;

    /// What ffprobe 5.1.9 says of six pictures with two B pictures between others, and of the sound beside
    /// them: `ffmpeg -f lavfi -i testsrc2=size=160x120:rate=25 -f lavfi -i sine -t 0.24 -c:v mpeg4 -bf 2 -g 12
    /// -c:a aac`.
    macro_rules! output {
        ($name:literal) => {
            include_str!(concat!("../../tests/ffprobe/", $name))
        };
    }

    fn read(text: &str) -> Result<Vec<(u64, u64)>, String> {
        let trace = FrameTrace::parse(text, Duration::from_millis(40))?;
        Ok(trace.frames.iter().map(|it| (it.at.as_nanos() / 1_000_000, it.size)).collect())
    }

    const PACKETS: [(u64, u64); 6] =
        [(0, 6253), (40, 4833), (80, 2029), (120, 1481), (160, 4403), (200, 1951)];
    const FRAMES: [(u64, u64); 6] =
        [(0, 6253), (40, 2029), (80, 1481), (120, 4833), (160, 1951), (200, 4403)];

    /// The values are those of `-show_entries packet=dts_time,size` and `frame=pts_time,pkt_size`.
    #[test]
    fn every_writer_says_the_same() {
        let names = output!("packets-compact.txt").replace('|', ",");
        for text in [
            output!("packets.txt"),
            output!("packets.csv"),
            output!("packets-compact.txt"),
            output!("packets.json"),
            &names,
        ] {
            assert_eq!(read(text).as_deref(), Ok(&PACKETS[..]), "{}", &text[..60]);
        }
        for text in [
            output!("frames.txt"),
            output!("frames.csv"),
            output!("frames-compact.txt"),
            output!("frames.json"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(&FRAMES[..]), "{}", &text[..60]);
        }
        // Sizes alone, as `-show_entries packet=size -of csv` and `-of default=nw=1` write them.
        let sizes = |before: &str| -> String {
            PACKETS.iter().map(|(_, size)| format!("{before}{size}\n")).collect()
        };
        for before in ["", "packet,", "size="] {
            assert_eq!(read(&sizes(before)).as_deref(), Ok(&PACKETS[..]), "{before}");
        }
    }

    /// What else ffprobe writes beside packets.
    #[test]
    fn pictures_count_once_and_other_sections_do_not() {
        let packets = output!("packets.txt");
        let both = format!("{packets}{}", output!("frames.txt"));
        let format = "[FORMAT]\nfilename=a.mp4\nsize=4711\nduration=0.24\n[/FORMAT]\n";
        for text in [&both, &format!("{packets}{format}"), &format!("{format}{packets}")] {
            assert_eq!(read(text).as_deref(), Ok(&PACKETS[..]), "{}", &text[..60]);
        }
        let list = |kind: &str| {
            let entry = |(ms, size): &(u64, u64)| {
                format!(
                    r#"{{"type":"{kind}","dts_time":"{:.3}","size":"{size}"}}"#,
                    *ms as f64 / 1e3
                )
            };
            PACKETS.iter().map(entry).collect::<Vec<_>>().join(",")
        };
        let (packets, frames) = (list("packet"), list("frame"));
        for text in [
            format!(r#"{{"packets_and_frames":[{packets},{frames}],"format":{{}}}}"#),
            format!(r#"{{"frames":[{frames}],"packets":[{packets}]}}"#),
        ] {
            assert_eq!(read(&text).as_deref(), Ok(&PACKETS[..]), "{text}");
        }
    }

    /// ffprobe knows no decoding times of the first packets of some files with B pictures.
    #[test]
    fn times_of_presentation_are_put_in_order() {
        let packet = |pts: &str, dts: &str, size: u32| {
            format!("[PACKET]\npts_time={pts}\ndts_time={dts}\nsize={size}\n[/PACKET]\n")
        };
        let text =
            [("0.00", "N/A", 9), ("0.12", "0.00", 8), ("0.04", "0.04", 7), ("0.08", "0.08", 6)]
                .map(|(pts, dts, size)| packet(pts, dts, size))
                .concat();
        assert_eq!(read(&text), Ok(vec![(0, 9), (40, 8), (80, 7), (120, 6)]));
        let back = packet("0.0", "0.4", 9) + &packet("0.1", "0.2", 9);
        assert!(read(&back).expect_err("decoding times").contains("goes back in time"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let of = |text: &str| read(text).expect_err("wrong");
        assert_eq!(
            of("packet,video,0,0.04,6253\n"),
            "line 1: the fields have no names; let ffprobe write them: -of csv=nk=0"
        );
        assert_eq!(of("[PACKET]\nsize=9\n"), "ends within the entry of line 1");
        assert_eq!(of("[PACKET]\npts_time=0.0\n[/PACKET]\n"), "line 1: has no size");
        let timeless = "[PACKET]\npts_time=0.0\nsize=9\n[/PACKET]\n[PACKET]\npts_time=N/A\nsize=9\n[/PACKET]\n";
        assert_eq!(of(timeless), "line 5: has no time, unlike others");
        let other = output!("packets.txt").replacen("stream_index=0", "stream_index=2", 1);
        assert_eq!(
            of(&other),
            "holds the video streams 2 and 0; let ffprobe write one: -select_streams v:0"
        );
        assert!(of("{\"streams\": []}").starts_with("is not ffprobe's JSON of frames or packets"));
    }
}
