//! A data set on a server: made once, found again and put right, removed.
//!
//! It lies in `.leadline/data-WORKLOAD-BYTES-SEED`; the name says what must be in it. The file
//! `manifest` is written last, when everything is on stable storage: without it the data set is half
//! made, and is made anew. Loads write to files and make others; what they left is put right when the
//! data set is next opened, so that a killed load harms nothing. Removal goes by the plan's own names:
//! what is not Leadline's stays, and is named.

#![forbid(unsafe_code)]

use leadline_base::buffer;
use leadline_base::error::EngineError;
use nfs3_types::nfs3::{NFS_PROGRAM, nfsstat3};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::backend::nfs::data::restarted;
use crate::backend::nfs::volume::{Place, Refusal, Volume, refused_with};
use crate::load::nfs::calls::{Handle, Said, committed, found, wrote};
use crate::load::nfs::lines::Lines;
use crate::load::nfs::pipeline::each;
use crate::load::nfs::plan::{
    PLAN_VERSION, Plan, directory_name, file_name, is_new_file, link_name, new_file_name,
};

const MANIFEST: &str = "manifest";
const LINKS: &str = "links";
const NEW_FILES: &str = "new";

/// Connections while a data set is made, found or removed.
const LINES: u32 = 4;

/// Bytes of one write of the making.
const CHUNK_BYTES: u64 = 256 << 10;

/// New files that are looked at: many loads' worth.
const NEW_FILES_MAX: usize = 1 << 20;

/// Room that is left to others: this share, and at least a gibibyte.
const FREE_SHARE: u64 = 20;
const FREE_BYTES_MIN: u64 = 1 << 30;

const ENOENT: u32 = nfsstat3::NFS3ERR_NOENT as u32;
const ENOTSUPP: u32 = nfsstat3::NFS3ERR_NOTSUPP as u32;

/// A whole data set, with the handles of everything in it.
#[derive(Debug)]
pub struct DataSet {
    /// Of its own directory.
    pub root: Handle,
    /// Of the directories of files.
    pub directories: Vec<Handle>,
    /// Of the files.
    pub files: Vec<Handle>,
    /// Of the symbolic links.
    pub links: Vec<Handle>,
    /// Of the directory for new files.
    pub new_files: Handle,
    /// Files that an earlier load had left longer, made or removed, and that were put right.
    pub repaired: u64,
}

/// What an opening came to.
#[derive(Debug)]
pub enum Opened {
    /// Everything is there.
    Whole(DataSet),
    /// It is half made or damaged, in words.
    Not(String),
}

/// One call of a pipeline.
#[derive(Clone, Copy, Debug)]
struct Item {
    index: u32,
    offset: u64,
    bytes: u32,
}

fn of_index(index: u32) -> Item {
    Item { index, offset: 0, bytes: 0 }
}

/// Directories, and which of them a thing lies in.
type Within<'a> = (&'a [Handle], &'a dyn Fn(u32) -> usize);

/// Handles in the order of the numbers, and lengths; no length where nothing was found.
type Found = (Vec<Handle>, Vec<Option<u64>>);

/// Work on one data set.
#[derive(Debug)]
pub struct Workshop<'a> {
    plan: &'a Plan,
    own: Place,
    place: Place,
    lines: Lines<Item>,
    write_bytes_max: u32,
    deadline_ns: u64,
}

impl<'a> Workshop<'a> {
    /// For the data set of a plan in `own`, the claimed directory; none when it is not there.
    ///
    /// # Errors
    /// As the server refuses.
    pub fn find(
        volume: &mut Volume,
        own: &Place,
        plan: &'a Plan,
        deadline_ns: u64,
    ) -> Result<Option<Self>, EngineError> {
        let place = match volume.lookup(own, &plan.data.directory()) {
            Err(Refusal::Status(nfsstat3::NFS3ERR_NOENT, _)) => return Ok(None),
            found => found?.0,
        };
        Self::at(volume, (own, place), plan, deadline_ns).map(Some)
    }

    /// The same with an empty directory made for it.
    ///
    /// # Errors
    /// As the server refuses; `Target` when it has no room.
    pub fn begin(
        volume: &mut Volume,
        own: &Place,
        plan: &'a Plan,
        deadline_ns: u64,
    ) -> Result<Self, EngineError> {
        require_room(volume, plan)?;
        let place = volume.make_directory(own, &plan.data.directory())?;
        Self::at(volume, (own, place), plan, deadline_ns)
    }

