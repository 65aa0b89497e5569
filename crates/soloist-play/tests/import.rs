//! Traces of other tools are recordings that play.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use soloist_memory::Platform;
use soloist_play::import::{import, Format, ImportError, Imported, Target};
use soloist_play::policy;
use soloist_play::profile::profile;
use soloist_play::replay::{load, Job, Part, Replay, WORN};
use soloist_record::export::{self, export};
use soloist_record::meta::Cache;
use soloist_record::{Kind, Lines, Step};

/// Private caches of two lines of data and two of code.
fn caches() -> Vec<Cache> {
    ["l1d", "l1i"]
        .map(|name| Cache {
            name: name.to_owned(),
            sets: 1,
            ways: 2,
        })
        .to_vec()
}

fn take(files: &[PathBuf], format: Format, out: &Path) -> Result<Imported, ImportError> {
    let target = Target {
        out,
        name: "traced".to_owned(),
        machine: "opteron-6128".to_owned(),
        map: String::new(),
        caches: caches(),
    };
    import(files, format, &target)
}

fn entry(kind: u16, size: u16, addr: u64) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(size.to_le_bytes());
    bytes.extend(addr.to_le_bytes());
    bytes
}

fn header() -> Vec<Vec<u8>> {
    vec![
        entry(25, 0, 5),
        entry(28, 12, 5),
        entry(28, 9, 0x40),
        entry(22, 8, 7),
        entry(24, 8, 7),
        entry(28, 10, 64),
        entry(28, 18, 4096),
    ]
}

fn file(dir: &Path, name: &str, entries: &[Vec<u8>]) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, entries.concat()).unwrap();
    path
}

/// Kind, virtual address, physical page and instructions of each line.
fn lines(part: &Part, lane: usize) -> Vec<(Kind, u64, u64, u32)> {
    let program = &part.program;
    let line = |step| match step {
        Step::Access(a) => {
            let page = program.pages[a.page as usize];
            let addr = page.virt << 12 | u64::from(a.line) << 6;
            Some((a.kind, addr, page.phys, a.work))
        }
        _ => None,
    };
    program
        .steps(&program.lanes()[lane])
        .filter_map(line)
        .collect()
}

fn play(part: &Part, placement: &str) -> Result<f64, String> {
    let replay = Replay {
        platform: Platform::find("opteron-6128").unwrap(),
        parts: vec![part.clone()],
        sets: 1,
        history: WORN,
    };
    let job = Job {
        placement: placement.parse().unwrap(),
        alone: true,
        limit: None,
        seed: 1,
        blame: false,
    };
    let runs = replay.play(&[job], &|| {}).map_err(|e| e.to_string())?;
    Ok(runs[0].played[0].time_ns)
}

#[test]
fn a_trace_goes_through_the_private_caches() {
    let dir = tempfile::tempdir().unwrap();
    let mut trace = header();
    trace.extend([
        entry(47, 4, 0x90),
        entry(10, 4, 0x40_0000),
        entry(1, 8, 0x1000),
        // The same lines again: they don't leave the caches.
        entry(48, 4, 0x40_0004),
        entry(0, 8, 0x1008),
        entry(29, 4, 0x40_0080),
        // A prefetch, a flush and a marker of functions have no word in a recording.
        entry(3, 8, 0x9000),
        entry(20, 8, 0x9000),
        entry(28, 4, 1),
        // Two more lines push the dirty one out; the second load has two.
        entry(10, 4, 0x40_0008),
        entry(0, 8, 0x2000),
        entry(10, 4, 0x40_000c),
        entry(0, 16, 0x303c),
        // Three instructions behind the last: to the next line.
        entry(17, 3, u64::from_le_bytes([0x30, 0x10, 4, 0, 0, 0, 0, 0])),
        entry(23, 8, 7),
        entry(26, 0, 0),
    ]);
    let trace = file(dir.path(), "trace", &trace);
    let out = dir.path().join("rec");
    let imported = take(&[trace], Format::Drmemtrace, &out).unwrap();
    let dropped = [("prefetches", 1), ("cache flushes", 1), ("markers", 1)];
    assert_eq!(imported.dropped, dropped);
    assert_eq!((imported.threads, imported.instructions), (1, 8));
    assert_eq!((imported.located, imported.filtered), (0, false));
    let part = load(&out, 0, Lines::ALL).unwrap();
    let found: Vec<(Kind, u64, u32)> = lines(&part, 0)
        .into_iter()
        .map(|(kind, addr, _, work)| (kind, addr, work))
        .collect();
    let expected = [
        (Kind::Fetch, 0x40_0000, 1),
        (Kind::Write, 0x1000, 0),
        (Kind::Read, 0x2000, 3),
        (Kind::Read, 0x3000, 1),
        (Kind::WriteBack, 0x1000, 0),
        (Kind::Read, 0x3040, 0),
        (Kind::Fetch, 0x40_0040, 2),
    ];
    assert_eq!(found, expected);
    // Nobody told where its pages were: they must be placed.
    let refused = play(&part, "recorded").unwrap_err();
    assert!(refused.contains("--recolor"), "{refused}");
    assert!(play(&part, "diff_controller").unwrap() > 0.0);
}

