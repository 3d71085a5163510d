//! A data set in the making. It gets its name when it is whole and verified, never before.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use leadline_base::beneath::{Directory, Way, name_of, reopen};
use leadline_base::error::EngineError;
use leadline_base::space::require_space;
use leadline_wire::job::stream::{self, Io, ReadBy};
use rustix::fs::FileType;

use crate::data_set::{Input, Writable, extents_of, refusals};
use crate::layout::{Layout, LayoutPart, stripe_name};
use crate::stripes::{Extent, StripeFile, Stripes, stripe_bytes};
use crate::unnamed::{Unnamed, directory_at, reserve};

/// A data set in the making.
pub struct Output {
    spec: stream::Output,
    home: Home,
    io: Io,
    parts: Vec<Part>,
    /// Number of the first part in the data set, when others make the others.
    first_part: usize,
}

/// Where a data set lies.
#[derive(Clone)]
struct Home {
    /// Its path, for messages and for its layout.
    path: PathBuf,
    /// Its name in the directory `named_in`, where its layout lies as well.
    base: String,
    named_in: Directory,
    /// Those of its files, one for each disk.
    directories: Vec<Directory>,
}

impl Home {
    fn open(spec: &stream::Output) -> Result<Self, EngineError> {
        let path = PathBuf::from(&spec.path);
        let named_in = directory_at(path.parent().unwrap_or(Path::new("/")))?;
        let mut directories = Vec::new();
        for stripes in &spec.stripes {
            directories.push(directory_at(Path::new(stripes))?);
        }
        if directories.is_empty() {
            directories.push(named_in.clone());
        }
        let base = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { path, base, named_in, directories })
    }

    /// Refuses a name that is taken, or that could not be given in the end.
    fn check_name(&self, replace: bool) -> Result<(), EngineError> {
        for name in [self.base.clone(), Layout::name_of(&self.base)] {
            let path = self.named_in.path().join(&name);
            match self.named_in.look(&name) {
                Ok(Some(_)) if !replace => return Err(taken_already(&path)),
                Ok(Some(facts)) if !is_file(facts.st_mode) => {
                    return Err(EngineError::target(format!(
                        "{} is there and is no plain file, so it is not replaced; give another name",
                        path.display()
                    )));
                }
                Ok(_) => {}
                Err(error) => return Err(not_named(&path, &error)),
            }
        }
        Unnamed::create(&self.named_in, &self.base).map(|_| ())
    }

    fn remove(&self, name: &str) {
        // What is not there need not be removed.
        let _ = self.named_in.remove(name);
    }
}

fn is_file(mode: u32) -> bool {
    FileType::from_raw_mode(mode).is_file()
}

/// One part and its files.
struct Part {
    bytes: u64,
    stripes: Arc<Stripes>,
    names: Vec<Unnamed>,
}

/// One part of an [`Output`], to be written by a lane of its own from offset 0 on.
pub struct OutputPart {
    extent: Extent,
}

impl Writable for OutputPart {
    #[allow(private_interfaces)]
    fn extents(&self) -> Vec<Extent> {
        vec![self.extent.clone()]
    }
}

impl Writable for Output {
    #[allow(private_interfaces)]
    fn extents(&self) -> Vec<Extent> {
        extents_of(self.parts.iter().map(|part| (part.bytes, Arc::clone(&part.stripes))))
    }
}

impl Output {
    /// Makes room for a data set of `bytes` in one part.
    ///
    /// # Errors
    /// `Target` when the name is taken and not to be replaced, when a directory is missing, or when
    /// there is too little space.
    pub fn create(spec: &stream::Output, bytes: u64, io: &Io) -> Result<Self, EngineError> {
        Self::create_parts(spec, &[bytes], io)
    }

