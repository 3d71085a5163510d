//! What a data set holds: decided by workload, size and seed alone, so that its name says it all.

#![forbid(unsafe_code)]

use leadline_base::error::EngineError;
use leadline_base::normal::quantile_near;
use leadline_wire::job::nfs_load::Data;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::access::stream::below;
use crate::load::nfs::workload::{LOG_BATCH_BYTES, Shape, Sizes, Step, shape};

/// Changes whenever the same data would be laid out otherwise.
pub const PLAN_VERSION: u32 = 1;

/// Most files: each costs this process some hundred bytes while a load runs.
pub const FILES_MAX: u64 = 1 << 20;

/// Files that lie in the directory for new files when a load begins.
pub const SPARE_FILES: u32 = 256;

/// Whether the files of a data set are no more than are kept.
///
/// # Errors
/// `BadJob` that says how many they are.
pub fn require_few_files(data: &Data) -> Result<(), EngineError> {
    let files = file_number(shape(data.workload), data.data_bytes);
    if files <= FILES_MAX {
        return Ok(());
    }
    Err(EngineError::bad_job(format!(
        "data.data_bytes is {}, which is {files} files of {}, and no more than {FILES_MAX} are \
        kept; ask for less data",
        data.data_bytes,
        data.workload.name()
    )))
}

/// A data set's files.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Which data set.
    pub data: Data,
    /// Lengths of the files, in the order of their numbers.
    pub file_bytes: Vec<u64>,
    /// Numbers of the files, the most popular first.
    pub by_rank: Vec<u32>,
    /// Of these files the last is the log; it has no rank.
    pub log: Option<u32>,
    /// Symbolic links.
    pub links: u32,
    /// Files in the directory for new ones; 0 when none are made.
    pub spare_files: u32,
}

impl Plan {
    /// The plan of a data set.
    #[must_use]
    pub fn new(data: Data) -> Self {
        let shape = shape(data.workload);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(data.seed ^ 0x6e66_735f_6c6f_6164);
        let number = file_number(shape, data.data_bytes);
        let mut file_bytes = match shape.sizes {
            Sizes::Table(table) => from_table(table, number),
            Sizes::LongTail { mean_bytes, most_bytes } => long_tail(mean_bytes, most_bytes, number),
            Sizes::Tables(tables) => {
                let log = log_bytes(data.data_bytes);
                let block = u64::from(shape.transfer_bytes);
                let each = (data.data_bytes - log) / u64::from(tables) / block * block;
                let mut lengths = vec![each; tables as usize];
                lengths.push(log);
                lengths
            }
        };
        let log = matches!(shape.sizes, Sizes::Tables(_)).then(|| file_bytes.len() as u32 - 1);
        let ranked = log.unwrap_or(file_bytes.len() as u32);
        shuffle(&mut file_bytes[..ranked as usize], &mut random);
        let mut by_rank: Vec<u32> = (0..ranked).collect();
        shuffle(&mut by_rank, &mut random);
        let makes_files = shape.mix.iter().any(|(step, _)| *step == Step::Create);
        Self {
            data,
            links: (f64::from(ranked) * shape.links_per_file).ceil() as u32,
            file_bytes,
            by_rank,
            log,
            spare_files: if makes_files { SPARE_FILES } else { 0 },
        }
    }

    /// The workload's numbers.
    #[must_use]
    pub fn shape(&self) -> &'static Shape {
        shape(self.data.workload)
    }

    /// Number of directories that hold files.
    #[must_use]
    pub fn directories(&self) -> u32 {
        (self.file_bytes.len() as u32).div_ceil(self.shape().directory_files)
    }

    /// The directory a file lies in.
    #[must_use]
    pub fn directory_of(&self, file: u32) -> u32 {
        file / self.shape().directory_files
    }

    /// Bytes of all files together.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.file_bytes.iter().sum()
    }
}

/// Name of a directory of files.
#[must_use]
pub fn directory_name(directory: u32) -> String {
    format!("d{directory:06}")
}

/// Name of a file.
#[must_use]
pub fn file_name(file: u32) -> String {
    format!("f{file:07}")
}

