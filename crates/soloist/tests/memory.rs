//! Who holds the memory of a group's colours, and moving it, on a made-up machine.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

mod machine;
use machine::{small, soloist, with_real_processes};

const HELD: &str = "\
own 50
groups 0
anon 20
mapped 5
cache 5
kernel 10
listed 6
free 4
pinned 1
unevictable 2
looked 100
one_of 1
took_us 12
";

fn file(machine: &TempDir, name: &str) -> PathBuf {
    let groups = machine.path().join("sys/kernel/config/soloist/groups");
    groups.join("core0").join(name)
}

/// A machine whose module tells who holds what, and can move it.
fn telling() -> TempDir {
    let machine = small();
    fs::write(file(&machine, "occupancy"), HELD).unwrap();
    fs::write(file(&machine, "evict"), "state none\n").unwrap();
    fs::write(file(&machine, "recolor"), "state none\n").unwrap();
    machine
}

/// Standard output and error of a command that ends with `status`.
fn said(machine: &TempDir, args: &[&str], status: i32) -> String {
    let out = soloist(machine.path(), args).output().unwrap();
    let both = [out.stdout, out.stderr].concat();
    let text = String::from_utf8(both).unwrap();
    assert_eq!(out.status.code(), Some(status), "{args:?}: {text}");
    text
}

#[test]
fn group_show_says_who_holds_its_memory() {
    let machine = telling();
    let shown = said(&machine, &["group", "show", "core0"], 0);
    let line = "memory       own 50.0 %, tasks in no group 20.0 %, mapped files 5.0 %, \
                page cache 5.0 %, the kernel 10.0 %, free in lists 6.0 %, free 4.0 %\n";
    assert!(shown.contains(line), "{shown}");
    let json = said(&machine, &["group", "show", "core0", "--json"], 0);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["occupancy"]["anon"], 20);
    assert_eq!(json["occupancy"]["pinned"], 1);
}

#[test]
fn an_older_module_tells_nothing() {
    let machine = small();
    let shown = said(&machine, &["group", "show", "core0"], 0);
    assert!(!shown.contains("\nmemory "), "{shown}");
}

#[test]
fn top_metrics_and_doctor_say_it_too() {
    let machine = telling();
    with_real_processes(&machine);
    let table = said(&machine, &["top", "-n", "1"], 0);
    assert!(
        table.contains("OTHERS") && table.contains("30.0 %"),
        "{table}"
    );
    let metrics = said(&machine, &["metrics"], 0);
    let line = "soloist_group_occupancy{group=\"core0\",holder=\"anon\"} 20\n";
    assert!(metrics.contains(line), "{metrics}");
    let out = soloist(machine.path(), &["doctor"]).output().unwrap();
    let doctor = String::from_utf8(out.stdout).unwrap();
    assert!(
        doctor.contains("30 % of core0's memory is others'"),
        "{doctor}"
    );
    fs::write(file(&machine, "mode"), "shareable\n").unwrap();
    let out = soloist(machine.path(), &["doctor"]).output().unwrap();
    let doctor = String::from_utf8(out.stdout).unwrap();
    assert!(!doctor.contains("exclusive colours"), "{doctor}");
}

