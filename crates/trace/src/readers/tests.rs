//! Each reader against a small file made by hand, of which every record is known.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::format::format_of;
use crate::record::{CALLS, Deed, NO_FILE, Record, UNKNOWN};

/// Keeps what it is given.
#[derive(Default)]
struct Kept(Vec<Record>);

impl Sink for Kept {
    fn take(&mut self, record: Record) -> Result<(), Refused> {
        self.0.push(record);
        Ok(())
    }
}

fn read_all(trace: &[u8]) -> Result<(Vec<Record>, Noted), Refused> {
    let mut progress = |_| Ok(());
    let (mut source, head) = Source::open(trace, &mut progress)?;
    let mut kept = Kept::default();
    let noted = read(format_of(&head)?, &mut source, &mut kept)?;
    Ok((kept.0, noted))
}

fn records(trace: &str) -> Vec<Record> {
    read_all(trace.as_bytes()).unwrap().0
}

/// What was done, to which file, where and how much, when and for how long.
type Told = (Deed, u32, u64, u64, u64, u64);

fn told(records: &[Record]) -> Vec<Told> {
    let one =
        |each: &Record| (each.deed, each.file, each.offset, each.bytes, each.at_ns, each.took_ns);
    records.iter().map(one).collect()
}

fn names(records: &[Record]) -> Vec<&'static str> {
    records.iter().map(|each| CALLS[usize::from(each.call)]).collect()
}

/// A process that opens a thousand files and has children, each of which does something.
fn family(children: u32, does: &str) -> String {
    let mut trace = String::new();
    for number in 3..1003 {
        trace += &format!("1 1.0 openat(AT_FDCWD, \"/f{number}\", O_RDONLY) = {number}\n");
    }
    for child in 2..children + 2 {
        trace += &format!("1 1.0 fork() = {child}\n{child} 1.0 {does}\n");
    }
    trace
}

#[test]
fn tables_of_descriptors_are_shared_until_they_differ_and_limited_in_all() {
    let same = family(20_000, "read(7, \"\"..., 512) = 512");
    assert_eq!(records(&same).iter().filter(|each| each.bytes == 512).count(), 20_000);
    let each_other = family(20_000, "close(7) = 0");
    let refused = read_all(each_other.as_bytes()).unwrap_err();
    assert!(refused.0.contains("files open at once"), "{refused:?}");
}

#[test]
fn lines_that_are_much_work_are_reported_on_the_way() {
    let trace = "fio version 3 iolog\n".repeat(600);
    let mut progress = |_| Err(Refused("stopped".into()));
    let (mut source, _) = Source::open(trace.as_bytes(), &mut progress).unwrap();
    let slow = |_: &[u8]| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        Ok(true)
    };
    assert_eq!(source.lines(slow).unwrap_err().0, "stopped");
}

#[test]
fn fios_iolog_3_has_times_in_us() {
    let found = records(
        "fio version 3 iolog\n0 /a add\n5 /a open\n7 /a read 4096 512\n9 /b write 0 8192\n\
         11 /a sync\n12 /a datasync\n13 /a trim 0 4096\n20 /a close\n",
    );
    let moved: Vec<Record> = found.iter().copied().filter(|each| each.bytes > 0).collect();
    assert_eq!(
        told(&moved),
        [(Deed::Read, 0, 4096, 512, 7_000, UNKNOWN), (Deed::Write, 1, 0, 8192, 9_000, UNKNOWN)]
    );
    assert_eq!(names(&found[3..]), ["fsync", "fdatasync", "discard", "close"]);
}

#[test]
fn strace_tells_writeback_that_is_begun_from_what_is_waited_for() {
    let (found, _) = read_all(
        b"1 100.1 sync_file_range(3</d/a>, 8192, 4096, SYNC_FILE_RANGE_WRITE) = 0 <0.1>\n\
          1 100.4 sync_file_range(3</d/a>, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE|SYNC_FILE_RANGE_WRITE\
          |SYNC_FILE_RANGE_WAIT_AFTER) = 0 <0.2>\n",
    )
    .unwrap();
    assert_eq!(names(&found), ["sync_file_range", "fdatasync"]);
    assert_eq!((found[0].offset, found[0].bytes), (8192, 4096));
    assert!(found[0].begins_writeback() && !found[1].begins_writeback());
}

#[test]
fn fios_iolog_2_has_no_times_and_its_waits_are_counted() {
    let (found, noted) =
        read_all(b"fio version 2 iolog\n/a add\n/a open\n/a wait 500 0\n/a write 0 4096\n")
            .unwrap();
    assert_eq!(told(&found[1..]), [(Deed::Write, 0, 0, 4096, 0, UNKNOWN)]);
    assert_eq!(noted.unseen, [("wait", 1)]);
}

