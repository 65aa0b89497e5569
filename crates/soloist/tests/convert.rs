//! `soloist map convert`: what other tools' files don't say is never passed off as known.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

use soloist_machine::{gf2, Machine, Trust};

/// What converting `text` gives.
fn convert(from: &str, to: &str, text: &str, args: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_soloist"))
        .args(["map", "convert", "-", "--from", from, "--to", to])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // One that refuses its options reads nothing.
    let _ = input.write_all(text.as_bytes());
    drop(input);
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The machine that `text` becomes, and all that was said of it.
fn machine(from: &str, text_in: &str, args: &[&str]) -> (Machine, String) {
    let out = convert(from, "machine", text_in, args);
    assert!(out.status.success(), "{from}: {}", text(&out.stderr));
    let file = text(&out.stdout);
    let machine = Machine::parse(&file, "converted").unwrap();
    (machine, file + &text(&out.stderr))
}

/// What is said where `text` is refused.
fn refusal(from: &str, text_in: &str, args: &[&str]) -> String {
    let out = convert(from, "machine", text_in, args);
    assert_eq!(out.status.code(), Some(1), "{from}: {}", text(&out.stdout));
    assert!(out.stdout.is_empty(), "{}", text(&out.stdout));
    text(&out.stderr)
}

fn banks(machine: &Machine) -> Vec<u64> {
    machine.map.layouts[0].bank_functions()
}

/// Address bits of the rows and of the columns.
fn rows_and_columns(machine: &Machine) -> (u64, u64) {
    let layout = &machine.map.layouts[0];
    let columns = layout.column.iter().fold(0, |all, term| all | term.mask);
    (layout.row_masks().iter().fold(0, |all, m| all | m), columns)
}

fn bits(list: &[u32]) -> u64 {
    list.iter().fold(0, |all, bit| all | 1 << bit)
}

const SKYLAKE: &str = "7 14\n15 19\n16 20\n17 21\n18 22\n8 9 12 13 18 19\n";

/// As of every other file: its name and the line, in one place.
#[test]
fn a_file_of_another_tool_is_refused_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    for (command, from, name, content) in [
        ("convert", "bits", "map.txt", "7 14\n15 x\n"),
        ("solve", "", "rows.csv", "address,bank\n0x1000,x\n"),
        (
            "registers",
            "",
            "dump.txt",
            "18.1 0x40 0x3\n18.1 0x41 0x3\n",
        ),
    ] {
        let path = dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        let path = path.to_str().unwrap();
        let args: &[&str] = match command {
            "convert" => &["map", "convert", path, "--from", from, "--to", "machine"],
            "solve" => &["map", "solve", path],
            _ => &["map", "detect", "--from", "registers", "--dump", path],
        };
        let out = Command::new(env!("CARGO_BIN_EXE_soloist"))
            .args(args)
            .output()
            .unwrap();
        let said = text(&out.stderr);
        assert!(said.contains(&format!("{path}:2: ")), "{command}: {said}");
    }
}

#[test]
fn what_is_filled_in_makes_a_map_incomplete() {
    for (from, text) in [
        ("bits", SKYLAKE),
        ("drama", "7 14  (Correct: 99%)\n15 18  (Correct: 100%)\n"),
        ("dare", "0x0000044000 (18 14)\n"),
        ("hex", "0x44000 0x88000\n"),
        (
            "palloc",
            "echo 0x1e000 > /sys/kernel/debug/palloc/palloc_mask\n",
        ),
        (
            "trrespass",
            "Valid Function: 0x44000 bits: 14 + 18\nRow mask: 0x3ffc0000 bits: 18\n",
        ),
    ] {
        let (machine, said) = machine(from, text, &[]);
        assert_eq!(machine.about.trust, Trust::Incomplete, "{from}: {said}");
        assert!(said.contains("olumn bits 6"), "{from}: {said}");
        assert!(said.contains("are filled in"), "{from}: {said}");
    }
}

