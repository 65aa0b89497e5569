//! QEMU's command line, and the processes of one guest.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::arch::Arch;
use crate::clock;
use crate::error::{io, Error};
use crate::nodes::GuestNodes;
use crate::source::source_root;
use crate::spec::Spec;

/// Where the server of the host's files is, and what it is told. Debian 12's is a
/// part of QEMU; that of later releases is a program of its own, where `-o` brings
/// back what the first one meant, but with mount points announced: a guest can't
/// mount on such a directory, as it must on /proc (EREMOTE).
///
/// Any other mode of the cache reads a program anew whenever it is started, which
/// takes most of the time that a guest full of short programs takes.
const VIRTIOFSD: [(&str, &[&str]); 3] = [
    ("/usr/libexec/virtiofsd", OF_ITS_OWN),
    ("/usr/lib/virtiofsd/virtiofsd", OF_ITS_OWN),
    // Since Debian 13 a link to the first.
    (
        "/usr/lib/qemu/virtiofsd",
        &["-o", "source=/,sandbox=chroot,cache=always"],
    ),
];
const OF_ITS_OWN: &[&str] = &[
    "--shared-dir=/",
    "--sandbox=chroot",
    "--cache=always",
    "--no-announce-submounts",
];
const FILES_PACKAGE: &str = "virtiofsd, or before Debian 13 qemu-system-common";

/// The kernel's command line: the console is a file; any trouble ends the
/// guest at once. The limits of the watchdogs are wide, since an emulated cpu
/// on a loaded host may stand still for seconds. Addresses are not random: QEMU
/// 7.2 translates code anew for each address at which it is mapped, keeps all of
/// that, and goes through it at each store when the page becomes another's; a test
/// of memory pressure behind some hundred programs took 18 s, not over 400.
///
/// The kernel clears each page before it uses it, as Debian's kernels do anyway. The server of
/// the host's files writes to the guest's memory behind QEMU's back, and QEMU would go on with
/// its translation of the code that was in the page before. A kernel that did not clear pages
/// soon lost every program to a signal, without our module.
const APPEND: &str = "rdinit=/init panic=-1 oops=panic panic_on_warn=1 \
    sysctl.kernel.hung_task_panic=1 sysctl.kernel.hung_task_timeout_secs=240 \
    sysctl.kernel.softlockup_panic=1 watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=200 \
    nokaslr norandmaps init_on_alloc=1 printk.devkmsg=on random.trust_cpu=on";