#[test]
fn a_csv_with_a_heading_is_read_from_its_first_row_on() {
    let found = records(
        "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n\
         128166372003061629,usr,0,Read,4096,512,10\n128166372003061630,usr,1,Write,0,1024,20\n",
    );
    assert_eq!(
        told(&found),
        [
            (Deed::Read, 0, 4096, 512, 12_816_637_200_306_162_900, 1000),
            (Deed::Write, 1, 0, 1024, 12_816_637_200_306_163_000, 2000)
        ]
    );
}

#[test]
fn what_blkparse_prints_has_requests_where_they_are_queued_and_times_of_the_device() {
    let found = records(
        "  8,0    1        1     0.000000100   697  Q  RA 16 + 8 [cat]\n  \
           8,0    1        2     0.000000200   697  G  RA 16 + 8 [cat]\n  \
           8,0    1        3     0.000000300   697  D  RA 16 + 8 [cat]\n  \
           8,0    1        4     0.000005300     0  C  RA 16 + 8 [0]\n  \
           8,0    0        5     0.000006000    98  Q FWS [jbd2]\n  \
           8,0    0        6     0.000007000    98  Q WFS 64 + 16 [jbd2]\n  \
           8,0    0        7     0.000008000    98  Q   D 512 + 8 [jbd2]\nCPU1 (8,0):\n Reads Queued: 1\n",
    );
    assert_eq!(
        told(&found),
        [
            (Deed::Read, 0, 16 * 512, 4096, 100, UNKNOWN),
            (Deed::Device, 0, 0, 0, 300, 5_000),
            (Deed::Sync, 0, 0, 0, 6_000, UNKNOWN),
            (Deed::Write, 0, 64 * 512, 8192, 7_000, UNKNOWN),
            (Deed::Sync, 0, 0, 0, 7_000, UNKNOWN),
            (Deed::Metadata, 0, 512 * 512, 4096, 8_000, UNKNOWN)
        ]
    );
}

/// A record of blktrace, with so many bytes after it.
fn blk(at_ns: u64, sector: u64, bytes: u32, action: u32, beside: u16) -> Vec<u8> {
    let mut made = Vec::new();
    made.extend(0x6561_7407_u32.to_le_bytes());
    made.extend(1_u32.to_le_bytes());
    made.extend(at_ns.to_le_bytes());
    made.extend(sector.to_le_bytes());
    made.extend(bytes.to_le_bytes());
    made.extend(action.to_le_bytes());
    for number in [697_u32, 8 << 20, 0] {
        made.extend(number.to_le_bytes()); // pid, device, processor
    }
    made.extend(0_u16.to_le_bytes());
    made.extend(beside.to_le_bytes());
    made.resize(made.len() + usize::from(beside), 0xff);
    made
}

#[test]
fn blktraces_own_records_are_read_as_what_blkparse_prints_of_them() {
    let (queue, issue, complete) = (1 | 1 << 20, 7 | 1 << 22, 8 | 1 << 23);
    let (read, write, notify) = (1 << 16, 1 << 17, 1 << 26);
    let trace = [
        blk(50, 0, 0, notify, 16),
        blk(100, 16, 4096, queue | read, 0),
        blk(300, 16, 4096, issue | read, 4),
        blk(5_300, 16, 4096, complete | read, 0),
        blk(6_000, 64, 512, queue | write, 0),
        vec![7], // cut off
    ]
    .concat();
    let found = read_all(&trace).unwrap().0;
    assert_eq!(
        told(&found),
        [
            (Deed::Read, 0, 16 * 512, 4096, 100, UNKNOWN),
            (Deed::Device, 0, 0, 0, 300, 5_000),
            (Deed::Write, 0, 64 * 512, 512, 6_000, UNKNOWN)
        ]
    );
}

#[test]
fn a_damaged_record_of_blktrace_is_named() {
    let mut trace = [blk(1, 0, 512, 1 | 1 << 16, 0), blk(2, 0, 512, 1 | 1 << 16, 0)].concat();
    trace[48] ^= 1;
    trace[51] = 0;
    let refused = read_all(&trace).unwrap_err();
    assert!(refused.0.contains("record 2 does not begin"), "{refused}");
}