    fn at(
        volume: &mut Volume,
        (own, place): (&Place, Place),
        plan: &'a Plan,
        deadline_ns: u64,
    ) -> Result<Self, EngineError> {
        let told = volume.info()?.wtmax;
        Ok(Self {
            plan,
            own: own.clone(),
            place,
            lines: Lines::connect(&volume.addresses, LINES)?,
            // A server that names no limit gets whole chunks.
            write_bytes_max: if told >= 512 { told } else { u32::MAX },
            deadline_ns,
        })
    }

    /// Finds everything that the plan names and puts right what loads have left.
    ///
    /// # Errors
    /// As the server refuses.
    pub fn open(&mut self, volume: &mut Volume) -> Result<Opened, EngineError> {
        if let Some(why) = self.manifest_lacks(volume)? {
            return Ok(Opened::Not(why));
        }
        let plan = self.plan;
        let root = Handle::of(&self.place.handle)?;
        let within: Within = (std::slice::from_ref(&root), &|_| 0);
        let (directories, lengths) = self.look_up(plan.directories(), within, &directory_name)?;
        if let Some(lost) = lengths.iter().position(Option::is_none) {
            return Ok(Opened::Not(format!("{} is gone", directory_name(lost as u32))));
        }
        let directory_of = |file| plan.directory_of(file) as usize;
        let number = plan.file_bytes.len() as u32;
        let (files, lengths) = self.look_up(number, (&directories, &directory_of), &file_name)?;
        let mut longer = Vec::new();
        for (file, (length, planned)) in (0..).zip(lengths.iter().zip(&plan.file_bytes)) {
            match length {
                Some(length) if length > planned => longer.push(file),
                Some(length) if length == planned => {}
                _ => return Ok(Opened::Not(format!("{} is gone or too short", file_name(file)))),
            }
        }
        self.set_lengths(&longer, &files)?;
        let mut links = Vec::new();
        if plan.links > 0 {
            let folder = [Handle::of(&volume.lookup(&self.place, LINKS)?.0.handle)?];
            let lengths;
            (links, lengths) = self.look_up(plan.links, (&folder, &|_| 0), &link_name)?;
            if lengths.contains(&None) {
                return Ok(Opened::Not("a symbolic link is gone".to_owned()));
            }
        }
        let (new_files, put_right) = self.put_new_files_right(volume)?;
        let repaired = longer.len() as u64 + put_right;
        Ok(Opened::Whole(DataSet { root, directories, files, links, new_files, repaired }))
    }

    /// What the manifest says against using the data set; none when it is whole.
    fn manifest_lacks(&self, volume: &mut Volume) -> Result<Option<String>, EngineError> {
        let manifest = match volume.lookup(&self.place, MANIFEST) {
            Err(Refusal::Status(nfsstat3::NFS3ERR_NOENT, _)) => {
                return Ok(Some("it is half made".to_owned()));
            }
            found => found?.0,
        };
        let text = volume.read_start(&manifest, 4096)?;
        let told: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        Ok(match told["plan"].as_u64() {
            Some(version) if version == u64::from(PLAN_VERSION) => None,
            Some(version) => Some(format!("another release made it (plan {version})")),
            None => Some("it is half made".to_owned()),
        })
    }

    /// The directory for new files as a load finds it: the spare files and no others.
    fn put_new_files_right(&mut self, volume: &mut Volume) -> Result<(Handle, u64), EngineError> {
        if self.plan.spare_files == 0 {
            return Ok((Handle::default(), 0));
        }
        let place = volume.lookup(&self.place, NEW_FILES)?.0;
        let folder = [Handle::of(&place.handle)?];
        let spare: std::collections::BTreeSet<String> =
            (0..self.plan.spare_files).map(|file| new_file_name(u64::from(file))).collect();
        let names = volume.names_up_to(&place, NEW_FILES_MAX)?;
        let there: std::collections::BTreeSet<String> = names.into_iter().collect();
        let extra: Vec<&String> =
            there.difference(&spare).filter(|name| is_new_file(name)).collect();
        let lacking: Vec<&String> = spare.difference(&there).collect();
        let within: Within = (&folder, &|_| 0);
        let name_of = |names: &[&String], index: u32| names[index as usize].clone();
        self.remove_each(extra.len() as u32, within, &|index| name_of(&extra, index))?;
        let create = NFS_PROGRAM::NFSPROC3_CREATE;
        let number = lacking.len() as u32;
        self.make_each(create, number, within, &|index| name_of(&lacking, index))?;
        let [folder] = folder;
        Ok((folder, (extra.len() + lacking.len()) as u64))
    }

