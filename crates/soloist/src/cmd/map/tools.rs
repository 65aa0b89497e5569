//! `soloist map convert|solve|registers|check`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use soloist_core::{format_size, parse_size, Left, PageSize};
use soloist_detect::cache::eviction;
use soloist_detect::cache::llc::{detect as detect_llc, HardwareProbe, Llc, NoProbe};
use soloist_detect::check::{
    check as check_map, judged, why_unknown, Outcome, Rows, Unmeasured, Verdict,
};
use soloist_detect::choice::Counts;
use soloist_detect::timing::hardware::{Hardware, HardwareOptions};
use soloist_detect::timing::noise::Noise;
use soloist_detect::timing::sim::{SimPool, SimSource};
use soloist_detect::Options;
use soloist_host::machine::edac;
use soloist_host::machine::guest::is_bare_metal;
use soloist_host::machine::pci;
use soloist_host::machine::Host;
use soloist_machine::About;
use soloist_machine::{gf2, write, Machine, MapSpec, Trust};
use soloist_map::formats::any::{plain_topology, AnyFormat, ImportError, Imported};
use soloist_map::formats::found::Memory;
use soloist_map::ruler::show_list;
use soloist_map::solve;
use soloist_map::sources::amd10h;
use soloist_map::sources::registers;

use soloist_cli::complete;
use soloist_cli::machine::named;
use soloist_cli::number::whole;
use soloist_cli::{progress, weigh, Ctx, Misuse};

/// What `soloist map convert` takes.
#[derive(Debug, clap::Args)]
pub struct Convert {
    /// File to read (`-`: standard input), a machine with `--from machine`, or
    /// the order itself with `--from order`.
    input: String,
    /// Its format: bits (map.txt of IsolBench, DRAMA++, PALLOC), drama (Sudoku's
    /// log too), dare (ZenHammer), hex, palloc, trrespass, dramdig, blacksmith, order (RoRaBaCoCh
    /// of gem5, Ramulator 2 and DRAMsim3), or machine.
    #[arg(long)]
    from: String,
    /// Format to write: those, or text (the kernel's).
    #[arg(long)]
    to: String,
    /// Widths of an order's fields: channels, ranks, groups, banks, lines (of a row),
    /// such as channels=2,banks=16,lines=128 [default: 1 each].
    #[arg(long, value_name = "LIST")]
    geometry: Option<String>,
    /// Start of the hole below 4 GiB (the first PCI address of /proc/iomem). Memory
    /// behind it is remapped above; addresses skip the hole, as on AMD.
    #[arg(long, value_name = "ADDRESS", value_parser = super::parse_address, conflicts_with = "base")]
    hole: Option<u64>,
    /// First address of memory: 0x40000000 or 0x80000000 on many Arm boards [default: 0].
    #[arg(long, value_name = "ADDRESS", value_parser = super::parse_address, conflicts_with = "hole")]
    start: Option<u64>,
    /// Offset of the first byte of memory, to which the functions apply [default: its
    /// address].
    #[arg(long, value_name = "BYTES", value_parser = super::parse_address)]
    base: Option<u64>,
    /// Memory that the functions cover, for machine and text [default: the reach of the
    /// file's rows, at least 8G].
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<u64>,
    /// Name of the new machine [default: converted].
    #[arg(long)]
    name: Option<String>,
}

