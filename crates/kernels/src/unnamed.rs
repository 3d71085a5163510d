//! Files without a name: nothing half-made can be found, taken for whole or left behind.

#![forbid(unsafe_code)]

use std::fs::{File, remove_file};
use std::io::{Error, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use leadline_engine::error::EngineError;
use rustix::fs::{AtFlags, CWD, FallocateFlags, fallocate, linkat};

/// A file in the making. It has no name, or, where the file system knows no such files, a hidden
/// one that goes when this value does.
#[derive(Debug)]
pub(crate) struct Unnamed {
    hidden: Option<PathBuf>,
}

impl Unnamed {
    /// Makes a file in `directory` that is to become `name`.
    ///
    /// # Errors
    /// `Target` when the directory does not allow it.
    pub fn create(directory: &Path, name: &str) -> Result<(Self, File), EngineError> {
        let made = options().custom_flags(libc::O_TMPFILE).open(directory);
        let made = match made {
            Ok(file) => Ok((Self { hidden: None }, file)),
            Err(error) if knows_none(&error) => Self::hidden(directory, name),
            Err(error) => Err(error),
        };
        made.map_err(|error| {
            EngineError::target(format!(
                "no file can be made in {}: {error}; give a directory that exists and may be \
                written",
                directory.display()
            ))
        })
    }

    fn hidden(directory: &Path, name: &str) -> Result<(Self, File), Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!(".{name}.leadline-{}-{number}", std::process::id()));
        let file = options().create_new(true).open(&path)?;
        Ok((Self { hidden: Some(path) }, file))
    }

    /// Takes the name away for good: scratch needs none.
    pub fn forget_name(&mut self) {
        if let Some(path) = self.hidden.take() {
            // Gone is gone.
            let _ = remove_file(path);
        }
    }

    /// Gives the file the name `path`, which must be free.
    pub fn name(&mut self, file: &File, path: &Path) -> Result<(), Error> {
        match &self.hidden {
            None => {
                let own = format!("/proc/self/fd/{}", file.as_raw_fd());
                linkat(CWD, own.as_str(), CWD, path, AtFlags::SYMLINK_FOLLOW)?;
            }
            Some(hidden) => {
                std::fs::hard_link(hidden, path)?;
                self.forget_name();
            }
        }
        Ok(())
    }

    /// Gives the file the name `path`, in place of what has it now.
    pub fn replace(&mut self, file: &File, path: &Path) -> Result<(), Error> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let hidden = path.with_file_name(format!(".{name}.leadline-{}", std::process::id()));
        match self.hidden.take() {
            None => {
                self.name(file, &hidden)?;
                self.hidden = Some(hidden.clone());
            }
            Some(old) => self.hidden = Some(old),
        }
        let from = self.hidden.clone().unwrap_or(hidden);
        std::fs::rename(from, path)?;
        self.hidden = None;
        Ok(())
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        self.forget_name();
    }
}

fn options() -> std::fs::OpenOptions {
    let mut options = File::options();
    options.read(true).write(true).mode(0o666);
    options
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
        let (value, file) = Unnamed::hidden(&folder, "set").unwrap();
        assert_eq!(names(), 1);
        drop((value, file));
        assert_eq!(names(), 0);
        let path = folder.join("set");
        let (mut value, file) = Unnamed::hidden(&folder, "set").unwrap();
        value.name(&file, &path).unwrap();
        let (mut value, file) = Unnamed::hidden(&folder, "set").unwrap();
        assert_eq!(value.name(&file, &path).unwrap_err().kind(), ErrorKind::AlreadyExists);
        value.replace(&file, &path).unwrap();
        drop((value, file));
        assert_eq!(names(), 1, "the name alone");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn more_than_a_disk_holds_is_refused_with_what_is_missing() {
        let folder = std::env::temp_dir();
        let (_unnamed, file) = Unnamed::create(&folder, "large").unwrap();
        let facts = rustix::fs::statvfs(&folder).unwrap();
        let bytes = (facts.f_blocks * facts.f_frsize) * 2;
        let error = reserve(&file, &folder.join("large"), bytes).unwrap_err();
        assert!(error.message.contains("are missing"), "{error}");
        assert!(error.message.starts_with(&bytes.to_string()), "{error}");
        assert_eq!(file.metadata().unwrap().len(), 0, "nothing of it is taken for a moment");
    }
}
