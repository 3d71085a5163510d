//! What is asked, call by call: decided by the plan and a seed alone, whatever the server answers.

#![forbid(unsafe_code)]

use std::collections::VecDeque;

use leadline_wire::job::nfs_load::Workload;
use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::access::stream::{below, unit_interval};
use crate::load::nfs::plan::{Plan, SPARE_FILES};
use crate::load::nfs::workload::{
    LOG_BATCH_BYTES, LOG_WRITE_BYTES, Popularity, READERS, Shape, Step,
};

/// A call of NFS version 3, with what it is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Call {
    /// Attributes of a file.
    Getattr {
        /// Its number.
        file: u32,
    },
    /// Cuts or lengthens a file.
    SetLength {
        /// Its number.
        file: u32,
        /// The new length.
        bytes: u64,
    },
    /// Gives a file the mode it has.
    SetMode {
        /// Its number.
        file: u32,
    },
    /// A file's name in its directory.
    Lookup {
        /// Its number.
        file: u32,
    },
    /// What one may do with a file.
    Access {
        /// Its number.
        file: u32,
    },
    /// Where a link leads.
    Readlink {
        /// Its number.
        link: u32,
    },
    /// Bytes of a file.
    Read {
        /// Its number.
        file: u32,
        /// From where on.
        offset: u64,
        /// How many.
        bytes: u32,
    },
    /// Bytes to a file.
    Write {
        /// Its number.
        file: u32,
        /// From where on.
        offset: u64,
        /// How many.
        bytes: u32,
        /// Whether they are to be on stable storage before the answer.
        stable: bool,
    },
    /// What was written to a file, to stable storage.
    Commit {
        /// Its number.
        file: u32,
    },
    /// A new file.
    Create {
        /// Number of its name.
        name: u64,
    },
    /// A new file goes.
    Remove {
        /// Number of its name.
        name: u64,
    },
    /// Names of a file's directory.
    Readdir {
        /// Number of the directory.
        directory: u32,
    },
    /// Names and attributes of a file's directory.
    Readdirplus {
        /// Number of the directory.
        directory: u32,
    },
    /// Room on the file system.
    Fsstat,
}

/// Names of the calls, in the order of [`Call::procedure`].
pub const PROCEDURES: [&str; 13] = [
    "getattr",
    "setattr",
    "lookup",
    "access",
    "readlink",
    "read",
    "write",
    "commit",
    "create",
    "remove",
    "readdir",
    "readdirplus",
    "fsstat",
];

impl Call {
    /// Index into [`PROCEDURES`].
    #[must_use]
    pub fn procedure(&self) -> usize {
        match self {
            Self::Getattr { .. } => 0,
            Self::SetLength { .. } | Self::SetMode { .. } => 1,
            Self::Lookup { .. } => 2,
            Self::Access { .. } => 3,
            Self::Readlink { .. } => 4,
            Self::Read { .. } => 5,
            Self::Write { .. } => 6,
            Self::Commit { .. } => 7,
            Self::Create { .. } => 8,
            Self::Remove { .. } => 9,
            Self::Readdir { .. } => 10,
            Self::Readdirplus { .. } => 11,
            Self::Fsstat => 12,
        }
    }
}

/// Fewest and most files in the directory for new ones; in between, as the mix has it.
const NEW_FILES: std::ops::RangeInclusive<usize> = 64..=512;

/// The endless stream of calls.
#[derive(Debug)]
pub struct CallStream<'a> {
    plan: &'a Plan,
    shape: &'a Shape,
    random: Xoshiro256PlusPlus,
    popular: Popular,
    /// Ends of the steps' shares of [0, 1).
    mix: Vec<(f64, Step)>,
    stable: bool,
    readers: [Reader; READERS],
    /// How long files have become by what was asked so far; only of those that grow.
    grown: Vec<u64>,
    written: Option<u32>,
    log_at: u64,
    log_in_batch: u64,
    new_files: VecDeque<u64>,
    next_new: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Reader {
    file: u32,
    at: u64,
    to: u64,
}

#[derive(Debug)]
enum Popular {
    Even(u64),
    Zipf(Zipf<f64>),
}

impl<'a> CallStream<'a> {
    /// The stream of a seed. `stable` overrides what the workload's WRITEs ask for.
    #[must_use]
    pub fn new(plan: &'a Plan, stable: Option<bool>, seed: u64) -> Self {
        let shape = plan.shape();
        let ranked = plan.by_rank.len() as u64;
        let popular = match shape.popularity {
            Popularity::Even => Popular::Even(ranked),
            Popularity::Share(share) => {
                Popular::Even(((ranked as f64 * share).round() as u64).max(1))
            }
            Popularity::Zipf(exponent) => match Zipf::new(ranked as f64, exponent) {
                Ok(zipf) => Popular::Zipf(zipf),
                Err(_) => Popular::Even(ranked), // no such exponent is in any shape
            },
        };
        let weights: f64 = shape.mix.iter().map(|(_, weight)| weight).sum();
        let mut sum = 0.0;
        let mix = shape.mix.iter().map(|(step, weight)| {
            sum += weight / weights;
            (sum, *step)
        });
        let grows = shape.mix.iter().any(|(step, _)| *step == Step::Append);
        Self {
            plan,
            shape,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            popular,
            mix: mix.collect(),
            stable: stable.unwrap_or(shape.stable),
            readers: [Reader::default(); READERS],
            grown: if grows { plan.file_bytes.clone() } else { Vec::new() },
            written: None,
            log_at: 0,
            log_in_batch: 0,
            new_files: (0..u64::from(plan.spare_files)).collect(),
            next_new: u64::from(SPARE_FILES),
        }
    }