    /// Makes room for a data set of several parts, each with its length; one after the other they
    /// are the data set.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn create_parts(
        spec: &stream::Output,
        bytes: &[u64],
        io: &Io,
    ) -> Result<Self, EngineError> {
        Self::create_some(spec, 0, bytes, io)
    }

    /// Makes room for some parts of a data set whose other parts are made elsewhere, the first of
    /// them with the number `first_part`.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn create_some(
        spec: &stream::Output,
        first_part: usize,
        bytes: &[u64],
        io: &Io,
    ) -> Result<Self, EngineError> {
        let home = Home::open(spec)?;
        home.check_name(spec.replace)?;
        let total: u64 = bytes.iter().sum();
        let share = total.div_ceil(home.directories.len() as u64);
        require_space(home.directories.iter().map(|directory| (directory, share)))?;
        let mut output = Self { spec: spec.clone(), home, io: *io, parts: Vec::new(), first_part };
        for bytes in bytes {
            output.parts.push(output.make_part(*bytes)?);
        }
        Ok(output)
    }

    fn make_part(&self, bytes: u64) -> Result<Part, EngineError> {
        let unit = self.spec.stripe_bytes;
        let (name, directories) = (&self.home.base, &self.home.directories);
        let mut names = Vec::new();
        let mut files = Vec::new();
        for (number, directory) in directories.iter().enumerate() {
            let (unnamed, file) = Unnamed::create(directory, name)?;
            let shown = directory.path().join(name);
            reserve(&file, &shown, stripe_bytes(bytes, unit, directories.len(), number))?;
            names.push(unnamed);
            files.push(StripeFile::new(shown, file, self.io.write_direct, true));
        }
        Ok(Part { bytes, stripes: Arc::new(Stripes { files, unit }), names })
    }

    /// Length of all parts.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// Files that its bytes are dealt out to in turn.
    #[must_use]
    pub fn disks(&self) -> usize {
        self.parts.first().map_or(1, |part| part.stripes.files.len())
    }

    /// One part, for a lane of its own.
    ///
    /// # Errors
    /// `Fault` when there is no such part.
    pub fn part(&self, number: usize) -> Result<OutputPart, EngineError> {
        let part = self.parts.get(number).ok_or_else(no_such_part)?;
        let stripes = Arc::clone(&part.stripes);
        Ok(OutputPart { extent: Extent { start: 0, bytes: part.bytes, stripes } })
    }

    /// Changes the length of a part: what it turned out to be, or what more room it needs. Lanes
    /// opened before know the old one.
    ///
    /// # Errors
    /// `Target` when the disk is full.
    pub fn set_len(&mut self, number: usize, bytes: u64) -> Result<(), EngineError> {
        let part = self.parts.get_mut(number).ok_or_else(no_such_part)?;
        let more = self.home.directories.iter().enumerate().map(|(number, directory)| {
            let [old, new] = [part.bytes, bytes].map(|bytes| part.stripes.bytes_of(number, bytes));
            (directory, new.saturating_sub(old))
        });
        require_space(more.filter(|(_, bytes)| *bytes > 0))?;
        for (number, file) in part.stripes.files.iter().enumerate() {
            reserve(&file.file, &file.path, part.stripes.bytes_of(number, bytes))?;
        }
        part.bytes = bytes;
        Ok(())
    }

    /// What was written, to be verified before it has a name. It is read by `uring`, past the cache
    /// when it was written past it.
    ///
    /// # Errors
    /// `Io` when the process has too many open files.
    pub fn as_input(&self) -> Result<Input, EngineError> {
        let open = |file: &StripeFile| {
            // For reading alone: the verification cannot change what it verifies.
            let again = reopen(&file.file, Way::READ).map_err(|error| {
                EngineError::io(format!(
                    "{} cannot be opened again to be verified: {error}",
                    file.path.display()
                ))
            })?;
            Ok(StripeFile::new(file.path.clone(), again, self.io.write_direct, false))
        };
        let part = |part: &Part| {
            let files = part.stripes.files.iter().map(open).collect::<Result<_, EngineError>>()?;
            Ok((part.bytes, Stripes { files, unit: part.stripes.unit }))
        };
        let parts = self.parts.iter().map(part).collect::<Result<_, EngineError>>()?;
        Input::of_parts(parts, ReadBy::Uring)
    }

    /// Files whose file system refuses direct transfers although they were asked for.
    #[must_use]
    pub fn refuses_direct(&self) -> Vec<PathBuf> {
        refusals(&self.extents())
    }

    /// Gives the data set its name: everything is brought to the disks first, and a name stands for
    /// the whole or for nothing.
    ///
    /// # Errors
    /// `Target` when the name was taken meanwhile, `Io` when a disk fails; then nothing is named.
    pub fn publish(self) -> Result<(), EngineError> {
        let replace = self.spec.replace;
        let old = if replace { Layout::read(&self.home.path).ok().flatten() } else { None };
        if self.parts.len() == 1 && self.spec.stripes.is_empty() {
            let home = self.home.clone();
            self.publish_plain()?;
            if let Some(old) = old {
                home.remove(&Layout::name_of(&home.base));
                remove(&old.own_files(&home.path));
            }
            return Ok(());
        }
        let named = self.name_parts()?;
        named.publish(replace)?;
        Ok(())
    }

    fn publish_plain(mut self) -> Result<(), EngineError> {
        self.sync()?;
        let (path, name) = (&self.home.path, &self.home.base);
        for part in &mut self.parts {
            for (unnamed, file) in part.names.iter_mut().zip(&part.stripes.files) {
                let named = if self.spec.replace {
                    unnamed.replace(&file.file, name)
                } else {
                    unnamed.name(&file.file, name)
                };
                named.map_err(|error| not_named(path, &error))?;
            }
        }
        self.home.named_in.sync().map_err(|error| not_named(path, &error))
    }

    /// Names the files of the parts made here, beside any older ones; the data set is not there
    /// before its layout is.
    ///
    /// # Errors
    /// As [`Self::publish`].
    pub fn name_parts(mut self) -> Result<NamedParts, EngineError> {
        self.sync()?;
        let mut named = NamedParts { home: self.home.clone(), parts: Vec::new(), keep: false };
        for (number, part) in self.parts.iter_mut().enumerate() {
            let number = self.first_part + number;
            let mut layout =
                LayoutPart { files: vec![], bytes: part.bytes, stripe_bytes: part.stripes.unit };
            named.parts.push(layout.clone());
            let files = part.names.iter_mut().zip(&part.stripes.files);
            let files = files.zip(&self.home.directories);
            for (stripe, ((name, file), directory)) in files.enumerate() {
                let path = name_freely(name, &file.file, directory, |generation| {
                    stripe_name(&self.home.base, generation, number, stripe)
                })?;
                layout.files.push(path);
                if let Some(last) = named.parts.last_mut() {
                    last.clone_from(&layout);
                }
            }
        }
        for directory in &self.home.directories {
            let inside = directory.path().join(&self.home.base);
            directory.sync().map_err(|error| not_named(&inside, &error))?;
        }
        Ok(named)
    }

    fn sync(&self) -> Result<(), EngineError> {
        for part in &self.parts {
            for file in &part.stripes.files {
                file.file.sync_all().map_err(|error| {
                    EngineError::io(format!(
                        "{} could not be brought to its disk: {error}; look at the kernel log",
                        file.path.display()
                    ))
                })?;
            }
        }
        Ok(())
    }
}

