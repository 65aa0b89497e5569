//! The initramfs: the guest's init, the modules it needs, and what to run.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cpio::newc::{self, ModeFileType};

use crate::error::{io, Error};
use crate::kernel::Kernel;
use crate::source::source_root;

/// For guests of this program's own architecture.
const INIT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/init"));

/// What init loads to reach the host, in this order. A kernel that lacks one
/// has it built in.
const MODULES: [&str; 10] = [
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci",
    "drivers/char/virtio_console",
    "fs/fuse/fuse",
    "fs/fuse/virtiofs",
    "fs/configfs/configfs",
    "fs/overlayfs/overlay",
];

const DIRS: [&str; 7] = ["proc", "sys", "dev", "host", "over", "root", "soloist"];

/// Writes an uncompressed archive in the kernel's `newc` format.
pub(crate) struct Archive<W: Write> {
    out: W,
    inode: u32,
}

impl<W: Write> Archive<W> {
    /// An archive with init, its directories and the modules of `kernel`.
    pub(crate) fn new(out: W, kernel: &Kernel) -> Result<Self, Error> {
        let mut archive = Self { out, inode: 1 };
        for dir in DIRS {
            archive.dir(dir)?;
        }
        let init = kernel
            .arch()
            .program("init", INIT, source_root().as_deref())?;
        archive.add("init", &init, 0o755)?;
        archive.dir("soloist/modules")?;
        for (at, module) in MODULES.iter().enumerate() {
            if let Some(code) = read_module(&kernel.modules.join("kernel"), module)? {
                let name = Path::new(module)
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy();
                archive.add(&format!("soloist/modules/{at:02}-{name}.ko"), &code, 0o644)?;
            }
        }
        Ok(archive)
    }

    /// Adds a file that init reads.
    pub(crate) fn file(&mut self, name: &str, content: &[u8]) -> Result<(), Error> {
        self.add(&format!("soloist/{name}"), content, 0o644)
    }

    /// Adds a file of NUL-ended strings.
    pub(crate) fn strings<S: AsRef<OsStr>>(&mut self, name: &str, list: &[S]) -> Result<(), Error> {
        let mut content = Vec::new();
        for text in list {
            content.extend_from_slice(text.as_ref().as_bytes());
            content.push(0);
        }
        self.file(name, &content)
    }

    /// Ends the archive.
    pub(crate) fn finish(self) -> Result<(), Error> {
        newc::trailer(self.out)
            .map(drop)
            .map_err(io("cannot write the initramfs"))
    }

    fn dir(&mut self, name: &str) -> Result<(), Error> {
        self.entry(name, ModeFileType::Directory, 0o755, &[])
    }

    fn add(&mut self, name: &str, content: &[u8], mode: u32) -> Result<(), Error> {
        self.entry(name, ModeFileType::Regular, mode, content)
    }

    fn entry(
        &mut self,
        name: &str,
        kind: ModeFileType,
        mode: u32,
        content: &[u8],
    ) -> Result<(), Error> {
        self.inode += 1;
        let mut writer = newc::Builder::new(name)
            .ino(self.inode)
            .mode(mode)
            .set_mode_file_type(kind)
            .write(&mut self.out, content.len() as u32);
        let done = writer
            .write_all(content)
            .and_then(|()| writer.finish().map(drop));
        done.map_err(io(format!("cannot write {name} into the initramfs")))
    }
}

/// The code of a module, unpacked; none where the kernel has no such file.
fn read_module(dir: &Path, module: &str) -> Result<Option<Vec<u8>>, Error> {
    let plain = dir.join(format!("{module}.ko"));
    if plain.exists() {
        let code = std::fs::read(&plain).map_err(io(format!("cannot read {}", plain.display())))?;
        return Ok(Some(code));
    }
    let packed = dir.join(format!("{module}.ko.xz"));
    if !packed.exists() {
        return Ok(None);
    }
    let what = format!("cannot unpack {}", packed.display());
    let content = std::fs::read(&packed).map_err(io(what.clone()))?;
    let mut code = Vec::new();
    lzma_rs::xz_decompress(&mut content.as_slice(), &mut code)
        .map_err(|e| io(what)(std::io::Error::other(format!("{e:?}"))))?;
    Ok(Some(code))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;

    #[test]
    fn an_archive_reads_back() {
        let root = tempfile::tempdir().unwrap();
        let kernel = Kernel {
            version: "1".into(),
            image: root.path().join("vmlinuz"),
            modules: root.path().into(),
        };
        std::fs::create_dir_all(root.path().join("kernel/fs/overlayfs")).unwrap();
        std::fs::write(root.path().join("kernel/fs/overlayfs/overlay.ko"), "code").unwrap();
        let mut bytes = Vec::new();
        let mut archive = Archive::new(&mut bytes, &kernel).unwrap();
        archive.strings("argv", &["echo", "a b"]).unwrap();
        archive.finish().unwrap();

        let mut found = Vec::new();
        let mut rest: &[u8] = &bytes;
        loop {
            let mut reader = newc::Reader::new(rest).unwrap();
            if reader.entry().is_trailer() {
                break;
            }
            let mut content = Vec::new();
            std::io::Read::read_to_end(&mut reader, &mut content).unwrap();
            found.push((reader.entry().name().to_owned(), content));
            rest = reader.finish().unwrap();
        }
        let content = |name: &str| {
            found
                .iter()
                .find(|(n, _)| n == name)
                .map(|(_, c)| c.as_slice())
        };
        assert_eq!(content("init"), Some(INIT));
        assert_eq!(content("soloist/modules/09-overlay.ko"), Some(&b"code"[..]));
        assert_eq!(content("soloist/argv"), Some(&b"echo\0a b\0"[..]));
    }
}
