//! Where the bytes came from, and what a mean would hide.

mod cached_disk;
mod extents;
mod levels;
mod modes;
mod provenance;
mod residency;
mod stalls;