    /// Makes everything and has it put on stable storage.
    ///
    /// # Errors
    /// As the server refuses; `Lost` when it began anew meanwhile.
    pub fn make(
        &mut self,
        volume: &mut Volume,
        progress: &mut dyn FnMut(f64),
    ) -> Result<(), EngineError> {
        let plan = self.plan;
        let root = [Handle::of(&self.place.handle)?];
        let number = plan.directories();
        let within: Within = (&root, &|_| 0);
        self.make_each(NFS_PROGRAM::NFSPROC3_MKDIR, number, within, &directory_name)?;
        let (directories, _) = self.look_up(number, within, &directory_name)?;
        let number = plan.file_bytes.len() as u32;
        let directory_of = |file| plan.directory_of(file) as usize;
        let within: Within = (&directories, &directory_of);
        self.make_each(NFS_PROGRAM::NFSPROC3_CREATE, number, within, &file_name)?;
        let (files, _) = self.look_up(number, within, &file_name)?;
        self.fill(volume, &files, progress)?;
        if plan.links > 0 {
            let links = [Handle::of(&volume.make_directory(&self.place, LINKS)?.handle)?];
            let within: Within = (&links, &|_| 0);
            self.make_each(NFS_PROGRAM::NFSPROC3_SYMLINK, plan.links, within, &link_name)?;
        }
        if plan.spare_files > 0 {
            volume.make_directory(&self.place, NEW_FILES)?;
            self.put_new_files_right(volume)?;
        }
        let manifest = volume.create(&self.place, MANIFEST)?;
        let text = format!(
            "{{\"made_by\":\"leadline\",\"plan\":{PLAN_VERSION},\"files\":{number},\
            \"bytes\":{}}}\n",
            plan.bytes()
        );
        volume.write_start(&manifest, text.as_bytes())
    }

    /// Removes everything that the plan names, and the directory.
    ///
    /// # Errors
    /// As the server refuses; `Target` when something else lies there too.
    pub fn remove(&mut self, volume: &mut Volume) -> Result<(), EngineError> {
        let plan = self.plan;
        gone(volume.remove(&self.place, MANIFEST))?;
        let root = [Handle::of(&self.place.handle)?];
        let number = plan.directories();
        let (directories, _) = self.look_up(number, (&root, &|_| 0), &directory_name)?;
        let directory_of = |file| plan.directory_of(file) as usize;
        let files = plan.file_bytes.len() as u32;
        self.remove_each(files, (&directories, &directory_of), &file_name)?;
        for directory in 0..number {
            gone(volume.remove_directory(&self.place, &directory_name(directory)))?;
        }
        if let Ok((place, _)) = volume.lookup(&self.place, LINKS) {
            let folder = [Handle::of(&place.handle)?];
            self.remove_each(plan.links, (&folder, &|_| 0), &link_name)?;
            gone(volume.remove_directory(&self.place, LINKS))?;
        }
        if let Ok((place, _)) = volume.lookup(&self.place, NEW_FILES) {
            let folder = [Handle::of(&place.handle)?];
            let mut names = volume.names_up_to(&place, NEW_FILES_MAX)?;
            names.retain(|name| is_new_file(name));
            let name_of = |index: u32| names[index as usize].clone();
            self.remove_each(names.len() as u32, (&folder, &|_| 0), &name_of)?;
            gone(volume.remove_directory(&self.place, NEW_FILES))?;
        }
        gone(volume.remove_directory(&self.own, &plan.data.directory()))
    }

