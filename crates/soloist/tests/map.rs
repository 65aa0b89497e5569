//! `soloist map`: how it writes, and files of conflict classes from detection
//! to check.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;

fn soloist(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
    command.args(args);
    command
}

fn output(args: &[&str]) -> Output {
    soloist(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_map_text_is_one_write() {
    // Every write to a datagram socket is one message.
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let status = soloist(&["map", "show", "-m", "opteron-6128", "--text"])
        .stdout(OwnedFd::from(theirs))
        .status()
        .unwrap();
    assert!(status.success());
    let mut message = [0; 1 << 16];
    let length = ours.recv(&mut message).unwrap();
    let whole = output(&["map", "show", "-m", "opteron-6128", "--text"]);
    assert_eq!(text(&message[..length]), text(&whole.stdout));
}

/// Misuse is said before minutes of measuring, whose end this test does not wait for.
#[test]
fn a_file_that_can_t_be_written_is_refused_before_anything_is_measured() {
    let detect = ["map", "detect", "--from=timing", "--output"];
    let silicon = ["bench", "silicon", "--cpus=0", "--svg"];
    for (command, file, why) in [
        (detect, ".", "--output: . is a directory"),
        (detect, "-", "--output -: standard output has"),
        (silicon, "-", "--svg -: standard output has"),
        (silicon, ".", "--svg: . is a directory"),
        (silicon, "no/x", "--svg: no directory no"),
    ] {
        let found = soloist(&command).arg(file).output().unwrap();
        assert_eq!(found.status.code(), Some(2), "{command:?}");
        let said = text(&found.stderr);
        assert!(said.contains(why), "{said}");
    }
}

/// Where the file is all that is printed, `-` asks for no more than no file does.
#[test]
fn a_machine_file_on_standard_output_has_two_names() {
    let folder = TempDir::new().unwrap();
    let table = folder.path().join("decodes.csv");
    let row = |a: u64| {
        format!(
            "{a:#x},0,0,0,{},{},{}\n",
            a >> 13 & 7,
            a >> 16,
            a >> 3 & 1023
        )
    };
    let rows: String = (3..20).map(|bit| row(1 << bit)).collect();
    let header = "address,node,channel,rank,bank,row,column\n";
    fs::write(&table, [header, &row(0), &rows].concat()).unwrap();
    let table = table.display().to_string();
    let solve = |more: &[&str]| {
        let mut command = soloist(&[&["map", "solve", &table], more].concat());
        let out = command.current_dir(folder.path()).output().unwrap();
        (out.status.code(), text(&out.stdout))
    };
    let plain = solve(&[]);
    assert!(plain.1.contains("[map]"), "{plain:?}");
    assert_eq!(solve(&["-o", "-"]), plain);
    assert!(!folder.path().join("-").exists());
}

/// A file is a machine's by what is in it, whatever its name ends in.
#[test]
fn a_machine_file_has_any_name() {
    let folder = TempDir::new().unwrap();
    let machines = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines");
    let machine = fs::read(format!("{machines}/haswell.toml")).unwrap();
    fs::write(folder.path().join("mine"), machine).unwrap();
    fs::write(folder.path().join("notes"), "buy milk\n").unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    let show = |name: &str| {
        let mut command = soloist(&["map", "show", "-m", name]);
        let out = command.current_dir(folder.path()).output().unwrap();
        (out.status.code(), text(&out.stdout) + &text(&out.stderr))
    };
    let (status, said) = show("mine");
    assert!(status == Some(0) && said.starts_with("haswell: "), "{said}");
    for (name, why) in [
        ("notes", "notes:1: "),
        ("folder", "folder: Is a directory"),
        ("nothing", "nothing: no such machine"),
    ] {
        let (status, said) = show(name);
        assert!(status == Some(2) && said.contains(why), "{name}: {said}");
    }
}

/// What of a Raspberry Pi 5's banks a kernel with large pages can tell apart.
#[test]
fn large_pages_leave_fewer_colors() {
    let shown = |pages: &str| {
        let args = ["map", "show", "-m", "raspberry-pi-5", "--page-size", pages];
        output(&args)
    };
    let left = "4 of 16 bank sets are left with 16 KiB pages: bits 12 and 13 lie inside a page\n";
    let large = text(&shown("16K").stdout);
    assert!(large.contains(left), "{large}");
    assert!(large.contains("4 disjoint bank sets of 4 banks"), "{large}");
    assert!(!text(&shown("4K").stdout).contains("are left with"));
    let refused = shown("8K");
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(
        said.contains("pages of kernels have 4K, 16K or 64K"),
        "{said}"
    );
}

/// What only the machine's own memory has is refused beside a simulated one.
#[test]
fn simulated_memory_takes_no_option_of_the_hosts() {
    let check = ["map", "check", "-m", "skylake", "--simulate", "skylake"];
    let detect = ["map", "detect", "--simulate", "skylake"];
    for (words, option, said) in [
        (&check[..], &["--memory", "1G"][..], "--memory"),
        (&check, &["--trust-guest"], "--trust-guest"),
        (&detect, &["--trust-guest"], "--trust-guest"),
        (&detect, &["--class-pages", "3"], "--unprivileged"),
    ] {
        let refused = output(&[words, option].concat());
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(text(&refused.stderr).contains(said), "{refused:?}");
    }
}

/// Nothing is measured in less than a page, and that is said.
#[test]
fn less_memory_than_a_page_is_refused() {
    for (place, status) in [
        (&["--simulate", "skylake"][..], 2),
        (&["--from", "timing"], 1),
    ] {
        for memory in ["0", "1"] {
            let args = [&["map", "detect", "--memory", memory], place].concat();
            let refused = output(&args);
            let said = text(&refused.stderr);
            assert_eq!(refused.status.code(), Some(status), "{args:?}: {said}");
            assert!(said.contains("less than a page"), "{args:?}: {said}");
        }
    }
}

/// `--json` prints JSON or is refused.
#[test]
fn a_map_is_shown_in_json_or_not_at_all() {
    let folder = TempDir::new().unwrap();
    let picture = folder.path().join("zen2.svg").display().to_string();
    let show = ["--json", "map", "show", "-m", "zen2"];
    for option in [&["--text"][..], &["--svg", "-"]] {
        let refused = output(&[&show[..], option].concat());
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(text(&refused.stderr).contains("--json"), "{refused:?}");
    }
    let shown = output(&[&show[..], &["--svg", &picture]].concat());
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["name"], "zen2");
    assert!(fs::read_to_string(picture).unwrap().contains("<svg"));
}

/// Where nodes number their ranks differently, a rank is that of its own node.
#[test]
fn a_place_is_of_the_node_that_it_names() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("two.toml").display().to_string();
    let layout = |name: &str, first: u32| {
        format!(
            "[map.layouts.{name}]\nrank = [\"16\"]\nbank = [\"13\", \"14\", \"15\"]\n\
             row = [\"17-29\"]\ncolumn = [\"3-12\"]\nchip_select = {first}\n"
        )
    };
    let range = |node: u32, layout: &str| {
        let start = u64::from(node) << 30;
        format!(
            "[[map.range]]\nstart = {start:#x}\nend = {:#x}\nnode = {node}\nbase = 0\n\
             layout = \"{layout}\"\n",
            start + (1 << 30)
        )
    };
    let about = "[machine]\nname = \"two\"\ndescription = \"two\"\ntrust = \"synthetic\"\n\
                 [topology]\nsockets = 2\ncpus = [\"0\", \"1\"]\n";
    let ranges = range(0, "low") + &range(1, "high");
    let text_of = [about, &layout("low", 0), &layout("high", 4), &ranges].concat();
    std::fs::write(&file, text_of).unwrap();
    let encode = |words: &[&str]| {
        let out = output(&[&["map", "encode", "-m", &file, "--row", "5"], words].concat());
        (out.status.code(), text(&out.stdout), text(&out.stderr))
    };
    for (node, rank) in [("0", "1"), ("1", "5")] {
        let (status, address, said) = encode(&["--node", node, "--rank", rank]);
        assert_eq!(status, Some(0), "{said}");
        let decoded = output(&["map", "decode", "-m", &file, address.trim(), "--json"]);
        let place: serde_json::Value = serde_json::from_slice(&decoded.stdout).unwrap();
        assert_eq!(place[0]["rank"].to_string(), rank, "{place}");
        assert_eq!(place[0]["node"].to_string(), node, "{place}");
    }
    let (status, _, said) = encode(&["--node", "1", "--rank", "1"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("numbered from 4"), "{said}");
    let (status, address, said) = encode(&["--node", "1"]);
    assert_eq!(status, Some(0), "{address}{said}");
}

#[test]
fn converting_makes_no_map_more_trusted() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("part.toml").display().to_string();
    let shown = output(&[
        "map", "convert", "--from", "machine", "--to", "machine", "skylake",
    ]);
    let part = text(&shown.stdout).replace("\"published\"", "\"incomplete\"");
    assert!(part.contains("trust = \"incomplete\""), "{part}");
    std::fs::write(&file, part).unwrap();
    let again = output(&[
        "map", "convert", "--from", "machine", "--to", "machine", &file,
    ]);
    assert!(
        text(&again.stdout).contains("trust = \"incomplete\""),
        "{again:?}"
    );
}

