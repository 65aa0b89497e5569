//! Where `soloist map detect` takes the map from: a known machine that fits,
//! the firmware, registers, timing; in this order. What two of them say is held
//! against each other.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{bail, Context, Result};
use serde::Serialize;
use soloist_host::control::Control;
use soloist_host::machine::edac::{self, Counted};
use soloist_host::machine::guest::is_bare_metal;
use soloist_host::machine::{cpu_name, fit, memory_ranges, pci, topology, Host};
use soloist_machine::{known, write, About, Machine, MapSpec, Trust};
use soloist_map::compare;
use soloist_map::detect::check::{check as check_map, Verdict};
use soloist_map::detect::hardware::{Hardware, HardwareOptions};
use soloist_map::detect::Options;
use soloist_map::sources::amd10h;
use soloist_map::sources::bridge;
use soloist_map::sources::firmware::channel::Channel;
use soloist_map::sources::firmware::umc;
use soloist_map::sources::firmware::zen::{self, Locator, Place, Zen};
use soloist_map::sources::firmware::{self, Decoder, NodeProof, Values};

use soloist_cli::weigh;
use soloist_cli::Ctx;

/// One place that maps come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A machine of `soloist map list` whose file agrees with this host.
    Known,
    /// The firmware's address translation (Intel servers; module loaded, root).
    Firmware,
    /// Registers of AMD Family 10h (root); Intel's clients have some that say where
    /// memory lies, which the other sources use.
    Registers,
    /// Timing of row conflicts.
    Timing,
}

/// What one place said.
#[derive(Debug, Serialize)]
pub struct Tried {
    from: Source,
    /// What came of it, in words.
    found: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<NodeProof>,
    #[serde(skip)]
    map: Option<Candidate>,
    /// What knows of channels only: no map to take before others.
    #[serde(skip)]
    channels: Option<Candidate>,
}

impl Tried {
    /// Where its channels contradict a map's banks, in words; `None`: it knows
    /// of no channels.
    pub fn against(&self, map: &MapSpec) -> Option<Vec<String>> {
        let own = self.channels.as_ref()?;
        let wrong = compare::channels(&own.map, map).into_iter();
        Some(wrong.map(|why| format!("amd_atl: {why}")).collect())
    }
}

#[derive(Debug)]
struct Candidate {
    about: About,
    map: MapSpec,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Report<'a> {
    from: Source,
    machine: &'a str,
    trust: Trust,
    tried: &'a [Tried],
    /// What the other sources say of this map.
    checks: Vec<String>,
    ranges: &'a [soloist_machine::MapRange],
    text: String,
    /// Why `soloist up` does not take the file that is written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<String>,
}

/// What the user asked for.
pub struct Wanted<'a> {
    pub from: Option<Source>,
    pub seed: u64,
    pub deadline: std::time::Duration,
    pub output: Option<&'a Path>,
}

/// Tries what needs no timing. `None`: nothing was found, timing must; what
/// was tried is said either way.
pub fn run(wanted: &Wanted, ctx: &Ctx) -> Result<(Option<ExitCode>, Vec<Tried>)> {
    let asked = |source| wanted.from.is_none_or(|from| from == source);
    let mut tried = Vec::new();
    if asked(Source::Known) {
        tried.extend(from_known());
    }
    if asked(Source::Firmware) {
        let mut firmware = from_firmware(wanted.seed);
        if wanted.from.is_some() {
            firmware.map = firmware.map.or(firmware.channels.take());
        }
        tried.push(firmware);
    }
    if asked(Source::Registers) {
        tried.push(from_registers());
    }
    if !ctx.json {
        for one in &tried {
            errln!("{}: {}", name(one.from), one.found);
        }
    }
    let Some(best) = tried.iter().position(|one| one.map.is_some()) else {
        match wanted.from {
            Some(from) if from != Source::Timing => bail!(
                "no map from {}: {}",
                name(from),
                tried.first().map_or("nothing to ask", |one| &one.found)
            ),
            _ => return Ok((None, tried)),
        }
    };
    choose(best, &tried, wanted, ctx).map(|status| (Some(status), tried))
}

fn name(source: Source) -> &'static str {
    match source {
        Source::Known => "known",
        Source::Firmware => "firmware",
        Source::Registers => "registers",
        Source::Timing => "timing",
    }
}

