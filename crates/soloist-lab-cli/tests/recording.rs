//! Recordings, made of a trace, that are not whole.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn soloist(dir: &Path, words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist-lab"));
    let command = command.args(words.split(' ')).current_dir(dir);
    command.output().unwrap()
}

/// Makes `rec` in `dir`, of two programs that do the same, on a CPU each.
fn make(dir: &Path) {
    let line = |i: u64| format!("{:#x} READ {}\n", i * 448 % (1 << 22), i * 10);
    let trace: String = (0..20_000).map(line).collect();
    fs::write(dir.join("trace"), &trace).unwrap();
    fs::write(dir.join("same"), trace).unwrap();
    let made = soloist(dir, "sim import --format dramsim3 -o rec trace same");
    assert!(made.status.success(), "{made:?}");
    let about = dir.join("rec/recording.json");
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&about).unwrap()).unwrap();
    let mut program = json["programs"][0].clone();
    json["programs"][0]["cpus"] = serde_json::json!([0]);
    program["cpus"] = serde_json::json!([1]);
    json["programs"].as_array_mut().unwrap().push(program);
    json["threads"][1]["program"] = 1.into();
    fs::write(&about, json.to_string()).unwrap();
}

#[test]
fn a_cut_recording_is_told_by_all_that_read_it() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let stream = dir.path().join("rec/cpu-0.rec");
    let about = dir.path().join("rec/recording.json");
    let (whole, told_of) = (fs::read(&stream).unwrap(), fs::read(&about).unwrap());
    // Of a second frame there is only the beginning.
    fs::write(&stream, [whole.as_slice(), b"SRFR"].concat()).unwrap();
    let mut json: serde_json::Value = serde_json::from_slice(&told_of).unwrap();
    json["streams"][0]["bytes"] = (whole.len() + 1000).into();
    fs::write(&about, json.to_string()).unwrap();
    // Each prints what is left, and where: the figures are not the recording's.
    for (words, place) in [
        ("sim replay --json rec", "/damage"),
        ("sim profile --json rec", "/0/damage"),
        ("sim profile --json --pages rec", "/damage"),
        ("sim export rec", ""),
        ("compare --json --recorded rec --lines 1000", "/damage"),
        (
            "sim replay --on-silicon --simulate haswell --blocks 20 --lines 4000 --machine \
             sapphire-rapids-slice --json rec -- write",
            "/damage",
        ),
    ] {
        let ended = soloist(dir.path(), words);
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{words}: {said}");
        let told = "cpu-0.rec: damaged at byte";
        assert!(said.contains(told), "{words}: {said}");
        if place.is_empty() {
            assert!(!ended.stdout.is_empty(), "{words}");
            continue;
        }
        let json: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
        let damage = json.pointer(place).unwrap().as_array().unwrap();
        assert_eq!(damage.len(), 1, "{words}: {json}");
        assert!(damage[0].as_str().unwrap().contains(told), "{words}");
    }
    // Of a stream without a frame there is nothing to print.
    fs::write(&stream, &whole[..16]).unwrap();
    for words in ["sim replay rec", "sim profile --json rec", "sim export rec"] {
        let ended = soloist(dir.path(), words);
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{words}: {said}");
        assert!(said.contains("has no lines here"), "{words}: {said}");
        assert!(ended.stdout.is_empty(), "{words}");
    }
    fs::write(&stream, &whole).unwrap();
    fs::write(&about, &told_of).unwrap();
    let healthy = soloist(dir.path(), "sim profile --json rec");
    assert!(healthy.status.success(), "{healthy:?}");
    let json: serde_json::Value = serde_json::from_slice(&healthy.stdout).unwrap();
    assert_eq!(json.pointer("/1/damage"), Some(&serde_json::json!([])));
}

