//! Exit status and examples: what each command's help and manual page show
//! last. A test parses every example.

use clap::Command;
use clap_mangen::roff::{roman, Roff};

/// Each command, and how it is used; the first is the way in.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "soloist doctor",
            "soloist up --machine opteron-6128",
            "soloist run --mem 512M -- ./my-task",
            "soloist verify 1234",
            "soloist down",
        ],
    ),
    (
        "doctor",
        &["soloist doctor", "soloist doctor --machine zen2 --json"],
    ),
    (
        "up",
        &[
            "soloist up --machine opteron-6128",
            "soloist up --param mmap_abi=1",
        ],
    ),
    ("down", &["soloist down", "soloist down --force"]),
    (
        "run",
        &[
            "soloist run -- make -j4",
            "soloist run --colors 4 --cpus 2-3 -- ./control-loop",
            "soloist run --mem 512M --realtime --bandwidth 500MB/s --cpus 2 -- ./video",
            "soloist run --group video -- x264 --version",
            "soloist run --mem 64M --rt 80 --cpus 2 -- ./control-loop",
        ],
    ),
    (
        "compare",
        &[
            "soloist compare -- zstd -9 -k big.txt",
            "soloist compare --model --html sort.html -- sort big.txt",
            "soloist compare --recorded sort.rec --picture sort.svg",
        ],
    ),
    (
        "plan",
        &[
            "soloist plan docs/examples/three-tasks.toml --machine raspberry-pi-4",
            "soloist plan tasks.toml --gantt schedule.svg --report evidence.html",
            "soloist plan tasks.toml --profile rec",
            "soloist plan tasks.toml --apply",
        ],
    ),
    (
        "trace",
        &[
            "soloist trace --tasks docs/examples/three-tasks.toml --for 10s --svg schedule.svg",
            "soloist trace --pid 1234 --period 10ms --deadline 8ms --perfetto control.json",
            "soloist trace --period 10ms -- soloist run --rt 80 -- ./control-loop",
        ],
    ),
    (
        "bench",
        &[
            "soloist bench latency",
            "soloist bench latency --corun bandwidth --cpus 2-3 -- --size 32M",
        ],
    ),
    (
        "bench silicon",
        &[
            "soloist bench silicon",
            "soloist bench silicon --cpus 2,3 --blocks 200 --json",
        ],
    ),
    (
        "group list",
        &["soloist group list", "soloist group list --json"],
    ),
    (
        "group show",
        &["soloist group show video", "soloist group show x264#3"],
    ),
    (
        "group create",
        &[
            "soloist group create video --colors 4 --llc 8 --reserve 64M",
            "soloist group create batch --node 1 --mode shareable --exhaust spill",
        ],
    ),
    (
        "group set",
        &[
            "soloist group set video --exhaust grow",
            "soloist group set video --bandwidth 500MB/s --cpus 2-3",
            "soloist group set video --pid 1234",
        ],
    ),
    ("group rm", &["soloist group rm video batch"]),
    ("rule list", &["soloist rule list"]),
    (
        "rule add",
        &[
            "soloist rule add x264 --path /usr/bin/x264 --colors 2",
            "soloist rule add control --path '/opt/control/*' --realtime",
        ],
    ),
    (
        "rule set",
        &["soloist rule set x264 --colors 4 --exhaust grow"],
    ),
    ("rule rm", &["soloist rule rm x264"]),
    ("rule enable", &["soloist rule enable x264"]),
    ("rule disable", &["soloist rule disable x264"]),
    (
        "verify",
        &[
            "soloist verify 1234 --summary",
            "soloist run -- soloist verify --self --strict --by node",
            "soloist verify 1234 --svg pages.svg",
        ],
    ),
    ("save", &["soloist save", "soloist save -"]),
    (
        "apply",
        &[
            "soloist apply --dry-run",
            "soloist apply /etc/soloist/soloist.toml",
        ],
    ),
    ("top", &["soloist top", "soloist top -n 1 --json"]),
    (
        "metrics",
        &[
            "soloist metrics",
            "soloist metrics --textfile /var/lib/prometheus/node-exporter/soloist.prom",
        ],
    ),
    ("events", &["soloist events", "soloist events --json"]),
    ("map list", &["soloist map list"]),
    (
        "map show",
        &[
            "soloist map show",
            "soloist map show -m zen2 --svg zen2.svg",
        ],
    ),
    (
        "map decode",
        &["soloist map decode -m opteron-6128 0x10005d010"],
    ),
    (
        "map encode",
        &["soloist map encode -m opteron-6128 --node 1 --bank 3 --row 7"],
    ),
    (
        "map detect",
        &[
            "soloist map detect -o /etc/soloist/machines/mine.toml",
            "soloist map detect --from firmware",
        ],
    ),
    ("map check", &["soloist map check -m skylake"]),
    ("map llc", &["soloist map llc"]),
    (
        "map solve",
        &["soloist map solve decodes.txt -o machine.toml"],
    ),
    ("map registers", &["soloist map registers"]),
    (
        "map convert",
        &["soloist map convert zen2 --from machine --to hex"],
    ),
    ("vm list", &["soloist vm list"]),
    (
        "vm run",
        &[
            "soloist vm run -- uname -r",
            "soloist vm run --kernel 6.1-rt --machine opteron-6128 -- numactl -H",
        ],
    ),
    (
        "vm shell",
        &["soloist vm shell", "soloist vm shell -k 6.1 -- htop"],
    ),
    (
        "vm record",
        &["soloist vm record -o sort.rec -- sort big.txt"],
    ),
    (
        "sim trace",
        &["soloist sim trace --machine ddr3-1600k requests.txt"],
    ),
    ("sim replay", &["soloist sim replay sort.rec"]),
    ("sim profile", &["soloist sim profile sort.rec"]),
    (
        "sim export",
        &["soloist sim export sort.rec --format ramulator >sort.trace"],
    ),
    (
        "sim import",
        &["soloist sim import -o traced.rec drmemtrace.app.7.trace"],
    ),
    ("lab list", &["soloist lab list"]),
    ("lab check", &["soloist lab check my-scenario.toml"]),
    ("lab run", &["soloist lab run --all --small --out results"]),
    (
        "lab compare",
        &["soloist lab compare results-before results-after"],
    ),
    (
        "lab sensitivity",
        &["soloist lab sensitivity camc-table-4 --small --key core.prefetch"],
    ),
    (
        "lab report",
        &["soloist lab report results --out report.html"],
    ),
    (
        "guard status",
        &["soloist guard status", "soloist guard status --watch 2"],
    ),
    (
        "guard set",
        &[
            "soloist guard set --r-min 1.2GB/s --peak 6.4GB/s 0:1GB/s 2:200MB/s",
            "soloist guard set 2:off",
        ],
    ),
    (
        "guard rmin",
        &[
            "soloist guard rmin --machine opteron-6128",
            "soloist guard rmin --measure",
        ],
    ),
    ("guard off", &["soloist guard off"]),
    (
        "completions",
        &["soloist completions bash >/usr/share/bash-completion/completions/soloist"],
    ),
    (
        "man",
        &[
            "soloist man",
            "soloist man map show",
            "soloist man /usr/local/share/man/man1",
        ],
    ),
];