/// Holds the first map against the others, or against timing, and writes it.
fn choose(best: usize, tried: &[Tried], wanted: &Wanted, ctx: &Ctx) -> Result<ExitCode> {
    let from = tried[best].from;
    let Some(chosen) = &tried[best].map else {
        bail!("no map");
    };
    let mut checks = Vec::new();
    for other in &tried[best + 1..] {
        let Some(map) = &other.map else {
            continue;
        };
        let differ = compare::differences(&chosen.map, &map.map);
        if !differ.is_empty() {
            bail!(
                "{} ({}) and {} contradict each other: {}. Neither is taken; --from {} or \
                 --from {} takes one",
                name(from),
                chosen.about.name,
                name(other.from),
                differ.join("; "),
                name(from),
                name(other.from)
            );
        }
        checks.push(format!("{} says the same", name(other.from)));
    }
    if checks.is_empty() {
        checks.push(by_timing(&chosen.map, wanted)?);
    }
    checks.extend(by_channels(tried, from, chosen)?);
    checks.extend(by_count(
        edac::counted(&Host::live()).as_ref(),
        from,
        chosen,
    )?);
    let text = write::machine_file(
        &chosen.about,
        &topology(&Host::live()),
        &chosen.map,
        &chosen.notes,
    );
    let machine = Machine::parse(&text, "the map that was found")?;
    if let Some(path) = wanted.output {
        std::fs::write(path, &text).with_context(|| path.display().to_string())?;
    }
    let refused = weigh::objections(&machine).against;
    let status = match wanted.output.is_some() && !refused.is_empty() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    };
    if ctx.json {
        ctx.print_json(&Report {
            from,
            machine: &chosen.about.name,
            trust: chosen.about.trust,
            tried,
            checks,
            ranges: &chosen.map.ranges,
            text: machine.map_text(),
            refused,
        })?;
        return Ok(status);
    }
    errln!("taken: {}, {}", name(from), chosen.about.trust);
    for check in &checks {
        errln!("  {check}");
    }
    match wanted.output {
        Some(path) => super::wrote(path, &refused),
        None => super::put(&text)?,
    }
    Ok(status)
}

/// What those who know of channels only say of a map.
fn by_channels(tried: &[Tried], from: Source, chosen: &Candidate) -> Result<Vec<String>> {
    let mut checks = Vec::new();
    for wrong in tried.iter().filter_map(|one| one.against(&chosen.map)) {
        if !wrong.is_empty() {
            bail!(
                "the map from {} is contradicted: {}. It is not taken; --from asks another source",
                name(from),
                wrong.join("; ")
            );
        }
        checks.push("amd_atl: banks lie in one channel each".into());
    }
    Ok(checks)
}

/// What the kernel's drivers count of a map's memory, where they do.
fn by_count(counted: Option<&Counted>, from: Source, chosen: &Candidate) -> Result<Vec<String>> {
    let Some(counted) = counted else {
        return Ok(vec![
            "not checked by count: no EDAC driver of this machine's controllers is loaded".into(),
        ]);
    };
    let says = counted.against(&chosen.map, None, chosen.about.trust);
    if !says.against.is_empty() {
        bail!(
            "the map from {} is contradicted: {}. It is not taken; --from asks another source",
            name(from),
            says.against.join("; ")
        );
    }
    let mut checks = vec![format!("{} counts the same", counted.by)];
    if !says.unknown.is_empty() {
        checks = says
            .unknown
            .iter()
            .map(|why| format!("not known: {why}"))
            .collect();
    }
    Ok(checks)
}

/// What timing says of a map, where it can be measured at all.
fn by_timing(map: &MapSpec, wanted: &Wanted) -> Result<String> {
    if !is_bare_metal(&Host::live()) {
        return Ok("not checked by timing: a virtual machine has other addresses than DRAM".into());
    }
    let measured = Hardware::new(&HardwareOptions {
        memory: None,
        page_shift: None,
        trust_guest: false,
    })
    .map_err(|error| error.to_string())
    .and_then(|mut source| {
        let options = Options {
            deadline: wanted.deadline,
            seed: wanted.seed,
            ..Options::default()
        };
        check_map(&mut source, map, &options).map_err(|stop| stop.to_string())
    });
    match measured {
        Ok((Verdict::Fits, _)) => Ok("timing: row conflicts are where the map says".into()),
        Ok((Verdict::Contradicted, _)) => bail!(
            "timing contradicts this map: row conflicts are not where it says; \
             --from timing measures a map instead"
        ),
        Ok((Verdict::Unknown, _)) => Ok("not checked by timing: nothing could be measured".into()),
        Err(why) => Ok(format!("not checked by timing: {why}")),
    }
}

