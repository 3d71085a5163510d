//! The shapes of SH08 Table 3, as they come out of the plans and the streams.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use leadline_wire::job::nfs_load::{Data, Workload};

use super::plan::{Plan, is_new_file, new_file_name, require_few_files};
use super::stream::{Call, CallStream, PROCEDURES};
use super::workload::{LOG_BATCH_BYTES, LOG_WRITE_BYTES, Sizes, Step, shape};

const MIB: u64 = 1 << 20;
const CALLS: usize = 400_000;

fn plan(workload: Workload, data_bytes: u64) -> Plan {
    Plan::new(Data { workload, data_bytes, seed: 11 })
}

fn calls(plan: &Plan, seed: u64, number: usize) -> Vec<Call> {
    let mut stream = CallStream::new(plan, None, seed);
    (0..number).map(|_| stream.next_call()).collect()
}

/// Whether a count of `number` draws of probability `share` is within five standard deviations.
fn is_near(count: usize, number: usize, share: f64) -> bool {
    let expected = number as f64 * share;
    (count as f64 - expected).abs() <= 5.0 * (expected * (1.0 - share)).sqrt()
}

/// Ranks of the files that GETATTR is about: each an independent draw by popularity.
fn drawn_ranks(plan: &Plan) -> Vec<usize> {
    let mut rank_of = vec![0; plan.file_bytes.len()];
    for (rank, file) in plan.by_rank.iter().enumerate() {
        rank_of[*file as usize] = rank;
    }
    calls(plan, 5, 4 * CALLS)
        .into_iter()
        .filter_map(|call| match call {
            Call::Getattr { file } => Some(rank_of[file as usize]),
            _ => None,
        })
        .collect()
}

/// Drawn ranks in bins that grow, against what the weights give; each within five deviations.
fn assert_popularity(plan: &Plan, weight: impl Fn(usize) -> f64) {
    let ranks = drawn_ranks(plan);
    assert!(ranks.len() > 100_000);
    let all: f64 = (0..plan.by_rank.len()).map(&weight).sum();
    let mut from = 0;
    while from < plan.by_rank.len() {
        let to = (2 * from + 1).min(plan.by_rank.len());
        let share = (from..to).map(&weight).sum::<f64>() / all;
        let count = ranks.iter().filter(|rank| (from..to).contains(*rank)).count();
        assert!(is_near(count, ranks.len(), share), "ranks {from}..{to}: {count}, {share}");
        from = to;
    }
}

#[test]
fn web_pages_are_asked_for_by_zipf_between_0_6_and_0_9() {
    let plan = plan(Workload::WebServer, 64 * MIB);
    assert_popularity(&plan, |rank| (rank as f64 + 1.0).powf(-0.75));
}

#[test]
fn mailboxes_are_asked_for_by_zipf_of_1_3() {
    assert_popularity(&plan(Workload::Mail, 32 * MIB), |rank| (rank as f64 + 1.0).powf(-1.3));
}

#[test]
fn a_random_tenth_of_the_files_of_specsfs97_is_asked_for_evenly() {
    let plan = plan(Workload::Specsfs97, 256 * MIB);
    let used = (plan.by_rank.len() as f64 * 0.1).round() as usize;
    assert_popularity(&plan, |rank| if rank < used { 1.0 } else { 0.0 });
    // A random tenth, not the first files: they lie in all directories.
    let mut per_directory = BTreeMap::new();
    for file in &plan.by_rank[..used] {
        *per_directory.entry(plan.directory_of(*file)).or_insert(0) += 1;
    }
    assert_eq!(per_directory.len(), plan.directories() as usize);
}