/// A Raspberry Pi 5 by PALLOC's mask, and a Jetson Nano, whose memory begins at 2 GiB.
#[test]
fn boards_are_read() {
    let mask = "echo 0x1c0001000 > /sys/kernel/debug/palloc/palloc_mask\n";
    let (pi, _) = machine("palloc", mask, &[]);
    assert_eq!(pi.map.layouts[0].column.len(), 6);
    let args = ["--start", "0x80000000", "--memory", "4G"];
    let (nano, _) = machine("bits", "12 17\n13 18\n", &args);
    let range = nano.map.ranges[0];
    assert_eq!(
        (range.start, range.end, range.base),
        (2 << 30, 6 << 30, 2 << 30)
    );
    let out = convert("bits", "machine", "12 17\n", &["--start", "0x80000100"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("--start 0x80000100: expected"));
}

#[test]
fn what_says_everything_stays_published() {
    let log = "=== bank addr funs (5): ===\n17, 20,\n16, 19,\n15, 18,\n7, 14,\n8, 9, 12, 13, 18, 19,\n \
               === row bits: (16) ===\n18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33,\n \
               === column bits: (13)===\n0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13,\n";
    let (whole, said) = machine("dramdig", log, &[]);
    assert_eq!(whole.about.trust, Trust::Published, "{said}");
    assert_eq!(whole.map.bytes(), 16 << 30);
    let (larger, said) = machine("dramdig", log, &["--memory", "32G"]);
    assert_eq!(larger.about.trust, Trust::Incomplete, "{said}");
    assert!(said.contains("34"), "{said}");
}

#[test]
fn what_drama_itself_doubts_is_left_out() {
    let noisy =
        "6  (Correct: 100%)\n7 14 (Correct: 100%)\n15 18  (Correct: 75%)\n16 19  (Correct: 100%)\n\
                 11 12 13 15 27  (Correct: 50%)\n12 17 24 28 30  (Correct: 100%)\n";
    let (machine, said) = machine("drama", noisy, &[]);
    assert_eq!(machine.about.trust, Trust::Incomplete);
    assert_eq!(banks(&machine).len(), 4);
    assert!(
        said.contains("11^12^13^15^27") && said.contains("50 %"),
        "{said}"
    );
    assert!(said.contains("15^18") && said.contains("75 %"), "{said}");
    // Also where functions alone are written.
    let out = convert("drama", "bits", noisy, &[]);
    assert_eq!(text(&out.stdout).lines().count(), 4);
    assert!(text(&out.stderr).contains("15^18"));
    let said = refusal("drama", "7 14 (Correct: 50%)\n8 15 (Correct: 3%)\n", &[]);
    assert!(said.contains("50 %"), "{said}");
}

#[test]
fn the_end_of_trrespass_search_is_no_row_mask() {
    for end in ["0xffff000000", "0xffff800000", "0xfffe000000"] {
        for log in [
            format!("0x4080\n0x88000\n{end}\n"),
            format!("Valid Function: 0x4080 bits: 7 + 14\nValid Function: 0x88000 bits: 15 + 19\n[LOG] - Row mask: {end} bits: 24\n"),
        ] {
            let (machine, said) = machine("trrespass", &log, &[]);
            assert_eq!(banks(&machine), [0x4080, 0x88000]);
            let (rows, columns) = rows_and_columns(&machine);
            assert_eq!(rows, gf2::span(16, 32), "{said}");
            assert_eq!(columns, bits(&[6, 7, 8, 9, 10, 11, 12, 13]), "{said}");
            assert!(said.contains("end of its search"), "{said}");
        }
    }
}

/// TRRespass without -v, taken for a list of functions.
#[test]
fn a_function_that_looks_like_rows_is_doubted() {
    let (_, said) = machine("hex", "0x4080\n0x88000\n0x7ff80000\n", &[]);
    assert!(said.contains("12 bits side by side"), "{said}");
    let (_, said) = machine("bits", SKYLAKE, &[]);
    assert!(!said.contains("side by side"), "{said}");
}

#[test]
fn bits_above_the_rows_are_rows() {
    let log = "0x4080\n0x88000\n0x7ff80000\n";
    let (trrespass, said) = machine("trrespass", log, &["--memory", "16G"]);
    let (rows, columns) = rows_and_columns(&trrespass);
    assert_eq!(rows, gf2::span(19, 33), "{said}");
    assert_eq!(columns & gf2::span(19, 63), 0, "{said}");
    assert!(said.contains("31-33"), "{said}");
    let json = r#"{"row_bits": [29,28,27,26,25,24,23,22,21,20,19,18,17], "col_bits": [12,11,10,9,8,7,6],
        "bank_bits": [[6,13], [14,17], [15,18], [16,19]]}"#;
    let (blacksmith, said) = machine("blacksmith", json, &[]);
    assert_eq!(rows_and_columns(&blacksmith).0, gf2::span(17, 32), "{said}");
    assert_eq!(blacksmith.about.trust, Trust::Incomplete);
    assert!(said.contains("30-32"), "{said}");
}

