//! `soloist advise`, and the warnings where colours isolate little.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Output;

use soloist_machine::known;

mod machine;

use machine::{small, soloist};

fn text(out: &Output) -> String {
    String::from_utf8(out.stdout.clone()).unwrap()
}

fn said(out: &Output) -> String {
    String::from_utf8(out.stderr.clone()).unwrap()
}

/// What a simulated machine measured is what the advice is made of.
#[test]
fn advice_follows_a_measurement_in_a_file() {
    let machine = small();
    let root = machine.path();
    let bench = |extra: &[&str]| {
        let args = [
            &[
                "bench",
                "silicon",
                "--simulate",
                "raspberry-pi-4",
                "--blocks",
                "20",
            ][..],
            extra,
        ];
        soloist(root, &args.concat()).output().unwrap()
    };
    for (ns, answer) in [("600", "Colour banks here"), ("0", "")] {
        let out = bench(&["--only", "slices", "--same-bank", ns, "--json"]);
        assert!(out.status.success(), "{}", said(&out));
        let file = root.join("here.json");
        fs::write(&file, &out.stdout).unwrap();
        let file = file.display().to_string();
        let of_it = ["advise", "--from", &file, "--machine", "raspberry-pi-4"];
        // It is of no machine but the one that was simulated.
        for other in [
            &of_it[..3],
            &["advise", "--from", &file, "--machine", "skylake"],
        ] {
            let out = soloist(root, other).output().unwrap();
            assert_eq!(out.status.code(), Some(2), "{}", text(&out));
            assert!(
                said(&out).contains("of raspberry-pi-4, simulated"),
                "{}",
                said(&out)
            );
        }
        let out = soloist(root, &of_it).output().unwrap();
        assert!(out.status.success(), "{}", said(&out));
        assert!(
            text(&out).contains("Of raspberry-pi-4, simulated"),
            "{}",
            text(&out)
        );
        let colors = text(&out).contains("\nColour banks here");
        assert_eq!(colors, !answer.is_empty(), "{ns} ns: {}", text(&out));
        let out = soloist(root, &[&of_it[..], &["--json"]].concat());
        let out = { out }.output().unwrap();
        let page: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(page["measured"], true);
        assert_eq!(page["simulated"], "raspberry-pi-4");
        assert!(page["answer"].as_str().unwrap().starts_with(answer));
    }
    // Co-runners need a CPU each, and what was not measured shows nothing, not "no effect".
    let out = bench(&["--only", "slices", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let cells = report["slices"]["cells"].as_array().unwrap();
    let few = |cell: &serde_json::Value| matches!(cell["neighbours"].as_u64(), Some(1..=3));
    assert!(!cells.is_empty() && cells.iter().all(few), "{report}");
    assert_eq!(report.get("shown"), None);
    let of_one = ["bench", "silicon", "--simulate", "ddr3-1600k"];
    let out = soloist(root, &of_one).output().unwrap();
    assert_eq!(out.status.code(), Some(1), "{}", said(&out));
    assert!(text(&out).contains("no second CPU"), "{}", text(&out));
    // Of two banks alone nothing follows.
    let out = bench(&["--only", "two-banks", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(report["shown"].is_boolean(), "{report}");
    let file = root.join("two.json");
    fs::write(&file, &out.stdout).unwrap();
    let out = soloist(root, &["advise", "--from", &file.display().to_string()]);
    let out = { out }.output().unwrap();
    assert_eq!(out.status.code(), Some(2), "{}", said(&out));
    assert!(said(&out).contains("no slices"), "{}", said(&out));
    let out = bench(&["--only", "pages", "--cache-bits", "0x"]);
    assert_eq!(out.status.code(), Some(2), "{}", said(&out));
    assert!(said(&out).contains("such as 0x4000"), "{}", said(&out));
    // Whole pages say which address bit divides the cache, and that no other does.
    for (mask, divides) in [("0x4000", true), ("0", false)] {
        let args = [
            "--only",
            "pages",
            "--same-bank",
            "0",
            "--cache-bits",
            mask,
            "--cache",
            "512K",
            "--json",
        ];
        let out = bench(&args);
        let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let pages = report["pages"].as_array().unwrap();
        let mut inside = pages.iter().filter(|split| split["size"] == "inside");
        assert_eq!(inside.next().unwrap()["bytes"], 128 << 10, "{report}");
        let colors = report["cache"]["classes"].as_f64().unwrap();
        let holds = report["cache"]["held"].as_u64() > Some(4);
        assert_eq!(holds && (1.5..2.6).contains(&colors), divides, "{report}");
        let splits = report["pages"].as_array().unwrap();
        let shown = splits
            .iter()
            .filter(|split| split["saved"]["shown"] == true);
        let by_bit_14 = |split: &&serde_json::Value| split["by"]["bits"][0] == 14;
        assert_eq!(shown.clone().any(|split| by_bit_14(&split)), divides);
        assert!(divides || shown.count() == 0, "{report}");
    }
}

/// A count of the cache's page colours decides what is said of them, with slices and alone.
#[test]
fn advice_on_cache_colours_follows_their_count() {
    let machine = small();
    let root = machine.path();
    let file = root.join("pages.json").display().to_string();
    for (mask, isolates) in [("0x4000", true), ("0", false)] {
        let words = format!(
            "bench silicon --simulate haswell --blocks 20 --only pages --same-bank 0 --cache 512K \
             --cache-bits {mask} --json"
        );
        let args: Vec<&str> = words.split_whitespace().collect();
        let out = soloist(root, &args).output().unwrap();
        assert!(out.status.success(), "{}", said(&out));
        fs::write(&file, &out.stdout).unwrap();
        let of_it = ["advise", "--from", &file, "--machine", "haswell"];
        let out = soloist(root, &of_it).output().unwrap();
        assert!(out.status.success(), "{}", said(&out));
        let nothing = text(&out).contains("Cache colours isolate nothing here");
        assert_eq!(nothing, !isolates, "{mask}: {}", text(&out));
        let out = soloist(root, &[&of_it[..], &["--json"]].concat());
        let out = { out }.output().unwrap();
        let page: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(page["measured"], true);
        let colors = page["cache"]["classes"].as_f64().unwrap();
        assert_eq!((1.5..2.6).contains(&colors), isolates, "{page}");
        let items = page["items"].as_array().unwrap();
        let mut of_cache = items.iter().filter(|item| item["name"] == "cache colours");
        let item = of_cache.next().unwrap();
        let worth = item["worth"].as_f64().unwrap_or(0.0);
        assert_eq!(worth > 0.1, isolates, "{item}");
        // The same experiment twice, and figures of another machine.
        for other in [
            &[
                "advise",
                "--from",
                &file,
                "--from",
                &file,
                "--machine",
                "haswell",
            ][..],
            &of_it[..3],
        ] {
            let out = soloist(root, other).output().unwrap();
            assert_eq!(out.status.code(), Some(2), "{}", said(&out));
        }
    }
}

/// Without a flag all experiments run: another channel and whole pages by bank colours, beside
/// readers and writers. Where no functions are found pages have none.
#[test]
fn the_usual_run_has_channels_and_whole_pages() {
    let machine = small();
    let bench = |words: &str| {
        let words = format!("bench silicon --blocks 20 --seconds 1 --simulate {words}");
        let args: Vec<&str> = words.split(' ').collect();
        soloist(machine.path(), &args).output().unwrap()
    };
    let out = bench("haswell --same-bank 300 --same-channel 30 --json");
    assert!(out.status.success(), "{}", said(&out));
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(report["measured"].is_object(), "{report}");
    for (of, count) in [
        (&report["slices"]["channels"]["sides"], 2),
        (&report["pages"], 4),
    ] {
        let of = of.as_array().unwrap();
        assert_eq!(of.len(), count, "{report}");
        for attack in ["read", "write"] {
            let with = of.iter().filter(|one| one["attack"] == attack);
            assert_eq!(with.count(), count / 2, "{report}");
        }
        assert!(
            of.iter().all(|one| one["saved"]["shown"] == true),
            "{report}"
        );
    }
    assert!(
        report["pages"][0]["spread"]["p999_ns"].is_number(),
        "{report}"
    );
    let out = bench("haswell --same-bank 300 --same-channel 30");
    let page = text(&out);
    for words in [
        "OTHER SIDE",
        "PAGES BY",
        "by bank colours, one beyond it, 3 writers",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let out = bench("sapphire-rapids --json");
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let why = report["pages_why"].as_str().unwrap();
    assert!(why.contains("nor bank colours are known"), "{report}");
}

#[test]
fn advice_without_a_measurement_claims_nothing() {
    let machine = small();
    let out = soloist(machine.path(), &["advise"]).output().unwrap();
    assert!(out.status.success());
    let page = text(&out);
    assert!(page.starts_with("Nothing was measured here"), "{page}");
    assert!(!page.contains("saves"), "{page}");
    for args in [
        &["advise", "--from", "/no/such/file"][..],
        &["advise", "--from", "/etc/passwd"],
        &["advise", "--measure", "--from", "x"],
        &["advise", "--cpus", "0"],
        &["advise", "--cpus", "0", "--from", "x"],
        &["advise", "--machine", "no-such"],
    ] {
        let out = soloist(machine.path(), args).output().unwrap();
        assert!(!out.status.success(), "{args:?}");
        assert!(!said(&out).contains("panicked"), "{args:?}: {}", said(&out));
    }
}

/// As of a file from before pages were divided by classes.
#[test]
fn figures_of_another_version_are_measured_again() {
    let machine = small();
    let file = machine.path().join("old.json");
    let split = r#"{"bits":[14],"size":"inside","bytes":4096,"spread_ns":9.0,"private_ns":8.0}"#;
    let advise = |text: &str| {
        fs::write(&file, text).unwrap();
        let args = ["advise", "--from", &file.display().to_string()];
        let out = soloist(machine.path(), &args).output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{out:?}");
        said(&out)
    };
    let old = format!(r#"{{"machine":"x","pages":[{split}],"slices_why":"none"}}"#);
    let why = advise(&old);
    assert!(why.contains("an older soloist wrote it"), "{why}");
    assert!(why.contains("measure again"), "{why}");
    let why = advise(&old.replacen('{', r#"{"soloist":"9.9.9","#, 1));
    assert!(why.contains("soloist 9.9.9 wrote it"), "{why}");
    // What is no measurement stays that, and one that ends early too.
    let why = advise(&old[..old.len() - 9]);
    assert!(
        why.contains("not what `soloist bench silicon --json` writes"),
        "{why}"
    );
    let why = advise(r#"{"slices":1}"#);
    assert!(
        why.contains("not what `soloist bench silicon --json` writes"),
        "{why}"
    );
}

/// A user who measured in vain is not told to measure.
#[test]
fn advice_after_a_measurement_in_vain_says_why() {
    let machine = small();
    let file = machine.path().join("nothing.json");
    fs::write(&file, r#"{"slices_why":"too few pages conflict"}"#).unwrap();
    let file = file.display().to_string();
    let out = soloist(machine.path(), &["advise", "--from", &file]);
    let page = text(&{ out }.output().unwrap());
    assert!(page.starts_with("Nothing could be measured here"), "{page}");
    assert!(page.contains("too few pages conflict"), "{page}");
    assert!(!page.contains("--measure"), "{page}");
}

#[test]
fn a_picture_is_drawn_and_a_bad_place_for_it_is_told() {
    let machine = small();
    let svg = machine.path().join("banks.svg").display().to_string();
    let args = |file| {
        [
            "bench",
            "silicon",
            "--simulate",
            "raspberry-pi-4",
            "--only",
            "slices",
            "--blocks",
            "20",
            "--svg",
            file,
        ]
    };
    let out = soloist(machine.path(), &args(&svg)).output().unwrap();
    assert!(out.status.success(), "{}", said(&out));
    assert!(fs::read_to_string(&svg).unwrap().starts_with("<svg"));
    assert!(
        text(&out).contains("8 banks, 3 readers: "),
        "{}",
        text(&out)
    );
    let out = soloist(machine.path(), &args("/no/such/dir/x.svg"))
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2), "{}", said(&out));
    assert!(said(&out).contains("/no/such/dir"), "{}", said(&out));
    // A place that fails only when it is written to loses no figure.
    let out = soloist(machine.path(), &args("/dev/full"))
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(1), "{}", said(&out));
    assert!(
        text(&out).contains("8 banks, 3 readers: "),
        "{}",
        text(&out)
    );
    assert!(said(&out).contains("/dev/full"), "{}", said(&out));
}

/// Fifteen co-runners take part at most, however many CPUs the machine has.
#[test]
fn a_simulated_machine_has_all_its_processors() {
    let machine = small();
    let file = machine.path().join("here.json").display().to_string();
    let words =
        "bench silicon --simulate sapphire-rapids --only slices --blocks 20 --seconds 1 --json";
    let args: Vec<&str> = words.split(' ').collect();
    let out = soloist(machine.path(), &args).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(report["slices"]["processors"], 16, "{report}");
    assert_eq!(report["slices"]["machine_processors"], 32, "{report}");
    fs::write(&file, &out.stdout).unwrap();
    let args = ["advise", "--from", &file, "--machine", "sapphire-rapids"];
    let out = soloist(machine.path(), &args).output().unwrap();
    let page = text(&out);
    assert!(page.contains("of 32 CPUs busy"), "{page}");
    assert!(page.contains("cache ways (CAT): not known"), "{page}");
    assert!(!page.contains("This processor has none"), "{page}");
}

/// That it could not be measured elsewhere says nothing here.
#[test]
fn another_machines_failure_is_not_taken_for_this_ones() {
    let machine = small();
    let file = machine.path().join("nothing.json");
    for of in ["haswell, simulated", "VAX-11/780"] {
        let content = format!(r#"{{"machine":"{of}","slices_why":"too few pages conflict"}}"#);
        fs::write(&file, content).unwrap();
        let args = ["advise", "--from", &file.display().to_string()];
        let out = soloist(machine.path(), &args).output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{of}: {}", text(&out));
        let of = of.split(',').next().unwrap();
        assert!(said(&out).contains(of), "{}", said(&out));
    }
}

/// What an emulator's memory takes says nothing, so nobody waits for it.
#[test]
fn an_emulated_processor_is_not_measured() {
    let machine = small();
    fs::create_dir_all(machine.path().join("proc")).unwrap();
    let max = "CPU implementer\t: 0x00\nCPU part\t: 0x051\n";
    fs::write(machine.path().join("proc/cpuinfo"), max).unwrap();
    let out = soloist(machine.path(), &["bench", "silicon"])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(1), "{}", text(&out));
    assert_eq!(text(&out).matches("Nothing can be measured: ").count(), 1);
    assert!(text(&out).contains("is emulated"), "{}", text(&out));
    let out = soloist(machine.path(), &["bench", "silicon", "--json"]);
    let out = { out }.output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    for why in ["why", "slices_why", "pages_why"] {
        assert!(
            report[why].as_str().unwrap().contains("emulated"),
            "{report}"
        );
    }
}

/// Told, not left out.
#[test]
fn more_processors_than_take_part_are_misuse() {
    let machine = small();
    let cpu = machine.path().join("sys/devices/system/cpu");
    fs::create_dir_all(&cpu).unwrap();
    fs::write(cpu.join("online"), "0-31\n").unwrap();
    let args = ["bench", "silicon", "--cpus", "0-16"];
    let out = soloist(machine.path(), &args).output().unwrap();
    assert_eq!(out.status.code(), Some(2), "{}", said(&out));
    assert!(
        said(&out).contains("17 CPUs, and at most 16"),
        "{}",
        said(&out)
    );
}

/// Runs what colours on a machine that has the map of the file `NAME.toml` in `folder`: what `run`,
/// `rule add` and `up` say, each without and with `--json`.
fn warned(folder: &Path, name: &str) -> Vec<(&'static str, String, String)> {
    let machine = small();
    let root = machine.path();
    let file = folder.join(format!("{name}.toml")).display().to_string();
    let map = known::find(&file).unwrap().addr_map().to_string();
    fs::write(root.join("sys/kernel/config/soloist/map"), map).unwrap();
    fs::create_dir_all(root.join("sys/module/soloist")).unwrap();
    let said_by = |args: &[&str]| {
        let out = soloist(root, args).env("SOLOIST_MACHINES", folder).output();
        said(&out.unwrap())
    };
    // A rule's files are the kernel's to make, so no rule comes of it here.
    let commands = [
        ("run", vec!["run", "--group", "core0", "--", "true"]),
        ("rule", vec!["rule", "add", "more", "--path", "/x"]),
        ("up", vec!["up", "--force", "--machine", &file]),
    ];
    let of = |(what, args): (&'static str, Vec<&str>)| {
        let json = [&["--json"], &args[..]].concat();
        (what, said_by(&args), said_by(&json))
    };
    commands.into_iter().map(of).collect()
}

/// Sixteen channels in each page: said by `run`,
/// `rule add` and `up`, not in JSON.
#[test]
fn colors_that_isolate_little_are_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let text = known::text("sapphire-rapids").unwrap();
    fs::write(folder.path().join("sapphire-rapids.toml"), text).unwrap();
    for (what, said, json) in warned(folder.path(), "sapphire-rapids") {
        assert!(said.contains("on 16 channels"), "{what}: {said}");
        assert!(!json.contains("16 channels"), "{what}: {json}");
        let in_short = said.contains("these colours isolate little");
        assert_eq!(in_short, what != "up", "{what}: {said}");
    }
    let text = known::text("raspberry-pi-4").unwrap();
    fs::write(folder.path().join("raspberry-pi-4.toml"), text).unwrap();
    for (what, said, _) in warned(folder.path(), "raspberry-pi-4") {
        assert!(!said.contains("isolate little"), "{what}: {said}");
        assert!(!said.contains("divide nothing"), "{what}: {said}");
    }
}

/// A map has cache colours, and its machine's file says that the cache hashes its sets.
#[test]
fn cache_colours_of_a_hashed_cache_are_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let text = known::text("opteron-6128").unwrap();
    let l3 = r#"l3 = { size = "6M", ways = 48, shared_by = 4"#;
    for (hashed, is_warned) in [("", false), (", hashed = true", true)] {
        let text = text.replacen(l3, &format!("{l3}{hashed}"), 1);
        fs::write(folder.path().join("opteron-6128.toml"), text).unwrap();
        for (what, said, json) in warned(folder.path(), "opteron-6128") {
            let words = "the map's 32 cache colours divide nothing";
            assert_eq!(said.contains(words), is_warned, "{what}: {said}");
            assert!(!json.contains(words), "{what}: {json}");
        }
    }
    // `advise` does not sell them either.
    let machine = small();
    let out = soloist(machine.path(), &["advise", "--machine", "opteron-6128"])
        .env("SOLOIST_MACHINES", folder.path())
        .output()
        .unwrap();
    let page = text_of_item(&out, "cache colours");
    assert!(page.contains("not here"), "{page}");
    assert!(page.contains("divide nothing"), "{page}");
}

/// The lines of one item on a page of advice.
fn text_of_item(out: &Output, name: &str) -> String {
    let page = text(out);
    let mut items = page.split("\n\n");
    let has = |item: &&str| item.lines().next().is_some_and(|head| head.contains(name));
    items.find(has).unwrap_or_default().to_owned()
}

/// A processor's cache ways and bandwidth limit have figures of the model, which says so.
#[test]
fn what_is_modelled_says_so() {
    let machine = small();
    fs::create_dir_all(machine.path().join("proc")).unwrap();
    let flags = "flags\t\t: fpu cat_l3 mba\n";
    fs::write(machine.path().join("proc/cpuinfo"), flags).unwrap();
    let out = soloist(machine.path(), &["advise"]).output().unwrap();
    for name in ["cache ways (CAT)", "bandwidth throttling (MBA)"] {
        let item = text_of_item(&out, name);
        assert!(item.contains(": modelled: takes "), "{item}");
        assert!(item.contains("Modelled, not measured here"), "{item}");
        assert!(item.contains("Skylake, Haswell and Zen 2"), "{item}");
    }
    // Ranked behind nothing that was measured, before what nobody knows.
    let page = text(&out);
    let place = |name| page.find(name).unwrap();
    assert!(place("throttling (MBA)") < place("private banks"), "{page}");
}

/// Before anything is measured.
#[test]
fn a_processor_that_is_not_there_is_misuse() {
    let machine = small();
    let args = ["bench", "silicon", "--cpus", "0,1000"];
    let out = soloist(machine.path(), &args).output().unwrap();
    assert_eq!(out.status.code(), Some(2), "{}", said(&out));
    assert!(
        said(&out).contains("CPU 1000: there is none"),
        "{}",
        said(&out)
    );
}

/// The machine says which it has; one is too few, and none is no list.
#[test]
fn processors_that_do_not_do_are_told_before_anything_is_measured() {
    let machine = small();
    let cpu = machine.path().join("sys/devices/system/cpu");
    fs::create_dir_all(&cpu).unwrap();
    fs::write(cpu.join("online"), "0-3\n").unwrap();
    for (cpus, why) in [
        ("99", "there is no CPU 99; this machine has 0-3"),
        ("0,99", "there is no CPU 99; this machine has 0-3"),
        ("0", "need two CPUs"),
        ("0,0", "need two CPUs"),
        ("", "it names no CPU"),
    ] {
        for command in [
            &["bench", "silicon", "--cpus", cpus][..],
            &["advise", "--measure", "--cpus", cpus],
        ] {
            let out = soloist(machine.path(), command).output().unwrap();
            assert_eq!(out.status.code(), Some(2), "{command:?}: {}", said(&out));
            assert!(said(&out).contains(why), "{command:?}: {}", said(&out));
        }
    }
    // Any other program of `bench`, too.
    for cpus in ["", "99"] {
        let args = ["bench", "latency", "--cpus", cpus, "--", "--help"];
        let out = soloist(machine.path(), &args).output().unwrap();
        assert!(!said(&out).contains("panicked"), "{}", said(&out));
        assert_eq!(out.status.code(), Some(2), "{cpus}: {}", said(&out));
    }
}

/// More than the machine has: told, and not taken from other programs.
#[test]
fn memory_that_is_not_there_is_not_touched() {
    let machine = small();
    for command in [
        &["bench", "silicon", "--memory", "4000T"][..],
        &["map", "llc", "--memory", "4000T"],
        &["map", "detect", "--from", "timing", "--memory", "4000T"],
    ] {
        let out = soloist(machine.path(), command).output().unwrap();
        assert!(!out.status.success(), "{command:?}");
        assert!(
            said(&out).contains("three quarters of what is available"),
            "{command:?}: {}",
            said(&out)
        );
    }
    let args = ["map", "detect", "--simulate", "nobody"];
    let out = soloist(machine.path(), &args).output().unwrap();
    assert_eq!(out.status.code(), Some(2), "{}", said(&out));
}

/// Of the simulated machine, too.
#[test]
fn figures_that_no_machine_has_are_misuse() {
    let machine = small();
    for (words, why) in [
        ("--simulate haswell --same-bank nan", "a number from 0"),
        ("--simulate haswell --same-bank inf", "a number from 0"),
        ("--simulate haswell --same-bank 1e300", "a number from 0"),
        ("--simulate haswell --same-bank=-50", "a number from 0"),
        ("--simulate haswell --same-channel=-5", "a number from 0"),
        ("--simulate haswell --cache-bits 0x40", "bits 12 to 20"),
        (
            "--simulate haswell --cache-bits 0xffffffffffffffff",
            "bits 12 to 20",
        ),
        (
            "--simulate haswell --only pages --cache-bits 0x1ff000 --cache 128K",
            "more colours than the cache has pages",
        ),
        ("--simulate haswell --cache 3M", "a power of two"),
        ("--simulate haswell --cpus 99", "cannot be used with"),
        ("--simulate haswell --memory 8M", "cannot be used with"),
        ("--simulate no-such", "no such machine"),
        (
            "--simulate haswell --only pages --svg x.svg",
            "only slices have a picture",
        ),
        ("--memory 0", "4M or more"),
    ] {
        let words = format!("bench silicon {words}");
        let args: Vec<&str> = words.split(' ').collect();
        let out = soloist(machine.path(), &args).output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{words}: {}", said(&out));
        assert!(said(&out).contains(why), "{words}: {}", said(&out));
    }
}

/// What is no measurement is told in words of its user.
#[test]
fn a_file_without_slices_is_misuse() {
    let machine = small();
    let file = machine.path().join("x.json");
    for (content, why) in [
        ("[]", "not what `soloist bench silicon --json` writes"),
        (r#"{"machine":"x","pages":[]}"#, "it has no slices"),
    ] {
        fs::write(&file, content).unwrap();
        let out = soloist(
            machine.path(),
            &["advise", "--from", &file.display().to_string()],
        );
        let out = { out }.output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{}", said(&out));
        assert!(said(&out).contains(why), "{}", said(&out));
        assert!(!said(&out).contains("struct"), "{}", said(&out));
    }
}