#[test]
fn files_have_the_sizes_of_table_3() {
    for (workload, mean_kib, data_bytes) in [
        (Workload::WebServer, 10.5, 64 * MIB),
        (Workload::WebServer, 10.5, 5 * MIB),
        (Workload::Mail, 4.7, 64 * MIB),
    ] {
        let plan = plan(workload, data_bytes);
        let mean = plan.bytes() as f64 / plan.file_bytes.len() as f64 / 1024.0;
        assert!((mean / mean_kib - 1.0).abs() < 0.001, "{}: {mean}", workload.name());
        assert!((plan.bytes() as f64 / data_bytes as f64 - 1.0).abs() < 0.01);
        let mut sorted = plan.file_bytes.clone();
        sorted.sort_unstable();
        let median = sorted[sorted.len() / 2] as f64 / 1024.0;
        assert!(median < 0.5 * mean, "half of the files are small: {median} of {mean}");
        let longest: u64 = sorted[sorted.len() * 99 / 100..].iter().sum();
        let share = longest as f64 / plan.bytes() as f64;
        assert!(share > 0.2, "a hundredth of the files holds much of the data: {share}");
        assert!(sorted[0] > 0 && *sorted.last().unwrap() <= MIB);
    }
    let plan = plan(Workload::Specsfs97, 256 * MIB);
    let Sizes::Table(table) = plan.shape().sizes else { unreachable!() };
    let weights: f64 = table.iter().map(|(_, weight)| weight).sum();
    assert_eq!((table[0].0, table[table.len() - 1].0), (1 << 10, 1 << 20), "1 KB to 1 MB");
    for (bytes, weight) in table {
        let count = plan.file_bytes.iter().filter(|length| *length == bytes).count() as f64;
        let expected = plan.file_bytes.len() as f64 * weight / weights;
        assert!((count - expected).abs() <= 1.0, "{bytes}: {count} of {expected}");
    }
}

#[test]
fn the_tail_of_web_files_falls_as_a_pareto_law_of_1_1() {
    let plan = plan(Workload::WebServer, 512 * MIB);
    let longer =
        |bytes: u64| plan.file_bytes.iter().filter(|length| **length > bytes).count() as f64;
    let exponent = (longer(200 << 10) / longer(800 << 10)).ln() / 4_f64.ln();
    assert!((1.0..1.2).contains(&exponent), "{exponent}");
}

#[test]
fn directories_have_the_sizes_of_table_3() {
    for (workload, fewest, most) in [
        (Workload::Specsfs97, 1000, 9999),
        (Workload::WebServer, 12, 99),
        (Workload::DbTp, 1, 99),
        (Workload::Mail, 500, 999),
    ] {
        let plan = plan(workload, 256 * MIB);
        let mut files = vec![0; plan.directories() as usize];
        for file in 0..plan.file_bytes.len() as u32 {
            files[plan.directory_of(file) as usize] += 1;
        }
        let last = files.pop().unwrap();
        assert!(
            files
                .iter()
                .chain([&last].into_iter().filter(|_| files.is_empty()))
                .all(|number| { (fewest..=most).contains(number) })
        );
        assert!((1..=most).contains(&last), "{}: {last}", workload.name());
    }
}

#[test]
fn a_database_is_a_few_large_files_and_a_log() {
    let plan = plan(Workload::DbTp, 1 << 30);
    assert_eq!(plan.file_bytes.len(), 5);
    assert!(plan.file_bytes[..4].iter().all(|bytes| *bytes == (1 << 30) / 64 * 15));
    assert_eq!((plan.log, plan.file_bytes[4]), (Some(4), 1 << 26));
    assert!(!plan.by_rank.contains(&4), "only log writes go to the log");
}

#[test]
fn every_workload_keeps_its_mix() {
    for workload in Workload::ALL {
        let plan = plan(workload, 16 * MIB);
        let mut counts = [0; PROCEDURES.len()];
        calls(&plan, 9, CALLS).iter().for_each(|call| counts[call.procedure()] += 1);
        let mut shares = [0.0; PROCEDURES.len()];
        let weights: f64 = plan.shape().mix.iter().map(|(_, weight)| weight).sum();
        for (step, weight) in plan.shape().mix {
            let share = weight / weights;
            match step {
                Step::Log => {
                    // Eight writes, then a commit.
                    shares[6] += share * 8.0 / 9.0;
                    shares[7] += share / 9.0;
                }
                Step::Cut | Step::SetMode => shares[1] += share,
                Step::Getattr => shares[0] += share,
                Step::Lookup => shares[2] += share,
                Step::Access => shares[3] += share,
                Step::Readlink => shares[4] += share,
                Step::ReadRandom | Step::ReadOn => shares[5] += share,
                Step::WriteRandom | Step::Append => shares[6] += share,
                Step::Commit => shares[7] += share,
                Step::Create => shares[8] += share,
                Step::Remove => shares[9] += share,
                Step::Readdir => shares[10] += share,
                Step::Readdirplus => shares[11] += share,
                Step::Fsstat => shares[12] += share,
            }
        }
        for (procedure, (count, share)) in counts.iter().zip(shares).enumerate() {
            let name = (workload.name(), PROCEDURES[procedure]);
            assert!(is_near(*count, CALLS, share), "{name:?} {count}");
        }
    }
}