    /// Looks `number` names up; what is not there has no length, what is longer than files can be
    /// known has the length the server tells.
    fn look_up(
        &mut self,
        number: u32,
        (directories, directory_of): Within,
        name: &dyn Fn(u32) -> String,
    ) -> Result<Found, EngineError> {
        let mut handles = vec![Handle::default(); number as usize];
        let mut lengths = vec![None; number as usize];
        // What lies in a directory that is not there is not there.
        let there = |index: &u32| directories[directory_of(*index)] != Handle::default();
        let items = (0..number).filter(there).map(of_index);
        let shown = &self.place.shown;
        each(
            &mut self.lines,
            items,
            self.deadline_ns,
            &mut |lines, item| {
                let record = lines.call(NFS_PROGRAM::NFSPROC3_LOOKUP, item);
                let directory = &directories[directory_of(item.index)];
                drop(record.handle(directory).bytes(name(item.index).as_bytes()));
            },
            &mut |item, said| {
                let what = || format!("{shown}/{}", name(item.index));
                match said {
                    Said::Refused(ENOENT) => return Ok(()),
                    said => {
                        let (handle, length) =
                            found(done(said, &what)?).ok_or_else(|| garbled(&what()))?;
                        handles[item.index as usize] = handle;
                        let untold = length.ok_or_else(|| untold(&what()))?;
                        lengths[item.index as usize] = Some(untold);
                    }
                }
                Ok(())
            },
        )?;
        Ok((handles, lengths))
    }

    /// Makes `number` directories, empty files or links.
    fn make_each(
        &mut self,
        procedure: NFS_PROGRAM,
        number: u32,
        (directories, directory_of): Within,
        name: &dyn Fn(u32) -> String,
    ) -> Result<(), EngineError> {
        let shown = &self.place.shown;
        each(
            &mut self.lines,
            (0..number).map(of_index),
            self.deadline_ns,
            &mut |lines, item| {
                let directory = &directories[directory_of(item.index)];
                let name = name(item.index);
                let record = lines.call(procedure, item).handle(directory).bytes(name.as_bytes());
                drop(match procedure {
                    NFS_PROGRAM::NFSPROC3_MKDIR => record.attributes(Some(0o700), None),
                    NFS_PROGRAM::NFSPROC3_SYMLINK => {
                        record.attributes(None, None).bytes(b"leads nowhere")
                    }
                    _ => record.word(1).attributes(Some(0o600), None), // GUARDED
                });
            },
            &mut |item, said| {
                if said == Said::Refused(ENOTSUPP) && procedure == NFS_PROGRAM::NFSPROC3_SYMLINK {
                    return Err(EngineError::target(format!(
                        "{shown}: the server has no symbolic links, which this workload reads; \
                        choose another workload or server"
                    )));
                }
                done(said, &|| format!("{shown}/{}", name(item.index))).map(|_| ())
            },
        )
    }

    /// Removes names; what is gone already is no failure.
    fn remove_each(
        &mut self,
        number: u32,
        (directories, directory_of): Within,
        name: &dyn Fn(u32) -> String,
    ) -> Result<(), EngineError> {
        let there = |index: &u32| directories[directory_of(*index)] != Handle::default();
        let shown = &self.place.shown;
        each(
            &mut self.lines,
            (0..number).filter(there).map(of_index),
            self.deadline_ns,
            &mut |lines, item| {
                let directory = &directories[directory_of(item.index)];
                let record = lines.call(NFS_PROGRAM::NFSPROC3_REMOVE, item).handle(directory);
                drop(record.bytes(name(item.index).as_bytes()));
            },
            &mut |item, said| match said {
                Said::Refused(ENOENT) => Ok(()),
                said => done(said, &|| format!("{shown}/{}", name(item.index))).map(|_| ()),
            },
        )
    }

    /// Gives files the length of the plan.
    fn set_lengths(&mut self, numbers: &[u32], files: &[Handle]) -> Result<(), EngineError> {
        let (plan, shown) = (self.plan, &self.place.shown);
        each(
            &mut self.lines,
            numbers.iter().copied().map(of_index),
            self.deadline_ns,
            &mut |lines, item| {
                let record = lines.call(NFS_PROGRAM::NFSPROC3_SETATTR, item);
                let bytes = plan.file_bytes[item.index as usize];
                let record = record.handle(&files[item.index as usize]);
                drop(record.attributes(None, Some(bytes)).word(0));
            },
            &mut |item, said| {
                done(said, &|| format!("{shown}/{}", file_name(item.index))).map(|_| ())
            },
        )
    }

