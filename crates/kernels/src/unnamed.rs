//! Files without a name: nothing half-made can be found, taken for whole or left behind.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{Error, ErrorKind};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use leadline_base::beneath::Directory;
use leadline_base::error::EngineError;
use rustix::fs::{FallocateFlags, fallocate};

/// A file in the making. It has no name, or, where the file system knows no such files, a hidden
/// one that goes when this value does.
#[derive(Debug)]
pub(crate) struct Unnamed {
    directory: Directory,
    hidden: Option<String>,
}

impl Unnamed {
    /// Makes a file in `directory` that is to become `name`.
    ///
    /// # Errors
    /// `Target` when the directory does not allow it.
    pub fn create(directory: &Directory, name: &str) -> Result<(Self, File), EngineError> {
        let made = match directory.make_unnamed() {
            Ok(file) => Ok((Self { directory: directory.clone(), hidden: None }, file)),
            Err(error) if knows_none(&error) => Self::hidden(directory, name),
            Err(error) => Err(error),
        };
        made.map_err(|error| not_made(directory.path(), &error))
    }

    fn hidden(directory: &Directory, name: &str) -> Result<(Self, File), Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let hidden = format!(".{name}.leadline-{}-{number}", std::process::id());
        let file = directory.make_shared(&hidden)?;
        Ok((Self { directory: directory.clone(), hidden: Some(hidden) }, file))
    }

    /// Takes the name away for good: scratch needs none.
    pub fn forget_name(&mut self) {
        if let Some(hidden) = self.hidden.take() {
            // Gone is gone.
            let _ = self.directory.remove(&hidden);
        }
    }

    /// Gives the file a name in its directory, which must be free.
    pub fn name(&mut self, file: &File, name: &str) -> Result<(), Error> {
        match &self.hidden {
            None => self.directory.name_unnamed(file, name)?,
            Some(hidden) => {
                self.directory.link(hidden, name)?;
                self.forget_name();
            }
        }
        Ok(())
    }

    /// Gives the file a name in its directory, in place of what has it now.
    pub fn replace(&mut self, file: &File, name: &str) -> Result<(), Error> {
        if self.hidden.is_none() {
            let hidden = format!(".{name}.leadline-{}", std::process::id());
            self.name(file, &hidden)?;
            self.hidden = Some(hidden);
        }
        if let Some(hidden) = &self.hidden {
            self.directory.rename(hidden, name)?;
        }
        self.hidden = None;
        Ok(())
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        self.forget_name();
    }
}

/// The error of a directory in which no file can be made.
pub(crate) fn not_made(directory: &Path, error: &Error) -> EngineError {
    EngineError::target(format!(
        "no file can be made in {}: {error}; give a directory that exists and may be written",
        directory.display()
    ))
}

/// Opens a directory in which files are to be made.
pub(crate) fn directory_at(path: &Path) -> Result<Directory, EngineError> {
    Directory::named(path).map_err(|error| not_made(path, &error))
}

fn knows_none(error: &Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL))
}

/// Reserves the first `bytes` of a file and makes that its length, so that writing extends nothing.
///
/// Asks how much is free first: ext4 takes all there is before it refuses, and for that moment
/// everybody else's disk is full.
///
/// # Errors
/// `Target` when the disk is full, with what was needed.
pub(crate) fn reserve(file: &File, path: &Path, bytes: u64) -> Result<(), EngineError> {
    if free_bytes(file).is_some_and(|free| free < bytes) {
        return Err(refused(file, path, bytes, &Error::from_raw_os_error(libc::ENOSPC)));
    }
    file.set_len(bytes).map_err(|error| refused(file, path, bytes, &error))?;
    if bytes == 0 {
        return Ok(());
    }
    match fallocate(file, FallocateFlags::empty(), 0, bytes).map_err(Error::from) {
        Ok(()) => Ok(()),
        // Without reservations a full disk shows when it is written.
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(()),
        Err(error) => Err(refused(file, path, bytes, &error)),
    }
}

/// What the file system around a file still has; `None` when it does not say.
fn free_bytes(file: &File) -> Option<u64> {
    rustix::fs::fstatvfs(file).ok().map(|facts| facts.f_bavail * facts.f_frsize)
}

fn refused(file: &File, path: &Path, bytes: u64, error: &Error) -> EngineError {
    let free = free_bytes(file).unwrap_or(0);
    EngineError::target(format!(
        "{bytes} bytes for {} cannot be had: {error}; {free} are free, {} are missing: free them \
        or give another directory",
        path.display(),
        bytes.saturating_sub(free)
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn where_files_need_names_a_hidden_one_goes_with_its_value() {
        let folder = std::env::temp_dir().join(format!("leadline-hidden-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let names = || std::fs::read_dir(&folder).unwrap().count();
        let directory = directory_at(&folder).unwrap();
        let (value, file) = Unnamed::hidden(&directory, "set").unwrap();
        assert_eq!(names(), 1);
        drop((value, file));
        assert_eq!(names(), 0);
        let (mut value, file) = Unnamed::hidden(&directory, "set").unwrap();
        value.name(&file, "set").unwrap();
        let (mut value, file) = Unnamed::hidden(&directory, "set").unwrap();
        assert_eq!(value.name(&file, "set").unwrap_err().kind(), ErrorKind::AlreadyExists);
        value.replace(&file, "set").unwrap();
        drop((value, file));
        assert_eq!(names(), 1, "the name alone");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn more_than_a_disk_holds_is_refused_with_what_is_missing() {
        let folder = std::env::temp_dir();
        let (_unnamed, file) = Unnamed::create(&directory_at(&folder).unwrap(), "large").unwrap();
        let facts = rustix::fs::statvfs(&folder).unwrap();
        let bytes = (facts.f_blocks * facts.f_frsize) * 2;
        let error = reserve(&file, &folder.join("large"), bytes).unwrap_err();
        assert!(error.message.contains("are missing"), "{error}");
        assert!(error.message.starts_with(&bytes.to_string()), "{error}");
        assert_eq!(file.metadata().unwrap().len(), 0, "nothing of it is taken for a moment");
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = directory_at(Path::new("/nowhere/at/all")).unwrap_err();
        assert!(error.message.contains("/nowhere/at/all"), "{error}");
    }
}