#[test]
fn the_mixes_are_those_of_the_documents() {
    let mix = |workload: Workload| {
        let mut weights: Vec<f64> = shape(workload).mix.iter().map(|(_, weight)| *weight).collect();
        weights.sort_by(f64::total_cmp);
        weights
    };
    assert_eq!(mix(Workload::WebServer), [5.0, 25.0, 30.0, 40.0]);
    assert_eq!(mix(Workload::DbTp), [10.0, 30.0, 60.0]);
    assert_eq!(mix(Workload::Mail), [4.0, 5.0, 15.0, 20.0, 24.0, 32.0]);
    // As Eisler (NetApp, 2008) lists SPEC SFS 3.0.
    let mix = shape(Workload::Specsfs97).mix;
    let weight = |wanted: Step| mix.iter().find(|(step, _)| *step == wanted).unwrap().1;
    let reads = [Step::Lookup, Step::ReadRandom, Step::Getattr, Step::Readlink, Step::Access];
    assert_eq!(reads.map(weight), [27.0, 18.0, 11.0, 7.0, 7.0]);
    let lists = [Step::Readdirplus, Step::Readdir, Step::Fsstat];
    assert_eq!(lists.map(weight), [9.0, 2.0, 1.0]);
    let writes = [Step::WriteRandom, Step::Commit, Step::Create, Step::Remove, Step::SetMode];
    assert_eq!(writes.map(weight), [9.0, 5.0, 1.0, 1.0, 1.0]);
    assert_eq!(mix.len(), 13);
}

#[test]
fn a_database_reads_twice_as_many_pages_as_it_writes_anywhere_in_its_tables() {
    let plan = plan(Workload::DbTp, 64 * MIB);
    let (mut reads, mut writes, mut early) = (0, 0, 0);
    for call in calls(&plan, 2, CALLS) {
        let (file, offset, bytes) = match call {
            Call::Read { file, offset, bytes } => {
                reads += 1;
                (file, offset, bytes)
            }
            Call::Write { file, offset, bytes, stable: true } => {
                writes += 1;
                (file, offset, bytes)
            }
            _ => continue,
        };
        assert!(file < 4 && offset % 8192 == 0 && bytes == 8192);
        assert!(offset + u64::from(bytes) <= plan.file_bytes[file as usize]);
        early += usize::from(offset < plan.file_bytes[file as usize] / 4);
    }
    assert!(is_near(reads, reads + writes, 2.0 / 3.0), "{reads} to {writes}");
    assert!(is_near(early, reads + writes, 0.25), "evenly over the tables: {early}");
}

#[test]
fn a_batch_of_the_log_is_256_kib_one_after_the_other_and_a_commit() {
    let plan = plan(Workload::DbTp, 64 * MIB);
    let of_the_log = |call: &Call| match call {
        Call::Write { file, stable, .. } => *file == 4 && !stable,
        Call::Commit { .. } => true,
        _ => false,
    };
    let log: Vec<Call> = calls(&plan, 2, CALLS).into_iter().filter(of_the_log).collect();
    let mut at = 0;
    for batch in log.chunks_exact(9) {
        for call in &batch[..8] {
            let bytes = LOG_WRITE_BYTES as u32;
            assert_eq!(*call, Call::Write { file: 4, offset: at, bytes, stable: false });
            at = (at + LOG_WRITE_BYTES) % plan.file_bytes[4];
        }
        assert_eq!(batch[8], Call::Commit { file: 4 });
    }
    assert_eq!((LOG_BATCH_BYTES, log.len() > 9000), (8 * LOG_WRITE_BYTES, true));
}

