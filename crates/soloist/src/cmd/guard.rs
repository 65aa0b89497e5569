//! `soloist guard`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::builder::{BoolishValueParser, PossibleValuesParser};
use clap::Subcommand;
use serde::Serialize;
use soloist_core::{cpu_list, parse_size};
use soloist_detect::timing::hardware::{Hardware, HardwareOptions};
use soloist_detect::timing::one_bank::{one_bank, OneBank, ENOUGH_ROWS};
use soloist_host::control::{
    format_rate, parse_rate, Bandwidth, Control, Guard, GuardCpu, GuardView,
};
use soloist_host::machine::Host;
use soloist_host::run::HeldSignals;

use soloist_cli::complete;
use soloist_cli::machine::named;
use soloist_cli::number::whole;
use soloist_cli::table;
use soloist_cli::{out, Ctx, Misuse};

use super::map::map_for;
use super::up;

/// Limit memory bandwidth of each CPU (MemGuard).
///
/// If a CPU has used up its reservation, the guard stops it until the next period.
/// Before the first reservation the guard counts and stops nothing. See
/// docs/reference/guard.md.
#[derive(Debug, Subcommand)]
pub enum Args {
    /// Show reservations and usage.
    #[command(after_help = examples!["soloist guard status", "soloist guard status --watch 2"])]
    Status(Status),
    /// Change settings and reservations.
    #[command(after_help = examples![
        "soloist guard set --r-min 1.2GB/s --peak 6.4GB/s 0:1GB/s 2:200MB/s",
        "soloist guard set 2:off",
        "soloist guard set --off",
    ])]
    Set(Set),
    /// Compute or measure the guaranteed bandwidth: one bank, only row misses.
    #[command(after_help = examples![
        status "0 done, 1 failed, or what was measured can't be one bank's; 2 misused";
        "soloist guard rmin --machine opteron-6128",
        "soloist guard rmin --measure",
    ])]
    Rmin(Rmin),
    /// Remove all reservations, also those of groups.
    #[command(hide = true)]
    Off,
}

#[derive(Debug, clap::Args)]
pub struct Status {
    /// Repeat every SECONDS, with rates.
    #[arg(long, short, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = whole::<u64>(1..=3600))]
    watch: Option<u64>,

    /// Stop after N updates; 0: never.
    #[arg(
        long,
        short = 'n',
        value_name = "N",
        default_value_t = 0,
        value_parser = whole::<u64>(..),
        requires = "watch"
    )]
    count: u64,
}

#[derive(Debug, clap::Args)]
pub struct Set {
    /// Remove all reservations, also those of groups, and count the default event again.
    #[arg(long)]
    off: bool,

    /// Event that counts traffic: LLC-misses, page-faults, cpu-clock, rHEX ...
    #[arg(long, value_name = "NAME")]
    event: Option<String>,

    /// Event that counts writes, or none.
    #[arg(long, value_name = "NAME")]
    write_event: Option<String>,

    /// Bytes moved per event.
    #[arg(long, value_name = "BYTES", value_parser = whole::<u32>(..))]
    line: Option<u32>,

    /// Length of a period, in microseconds.
    #[arg(long, value_name = "US", value_parser = whole::<u32>(10..=1_000_000))]
    period: Option<u32>,

    /// Guaranteed bandwidth, which limits the sum of reservations; see `soloist
    /// guard rmin`.
    #[arg(long, value_name = "RATE")]
    r_min: Option<String>,

    /// Guaranteed bandwidth of writes.
    #[arg(long, value_name = "RATE")]
    write_r_min: Option<String>,

    /// Peak bandwidth.
    #[arg(long, value_name = "RATE")]
    peak: Option<String>,

    /// Events that a CPU above its reservation reclaims at a time.
    #[arg(long, value_name = "N", value_parser = whole::<u32>(..))]
    q_min: Option<u32>,

    /// Weight of the newest period in the prediction, in 1/256.
    #[arg(long, value_name = "N", value_parser = whole::<u32>(..))]
    ewma: Option<u32>,

    /// What to share when all budgets are used: none, spare or proportional.
    #[arg(long, value_name = "HOW")]
    sharing: Option<String>,

