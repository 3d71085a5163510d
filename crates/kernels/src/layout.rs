//! The layout file beside a striped data set: `PATH.layout` says where the stripes of `PATH` lie.

#![forbid(unsafe_code)]

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use leadline_base::beneath::{Directory, open_input};
use leadline_base::error::EngineError;
use serde::{Deserialize, Serialize};

use crate::stripes::stripe_bytes;

const VERSION: u32 = 1;

/// What the layout of a data set says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    version: u32,
    /// One after the other they are the data set.
    pub parts: Vec<LayoutPart>,
}

/// Files that take turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayoutPart {
    /// Absolute paths, in the order of their turns.
    pub files: Vec<PathBuf>,
    /// Length of all together.
    pub bytes: u64,
    /// Bytes in one file before the next one's turn.
    pub stripe_bytes: u64,
}

impl Layout {
    /// A data set of these parts.
    #[must_use]
    pub fn new(parts: Vec<LayoutPart>) -> Self {
        Self { version: VERSION, parts }
    }

    /// Where the layout of a data set lies.
    #[must_use]
    pub fn path_of(data_set: &Path) -> PathBuf {
        let mut name = data_set.as_os_str().to_owned();
        name.push(".layout");
        name.into()
    }

    /// Its name in the directory of the data set `base`.
    #[must_use]
    pub fn name_of(base: &str) -> String {
        format!("{base}.layout")
    }

    /// Reads the layout of `data_set`; none when it has none.
    ///
    /// # Errors
    /// `Target` when it cannot be read or makes no sense.
    pub fn read(data_set: &Path) -> Result<Option<Self>, EngineError> {
        let path = Self::path_of(data_set);
        let wrong = |why: &dyn std::fmt::Display| {
            EngineError::target(format!(
                "the layout {} cannot be used: {why}; make the data set again",
                path.display()
            ))
        };
        let mut text = String::new();
        match open_input(&path).and_then(|mut file| file.read_to_string(&mut text)) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(&error)),
        }
        Self::parse(&text).map(Some).map_err(|why| wrong(&why))
    }

    /// Reads the text of a layout.
    ///
    /// # Errors
    /// Why it makes no sense.
    pub fn parse(text: &str) -> Result<Self, String> {
        let layout: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let sound = |part: &LayoutPart| {
            !part.files.is_empty()
                && part.files.iter().all(|file| file.is_absolute())
                && part.stripe_bytes > 0
        };
        if layout.version != VERSION || !layout.parts.iter().all(sound) {
            return Err(format!(
                "it is not of version {VERSION}, or a part has no files, relative paths or units \
                of 0 bytes"
            ));
        }
        Ok(layout)
    }

    /// The files that were made for `data_set`, by their names. A layout is a text that anybody may
    /// have edited: what else it names is read, and never removed.
    #[must_use]
    pub fn own_files(&self, data_set: &Path) -> Vec<PathBuf> {
        let base = data_set.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let own = |file: &&PathBuf| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            name.strip_prefix(&base).is_some_and(is_stripe_suffix)
        };
        self.parts.iter().flat_map(|part| &part.files).filter(own).cloned().collect()
    }

    /// Writes the layout of the data set `base` in its directory in one step: it is whole or not
    /// there.
    ///
    /// # Errors
    /// `Target` when it cannot be written, or is there and not to be replaced.
    pub fn write(&self, home: &Directory, base: &str, replace: bool) -> Result<(), EngineError> {
        let name = Self::name_of(base);
        let hidden = format!(".{name}.leadline-{}", std::process::id());
        let written = self.write_at(home, &hidden, &name, replace);
        if written.is_err() {
            // It may never have been made.
            let _ = home.remove(&hidden);
        }
        written.map_err(|error| {
            EngineError::target(format!(
                "the layout {} cannot be written: {error}; look at the directory's permissions and \
                free space",
                home.path().join(name).display()
            ))
        })
    }

    fn write_at(
        &self,
        home: &Directory,
        hidden: &str,
        name: &str,
        replace: bool,
    ) -> Result<(), std::io::Error> {
        let text = serde_json::to_string_pretty(self)?;
        let mut file = home.make_shared(hidden)?;
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        if replace {
            home.rename(hidden, name)?;
        } else {
            home.link(hidden, name)?;
            home.remove(hidden)?;
        }
        home.sync()
    }
}

/// The name of a stripe: its data set's, which one of several of that name, part and stripe.
pub(crate) fn stripe_name(base: &str, generation: usize, part: usize, stripe: usize) -> String {
    let generation = if generation == 0 { String::new() } else { format!(".{generation}") };
    format!("{base}{generation}.part{part}.stripe{stripe}")
}

/// Whether this is what [`stripe_name`] puts behind the data set's name.
fn is_stripe_suffix(suffix: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some((rest, stripe)) = suffix.rsplit_once(".stripe") else { return false };
    let Some((generation, part)) = rest.rsplit_once(".part") else { return false };
    let generation = generation.is_empty() || generation.strip_prefix('.').is_some_and(digits);
    digits(stripe) && digits(part) && generation
}

impl LayoutPart {
    /// Length of file number `number`.
    #[must_use]
    pub fn bytes_of(&self, number: usize) -> u64 {
        stripe_bytes(self.bytes, self.stripe_bytes, self.files.len(), number)
    }
}