#[test]
fn what_was_exported_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut trace = header();
    trace[2] = entry(28, 9, 0x1c0);
    for i in 0..200u64 {
        let page = 0x2_8000 + i * 7 % 30;
        trace.push(entry(28, 15, page << 12));
        trace.push(entry(28, 17, (0x55_0000 + page) << 12));
        for j in 0..=i % 5 {
            trace.push(entry(10, 4, 0x40_0000 + i * 128 + j * 4));
        }
        let addr = ((0x55_0000 + page) << 12) + i * 64 % 4096;
        trace.push(entry((i % 3 == 0).into(), 8, addr));
    }
    let first = file(dir.path(), "first", &trace);
    let one = dir.path().join("one.rec");
    let imported = take(&[first], Format::Drmemtrace, &one).unwrap();
    assert_eq!((imported.filtered, imported.located), (true, 30));
    let one = load(&one, 0, Lines::ALL).unwrap();
    assert_eq!(lines(&one, 0).len(), 400);
    let again = |exported, format, name: &str| {
        let mut bytes = Vec::new();
        export(&one.program, &one.program.lanes()[0], exported, &mut bytes).unwrap();
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        let out = dir.path().join(format!("{name}.rec"));
        take(&[path], format, &out).unwrap();
        load(&out, 0, Lines::ALL).unwrap()
    };
    let two = again(export::Format::Drmemtrace, Format::Drmemtrace, "drmemtrace");
    // A load of the line's own instruction has it; a line without one gets it.
    let (before, after) = (lines(&one, 0), lines(&two, 0));
    let places = |all: &[(Kind, u64, u64, u32)]| -> Vec<(Kind, u64, u64)> {
        all.iter().map(|l| (l.0, l.1, l.2)).collect()
    };
    assert_eq!(places(&before), places(&after));
    let work = |all: &[(Kind, u64, u64, u32)]| all.iter().map(|l| u64::from(l.3)).sum::<u64>();
    let off = work(&after).abs_diff(work(&before));
    assert!(off <= 1, "{off} instructions of {}", work(&before));
    let (own, other) = (play(&one, "buddy").unwrap(), play(&two, "buddy").unwrap());
    assert!((other / own - 1.0).abs() < 0.01, "{own} {other} ns");
    // Text: addresses and instructions; what a store asks for is read.
    let text = again(export::Format::Dramsim3, Format::Dramsim3, "dramsim3");
    let found = lines(&text, 0);
    let phys = |l: &(Kind, u64, u64, u32)| l.2 << 12 | l.1 & 0xfff;
    assert_eq!(
        before.iter().map(phys).collect::<Vec<_>>(),
        found.iter().map(phys).collect::<Vec<_>>()
    );
    assert_eq!(work(&found), work(&before));
    let champsim = again(export::Format::Champsim, Format::Champsim, "champsim");
    assert!(!lines(&champsim, 0).is_empty());
    let ramulator = again(export::Format::Ramulator, Format::Ramulator, "ramulator");
    assert_eq!(lines(&ramulator, 0).len(), 400);
}

