//! A data set in the making. It gets its name when it is whole and verified, never before.

#![forbid(unsafe_code)]

use std::fs::{File, remove_file};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use leadline_engine::error::EngineError;
use leadline_wire::job::stream::{self, Io, ReadBy};

use crate::data_set::{Input, Writable, extents_of, refusals};
use crate::layout::{Layout, LayoutPart, stripe_name, sync_directory_of};
use crate::space::require_space;
use crate::stripes::{Extent, StripeFile, Stripes, stripe_bytes};
use crate::unnamed::{Unnamed, reserve};

/// A data set in the making.
pub struct Output {
    spec: stream::Output,
    io: Io,
    parts: Vec<Part>,
    /// Number of the first part in the data set, when others make the others.
    first_part: usize,
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
        check_name(spec)?;
        let directories = directories_of(spec);
        let total: u64 = bytes.iter().sum();
        let share = total.div_ceil(directories.len() as u64);
        require_space(directories.iter().map(|directory| (directory.as_path(), share)))?;
        let mut output = Self { spec: spec.clone(), io: *io, parts: Vec::new(), first_part };
        for bytes in bytes {
            output.parts.push(output.make_part(&directories, *bytes)?);
        }
        Ok(output)
    }

    fn make_part(&self, directories: &[PathBuf], bytes: u64) -> Result<Part, EngineError> {
        let unit = self.spec.stripe_bytes;
        let name = name_of(Path::new(&self.spec.path));
        let mut names = Vec::new();
        let mut files = Vec::new();
        for (number, directory) in directories.iter().enumerate() {
            let (unnamed, file) = Unnamed::create(directory, &name)?;
            let shown = directory.join(&name);
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
        let directories = directories_of(&self.spec);
        let more = directories.iter().enumerate().map(|(number, directory)| {
            let [old, new] = [part.bytes, bytes].map(|bytes| part.stripes.bytes_of(number, bytes));
            (directory.as_path(), new.saturating_sub(old))
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
            let own = format!("/proc/self/fd/{}", file.file.as_raw_fd());
            let again = File::open(own).map_err(|error| {
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
        let path = PathBuf::from(&self.spec.path);
        let replace = self.spec.replace;
        let old = if replace { Layout::read(&path).ok().flatten() } else { None };
        if self.parts.len() == 1 && self.spec.stripes.is_empty() {
            self.publish_plain(&path)?;
            if let Some(old) = old {
                remove(&[Layout::path_of(&path)]);
                remove(&old.own_files(&path));
            }
            return Ok(());
        }
        let named = self.name_parts()?;
        named.publish(replace)?;
        Ok(())
    }

    fn publish_plain(mut self, path: &Path) -> Result<(), EngineError> {
        self.sync()?;
        let replace = self.spec.replace;
        for part in &mut self.parts {
            for (name, file) in part.names.iter_mut().zip(&part.stripes.files) {
                let named = if replace {
                    name.replace(&file.file, path)
                } else {
                    name.name(&file.file, path)
                };
                named.map_err(|error| not_named(path, &error))?;
            }
        }
        sync_directory_of(path).map_err(|error| not_named(path, &error))
    }

    /// Names the files of the parts made here, beside any older ones; the data set is not there
    /// before its layout is.
    ///
    /// # Errors
    /// As [`Self::publish`].
    pub fn name_parts(mut self) -> Result<NamedParts, EngineError> {
        self.sync()?;
        let mut named =
            NamedParts { data_set: PathBuf::from(&self.spec.path), parts: Vec::new(), keep: false };
        let directories = directories_of(&self.spec);
        let base = name_of(&named.data_set);
        for (number, part) in self.parts.iter_mut().enumerate() {
            let number = self.first_part + number;
            let mut layout =
                LayoutPart { files: vec![], bytes: part.bytes, stripe_bytes: part.stripes.unit };
            named.parts.push(layout.clone());
            let files = part.names.iter_mut().zip(&part.stripes.files).zip(&directories);
            for (stripe, ((name, file), directory)) in files.enumerate() {
                let path = name_freely(name, &file.file, directory, |generation| {
                    stripe_name(&base, generation, number, stripe)
                })?;
                layout.files.push(path);
                if let Some(last) = named.parts.last_mut() {
                    last.clone_from(&layout);
                }
            }
        }
        for directory in &directories {
            let inside = directory.join(&base);
            sync_directory_of(&inside).map_err(|error| not_named(&inside, &error))?;
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
    data_set: PathBuf,
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
        let old = if replace { Layout::read(&self.data_set).ok().flatten() } else { None };
        layout.write(&self.data_set, replace)?;
        self.keep = true;
        if replace {
            remove(&[self.data_set.clone()]);
        }
        let new: Vec<&PathBuf> = layout.parts.iter().flat_map(|part| &part.files).collect();
        let mut old = old.map(|old| old.own_files(&self.data_set)).unwrap_or_default();
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
        if !self.keep {
            self.parts.iter().for_each(|part| remove(&part.files));
        }
    }
}

fn directories_of(spec: &stream::Output) -> Vec<PathBuf> {
    if spec.stripes.is_empty() {
        let path = Path::new(&spec.path);
        return vec![path.parent().unwrap_or(Path::new("/")).to_owned()];
    }
    spec.stripes.iter().map(PathBuf::from).collect()
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Names a file as no file is named yet, so that an older data set stays whole beside it.
fn name_freely(
    name: &mut Unnamed,
    file: &File,
    directory: &Path,
    words: impl Fn(usize) -> String,
) -> Result<PathBuf, EngineError> {
    let mut generation = 0;
    loop {
        let path = directory.join(words(generation));
        match name.name(file, &path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => generation += 1,
            Err(error) => return Err(not_named(&path, &error)),
        }
    }
}

/// Refuses a name that is taken, or that could not be given in the end.
fn check_name(spec: &stream::Output) -> Result<(), EngineError> {
    let path = Path::new(&spec.path);
    for path in [path.to_owned(), Layout::path_of(path)] {
        match path.symlink_metadata() {
            Ok(_) if !spec.replace => return Err(taken_already(&path)),
            Ok(facts) if !facts.is_file() => {
                return Err(EngineError::target(format!(
                    "{} is there and is no plain file, so it is not replaced; give another name",
                    path.display()
                )));
            }
            _ => {}
        }
    }
    Unnamed::create(path.parent().unwrap_or(Path::new("/")), &name_of(path)).map(|_| ())
}

/// Removes files as far as they are there.
fn remove(files: &[PathBuf]) {
    for file in files {
        // What is not there need not be removed.
        let _ = remove_file(file);
    }
}

fn taken_already(path: &Path) -> EngineError {
    EngineError::target(format!(
        "{} is there already; give another name, or say that it may be replaced",
        path.display()
    ))
}

fn not_named(path: &Path, error: &std::io::Error) -> EngineError {
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
