//! The command: found, and seen to be one that can be run and watched.

#![forbid(unsafe_code)]

use std::env;
use std::ffi::{CString, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use leadline_trace::Refused;

const WITH_OTHER_RIGHTS: u32 = 0o6000;
const GROUP_RIGHTS: u32 = 0o2000;

/// A command that is about to be run.
pub struct Command {
    pub program: CString,
    pub arguments: Vec<CString>,
    pub environment: Vec<CString>,
    gains_rights: bool,
}

impl Command {
    /// Finds the program as a shell would.
    ///
    /// # Errors
    ///
    /// There is none, or it may not be run.
    pub fn found(words: &[OsString]) -> Result<Self, Refused> {
        let Some(name) = words.first() else {
            return Err(Refused("no command is given: write it behind `--`".into()));
        };
        let path = search(name.as_ref())?;
        let about = fs::metadata(&path)
            .map_err(|error| Refused(format!("{} cannot be run: {error}", path.display())))?;
        if about.is_dir() || about.permissions().mode() & 0o111 == 0 {
            return Err(Refused(format!(
                "{} is no program that may be run: look at its name and permissions (chmod +x)",
                path.display()
            )));
        }
        let own = fs::metadata("/proc/self").map_or(0, |own| own.uid());
        let other = own != 0 && (about.uid() != own || about.mode() & GROUP_RIGHTS != 0);
        let text = |word: OsString| {
            CString::new(word.into_vec())
                .map_err(|_| Refused("a word of the command has a zero byte in it".into()))
        };
        let environment = env::vars_os().map(|(name, value)| {
            let mut both = name.into_vec();
            both.push(b'=');
            both.extend(value.into_vec());
            text(OsString::from_vec(both))
        });
        Ok(Self {
            program: text(path.into_os_string())?,
            arguments: words.iter().cloned().map(text).collect::<Result<_, _>>()?,
            environment: environment.collect::<Result<_, _>>()?,
            gains_rights: about.mode() & WITH_OTHER_RIGHTS != 0 && other,
        })
    }

    /// Refuses a program that gets other rights than ours, and would not when it is traced.
    ///
    /// # Errors
    ///
    /// It is one.
    pub fn require_no_more_rights(&self) -> Result<(), Refused> {
        if self.gains_rights {
            return Err(Refused(format!(
                "{} is setuid or setgid, and would not get its rights while it is traced: run \
                 Leadline as root",
                self.program.to_string_lossy()
            )));
        }
        Ok(())
    }
}

fn search(name: &Path) -> Result<PathBuf, Refused> {
    if name.components().count() > 1 || name.is_absolute() {
        return if name.exists() { Ok(name.to_owned()) } else { Err(not_found(name)) };
    }
    let folders = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let runs = |path: &PathBuf| {
        fs::metadata(path)
            .is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(runs)
        .ok_or_else(|| not_found(name))
}

fn not_found(name: &Path) -> Refused {
    Refused(format!(
        "there is no command {}: give its path; a builtin or several commands go through \
         `-- sh -c '...'`",
        name.display()
    ))
}