impl Convert {
    /// Why an option that is named would change nothing.
    fn idle(&self) -> Option<String> {
        let geometry = ("--geometry", self.geometry.is_some());
        let memory = [
            ("--hole", self.hole.is_some()),
            ("--start", self.start.is_some()),
            ("--base", self.base.is_some()),
            ("--name", self.name.is_some()),
            ("--memory", self.memory.is_some()),
        ];
        let named = |options: &[(&'static str, bool)]| {
            let mut named = options.iter().filter(|(_, is_named)| *is_named);
            named.next().map(|(option, _)| *option)
        };
        if self.from == "machine" {
            // Which says all of this itself.
            let option = named(&[geometry]).or(named(&memory))?;
            let input = &self.input;
            return Some(format!(
                "{option} is for other formats: --from machine takes all from {input}"
            ));
        }
        if let Some(option) = named(&[geometry]).filter(|_| self.from != "order") {
            let why = "which has no widths of its own: a file has them";
            return Some(format!("{option} is for --from order, {why}"));
        }
        let lists = matches!(self.to.parse(), Ok(AnyFormat::Functions(_)));
        // Where an order's rows end, memory says.
        let only_rows = self.from == "order";
        let option = named(&memory).filter(|of| lists && !(only_rows && *of == "--memory"))?;
        let to = &self.to;
        Some(format!(
            "{option} is for --to machine or text: {to} is a list of functions"
        ))
    }
}

/// What `soloist map solve` takes.
#[derive(Debug, clap::Args)]
pub struct Solve {
    /// CSV with a header: address, node, channel, rank, bank, row, column
    /// (`-`: standard input).
    file: PathBuf,
    /// Write the machine file here instead of to standard output. Exits with 1 if the
    /// map is incomplete, which `up` refuses.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Name of the machine.
    #[arg(long, default_value = "solved")]
    name: String,
}

/// What `soloist map registers`, the old name of `map detect --from registers`, takes.
#[derive(Debug, clap::Args)]
pub struct ReadRegisters {
    #[command(flatten)]
    pub how: Registers,
    /// Write the machine file here instead of to standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// How registers are read.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "With --from registers")]
pub struct Registers {
    /// Read a dump (`lspci -xxxx`, or lines `18.1 0x40 0x3`), not this
    /// machine's /sys/bus/pci.
    #[arg(long, value_name = "FILE")]
    dump: Option<PathBuf>,
    /// Functions to use on an Intel client: those of this machine (a name or a file).
    /// Its host bridge says where memory lies, but nothing about banks.
    #[arg(long, value_name = "MACHINE", conflicts_with = "dump", add = complete::machines())]
    functions: Option<String>,
    /// Name of the machine [default: decoded].
    #[arg(long)]
    name: Option<String>,
}

impl Registers {
    /// Are other registers than this machine's asked for, or functions over them?
    pub fn is_asked(&self) -> bool {
        self.dump.is_some() || self.functions.is_some()
    }

    /// Is the map named?
    pub fn is_named(&self) -> bool {
        self.name.is_some()
    }
}

/// What `soloist map check` takes.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// Machine: a name from `soloist map list` or a machine file.
    #[arg(long, short, value_name = "NAME|FILE", add = complete::machines())]
    pub machine: String,
    /// Check against the simulated memory of this machine instead of the host.
    #[arg(long, value_name = "MACHINE")]
    pub simulate: Option<String>,
    /// Noise of the simulated memory.
    #[arg(long, default_value = "low", requires = "simulate")]
    pub noise: Noise,
    /// Seed of all random choices.
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>(..))]
    pub seed: u64,
    /// Show which colours pages of 4K, 16K or 64K leave [default: this kernel's pages].
    #[arg(long, value_name = "SIZE")]
    page_size: Option<PageSize>,
    /// Memory to choose pages from [default: three quarters of what is available,
    /// or 512M if physical addresses are unknown].
    #[arg(long, value_parser = parse_size, conflicts_with = "simulate")]
    pub memory: Option<u64>,
    /// Stop after this many seconds.
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = whole::<u64>(1..))]
    deadline: u64,
    /// In a virtual machine: trust the guest's physical addresses. Not for classes.
    #[arg(long, conflicts_with = "simulate")]
    pub trust_guest: bool,
}

impl Check {
    /// When to stop.
    pub fn deadline(&self) -> Duration {
        Duration::from_secs(self.deadline)
    }
}

fn read_input(path: &Path) -> Result<String> {
    let named = || path.display().to_string();
    if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    std::fs::read_to_string(path).with_context(named)
}

