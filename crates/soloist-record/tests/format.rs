//! The reader gets back what was written, and names the place of damage.
#![allow(clippy::unwrap_used)] // a failed expectation should fail the test

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use soloist_record::event::State;
use soloist_record::meta::{Cache, Stream};
use soloist_record::{Access, Error, Event, Kind, Lines, Meta, Recording, Step, Writer};

fn event() -> impl Strategy<Value = Event> {
    let access = (
        0..4u8,
        any::<u32>(),
        0..64u8,
        any::<u32>(),
        any::<bool>(),
        any::<bool>(),
    );
    prop_oneof![
        access.prop_map(|(kind, page, line, work, kernel, dependent)| {
            let kind = Kind::of(kind);
            Event::Access(Access {
                kind,
                page,
                line,
                work: if kind == Kind::WriteBack { 0 } else { work },
                kernel,
                dependent,
            })
        }),
        any::<(u64, u64, u64)>().prop_map(|(virt, phys, order)| Event::Page { virt, phys, order }),
        any::<(u32, u64, u32)>().prop_map(|(thread, order, work)| Event::Switch {
            thread,
            order,
            work
        }),
        any::<(u16, u32)>().prop_map(|(code, work)| Event::Mark { code, work }),
        any::<(u32, u32)>().prop_map(|(id, work)| Event::Wake { id, work }),
        any::<u32>().prop_map(|id| Event::Wait { id }),
    ]
}