/// One of ChampSim's: what it writes to and what it reads, registers and memory.
fn instruction(ip: u64, registers: [u8; 2], store: u64, load: u64) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..8].copy_from_slice(&ip.to_le_bytes());
    (bytes[10], bytes[12]) = (registers[0], registers[1]);
    bytes[16..24].copy_from_slice(&store.to_le_bytes());
    bytes[32..40].copy_from_slice(&load.to_le_bytes());
    bytes
}

/// A store, too, may need the load before.
#[test]
fn a_profile_says_how_many_loads_need_the_load_before() {
    let trace = [
        instruction(0x40_0000, [3, 0], 0, 0x1000),
        instruction(0x40_0004, [4, 3], 0x2000, 0),
        instruction(0x40_0008, [5, 3], 0, 0x3000),
    ];
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "trace", &trace);
    let out = dir.path().join("rec");
    take(&[path], Format::Champsim, &out).unwrap();
    let part = load(&out, 0, Lines::ALL).unwrap();
    let platform = Platform::find("opteron-6128").unwrap();
    assert_eq!(profile(&part, &platform).dependent, 50.0);
}

/// ChampSim's: registers say whether an address comes from the last load.
#[test]
fn instructions_of_champsim_go_through_the_private_caches() {
    let trace = [
        instruction(0x40_0000, [3, 0], 0, 0x1008),
        // Of register 3, through 4: waits for it.
        instruction(0x40_0004, [4, 3], 0, 0),
        instruction(0x40_0008, [5, 4], 0, 0x2000),
        // Register 3 is no longer the last load's; the line is in the caches.
        instruction(0x40_000c, [6, 3], 0x1010, 0),
        // The kernel's half: nobody told where that page was, so it is placed as well.
        instruction(0x40_0010, [7, 3], 0, 0xffff_8880_0000_3000),
    ];
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "trace", &trace);
    let out = dir.path().join("rec");
    let imported = take(&[path], Format::Champsim, &out).unwrap();
    assert_eq!(
        (imported.instructions, imported.pages, imported.located),
        (5, 4, 0)
    );
    let part = load(&out, 0, Lines::ALL).unwrap();
    let program = &part.program;
    let lanes = program.lanes();
    let steps = program.steps(&lanes[0]);
    let found: Vec<(Kind, bool)> = steps
        .filter_map(|step| match step {
            Step::Access(a) => Some((a.kind, a.dependent)),
            _ => None,
        })
        .collect();
    let expected = [
        (Kind::Fetch, false),
        (Kind::Read, false),
        (Kind::Read, true),
        (Kind::Read, false),
    ];
    assert_eq!(found, expected);
    assert_eq!(lines(&part, 0)[2].3, 2);
    assert!(play(&part, "diff_controller").unwrap() > 0.0);

    let mut cut = trace.concat();
    cut.truncate(100);
    let path = file(dir.path(), "cut", &[cut]);
    let error = take(&[path], Format::Champsim, &dir.path().join("no")).unwrap_err();
    assert!(error.to_string().contains("byte 64: 36 bytes"), "{error}");
}

#[test]
fn threads_that_take_turns_are_lanes() {
    let dir = tempfile::tempdir().unwrap();
    let mut trace = header();
    for thread in [7, 8, 7, 8] {
        trace.push(entry(22, 8, thread));
        trace.push(entry(10, 4, 0x40_0000));
        trace.push(entry(0, 8, 0x1000 * thread));
    }
    let trace = file(dir.path(), "trace", &trace);
    let out = dir.path().join("rec");
    let imported = take(&[trace], Format::Drmemtrace, &out).unwrap();
    assert_eq!((imported.threads, imported.lines), (2, 4));
    let part = load(&out, 0, Lines::ALL).unwrap();
    assert_eq!(part.program.lanes().len(), 2);
    assert_eq!(lines(&part, 1)[1].1, 0x8000);
}

