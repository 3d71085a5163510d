"""What fio's options mean to a workload: mapped, of no consequence, or another workload."""

from __future__ import annotations

ALIASES = {
    "readwrite": "rw",
    "blocksize": "bs",
    "blocksize_range": "bsrange",
    "blocksize_unaligned": "bs_unaligned",
    "blockalign": "ba",
    "io_limit": "io_size",
    "iomem": "mem",
    "iomem_align": "mem_align",
    "wait_for_previous": "stonewall",
    "iodepth_batch_submit": "iodepth_batch",
    "iodepth_batch_complete": "iodepth_batch_complete_min",
    "fill_fs": "fill_device",
    "timeout": "runtime",
    "nr_files": "nrfiles",
    "fileoffset": "offset",
    "ratemin": "rate_min",
    "disable_bw": "disable_bw_measurement",
}

MAPPED = frozenset(
    {
        "rw",
        "rw_sequencer",
        "buffer_compress_percentage",
        "dedupe_percentage",
        "rwmixread",
        "rwmixwrite",
        "bs",
        "bsrange",
        "bssplit",
        "bs_unaligned",
        "ba",
        "size",
        "filesize",
        "io_size",
        "numjobs",
        "iodepth",
        "percentage_random",
        "direct",
        "buffered",
        "sync",
        "fsync",
        "fdatasync",
        "ioengine",
        "thinktime",
        "thinktime_blocks",
        "rate",
        "rate_iops",
        "rate_process",
        "runtime",
        "time_based",
        "ramp_time",
        "filename",
        "filename_format",
        "nrfiles",
        "kb_base",
        "norandommap",
        "softrandommap",
        "invalidate",
        "pre_read",
        "fadvise_hint",
        "stonewall",
        "random_distribution",
    }
)
"""What the reader looks at itself."""

WITHOUT_CONSEQUENCE = frozenset(
    {
        # Names, places and reports.
        "name",
        "description",
        "directory",
        "opendir",
        "unique_filename",
        "openfiles",
        "aux-path",
        "group_reporting",
        "new_group",
        "stats",
        "unified_rw_reporting",
        "per_job_logs",
        "write_bw_log",
        "write_lat_log",
        "write_iops_log",
        "write_hist_log",
        "bwavgtime",
        "iopsavgtime",
        "log_entries",
        "log_avg_msec",
        "log_hist_msec",
        "log_hist_coarseness",
        "log_max_value",
        "log_offset",
        "log_prio",
        "log_compression",
        "log_compression_cpus",
        "log_store_compressed",
        "log_unix_epoch",
        "log_alternate_epoch",
        "log_alternate_epoch_clock_id",
        "log_window_value",
        "clat_percentiles",
        "lat_percentiles",
        "slat_percentiles",
        "percentile_list",
        "significant_figures",
        "disk_util",
        "disable_lat",
        "disable_clat",
        "disable_slat",
        "disable_bw_measurement",
        "unit_base",
        "error_dump",
        "block_error_percentiles",
        # Laying out and clearing away: Leadline's file is real and written whatever these say.
        "fallocate",
        "overwrite",
        "create_serialize",
        "create_fsync",
        "create_on_open",
        "allow_file_create",
        "allow_mounted_write",
        "unlink",
        "unlink_each_loop",
        # Where random numbers come from, and how processes are made.
        "randrepeat",
        "allrandrepeat",
        "randseed",
        "random_generator",
        "thread",
        "scramble_buffers",
        "refill_buffers",
        "clocksource",
        "exitall",
        "exit_what",
        "exitall_on_error",
        # The end of a run, which here has the end it is told.
        "loops",
        "end_fsync",
        "fsync_on_close",
        "continue_on_error",
        "ignore_error",
    }
)

_SYNCED = "writes wait for the device in fio in a way that Leadline does not have"
_SHAPE = "fio changes how fast it asks while it runs, and Leadline does not"
_CONTENT = "every block is alike in fio; here blocks are random, or as --compress and --dedup say"
_ZONED = "fio stays within zones; here places are drawn over the whole range"
_BATCH = "fio submits or reaps in batches; here each request goes when it can"
_VERIFY = "fio reads back and checks what it wrote; Leadline adds no such reads"

ANOTHER_WORKLOAD = {
    "sync_file_range": _SYNCED,
    "write_barrier": _SYNCED,
    "atomic": _SYNCED,
    "verify": _VERIFY,
    "do_verify": _VERIFY,
    "verify_backlog": _VERIFY,
    "zonemode": _ZONED,
    "zonesize": _ZONED,
    "zonerange": _ZONED,
    "zoneskip": _ZONED,
    "wait_for": "fio runs this job after another; here each job runs by itself",
    "startdelay": "fio starts this job later than the others; here each job runs by itself",
    "offset": "fio leaves the beginning of the file alone; here the range begins at 0",
    "offset_increment": "fio gives each process a part of its own; here they share one range",
    "file_append": "fio writes past the end of the file; here the range is fixed",
    "number_ios": "fio ends after that many requests; here a run has its time",
    "create_only": "fio only makes the files and asks for nothing; here the workload runs",
    "fill_device": "fio writes until the device is full; here the range is fixed",
    "read_iolog": "fio replays a recorded trace: so does leadline measure DIR --replay TRACE",
    "flow": "fio ties the rates of jobs together; here each job runs by itself",
    "thinktime_spin": "fio computes during the pause; here the processor is left idle",
    "thinktime_iotime": "fio pauses by time; here after each request",
    "latency_target": _SHAPE,
    "rate_min": "fio gives up below that rate; Leadline measures on",
    "rate_iops_min": "fio gives up below that rate; Leadline measures on",
    "rate_ignore_thinktime": _SHAPE,
    "io_submit_mode": "fio submits from threads of their own",
    "iodepth_batch": _BATCH,
    "iodepth_batch_complete_min": _BATCH,
    "iodepth_batch_complete_max": _BATCH,
    "iodepth_low": _BATCH,
    "serialize_overlap": "fio holds overlapping requests back",
    "zero_buffers": _CONTENT,
    "buffer_pattern": _CONTENT,
    "bs_is_seq_rand": "fio draws sequential and random requests from different sizes",
    "lockfile": "fio lets only some processes at the file at once",
    "trim_percentage": "fio trims as well",
    "cgroup": "fio runs in that cgroup; use --cache-limit here",
    "lockmem": "fio takes that memory from the page cache; use --cache-limit here",
    "gtod_reduce": "fio measures less and so asks faster",
}
"""Options that make it another workload, each with how."""

OFF = {
    "zonemode": ("none",),
    "iodepth_batch": ("1",),
    "iodepth_batch_complete_min": ("1",),
    "iodepth_batch_complete_max": ("1",),
    "io_submit_mode": ("inline",),
    "lockfile": ("none",),
}
"""Values with which such an option does nothing; `0` does nothing for every other."""


def not_mapped(key: str, value: str) -> str | None:
    """Return what of an option has no like here; None when it changes nothing."""
    if key in MAPPED or key in WITHOUT_CONSEQUENCE:
        return None
    if key not in ANOTHER_WORKLOAD:
        return f"{key}={value}"
    if value in OFF.get(key, ("0",)):
        return None
    return f"{key}={value} makes it ANOTHER workload: {ANOTHER_WORKLOAD[key]}"