proptest! {
    #[test]
    fn events_come_back(events in prop::collection::vec(event(), 1..200)) {
        let (mut state, mut bytes) = (State::default(), Vec::new());
        for event in &events {
            event.pack(&mut state, &mut bytes);
        }
        let (mut state, mut rest) = (State::default(), bytes.as_slice());
        for event in &events {
            prop_assert_eq!(Event::unpack(&mut state, &mut rest), Some(*event));
        }
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn no_bytes_crash_it(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let (mut state, mut rest) = (State::default(), bytes.as_slice());
        while !rest.is_empty() && Event::unpack(&mut state, &mut rest).is_some() {}
    }
}

#[test]
fn a_page_number_beyond_all_is_no_event() {
    let mut state = State::default();
    let mut bytes = Vec::new();
    Event::Access(Access {
        page: 5,
        ..read(1, 1)
    })
    .pack(&mut state, &mut bytes);
    // A line read, in the page that lies the largest number of pages after that one.
    bytes.push(0);
    bytes.push(0xfe);
    bytes.extend([0xff; 8]);
    bytes.extend([1, 2, 3]);
    let (mut state, mut rest) = (State::default(), bytes.as_slice());
    assert!(Event::unpack(&mut state, &mut rest).is_some());
    assert_eq!(Event::unpack(&mut state, &mut rest), None);
}

fn read(line: u8, work: u32) -> Access {
    Access {
        kind: Kind::Read,
        page: 0,
        line,
        work,
        kernel: false,
        dependent: false,
    }
}

/// Writes `frames` frames of 100 lines each; the file and where frames begin.
fn stream(dir: &Path, frames: u64) -> (PathBuf, Vec<u64>) {
    let path = dir.join("cpu-0.rec");
    let mut writer = Writer::create(&path, 0).unwrap();
    let mut starts = Vec::new();
    writer.switch(0, 0, 0).unwrap();
    for f in 0..frames {
        starts.push(writer.bytes);
        for i in 0..100 {
            let page = f * 100 + i;
            writer
                .access(read(7, 3), page, 1000 + page, || page)
                .unwrap();
        }
        writer.flush().unwrap();
    }
    (path, starts)
}

fn meta(cpus: &[u32]) -> Meta {
    let stream = |&cpu: &u32| Stream {
        cpu,
        file: format!("cpu-{cpu}.rec"),
        lines: 0,
        bytes: 0,
        looked_at: 0,
        instructions: 0,
    };
    let mut meta = Meta {
        caches: vec![Cache {
            name: "l1d".into(),
            sets: 64,
            ways: 8,
        }],
        ..Meta::of_program("p", cpus.iter().map(stream).collect())
    };
    // Two take turns on one processor, too.
    meta.streams.threads = vec![meta.streams.threads[0]; 2];
    meta
}

/// Writes [`meta`] of the streams as they are in `dir`.
fn tell(dir: &Path, cpus: &[u32]) {
    let mut meta = meta(cpus);
    for stream in &mut meta.streams.streams {
        let found = Recording::events(&dir.join(&stream.file), |_| {}).unwrap();
        (stream.lines, stream.bytes) = (found.lines, found.bytes);
    }
    meta.write(dir).unwrap();
}

/// What loading says of a stream whose bytes became those that `change` makes.
fn loaded(change: impl Fn(&[u8], &[u64]) -> Vec<u8>) -> Result<Vec<String>, String> {
    let dir = tempfile::tempdir().unwrap();
    let (path, starts) = stream(dir.path(), 3);
    tell(dir.path(), &[0]);
    fs::write(&path, change(&fs::read(&path).unwrap(), &starts)).unwrap();
    let recording = Recording::open(dir.path()).unwrap();
    let program = recording.load(0, Lines::First(10));
    let told = |e: &Error| e.to_string();
    let damage = |program: soloist_record::Program| program.damage.iter().map(told).collect();
    program.map(damage).map_err(|e| told(&e))
}

#[test]
fn whole_frames_that_are_lost_or_too_many_are_told() {
    assert_eq!(loaded(|whole, _| whole.to_vec()), Ok(Vec::new()));
    // The last one lost: what lies before is there.
    let said = loaded(|whole, starts| whole[..starts[2] as usize].to_vec()).unwrap();
    assert_eq!(said.len(), 1);
    let words = "ends here with 200 lines, and recording.json tells of 300 lines";
    assert!(said[0].contains(words), "{said:?}");
    assert!(said[0].contains("damaged at byte"), "{said:?}");
    // All lost but the header.
    let said = loaded(|whole, _| whole[..16].to_vec()).unwrap();
    assert!(said[0].contains("with 0 lines"), "{said:?}");
    // One doubled.
    let doubled = |whole: &[u8], starts: &[u64]| {
        let frame = &whole[starts[1] as usize..starts[2] as usize];
        [whole, frame].concat()
    };
    let said = loaded(doubled).unwrap_err();
    assert!(said.contains("as recording.json says"), "{said}");
}

#[test]
fn a_frame_lost_in_the_middle_names_no_pages() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cpu-0.rec");
    let mut writer = Writer::create(&path, 0).unwrap();
    writer.switch(0, 0, 0).unwrap();
    let mut starts = Vec::new();
    // The third frame uses the first one's page, then one of its own.
    for pages in [[1, 2], [3, 4], [1, 5]] {
        starts.push(writer.bytes as usize);
        for page in pages {
            writer.access(read(7, 3), page, page, || page).unwrap();
        }
        writer.flush().unwrap();
    }
    tell(dir.path(), &[0]);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, [&whole[..starts[1]], &whole[starts[2]..]].concat()).unwrap();
    let recording = Recording::open(dir.path()).unwrap();
    let said = recording.load(0, Lines::ALL).err().unwrap().to_string();
    assert!(said.contains("page that the stream never named"), "{said}");
    let said = Recording::events(&path, |_| {}).unwrap_err().to_string();
    assert!(said.contains("record again"), "{said}");
}

#[test]
fn the_stream_of_another_processor_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for cpu in [0, 1] {
        let mut writer = Writer::create(&dir.path().join(format!("cpu-{cpu}.rec")), cpu).unwrap();
        writer.switch(cpu, 0, 0).unwrap();
        writer.access(read(1, 10), 5, 50, || 0).unwrap();
        writer.flush().unwrap();
    }
    tell(dir.path(), &[0, 1]);
    fs::copy(dir.path().join("cpu-1.rec"), dir.path().join("cpu-0.rec")).unwrap();
    let recording = Recording::open(dir.path()).unwrap();
    let said = recording.load(0, Lines::ALL).err().unwrap().to_string();
    assert!(said.contains("stream of cpu 1, not of cpu 0"), "{said}");
}