#[test]
fn what_is_no_trace_is_refused_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let mut cut = header().concat();
    cut.extend([0, 0, 8]);
    let mut strange = header();
    strange.push(entry(77, 0, 0));
    let mut pages = header();
    pages[6] = entry(28, 18, 65536);
    let early = [entry(25, 0, 5), entry(10, 4, 0x40_0000)];
    for (bytes, words) in [
        (b"\x1f\x8b\x08 packed things".to_vec(), "bad"),
        (b"PK\x03\x04 a thread a file".to_vec(), "unzip"),
        (Vec::new(), "nothing is in it"),
        (cut, "byte 84: 3 bytes"),
        (strange.concat(), "byte 84: an entry of type 77"),
        (pages.concat(), "65536"),
        (early.concat(), "byte 12: an access before"),
    ] {
        let path = dir.path().join("bad");
        fs::write(&path, bytes).unwrap();
        let error = take(&[path], Format::Drmemtrace, &dir.path().join("rec")).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    let text = dir.path().join("text");
    fs::write(&text, "0x40 READ 5\nnothing\n").unwrap();
    let error = take(&[text], Format::Dramsim3, &dir.path().join("rec")).unwrap_err();
    assert!(error.to_string().contains("text:2"), "{error}");
}

#[test]
fn a_failed_import_leaves_what_was_there_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let good = file(dir.path(), "good", &[champsim(100)]);
    let bad = file(dir.path(), "bad", &[champsim(100), vec![1, 2, 3]]);
    let out = dir.path().join("rec");
    let failed = |files: &[&PathBuf]| {
        let files: Vec<PathBuf> = files.iter().map(|&file| file.clone()).collect();
        let error = take(&files, Format::Champsim, &out).unwrap_err();
        error.to_string()
    };
    failed(&[&good, &dir.path().join("missing")]);
    assert!(!out.exists());
    failed(&[&good, &bad]);
    assert!(!out.exists());
    // In somebody's own directory what is theirs stays.
    fs::create_dir(&out).unwrap();
    fs::write(out.join("notes"), "mine").unwrap();
    failed(&[&good, &bad]);
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
    let stream = out.join("cpu-0.rec");
    fs::write(&stream, "a stream").unwrap();
    let why = failed(&[&good]);
    assert!(why.contains("cpu-0.rec, of another recording"), "{why}");
    assert_eq!(fs::read(&stream).unwrap(), b"a stream");
}

/// Another one has the folder, and has written nothing there yet.
#[test]
fn two_imports_at_once_do_not_mix() {
    let dir = tempfile::tempdir().unwrap();
    let good = file(dir.path(), "good", &[champsim(50)]);
    let out = dir.path().join("rec");
    fs::create_dir(&out).unwrap();
    let files = std::slice::from_ref(&good);
    let first = soloist_record::meta::lock(&out).unwrap();
    let second = take(files, Format::Champsim, &out).unwrap_err();
    assert!(matches!(second, ImportError::Taken(_)), "{second}");
    assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
    drop(first);
    let taken = take(files, Format::Champsim, &out).unwrap();
    assert_eq!(taken.instructions, 50);
}