/// Parts whose files have names, and that no layout names yet. Dropped, they are removed.
pub struct NamedParts {
    home: Home,
    parts: Vec<LayoutPart>,
    keep: bool,
}

impl NamedParts {
    /// What the layout is to say of them.
    #[must_use]
    pub fn parts(&self) -> &[LayoutPart] {
        &self.parts
    }

    /// Writes the layout of these parts: from then on the data set is there.
    ///
    /// # Errors
    /// `Target` when it cannot be written; the files are removed.
    pub fn publish(self, replace: bool) -> Result<(), EngineError> {
        let layout = Layout::new(self.parts.clone());
        self.publish_as(&layout, replace)
    }

    /// As [`Self::publish`], with a layout that names parts made elsewhere as well.
    ///
    /// # Errors
    /// As [`Self::publish`].
    pub fn publish_as(mut self, layout: &Layout, replace: bool) -> Result<(), EngineError> {
        let data_set = &self.home.path;
        let old = if replace { Layout::read(data_set).ok().flatten() } else { None };
        layout.write(&self.home.named_in, &self.home.base, replace)?;
        self.keep = true;
        if replace {
            self.home.remove(&self.home.base);
        }
        let new: Vec<&PathBuf> = layout.parts.iter().flat_map(|part| &part.files).collect();
        let mut old = old.map(|old| old.own_files(&self.home.path)).unwrap_or_default();
        old.retain(|file| !new.contains(&file));
        remove(&old);
        Ok(())
    }

    /// Leaves the files where they are: a layout written elsewhere names them.
    pub fn keep(mut self) {
        self.keep = true;
    }
}

impl Drop for NamedParts {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        for part in &self.parts {
            for (file, directory) in part.files.iter().zip(&self.home.directories) {
                // A failure leaves a file that no layout names.
                let _ = name_of(file).and_then(|name| directory.remove(name));
            }
        }
    }
}

/// Names a file as no file is named yet, so that an older data set stays whole beside it.
fn name_freely(
    name: &mut Unnamed,
    file: &File,
    directory: &Directory,
    words: impl Fn(usize) -> String,
) -> Result<PathBuf, EngineError> {
    let mut generation = 0;
    loop {
        let free = words(generation);
        let path = directory.path().join(&free);
        match name.name(file, &free) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => generation += 1,
            Err(error) => return Err(not_named(&path, &error)),
        }
    }
}

/// Removes files that an older layout names, as far as they are there.
fn remove(files: &[PathBuf]) {
    for file in files {
        let directory = Directory::named(file.parent().unwrap_or(Path::new("/")));
        // What is not there need not be removed.
        let _ = directory.and_then(|directory| directory.remove(name_of(file)?));
    }
}

fn taken_already(path: &Path) -> EngineError {
    EngineError::target(format!(
        "{} is there already; give another name, or say that it may be replaced",
        path.display()
    ))
}

fn not_named(path: &Path, error: &Error) -> EngineError {
    if error.kind() == ErrorKind::AlreadyExists {
        return taken_already(path);
    }
    EngineError::io(format!(
        "the output could not be named {}: {error}; look at the directory",
        path.display()
    ))
}

fn no_such_part() -> EngineError {
    EngineError::fault("an output was asked for a part that it has not")
}