    /// The next call.
    #[inline]
    pub fn next_call(&mut self) -> Call {
        let at = unit_interval(&mut self.random);
        let step = self.mix.iter().find(|(end, _)| at < *end).or(self.mix.last());
        match step.map_or(Step::Getattr, |(_, step)| *step) {
            Step::Getattr => Call::Getattr { file: self.file() },
            Step::SetMode => Call::SetMode { file: self.file() },
            Step::Cut => self.cut(),
            Step::Lookup => Call::Lookup { file: self.file() },
            Step::Access => Call::Access { file: self.file() },
            Step::Readlink => {
                Call::Readlink { link: below(&mut self.random, u64::from(self.plan.links)) as u32 }
            }
            Step::ReadRandom => self.read_random(),
            Step::ReadOn => self.read_on(),
            Step::WriteRandom => self.write_random(),
            Step::Append => self.append(),
            Step::Log => self.log(),
            Step::Commit => {
                let file = self.written.unwrap_or_else(|| self.plan.by_rank[0]);
                Call::Commit { file }
            }
            Step::Create => self.create_or_remove(true),
            Step::Remove => self.create_or_remove(false),
            Step::Readdir => Call::Readdir { directory: self.directory() },
            Step::Readdirplus => Call::Readdirplus { directory: self.directory() },
            Step::Fsstat => Call::Fsstat,
        }
    }

    fn file(&mut self) -> u32 {
        let rank = match &self.popular {
            Popular::Even(number) => below(&mut self.random, *number),
            Popular::Zipf(zipf) => zipf.sample(&mut self.random) as u64 - 1,
        };
        self.plan.by_rank[(rank as usize).min(self.plan.by_rank.len() - 1)]
    }

    fn directory(&mut self) -> u32 {
        let file = self.file();
        self.plan.directory_of(file)
    }

    fn length(&self, file: u32) -> u64 {
        let lengths = if self.grown.is_empty() { &self.plan.file_bytes } else { &self.grown };
        lengths[file as usize]
    }

    /// A whole block, or what the file has of its last.
    fn block(&mut self, file: u32) -> (u64, u32) {
        let (length, block) = (self.length(file), u64::from(self.shape.transfer_bytes));
        let offset = below(&mut self.random, length.div_ceil(block).max(1)) * block;
        (offset, (length - offset).min(block) as u32)
    }

    fn read_random(&mut self) -> Call {
        let file = self.file();
        let (offset, bytes) = self.block(file);
        Call::Read { file, offset, bytes }
    }

    fn write_random(&mut self) -> Call {
        let file = self.file();
        let (offset, bytes) = self.block(file);
        self.written = Some(file);
        Call::Write { file, offset, bytes, stable: self.stable }
    }

    fn read_on(&mut self) -> Call {
        let which = below(&mut self.random, READERS as u64) as usize;
        if self.readers[which].at >= self.readers[which].to {
            let file = self.file();
            self.readers[which] = Reader { file, at: 0, to: self.length(file) };
        }
        let Reader { file, at, to } = self.readers[which];
        let bytes = (to - at).min(u64::from(self.shape.transfer_bytes));
        self.readers[which].at += bytes;
        Call::Read { file, offset: at, bytes: bytes as u32 }
    }

    fn append(&mut self) -> Call {
        let file = self.file();
        // A message has the sizes of the mailboxes, and goes in one call.
        let like = below(&mut self.random, self.plan.file_bytes.len() as u64) as usize;
        let bytes = self.plan.file_bytes[like].min(u64::from(self.shape.transfer_bytes)) as u32;
        let offset = self.grown[file as usize];
        self.grown[file as usize] += u64::from(bytes);
        Call::Write { file, offset, bytes, stable: self.stable }
    }

    fn cut(&mut self) -> Call {
        let file = self.file();
        let bytes = self.plan.file_bytes[file as usize];
        if let Some(grown) = self.grown.get_mut(file as usize) {
            *grown = bytes;
        }
        Call::SetLength { file, bytes }
    }

    fn log(&mut self) -> Call {
        let file = self.plan.log.unwrap_or_default();
        if self.log_in_batch == LOG_BATCH_BYTES {
            self.log_in_batch = 0;
            return Call::Commit { file };
        }
        let offset = self.log_at;
        self.log_in_batch += LOG_WRITE_BYTES;
        self.log_at = (self.log_at + LOG_WRITE_BYTES) % self.length(file);
        Call::Write { file, offset, bytes: LOG_WRITE_BYTES as u32, stable: false }
    }

    fn create_or_remove(&mut self, create: bool) -> Call {
        let few = self.new_files.len() <= *NEW_FILES.start();
        let many = self.new_files.len() >= *NEW_FILES.end();
        if (create && !many) || few {
            let name = self.next_new;
            self.next_new += 1;
            self.new_files.push_back(name);
            return Call::Create { name };
        }
        match self.new_files.pop_front() {
            Some(name) => Call::Remove { name },
            None => Call::Fsstat, // there are always some: `few` is above 0
        }
    }

    /// Whether a READ may find less than it asks for: what was appended may not be written yet.
    #[must_use]
    pub fn grows(&self) -> bool {
        self.plan.data.workload == Workload::Mail
    }
}