/// Instructions of 64 bytes that load one line each.
fn champsim(count: u64) -> Vec<u8> {
    let instruction = |i: u64| {
        let mut bytes = vec![0; 64];
        bytes[..8].copy_from_slice(&(0x40_0000 + 4 * i).to_le_bytes());
        (bytes[8], bytes[9]) = ((i % 5 == 0).into(), (i % 10 == 0).into());
        bytes[32..40].copy_from_slice(&(0x7f00_0000_0000 + 64 * i).to_le_bytes());
        bytes
    };
    (0..count).flat_map(instruction).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut packer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    use ruzstd::encoding::{compress_to_vec, CompressionLevel};
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

#[test]
fn packed_traces_are_unpacked_by_their_content() {
    let dir = tempfile::tempdir().unwrap();
    let plain = champsim(5000);
    let path = dir.path().join("trace");
    let taken = |bytes: &[u8], out: &str| {
        fs::write(&path, bytes).unwrap();
        take(
            std::slice::from_ref(&path),
            Format::Champsim,
            &dir.path().join(out),
        )
    };
    let as_it_is = taken(&plain, "plain").unwrap();
    assert_eq!(as_it_is.instructions, 5000);
    let halves = plain.split_at(64 * 2000);
    let skipped = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    for (name, packed, cut) in [
        (
            "gzip",
            [gzip(halves.0), gzip(halves.1)].concat(),
            gzip(&plain),
        ),
        ("xz", [xz(halves.0), xz(halves.1)].concat(), xz(&plain)),
        (
            "zstd",
            [zstd(halves.0), skipped.to_vec(), zstd(halves.1)].concat(),
            zstd(&plain),
        ),
    ] {
        assert_eq!(taken(&packed, name).unwrap(), as_it_is, "{name}");
        let cut = taken(&cut[..cut.len() / 2], "cut");
        assert!(cut.is_err(), "{name}: {cut:?}");
    }
    let text = b"0x40 READ 5\n0x80 WRITE 9\n";
    fs::write(&path, xz(text)).unwrap();
    let out = dir.path().join("text");
    assert_eq!(take(&[path], Format::Dramsim3, &out).unwrap().lines, 2);
}

/// Sizes that fit, and records of other layouts.
#[test]
fn only_champsims_own_instructions_pass_for_them() {
    let dir = tempfile::tempdir().unwrap();
    // CloudSuite's: four registers and four addresses each way.
    let wide = |i: u64, bytes: usize| {
        let mut record = vec![0; bytes];
        record[..8].copy_from_slice(&(0x40_0000 + 4 * i).to_le_bytes());
        (record[10], record[14]) = (3, 4);
        record[24..32].copy_from_slice(&(0x7f00_0000_0000 + 64 * i).to_le_bytes());
        record[56..64].copy_from_slice(&(0x7f00_0001_0000 + 64 * i).to_le_bytes());
        record
    };
    // An address and a time, as other tools' records begin.
    let pairs = |i: u64| {
        [
            (0x1_2340 + 64 * i).to_le_bytes(),
            (1000 + 7 * i).to_le_bytes(),
        ]
        .concat()
    };
    let mut mixed = champsim(100);
    mixed[64 * 70 + 8] = 2;
    let mut high = champsim(100);
    high[64 * 70 + 7] = 0x3f;
    for (name, bytes) in [
        ("88 bytes", (0..64).flat_map(|i| wide(i, 88)).collect()),
        ("96 bytes", (0..64).flat_map(|i| wide(i, 96)).collect()),
        ("pairs", (0..64).flat_map(pairs).collect()),
        (
            "text",
            b"0x40 READ 5\n0x80 READ 9\n0xc0 READ 9\n0x100 READ 99\n0x140 READ 9".to_vec(),
        ),
        ("zeroes", vec![0; 640]),
        ("one branch", mixed),
        ("one address", high),
        ("nothing", Vec::new()),
    ] {
        let path = dir.path().join("trace");
        if name != "text" {
            assert_eq!(bytes.len() % 64, 0, "{name}");
        }
        fs::write(&path, &bytes).unwrap();
        let taken = take(&[path], Format::Champsim, &dir.path().join("rec"));
        let why = taken.map(|t| format!("{t:?}")).unwrap_err().to_string();
        assert!(
            why.contains("ChampSim") || name == "nothing",
            "{name}: {why}"
        );
    }
}

#[test]
fn text_of_another_tool_is_named() {
    let dir = tempfile::tempdir().unwrap();
    for (format, text, says) in [
        (
            Format::Ramulator,
            "4 16777216\n2 16793600 16809984\n",
            "core",
        ),
        (Format::Ramulator, "2 16793600 16809984\n", "core"),
        (Format::Ramulator, "R 0,1,2,77,16\n", "no address"),
        (Format::Dramsim3, "0:\tWrite\t0x12345680\n", "DRAMSys"),
        (Format::Dramsim3, "0x12345680 R\n", "--format ramulator"),
        (
            Format::Ramulator,
            "0x12345680 READ 9\n",
            "--format dramsim3",
        ),
        (Format::Dramsim3, "0x12345680 P_MEM_WR 9\n", "DRAMSim2"),
        (Format::Dramsim3, "gibberish\n", "expected"),
    ] {
        let path = dir.path().join("trace");
        fs::write(&path, text).unwrap();
        let error = take(&[path], format, &dir.path().join("rec")).unwrap_err();
        let why = error.to_string();
        assert!(
            why.contains(says) && why.contains("trace:1"),
            "{text}: {why}"
        );
    }
}

/// The model tells lines apart up to 2^53, twice as far as any machine has memory.
#[test]
fn addresses_beyond_all_memory_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace");
    for (last, is_there) in [
        (0x1f_ffff_ffff_ffc0_u64, true),
        (1 << 53, false),
        (1 << 63, false),
    ] {
        for (format, text) in [
            (Format::Ramulator, format!("0x40 R\n{last:#x} R\n")),
            (Format::Dramsim3, format!("0x40 READ 1\n{last:#x} READ 2\n")),
        ] {
            fs::write(&path, text).unwrap();
            let out = dir.path().join(format!("{last:x} {format:?}"));
            let taken = take(std::slice::from_ref(&path), format, &out).map_err(|e| e.to_string());
            assert_eq!(taken.is_ok(), is_there, "{last:#x}: {taken:?}");
            if let Err(why) = taken {
                assert!(why.contains("trace:2: ") && why.contains("2^53"), "{why}");
            }
        }
    }
    let mut entries = header();
    entries.push(entry(28, 15, 1 << 53));
    let path = file(dir.path(), "physical", &entries);
    let why = take(&[path], Format::Drmemtrace, &dir.path().join("drmemtrace")).unwrap_err();
    assert!(
        why.to_string().contains("byte 84: ") && why.to_string().contains("2^53"),
        "{why}"
    );
}

