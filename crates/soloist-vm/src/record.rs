//! Recording: programs run in a guest, and what leaves the private caches of their
//! processors is kept with guest physical addresses.
//!
//! A guest is run as ever ([`crate::run()`]), but under QEMU 10 and with the
//! plugin of soloist-plugin, which reads a plan and leaves streams
//! (soloist-record). In the guest, `guest/record.c` gives each program its
//! processors and colours and tells the plugin when to begin.

mod request;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use soloist_record::meta::{lock, vacant, Cache, Program, Streams};
use soloist_record::plan::Plan;
use soloist_record::{frame, Meta};

use crate::arch::Arch;
use crate::error::{io, Error};
use crate::interrupt::Scratch;
use crate::outcome::GuestOutcome;
use crate::qemu;
use crate::run::run;
use crate::spec::{Recorder, Spec};

pub use request::{private_caches, Request};

const INSIDE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/record"));
/// Where QEMU's `pc` machine ends memory below 4 GiB when it is not told to, for
/// guests that have more.
const PC_SPLITS_AT: u64 = 0xe000_0000;
const PC_SPLIT: u64 = 0xc000_0000;

/// What is recorded.
#[derive(Debug, Clone)]
pub struct Order {
    /// Directory of the recording; is made.
    pub out: PathBuf,
    /// Name of the machine.
    pub machine: String,
    /// Its map, as the module takes it.
    pub map: String,
    /// Node of each processor of the guest.
    pub node_of_cpu: Vec<u32>,
    /// Name of the placement.
    pub policy: String,
    /// Bytes after which recording stops.
    pub limit: u64,
    /// Bytes of a line.
    pub line: u32,
    /// Private caches, `l1d` first.
    pub caches: Vec<Cache>,
    /// Foreground first.
    pub programs: Vec<Program>,
}

/// Finds QEMU 10 for guests of `arch` and the plugin, or says what makes them.
pub fn recorder(arch: Arch, root: Option<&Path>) -> Result<(PathBuf, PathBuf), Error> {
    let qemu = arch.qemu_of_tree(root)?;
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent);
    let named = std::env::var_os("SOLOIST_PLUGIN").map(PathBuf::from);
    Ok((qemu, plugin(named, beside, root)?))
}

/// The plugin that is `named`, or lies `beside` this program, or that the source tree `root`
/// built last: an installed program has none beside it, and an older one is of other sources.
fn plugin(
    named: Option<PathBuf>,
    beside: Option<&Path>,
    root: Option<&Path>,
) -> Result<PathBuf, Error> {
    let name = "libsoloist_plugin.so";
    if let Some(named) = named {
        return match named.exists() {
            true => Ok(named),
            false => Err(Error::Refused(format!(
                "SOLOIST_PLUGIN: there is no {}",
                named.display()
            ))),
        };
    }
    let built = ["debug", "demo", "release"].map(|profile| {
        let file = root?.join("target").join(profile).join(name);
        let made = fs::metadata(&file)
            .and_then(|about| about.modified())
            .ok()?;
        Some((made, file))
    });
    let newest = || built.into_iter().flatten().max_by_key(|(made, _)| *made);
    let beside = beside
        .map(|dir| dir.join(name))
        .filter(|file| file.exists());
    let found = beside.or_else(|| newest().map(|(_, file)| file));
    found.ok_or_else(|| Error::NotMade {
        what: format!(
            "the recording plugin ({name}, in the source tree; SOLOIST_PLUGIN=FILE names it elsewhere)"
        ),
        advice: "make cli",
    })
}