    /// Count the kernel's accesses too: 0 or 1.
    #[arg(long, value_name = "BOOL", value_parser = BoolishValueParser::new())]
    count_kernel: Option<bool>,

    /// Weigh CPUs by the running task's priority: 0 or 1.
    #[arg(long, value_name = "BOOL", value_parser = BoolishValueParser::new())]
    per_task: Option<bool>,

    /// Regulate CPUs separately if their groups share no banks: 0 or 1.
    #[arg(long, value_name = "BOOL", value_parser = BoolishValueParser::new())]
    by_bank: Option<bool>,

    /// Where to stop a task: anywhere, or on return to user space (user), where it
    /// holds no kernel lock.
    #[arg(long, value_name = "WHERE", value_parser = PossibleValuesParser::new(["anywhere", "user"]))]
    stop: Option<String>,

    /// Reservations, for each of CPUS: `0-1:500MB/s`, `2:weight=3`,
    /// `3:200MB/s:write=100MB/s:reclaim=0`, `2:off`.
    #[arg(value_name = "CPUS:RATE")]
    limits: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub struct Rmin {
    /// Machine: a name from `soloist map list` or a machine file [default: that of
    /// the loaded map].
    #[arg(long, short, value_name = "NAME|FILE", add = complete::machines())]
    machine: Option<String>,

    /// Measure it on this machine instead of computing it from the data sheet.
    #[arg(long)]
    measure: bool,

    /// Memory to measure with.
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = parse_size, requires = "measure")]
    memory: u64,

    /// In a virtual machine: trust the guest's physical addresses.
    #[arg(long, requires = "measure")]
    trust_guest: bool,
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    match args {
        Args::Status(status) => status.run(ctx),
        Args::Set(set) => set.run(ctx),
        Args::Rmin(rmin) => rmin.run(ctx),
        Args::Off => off(ctx),
    }
}

fn off(ctx: &Ctx) -> Result<ExitCode> {
    let guard = open()?;
    guard.off()?;
    tell(&guard, ctx)
}

