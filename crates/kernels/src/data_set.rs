//! A data set that is read: a plain file, or the stripes that its layout names.

#![forbid(unsafe_code)]

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use leadline_base::beneath::{look_at, open_input};
use leadline_base::error::EngineError;
use leadline_wire::job::stream::{Io, ReadBy};
use rustix::fs::{FileType, Stat};

use crate::chunks::CHUNK_BYTES;
use crate::layout::{Layout, LayoutPart};
use crate::mapped::Maps;
use crate::stripes::{Extent, StripeFile, Stripes};

/// What a [`crate::lane::ReadLane`] can read.
pub trait Readable {
    /// Where its bytes lie.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn extents(&self) -> Vec<Extent>;

    /// Its mapping, when it is read by one.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn mapped(&self) -> Option<Arc<Maps>> {
        None
    }
}

/// What a [`crate::lane::WriteLane`] can write.
pub trait Writable {
    /// Where its bytes go.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn extents(&self) -> Vec<Extent>;
}

/// An opened data set; clones share it. It is only ever read.
#[derive(Clone, Debug)]
pub struct Input {
    extents: Vec<Extent>,
    maps: Option<Arc<Maps>>,
    bytes: u64,
}

impl Input {
    /// Opens the file `path`, or the stripes that `path.layout` names.
    ///
    /// # Errors
    /// `Target` when there is neither or both, or when a stripe is missing or has another length
    /// than the layout says; each by name.
    pub fn open(path: &str, io: &Io) -> Result<Self, EngineError> {
        let plain = Path::new(path);
        let part = |files: Vec<PathBuf>, bytes| LayoutPart { files, bytes, stripe_bytes: 1 << 16 };
        let kind = |facts: &Stat| FileType::from_raw_mode(facts.st_mode);
        let parts = match (look_at(plain), Layout::read(plain)?) {
            (Err(_), Some(layout)) => layout.parts,
            (Ok(facts), None) if kind(&facts).is_file() => {
                vec![part(vec![plain.into()], facts.st_size as u64)]
            }
            (Ok(facts), None) => {
                let folder = kind(&facts).is_dir();
                let what = if folder { "a directory" } else { "no plain file" };
                return Err(EngineError::target(format!(
                    "the input {path} is {what}; give a file, or a data set with a layout"
                )));
            }
            (Ok(_), Some(_)) => {
                return Err(EngineError::target(format!(
                    "the input {path} is a file and has stripes as well, named by {path}.layout; \
                    move the one that is not meant"
                )));
            }
            (Err(error), None) => {
                return Err(EngineError::target(format!(
                    "the input {path} cannot be opened: {error}, and there is no {path}.layout; \
                    look at the path"
                )));
            }
        };
        let direct = io.read == ReadBy::Uring && io.read_direct;
        let opened = parts
            .iter()
            .map(|part| open_part(path, part, direct).map(|stripes| (part.bytes, stripes)))
            .collect::<Result<Vec<_>, _>>()?;
        Self::of_parts(opened, io.read)
    }

    /// A data set of files that are open already.
    pub(crate) fn of_parts(parts: Vec<(u64, Stripes)>, by: ReadBy) -> Result<Self, EngineError> {
        let extents = extents_of(parts.into_iter().map(|(n, stripes)| (n, Arc::new(stripes))));
        let bytes = extents.last().map_or(0, |last| last.start + last.bytes);
        let maps = match by {
            ReadBy::Mmap => Some(Arc::new(Maps::new(extents.clone())?)),
            ReadBy::Uring => None,
        };
        Ok(Self { extents, maps, bytes })
    }

    /// Its length.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Files that its bytes are dealt out to in turn.
    #[must_use]
    pub fn disks(&self) -> usize {
        self.extents.iter().map(|extent| extent.stripes.files.len()).max().unwrap_or(1)
    }

    /// Every file, and one more handle on it.
    ///
    /// # Errors
    /// `Io` when the process has too many open files.
    pub fn files(&self) -> Result<Vec<(PathBuf, File)>, EngineError> {
        files_of(&self.extents)
    }

    /// Files whose file system refuses direct transfers although they were asked for.
    #[must_use]
    pub fn refuses_direct(&self) -> Vec<PathBuf> {
        refusals(&self.extents)
    }