#[test]
fn pages_are_read_from_their_beginning_to_their_end() {
    let plan = plan(Workload::WebServer, 16 * MIB);
    let mut open: Vec<(u32, u64)> = Vec::new();
    let mut whole = 0;
    for call in calls(&plan, 4, CALLS) {
        let Call::Read { file, offset, bytes } = call else { continue };
        let reader = open.iter().position(|reader| *reader == (file, offset));
        let reader = reader.unwrap_or_else(|| {
            assert_eq!(offset, 0, "somebody reads on, or begins");
            open.push((file, 0));
            open.len() - 1
        });
        open[reader].1 += u64::from(bytes);
        let length = plan.file_bytes[file as usize];
        assert!(bytes == 32 << 10 || open[reader].1 == length);
        if open[reader].1 == length {
            open.swap_remove(reader);
            whole += 1;
        }
    }
    assert!(whole > 100_000 && open.len() <= super::workload::READERS);
}

#[test]
fn mail_is_appended_read_whole_and_cut_so_that_no_mailbox_grows_for_ever() {
    let plan = plan(Workload::Mail, 16 * MIB);
    let mut lengths = plan.file_bytes.clone();
    let (mut messages, mut message_bytes) = (0_u64, 0_u64);
    for call in calls(&plan, 6, CALLS) {
        match call {
            Call::Write { file, offset, bytes, stable } => {
                assert_eq!((offset, stable), (lengths[file as usize], true));
                lengths[file as usize] += u64::from(bytes);
                (messages, message_bytes) = (messages + 1, message_bytes + u64::from(bytes));
            }
            Call::SetLength { file, bytes } => {
                lengths[file as usize] = bytes;
                assert_eq!(bytes, plan.file_bytes[file as usize]);
            }
            Call::Read { file, offset, bytes } => {
                assert!(offset + u64::from(bytes) <= lengths[file as usize].max(1 << 30));
            }
            _ => {}
        }
    }
    let mean = message_bytes as f64 / messages as f64 / 1024.0;
    assert!((3.0..5.0).contains(&mean), "messages are like mailboxes, cut at one call: {mean}");
    let grown = lengths.iter().sum::<u64>() as f64 / plan.bytes() as f64;
    assert!((1.0..5.0).contains(&grown), "{grown}");
}

#[test]
fn only_files_that_were_made_are_removed_and_there_are_never_many() {
    let plan = plan(Workload::Specsfs97, 16 * MIB);
    let mut there: std::collections::BTreeSet<u64> = (0..u64::from(plan.spare_files)).collect();
    let mut stream = CallStream::new(&plan, None, 3); // whose walk is a short one
    let (mut fewest, mut most) = (there.len(), there.len());
    for _ in 0..12 * CALLS {
        match stream.next_call() {
            Call::Create { name } => assert!(there.insert(name)),
            Call::Remove { name } => assert_eq!(there.pop_first(), Some(name), "the oldest"),
            _ => {}
        }
        (fewest, most) = (fewest.min(there.len()), most.max(there.len()));
    }
    assert_eq!((fewest, most), (64, 512), "it went from one bound to the other");
}

#[test]
fn a_seed_decides_everything_and_another_changes_it() {
    for workload in Workload::ALL {
        let one = plan(workload, 16 * MIB);
        assert_eq!(one, plan(workload, 16 * MIB));
        assert_eq!(calls(&one, 3, 1000), calls(&one, 3, 1000));
        assert_ne!(calls(&one, 3, 1000), calls(&one, 4, 1000));
        let other = Plan::new(Data { workload, data_bytes: 16 * MIB, seed: 12 });
        assert_ne!(one.by_rank, other.by_rank);
    }
}

#[test]
fn an_order_may_say_what_writes_wait_for_but_not_of_the_log() {
    for stable in [true, false] {
        let plan = plan(Workload::DbTp, 16 * MIB);
        let mut stream = CallStream::new(&plan, Some(stable), 1);
        for _ in 0..1000 {
            if let Call::Write { file, stable: asked, .. } = stream.next_call() {
                assert_eq!(asked, stable && file != 4);
            }
        }
    }
}

#[test]
fn a_new_file_is_told_by_its_name() {
    assert!(is_new_file(&new_file_name(3)) && !is_new_file("notes") && !is_new_file("n12"));
}

#[test]
fn too_many_files_are_refused_in_words() {
    let check = |workload, data_bytes| {
        let data = Data { workload, data_bytes, seed: 0 };
        require_few_files(&data).err().map(|error| error.message)
    };
    assert_eq!(check(Workload::Mail, 4 * MIB), None);
    assert!(check(Workload::Mail, 1 << 40).unwrap().contains("files of mail"));
    assert_eq!(check(Workload::DbTp, 1 << 40), None);
}
