//! Which stock kernels are here: unpacked under `build/kernels` by
//! `scripts/kernels`, or installed.

use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};

use crate::arch::Arch;
use crate::error::Error;
use crate::plan::TestPlan;

/// The kernels that the module supports, by series and flavour: those of
/// Debian 12, 6.12 of Debian 13 and what its backports have. They stand in
/// `tests/kernels`, in this order.
#[must_use]
pub fn names() -> Vec<String> {
    let plan = TestPlan::parse(include_str!("../../../tests/kernels")).unwrap_or_default();
    plan.kernels.into_iter().map(|row| row.kernel).collect()
}

/// A stock kernel's image and modules on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// As `uname -r` prints it in the guest.
    pub version: String,
    /// The bzImage.
    pub image: PathBuf,
    /// Its directory of modules, which the guest sees as `/lib/modules/VERSION`.
    pub modules: PathBuf,
}

impl Kernel {
    /// What it runs on.
    pub fn arch(&self) -> Arch {
        Arch::of_version(&self.version)
    }

    /// `6.12`, `6.12-rt` or the like: the series and flavour of the version,
    /// `6.12-deb13` for Debian 13's of a series that Debian 12 has too, `6.12-arm64-16k`
    /// of another architecture; the version itself where it is none of Debian's.
    pub fn name(&self) -> String {
        let series: Vec<&str> = self.version.split(['.', '-', '+']).take(2).collect();
        let mut series = series.join(".");
        // Debian's rebuilds say so behind a dot: `+deb13.1-amd64`.
        let of_deb13 = |end: &str| self.version.contains(&format!("+deb13{end}"));
        if series == "6.12" && (of_deb13("-") || of_deb13(".")) {
            series += "-deb13";
        }
        if self.arch() == Arch::Arm64 {
            // A board's own, say.
            if !self.version.contains("+deb") {
                return self.version.clone();
            }
            let flavours = ["rt-arm64", "cloud-arm64", "arm64-16k"];
            let flavour = flavours.iter().find(|end| self.version.ends_with(**end));
            return series + "-" + flavour.unwrap_or(&"arm64");
        }
        match self.version.strip_suffix("-amd64") {
            Some(rest) if rest.ends_with("-rt") => series + "-rt",
            Some(rest) if rest.ends_with("-cloud") => series + "-cloud",
            Some(_) => series,
            None => self.version.clone(),
        }
    }

    /// The module that `make build` made for it.
    ///
    /// # Errors
    /// When there is none.
    pub fn built_module(&self, root: Option<&Path>) -> Result<PathBuf, Error> {
        let built = root
            .unwrap_or(Path::new("."))
            .join("build/kernel")
            .join(&self.version)
            .join("soloist.ko");
        if built.exists() {
            Ok(built)
        } else {
            Err(Error::NoModule(self.version.clone()))
        }
    }

    fn at(boot: &Path, modules: &Path, version: &str) -> Option<Self> {
        let kernel = Self {
            version: version.to_owned(),
            image: boot.join(format!("vmlinuz-{version}")),
            modules: modules.join(version),
        };
        (kernel.image.exists() && kernel.modules.join("kernel").is_dir()).then_some(kernel)
    }
}

/// All kernels here, newest first; `root` is the source tree.
pub fn list(root: Option<&Path>) -> Vec<Kernel> {
    let mut found: Vec<Kernel> =
        names_in(&root.unwrap_or(Path::new("/nowhere")).join("build/kernels"))
            .filter_map(|(dir, version)| {
                Kernel::at(&dir.join("boot"), &dir.join("lib/modules"), &version)
            })
            .collect();
    for (_, version) in names_in(Path::new("/lib/modules")) {
        if found.iter().all(|kernel| kernel.version != version) {
            found.extend(Kernel::at(
                Path::new("/boot"),
                Path::new("/lib/modules"),
                &version,
            ));
        }
    }
    found.sort_by(|a, b| compare_versions(&b.version, &a.version));
    found
}

