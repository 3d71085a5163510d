"""What trials let one believe of a server: a model of its queue, and a posterior over it.

The model is in Rust (crates/stats/src/belief/mod.rs): the expected wait of an open queue whose
speed wanders, over any part of any trial. `server` are its parameters and what is known of them
beforehand, `reading` what is kept of a trial, `likelihood` how probable that is, `particles` the
posterior, `peak` the peak rate that follows.
"""
