//! What someone asks to have recorded, made into a guest and an [`Order`]: who runs on which
//! processors, and what places whose pages.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use soloist_core::{AddrMap, ColorSet, NumList};
use soloist_machine::Machine;
use soloist_play::policy::{linux, Policy, Tenant};
use soloist_record::meta::{vacant, Cache, Program, LINE};
use soloist_record::plan::MAX_CPUS;

use super::Order;
use crate::arch::Arch;
use crate::error::Error;
use crate::kernel::{self, Kernel};
use crate::nodes::GuestNodes;
use crate::spec::{Output, Spec};

/// Programs to record on a machine.
#[derive(Debug, Clone)]
pub struct Request {
    /// Name or file of the machine.
    pub machine: String,
    /// Kernel, by name or version.
    pub kernel: String,
    /// Load the module; without it only Linux' own placement can be had.
    pub module: bool,
    /// Who gets which pages.
    pub policy: &'static dyn Policy,
    /// Bank sets for each program.
    pub sets: u32,
    /// Directory of the recording.
    pub out: PathBuf,
    /// Bytes after which recording stops.
    pub limit: u64,
    /// Processors of the first program; each other has one.
    pub threads: u32,
    /// Processors of the guest; none: as many as are recorded, or nodes.
    pub cpus: Option<u32>,
    /// Record instruction fetches too.
    pub fetches: bool,
    /// When to give up.
    pub timeout: Option<Duration>,
    /// Words of each program, the foreground first; one at least, none without words.
    pub programs: Vec<Vec<OsString>>,
}

impl Request {
    /// The guest, with this source tree's module, and what [`super::record`] is to do in it.
    ///
    /// # Errors
    /// When something of a recording is in the directory, a word is not UTF-8, or the machine,
    /// the kernel, the module or the policy cannot be used.
    pub fn prepare(
        &self,
        machine: &Machine,
        output: Output,
        root: Option<&Path>,
    ) -> Result<(Spec, Order), Error> {
        vacant(&self.out).or_else(|why| refused(format!("--out: {why}")))?;
        let mut words = self.programs.iter().flatten();
        if let Some(word) = words.find(|word| word.to_str().is_none()) {
            return refused(format!(
                "`{}`: a word that is not UTF-8 would be recorded as another one",
                word.to_string_lossy()
            ));
        }
        if self.sets != 1 && !self.policy.is_colored() {
            return refused(format!(
                "--sets {}: --policy {} gives no bank sets; a policy by colour does, such as \
                 diff_bank",
                self.sets,
                self.policy.name()
            ));
        }
        let kernel = kernel::find(&self.kernel, root)?;
        let nodes = self.nodes(machine, kernel.arch())?;
        let order = self.order(machine, &nodes)?;
        Ok((self.spec(machine, kernel, nodes, output, root)?, order))
    }

    fn nodes(&self, machine: &Machine, arch: Arch) -> Result<GuestNodes, Error> {
        let mut guest = GuestNodes::of(machine)?.exactly_on(arch, machine)?;
        let needed = self.threads + self.programs.len() as u32 - 1;
        if needed as usize > MAX_CPUS {
            return refused(format!(
                "the programs need {needed} processors, and no more than {MAX_CPUS} are recorded: \
                 leave some programs out"
            ));
        }
        let nodes = guest.node_memory.len() as u32;
        guest.cpus = self.cpus.unwrap_or(needed.max(nodes));
        if needed > guest.cpus {
            return refused(format!("--cpus {}: the programs need {needed}", guest.cpus));
        }
        Ok(guest)
    }

    fn order(&self, machine: &Machine, guest: &GuestNodes) -> Result<Order, Error> {
        let cpus = self.cpus_of_programs();
        let tenant = |cpus: &Vec<u32>| Tenant {
            node: guest.home(cpus[0]),
            sets: self.sets,
        };
        let tenants: Vec<Tenant> = cpus.iter().map(tenant).collect();
        let settings = settings(self.policy, &machine.addr_map(), &tenants)?;
        let programs = self.programs.iter().zip(cpus).zip(settings);
        Ok(Order {
            out: self.out.clone(),
            machine: self.machine.clone(),
            map: machine.map_text(),
            node_of_cpu: (0..guest.cpus).map(|cpu| guest.node_of(cpu)).collect(),
            policy: self.policy.name().to_owned(),
            limit: self.limit,
            line: LINE,
            caches: private_caches(machine, self.fetches)?,
            programs: programs
                .map(|((words, cpus), colors)| program(words, cpus, colors))
                .collect(),
        })
    }

    /// The first programs' processors come first.
    fn cpus_of_programs(&self) -> Vec<Vec<u32>> {
        let mut next = 0;
        let cpus = |i: usize| {
            let first = next;
            next += if i == 0 { self.threads } else { 1 };
            (first..next).collect()
        };
        (0..self.programs.len()).map(cpus).collect()
    }

    fn spec(
        &self,
        machine: &Machine,
        kernel: Kernel,
        nodes: GuestNodes,
        output: Output,
        root: Option<&Path>,
    ) -> Result<Spec, Error> {
        if !self.module && self.policy.is_colored() {
            let only =
                "--no-module: only Linux' own placement, --policy buddy, membind or interleave";
            return refused(only.to_owned());
        }
        let module = match self.module {
            true => Some(kernel.built_module(root)?),
            false => None,
        };
        Ok(Spec {
            // 1 ns an instruction: a slow emulator would give the kernel more timer ticks.
            icount: Some(0),
            map: module.is_some().then(|| machine.map_text()),
            module,
            timeout: self.timeout,
            output,
            ..Spec::here(kernel, nodes)?
        })
    }
}