/// They would be left out as the kernel's own are.
#[test]
fn threads_that_nobody_tells_of_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(&dir.path().join("cpu-0.rec"), 0).unwrap();
    writer.switch(1, 0, 0).unwrap();
    writer.access(read(1, 10), 5, 50, || 0).unwrap();
    writer.flush().unwrap();
    tell(dir.path(), &[0]);
    let said = || {
        let recording = Recording::open(dir.path()).unwrap();
        recording.load(0, Lines::ALL).err().map(|e| e.to_string())
    };
    assert_eq!(said(), None);
    let whole = Meta::read(dir.path()).unwrap();
    let mut cut = whole.clone();
    cut.streams.threads.pop();
    let mut others = whole;
    others.streams.threads[1].program = 1;
    for meta in [cut, others] {
        meta.write(dir.path()).unwrap();
        let said = said().unwrap();
        assert!(said.contains("thread 1 ran on cpu 0"), "{said}");
    }
}

#[test]
fn lines_count_as_in_the_file_once_they_are() {
    let mut writer = Writer::create(Path::new("/dev/null"), 0).unwrap();
    writer.access(read(1, 10), 5, 50, || 0).unwrap();
    assert_eq!((writer.accesses, writer.lines()), (1, 0));
    writer.flush().unwrap();
    assert_eq!((writer.accesses, writer.lines()), (1, 1));
}

#[test]
fn a_cut_stream_is_read_up_to_the_cut() {
    let dir = tempfile::tempdir().unwrap();
    let (path, starts) = stream(dir.path(), 3);
    tell(dir.path(), &[0]);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..starts[2] as usize + 30]).unwrap();
    let program = Recording::open(dir.path())
        .unwrap()
        .load(0, Lines::ALL)
        .unwrap();
    assert_eq!(program.steps(&program.thread(0)).count(), 200);
    let said = program.damage[0].to_string();
    assert!(said.contains(&format!("byte {}", starts[2])), "{said}");
    assert!(said.contains("cut off"), "{said}");
}

#[test]
fn every_flipped_byte_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let (path, starts) = stream(dir.path(), 2);
    let whole = fs::read(&path).unwrap();
    for at in starts[1] as usize..whole.len() {
        let mut bad = whole.clone();
        bad[at] ^= 0x10;
        fs::write(&path, &bad).unwrap();
        let mut seen = 0;
        let result = Recording::events(&path, |_| seen += 1);
        let Err(Error::Damaged {
            offset, records, ..
        }) = result
        else {
            panic!("byte {at}: {result:?}");
        };
        // The first frame holds the switch, and a page and a line each time.
        assert_eq!((offset, records, seen), (starts[1], 201, 201), "byte {at}");
    }
}

#[test]
fn what_is_no_stream_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    fs::write(&path, b"something else altogether").unwrap();
    let why = Recording::events(&path, |_| {}).unwrap_err().to_string();
    assert!(why.contains("SOLOREC"), "{why}");
    fs::write(&path, b"SOLOREC\n\x09\0\0\0\0\0\0\0").unwrap();
    let why = Recording::events(&path, |_| {}).unwrap_err().to_string();
    assert!(why.contains("version 9"), "{why}");
}

#[test]
fn a_recording_of_no_program_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut none = meta(&[0]);
    none.programs.clear();
    none.write(dir.path()).unwrap();
    let why = Meta::read(dir.path()).unwrap_err().to_string();
    assert!(why.contains("no program"), "{why}");
}

/// Each reader would take them for lines of 64 bytes.
#[test]
fn a_recording_of_other_lines_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut wide = meta(&[0]);
    wide.line = 128;
    wide.write(dir.path()).unwrap();
    let why = Meta::read(dir.path()).unwrap_err().to_string();
    assert!(why.contains("lines of 128 bytes"), "{why}");
}