/// The Opteron with memory on nodes 1 and 2 only; its cores are on all four.
fn half_of_the_opteron() -> Platform {
    let text = soloist_machine::known::text("opteron-6128").unwrap();
    let (head, rest) = text.split_once("[[map.range]]").unwrap();
    let (ranges, tail) = rest.split_once("[cache]").unwrap();
    let is_left = |range: &&str| {
        ["node = 1\n", "node = 2\n"]
            .iter()
            .any(|n| range.contains(n))
    };
    let left: Vec<&str> = ranges.split("[[map.range]]").filter(is_left).collect();
    let ranges = left.join("[[map.range]]");
    let text = format!("{head}[[map.range]]{ranges}[cache]{tail}");
    Platform::of(&soloist_machine::Machine::parse(&text, "half").unwrap()).unwrap()
}

#[test]
fn cores_without_memory_have_the_nearest_ones_colours() {
    let platform = half_of_the_opteron();
    assert_eq!(platform.memory.map.memory_nodes(), [1, 2]);
    // Of the other die of their package.
    let homes: Vec<u32> = [0, 4, 8, 12].map(|core| platform.home(core)).to_vec();
    assert_eq!(homes, [1, 1, 2, 2]);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace");
    fs::write(&path, champsim(300)).unwrap();
    let out = dir.path().join("rec");
    take(&[path], Format::Champsim, &out).unwrap();
    let part = load(&out, 0, Lines::ALL).unwrap();
    for cores in [[0, 1], [13, 5]] {
        let parts = cores.map(|core| {
            let mut part = part.clone();
            part.cores = vec![core];
            part
        });
        let replay = Replay {
            platform: platform.clone(),
            parts: parts.to_vec(),
            sets: 1,
            history: WORN,
        };
        for policy in policy::all() {
            let job = Job {
                placement: policy.name().parse().unwrap(),
                alone: false,
                limit: None,
                seed: 1,
                blame: false,
            };
            let runs = replay.play(&[job], &|| {});
            let runs = runs.unwrap_or_else(|why| panic!("{policy} on {cores:?}: {why}"));
            assert!(runs[0].played.iter().all(|p| p.spilled == 0), "{policy}");
        }
    }
}