/// Where nothing is placed anew, or nobody runs beside it, some options would do nothing.
#[test]
fn a_replay_takes_no_option_that_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    make(path);
    fs::write(path.join("trace"), "0x40 READ 0\n").unwrap();
    assert!(soloist(path, "sim import --format dramsim3 -o one trace")
        .status
        .success());
    for (words, said) in [
        ("rec --fresh", "--fresh is for pages that are placed anew"),
        ("rec --sets 4", "--sets is for pages that are placed anew"),
        (
            "rec --seeds 2 --recolor recorded",
            "--seeds is for pages that are placed anew",
        ),
        ("one --blame", "--blame: the foreground is alone"),
        (
            "one --bandwidth 500MB/s",
            "--bandwidth: the foreground is alone",
        ),
        (
            "rec --recolor buddy,memguard --bandwidth 500MB/s",
            "--bandwidth: memguard regulates by itself",
        ),
        ("rec --bandwidth fast", "`fast` is no rate"),
        ("rec --period 100", "--bandwidth"),
    ] {
        let refused = soloist(path, &format!("sim replay {words}"));
        let stderr = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{words}: {stderr}");
        assert!(stderr.contains(said), "{words}: {stderr}");
    }
    for words in [
        "rec --lines 50 --blame",
        "one --fresh --sets 2 --seeds 2 --recolor recorded,buddy",
    ] {
        let played = soloist(path, &format!("sim replay {words}"));
        assert!(played.status.success(), "{words}: {played:?}");
    }
    let many = "sim replay one one one one one --recolor buddy -m raspberry-pi-4";
    let said = String::from_utf8(soloist(path, many).stderr).unwrap();
    let why = "5 programs need 5 cores, and the machine has 4";
    assert!(said.contains(why), "{said}");
}

#[test]
fn a_full_disk_and_a_file_in_the_way_are_named() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist-lab"));
    command
        .args(["sim", "export", "rec"])
        .current_dir(dir.path());
    let ended = command.stdout(full).output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(
        said.contains("soloist: standard output: No space"),
        "{said}"
    );
    for (words, option) in [
        ("sim import --format dramsim3 -o same trace", "--out"),
        ("sim replay rec --export same", "--export"),
    ] {
        let refused = soloist(dir.path(), words);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(
            said.contains(&format!("{option}: same is no directory")),
            "{said}"
        );
    }
}

/// A recording is a directory: one named `-` nobody would look for.
#[test]
fn standard_output_takes_no_recording() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("trace"), "0x40 READ 0\n").unwrap();
    for words in [
        "sim import --format dramsim3 -o - trace",
        "vm record -o - -- true",
    ] {
        let refused = soloist(dir.path(), words);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{words}: {said}");
        assert!(
            said.contains("a recording is a directory"),
            "{words}: {said}"
        );
    }
    assert!(!dir.path().join("-").exists());
}

/// Rules that nothing was checked by are kept by nobody.
#[test]
fn a_trace_without_requests_is_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("empty"), "").unwrap();
    fs::write(dir.path().join("one"), "0x40 READ 0\n").unwrap();
    let trace = |files: &str| {
        soloist(
            dir.path(),
            &format!("sim trace --check -m ddr3-1600k {files}"),
        )
    };
    let refused = trace("empty");
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("empty: no requests"), "{stderr}");
    assert!(refused.stdout.is_empty());
    assert!(trace("empty one").status.success());
}

/// Lines that the last level never had do not come back from it, nor are changes that it keeps
/// written back.
#[test]
fn a_replay_says_that_the_last_level_begins_empty() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let played = soloist(
        dir.path(),
        "sim replay rec --lines 2000 --recolor buddy -m skylake",
    );
    assert!(played.status.success(), "{played:?}");
    let said = String::from_utf8(played.stdout).unwrap();
    let words = "The last-level cache begins empty and holds 131072 lines; trace asks it for 2000.";
    assert!(said.contains(words), "{said}");
}

/// Few lines of the foreground are asked for; the others go on to more than the last-level cache
/// holds, and do not go round in it.
#[test]
fn few_lines_leave_the_others_beyond_the_last_level() {
    let dir = tempfile::tempdir().unwrap();
    for (name, gap) in [("slow", 400), ("fast", 1)] {
        let line = |i: u64| format!("{:#x} READ {}\n", i << 6, i * gap);
        let trace: String = (0..20_000).map(line).collect();
        fs::write(dir.path().join("trace"), trace).unwrap();
        let import = format!("sim import --format dramsim3 -o {name} trace");
        let made = soloist(dir.path(), &import);
        assert!(made.status.success(), "{made:?}");
    }
    let replay = "sim replay slow fast --recolor buddy --lines 2000 --json";
    let played = soloist(dir.path(), replay);
    assert!(played.status.success(), "{played:?}");
    let json: serde_json::Value = serde_json::from_slice(&played.stdout).unwrap();
    let runs = json["runs"].as_array().unwrap();
    let beside = runs.iter().find(|run| run["programs"] == 2).unwrap();
    let misses = |part: usize| beside["played"][part]["llc_misses"].as_u64().unwrap();
    assert_eq!(misses(0), 2000, "{beside}");
    assert!(misses(1) > 10_000, "{beside}");
}