fn about(name: &str, trust: Trust, source: String) -> About {
    About {
        name: name.to_owned(),
        description: source.clone(),
        trust,
        source: vec![source],
    }
}

/// The file of an `--output` whose text standard output has otherwise: `-` is that too.
fn file_of(output: Option<&Path>) -> Option<&Path> {
    output.filter(|path| path.as_os_str() != "-")
}

/// Checks a machine file by reading it back, and prints or writes it.
fn emit(text: &str, output: Option<&Path>, ctx: &Ctx) -> Result<Machine> {
    let machine = Machine::parse(text, "the map that was found")?;
    match output {
        Some(path) => super::write_machine(path, text)?,
        None if ctx.json => {}
        None => super::put(text)?,
    }
    Ok(machine)
}

/// Runs `convert`.
pub fn convert(args: &Convert, ctx: &Ctx) -> Result<ExitCode> {
    if let Some(why) = args.idle() {
        return Err(Misuse(why).into());
    }
    let (name, topology, mut imported) = match args.from.as_str() {
        "machine" => {
            let Machine {
                about,
                topology,
                map,
                ..
            } = named(&args.input)?;
            (about.name, topology, Imported::whole(map, about.trust))
        }
        _ => {
            let imported = import(args)?;
            let name = args.name.as_deref().unwrap_or("converted");
            (name.to_owned(), plain_topology(&imported.map), imported)
        }
    };
    if args.to == "machine" && !imported.notes.is_empty() {
        let incomplete = "Nothing has shown that, so the map is incomplete: `soloist up` takes it \
                          with --force only; `soloist map check` measures it.";
        imported.notes.push(incomplete.into());
    }
    let about = about(
        &name,
        imported.trust,
        format!("converted from {}", args.from),
    );
    let text = imported.write(&args.to, &about, &topology);
    let text = text.map_err(|error| said(error, &name))?;
    let notes = [imported.notes.clone(), imported.left_out(&args.to)].concat();
    for note in notes.iter().filter(|_| !ctx.json) {
        errln!("{name}: {note}");
    }
    match ctx.json {
        true => ctx.print_json(&serde_json::json!({
            "name": name,
            "trust": imported.trust,
            "notes": notes,
            "text": text,
        }))?,
        false => super::put(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What a format refuses, as the command ends: misused, or of that file.
fn said(error: ImportError, file: &str) -> anyhow::Error {
    match error {
        ImportError::Misuse(why) => Misuse(why).into(),
        ImportError::Format(wrong) => wrong.of_file(file).into(),
        ImportError::Unsaid(_) => error.into(),
        ImportError::Fill(_) => anyhow::Error::new(error).context(file.to_owned()),
    }
}

/// The map that another tool's file makes of the memory.
fn import(args: &Convert) -> Result<Imported> {
    let format: AnyFormat = args.from.parse().map_err(Misuse)?;
    let text = match format {
        AnyFormat::Order => args.input.clone(),
        _ => read_input(Path::new(&args.input))?,
    };
    let start = args.start.unwrap_or(0);
    let memory = Memory {
        bytes: args.memory,
        start,
        base: args.base.unwrap_or(start),
        hole: args.hole,
    };
    format
        .import(&text, args.geometry.as_deref().unwrap_or(""), &memory)
        .map_err(|error| said(error, &args.input))
}

/// Runs `solve`.
pub fn run_solve(args: &Solve, ctx: &Ctx) -> Result<ExitCode> {
    let named = || args.file.display().to_string();
    let rows = solve::parse_rows(&read_input(&args.file)?).map_err(|e| e.of_file(named()))?;
    let solved = solve::solve(&rows).map_err(|e| e.of_file(named()))?;
    let open: Vec<String> = solved.open.iter().map(|&f| gf2::show(f)).collect();
    let lines: Vec<String> = solved.left_out.iter().map(ToString::to_string).collect();
    let mut notes = vec![format!("Solved from {} decodes.", solved.rows)];
    if !lines.is_empty() {
        let left_out = format!(
            "Left out, since they contradict all others: lines {}.",
            lines.join(", ")
        );
        errln!("{}: {left_out}", args.file.display());
        notes.push(left_out);
    }
    notes.push(solved.shown());
    notes.extend(solved.notes.clone());
    if !open.is_empty() {
        notes.push(format!(
            "The rows don't say what these offset bits do (they never vary alone): {}",
            open.join(", ")
        ));
    }
    let trust = match solved.complete {
        true => Trust::Exact,
        false => Trust::Incomplete,
    };
    let about = about(
        &args.name,
        trust,
        format!("solved from {} decodes", solved.rows),
    );
    let text = write::machine_file(&about, &plain_topology(&solved.map), &solved.map, &notes);
    let output = file_of(args.output.as_deref());
    let machine = emit(&text, output, ctx)?;
    // Who solves a table is often not its machine: whether it fits is asked there.
    let refused: Vec<String> = weigh::incomplete(&machine).into_iter().collect();
    let printed = match ctx.json {
        true => ctx.print_json(&serde_json::json!({
            "rows": solved.rows,
            "left_out": solved.left_out,
            "trust": trust,
            "told": solved.told.iter().map(|&(bit, sets)| serde_json::json!({"bit": bit, "sets": sets})).collect::<Vec<_>>(),
            "undetermined": open,
            "notes": solved.notes,
            "ranges": solved.map.ranges,
            "text": machine.map_text(),
            "machine": text,
            "refused": refused,
        })),
        false => Ok(()),
    };
    Ok(written(output, &refused, printed, ctx))
}

/// Says what was written, where the rest was `printed`; the status: 0 promises that `soloist up`
/// takes the file.
fn written(output: Option<&Path>, refused: &[String], printed: Result<()>, ctx: &Ctx) -> ExitCode {
    if let Some(path) = output.filter(|_| !ctx.json) {
        super::wrote(path, refused);
    }
    ctx.judged(printed, output.is_none() || refused.is_empty())
}

/// Runs `registers`.
pub fn read_registers(args: &Registers, output: Option<&Path>, ctx: &Ctx) -> Result<ExitCode> {
    let (map, trust, source) = match &args.functions {
        Some(name) => {
            let (map, source) = registers::over_bridge(&Host::live(), name)?;
            (map, Trust::Incomplete, source)
        }
        None => (
            decoded(args.dump.as_deref())?,
            Trust::Exact,
            "decoded from AMD Family 10h registers".into(),
        ),
    };
    let name = args.name.as_deref().unwrap_or("decoded");
    let about = about(name, trust, source);
    let text = write::machine_file(&about, &plain_topology(&map), &map, &[]);
    let output = file_of(output);
    let machine = emit(&text, output, ctx)?;
    let refused = match &args.dump {
        // A dump may be of another machine: whether it fits is asked there.
        Some(_) => weigh::incomplete(&machine).into_iter().collect(),
        None => weigh::objections(&machine).against,
    };
    let printed = match ctx.json {
        true => ctx.print_json(&serde_json::json!({
            "ranges": map.ranges,
            "text": machine.map_text(),
            "machine": text,
            "refused": refused,
        })),
        false => Ok(()),
    };
    Ok(written(output, &refused, printed, ctx))
}

/// The map in the registers of an AMD Family 10h processor, of this machine or a dump.
fn decoded(dump: Option<&Path>) -> Result<MapSpec> {
    let Some(path) = dump else {
        return Ok(registers::decode(&Host::live())?);
    };
    let named = || path.display().to_string();
    let registers = pci::Registers::parse(&read_input(path)?).map_err(|e| e.of_file(named()))?;
    Ok(amd10h::map(&registers)?)
}

/// Runs `check`.
pub fn check(args: &Check, ctx: &Ctx) -> Result<ExitCode> {
    let machine = named(&args.machine)?;
    let left = Left::of(&super::map_for(&machine, args.page_size)?);
    let options = Options {
        deadline: Duration::from_secs(args.deadline),
        seed: args.seed,
        ..Options::default()
    };
    let counted = match &args.simulate {
        Some(_) => Counts::default(),
        None => {
            let counted = edac::counted(&Host::live());
            let trust = machine.about.trust;
            Counts::of(counted.as_ref(), &machine.map, machine.host.channels, trust)
        }
    };
    if !ctx.json {
        counted.said().for_each(|said| errln!("{said}"));
    }
    let found = match &args.simulate {
        Some(name) => {
            let other = named(name)?;
            let mut source = SimSource::new(&other, SimPool::all(), args.noise, args.seed);
            check_map(&mut source, &machine.map, &options)?
        }
        None => {
            let memory = HardwareOptions {
                memory: args.memory,
                trust_guest: args.trust_guest,
                ..HardwareOptions::default()
            };
            let (mut source, left) = Hardware::within(&memory, &options)?;
            check_map(&mut source, &machine.map, &left)?
        }
    };
    let is_guest = args.simulate.is_none() && !is_bare_metal(&Host::live()) && !args.trust_guest;
    let verdict = counted.over(judged(found.verdict, is_guest));
    let why = why_unknown(verdict, &found, is_guest);
    let printed = match ctx.json {
        true => ctx.print_json(&serde_json::json!({
            "machine": machine.about.name,
            "verdict": verdict,
            "why": why,
            "ranges": found.checked,
            "unmeasured": found.unmeasured,
            "counts": counted.said().collect::<Vec<_>>(),
            "left": left,
        })),
        false => super::put(&text_of(&machine, verdict, &found))
            .and_then(|()| left.iter().try_for_each(|left| outln!("{left}"))),
    };
    if let Some(why) = why.filter(|_| !ctx.json && !found.checked.is_empty()) {
        errln!("{why}");
    }
    Ok(ctx.judged(printed, verdict == Verdict::Fits))
}

/// Parts of memory that contradict a map and are listed: another machine's map is contradicted
/// nearly everywhere.
const MOST_DENIED: usize = 8;

fn text_of(machine: &Machine, verdict: Verdict, found: &Outcome) -> String {
    let mut out = String::new();
    for one in &found.checked {
        let ((a, b), (c, d)) = (one.conflicts, one.others);
        out.push_str(&format!(
            "{} to {}: {a} of {b} predicted conflicts and {c} of {d} others held; {} banks by the \
             map, {} by rate\n",
            one.start, one.end, one.banks, one.banks_by_rate
        ));
        out.extend(one.rows.iter().map(text_of_rows));
    }
    let mut denied = found.checked.iter().flat_map(|one| &one.denied);
    for (start, end) in denied.by_ref().take(MOST_DENIED) {
        out.push_str(&format!("contradicted: {start} to {end} is elsewhere\n"));
    }
    match denied.count() {
        0 => {}
        more => out.push_str(&format!(
            "contradicted: {more} more parts (--json lists them)\n"
        )),
    }
    for range in &found.unmeasured {
        let Unmeasured {
            node, start, end, ..
        } = range;
        let why = match range.mapped {
            true => "was not measured",
            false => "is in no range of the map",
        };
        out.push_str(&format!("node {node}: {start} to {end} {why}\n"));
    }
    let name = &machine.about.name;
    out.push_str(&match verdict {
        Verdict::Fits if found.rows_hold() => format!("{name} fits{}\n", how_far(found)),
        Verdict::Fits => format!(
            "{name}: its banks fit{}; rows are not checked\n",
            how_far(found)
        ),
        Verdict::Contradicted => format!("{name} does not fit\n"),
        Verdict::Unknown if found.checked.is_empty() => "nothing could be measured\n".into(),
        Verdict::Unknown => format!("whether {name} fits is not known\n"),
    });
    out
}

fn text_of_rows(rows: &Rows) -> String {
    let ((a, b), (c, d)) = (rows.same, rows.other);
    let untried = match rows.untried {
        0 => String::new(),
        n => format!("; {n} row functions were not tested"),
    };
    let wrong = match rows.hold {
        true => "",
        false => "; contradicted: its rows are others",
    };
    format!("rows: {a} of {b} pairs in one row are fast, {c} of {d} pairs in two rows are slow{untried}{wrong}\n")
}

/// How much of memory a map that fits may still be wrong in.
fn how_far(found: &Outcome) -> String {
    let checked = &found.checked;
    let parts: u32 = checked.iter().map(|one| one.swept.parts).sum();
    let bare: u32 = checked.iter().map(|one| one.swept.bare).sum();
    let unmeasured: u32 = found.unmeasured.iter().map(|range| range.parts).sum();
    if parts == 0 {
        return " inside a page: whether it does in all of memory is not known".into();
    }
    let most = checked.iter().map(|one| one.swept.may_be_wrong());
    let most = 100.0 * most.fold(0.0, f64::max);
    format!(
        ": {} of {} parts of memory were measured and none contradicts it; up to {most:.1} % \
         of a measured range may lie elsewhere all the same (95 % sure)",
        parts - bare,
        parts + unmeasured
    )
}

/// What `soloist map llc` takes.
#[derive(Debug, clap::Args)]
pub struct LlcArgs {
    /// Memory to measure with; a strong hash needs more.
    #[arg(long, default_value = "512M", value_parser = parse_size)]
    memory: u64,
}

/// Too little memory is the user's to mend.
fn objection(why: NoProbe) -> anyhow::Error {
    match why {
        NoProbe::Memory { .. } => Misuse(why.to_string()).into(),
        _ => why.into(),
    }
}

/// Runs `llc`.
pub fn llc(args: &LlcArgs, ctx: &Ctx) -> Result<ExitCode> {
    let memory = Hardware::new(&HardwareOptions {
        memory: Some(args.memory),
        ..HardwareOptions::default()
    })?;
    let mut probe = HardwareProbe::new(&memory).map_err(objection)?;
    let target = probe.target();
    let found = detect_llc(&mut probe, target);
    let bar = progress::bar(ctx, 100, "looking which pages push each other out");
    let pages = eviction::detect(&mut probe, 1, &mut |share| {
        bar.set_position((100.0 * share) as u64);
    });
    bar.finish_and_clear();
    let found = LlcFound { bits: found, pages };
    let printed = match ctx.json {
        true => ctx.print_json(&found),
        false => super::put(&found.text()),
    };
    Ok(ctx.judged(printed, found.is_known()))
}

/// What `llc --json` prints.
#[derive(serde::Serialize)]
struct LlcFound {
    #[serde(flatten)]
    bits: Llc,
    /// By which pages push each other out; `None`: no group does.
    pages: Option<eviction::Eviction>,
}

impl LlcFound {
    /// Whether anything is known of which pages share sets.
    fn is_known(&self) -> bool {
        self.bits.hashed.is_some() || self.pages.is_some()
    }

    fn text(&self) -> String {
        let geometry = self.bits.geometry;
        let mut out = format!(
            "last level: {} in {} ways, lines of {} bytes\n",
            format_size(geometry.size),
            geometry.ways,
            geometry.line
        );
        if let Some(group) = self.bits.group {
            out.push_str(&format!("{group} lines one way apart push a line out\n"));
        }
        if !self.bits.set_bits.is_empty() {
            out.push_str(&format!("set bits: {}\n", show_list(&self.bits.set_bits)));
        }
        out.push_str(&format!("{}\n", self.bits.advice));
        match &self.pages {
            Some(pages) => out.push_str(&format!("{}\n", pages.verdict())),
            None => out.push_str(
                "no group of pages was found that pushes a line out: page colours are not known\n",
            ),
        }
        out
    }
}