/// Of commands whose exit status says more than [`PLAIN`].
const STATUS: &[(&str, &str)] = &[
    (
        "doctor",
        "0 it can work here, 1 something keeps it from working, 2 misused",
    ),
    (
        "run",
        "the command's own; 128 + the signal that killed it, 127 not found, 126 not\nexecutable; before it ran 1 failed, 2 misused",
    ),
    (
        "plan",
        "0 proved, or this host is as planned; 1 not, or failed; 2 misused",
    ),
    (
        "trace",
        "0 no deadline was missed, 1 one was, events were lost, or failed; 2 misused",
    ),
    (
        "verify",
        "0 done, 1 failed, or with --strict a page of its own is out of colour; 2 misused",
    ),
    (
        "bench silicon",
        "0 measured, whatever it showed; 1 nothing could be measured; 2 misused",
    ),
    (
        "map detect",
        "0 a whole map, 1 part of one, none, or two that contradict each other; 2 misused",
    ),
    (
        "map check",
        "0 the map fits, 1 it is contradicted or nothing is proved, 2 misused",
    ),
    (
        "map llc",
        "0 done, 1 failed, or whether sets are hashed can't be told; 2 misused",
    ),
    (
        "guard rmin",
        "0 done, 1 failed, or what was measured can't be one bank's; 2 misused",
    ),
    (
        "vm run",
        "the command's own, as of `soloist run`; 1 the kernel complained or died, 124 the\ntime limit, 130 Ctrl-C, 2 misused",
    ),
    (
        "vm record",
        "the first program's own, as of `soloist run`; 1 the kernel complained or died, 124\nthe time limit, 130 Ctrl-C, 2 misused",
    ),
    (
        "vm shell",
        "the shell's own; 1 the kernel complained or died, 2 misused",
    ),
    (
        "lab run",
        "0 done, 1 failed, or with --strict a prediction or an order misses; 2 misused",
    ),
];

/// Of all others.
const PLAIN: &str = "0 done, 1 failed, 2 misused";

/// Adds exit status and examples to the help of `command` and all below it.
pub fn add(command: Command) -> Command {
    below(command, "")
}

fn below(command: Command, path: &str) -> Command {
    let command = command.mut_subcommands(|sub| {
        let path = format!("{path} {}", sub.get_name());
        below(sub, path.trim_start())
    });
    let status = STATUS.iter().find(|(of, _)| *of == path);
    let status = status.map_or(PLAIN, |(_, status)| *status);
    let lines = examples(&command, path);
    command.after_help(format!(
        "Exit status: {status}\n\nExamples:\n  {}",
        lines.join("\n  ")
    ))
}

/// Its own, and the first of each command below it.
fn examples(command: &Command, path: &str) -> Vec<&'static str> {
    let of = |path: &str| EXAMPLES.iter().find(|(of, _)| *of == path);
    // Those of the whole are not for `soloist-lab`.
    let is_whole = path.is_empty() && command.find_subcommand("doctor").is_none();
    let own = of(path)
        .filter(|_| !is_whole)
        .map_or(&[][..], |(_, lines)| lines);
    let below = command
        .get_subcommands()
        .filter(|_| is_whole || !path.is_empty())
        .filter_map(|sub| of(format!("{path} {}", sub.get_name()).trim_start()))
        .filter_map(|(_, lines)| lines.first());
    own.iter().chain(below).copied().collect()
}

/// The same for a manual page: two sections of what stands after a help, `last`.
pub fn sections(last: &str, page: &mut Roff) {
    let (status, lines) = last.split_once("\n\nExamples:\n").unwrap_or((last, ""));
    let status = status.strip_prefix("Exit status: ").unwrap_or(status);
    page.control("SH", ["EXIT STATUS"]);
    page.text([roman(status)]);
    if lines.is_empty() {
        return;
    }
    page.control("SH", ["EXAMPLES"]);
    page.control("nf", []);
    for line in lines.lines() {
        page.text([roman(line.trim_start())]);
    }
    page.control("fi", []);
}