/// Known machines that fit, maps of virtual machines aside.
fn from_known() -> Vec<Tried> {
    let mut found = Vec::new();
    let bridge = bridge::read(&Host::live()).ok();
    for mut machine in known::all().into_iter().flatten() {
        // Functions were published over memory in one piece.
        let laid = bridge.and_then(|bridge| bridge.lay(&machine.map));
        let mut notes = vec![format!("The known machine {}.", machine.about.name)];
        if let (Some(map), Some(bridge)) = (laid, bridge) {
            machine.map = map;
            notes.push(format!("By the host bridge, {}.", bridge.said()));
        }
        let made_up = matches!(machine.about.trust, Trust::Synthetic | Trust::Assumed);
        let fit = fit(&Host::live(), &machine);
        if made_up || !fit.fits {
            continue;
        }
        found.push(Tried {
            from: Source::Known,
            found: format!(
                "{}, {}: {}",
                machine.about.name,
                machine.about.trust,
                fit.reasons.join("; ")
            ),
            nodes: Vec::new(),
            map: Some(Candidate {
                notes,
                about: machine.about,
                map: machine.map,
            }),
            channels: None,
        });
    }
    if found.is_empty() {
        found.push(nothing(
            Source::Known,
            "no machine of `soloist map list` fits this host".into(),
        ));
    }
    found
}

fn nothing(from: Source, found: String) -> Tried {
    Tried {
        from,
        found,
        nodes: Vec::new(),
        map: None,
        channels: None,
    }
}

/// The firmware behind the module's control interface.
struct Loaded {
    control: Control,
    components: Vec<String>,
}

impl Decoder for Loaded {
    fn components(&self) -> &[String] {
        &self.components
    }

    fn decode(&mut self, addresses: &[u64]) -> Result<Vec<Option<Values>>, String> {
        self.control
            .firmware_decode(addresses, self.components.len())
            .map_err(|error| error.to_string())
    }
}

/// AMD's library behind the module's control interface.
struct Library(Control);

impl Locator for Library {
    fn locate(&mut self, places: &[Place]) -> Result<Vec<Option<u64>>, String> {
        let told = self.0.firmware_locate(places);
        told.map_err(|error| error.to_string())
    }
}

/// What the firmware was asked for.
enum Asked {
    /// All that a map needs.
    Whole(firmware::Found),
    /// Channels, how many places were not translated, of how many, and why banks are
    /// not known; else they are, by registers.
    Channels(firmware::Found, (usize, usize), Option<String>),
}

fn from_firmware(seed: u64) -> Tried {
    let (found, way, open) = match ask_firmware(seed) {
        Err(why) => return nothing(Source::Firmware, why),
        Ok(Asked::Whole(found)) => (found, "the firmware's translation (ADXL)", None),
        Ok(Asked::Channels(found, lost, why)) => {
            (found, "Linux' library for Zen (amd_atl)", Some((lost, why)))
        }
    };
    let mut says = told(&found);
    if let Some(((lost, all), why)) = &open {
        let banks = match why {
            Some(why) => format!("channels only ({why})"),
            None => "channels, and banks by registers whose reading no such machine has proved \
                     (soloist map check)"
                .into(),
        };
        says = format!("{banks}, {says}; {lost} of {all} places are not translated");
    }
    let trust = match found.exact {
        true => Trust::Exact,
        false => Trust::Incomplete,
    };
    let mut notes = vec![format!("From {way}: {says}.")];
    notes.extend(found.notes);
    notes.push("Cache colours are not the firmware's to tell: soloist map llc.".into());
    let candidate = Some(Candidate {
        about: about("firmware", trust, &says),
        map: found.map,
        notes,
    });
    let (map, channels) = match open {
        None => (candidate, None),
        Some(_) => (None, candidate),
    };
    Tried {
        from: Source::Firmware,
        found: format!("{trust}: {says}"),
        nodes: found.nodes,
        map,
        channels,
    }
}

/// How far a map from firmware is shown.
fn told(found: &firmware::Found) -> String {
    let held: usize = found.nodes.iter().map(|node| node.held.0).sum();
    let all: usize = found.nodes.iter().map(|node| node.held.1).sum();
    let mut says = format!(
        "solved from {} translations; {held} of {all} fresh ones are as the map says",
        found.asked
    );
    for node in &found.nodes {
        if let Some(why) = &node.unsolved {
            says.push_str(&format!("; node {} has no map: {why}", node.node));
        } else if node.untranslated > 0 {
            says.push_str(&format!(
                "; node {}: {} addresses are not translated",
                node.node, node.untranslated
            ));
        }
    }
    says
}

/// A register of a channel's memory controller.
fn register(control: &Control, channel: &Channel, at: u32) -> Result<u32, String> {
    let told = control
        .firmware_umc(&[(channel.node, channel.number, at.into())])
        .map_err(|error| error.to_string())?;
    let value = told.first().copied().flatten();
    value
        .and_then(|value| u32::try_from(value).ok())
        .ok_or_else(|| format!("the memory controller's register {at:#x} can't be read"))
}