/// Runs `spec`'s guest with the order's programs in it; what became of it, and of
/// what. The spec's own command is not run.
pub fn record(
    mut spec: Spec,
    order: &Order,
    root: Option<&Path>,
) -> Result<(GuestOutcome, Meta), Error> {
    let arch = spec.kernel.arch();
    let (qemu, plugin) = recorder(arch, root)?;
    let out = &order.out;
    vacant(out).map_err(Error::Refused)?;
    let is_new = !out.exists();
    fs::create_dir_all(out).map_err(io(format!("cannot make {}", out.display())))?;
    let out = out
        .canonicalize()
        .map_err(io(format!("cannot use {}", out.display())))?;
    let _lock = lock(&out).map_err(Error::Refused)?;
    vacant(&out).map_err(Error::Refused)?;
    let tools = Scratch::within(&out, ".recording-")?;
    let inside = tools.path().join("record");
    fs::write(&inside, arch.program("record", INSIDE, root)?)
        .and_then(|()| fs::set_permissions(&inside, fs::Permissions::from_mode(0o755)))
        .map_err(io(format!("cannot write {}", inside.display())))?;

    let plan = tools.path().join("plan.json");
    self::plan(&spec, order, &out).write(&plan)?;
    spec.command = command(&inside, &order.programs);
    spec.recorder = Some(Recorder { qemu, plugin, plan });
    let outcome = run(&spec);
    drop(tools);
    if !outcome.as_ref().is_ok_and(ran) {
        remove_streams(&out, &order.programs, is_new);
    }
    let outcome = outcome?;
    let meta = Meta {
        version: frame::VERSION,
        machine: order.machine.clone(),
        map: order.map.clone(),
        node_of_cpu: order.node_of_cpu.clone(),
        kernel: outcome.kernel.clone(),
        policy: order.policy.clone(),
        line: order.line,
        caches: order.caches.clone(),
        programs: order.programs.clone(),
        streams: Streams::default(),
    };
    if !ran(&outcome) {
        return Ok((outcome, meta));
    }
    Ok((outcome, keep(&out, meta, is_new)?))
}

/// Writes what the streams in `out` are of. Where the plugin did not tell that at its end
/// nobody can, and the streams go.
fn keep(out: &Path, meta: Meta, is_new: bool) -> Result<Meta, Error> {
    let streams = Streams::read(out).map_err(|_| {
        remove_streams(out, &meta.programs, is_new);
        Error::Refused(format!(
            "{}: QEMU ended before the plugin had written all of it, and nothing of the recording \
             is kept: record again",
            out.display()
        ))
    })?;
    let meta = Meta { streams, ..meta };
    // First, so that there is room for the second on a full disk.
    let left = out.join(soloist_record::meta::STREAMS);
    fs::remove_file(&left).map_err(io(format!("cannot remove {}", left.display())))?;
    meta.write(out)?;
    Ok(meta)
}

/// Removes what the plugin left in `out` of a recording that is none, and `out` itself if it
/// was made for it.
fn remove_streams(out: &Path, programs: &[Program], is_new: bool) {
    let cpus = programs.iter().flat_map(|program| &program.cpus);
    let streams = cpus.map(|cpu| soloist_record::meta::stream_file(*cpu));
    for file in streams.chain([soloist_record::meta::STREAMS.to_owned()]) {
        // What is not there need not go, and what stays is told by the guest's failure.
        let _ = fs::remove_file(out.join(file));
    }
    if is_new {
        let _ = fs::remove_dir(out);
    }
}

