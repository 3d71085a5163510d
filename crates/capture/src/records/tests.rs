#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use leadline_trace::CALLS;

use crate::calls::wanted;

const DATA: File = File {
    known: true,
    device: 7,
    mode: REGULAR | 0o600,
    inode: 11,
    generation: 5,
    is_device: 0,
    magic: 0xef53,
    size: 10_000,
    position: 5000,
    flags: 0,
};

fn call(number: u32, returned: i64, first: File) -> Call {
    let counted = u64::try_from(returned).unwrap_or(0);
    Call { number, returned, first, counted_read: counted, thread: 3, ..Call::default() }
}

fn told(seen: &mut Seen, call: &Call) -> Vec<Record> {
    let mut made = Vec::new();
    seen.take(call, &mut |record| {
        made.push(record);
        Ok(())
    })
    .unwrap();
    made
}

/// What was done, without how long files were before.
fn records(seen: &mut Seen, call: &Call) -> Vec<Record> {
    told(seen, call).into_iter().filter(|record| record.deed != Deed::Length).collect()
}

#[test]
fn how_long_a_file_was_is_told_once_before_anything_is_done_to_it() {
    let length = |call: &Call| {
        let mut seen = Seen::default();
        let [length, _] = told(&mut seen, call)[..] else { panic!() };
        assert_eq!(told(&mut seen, call).len(), 1, "it is known now");
        assert_eq!(length.deed, Deed::Length);
        length.bytes
    };
    assert_eq!(length(&call(0, 1000, DATA)), 10_000, "a read");
    let mut write = call(18, 300, DATA);
    (write.arguments[3], write.counted_read, write.counted_written) = (40, 0, 300);
    assert_eq!(length(&write), 10_000, "a write within");
    write.arguments[3] = 9700;
    assert_eq!(length(&write), 9700, "a write to what is the end now");
    let mut open = call(OPENAT, 5, DATA);
    assert_eq!(length(&open), 10_000, "a log that is opened long before it is written");
    open.first.size = 0;
    assert_eq!(length(&open), 0, "a file that is made");
    let mut sync = call(74, 0, DATA);
    sync.counted_read = 0;
    assert_eq!(length(&sync), 10_000, "a file that was written before anybody looked");
}

#[test]
fn writeback_that_is_begun_is_told_apart_from_what_is_waited_for() {
    let told = |flags| {
        let mut call = call(277, 0, DATA);
        call.arguments = [call.arguments[0], 8192, 4096, flags, 0, 0];
        call.counted_read = 0;
        let found = records(&mut Seen::default(), &call)[0];
        (found.begins_writeback(), CALLS[usize::from(found.call)], found.offset, found.bytes)
    };
    assert_eq!(told(BEGIN_ONLY), (true, "sync_file_range", 8192, 4096));
    assert_eq!(told(7), (false, "fdatasync", 0, 0), "and waits before and after");
}

#[test]
fn a_file_that_is_emptied_when_it_is_opened_has_no_bytes_after_all() {
    let mut seen = Seen::default();
    told(&mut seen, &call(0, 1000, DATA));
    let mut open = call(OPENAT, 5, File { size: 0, ..DATA });
    open.arguments[2] = TRUNCATE;
    let [removed, length, _] = told(&mut seen, &open)[..] else { panic!() };
    assert_eq!((removed.deed, removed.file), (Deed::Removed, 0));
    assert_eq!((length.deed, length.bytes, length.file), (Deed::Length, 0, 1));
}

#[test]
fn a_read_was_where_the_file_stands_now_less_its_bytes() {
    let mut seen = Seen::default();
    let [record] = records(&mut seen, &call(0, 1000, DATA))[..] else { panic!() };
    assert_eq!((record.deed, record.offset, record.bytes), (Deed::Read, 4000, 1000));
    assert_eq!((seen.bytes.read, seen.bytes.other_read), (1000, 0));
    let faulting = |number| Call { faults: 7, ..call(number, 1000, DATA) };
    let faults = [0, 1].map(|number| records(&mut seen, &faulting(number))[0].faults);
    assert_eq!(faults, [7, 0], "what is written was in memory before");
}

