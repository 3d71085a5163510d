//! What every backend and every target must do.

mod conformance;
mod content;
mod data_file;
mod full_disk;
mod nfs;
mod nfs_lies;
mod nfs_queue;
mod precondition;
mod replay;
mod without_ring;