#[test]
fn a_thread_that_moves_is_put_together_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut a = Writer::create(&dir.path().join("cpu-0.rec"), 0).unwrap();
    let mut b = Writer::create(&dir.path().join("cpu-1.rec"), 1).unwrap();
    // Thread 0 runs on cpu 0, then on cpu 1, then on cpu 0 again; thread 1 between.
    a.switch(0, 0, 0).unwrap();
    a.access(read(1, 10), 5, 50, || 0).unwrap();
    a.switch(1, 1, 7).unwrap();
    a.access(read(9, 20), 6, 60, || 3).unwrap();
    b.switch(0, 2, 0).unwrap();
    b.access(read(2, 10), 5, 50, || 1).unwrap();
    b.access(read(3, 10), 4, 40, || 2).unwrap();
    a.switch(0, 3, 0).unwrap();
    a.access(read(4, 10), 5, 50, || 9).unwrap();
    a.flush().unwrap();
    b.flush().unwrap();
    tell(dir.path(), &[0, 1]);
    let program = Recording::open(dir.path())
        .unwrap()
        .load(0, Lines::ALL)
        .unwrap();
    assert!(program.damage.is_empty());
    let lines = |thread: u32| -> Vec<(u32, u8)> {
        let access = |step| match step {
            Step::Access(a) => Some((a.page, a.line)),
            _ => None,
        };
        program
            .steps(&program.thread(thread))
            .filter_map(access)
            .collect()
    };
    assert_eq!(lines(0), [(0, 1), (0, 2), (1, 3), (0, 4)]);
    assert_eq!(lines(1), [(2, 9)]);
    let phys: Vec<u64> = program.pages.iter().map(|p| p.phys).collect();
    assert_eq!(phys, [50, 40, 60]);
    // The 7 instructions before the switch are still thread 0's.
    let work = |step| match step {
        Step::Access(a) => u64::from(a.work),
        _ => 0,
    };
    let total: u64 = program.steps(&program.thread(0)).map(work).sum();
    assert_eq!(total, 10 + 10 + 10 + 10 + 7);
}

#[test]
fn other_simulators_read_what_was_recorded() {
    use soloist_record::export::{export, Format};

    let dir = tempfile::tempdir().unwrap();
    let mut a = Writer::create(&dir.path().join("cpu-0.rec"), 0).unwrap();
    a.switch(0, 0, 0).unwrap();
    a.access(read(1, 10), 5, 0x50, || 0).unwrap();
    assert!(a.write_back(0x50, 1, false).unwrap());
    // Nobody saw that page while recording: nothing is written of it.
    assert!(!a.write_back(0x51, 1, false).unwrap());
    a.access(read(2, 7), 5, 0x50, || 1).unwrap();
    a.flush().unwrap();
    tell(dir.path(), &[0]);
    let program = Recording::open(dir.path())
        .unwrap()
        .load(0, Lines::ALL)
        .unwrap();
    let text = |format| {
        let mut out = Vec::new();
        assert_eq!(
            export(&program, &program.thread(0), format, &mut out).unwrap(),
            3
        );
        String::from_utf8(out).unwrap()
    };
    let dramsim = "0x50040 READ 10\n0x50040 WRITE 10\n0x50080 READ 17\n";
    assert_eq!(text(Format::Dramsim3), dramsim);
    assert_eq!(text(Format::Ramulator), "LD 327744\nST 327744\nLD 327808\n");
    // ChampSim: an instruction is 64 bytes; a line that goes is none.
    let mut out = Vec::new();
    export(&program, &program.thread(0), Format::Champsim, &mut out).unwrap();
    assert_eq!(out.len(), 64 * 17);
    let word = |n: usize, at: usize| {
        let at = 64 * n + at;
        u64::from_le_bytes(out[at..at + 8].try_into().unwrap())
    };
    let virt: Vec<u64> = program.pages.iter().map(|p| p.virt << 12).collect();
    assert_eq!(
        (word(9, 32), word(16, 32)),
        (virt[0] | 0x40, virt[0] | 0x80)
    );
    assert!((0..17).all(|n| n == 9 || n == 16 || word(n, 32) == 0));
    assert!((0..17).all(|n| word(n, 16) == 0), "nothing is stored");
    assert!((0..17).all(|n| word(n, 0) != 0), "each has an address");
    // drmemtrace: nine entries, where a page is before its first line, and an instruction
    // before what it loads; two at the end.
    let mut out = Vec::new();
    export(&program, &program.thread(0), Format::Drmemtrace, &mut out).unwrap();
    let entries: Vec<(u16, u16, u64)> = out
        .chunks(12)
        .map(|e| {
            let half = |at: usize| u16::from_le_bytes([e[at], e[at + 1]]);
            (
                half(0),
                half(2),
                u64::from_le_bytes(e[4..].try_into().unwrap()),
            )
        })
        .collect();
    assert_eq!(entries[0], (25, 0, 4), "a header, of version 4");
    let body = &entries[9..entries.len() - 2];
    assert_eq!(body[..2], [(28, 15, 0x50_000), (28, 17, virt[0])]);
    let loads: Vec<usize> = (0..body.len()).filter(|&n| body[n].0 == 0).collect();
    assert_eq!(
        loads,
        [12, 20],
        "two places and ten instructions; seven more"
    );
    assert_eq!(body[12], (0, 8, virt[0] | 0x40));
    assert_eq!(body[20], (0, 8, virt[0] | 0x80));
    assert_eq!(body.iter().filter(|e| e.0 == 10).count(), 17);
    let end: Vec<u16> = entries[entries.len() - 2..].iter().map(|e| e.0).collect();
    assert_eq!(end, [23, 26]);
}