#[test]
fn a_function_alone_without_rows_is_a_function() {
    let (machine, _) = machine("trrespass", "0x4080\n0x88000\n0x1b300\n", &[]);
    assert_eq!(banks(&machine), [0x4080, 0x88000, 0x1b300]);
}

#[test]
fn sudoku_names_rows_and_columns() {
    let log = "[+] Collect Same Bank, Different Row Pairs\nInsert address 0x4661a59c0 to set 0. <== NEW!!\n\
               Found functions:\n  0x4080    bits: 7,14 \n  0x48000    bits: 15,18 \n  0x90000    bits: 16,19 \n  0x120000    bits: 17,20 \n\
               Found bits: \n  row_bits,0x3fffc0000, bits: 18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33\n  \
               column_bits,0xf40, bits: 6,8,9,10,11 \n";
    for from in ["drama", "sudoku"] {
        let (machine, said) = machine(from, log, &["--memory", "16G"]);
        assert_eq!(
            banks(&machine),
            [0x4080, 0x48000, 0x90000, 0x120000],
            "{said}"
        );
        assert_eq!(rows_and_columns(&machine).0, gf2::span(18, 33), "{said}");
    }
}

#[test]
fn runs_of_one_log_must_agree() {
    let trrespass = |functions: &str, rows: &str| format!("{functions}\n{rows}\n");
    let first = trrespass("0x4080\n0x88000", "0x3fffff80");
    let same = trrespass("0x88000\n0x8c080", "0x3fffff80");
    let other = trrespass("0x4100\n0x110000", "0x7ff80000");
    let (machine, said) = machine("trrespass", &format!("{first}{same}"), &[]);
    assert!(
        gf2::same_span(&banks(&machine), &[0x4080, 0x88000]),
        "{said}"
    );
    let verbose = |bit: u32| {
        format!("Found Functions\nValid Function: {:#x} bits: 14 + {bit}\nRow mask: 0x3ffc0000 bits: 18\n", 1 << 14 | 1u64 << bit)
    };
    let dramdig = |bit: u32| {
        format!("=== bank addr funs (1): ===\n14, {bit},\n=== row bits: (2) ===\n18, 19,\n")
    };
    let dare = |bit: u32| {
        let mask = 1 << 14 | 1u64 << bit;
        format!("Found 1 functions (up to 2 bits):\n{mask:#x} ({bit} 14)\nXOR of all found functions:\n{mask:#x} ({bit} 14)\n")
    };
    let drama = |bit: u32| format!("reduced to 1 functions\n14 {bit}  (Correct: 100%)\n");
    let sudoku = |bit: u32| {
        format!(
            "Found functions:\n  {:#x}    bits: 14,{bit} \n",
            1 << 14 | 1u64 << bit
        )
    };
    for (from, logs) in [
        ("trrespass", [first, other]),
        ("trrespass", [verbose(18), verbose(19)]),
        ("dramdig", [dramdig(18), dramdig(19)]),
        ("dare", [dare(18), dare(19)]),
        ("drama", [drama(18), drama(19)]),
        ("drama", [sudoku(18), sudoku(19)]),
    ] {
        let said = refusal(from, &logs.concat(), &[]);
        assert!(said.contains("run"), "{from}: {said}");
        let twice = convert(from, "bits", &logs[0].repeat(2), &[]);
        assert!(twice.status.success(), "{from}: {}", text(&twice.stderr));
    }
}