/// Bytes that are free where the directory `out` is, or would be made.
///
/// # Errors
/// When its file system cannot be asked.
pub fn free_space(out: &Path) -> Result<u64, Error> {
    let mut there = out.to_path_buf();
    while !there.exists() && there.pop() {}
    if there.as_os_str().is_empty() {
        there.push(".");
    }
    let disk =
        rustix::fs::statvfs(&there).map_err(|e| io(there.display().to_string())(e.into()))?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Whether the foreground ran, so that there is something to keep: 125 is
/// `guest/record.c`'s own failure, 126 and 127 are a program that can't be run.
pub fn ran(outcome: &GuestOutcome) -> bool {
    outcome.healthy() && !(125..=127).contains(&outcome.status())
}

fn plan(spec: &Spec, order: &Order, out: &Path) -> Plan {
    let arch = spec.kernel.arch();
    let ram = qemu::pieces(&spec.nodes);
    let total: u64 = ram.iter().sum();
    let below_4g = match (arch, spec.nodes.below_4g()) {
        // QEMU's `virt` has no hole.
        (Arch::Arm64, _) => total,
        (Arch::X86_64, Some(limit)) => limit,
        (Arch::X86_64, None) if total >= PC_SPLITS_AT => PC_SPLIT,
        (Arch::X86_64, None) => total,
    };
    Plan {
        out: out.to_path_buf(),
        limit: order.limit,
        line: order.line,
        caches: order.caches.clone(),
        programs: order.programs.iter().map(|p| p.cpus.clone()).collect(),
        ram,
        begins: arch.memory_begins(),
        below_4g,
    }
}

/// The words of `guest/record.c`.
fn command(inside: &Path, programs: &[Program]) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![inside.into()];
    for program in programs {
        let cpus: Vec<String> = program.cpus.iter().map(u32::to_string).collect();
        words.push(cpus.join(",").into());
        words.push(program.colors.len().to_string().into());
        words.extend(program.colors.iter().map(OsString::from));
        words.push(program.argv.len().to_string().into());
        words.extend(program.argv.iter().map(OsString::from));
    }
    words
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn an_installed_program_takes_the_plugin_that_the_tree_built() {
        let dir = tempfile::tempdir().unwrap();
        let (bin, root) = (dir.path().join("bin"), dir.path().join("tree"));
        let found = || plugin(None, Some(&bin), Some(&root));
        let why = found().unwrap_err().to_string();
        assert!(why.contains("SOLOIST_PLUGIN"), "{why}");
        // Each goes before the one made before it.
        let (debug, release) = (root.join("target/debug"), root.join("target/release"));
        let made = std::time::SystemTime::now();
        for (n, place) in [&release, &debug, &release, &bin].into_iter().enumerate() {
            fs::create_dir_all(place).unwrap();
            let file = place.join("libsoloist_plugin.so");
            let written = File::create(&file).unwrap();
            written
                .set_modified(made + std::time::Duration::from_secs(n as u64))
                .unwrap();
            assert_eq!(found().unwrap(), file);
            assert_eq!(
                plugin(Some(file.clone()), None, None).unwrap(),
                file,
                "that is named"
            );
        }
        let why = plugin(Some("/nowhere".into()), Some(&bin), None).unwrap_err();
        assert!(why.to_string().contains("no /nowhere"), "{why}");
    }

    #[test]
    fn streams_of_which_nothing_was_told_go() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let mut meta = Meta::of_program("p", Vec::new());
        meta.programs[0].cpus = vec![0];
        fs::create_dir(&out).unwrap();
        fs::write(out.join("cpu-0.rec"), "").unwrap();
        Streams::default().write(&out).unwrap();
        assert!(keep(&out, meta.clone(), true).is_ok());
        assert!(out.join("cpu-0.rec").exists());
        fs::remove_file(out.join("recording.json")).unwrap();
        // The plugin was ended before it told: there is only the room that it took.
        Streams::reserve(&out).unwrap();
        let why = keep(&out, meta, true).unwrap_err().to_string();
        assert!(why.contains("ended before the plugin"), "{why}");
        assert!(!out.exists());
    }

    #[test]
    fn a_recording_that_is_none_leaves_nothing() {
        let program = Program {
            name: "p".into(),
            argv: vec!["p".into()],
            cpus: vec![0, 3],
            colors: Vec::new(),
        };
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let files = ["cpu-0.rec", "cpu-3.rec", "streams.json"];
        let leave = || {
            fs::create_dir_all(&out).unwrap();
            for file in files {
                fs::write(out.join(file), "").unwrap();
            }
        };
        leave();
        remove_streams(&out, std::slice::from_ref(&program), true);
        assert!(!out.exists());
        // Somebody's own directory stays, and what else is in it.
        leave();
        fs::write(out.join("cpu-1.rec"), "").unwrap();
        remove_streams(&out, std::slice::from_ref(&program), false);
        let left: Vec<_> = fs::read_dir(&out).unwrap().collect();
        assert_eq!(left.len(), 1);
        remove_streams(&out, &[program], true);
        assert!(out.join("cpu-1.rec").exists());
    }
}