/// The kernel called `name`: a series and flavour as in [`names`] (the newest
/// such), or a whole version.
pub fn find(name: &str, root: Option<&Path>) -> Result<Kernel, Error> {
    let kernels = list(root);
    let wanted = |kernel: &&Kernel| kernel.version == name || kernel.name() == name;
    kernels.iter().find(wanted).cloned().ok_or_else(|| {
        let have: Vec<String> = kernels.iter().map(Kernel::name).collect();
        let have = if have.is_empty() {
            "none".to_owned()
        } else {
            have.join(", ")
        };
        Error::NoKernel(name.to_owned(), have)
    })
}

fn names_in(dir: &Path) -> impl Iterator<Item = (PathBuf, String)> {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.path(), entry.file_name().into_string().ok()?)))
}

/// By number where both have one, as `sort -V` does: 6.12.9 before 6.12.10.
fn compare_versions(a: &str, b: &str) -> Ordering {
    let parts = |text: &str| -> Vec<u64> {
        text.split(|c: char| !c.is_ascii_digit())
            .filter_map(|part| part.parse().ok())
            .collect()
    };
    parts(a).cmp(&parts(b)).then_with(|| a.cmp(b))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;

    fn kernel(version: &str) -> Kernel {
        Kernel {
            version: version.to_owned(),
            image: PathBuf::new(),
            modules: PathBuf::new(),
        }
    }

    #[test]
    fn names_are_series_and_flavour() {
        assert_eq!(kernel("6.12.117+deb12-rt-amd64").name(), "6.12-rt");
        assert_eq!(kernel("6.12.117+deb13-amd64").name(), "6.12-deb13");
        assert_eq!(
            kernel("6.12.117+deb13-cloud-amd64").name(),
            "6.12-deb13-cloud"
        );
        assert_eq!(kernel("6.12.117+deb13.1-rt-amd64").name(), "6.12-deb13-rt");
        assert_eq!(kernel("6.12.117+deb13.1-arm64").name(), "6.12-deb13-arm64");
        assert_eq!(kernel("7.3.4+deb13-rt-amd64").name(), "7.3-rt");
        assert_eq!(kernel("6.12.117+deb12-arm64").name(), "6.12-arm64");
        assert_eq!(kernel("6.12.117+deb12-arm64-16k").name(), "6.12-arm64-16k");
        assert_eq!(
            kernel("6.12.118+deb13-rt-arm64").name(),
            "6.12-deb13-rt-arm64"
        );
        assert_eq!(kernel("7.3.4+deb13-cloud-arm64").name(), "7.3-cloud-arm64");
        let own = "6.12.117-board-arm64";
        assert_eq!(kernel(own).name(), own);
        assert_eq!(kernel("6.1.0-56-amd64").name(), "6.1");
        assert_eq!(kernel("6.1.0-56-cloud-amd64").name(), "6.1-cloud");
        assert_eq!(
            kernel("6.12.117-soloist-debug").name(),
            "6.12.117-soloist-debug"
        );
    }

    #[test]
    fn versions_compare_by_number() {
        assert_eq!(
            compare_versions("6.1.0-9-amd64", "6.1.0-56-amd64"),
            Ordering::Less
        );
        assert_eq!(
            compare_versions("6.12.9+deb12", "6.12.10+deb12"),
            Ordering::Less
        );
    }

    #[test]
    fn the_newest_of_a_series_is_found() {
        let root = tempfile::tempdir().unwrap();
        for version in [
            "6.12.9+deb12-amd64",
            "6.12.10+deb12-amd64",
            "6.12.11+deb12-rt-amd64",
        ] {
            let dir = root.path().join("build/kernels").join(version);
            fs::create_dir_all(dir.join("boot")).unwrap();
            fs::create_dir_all(dir.join("lib/modules").join(version).join("kernel")).unwrap();
            fs::write(dir.join("boot").join(format!("vmlinuz-{version}")), "").unwrap();
        }
        let all = list(Some(root.path()));
        assert!(all.iter().any(|k| k.version == "6.12.10+deb12-amd64"));
        let rt = find("6.12.11+deb12-rt-amd64", Some(root.path())).unwrap();
        assert_eq!(rt.name(), "6.12-rt");
        let error = find("7.77", Some(root.path())).unwrap_err().to_string();
        assert!(
            error.contains("7.77") && error.contains("scripts/kernels"),
            "{error}"
        );
    }
}