    /// Writes every byte of the files, new ones that cannot be made smaller, and has the server put
    /// them on stable storage.
    fn fill(
        &mut self,
        volume: &Volume,
        files: &[Handle],
        progress: &mut dyn FnMut(f64),
    ) -> Result<(), EngineError> {
        let plan = self.plan;
        let chunk = CHUNK_BYTES.min(u64::from(self.write_bytes_max));
        let chunks = (0..).zip(&plan.file_bytes).flat_map(|(index, length)| {
            (0..*length).step_by(chunk as usize).map(move |offset| Item {
                index,
                offset,
                bytes: (length - offset).min(chunk) as u32,
            })
        });
        // Chunks go over several connections and may arrive in any order, and there are servers that
        // do not write past the end of a file.
        let long = |(_, bytes): &(u32, &u64)| **bytes > chunk;
        let long: Vec<u32> = (0..).zip(&plan.file_bytes).filter(long).map(|pair| pair.0).collect();
        self.set_lengths(&long, files)?;
        let shown = &self.place.shown;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(plan.data.seed);
        let mut content = vec![0; chunk as usize];
        let mut verifier = None;
        let mut hear = |told: u64| match verifier.replace(told) {
            Some(earlier) if earlier != told => Err(restarted(volume.peer())),
            _ => Ok(()),
        };
        let (mut written, all) = (0, plan.bytes().max(1));
        each(
            &mut self.lines,
            chunks,
            self.deadline_ns,
            &mut |lines, item| {
                let bytes = &mut content[..item.bytes as usize];
                buffer::fill(bytes, &mut random);
                let record = lines.call(NFS_PROGRAM::NFSPROC3_WRITE, item);
                let record = record.handle(&files[item.index as usize]).long(item.offset);
                drop(record.word(item.bytes).word(0).bytes(bytes)); // UNSTABLE
                written += u64::from(item.bytes);
                progress(written as f64 / all as f64);
            },
            &mut |item, said| {
                let what = || format!("{shown}/{}", file_name(item.index));
                let (bytes, told) = wrote(done(said, &what)?).ok_or_else(|| garbled(&what()))?;
                if bytes != item.bytes {
                    return Err(EngineError::target(format!(
                        "{}: the server took {bytes} bytes of {}; look at its log",
                        what(),
                        item.bytes
                    )));
                }
                hear(told)
            },
        )?;
        each(
            &mut self.lines,
            (0..files.len() as u32).map(of_index),
            self.deadline_ns,
            &mut |lines, item| {
                let record = lines.call(NFS_PROGRAM::NFSPROC3_COMMIT, item);
                drop(record.handle(&files[item.index as usize]).long(0).word(0));
            },
            &mut |item, said| {
                let what = || format!("{shown}/{}", file_name(item.index));
                hear(committed(done(said, &what)?).ok_or_else(|| garbled(&what()))?)
            },
        )
    }
}

/// The results of what was done, or why it was not.
fn done<'a>(said: Said<'a>, what: &dyn Fn() -> String) -> Result<&'a [u8], EngineError> {
    match said {
        Said::Done(results) => Ok(results),
        Said::Refused(status) => Err(refused_with(&what(), status)),
        Said::Denied(why) => Err(EngineError::io(format!("{}: {why}", what()))),
    }
}

#[cold]
fn garbled(what: &str) -> EngineError {
    EngineError::io(format!("{what}: the answer cannot be understood; is that an NFS server?"))
}

#[cold]
fn untold(what: &str) -> EngineError {
    EngineError::target(format!(
        "{what}: the server finds it and does not tell how long it is, so that a data set cannot be \
        told from a damaged one; use another server"
    ))
}

fn gone(removed: Result<(), Refusal>) -> Result<(), EngineError> {
    match removed {
        Ok(()) | Err(Refusal::Status(nfsstat3::NFS3ERR_NOENT, _)) => Ok(()),
        Err(Refusal::Status(nfsstat3::NFS3ERR_NOTEMPTY | nfsstat3::NFS3ERR_EXIST, what)) => {
            Err(EngineError::target(format!(
                "{what} holds something that this Leadline did not make there, and leaves alone; \
                look at it and remove it yourself"
            )))
        }
        Err(refusal) => Err(refusal.into()),
    }
}

/// Refuses data that would leave others too little room; a server that tells nothing of its room is
/// taken at its word when it has none left.
fn require_room(volume: &mut Volume, plan: &Plan) -> Result<(), EngineError> {
    let room = volume.room()?;
    let kept = (room.tbytes / FREE_SHARE).max(FREE_BYTES_MIN);
    let needed = plan.bytes().saturating_add(kept);
    if room.tbytes == 0 || room.abytes >= needed {
        return Ok(());
    }
    Err(EngineError::target(format!(
        "{} has {} MiB free, and {} MiB of data with {} MiB left to others need {}; free some or \
        ask for less data",
        volume.directory.shown,
        room.abytes >> 20,
        plan.bytes() >> 20,
        kept >> 20,
        needed >> 20
    )))
}