    /// Cuts a range into pieces of `bytes`, each within one part and from a multiple of `bytes` in
    /// its part on (but the range's own beginning), so that all of them can pass the cache.
    #[must_use]
    pub fn pieces(&self, range: Range<u64>, bytes: usize) -> Vec<(u64, usize)> {
        let unit = bytes.max(1) as u64;
        let mut pieces = Vec::new();
        for extent in &self.extents {
            let end = range.end.min(extent.start + extent.bytes);
            let mut at = range.start.max(extent.start);
            while at < end {
                let next = extent.start + ((at - extent.start) / unit + 1) * unit;
                pieces.push((at, (next.min(end) - at) as usize));
                at = next.min(end);
            }
        }
        pieces
    }

    /// Cuts the data set into `count` consecutive ranges of about the same length, at chunks of its
    /// parts; ranges at the end are empty when there are fewer chunks.
    #[must_use]
    pub fn portions(&self, count: usize) -> Vec<Range<u64>> {
        let count = count.max(1) as u64;
        let cut = |number: u64| {
            let wanted = (u128::from(self.bytes) * u128::from(number) / u128::from(count)) as u64;
            let extent = self.extents.iter().rfind(|extent| extent.start <= wanted);
            extent.map_or(0, |extent| {
                let unit = CHUNK_BYTES as u64;
                let chunk = extent.start + (wanted - extent.start).div_ceil(unit) * unit;
                chunk.min(extent.start + extent.bytes)
            })
        };
        (0..count).map(|number| cut(number)..cut(number + 1)).collect()
    }

    pub(crate) fn maps(&self) -> Option<&Arc<Maps>> {
        self.maps.as_ref()
    }
}

impl Readable for Input {
    #[allow(private_interfaces)]
    fn extents(&self) -> Vec<Extent> {
        self.extents.clone()
    }

    #[allow(private_interfaces)]
    fn mapped(&self) -> Option<Arc<Maps>> {
        self.maps.clone()
    }
}

pub(crate) fn extents_of(parts: impl Iterator<Item = (u64, Arc<Stripes>)>) -> Vec<Extent> {
    let mut start = 0;
    let extent = |(bytes, stripes)| {
        let extent = Extent { start, bytes, stripes };
        start += bytes;
        extent
    };
    parts.map(extent).collect()
}

pub(crate) fn files_of(extents: &[Extent]) -> Result<Vec<(PathBuf, File)>, EngineError> {
    let files = extents.iter().flat_map(|extent| &extent.stripes.files);
    let again = |file: &StripeFile| {
        let handle = file.file.try_clone().map_err(|error| {
            EngineError::io(format!("{}: {error}; look at ulimit -n", file.path.display()))
        })?;
        Ok((file.path.clone(), handle))
    };
    files.map(again).collect()
}

pub(crate) fn refusals(extents: &[Extent]) -> Vec<PathBuf> {
    let files = extents.iter().flat_map(|extent| &extent.stripes.files);
    files.filter(|file| file.refuses_direct()).map(|file| file.path.clone()).collect()
}

fn open_part(input: &str, part: &LayoutPart, direct: bool) -> Result<Stripes, EngineError> {
    let count = part.files.len();
    let open = |(number, path): (usize, &PathBuf)| {
        let who = if count == 1 {
            format!("the input {}", path.display())
        } else {
            format!("stripe {} of {count} of {input}, {}", number + 1, path.display())
        };
        let file = open_input(path).map_err(|error| {
            EngineError::target(format!("{who}, cannot be opened: {error}; is its disk there?"))
        })?;
        let length = file.metadata().map(|facts| facts.len()).map_err(|error| {
            EngineError::io(format!("{who}, does not tell its length: {error}"))
        })?;
        let wanted = part.bytes_of(number);
        if length != wanted {
            return Err(EngineError::target(format!(
                "{who}, has {length} bytes where the layout says {wanted}; make the data set again"
            )));
        }
        Ok(StripeFile::new(path.clone(), file, direct, false))
    };
    let files = part.files.iter().enumerate().map(open).collect::<Result<Vec<_>, _>>()?;
    Ok(Stripes { files, unit: part.stripe_bytes })
}
