//! Recordings that tests make.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use soloist_record::meta::Stream;
use soloist_record::{Access, Kind, Meta, Writer};

/// What a recorded program does: its kind, page, line of the page, and instructions before it.
pub type Step = (Kind, u64, u8, u32);

/// Records a program each of whose threads does these steps.
pub fn record(dir: &Path, threads: u32, steps: impl Iterator<Item = Step> + Clone) {
    std::fs::create_dir_all(dir).unwrap();
    let streams = (0..threads).map(|cpu| {
        let file = format!("cpu-{cpu}.rec");
        let mut writer = Writer::create(&dir.join(&file), cpu).unwrap();
        writer.switch(cpu, u64::from(cpu), 0).unwrap();
        for (kind, page, line, work) in steps.clone() {
            let access = Access {
                kind,
                page: 0,
                line,
                work,
                kernel: false,
                dependent: false,
            };
            writer
                .access(access, 1000 + page, 5000 + page, || page)
                .unwrap();
        }
        writer.flush().unwrap();
        Stream {
            cpu,
            file,
            lines: writer.lines(),
            bytes: writer.bytes,
            looked_at: 0,
            instructions: 0,
        }
    });
    let meta = Meta {
        machine: "opteron-6128".into(),
        ..Meta::of_program("walk", streams.collect())
    };
    meta.write(dir).unwrap();
}
