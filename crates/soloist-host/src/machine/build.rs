//! Which build of the module is loaded, and which lies in a file: the fields
//! `version` and `srcversion` of its `.modinfo`. The kernel's build system makes
//! the second from the sources, so it tells two builds of one version apart.

use std::fmt;
use std::path::Path;

use crate::machine::host::Host;
use crate::machine::module::image;

/// A build of the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Build {
    version: Option<String>,
    sources: Option<String>,
}

impl Build {
    /// The one that is loaded.
    pub(crate) fn running(host: &Host) -> Self {
        Self {
            version: host.text("/sys/module/soloist/version"),
            sources: host.text("/sys/module/soloist/srcversion"),
        }
    }

    /// That of a module file, compressed or not; `None` where it can't be read.
    pub(crate) fn of_file(path: &Path) -> Option<Self> {
        let image = image(path).ok()?;
        Some(Self {
            version: field(&image, "version="),
            sources: field(&image, "srcversion="),
        })
    }

    /// Both say what they are, and not the same.
    pub(crate) fn differs(&self, other: &Self) -> bool {
        let differ = |a: &Option<String>, b: &Option<String>| match (a, b) {
            (Some(a), Some(b)) => a != b,
            _ => false,
        };
        differ(&self.version, &other.version) || differ(&self.sources, &other.sources)
    }
}

/// To be put behind a word: ` (0.1.0, sources 54AF...)`, or nothing.
impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sources = self.sources.as_ref().map(|s| format!("sources {s}"));
        let parts: Vec<String> = self.version.clone().into_iter().chain(sources).collect();
        match parts.is_empty() {
            true => Ok(()),
            false => write!(f, " ({})", parts.join(", ")),
        }
    }
}

/// A field of `.modinfo`, whose strings end with a NUL each.
fn field(image: &[u8], key: &str) -> Option<String> {
    image
        .split(|&byte| byte == 0)
        .find_map(|text| text.strip_prefix(key.as_bytes()))
        .map(|value| String::from_utf8_lossy(value).into_owned())
}