fn ask_firmware(seed: u64) -> Result<Asked, String> {
    let control = Control::open(&Host::live()).map_err(|_| {
        "only the kernel may ask it: load the module (soloist up) and try again".to_owned()
    })?;
    let components = control
        .firmware_components()
        .map_err(|error| error.to_string())?;
    let memory = memory_ranges(&Host::live());
    if !components.is_empty() {
        let mut loaded = Loaded {
            control,
            components,
        };
        let found = firmware::find(&mut loaded, &memory, seed).map_err(|error| error.to_string());
        return found.map(Asked::Whole);
    }
    let none = |why: String| {
        format!("it translates no addresses (no ACPI ADXL here, or in this kernel); {why}")
    };
    let channels = zen::channels(&Host::live()).map_err(none)?;
    let banks = umc::of_channels(&channels, |channel, at| register(&control, channel, at));
    let mut zen = Zen::new(Library(control), channels);
    let why = match banks {
        Ok(banks) => {
            zen = zen.with_banks(banks);
            None
        }
        Err(why) => Some(why),
    };
    let found = firmware::find(&mut zen, &memory, seed).map_err(|error| none(error.to_string()))?;
    Ok(Asked::Channels(found, zen.untranslated, why))
}

fn from_registers() -> Tried {
    let read = pci::Registers::read(&Host::live())
        .map_err(|error| error.to_string())
        .and_then(|registers| amd10h::map(&registers).map_err(|error| error.to_string()));
    match read {
        Err(why) => nothing(
            Source::Registers,
            match bridge::read(&Host::live()) {
                Ok(bridge) => format!(
                    "Intel's host bridge says where memory lies, and nothing of banks: {}",
                    bridge.said()
                ),
                Err(other) => format!("{why}; {other}"),
            },
        ),
        Ok(map) => Tried {
            from: Source::Registers,
            found: "AMD Family 10h: decoded".into(),
            nodes: Vec::new(),
            map: Some(Candidate {
                about: about("registers", Trust::Exact, "AMD Family 10h registers"),
                map,
                notes: Vec::new(),
            }),
            channels: None,
        },
    }
}

fn about(name: &str, trust: Trust, source: &str) -> About {
    About {
        name: name.into(),
        description: format!(
            "from the {name} of {}",
            cpu_name(&Host::live()).unwrap_or_else(|| "this machine".into())
        ),
        trust,
        source: vec![format!("soloist map detect --from {name}: {source}")],
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;

    #[test]
    fn a_map_that_knows_channels_is_held_against_others() {
        let candidate = |name: &str| {
            let machine = known::find(name).unwrap();
            Candidate {
                about: machine.about,
                map: machine.map,
                notes: Vec::new(),
            }
        };
        let mut tried = nothing(Source::Firmware, String::new());
        let chosen = candidate("opteron-6128");
        let said = by_channels(&[], Source::Known, &chosen).unwrap();
        assert!(said.is_empty(), "{said:?}");
        let mut own = candidate("opteron-6128");
        for layout in &mut own.map.layouts {
            layout.rank.clear();
            layout.bank.clear();
            layout.row.clear();
            layout.column.clear();
            layout.bank_group.clear();
        }
        tried.channels = Some(own);
        let said = by_channels(std::slice::from_ref(&tried), Source::Known, &chosen).unwrap();
        assert_eq!(said, ["amd_atl: banks lie in one channel each"]);
        for layout in &mut tried.channels.as_mut().unwrap().map.layouts {
            layout.channel = vec![1 << 19];
        }
        let error = by_channels(&[tried], Source::Known, &chosen).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("known is contradicted: amd_atl"), "{error}");
    }

    #[test]
    fn a_map_that_edac_contradicts_is_not_taken() {
        let machine = known::find("opteron-6128").unwrap();
        let chosen = Candidate {
            about: machine.about,
            map: machine.map,
            notes: Vec::new(),
        };
        let mut counted = Counted {
            by: "EDAC (F10h)".into(),
            channels: 8,
            ranks: Some(2),
            bytes: 32 << 30,
        };
        let said = by_count(Some(&counted), Source::Registers, &chosen).unwrap();
        assert_eq!(said, ["EDAC (F10h) counts the same"]);
        counted.channels = 4;
        let error = by_count(Some(&counted), Source::Registers, &chosen).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("registers is contradicted"), "{error}");
        assert!(error.contains("counts 4 channels"), "{error}");
        let said = by_count(None, Source::Known, &chosen).unwrap();
        assert!(said[0].contains("not checked by count"), "{said:?}");
    }
}