/// What DRAMDig prints before its result: headings and lists of other things.
#[test]
fn a_whole_log_of_dramdig_is_its_result() {
    let log = "=== row bits:\n row bit: 20\n row bit: 21\n=== column bits: 9\n=== column bits: 10\n\
               [+] possible bank bits are at: \n\t6\n\t7\n\t14\n\t15\n 7 14 \nbank num: \n 0, 1, 2, 3,\n\
               === bank addr funs (2): ===\n14, 18, \n15, 19, \n === row bits: (16) ===\n\
               18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, \n === column bits: (14)===\n\
               0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, \nentire procedure: 12 34, 5\n16, 17\n";
    let (dramdig, said) = machine("dramdig", log, &[]);
    assert_eq!(banks(&dramdig), [1 << 14 | 1 << 18, 1 << 15 | 1 << 19]);
    let (rows, columns) = rows_and_columns(&dramdig);
    assert_eq!(rows, gf2::span(18, 33), "{said}");
    // 16 and 17 are nowhere in the result.
    assert_eq!(columns, gf2::span(6, 13) | bits(&[16, 17]), "{said}");
    assert!(
        said.contains("16-17") && !said.contains("announces"),
        "{said}"
    );
    let torn = log.replace("15, 19, \n", "");
    assert!(machine("dramdig", &torn, &[]).1.contains("announces 2"));
}

#[test]
fn layouts_of_attack_programs() {
    let (blacksmith, _) = machine("hex", "banks({0x2040, 0x24000, 0x48000, 0x90000});\n", &[]);
    assert_eq!(banks(&blacksmith), [0x2040, 0x24000, 0x48000, 0x90000]);
    let (list, _) = machine("hex", "[0x2040,0x14000, 0x28000]\n", &[]);
    assert_eq!(banks(&list), [0x2040, 0x14000, 0x28000]);
    let source =
        "DRAMLayout layout = {{{0x4080,0x48000,0x90000,0x120000,0x1b300}, 5}, 0x3ffc0000, 8191};\n";
    let (trrespass, said) = machine("trrespass", source, &[]);
    assert_eq!(
        banks(&trrespass),
        [0x4080, 0x48000, 0x90000, 0x120000, 0x1b300]
    );
    assert_eq!(rows_and_columns(&trrespass).0, gf2::span(18, 32), "{said}");
    // A mask of rows is no function, nor is the count of functions.
    for text in [source, &source[20..]] {
        let said = refusal("hex", text, &[]);
        assert!(said.contains("trrespass"), "{said}");
    }
    let torn = source.replace(", 5}", ", 6}");
    assert!(refusal("trrespass", &torn, &[]).contains('6'));
}

#[test]
fn a_cache_mask_is_no_list_of_banks() {
    for mask in ["0xffc0", "0xf800", "0x1fc0"] {
        let echo = format!("echo {mask} > /sys/kernel/debug/palloc/palloc_mask\n");
        let said = refusal("palloc", &echo, &[]);
        assert!(said.contains("cache"), "{said}");
    }
    let (machine, said) = machine(
        "palloc",
        "echo 0xf000 > /sys/kernel/debug/palloc/palloc_mask\n",
        &[],
    );
    assert_eq!(machine.about.trust, Trust::Incomplete);
    assert!(said.contains("cache"), "{said}");
}

#[test]
fn one_high_bank_bit_moves_no_row() {
    let (machine, said) = machine("bits", "12\n30\n31\n32\n", &[]);
    let expected = (gf2::span(13, 29), gf2::span(6, 11));
    assert_eq!(rows_and_columns(&machine), expected, "{said}");
    assert_eq!(machine.about.trust, Trust::Incomplete);
    // Above memory a function is always 0.
    let said = refusal("bits", "12\n30\n31\n32\n", &["--memory", "4G"]);
    assert!(said.contains("--memory") && said.contains("32"), "{said}");
}

