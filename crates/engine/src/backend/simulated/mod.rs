//! A stated model of a storage system, obeyed in virtual time.