/// A child process that is killed when it is dropped.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// Starts `command`, which inherits `passed` and no other descriptor: other
    /// threads start guests of their own meanwhile.
    fn start(
        mut command: Command,
        passed: Vec<RawFd>,
        name: &'static str,
        package: &'static str,
    ) -> Result<Self, Error> {
        // SAFETY: prctl, setpgid and fcntl are async-signal-safe; the child has
        // the descriptors, since the caller keeps them open until it is started.
        unsafe {
            command.pre_exec(move || {
                for &fd in &passed {
                    if libc::fcntl(fd, libc::F_SETFD, 0) != 0 {
                        return Err(std::io::Error::last_os_error());
                    }
                }
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // Ctrl-C is ours to answer, so that the guest ends in order.
                libc::setpgid(0, 0);
                Ok(())
            });
        }
        command
            .stdin(Stdio::null())
            .spawn()
            .map(Self)
            .map_err(|e| match e.kind() {
                std::io::ErrorKind::NotFound => Error::NoProgram {
                    program: name,
                    package,
                },
                _ => io(format!("cannot start {name}"))(e),
            })
    }

    /// Whether it has ended.
    pub(crate) fn ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Ends it.
    pub(crate) fn kill(&mut self) {
        // It may have ended by itself; there is nothing else to do then.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Whether hardware virtualisation truly works: `/dev/kvm` alone does not say
/// so, and without vmx or svm a guest hangs on it.
pub(crate) fn has_kvm() -> bool {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let able = flags
        .split_whitespace()
        .any(|flag| flag == "vmx" || flag == "svm");
    able && std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/kvm")
        .is_ok()
}

/// Serves the host's root to the guest that connects to `socket`.
pub(crate) fn serve_files(listener: UnixListener, log: &Path) -> Result<Process, Error> {
    let mut known = VIRTIOFSD.iter();
    let found = known.find(|(path, _)| Path::new(path).exists());
    let (program, words) = found.ok_or(Error::NoProgram {
        program: "virtiofsd",
        package: FILES_PACKAGE,
    })?;
    let log = std::fs::File::create(log).map_err(io("cannot write virtiofsd's log"))?;
    let mut command = Command::new(program);
    command
        .arg(format!("--fd={}", listener.as_raw_fd()))
        .args(*words)
        .stdout(Stdio::null())
        .stderr(log);
    let passed = vec![listener.as_raw_fd()];
    Process::start(command, passed, "virtiofsd", FILES_PACKAGE)
}

/// The guest's ends of its serial ports.
pub(crate) struct Ports {
    /// Name in the guest and the descriptor that QEMU shall have.
    pub(crate) list: Vec<(&'static str, OwnedFd)>,
}

/// Files of one guest.
pub(crate) struct Files<'a> {
    pub(crate) initramfs: &'a Path,
    pub(crate) console: &'a Path,
    pub(crate) host_files: &'a Path,
    pub(crate) qemu_log: &'a Path,
}

/// Starts the guest.
pub(crate) fn start(spec: &Spec, ports: Ports, files: &Files) -> Result<Process, Error> {
    let arch = spec.kernel.arch();
    let of_host = arch.qemu_of_host();
    let mut command = match (&spec.recorder, of_host) {
        (Some(recorder), _) => {
            let mut command = Command::new(&recorder.qemu);
            let plan = comma(&recorder.plan);
            let plugin = format!("{},plan={plan}", comma(&recorder.plugin));
            command.args(["-plugin", &plugin]);
            command
        }
        (None, Some((program, _))) => Command::new(program),
        (None, None) => Command::new(arch.qemu_of_tree(source_root().as_deref())?),
    };
    command.args([
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-no-reboot",
    ]);
    command.args(machine_args(spec));
    command.args(node_args(&spec.nodes));
    command.arg("-kernel").arg(&spec.kernel.image);
    command.arg("-initrd").arg(files.initramfs);
    command.arg("-append").arg(append(spec));
    command.args([
        "-chardev",
        &format!("file,id=console,path={}", comma(files.console)),
    ]);
    command.args(["-serial", "chardev:console", "-device", "virtio-serial-pci"]);
    for (name, fd) in &ports.list {
        command.args([
            "-chardev",
            &format!("socket,id={name},fd={}", fd.as_raw_fd()),
        ]);
        command.args([
            "-device",
            &format!("virtserialport,chardev={name},name=soloist.{name}"),
        ]);
    }
    command.args([
        "-chardev",
        &format!("socket,id=host,path={}", comma(files.host_files)),
    ]);
    command.args(["-device", "vhost-user-fs-pci,chardev=host,tag=host"]);
    command.args(&spec.qemu_args);
    let log = std::fs::File::create(files.qemu_log).map_err(io("cannot write QEMU's log"))?;
    command.stdout(Stdio::null()).stderr(log);
    let passed = ports.list.iter().map(|(_, fd)| fd.as_raw_fd()).collect();
    let (program, package) = of_host.unwrap_or(("QEMU", "qemu-system-arm"));
    Process::start(command, passed, program, package)
}

/// A path as QEMU's option lists want it.
fn comma(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

fn append(spec: &Spec) -> String {
    let arch = spec.kernel.arch();
    let mut words = format!("{} {APPEND}", arch.words());
    // A guest under KVM has its clock from there; arm64 has its rate in a register.
    if accelerator(spec) != "kvm" && arch == Arch::X86_64 {
        words.extend(clock::word(spec.icount.is_some()).map(|word| format!(" {word}")));
    }
    words + " " + &spec.append
}

/// Multi-threaded emulation of QEMU 7.2 breaks the patching of live code.
fn accelerator(spec: &Spec) -> &'static str {
    if spec.recorder.is_some() && spec.icount.is_none() {
        "tcg,thread=multi"
    } else if spec.icount.is_none() && spec.kernel.arch() == Arch::X86_64 && has_kvm() {
        "kvm"
    } else {
        "tcg,thread=single"
    }
}

fn machine_args(spec: &Spec) -> Vec<String> {
    let arch = spec.kernel.arch();
    let mut machine = match (arch, is_in_one_piece(&spec.nodes)) {
        (Arch::Arm64, _) => "virt,gic-version=3".to_owned(),
        (Arch::X86_64, true) => format!("{CUTS_MEMORY},memory-backend=ram"),
        (Arch::X86_64, false) => "pc".to_owned(),
    };
    if let (Arch::X86_64, Some(limit)) = (arch, spec.nodes.below_4g()) {
        machine += &format!(",max-ram-below-4g={limit:#x}");
    }
    let accel = accelerator(spec);
    let cpu = match (&spec.cpu, accel) {
        (Some(cpu), _) => cpu,
        (None, "kvm") => "host",
        (None, _) => arch.emulated(spec.recorder.is_some(), spec.icount.is_some()),
    };
    let mut args = vec!["-machine".into(), machine, "-accel".into(), accel.into()];
    args.extend(["-cpu".into(), cpu.into()]);
    if let Some(shift) = spec.icount {
        args.extend(["-icount".into(), format!("shift={shift}")]);
    }
    args
}

/// The server of the host's files takes no more pieces of memory: a guest of more
/// nodes has one, which QEMU itself cuts.
const MOST_PIECES: usize = 8;
/// The newest machine for which QEMU cuts.
const CUTS_MEMORY: &str = "pc-i440fx-5.0";

fn is_in_one_piece(guest: &GuestNodes) -> bool {
    guest.node_memory.iter().filter(|&&size| size > 0).count() > MOST_PIECES
}

/// Bytes of each piece of memory, in the order in which QEMU makes them.
pub(crate) fn pieces(guest: &GuestNodes) -> Vec<u64> {
    let sizes = guest.node_sizes();
    match is_in_one_piece(guest) {
        true => vec![sizes.iter().sum()],
        false => sizes.into_iter().filter(|&size| size > 0).collect(),
    }
}

/// Memory is shared with the server of the host's files, hence memfd.
fn node_args(guest: &GuestNodes) -> Vec<String> {
    let mib = guest.node_sizes().iter().sum::<u64>() >> 20;
    let sockets = guest.sockets();
    let smp = format!(
        "{},sockets={sockets},cores={}",
        guest.cpus,
        guest.cpus / sockets
    );
    let mut args = vec!["-m".into(), format!("{mib}M"), "-smp".into(), smp];
    let mut memory = |name: &str, mib: u64| {
        let memory = format!("memory-backend-memfd,id={name},size={mib}M,share=on");
        args.extend(["-object".into(), memory]);
    };
    if is_in_one_piece(guest) {
        memory("ram", mib);
    } else {
        let sizes = guest.node_sizes().into_iter().enumerate();
        for (node, size) in sizes.filter(|(_, size)| *size > 0) {
            memory(&format!("ram{node}"), size >> 20);
        }
    }
    for (node, size) in guest.node_sizes().iter().enumerate() {
        let mut words = format!("node,nodeid={node}");
        // A node may have cpus alone.
        match size >> 20 {
            0 => {}
            mib if is_in_one_piece(guest) => words += &format!(",mem={mib}M"),
            _ => words += &format!(",memdev=ram{node}"),
        }
        for cpu in guest.cpus_of(node) {
            words += &format!(",cpus={cpu}");
        }
        args.extend(["-numa".into(), words]);
    }
    for (from, row) in guest.distances.iter().enumerate() {
        for (to, distance) in row.iter().enumerate() {
            args.extend([
                "-numa".into(),
                format!("dist,src={from},dst={to},val={distance}"),
            ]);
        }
    }
    args
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    /// Guests are started side by side; one must not keep another's port open.
    #[test]
    fn a_child_inherits_what_it_was_passed_and_nothing_else() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (other, _kept) = UnixStream::pair().unwrap();
        let look = |fd: &UnixStream| format!("[ -e /proc/self/fd/{} ]", fd.as_raw_fd());
        let mut command = Command::new("sh");
        let (has, lacks) = (look(&theirs), look(&other));
        command.args(["-c", &format!("{has} && ! {lacks} && ! {}", look(&ours))]);
        let passed = vec![theirs.as_raw_fd()];
        // As another thread would, in between.
        let mut second = Command::new("true");
        second.stdin(Stdio::null());
        let _second = Process::start(second, vec![other.as_raw_fd()], "true", "coreutils");
        let mut child = Process::start(command, passed, "sh", "dash").unwrap();
        assert!(child.0.wait().unwrap().success());
    }

    /// Sizes of the nodes' memory as QEMU is told them.
    fn memory_and_nodes(guest: &GuestNodes) -> (usize, Vec<String>) {
        let args = node_args(guest);
        let arguments = |word: &str| {
            args.iter()
                .filter(|a| a.starts_with(word))
                .cloned()
                .collect()
        };
        let pieces: Vec<String> = arguments("memory-backend");
        (pieces.len(), arguments("node,"))
    }

    #[test]
    fn many_nodes_share_one_piece_of_memory() {
        let (pieces, nodes) = memory_and_nodes(&GuestNodes::even(4 << 30, 32, 32));
        assert_eq!((pieces, nodes.len()), (1, 32));
        assert_eq!(nodes[31], "node,nodeid=31,mem=128M,cpus=31");
        let (pieces, nodes) = memory_and_nodes(&GuestNodes::even(1 << 30, 2, 3));
        assert_eq!(pieces, 2);
        assert_eq!(
            nodes,
            [
                "node,nodeid=0,memdev=ram0,cpus=0",
                "node,nodeid=1,memdev=ram1,cpus=1,cpus=2"
            ]
        );
    }

    #[test]
    fn a_node_may_have_cpus_alone() {
        let mut guest = GuestNodes::even(1 << 30, 2, 2);
        guest.node_memory[1] = 0;
        let (pieces, nodes) = memory_and_nodes(&guest);
        assert_eq!((pieces, nodes[1].as_str()), (1, "node,nodeid=1,cpus=1"));
    }

    /// The recorder finds the guest's memory by these.
    #[test]
    fn pieces_are_the_memory_that_qemu_is_told_to_make() {
        let mut memoryless = GuestNodes::even(1 << 30, 4, 4);
        memoryless.node_memory[1] = 0;
        for guest in [memoryless, GuestNodes::even(4 << 30, 32, 32)] {
            let args = node_args(&guest);
            let told = args.iter().filter(|a| a.starts_with("memory-backend"));
            let told: Vec<u64> = told
                .map(|a| a.split_once("size=").unwrap().1.split_once('M').unwrap().0)
                .map(|mib| mib.parse::<u64>().unwrap() << 20)
                .collect();
            assert_eq!(pieces(&guest), told);
        }
    }
}
