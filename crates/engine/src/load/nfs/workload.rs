//! The four workloads of SH08 Table 3, in numbers.
//!
//! Table 3 gives popularity, sizes, directories and accesses; what else is needed comes from where
//! the comment beside it says, and `docs/reference/nfs-workloads.md` says the same to users.

#![forbid(unsafe_code)]

use leadline_wire::job::nfs_load::Workload;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// What a workload is made of.
#[must_use]
pub fn shape(workload: Workload) -> &'static Shape {
    match workload {
        Workload::Specsfs97 => &SPECSFS97,
        Workload::WebServer => &WEB_SERVER,
        Workload::DbTp => &DB_TP,
        Workload::Mail => &MAIL,
    }
}

/// Which files are asked for how often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Popularity {
    /// Each as often as any other.
    Even,
    /// This share of the files, each as often as any other of them; the rest never.
    Share(f64),
    /// The file of rank `r` with a weight of `r^-exponent`.
    Zipf(f64),
}

/// How long files are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizes {
    /// Sizes in bytes with their shares.
    Table(&'static [(u64, f64)]),
    /// Lognormal with a Pareto tail, and this mean in bytes.
    LongTail {
        /// Mean.
        mean_bytes: f64,
        /// Longest.
        most_bytes: f64,
    },
    /// So many equal files, and a log.
    Tables(u32),
}

/// What one call does. Calls are independent: none waits for another's answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// GETATTR of a file.
    Getattr,
    /// SETATTR: cuts a file to the length it was made with.
    Cut,
    /// SETATTR of a file's mode.
    SetMode,
    /// LOOKUP of a file's name in its directory.
    Lookup,
    /// ACCESS of a file.
    Access,
    /// READLINK of one of the symbolic links.
    Readlink,
    /// READ of a block anywhere in a file.
    ReadRandom,
    /// READ of the next piece by one of several readers, who each go through a file and then take
    /// another.
    ReadOn,
    /// WRITE of a block anywhere in a file.
    WriteRandom,
    /// WRITE at the end of a file.
    Append,
    /// The next of a batch: WRITEs one after the other to the log, then a COMMIT of it.
    Log,
    /// COMMIT of the file written last.
    Commit,
    /// CREATE of a file in the directory that is for that.
    Create,
    /// REMOVE of the oldest file there.
    Remove,
    /// READDIR of a file's directory, from its beginning.
    Readdir,
    /// READDIRPLUS of a file's directory, from its beginning.
    Readdirplus,
    /// FSSTAT.
    Fsstat,
}

/// A workload's numbers.
#[derive(Debug)]
pub struct Shape {
    /// Which files are asked for how often.
    pub popularity: Popularity,
    /// How long they are.
    pub sizes: Sizes,
    /// Files of one directory.
    pub directory_files: u32,
    /// What is asked, with weights.
    pub mix: &'static [(Step, f64)],
    /// Most bytes of one READ or WRITE, and the block of random ones.
    pub transfer_bytes: u32,
    /// Whether WRITEs ask for stable storage; those of the log never do, its COMMIT does.
    pub stable: bool,
    /// Symbolic links for each file.
    pub links_per_file: f64,
}

/// Bytes of a batch of log writes (SH08 §5.2).
pub const LOG_BATCH_BYTES: u64 = 256 * KIB;
/// Bytes of each of its writes: own choice, the largest of NFS 2 and 3 in their day.
pub const LOG_WRITE_BYTES: u64 = 32 * KIB;

/// Readers that go through files at the same time: own choice.
pub const READERS: usize = 16;

/// Mix: SPEC SFS 3.0 (SFS97_R1), NFS version 3, as listed by Eisler (NetApp, 2008); its thirteen
/// entries are rounded and add up to 99. Sizes of 1 KB to 1 MB, and a tenth of the files used: SH08
/// Table 3; the shares of the sizes are those of SFS as remembered, not checked against its users'
/// guide. 8 KB transfers: SPEC (SFS97 always used them). Links: own choice.
static SPECSFS97: Shape = Shape {
    popularity: Popularity::Share(0.1),
    sizes: Sizes::Table(&[
        (KIB, 33.0),
        (2 * KIB, 21.0),
        (4 * KIB, 13.0),
        (8 * KIB, 10.0),
        (16 * KIB, 8.0),
        (32 * KIB, 5.0),
        (64 * KIB, 4.0),
        (128 * KIB, 3.0),
        (256 * KIB, 2.0),
        (MIB, 1.0),
    ]),
    directory_files: 2000,
    mix: &[
        (Step::Lookup, 27.0),
        (Step::ReadRandom, 18.0),
        (Step::WriteRandom, 9.0),
        (Step::Getattr, 11.0),
        (Step::Readlink, 7.0),
        (Step::Readdir, 2.0),
        (Step::Create, 1.0),
        (Step::Remove, 1.0),
        (Step::Fsstat, 1.0),
        (Step::SetMode, 1.0),
        (Step::Readdirplus, 9.0),
        (Step::Access, 7.0),
        (Step::Commit, 5.0),
    ],
    transfer_bytes: 8 * 1024,
    stable: false,
    links_per_file: 0.1,
};

/// Popularity: Table 3 gives exponents from 0.6 to 0.9; the middle. Sizes: Table 3 gives the mean.
/// Mix: own choice. A page costs a server its path (LOOKUP), the check of what the client still has
/// (GETATTR, ACCESS) and the READs of its file; most pages need one READ.
static WEB_SERVER: Shape = Shape {
    popularity: Popularity::Zipf(0.75),
    sizes: Sizes::LongTail { mean_bytes: 10.5 * 1024.0, most_bytes: 1024.0 * 1024.0 },
    directory_files: 24,
    mix: &[(Step::Lookup, 30.0), (Step::Getattr, 25.0), (Step::Access, 5.0), (Step::ReadOn, 40.0)],
    transfer_bytes: 32 * 1024,
    stable: false,
    links_per_file: 0.0,
};

/// SH08 §5.2: a few large files, random, reads to writes as 2 to 1, and batches of 256 KB of
/// asynchronous writes with a commit. Pages of 8 KB and a tenth of the calls to the log: own choice.
/// Pages are written to stable storage, as a database asks for that does not sync them later.
static DB_TP: Shape = Shape {
    popularity: Popularity::Even,
    sizes: Sizes::Tables(4),
    directory_files: 24,
    mix: &[(Step::ReadRandom, 60.0), (Step::WriteRandom, 30.0), (Step::Log, 10.0)],
    transfer_bytes: 8 * 1024,
    stable: true,
    links_per_file: 0.0,
};

/// Popularity, mean size and directories: Table 3. Mix: own choice, after SH08 §5.2 (one file a
/// mailbox, messages appended, read through, some cut after). A mailbox is cut once for six messages,
/// so that none grows for ever. A message has the sizes of Table 3 too and is on stable storage
/// before its delivery is acknowledged.
static MAIL: Shape = Shape {
    popularity: Popularity::Zipf(1.3),
    sizes: Sizes::LongTail { mean_bytes: 4.7 * 1024.0, most_bytes: 1024.0 * 1024.0 },
    directory_files: 500,
    mix: &[
        (Step::Lookup, 20.0),
        (Step::Getattr, 15.0),
        (Step::Access, 5.0),
        (Step::ReadOn, 32.0),
        (Step::Append, 24.0),
        (Step::Cut, 4.0),
    ],
    transfer_bytes: 32 * 1024,
    stable: true,
    links_per_file: 0.0,
};
