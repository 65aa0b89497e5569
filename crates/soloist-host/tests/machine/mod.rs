//! A made-up machine in a directory.
#![allow(dead_code, reason = "each test file uses its part")]

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use soloist_host::machine::Host;
use tempfile::TempDir;

/// Two nodes of eight banks and eight LLC colours; LLC bit 2 is a bank bit.
pub const MAP: &str = "\
soloist-map 1
name small
line 64
llc 12 13 15
layout
bank 15 16 17
row 18 19 20 21 22 23 24 25
col 3 4 5 6 7 8 9 10 11 12 13 14
range 0x0 0x4000000 node 0
range 0x4000000 0x8000000 node 1
";

pub struct Machine {
    dir: TempDir,
}

impl Machine {
    pub fn new() -> Self {
        Self {
            dir: TempDir::new().unwrap(),
        }
    }

    /// With the module loaded, a map, and one group.
    pub fn loaded() -> Self {
        let machine = Self::new();
        machine.file("proc/sys/kernel/osrelease", "6.12.117+deb12-amd64\n");
        machine.soloist("map", MAP);
        machine.soloist("last_cmd_status", "ok\n");
        machine.soloist("stats", "groups 1\n");
        machine.soloist("implicit", "\n");
        machine.dir("sys/kernel/config/soloist/rules");
        machine.group("core0", "2-3", "");
        machine
    }

    pub fn group(&self, name: &str, sets: &str, llc: &str) {
        for (file, text) in [
            ("id", "1"),
            ("dram_bank", sets),
            ("bank_set", sets),
            ("llc_color", llc),
            ("node", "0"),
            ("auto", ""),
            ("mode", "exclusive"),
            ("exhaust", "fail"),
            ("text", "private"),
            ("reserve", "0"),
            ("tasks", "100\n101\n"),
            ("members", "100\n101\n"),
            ("procs", ""),
            ("stats", "pages 12\npage_tables 3\nspilled 0\nexhausted 0\n"),
        ] {
            self.soloist(&format!("groups/{name}/{file}"), text);
        }
    }

    pub fn soloist(&self, path: &str, text: &str) {
        self.file(&format!("sys/kernel/config/soloist/{path}"), text);
    }

    pub fn file(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// As the kernel writes a name that it cut: no UTF-8.
    pub fn bytes(&self, path: &str, bytes: &[u8]) {
        self.file(path, "");
        fs::write(self.path(path), bytes).unwrap();
    }

    pub fn dir(&self, path: &str) {
        fs::create_dir_all(self.path(path)).unwrap();
    }

    /// An array of eight-byte words with holes: pagemap, kpageflags.
    pub fn words(&self, path: &str, words: &[(u64, u64)]) {
        self.file(path, "");
        let file = fs::OpenOptions::new()
            .write(true)
            .open(self.path(path))
            .unwrap();
        for (index, word) in words {
            file.write_all_at(&word.to_ne_bytes(), index * 8).unwrap();
        }
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub fn attribute(&self, group: &str, file: &str) -> String {
        self.read(&format!("sys/kernel/config/soloist/groups/{group}/{file}"))
    }

    pub fn host(&self) -> Host {
        Host::at(self.dir.path())
    }

    pub fn path(&self, path: &str) -> std::path::PathBuf {
        self.dir.path().join(Path::new(path))
    }
}