#[test]
fn evict_and_recolor_are_one_write_each() {
    let machine = telling();
    said(&machine, &["group", "set", "core0", "--evict"], 0);
    assert_eq!(fs::read_to_string(file(&machine, "evict")).unwrap(), "1\n");
    let args = ["group", "set", "core0", "--evict", "--evict-rate", "1MB/s"];
    said(&machine, &args, 0);
    let written = fs::read_to_string(file(&machine, "evict")).unwrap();
    assert_eq!(written, "1 rate=1000000\n");
    // JSON has what the text says.
    let evicted = said(&machine, &["group", "set", "core0", "--evict", "--json"], 0);
    let evicted: serde_json::Value = serde_json::from_str(&evicted).unwrap();
    assert_eq!(evicted["moved"][0]["whose"], "others in core0");
    assert_eq!(evicted["moved"][0]["dropped"], 0);
    said(&machine, &["recolor", "core0"], 0);
    assert_eq!(
        fs::read_to_string(file(&machine, "recolor")).unwrap(),
        "0\n"
    );
    let args = ["recolor", "core0", "--rate", "1MB/s", "--isolated"];
    said(&machine, &args, 0);
    assert_eq!(
        fs::read_to_string(file(&machine, "recolor")).unwrap(),
        "0 rate=1000000 isolated\n"
    );
    fs::write(file(&machine, "recolor"), "state none\n").unwrap();
    let args = ["group", "set", "core0", "--bank-sets", "3", "--move"];
    said(&machine, &args, 0);
    assert_eq!(
        fs::read_to_string(file(&machine, "recolor")).unwrap(),
        "0\n"
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    let machine = telling();
    with_real_processes(&machine);
    let alone = said(&machine, &["group", "set", "core0", "--move"], 2);
    assert!(alone.contains("--pid"), "{alone}");
    let args = ["group", "set", "core0", "--mode", "shareable", "--isolated"];
    let alone = said(&machine, &args, 2);
    assert!(alone.contains("--move and --evict"), "{alone}");
    said(
        &machine,
        &["group", "set", "core0", "--evict-rate", "1MB/s"],
        2,
    );
    said(
        &machine,
        &["group", "set", "core0", "--evict", "--evict-rate", "0"],
        2,
    );
    let none = said(&machine, &["recolor", "2000000000"], 1);
    assert!(none.contains("there is no process 2000000000"), "{none}");
    let not_in = said(&machine, &["recolor", "1"], 2);
    assert!(not_in.contains("--pid 1 --move"), "{not_in}");
    let unknown = said(&machine, &["recolor", "cor0"], 1);
    assert!(unknown.contains("did you mean \"core0\""), "{unknown}");
}

/// Process 100 of core0 has one page, which is of bank set 2.
fn with_a_process(machine: &TempDir) {
    let put = |name: &str, bytes: &[u8]| {
        let path = machine.path().join("proc/100").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let status = include_str!("../../soloist-host/tests/status.txt");
    put("status", status.as_bytes());
    put("task/100/comm", b"prog\n");
    let smaps = "00400000-00401000 rw-p 00000000 00:00 0   [heap]\nSize:  4 kB\nRss:  4 kB\n";
    put("smaps", smaps.as_bytes());
    has_page(machine, 1 << 63 | 1 << 56 | 0x10);
}

/// The page of process 100, as pagemap tells it.
fn has_page(machine: &TempDir, page: u64) {
    let mut pagemap = vec![0; 0x401 * 8];
    pagemap[0x400 * 8..].copy_from_slice(&page.to_ne_bytes());
    fs::write(machine.path().join("proc/100/pagemap"), &pagemap).unwrap();
}

/// Of a process that is on swap nothing shows where its memory was.
#[test]
fn no_page_in_memory_is_no_page_in_colour() {
    let machine = telling();
    with_a_process(&machine);
    has_page(&machine, 1 << 62);
    let swapped = said(&machine, &["verify", "100", "--strict"], 1);
    assert!(swapped.contains("its own  none in memory"), "{swapped}");
    assert!(!swapped.contains("100.0 %"), "{swapped}");
}

/// Without a group, too, pages are told that the map does not have.
#[test]
fn pages_outside_the_map_are_in_no_bank_set() {
    let machine = telling();
    with_a_process(&machine);
    fs::write(file(&machine, "members"), "").unwrap();
    let inside = said(&machine, &["verify", "100"], 0);
    assert!(
        inside.contains("total 1 pages in 1 bank set, 0 swapped"),
        "{inside}"
    );
    // Of the same name, and not the same.
    let map = machine.path().join("sys/kernel/config/soloist/map");
    let text = fs::read_to_string(&map).unwrap();
    fs::write(&map, text.replace("name small", "name skylake")).unwrap();
    let other = said(&machine, &["verify", "100"], 0);
    assert!(
        other.contains("map skylake, of no machine file that is known"),
        "{other}"
    );
    let known = said(&machine, &["verify", "100", "-m", "skylake"], 0);
    assert!(known.contains("map skylake, which is published"), "{known}");
    fs::write(&map, text).unwrap();
    has_page(&machine, 1 << 63 | 0x10_0000);
    let outside = said(&machine, &["verify", "100"], 0);
    let words = "total 1 pages in 0 bank sets, 1 outside the address map, 0 swapped";
    assert!(outside.contains(words), "{outside}");
}

/// `soloist group list` says "none yet" of it.
#[test]
fn no_page_is_in_the_colours_of_a_group_without_any() {
    let machine = telling();
    with_a_process(&machine);
    let verify = ["verify", "100", "--strict"];
    assert!(said(&machine, &verify, 0).contains("1 of 1 pages in colour"));
    fs::write(file(&machine, "bank_set"), "\n").unwrap();
    for strict in ["--strict", "--strict=banks"] {
        let said = said(&machine, &["verify", "100", strict], 1);
        assert!(said.contains("group core0: no colours yet"), "{said}");
        assert!(!said.contains("in colour"), "{said}");
    }
}

#[test]
fn strict_banks_fails_where_nothing_tells_who_holds_them() {
    let machine = telling();
    with_a_process(&machine);
    let strict = ["verify", "100", "--strict=banks"];
    let alone = "own 50\nfree 50\none_of 1\n";
    fs::write(file(&machine, "occupancy"), alone).unwrap();
    said(&machine, &strict, 0);
    // Of more than 16 GiB the module looks at a part.
    let part = alone.replace("one_of 1", "one_of 4");
    fs::write(file(&machine, "occupancy"), part).unwrap();
    let untold = said(&machine, &strict, 1);
    let words = "can't be seen: none were seen in one stretch of memory in 4";
    assert!(untold.contains(words), "{untold}");
    fs::write(file(&machine, "mode"), "shareable\n").unwrap();
    said(&machine, &strict, 0);
    fs::write(file(&machine, "mode"), "exclusive\n").unwrap();
    fs::remove_file(file(&machine, "occupancy")).unwrap();
    let untold = said(&machine, &strict, 1);
    let words = "whether others hold memory in core0's colours can't be seen";
    assert!(untold.contains(words), "{untold}");
    said(&machine, &["verify", "100", "--strict"], 0);
}

#[test]
fn a_rules_group_is_not_taken_for_one_of_its_name() {
    let machine = telling();
    with_a_process(&machine);
    fs::write(file(&machine, "members"), "").unwrap();
    let soloist = machine.path().join("sys/kernel/config/soloist");
    let implicit = "group 3 2-3 any 12 2 core0\ntask 100 3\n";
    fs::write(soloist.join("implicit"), implicit).unwrap();
    let untold = said(&machine, &["verify", "100", "--strict=banks"], 1);
    assert!(untold.contains("group core0#3: bank sets 2-3"), "{untold}");
    assert!(!untold.contains("memory of core0"), "{untold}");
    let words = "whether others hold memory in core0#3's colours can't be seen";
    assert!(untold.contains(words), "{untold}");
}

#[test]
fn colours_by_hand_have_no_holders() {
    let machine = telling();
    with_a_process(&machine);
    let by_hand = ["verify", "100", "--bank-sets", "2-3"];
    said(&machine, &[&by_hand[..], &["--strict"]].concat(), 0);
    let banks = said(&machine, &[&by_hand[..], &["--strict=banks"]].concat(), 2);
    assert!(banks.contains("leave --bank-sets and --llc out"), "{banks}");
}