#[test]
fn the_first_lines_or_those_at_a_place() {
    let dir = tempfile::tempdir().unwrap();
    stream(dir.path(), 3);
    tell(dir.path(), &[0]);
    let recording = Recording::open(dir.path()).unwrap();
    let loaded = |lines| {
        let program = recording.load(0, lines).unwrap();
        // A page has its number whichever lines are loaded.
        assert_eq!(program.pages.len(), 300);
        let lane = program.thread(0);
        let steps: Vec<Step> = program.steps(&lane).collect();
        let page = |step: &Step| match step {
            Step::Access(a) => (a.page, a.work),
            _ => unreachable!("none was made"),
        };
        let ends = steps.first().zip(steps.last());
        let (first, last) = ends.unwrap();
        (steps.len(), page(first), page(last))
    };
    assert_eq!(loaded(Lines::ALL), (300, (0, 3), (299, 3)));
    assert_eq!(loaded(Lines::First(50)), (50, (0, 3), (49, 3)));
    assert_eq!(loaded(Lines::Middle(50)), (50, (125, 3), (174, 3)));
    assert_eq!(loaded(Lines::Middle(500)), (300, (0, 3), (299, 3)));
    assert_eq!(loaded(Lines::At(0, 50)), loaded(Lines::First(50)));
    assert_eq!(loaded(Lines::At(20, 50)), (50, (50, 3), (99, 3)));
    assert_eq!(loaded(Lines::At(100, 50)), (50, (250, 3), (299, 3)));
}

#[test]
fn no_number_of_lines_that_a_file_tells_crashes_it() {
    let dir = tempfile::tempdir().unwrap();
    stream(dir.path(), 3);
    tell(dir.path(), &[0]);
    let mut meta = Meta::read(dir.path()).unwrap();
    meta.streams.streams[0].lines = u64::MAX;
    meta.write(dir.path()).unwrap();
    let recording = Recording::open(dir.path()).unwrap();
    for lines in [Lines::Middle(1000), Lines::At(100, 1)] {
        let said = recording.load(0, lines).unwrap().damage[0].to_string();
        assert!(said.contains(&format!("tells of {}", u64::MAX)), "{said}");
    }
}

#[test]
fn a_folder_with_a_part_of_a_recording_takes_no_other() {
    use soloist_record::meta::vacant;

    let dir = tempfile::tempdir().unwrap();
    assert_eq!(vacant(&dir.path().join("not-there")), Ok(()));
    assert!(vacant(Path::new("-")).is_err(), "no file has that name");
    fs::write(dir.path().join("notes"), "").unwrap();
    assert_eq!(vacant(dir.path()), Ok(()));
    for part in ["cpu-3.rec", "streams.json", "recording.json"] {
        let file = dir.path().join(part);
        fs::write(&file, "").unwrap();
        assert!(vacant(dir.path()).is_err(), "{part}");
        assert!(vacant(&file).unwrap_err().contains("no directory"));
        fs::remove_file(file).unwrap();
    }
}

#[test]
fn one_recording_at_a_time_goes_into_a_folder() {
    use soloist_record::meta::lock;

    let dir = tempfile::tempdir().unwrap();
    let first = lock(dir.path()).unwrap();
    let why = lock(dir.path()).unwrap_err();
    assert!(
        why.contains("another recording is being written there"),
        "{why}"
    );
    drop(first);
    assert!(lock(dir.path()).is_ok());
}

#[test]
fn a_folder_without_a_recording_is_told_what_makes_one() {
    let dir = tempfile::tempdir().unwrap();
    let said = Meta::read(dir.path()).unwrap_err().to_string();
    let folder = dir.path().display().to_string();
    assert!(said.starts_with(&folder), "{said}");
    assert!(said.contains("`soloist vm record`"), "{said}");
}