/// With `--json`, what is set now.
fn tell(guard: &Guard, ctx: &Ctx) -> Result<ExitCode> {
    if ctx.json {
        ctx.print_json(&guard.view()?)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn open() -> Result<Guard> {
    Ok(Guard::open(&Control::open(&Host::live())?)?)
}

// ---- status ----

impl Status {
    fn run(&self, ctx: &Ctx) -> Result<ExitCode> {
        let guard = open()?;
        let mut before = BTreeMap::new();
        let mut looks = 0;
        let mut seen = Instant::now();
        loop {
            let view = guard.view()?;
            let seconds_between = seen.elapsed().as_secs_f64();
            seen = Instant::now();
            looks += 1;
            if ctx.json {
                ctx.print_json(&view)?;
            } else {
                if ctx.color && looks > 1 {
                    out::put("\x1b[H\x1b[2J")?;
                }
                outln!("{}", draw(&view, &before, seconds_between))?;
            }
            let Some(seconds) = self.watch else {
                return Ok(ExitCode::SUCCESS);
            };
            if looks == self.count {
                return Ok(ExitCode::SUCCESS);
            }
            before = view.cpus.into_iter().map(|c| (c.cpu, c)).collect();
            sleep(Duration::from_secs(seconds));
        }
    }
}

/// A counter of a processor.
fn count(cpu: &GuardCpu, key: &str) -> u64 {
    cpu.stats.get(key).and_then(|v| v.parse().ok()).unwrap_or(0)
}

fn draw(view: &GuardView, before: &BTreeMap<u32, GuardCpu>, seconds: f64) -> String {
    let setting = |key: &str| view.settings.get(key).map_or("?", String::as_str);
    let write_event = view.settings.get("write_event");
    let write_event = write_event.filter(|event| *event != "none");
    let mut text = format!(
        "event {}{}, period {} us, r_min {}, sharing {}\n",
        setting("event"),
        write_event.map_or(String::new(), |event| format!(", write event {event}")),
        setting("period_us"),
        setting("r_min")
            .parse()
            .map_or_else(|_| "?".to_owned(), format_rate),
        setting("sharing"),
    );
    if view.stats.get("stalled").is_some_and(|v| v == "1") {
        text += "STALLED: no period begins, so that no CPU is held\n";
    }
    if let Some(why) = view.unregulated() {
        text += &format!("{why}\n");
    }
    let mut table = table([
        "CPU",
        "RESERVED",
        "USED",
        "GIVEN",
        "TAKEN",
        "BEYOND",
        "STOPS",
        "STOPPED",
        "UNDERRUNS",
    ]);
    for cpu in &view.cpus {
        let old = before.get(&cpu.cpu);
        let delta = |key: &str| count(cpu, key).saturating_sub(old.map_or(0, |c| count(c, key)));
        let mb = |key: &str| match old {
            Some(_) => format!("{:.1} MB/s", delta(key) as f64 / 1e6 / seconds),
            None => format!("{:.1} MB", delta(key) as f64 / 1e6),
        };
        let bytes = |what: &str| {
            let reads = mb(&format!("{what}_bytes"));
            match write_event {
                Some(_) => format!("{reads}, write {}", mb(&format!("{what}_write_bytes"))),
                None => reads,
            }
        };
        table.add_row([
            cpu.cpu.to_string(),
            cpu.reserved(),
            bytes("used"),
            bytes("donated"),
            bytes("reclaimed"),
            bytes("beyond"),
            delta("stops").to_string(),
            format!("{:.1} ms", delta("stopped_ns") as f64 / 1e6),
            delta("underruns").to_string(),
        ]);
    }
    text + &table.trim_fmt()
}

// ---- set ----

impl Set {
    fn run(&self, ctx: &Ctx) -> Result<ExitCode> {
        let pairs = self.pairs()?;
        let limits = self.limits.iter().map(|text| limit(text));
        let limits = limits.collect::<Result<Vec<_>>>()?;
        self.check_once(&limits)?;
        let is_empty = pairs.is_empty() && limits.is_empty();
        if self.off {
            if !is_empty {
                return Err(Misuse("--off goes alone: set the rest after it".to_owned()).into());
            }
            return off(ctx);
        }
        if is_empty {
            return Err(Misuse("nothing to set: `soloist guard set --help`".to_owned()).into());
        }
        let guard = open()?;
        // A signal that comes midway ends this afterwards: a change is made whole.
        let held = HeldSignals::hold();
        guard.change(&pairs, &limits.concat())?;
        drop(held);
        tell(&guard, ctx)
    }

    /// `limits` name each CPU once.
    fn check_once(&self, limits: &[Vec<(u32, Option<Bandwidth>)>]) -> Result<(), Misuse> {
        let mut named = BTreeSet::new();
        for (text, limit) in self.limits.iter().zip(limits) {
            if let Some((cpu, _)) = limit.iter().find(|(cpu, _)| !named.insert(*cpu)) {
                return Err(Misuse(format!("{text}: CPU {cpu} is named twice")));
            }
        }
        Ok(())
    }

    /// The settings given, as the kernel takes them. `line` after `event`,
    /// which sets it.
    fn pairs(&self) -> Result<Vec<(&'static str, String)>> {
        let text = |t: &Option<String>| t.clone();
        let number = |n: Option<u32>| n.map(|n| n.to_string());
        let flag = |on: Option<bool>| on.map(|on| u8::from(on).to_string());
        let rate = |t: &Option<String>| -> Result<Option<String>> {
            let parsed = t.as_deref().map(|t| match t {
                "0" => Ok(0),
                t => parse_rate(t),
            });
            let rate = parsed.transpose().map_err(|e| Misuse(e.to_string()))?;
            Ok(rate.map(|r| r.to_string()))
        };
        let all = [
            ("event", text(&self.event)),
            ("write_event", text(&self.write_event)),
            ("line", number(self.line)),
            ("period_us", number(self.period)),
            ("r_min", rate(&self.r_min)?),
            ("write_r_min", rate(&self.write_r_min)?),
            ("peak", rate(&self.peak)?),
            ("q_min", number(self.q_min)),
            ("ewma", number(self.ewma)),
            ("sharing", text(&self.sharing)),
            ("count_kernel", flag(self.count_kernel)),
            ("per_task", flag(self.per_task)),
            ("by_bank", flag(self.by_bank)),
            ("stop", text(&self.stop)),
        ];
        Ok(all
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .collect())
    }
}

/// `0-1:500MB/s`: processors, each with what it gets.
fn limit(text: &str) -> Result<Vec<(u32, Option<Bandwidth>)>> {
    let wrong = |why: String| Misuse(format!("{text}: {why}"));
    let (cpus, want) = text
        .split_once(':')
        .ok_or_else(|| wrong("expected CPUS:RATE, such as 0-1:500MB/s".to_owned()))?;
    let cpus = cpu_list(cpus).map_err(|e| wrong(e.to_string()))?;
    if cpus.is_empty() {
        return Err(wrong("it names no CPU".to_owned()).into());
    }
    let want = match want {
        "off" => None,
        want => Some(want.parse().map_err(|e| wrong(format!("{e}")))?),
    };
    Ok(cpus.iter().map(|cpu| (cpu, want)).collect())
}

// ---- rmin ----

/// What `soloist guard rmin` tells, bytes per second.
#[derive(Serialize)]
struct Guaranteed {
    machine: String,
    device: String,
    trc_ns: f64,
    r_min: u64,
    peak: u64,
}

/// What `soloist guard rmin --measure` tells.
#[derive(Serialize)]
struct Measured {
    machine: String,
    #[serde(flatten)]
    bank: OneBank,
}

impl Rmin {
    fn run(&self, ctx: &Ctx) -> Result<ExitCode> {
        match self.measure {
            true => self.measured(ctx),
            false => self.computed(ctx),
        }
    }

    fn measured(&self, ctx: &Ctx) -> Result<ExitCode> {
        let map = match &self.machine {
            Some(name) => map_for(&named(name)?, None)?,
            None => Control::open(&Host::live())?.map()?,
        };
        let memory = Hardware::new(&HardwareOptions {
            memory: Some(self.memory),
            trust_guest: self.trust_guest,
            ..HardwareOptions::default()
        })?;
        let measured = Measured {
            machine: map.name(),
            bank: one_bank(&memory, &map, 1)?,
        };
        let printed = match ctx.json {
            true => ctx.print_json(&measured),
            false => outln!("{}", measured.text()),
        };
        Ok(ctx.judged(printed, measured.bank.is_plausible()))
    }

    fn computed(&self, ctx: &Ctx) -> Result<ExitCode> {
        let machine = match &self.machine {
            Some(name) => named(name)?,
            None => up::known_machine(&Control::open(&Host::live())?.map()?)?.1,
        };
        let name = &machine.about.name;
        let device = machine.device().with_context(|| {
            format!("the machine file of {name} is needed for its DRAM timing (--machine FILE)")
        })?;
        let told = Guaranteed {
            machine: machine.about.name.clone(),
            device: device.name.clone(),
            trc_ns: f64::from(device.trc) * f64::from(device.tck_ps) / 1000.0,
            r_min: device.one_bank_bandwidth() as u64,
            peak: device.peak_bandwidth() as u64,
        };
        if ctx.json {
            ctx.print_json(&told)?;
        } else {
            outln!(
                "{}: {} bytes every tRC of {:.2} ns ({}): r_min {:.0} MB/s; peak of a channel {:.0} MB/s",
                told.machine,
                device.burst_bytes(),
                told.trc_ns,
                told.device,
                told.r_min as f64 / 1e6,
                told.peak as f64 / 1e6
            )?;
            outln!(
                "soloist guard set --r-min {} --peak {}",
                told.r_min,
                told.peak
            )?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Measured {
    fn text(&self) -> String {
        let bank = &self.bank;
        let mb = |rate: u64| rate as f64 / 1e6;
        let mut text = format!(
            "{}: {} lines in {} rows of one bank: {:.0} MB/s ({:.0} to {:.0}); as many lines anywhere: {:.0} MB/s",
            self.machine,
            bank.lines,
            bank.rows,
            mb(bank.r_min),
            mb(bank.least),
            mb(bank.most),
            mb(bank.anywhere)
        );
        if bank.rows < ENOUGH_ROWS {
            text += "\nfew rows: a controller may have served some lines of a row together, so r_min may be less";
        }
        text + &if bank.is_plausible() {
            format!("\nsoloist guard set --r-min {}", bank.r_min)
        } else {
            "\none bank is no slower than all: the map is not this machine's (`soloist map check`), \
             or a virtual machine hides which pages share banks"
                .to_owned()
        }
    }
}