#[test]
fn an_append_went_to_the_end_whatever_offset_it_was_given() {
    let mut seen = Seen::default();
    let mut write = call(18, 300, File { flags: APPEND, ..DATA });
    (write.arguments[3], write.counted_read, write.counted_written) = (40, 0, 300);
    assert_eq!(records(&mut seen, &write)[0].offset, 9700);
    write.first.flags = 0;
    assert_eq!(records(&mut seen, &write)[0].offset, 40);
}

#[test]
fn what_is_sent_from_a_file_into_a_pipe_is_read_and_its_other_half_counted() {
    let mut seen = Seen::default();
    let mut send = call(40, 500, DATA);
    send.second = File { known: true, mode: 0x1000, ..File::default() };
    (send.arguments[2], send.followed, send.counted_written) = (2500, 1 << 2, 500);
    let [record] = records(&mut seen, &send)[..] else { panic!() };
    assert_eq!((record.deed, record.offset), (Deed::Read, 2000));
    assert_eq!((seen.bytes.written, seen.bytes.other_written), (0, 500));
}

#[test]
fn a_call_from_one_file_to_another_does_each_in_half_of_its_time() {
    let mut seen = Seen::default();
    let mut copy = call(326, 500, DATA);
    (copy.second, copy.at_ns, copy.took_ns) = (File { inode: 12, ..DATA }, 1000, 901);
    let times: Vec<_> = records(&mut seen, &copy)
        .iter()
        .map(|record| (record.deed, record.at_ns, record.took_ns))
        .collect();
    assert_eq!(times, [(Deed::Read, 1000, 450), (Deed::Write, 1450, 451)]);
    copy.second = File { known: true, mode: 0x1000, ..File::default() };
    assert_eq!(records(&mut seen, &copy)[0].took_ns, 901, "nothing is written to a file");
}

#[test]
fn a_file_is_another_when_it_was_truncated_or_its_inode_was_given_away() {
    let mut seen = Seen::default();
    let number = |seen: &mut Seen, file: File| records(seen, &call(0, 10, file))[0].file;
    let first = number(&mut seen, DATA);
    assert_eq!(number(&mut seen, DATA), first);
    let mut open = call(257, 4, DATA);
    open.arguments[2] = TRUNCATE;
    records(&mut seen, &open);
    let second = number(&mut seen, DATA);
    assert_ne!(second, first);
    let third = number(&mut seen, File { generation: 6, ..DATA });
    assert!(third != first && third != second);
}

#[test]
fn what_lies_in_proc_or_is_a_pipe_is_no_storage_and_its_bytes_are_counted() {
    let mut seen = Seen::default();
    for other in [File { magic: 0x9fa0, ..DATA }, File { mode: 0x1000, ..DATA }] {
        assert!(records(&mut seen, &call(0, 64, other)).is_empty());
    }
    assert_eq!((seen.bytes.read, seen.bytes.other_read, seen.requests), (0, 128, 0));
}

#[test]
fn splice_moves_what_the_kernel_does_not_count() {
    let mut seen = Seen::default();
    let mut splice = call(275, 100, DATA);
    splice.counted_read = 0;
    assert_eq!(records(&mut seen, &splice).len(), 1);
    let bytes = seen.bytes;
    assert_eq!((bytes.read, bytes.uncounted, bytes.other_read), (100, 100, 0));
}

#[test]
fn mapped_files_count_no_more_than_they_hold_and_programs_not_at_all() {
    let mut seen = Seen::default();
    let mut map = call(9, 0x7f00_0000_0000, DATA);
    map.counted_read = 0;
    records(&mut seen, &map);
    let pages = BTreeMap::from([((7, 11), 2), ((7, 12), 50)]);
    assert_eq!(seen.mapped_bytes(&pages), 8192);
    assert_eq!(seen.mapped_bytes(&BTreeMap::from([((7, 11), 50)])), 10_000);
    map.arguments[2] = FOR_PROGRAMS;
    records(&mut seen, &map);
    assert_eq!((seen.mapped_bytes(&pages), seen.mapped_files()), (0, 0));
}

#[test]
fn every_call_stands_once_in_the_table_and_is_found() {
    for call in &crate::calls::WANTED {
        assert_eq!(wanted(call.number).unwrap().does, call.does);
        assert!(call.number < 512);
    }
}