/// Name of a symbolic link.
#[must_use]
pub fn link_name(link: u32) -> String {
    format!("l{link:07}")
}

/// Name of a file in the directory for new ones.
#[must_use]
pub fn new_file_name(number: u64) -> String {
    format!("n{number:010}")
}

/// Whether a name is one of [`new_file_name`]'s.
#[must_use]
pub fn is_new_file(name: &str) -> bool {
    name.strip_prefix('n')
        .is_some_and(|digits| digits.len() >= 10 && digits.bytes().all(|b| b.is_ascii_digit()))
}

fn file_number(shape: &Shape, data_bytes: u64) -> u64 {
    let mean = match shape.sizes {
        Sizes::Table(table) => {
            let weights: f64 = table.iter().map(|(_, weight)| weight).sum();
            table.iter().map(|(bytes, weight)| *bytes as f64 * weight).sum::<f64>() / weights
        }
        Sizes::LongTail { mean_bytes, .. } => mean_bytes,
        Sizes::Tables(tables) => return u64::from(tables) + 1,
    };
    (data_bytes as f64 / mean).round() as u64
}

/// A sixteenth of the data, in whole batches: own choice.
fn log_bytes(data_bytes: u64) -> u64 {
    (data_bytes / 16 / LOG_BATCH_BYTES).clamp(1, 4096) * LOG_BATCH_BYTES
}

/// Sizes of `number` files, as many of each as its share says.
fn from_table(table: &[(u64, f64)], number: u64) -> Vec<u64> {
    let weights: f64 = table.iter().map(|(_, weight)| weight).sum();
    let mut lengths = Vec::with_capacity(number as usize);
    let mut sum = 0.0;
    for (bytes, weight) in table {
        sum += weight;
        lengths.resize((sum / weights * number as f64).round() as usize, *bytes);
    }
    lengths
}

/// Shape of the body and share and exponent of the tail of web files (Barford and Crovella,
/// SIGMETRICS 1998, table 1: sigma 1.318, 7%, 1.1); mailboxes are given the same.
const BODY_SIGMA: f64 = 1.318;
const TAIL_SHARE: f64 = 0.07;
const TAIL_EXPONENT: f64 = 1.1;

/// Sizes of `number` files at even quantiles of the distribution, scaled so that their mean is
/// `mean_bytes` whatever the number is.
fn long_tail(mean_bytes: f64, most_bytes: f64, number: u64) -> Vec<u64> {
    let tail = (number as f64 * TAIL_SHARE).round() as u64;
    let body = number - tail;
    let unit = |index: u64, of: u64| (index as f64 + 0.5) / of as f64;
    let mut near = quantile_near(0.5 / body as f64, 0.0);
    let bodies = (0..body).map(|index| {
        near = quantile_near(unit(index, body), near);
        (BODY_SIGMA * near).exp()
    });
    // The tail begins where the body has its own last 7%.
    let start = (BODY_SIGMA * quantile_near(1.0 - TAIL_SHARE, 1.5)).exp();
    let tails = (0..tail).map(|index| start * (1.0 - unit(index, tail)).powf(-1.0 / TAIL_EXPONENT));
    let raw: Vec<f64> = bodies.chain(tails).collect();
    let scale = scale_for(&raw, mean_bytes, most_bytes);
    raw.iter().map(|size| (size * scale).clamp(1.0, most_bytes).round() as u64).collect()
}

/// The factor at which sizes, cut at `most`, have the mean `mean`.
fn scale_for(raw: &[f64], mean: f64, most: f64) -> f64 {
    let mean_at = |scale: f64| {
        raw.iter().map(|size| (size * scale).min(most)).sum::<f64>() / raw.len().max(1) as f64
    };
    let (mut low, mut high) = (0.0, most);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if mean_at(middle) < mean { low = middle } else { high = middle }
    }
    high
}

/// A shuffle by Fisher and Yates.
fn shuffle<T>(items: &mut [T], random: &mut Xoshiro256PlusPlus) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(random, last as u64 + 1) as usize);
    }
}
