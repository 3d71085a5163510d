//! io_uring's rings, made with the most that the kernel knows of.

#![forbid(unsafe_code)]

use std::io::Error;

use io_uring::IoUring;

/// The ring with the most that the kernel knows of.
///
/// # Errors
/// When the kernel refuses io_uring altogether.
pub fn build(entries: u32) -> Result<IoUring, Error> {
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(entries)
        .or_else(|_| IoUring::builder().setup_coop_taskrun().build(entries))
        .or_else(|_| IoUring::new(entries))
}
