//! Loads that are offered to an NFS server.

mod nfs;
mod nfs_generator;