#[test]
fn classes_go_from_detection_to_check() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("guest.toml").display().to_string();
    let detect = output(&[
        "map",
        "detect",
        "--simulate",
        "skylake",
        "--unprivileged",
        "--deadline",
        "600",
        "--class-pages",
        "20",
        "-o",
        &file,
    ]);
    assert!(detect.status.success(), "{detect:?}");
    let said = text(&detect.stdout);
    assert!(said.contains("conflict classes") && said.contains("very pages measured"));

    let show = text(&output(&["map", "show", "-m", &file]).stdout);
    assert!(show.contains("`soloist up` takes no such file"), "{show}");
    let drawn = output(&["map", "show", "-m", &file, "--svg", "-"]);
    assert_eq!(drawn.status.code(), Some(2), "{drawn:?}");

    let json = output(&["map", "show", "-m", &file, "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["kind"], "conflict-classes");

    let written = std::fs::read_to_string(&file).unwrap();
    let page = written.split("\"0x").nth(1).unwrap();
    let page = format!("0x{}", page.split(['"', '-']).next().unwrap());
    let place = output(&["map", "decode", "-m", &file, &page]);
    assert!(text(&place.stdout).contains("bank number"), "{place:?}");
    let elsewhere = output(&["map", "decode", "-m", &file, "0x0fffffff0000"]);
    assert_eq!(elsewhere.status.code(), Some(1));
    assert!(text(&elsewhere.stderr).contains("was not measured"));

    let trusted = output(&["map", "check", "-m", &file, "--trust-guest"]);
    assert_eq!(trusted.status.code(), Some(2), "{trusted:?}");
    assert!(text(&trusted.stderr).contains("--trust-guest is for maps"));

    let check = |machine: &str| {
        output(&[
            "map",
            "check",
            "-m",
            &file,
            "--simulate",
            machine,
            "--deadline",
            "600",
        ])
    };
    assert!(check("skylake").status.success(), "{:?}", check("skylake"));
    let other = check("i7-6700k");
    assert_eq!(other.status.code(), Some(1), "{other:?}");

    // A command that needs a map names what the file is instead.
    for args in [
        &["map", "encode", "-m", &file][..],
        &["map", "detect", "--simulate", &file],
    ] {
        let refused = output(args);
        assert!(!refused.status.success());
        assert!(
            text(&refused.stderr).contains("conflict classes"),
            "{refused:?}"
        );
    }
}

#[test]
fn a_place_that_a_machine_lacks_is_told_by_its_field() {
    for (args, why) in [
        (
            ["haswell", "--bank", "8"],
            "haswell has 8 banks, numbered from 0",
        ),
        (
            ["haswell", "--node", "1"],
            "haswell has 1 node, numbered from 0",
        ),
        (
            ["opteron-6128", "--rank", "4"],
            "has 2 ranks, numbered from 2",
        ),
        (
            ["zen2", "--row", "131072"],
            "--row 131072: the rows of zen2 on node 0 are within mask",
        ),
        (
            ["opteron-6128", "--column", "1024"],
            "--column 1024: the columns of opteron-6128 on node 0 are within mask",
        ),
    ] {
        let refused = output(&[&["map", "encode", "-m"][..], &args].concat());
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(text(&refused.stderr).contains(why), "{refused:?}");
    }
}

/// Which pages the simulated kernel gives, and how sure that leaves one.
#[test]
fn simulated_pools_are_what_their_switches_say() {
    let run = |more: &[&str]| -> (Option<i32>, serde_json::Value) {
        let args = "map detect --simulate raspberry-pi-4 --noise none --deadline 600 --json";
        let args: Vec<&str> = args.split(' ').chain(more.iter().copied()).collect();
        let out = output(&args);
        let json = serde_json::from_slice(&out.stdout);
        (
            out.status.code(),
            json.unwrap_or_else(|_| panic!("{out:?}")),
        )
    };
    let (code, usual) = run(&[]);
    assert_eq!(
        (code, &usual["recovered"]),
        (Some(0), &true.into()),
        "{usual}"
    );
    // Too little in one piece: its top bits never vary, and that is no map.
    let (code, little) = run(&["--memory", "256M", "--one-piece"]);
    assert_eq!(
        (code, &little["complete"]),
        (Some(1), &false.into()),
        "{little}"
    );
    let open = little["regions"][0]["open"].to_string();
    assert!(open.contains("never vary"), "{open}");
    for pages in ["4K", "1G"] {
        let (_, other) = run(&["--pages", pages]);
        assert_ne!(other["samples"], usual["samples"], "{pages}");
    }
}

/// A reader that has enough goes; a wrong argument is said, with the right ones.
#[test]
fn maps_are_piped_and_misuse_is_told() {
    for args in [
        "list",
        "show -m skylake",
        "show -m skylake --text",
        "list --json",
    ] {
        let line = format!("set -o pipefail; \"$0\" map {args} | head -n 1");
        let shell = Command::new("bash")
            .args(["-c", &line, env!("CARGO_BIN_EXE_soloist")])
            .output()
            .unwrap();
        assert!(shell.stderr.is_empty(), "{args}: {shell:?}");
    }
    for (args, code, why) in [
        ("show -m nowhere", 2, "nowhere"),
        ("show", 1, "--machine NAME"),
        ("decode -m skylake banana", 2, "an address such as"),
        ("detect --pages 3M", 2, "1G, 2M or 4K"),
        ("detect --simulate skylake --noise loud", 2, "aliases"),
        ("solve /nonexistent", 1, "/nonexistent"),
        ("check -m nowhere", 2, "nowhere"),
        ("convert - --from letters --to machine", 2, "bits"),
        (
            "convert RoRaBaCoCh --from order --to text --memory 16000000T",
            2,
            "expected at most",
        ),
        (
            "convert skylake --from machine --to text --name mine",
            2,
            "--name",
        ),
        (
            "convert skylake --from machine --to text --hole 0xc0000000",
            2,
            "--hole",
        ),
        ("import x", 2, "subcommand"),
    ] {
        let args: Vec<&str> = ["map"].into_iter().chain(args.split(' ')).collect();
        let out = output(&args);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
    }
}

/// Where its file is known; without a name it is the only one.
#[test]
fn a_detected_map_is_shown_once_it_is_loaded() {
    let dir = TempDir::new().unwrap();
    let machines = dir.path().join("new/machines");
    let file = machines.join("pi.toml").display().to_string();
    let found = output(&["map", "detect", "--simulate", "raspberry-pi-5", "-o", &file]);
    assert!(found.status.success(), "{}", text(&found.stderr));
    let loaded = dir.path().join("sys/kernel/config/soloist/map");
    fs::create_dir_all(loaded.parent().unwrap()).unwrap();
    fs::write(
        loaded,
        output(&["map", "show", "-m", &file, "--text"]).stdout,
    )
    .unwrap();
    let shown = |machines: &Path| {
        let mut command = soloist(&["map", "show"]);
        command.env("SOLOIST_HOST_ROOT", dir.path());
        command.env("SOLOIST_MACHINES", machines).output().unwrap()
    };
    let known = text(&shown(&machines).stdout);
    assert!(known.starts_with("pi: detected by timing"), "{known}");
    let said = text(&shown(dir.path()).stderr);
    assert!(
        said.contains("name it (--machine FILE), or copy it to"),
        "{said}"
    );
}

/// As on a machine whose module is not loaded, or whose is `root`.
fn detect(root: &str, args: &[&str]) -> Output {
    let mut command = soloist(&["map", "detect", "--memory", "16M", "--deadline", "1"]);
    let command = command.env("SOLOIST_HOST_ROOT", root).args(args);
    command.output().unwrap()
}

/// Whatever machine this runs on, and whatever comes of it.
#[test]
fn detection_asks_what_knows_before_it_measures() {
    const ORDER: [&str; 3] = ["known", "firmware", "registers"];
    let said = text(&detect("/nonexistent", &[]).stderr);
    let mut asked: Vec<&str> = said
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(from, _)| from)
        .filter(|from| ORDER.contains(from))
        .collect();
    asked.dedup();
    assert_eq!(asked, ORDER, "{said}");

    let out = detect("/nonexistent", &["--json"]);
    let json: serde_json::Value = match out.stdout.is_empty() {
        true => {
            // Nothing could be measured here: the refusal is JSON too.
            let error: serde_json::Value = serde_json::from_slice(&out.stderr).unwrap();
            assert!(error["error"].is_string(), "{error}");
            return;
        }
        false => serde_json::from_slice(&out.stdout).unwrap(),
    };
    let tried = json["tried"].as_array().unwrap();
    let mut asked: Vec<&str> = tried.iter().map(|t| t["from"].as_str().unwrap()).collect();
    asked.dedup();
    assert_eq!(asked, ORDER, "{json}");
    // 16 MiB and a second show nothing, as a rule: then nobody is sure of it.
    if json["regions"].as_array().is_some_and(Vec::is_empty) {
        assert_eq!(json["confidence"], 0.0, "{json}");
    }
    assert!(tried.iter().all(|t| t["found"].is_string()), "{json}");
}