#[test]
fn darshans_segments_come_in_order_of_time_and_those_of_mpi_are_left_out() {
    let (found, noted) = read_all(
        b"# darshan log version: 3.41\n\n# DXT, file_id: 77, file_name: /a\n# DXT, rank: 0, hostname: h\n\
          # Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)\n \
          X_POSIX       1  write        0               0         4096      0.0300      0.0310\n \
          X_POSIX       0   read        0            4096          512      0.0010      0.0030  [  4]\n\
          # DXT, file_id: 78, file_name: /b\n \
          X_MPIIO       0   read        0             N/A          512      0.0010      0.0030\n \
          X_POSIX       0   read        1               0          100      0.0200      0.0201\n",
    )
    .unwrap();
    assert_eq!(
        told(&found),
        [
            (Deed::Read, 0, 4096, 512, 1_000_000, 2_000_000),
            (Deed::Read, 1, 0, 100, 20_000_000, 100_000),
            (Deed::Write, 0, 0, 4096, 30_000_000, 1_000_000)
        ]
    );
    assert_eq!((noted.files, noted.processes, &noted.unseen[..]), (2, 2, &[("MPI-IO", 1)][..]));
}

#[test]
fn descriptors_are_followed_over_seeks_forks_duplicates_and_ends() {
    let found = records(
        "1 100.0 openat(AT_FDCWD, \"/data/a\", O_RDWR|O_CREAT, 0644) = 3 <0.1>\n\
         1 100.1 read(3, \"x\"..., 100) = 100\n\
         1 100.2 lseek(3, 1000, SEEK_SET) = 1000\n\
         1 100.3 write(3, \"x\"..., 50) = 50\n\
         1 100.4 pread64(3, \"x\"..., 10, 4096) = 10\n\
         1 100.5 dup2(3, 9) = 9\n\
         1 100.6 fork( <unfinished ...>\n\
         2 100.7 read(9, \"x\"..., 10) = 10\n\
         1 100.8 <... fork resumed>) = 2\n\
         1 100.9 close(3) = 0\n\
         2 101.0 write(3, \"x\"..., 5) = 5\n\
         1 101.1 openat(AT_FDCWD, \"/data/b\", O_WRONLY|O_APPEND) = 3\n\
         1 101.2 fstat(3, {st_mode=S_IFREG|0644, st_size=777, ...}) = 0\n\
         1 101.3 write(3, \"x\"..., 3) = 3\n\
         1 101.4 fsync(3) = 0 <0.25>\n",
    );
    let moved: Vec<Told> =
        told(&found).into_iter().filter(|each| each.0 != Deed::Metadata).collect();
    let places: Vec<_> = moved.iter().map(|each| (each.0, each.1, each.2, each.3)).collect();
    assert_eq!(
        places,
        [
            (Deed::Read, 0, 0, 100),
            (Deed::Write, 0, 1000, 50),
            (Deed::Read, 0, 4096, 10),
            (Deed::Read, 0, 1050, 10),
            (Deed::Write, 0, 1060, 5),
            (Deed::Write, 1, 777, 3),
            (Deed::Sync, 1, 0, 0)
        ]
    );
    assert_eq!(moved[6].5, 250_000_000);
}

#[test]
fn what_is_no_file_is_left_out_and_what_cannot_be_placed_is_counted() {
    let found = records(
        "read(0, \"x\"..., 100) = 100\n\
         read(4</etc/passwd>, \"x\"..., 100) = 100\n\
         read(5<pipe:[77]>, \"x\"..., 100) = 100\n\
         write(6<socket:[78]>, \"x\"..., 100) = 100\n\
         openat(AT_FDCWD, \"/dev/urandom\", O_RDONLY) = 7\n\
         read(7, \"x\"..., 100) = 100\n\
         pread64(8, \"x\"..., 100, 512) = 100\n\
         read(8, \"\", 100) = 0\n\
         read(8, 0x7f, 100) = -1 EIO (Input/output error)\n",
    );
    let found = told(&found);
    assert_eq!(
        found,
        [
            (Deed::Unplaced, NO_FILE, 0, 100, 0, UNKNOWN),
            (Deed::Read, 0, 0, 100, 0, UNKNOWN),
            (Deed::Read, 1, 512, 100, 0, UNKNOWN),
            (Deed::Metadata, 1, 0, 0, 0, UNKNOWN)
        ]
    );
}

#[test]
fn a_file_that_was_removed_or_cut_is_another_when_its_name_comes_again() {
    let found = records(
        "open(\"/a\", O_RDONLY) = 3\nread(3, \"x\", 1) = 1\nunlink(\"/a\") = 0\n\
         open(\"/a\", O_RDONLY) = 4\nread(4, \"x\", 1) = 1\nrename(\"/a\", \"/b\") = 0\n\
         open(\"/b\", O_RDONLY) = 5\nread(5, \"x\", 1) = 1\n\
         open(\"/b\", O_WRONLY|O_TRUNC) = 6\nwrite(6, \"x\", 1) = 1\n",
    );
    let files: Vec<u32> =
        found.iter().filter(|each| each.bytes > 0).map(|each| each.file).collect();
    assert_eq!(files, [0, 1, 1, 2]);
}