fn refused<T>(why: String) -> Result<T, Error> {
    Err(Error::Refused(why))
}

fn program(words: &[OsString], cpus: Vec<u32>, colors: Vec<String>) -> Program {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    Program {
        name: Path::new(&words[0])
            .file_name()
            .map_or_else(|| text(&words[0]), |n| n.to_string_lossy().into_owned()),
        argv: words.iter().map(text).collect(),
        cpus,
        colors,
    }
}

/// What places the pages of each program: settings of the module's group, or words
/// of Linux' own for `guest/record.c`.
fn settings(
    policy: &dyn Policy,
    map: &AddrMap,
    tenants: &[Tenant],
) -> Result<Vec<Vec<String>>, Error> {
    if policy.is_colored() {
        let colors = policy.colors(map, tenants);
        let colors = colors.map_err(|e| Error::Refused(e.to_string()))?;
        return Ok(colors.iter().flatten().map(group_settings).collect());
    }
    if policy.interleaves() {
        let mut nodes = NumList::new(map.n_nodes());
        for node in map.memory_nodes() {
            nodes.insert(node);
        }
        return Ok(vec![vec![format!("interleave={nodes}")]; tenants.len()]);
    }
    let home = tenants.first().map_or(0, |tenant| tenant.node);
    let buddy: &dyn Policy = &linux::BUDDY;
    if policy.node(map, home, 0).is_none() && policy != buddy {
        return refused(format!(
            "--policy {policy}: pages lie as with buddy; record with that one, and \
             `sim replay --recolor {policy}` plays it"
        ));
    }
    let word = |node: u32| format!("membind={node}");
    let words = |program| policy.node(map, home, program).map(word);
    Ok((0..tenants.len())
        .map(|program| words(program).into_iter().collect())
        .collect())
}

/// What the module's group is told.
fn group_settings(colors: &ColorSet) -> Vec<String> {
    let mut settings = vec!["exhaust=spill".to_owned()];
    if let Some(sets) = colors.sets() {
        settings.push(format!("bank_set={sets}"));
    }
    if let Some(llc) = colors.llc() {
        settings.push(format!("llc_color={llc}"));
    }
    settings
}

/// The machine's private caches: all levels but the last; that of instructions if
/// they are recorded.
///
/// # Errors
/// When the machine file has no `l1d` with a level behind it, or lines that recordings
/// can't have.
pub fn private_caches(machine: &Machine, fetches: bool) -> Result<Vec<Cache>, Error> {
    let no_caches = || {
        let name = &machine.about.name;
        Error::Refused(format!("{name}: no [cache] l1d and level behind it"))
    };
    let caches = machine.cache.as_ref().ok_or_else(no_caches)?;
    if caches.line != LINE {
        return refused(format!(
            "{}: lines of {} bytes: recordings are of lines of {LINE} bytes only",
            machine.about.name, caches.line
        ));
    }
    let line = u64::from(caches.line);
    let named = |name: &str, cache: &soloist_machine::Cache| Cache {
        name: name.to_owned(),
        sets: cache.size.0 / (line * u64::from(cache.ways)).max(1),
        ways: cache.ways as usize,
    };
    let data: Vec<Cache> = [("l1d", &caches.l1d), ("l2", &caches.l2), ("l3", &caches.l3)]
        .into_iter()
        .filter_map(|(name, cache)| Some(named(name, cache.as_ref()?)))
        .collect();
    let [first, private @ .., _last] = data.as_slice() else {
        return Err(no_caches());
    };
    let mut list = vec![first.clone()];
    if let (Some(l1i), true) = (&caches.l1i, fetches) {
        list.push(named("l1i", l1i));
    }
    list.extend(private.iter().cloned());
    Ok(list)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn lines_of_other_lengths_are_refused() {
        let mut machine = soloist_machine::known::find("opteron-6128").unwrap();
        assert!(private_caches(&machine, true).is_ok());
        machine.cache.as_mut().unwrap().line = 128;
        let why = private_caches(&machine, true).unwrap_err().to_string();
        assert!(why.contains("lines of 128 bytes"), "{why}");
    }

    #[test]
    fn bank_sets_are_for_a_policy_that_gives_some() {
        let machine = soloist_machine::known::find("opteron-6128").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let request = Request {
            machine: "opteron-6128".to_owned(),
            kernel: "none".to_owned(),
            module: false,
            policy: &linux::BUDDY,
            sets: 2,
            out: dir.path().to_path_buf(),
            limit: 0,
            threads: 1,
            cpus: None,
            fetches: true,
            timeout: None,
            programs: vec![vec!["true".into()]],
        };
        let said = |request: &Request| match request.prepare(&machine, Output::Keep, None) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        assert!(said(&request).starts_with("--sets 2: --policy buddy"));
        let one = Request { sets: 1, ..request };
        assert!(!said(&one).contains("--sets"), "{}", said(&one));
        let odd = OsString::from_vec(vec![b'a', 0xff]);
        let odd = Request {
            programs: vec![vec!["true".into(), odd]],
            ..one.clone()
        };
        assert!(said(&odd).contains("not UTF-8"), "{}", said(&odd));
        let stream = dir.path().join("cpu-0.rec");
        std::fs::write(&stream, "").unwrap();
        assert!(said(&one).contains("has cpu-0.rec"), "{}", said(&one));
        std::fs::remove_file(&stream).unwrap();
        // A program each of 64 processors is the most.
        let many = |n| Request {
            programs: vec![vec!["true".into()]; n],
            ..one.clone()
        };
        assert!(many(64).nodes(&machine, Arch::X86_64).is_ok());
        let why = many(65).nodes(&machine, Arch::X86_64).unwrap_err();
        assert!(why.to_string().contains("need 65 processors"), "{why}");
    }
}