/// Another simulator can play the export: every line has kind, dependence and the address where
/// the policy put it.
#[test]
fn what_is_played_is_exported_where_a_policy_placed_it() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["one", "two"] {
        let line = |i: u64| format!("{:#x} READ {}\n", i << 6, i * 10);
        let trace: String = (0..2000).map(line).collect();
        fs::write(dir.path().join("trace"), trace).unwrap();
        let import = format!("sim import --format dramsim3 -o {name} trace");
        assert!(soloist(dir.path(), &import).status.success());
    }
    let played = soloist(
        dir.path(),
        "sim replay one two --recolor diff_bank,buddy --export out",
    );
    assert!(played.status.success(), "{played:?}");
    // Bits 15 to 18 of this machine's addresses choose rank and bank.
    let sets = |program: &str| {
        let file = format!("out/diff_bank-seed-1-program-{program}.txt");
        let text = fs::read_to_string(dir.path().join(file)).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines.len(), 2000);
        let set = |line: &&str| {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!((words.len(), words[0], words[1]), (4, "L", "-"), "{line}");
            assert!(words[2].parse::<u32>().is_ok(), "{line}");
            let addr = words[3].strip_prefix("0x").unwrap();
            u64::from_str_radix(addr, 16).unwrap() >> 15 & 15
        };
        lines.iter().map(set).collect::<HashSet<u64>>()
    };
    let (one, two) = (sets("0-core-0"), sets("1-core-1"));
    assert_eq!((one.len(), two.len()), (1, 1));
    assert!(one.is_disjoint(&two));
    assert!(dir
        .path()
        .join("out/buddy-seed-1-program-1-core-1.txt")
        .exists());
}

/// On simulated memory whose banks cost something private banks save it; wrong words end
/// with 2 and say what would be right.
#[test]
fn a_recording_plays_on_silicon_beside_neighbours() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let simulated =
        "sim replay --on-silicon --simulate haswell --same-bank 400 --blocks 20 --lines 4000 \
                     --machine sapphire-rapids-slice --json rec -- write write";
    let played = soloist(dir.path(), simulated);
    assert!(played.status.success(), "{played:?}");
    let json: serde_json::Value = serde_json::from_slice(&played.stdout).unwrap();
    assert_eq!(json["is_modelled"], false, "another machine's timing");
    let rows = json["rows"].as_array().unwrap();
    let slowdown = |at: usize| rows[at]["silicon"]["slowdown"]["median"].as_f64().unwrap();
    assert_eq!(
        (&rows[0]["placement"], &rows[1]["placement"]),
        (&"buddy".into(), &"diff_bank".into())
    );
    assert!(slowdown(0) > slowdown(1) + 0.2, "{json}");
    assert_eq!(rows[1]["silicon"]["saves"]["shown"], true, "{json}");
    assert!(
        rows[0]["model"]["slowdown"].as_f64().unwrap() > 1.0,
        "{json}"
    );
    for (words, said) in [
        ("--on-silicon rec", "needs co-runners"),
        ("rec -- write", "co-runners of --on-silicon"),
        ("--on-silicon rec -- shout", "not read, write or both"),
        (
            "--on-silicon --recolor recorded rec -- read",
            "name policies",
        ),
        ("--banks 16 rec", "--on-silicon"),
        ("--on-silicon --cpus 999 rec -- read", "there is no CPU 999"),
        ("--on-silicon --cpus 0 rec -- read", "need as many CPUs"),
        ("--on-silicon --memory 1 rec -- read", "4M or more"),
        (
            "--on-silicon --simulate nobody rec -- read",
            "--simulate: nobody",
        ),
        (
            "--on-silicon --simulate haswell --same-bank nan rec -- read",
            "a number from 0",
        ),
        (
            "--on-silicon --simulate haswell --cpus 0 rec -- read",
            "cannot be used with",
        ),
        (
            "--on-silicon --machine nobody rec -- read",
            "--machine: nobody",
        ),
    ] {
        let refused = soloist(dir.path(), &format!("sim replay {words}"));
        let stderr = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{words}: {stderr}");
        assert!(stderr.contains(said), "{words}: {stderr}");
    }
}