#[test]
fn midnight_is_passed_and_times_since_the_line_before_are_added_up() {
    let times =
        |trace| records(trace).iter().map(|each| each.at_ns / 1_000_000).collect::<Vec<_>>();
    let passed = times(
        "23:59:59.900000 pread64(3, \"x\", 1, 0) = 1\n00:00:00.100000 pread64(3, \"x\", 1, 0) = 1\n",
    );
    assert_eq!(passed[1] - passed[0], 200);
    assert_eq!(
        times("0.000000 pread64(3, \"x\", 1, 0) = 1\n0.250000 pread64(3, \"x\", 1, 0) = 1\n"),
        [0, 250]
    );
}

#[test]
fn a_copy_reads_one_file_and_writes_another() {
    let found = records(
        "copy_file_range(3</a>, [100] => [150], 4</b>, NULL, 50, 0) = 50\n\
         sendfile(4</b>, 3</a>, NULL, 10) = 10\n",
    );
    assert_eq!(
        told(&found),
        [
            (Deed::Read, 0, 100, 50, 0, UNKNOWN),
            (Deed::Write, 1, 0, 50, 0, UNKNOWN),
            (Deed::Read, 0, 0, 10, 0, UNKNOWN),
            (Deed::Write, 1, 50, 10, 0, UNKNOWN)
        ]
    );
}

#[test]
fn a_file_of_which_too_much_makes_no_sense_is_refused_with_the_line() {
    let good = "0,R,0,4096,1577808000000626\n";
    let mostly = [good.repeat(50), "nonsense\n".repeat(20)].concat();
    let refused = read_all(mostly.as_bytes()).unwrap_err();
    assert!(refused.0.contains("20 of its 70 lines"), "{refused}");
    assert!(refused.0.contains("line 51"), "{refused}");
    let cut = [good.repeat(50).as_str(), "0,R,0,40"].concat();
    assert_eq!(records(&cut).len(), 50, "the last line may be cut off");
}

const SAMPLES: [&[u8]; 9] = [
    b"fio version 2 iolog\n/a add\n/a open\n/a read 0 4096\n/a write 4096 512\n/a wait 5 0\n",
    b"fio version 3 iolog\n0 /a add\n5 /a open\n7 /a read 4096 512\n9 /b write 0 8192\n",
    b"128166372003061629,usr,0,Read,4096,512,10\n128166372003061630,usr,1,Write,0,1024,20\n",
    b"0,R,126703644672,4096,1577808000000626\n1,W,0,512,1577808000000627\n",
    b"1538323200,12910952,128,0,1063\n1538323201,1,8,1,1063\n",
    b"  8,0 1 1 0.000000100 697 Q RA 16 + 8 [cat]\n  8,0 1 2 0.1 697 D RA 16 + 8 [cat]\n",
    b"# DXT, file_id: 77, file_name: /a\n X_POSIX 1 write 0 0 4096 0.0300 0.0310\n",
    b"1 100.0 openat(AT_FDCWD, \"/a\", O_RDWR) = 3 <0.1>\n1 100.1 read(3, \"x\"..., 9) = 9\n\
      1 100.2 fork( <unfinished ...>\n2 100.3 pread64(3, \"x\", 5, 77) = 5\n\
      1 100.4 <... fork resumed>) = 2\n2 100.5 +++ exited with 0 +++\n",
    b"[pid 7] 23:59:59.5 lseek(3</a>, 8, SEEK_END) = 99\n[pid 7] 00:00:01 write(3, \"\", 1) = 1\n",
];

proptest::proptest! {
    /// Whatever is in a file, it is read or refused: nothing panics, and nothing runs on.
    #[test]
    fn a_damaged_trace_of_any_format_is_read_or_refused(
        which in 0..SAMPLES.len() + 1,
        damage in proptest::collection::vec((0_usize..400, proptest::prelude::any::<u8>()), 0..12),
        digits in proptest::collection::vec((0_usize..400, b'0'..=b'9'), 0..40),
        cut in 0_usize..600,
    ) {
        let records = [blk(1, 9, 512, 1 | 1 << 16, 0), blk(5, 9, 512, 8 | 1 << 16, 3)].concat();
        let mut trace = SAMPLES.get(which).map_or(records, |sample| sample.to_vec());
        for (place, byte) in damage {
            let place = place % trace.len();
            trace[place] = byte;
        }
        for (place, digit) in digits {
            trace.insert(place % trace.len(), digit);
        }
        trace.truncate(cut);
        let mut progress = |_| Ok(());
        if let Ok(read) = crate::Trace::read(&trace[..], &mut progress) {
            let slices = read.about().slices;
            let part = read.part(0, slices);
            proptest::prop_assert!(part.requests == read.about().requests);
            proptest::prop_assert!(read.features().len() == slices);
            read.misses(&[1, 10, 100]);
        }
    }
}