/// An option that would change nothing is refused, with what it is for.
#[test]
fn no_option_is_passed_over() {
    let refused = |to: &str, args: &[&str]| {
        let out = convert("bits", to, "7 14\n15 19\n", args);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {out:?}");
        text(&out.stderr)
    };
    let said = refused("machine", &["--geometry", "channels=8"]);
    assert!(said.contains("--geometry is for --from order"), "{said}");
    for option in ["--hole", "--start", "--base", "--memory"] {
        let said = refused("hex", &[option, "0x80000000"]);
        let words = format!("{option} is for --to machine or text: hex is a list");
        assert!(said.contains(&words), "{said}");
    }
    let order = [
        "map",
        "convert",
        "RoBaRaCoCh",
        "--from",
        "order",
        "--to",
        "hex",
    ];
    let widths = [
        "--geometry",
        "channels=2,banks=16,lines=128",
        "--memory",
        "64G",
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
    let out = command.args(order).args(widths).output().unwrap();
    assert!(out.status.success(), "{out:?}");
}

#[test]
fn another_tools_text_is_named() {
    let dramdig = "=== bank addr funs (2): ===\n14, 18,\n15, 19,\n=== row bits: (1) ===\n18,\n";
    let trrespass = "Valid Function: 0x4080 bits: 7 + 14\nRow mask: 0x7ff80000 bits: 19\n";
    let drama = "7 14  (Correct: 99%)\n";
    let palloc = "echo 0x1e000 > /sys/kernel/debug/palloc/palloc_mask\n";
    for (from, text, is) in [
        ("drama", dramdig, "dramdig"),
        ("bits", dramdig, "dramdig"),
        ("drama", trrespass, "trrespass"),
        ("dare", drama, "drama"),
        ("dramdig", drama, "drama"),
        ("hex", palloc, "palloc"),
    ] {
        let said = refusal(from, text, &[]);
        assert!(said.contains(&format!("--from {is}")), "{from}: {said}");
    }
}

/// What `soloist map convert MACHINE --from machine` gives.
fn of_machine(name: &str, to: &str, json: &[&str]) -> Output {
    let convert = ["map", "convert", name, "--from", "machine", "--to", to];
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
    command.args(convert).args(json).output().unwrap()
}

/// Functions over offsets mislead who takes them for functions of addresses.
#[test]
fn a_list_of_functions_says_where_offsets_are_no_addresses() {
    let said = |name: &str, to: &str| {
        let out = of_machine(name, to, &[]);
        assert!(out.status.success(), "{out:?}");
        text(&out.stderr)
    };
    for to in ["hex", "bits"] {
        let said = said("sapphire-rapids", to);
        let words = "from 0x100000000 on, subtract 0x80000000";
        assert!(said.contains(words), "{to}: {said}");
    }
    assert_eq!(said("sapphire-rapids", "machine"), "");
    // No shift, and one above all functions of banks.
    assert_eq!(said("skylake", "hex"), "");
    assert_eq!(said("zen2", "hex"), "");
}

/// Tables that are not the map's are the machine's all the same.
#[test]
fn a_machine_file_stays_whole() {
    for name in ["sapphire-rapids", "raspberry-pi-5"] {
        let out = of_machine(name, "machine", &[]);
        let file = soloist_machine::known::text(name).unwrap();
        assert_eq!(text(&out.stdout), file, "{out:?}");
    }
}

#[test]
fn a_conversion_is_json_where_asked() {
    let out = of_machine("skylake", "hex", &["--json"]);
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let plain = of_machine("skylake", "hex", &[]);
    assert_eq!(json["text"], text(&plain.stdout));
    assert_eq!(json["trust"], "published");
    let filled = convert("bits", "machine", SKYLAKE, &["--json"]);
    let json: serde_json::Value = serde_json::from_slice(&filled.stdout).unwrap();
    assert!(filled.stderr.is_empty() && !json["notes"].as_array().unwrap().is_empty());
}