/// Each rate has a row behind that of its placement, beside the same time alone.
#[test]
fn a_replay_holds_co_runners_to_each_rate() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let words = "sim replay rec --recolor buddy,diff_bank --lines 4000 --bandwidth 500MB/s,20MB/s \
                 --period 100";
    let said = soloist(dir.path(), &format!("{words} --json"));
    assert!(said.status.success(), "{said:?}");
    let json: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let number = |row: &serde_json::Value, key: &str| row[key].as_f64().unwrap();
    for (rows, placement) in rows.chunks(3).zip(["buddy", "diff_bank"]) {
        let rates = rows
            .iter()
            .map(|row| row.pointer("/limit/bytes_per_second"));
        let rates: Vec<_> = rates
            .map(|rate| rate.and_then(|rate| rate.as_u64()))
            .collect();
        assert_eq!(rates, [None, Some(500_000_000), Some(20_000_000)]);
        assert!(
            rows.iter().all(|row| row["placement"] == placement),
            "{json}"
        );
        assert_eq!(rows[0]["alone_ms"], rows[2]["alone_ms"]);
        let slowdown = |row: usize| number(&rows[row], "slowdown");
        assert!(
            slowdown(2) < slowdown(1) && slowdown(1) <= slowdown(0),
            "{json}"
        );
        assert!(number(&rows[2], "others_gb_s") < 0.1, "{json}");
    }
    let said = soloist(dir.path(), words);
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(text.contains("diff_bank, 20 MB/s each"), "{text}");
}

/// `numactl` stands in the table where a node is free, and is told to be missing elsewhere.
#[test]
fn compare_offers_a_free_node_where_there_is_one() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let compare = |words: &str| {
        let words = format!("compare --recorded rec --json --policies diff_bank {words}");
        let said = soloist(dir.path(), &words);
        assert!(said.status.success(), "{said:?}");
        let json: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
        let text = |v: &serde_json::Value| v.as_str().unwrap().to_owned();
        let conditions = json["conditions"].as_array().unwrap();
        let names = conditions.iter().map(|c| text(&c["name"]));
        let notes = json["notes"].as_array().unwrap().iter().map(text);
        (names.collect::<Vec<_>>(), notes.collect::<Vec<_>>())
    };
    let (names, notes) = compare("--lines 500");
    let wanted = [
        "alone",
        "beside 3, Linux",
        "beside 3, Linux (numactl -N 1)",
        "beside 3, Soloist (diff_bank)",
    ];
    assert_eq!(names, wanted);
    assert!(notes[1].contains("500 of "), "{notes:?}");
    // Beside nobody the placements still differ.
    let (names, _) = compare("--lines 500 --machine skylake --neighbours 0");
    let wanted = ["alone", "beside 0, Linux", "beside 0, Soloist (diff_bank)"];
    assert_eq!(names, wanted);
    let unknown = soloist(dir.path(), "compare --recorded rec --machine nobody");
    let stderr = String::from_utf8(unknown.stderr).unwrap();
    assert_eq!(unknown.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("--machine: nobody"), "{stderr}");
    let (names, notes) = compare("--lines 500 --machine skylake");
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(notes[2].contains("one node"), "{notes:?}");
}

/// A recording was made behind one machine's caches: without `-m` it is played on that one.
#[test]
fn compare_plays_a_recording_on_its_own_machine() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let about = dir.path().join("rec/recording.json");
    let text = fs::read_to_string(&about).unwrap();
    fs::write(&about, text.replace("opteron-6128", "raspberry-pi-4")).unwrap();
    let words = "compare --recorded rec --policies diff_bank --sets 2 --lines 500";
    let said = soloist(dir.path(), words);
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(text.contains("a model of raspberry-pi-4;"), "{text}");
    // Five seeds alone, on Linux and in private banks.
    let stderr = String::from_utf8(said.stderr).unwrap();
    assert!(stderr.contains("plays 15 runs: some "), "{stderr}");
    let quiet = soloist(dir.path(), &format!("{words} --json"));
    let stderr = String::from_utf8(quiet.stderr).unwrap();
    assert!(!stderr.contains("some "), "{stderr}");
}