#[test]
fn one_source_is_asked_alone_and_refuses_in_its_words() {
    let refused = |root: &str, args: &[&str]| {
        let out = detect(root, args);
        (out.status.code(), text(&out.stdout), text(&out.stderr))
    };
    let (code, out, said) = refused("/nonexistent", &["--from", "firmware"]);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{said}");
    assert!(said.contains("soloist up"), "{said}");
    assert!(!said.contains("registers"), "not asked: {said}");

    let (code, out, said) = refused("/nonexistent", &["--from", "firmware", "--json"]);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{said}");
    let error: serde_json::Value = serde_json::from_str(&said).unwrap();
    let error = error["error"].as_str().unwrap();
    assert!(error.starts_with("no map from firmware: "), "{error}");

    // A module whose firmware translates nothing.
    let root = TempDir::new().unwrap();
    let firmware = root.path().join("sys/kernel/config/soloist/firmware");
    std::fs::create_dir_all(&firmware).unwrap();
    std::fs::write(firmware.join("components"), "").unwrap();
    let place = root.path().display().to_string();
    let (code, _, said) = refused(&place, &["--from", "firmware"]);
    assert_eq!(code, Some(1), "{said}");
    let told = said.matches("it translates no addresses").count();
    assert_eq!(told, 1, "the reason stands once: {said}");

    for (args, why) in [
        (
            &["--from", "nowhere"][..],
            "known, firmware, registers, timing",
        ),
        (
            &["--from", "known", "--simulate", "zen2"],
            "cannot be used with",
        ),
        (&["--from", "firmware", "--dump", "regs.txt"], "--dump, "),
        (&["--from"], "--from <WHERE>"),
    ] {
        let (code, _, said) = refused("/nonexistent", args);
        assert_eq!(code, Some(2), "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
    }
}

/// Registers that were written down elsewhere need no such processor.
#[test]
fn registers_are_read_from_a_dump() {
    let opteron = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../soloist-map/tests/data/opteron-6128.pci"
    );
    let read = output(&["map", "registers", "--dump", opteron, "--json"]);
    let same = [
        "map",
        "detect",
        "--from",
        "registers",
        "--dump",
        opteron,
        "--json",
    ];
    assert_eq!(read.stdout, output(&same).stdout);
    assert!(read.status.success(), "{read:?}");
    let read: serde_json::Value = serde_json::from_slice(&read.stdout).unwrap();
    let machine = read["machine"].as_str().unwrap();
    assert!(machine.contains("6^16^17^18^19^20"), "{machine}");

    let folder = TempDir::new().unwrap();
    let file = folder.path().join("here.toml");
    let kept = output(&[&same[..], &["-o", file.to_str().unwrap()]].concat());
    assert!(kept.status.success(), "{kept:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), machine);
    let named = output(&["map", "detect", "--from", "registers", "--name", "x"]);
    assert_eq!(named.status.code(), Some(2), "{named:?}");

    let dump = folder.path().join("regs.txt").display().to_string();
    let registers = |said: &str| {
        std::fs::write(&dump, said).unwrap();
        output(&["map", "registers", "--dump", &dump, "--json"])
    };
    let whole = std::fs::read_to_string(opteron).unwrap();
    let unnamed: Vec<&str> = whole
        .lines()
        .filter(|l| !l.starts_with("18.0 0x0 "))
        .collect();
    let unnamed = registers(&unnamed.join("\n"));
    let unnamed: serde_json::Value = serde_json::from_slice(&unnamed.stdout).unwrap();
    let unnamed = unnamed["machine"].as_str().unwrap();
    assert!(unnamed.contains("trust = \"incomplete\""), "{unnamed}");
    assert!(machine.contains("trust = \"exact\""), "{machine}");
    let part = registers("18.1 0x40 0x3\n");
    assert_eq!(part.status.code(), Some(1), "{part:?}");
    let error: serde_json::Value = serde_json::from_slice(&part.stderr).unwrap();
    assert!(error["error"].is_string(), "{error}");
    let wrong = registers("no registers\n");
    assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
    assert!(text(&wrong.stderr).contains("regs.txt"), "{wrong:?}");
    let none = output(&["map", "registers", "--dump", "/nonexistent"]);
    assert_eq!(none.status.code(), Some(1), "{none:?}");
    assert!(text(&none.stderr).contains("/nonexistent"), "{none:?}");
}

/// Nothing says what the bits do that never vary: `up` refuses such a map.
#[test]
fn a_table_that_leaves_bits_open_makes_an_incomplete_file() {
    let folder = TempDir::new().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (table, file) = (place("rows.csv"), place("solved.toml"));
    let mut rows = String::from("address,bank,row,column\n");
    for bits in 0..16u64 {
        let (column, bank, row) = (bits & 3, bits >> 2 & 1, bits >> 3);
        let address = column << 6 | bank << 13 | row << 20;
        rows += &format!("{address:#x},{bank},{row},{}\n", column << 3);
    }
    std::fs::write(&table, rows).unwrap();
    let kept = output(&["map", "solve", &table, "-o", &file]);
    let said = text(&kept.stderr);
    assert_eq!(kept.status.code(), Some(1), "{said}");
    assert!(said.contains("refuses: the map is incomplete"), "{said}");
    assert!(output(&["map", "solve", &table]).status.success());
    // Though nobody reads it.
    let (reader, unread) = std::os::unix::net::UnixStream::pair().unwrap();
    drop(reader);
    let mut solve = soloist(&["map", "solve", "--json", &table, "-o", &file]);
    let status = solve.stdout(OwnedFd::from(unread)).status();
    assert_eq!(status.unwrap().code(), Some(1));
}

/// The host bridge says where memory lies, to the MiB, and nothing of banks.
#[test]
fn an_intel_clients_memory_is_laid_by_its_host_bridge() {
    let root = TempDir::new().unwrap();
    let device = root.path().join("sys/bus/pci/devices/0000:00:00.0");
    std::fs::create_dir_all(&device).unwrap();
    let mut config = vec![0u8; 256];
    for (at, value) in [
        (0x00, 0x3e30_8086u64),
        (0x08, 0x0600_0000),
        (0x90, 0x3_fe00_0001),
        (0x98, 0x4_1e50_0001),
        (0xa0, 0x4_0000_0001),
        (0xa8, 0x4_1e60_0001),
        (0xbc, 0xdfa0_0001),
    ] {
        config[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    let run = |args: &[&str]| {
        let mut command = soloist(&["map"]);
        let place = root.path().display().to_string();
        command.args(args).env("SOLOIST_HOST_ROOT", place);
        command.output().unwrap()
    };
    let lay = ["registers", "--functions", "skylake"];
    let none = text(&run(&lay).stderr);
    assert!(none.contains("no host bridge"), "{none}");
    std::fs::write(device.join("config"), &config[..64]).unwrap();
    let none = text(&run(&lay).stderr);
    assert!(none.contains("run as root"), "{none}");

    std::fs::write(device.join("config"), &config).unwrap();
    let laid = run(&lay);
    assert!(laid.status.success(), "{laid:?}");
    let file = root.path().join("mine.toml");
    std::fs::write(&file, &laid.stdout).unwrap();
    let file = file.display().to_string();
    let decoded = text(&run(&["decode", "-m", &file, "0x3fe000000", "--json"]).stdout);
    let decoded: serde_json::Value = serde_json::from_str(&decoded).unwrap();
    let direct = text(&run(&["decode", "-m", "skylake", "0xdfa00000", "--json"]).stdout);
    let direct: serde_json::Value = serde_json::from_str(&direct).unwrap();
    let place = |of: &serde_json::Value| of.to_string().replace("0x3fe000000", "0xdfa00000");
    assert_eq!(
        decoded[0]["row"],
        direct[0]["row"],
        "{} {}",
        place(&decoded),
        place(&direct)
    );
    assert_eq!(
        decoded[0]["color"], direct[0]["color"],
        "{decoded} {direct}"
    );
    let trust = text(&laid.stdout);
    assert!(trust.contains("trust = \"incomplete\""), "{trust}");
    let kept = run(&[&lay[..], &["-o", &file]].concat());
    assert_eq!(kept.status.code(), Some(1), "{kept:?}");
    let said = text(&kept.stderr);
    assert!(
        said.contains("refuses") && said.contains("incomplete"),
        "{said}"
    );

    let other = text(&run(&["registers", "--functions", "haswell"]).stderr);
    assert!(
        other.contains("8 GiB") && other.contains("16 GiB"),
        "{other}"
    );
    let alone = text(&run(&["registers"]).stderr);
    assert!(alone.contains("from 0x3fe000000 to 0x41e5fffff"), "{alone}");
}
