//! Room for the runs of a sort in two passes: files that never have a name.

#![forbid(unsafe_code)]

use std::path::Path;
use std::sync::Arc;

use leadline_base::beneath::Directory;
use leadline_base::error::EngineError;
use leadline_base::space::require_space;
use leadline_wire::job::stream::Io;

use crate::chunks::CHUNK_BYTES;
use crate::data_set::{Readable, Writable, extents_of};
use crate::stripes::{Extent, StripeFile, Stripes, stripe_bytes};
use crate::unnamed::{Unnamed, directory_at, reserve};

/// Bytes without a name, chunk by chunk on one directory after the other; clones share them.
#[derive(Clone)]
pub struct Scratch {
    extents: Vec<Extent>,
}

impl Scratch {
    /// Makes room for `bytes` in the directories.
    ///
    /// # Errors
    /// `Target` when a directory is missing or has too little space.
    pub fn create(directories: &[String], bytes: u64, io: &Io) -> Result<Self, EngineError> {
        if directories.is_empty() {
            return Err(EngineError::fault("scratch without a directory"));
        }
        let opened = directories.iter().map(|path| directory_at(Path::new(path)));
        let directories = opened.collect::<Result<Vec<_>, EngineError>>()?;
        let (unit, count) = (CHUNK_BYTES as u64, directories.len());
        let shares = (0..count).map(|number| stripe_bytes(bytes, unit, count, number));
        let needs = directories.iter().zip(shares.clone());
        require_space(needs)?;
        let make = |(directory, share): (&Directory, u64)| {
            let (mut unnamed, file) = Unnamed::create(directory, "scratch")?;
            unnamed.forget_name();
            let shown = directory.path().join("temporary file");
            reserve(&file, &shown, share)?;
            let direct = io.read_direct || io.write_direct;
            Ok(StripeFile::new(shown, file, direct, true))
        };
        let files = directories.iter().zip(shares).map(make).collect::<Result<_, EngineError>>()?;
        let stripes = Arc::new(Stripes { files, unit });
        Ok(Self { extents: extents_of(std::iter::once((bytes, stripes))) })
    }

    /// Its length.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.extents.iter().map(|extent| extent.bytes).sum()
    }
}

impl Readable for Scratch {
    #[allow(private_interfaces)]
    fn extents(&self) -> Vec<Extent> {
        self.extents.clone()
    }
}

impl Writable for Scratch {
    #[allow(private_interfaces)]
    fn extents(&self) -> Vec<Extent> {
        self.extents.clone()
    }
}
