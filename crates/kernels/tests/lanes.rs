//! Data sets through lanes: what is written is what is read, plain or striped, past the cache or
//! through it.

use std::path::Path;
use std::sync::LazyLock;

use leadline_kernels::chunks::{CHUNK_BYTES, Chunks};
use leadline_kernels::data_set::Input;
use leadline_kernels::lane::{ReadLane, WriteLane};
use leadline_kernels::memory::Memory;
use leadline_kernels::output::Output;
use leadline_kernels::scratch::Scratch;
use leadline_wire::job::stream::{self, Io, ReadBy};

use crate::kernel_job::Place;

fn io(read: ReadBy, direct: bool) -> Io {
    Io { read, read_direct: direct, write_direct: direct, depth: 4 }
}

fn spec(path: &str, stripes: Vec<String>, stripe_bytes: u64) -> stream::Output {
    stream::Output { path: path.to_owned(), stripes, stripe_bytes, replace: false }
}

/// What every data set here holds from `at` on: no two neighbouring units are alike.
fn bytes_at(at: u64, length: usize) -> &'static [u8] {
    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let places = 0..5 * CHUNK_BYTES as u64;
        places.map(|at| ((at.wrapping_mul(0x9E37_79B9_7F4A_7C15)) >> 56) as u8).collect()
    });
    &BYTES[at as usize..][..length]
}

fn write(output: &Output, bytes: u64, io: &Io, memory: &Memory) {
    let mut lane = WriteLane::open(output, io).unwrap();
    let mut at = 0;
    while at < bytes {
        let length = (bytes - at).min(CHUNK_BYTES as u64) as usize;
        let mut region = memory.take(CHUNK_BYTES).or_else(|_| lane.take()).unwrap();
        region[..length].copy_from_slice(bytes_at(at, length));
        lane.submit(at, length, region);
        at += length as u64;
    }
    lane.finish().unwrap();
}

fn check(input: &Input, io: &Io, memory: &Memory) {
    let mut chunks = Chunks::new(input, 0..input.bytes(), memory, io).unwrap();
    let mut next = 0;
    while let Some((at, bytes)) = chunks.next().unwrap() {
        assert_eq!(at, next);
        assert!(bytes == bytes_at(at, bytes.len()), "from {at} on");
        next += bytes.len() as u64;
    }
    assert_eq!(next, input.bytes());
}

#[test]
fn what_was_written_is_read_whatever_the_way() {
    let place = Place::new("lanes_ways");
    let memory = Memory::new(16 << 20).unwrap();
    // Whole chunks; a fragment of a block; less than a block; nothing at all.
    for bytes in [4 * CHUNK_BYTES as u64, 3 * CHUNK_BYTES as u64 + 77_777, 100, 0] {
        for disks in [0, 1, 3, 4] {
            for direct in [true, false] {
                let path = place.at(&format!("{bytes}-{disks}-{direct}"));
                let stripes = (0..disks).map(|_| place.at("")).collect();
                let io_write = io(ReadBy::Uring, direct);
                let names = place.names();
                let output =
                    Output::create(&spec(&path, stripes, 65536), bytes, &io_write).unwrap();
                write(&output, bytes, &io_write, &memory);
                check(&output.as_input().unwrap(), &io_write, &memory);
                assert_eq!(place.names(), names, "no name yet");
                output.publish().unwrap();
                for (read, direct) in
                    [(ReadBy::Uring, true), (ReadBy::Uring, false), (ReadBy::Mmap, false)]
                {
                    let io = io(read, direct);
                    let input = Input::open(&path, &io).unwrap();
                    assert_eq!((input.bytes(), input.disks()), (bytes, disks.max(1)));
                    check(&input, &io, &memory);
                }
            }
        }
    }
    assert_eq!(memory.left(), 16 << 20, "every buffer came back");
}

#[test]
fn parts_are_one_data_set_wherever_they_end() {
    let place = Place::new("lanes_parts");
    let memory = Memory::new(16 << 20).unwrap();
    let io = io(ReadBy::Uring, true);
    let path = place.at("set");
    let sizes = [2 * CHUNK_BYTES as u64 + 300, 100, 0, 1_000_000];
    let reserved = sizes.map(|bytes| bytes + 5_000_000);
    let stripes = vec![place.at(""), place.at("")];
    let mut output = Output::create_parts(&spec(&path, stripes, 65536), &reserved, &io).unwrap();
    let mut start = 0;
    for (number, bytes) in sizes.iter().enumerate() {
        let mut lane = WriteLane::open(&output.part(number).unwrap(), &io).unwrap();
        let mut region = memory.take(*bytes as usize).unwrap();
        region[..*bytes as usize].copy_from_slice(bytes_at(start, *bytes as usize));
        lane.submit(0, *bytes as usize, region);
        lane.finish().unwrap();
        output.set_len(number, *bytes).unwrap();
        start += bytes;
    }
    output.publish().unwrap();
    let input = Input::open(&path, &io).unwrap();
    check(&input, &io, &memory);
    let (second, last) = (sizes[0], sizes[0] + 100);
    let pieces = input.pieces(3_000_000..input.bytes(), 400_000);
    let wanted = [
        (3_000_000, 200_000),
        (3_200_000, second as usize - 3_200_000),
        (second, 100),
        (last, 400_000),
        (last + 400_000, 400_000),
        (last + 800_000, 200_000),
    ];
    assert_eq!(pieces, wanted, "each within a part, from its multiples of the size on");
    // A lane does not mind where parts end.
    let mut lane = ReadLane::open(&input, &io).unwrap();
    lane.submit(300, 4_000_000, memory.take(4_000_000).unwrap());
    let (at, length, region) = lane.take().unwrap();
    assert!(region[..length] == *bytes_at(at, length));
    let portions = input.portions(3);
    assert_eq!((portions[0].start, portions[2].end), (0, input.bytes()));
    assert!(portions.windows(2).all(|pair| pair[0].end == pair[1].start));
}

#[test]
fn scratch_keeps_what_it_was_given_and_has_no_name() {
    let place = Place::new("lanes_scratch");
    let memory = Memory::new(16 << 20).unwrap();
    let io = io(ReadBy::Mmap, true);
    let directories = [place.at(""), place.at("")];
    let scratch = Scratch::create(&directories, 5 * CHUNK_BYTES as u64, &io).unwrap();
    let mut lane = WriteLane::open(&scratch, &io).unwrap();
    for chunk in 0..5u8 {
        let mut region = memory.take(CHUNK_BYTES).unwrap();
        region.fill(chunk + 1);
        lane.submit(u64::from(chunk) * CHUNK_BYTES as u64, CHUNK_BYTES, region);
    }
    assert_eq!(lane.finish().unwrap().len(), 5);
    let mut lane = ReadLane::open(&scratch, &io).unwrap();
    for chunk in [4u8, 0, 3] {
        let region = memory.take(CHUNK_BYTES).unwrap();
        lane.submit(u64::from(chunk) * CHUNK_BYTES as u64, CHUNK_BYTES, region);
    }
    for chunk in [4u8, 0, 3] {
        let (at, length, region) = lane.take().unwrap();
        assert_eq!((at, length), (u64::from(chunk) * CHUNK_BYTES as u64, CHUNK_BYTES));
        assert!(region.iter().all(|byte| *byte == chunk + 1));
    }
    assert!(place.names().is_empty());
}

#[test]
fn a_name_that_is_taken_stays_what_it_is() {
    let place = Place::new("lanes_taken");
    let io = io(ReadBy::Uring, true);
    let path = place.at("set");
    std::fs::write(&path, b"precious").unwrap();
    let error = Output::create(&spec(&path, vec![], 65536), 100, &io).err().unwrap();
    assert!(error.message.contains("is there already"), "{error}");
    std::fs::remove_file(&path).unwrap();
    let output = Output::create(&spec(&path, vec![], 65536), 100, &io).unwrap();
    std::fs::write(&path, b"precious").unwrap();
    assert!(output.publish().unwrap_err().message.contains("is there already"));
    assert_eq!(std::fs::read(Path::new(&path)).unwrap(), b"precious");
    assert_eq!(place.names(), ["set"]);
}

#[test]
fn a_name_that_cannot_be_given_is_refused_before_anything_is_made() {
    let place = Place::new("lanes_refused");
    let io = io(ReadBy::Uring, true);
    let refusal = |path: &str, replace: bool| {
        let spec = stream::Output { replace, ..spec(path, vec![place.at("")], 65536) };
        Output::create(&spec, 100, &io).err().unwrap().message
    };
    std::fs::create_dir(place.at("directory")).unwrap();
    assert!(refusal(&place.at("directory"), true).contains("is no plain file"));
    std::os::unix::fs::symlink("/etc/hostname", place.at("link")).unwrap();
    assert!(refusal(&place.at("link"), true).contains("is no plain file"));
    assert!(refusal(&place.at("nowhere/set"), false).contains("nowhere: No such file"));
    assert_eq!(place.names(), ["directory", "link"]);
}

#[test]
fn what_an_edited_layout_names_is_never_removed() {
    let place = Place::new("lanes_edited");
    let memory = Memory::new(16 << 20).unwrap();
    let io = io(ReadBy::Uring, true);
    let path = place.at("set");
    for name in ["precious", "set.part0.stripe", "set.partx.stripe0", "settings.part0.stripe0"] {
        std::fs::write(place.at(name), [7; 100]).unwrap();
    }
    let stripe = place.at("set.part0.stripe0");
    std::fs::write(&stripe, [7; 100]).unwrap();
    let files: Vec<_> = place.names().iter().map(|name| place.at(name)).collect();
    let layout = serde_json::json!({
        "version": 1,
        "parts": [{"files": files, "bytes": 500, "stripe_bytes": 4096}],
    });
    std::fs::write(place.at("set.layout"), layout.to_string()).unwrap();
    let spec = stream::Output { replace: true, ..spec(&path, vec![], 65536) };
    let output = Output::create(&spec, 100_000, &io).unwrap();
    write(&output, 100_000, &io, &memory);
    output.publish().unwrap();
    let left =
        ["precious", "set", "set.part0.stripe", "set.partx.stripe0", "settings.part0.stripe0"];
    assert_eq!(place.names(), left);
}

#[test]
fn a_layout_that_was_edited_has_no_other_file_removed() {
    let place = Place::new("lanes_pointed");
    let memory = Memory::new(16 << 20).unwrap();
    let io = io(ReadBy::Uring, true);
    let (path, precious) = (place.at("set"), place.at("precious"));
    std::fs::write(&precious, b"precious").unwrap();
    let stripes = vec![place.at("")];
    let output = Output::create(&spec(&path, stripes.clone(), 65536), 8, &io).unwrap();
    write(&output, 8, &io, &memory);
    output.publish().unwrap();
    let layout = format!("{path}.layout");
    let text = std::fs::read_to_string(&layout).unwrap();
    std::fs::write(&layout, text.replace("set.part0.stripe0", "precious")).unwrap();
    for stripes in [stripes, vec![]] {
        let spec = stream::Output { replace: true, ..spec(&path, stripes, 65536) };
        let output = Output::create(&spec, 100, &io).unwrap();
        write(&output, 100, &io, &memory);
        output.publish().unwrap();
        assert_eq!(std::fs::read(&precious).unwrap(), b"precious");
        check(&Input::open(&path, &io).unwrap(), &io, &memory);
    }
}

#[test]
fn stripes_that_are_missing_or_have_another_length_are_named() {
    let place = Place::new("lanes_missing");
    let memory = Memory::new(16 << 20).unwrap();
    let io = io(ReadBy::Uring, true);
    let path = place.at("set");
    let stripes = vec![place.at(""), place.at("")];
    let output = Output::create(&spec(&path, stripes, 65536), 200_000, &io).unwrap();
    write(&output, 200_000, &io, &memory);
    output.publish().unwrap();
    let refusal = || Input::open(&path, &io).unwrap_err().message;
    let second = place.at("set.part0.stripe1");
    let whole = std::fs::read(&second).unwrap();
    std::fs::write(&second, &whole[1..]).unwrap();
    assert!(refusal().contains("set.part0.stripe1, has 68927 bytes where the layout says 68928"));
    std::fs::remove_file(&second).unwrap();
    assert!(refusal().contains("stripe 2 of 2 of"), "{}", refusal());
    std::fs::write(format!("{path}.layout"), "{}").unwrap();
    assert!(refusal().contains("set.layout cannot be used"), "{}", refusal());
    std::fs::remove_file(format!("{path}.layout")).unwrap();
    assert!(refusal().contains("cannot be opened") && refusal().contains("there is no"));
    assert!(Input::open(&place.at(""), &io).unwrap_err().message.contains("is a directory"));
}

#[test]
fn a_part_that_grows_must_have_room() {
    let place = Place::new("lanes_grows");
    let io = io(ReadBy::Uring, true);
    let mut output = Output::create(&spec(&place.at("set"), vec![], 65536), 0, &io).unwrap();
    let error = output.set_len(0, 1 << 50).unwrap_err();
    assert!(error.message.contains("too little free space"), "{error}");
    output.set_len(0, 1 << 20).unwrap();
    output.set_len(0, 100).unwrap();
    assert_eq!(output.bytes(), 100);
}

/// Names a folder to a second instance of this program, which is to be killed in it.
const TO_BE_KILLED: &str = "LEADLINE_TEST_TO_BE_KILLED";

#[test]
fn a_killed_program_leaves_nothing_and_its_input_as_it_was() {
    if let Ok(folder) = std::env::var(TO_BE_KILLED) {
        be_killed(&folder);
    }
    for signal in ["TERM", "KILL"] {
        let place = Place::new(&format!("lanes_killed_{signal}"));
        std::fs::write(place.at("input"), vec![7; 3 << 20]).unwrap();
        let mut program = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "lanes::a_killed_program_leaves_nothing_and_its_input_as_it_was"])
            .args(["--nocapture"])
            .env(TO_BE_KILLED, place.at(""))
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let told = std::io::BufReader::new(program.stdout.take().unwrap());
        assert!(std::io::BufRead::lines(told).any(|line| line.unwrap().contains("writing")));
        let kill = std::process::Command::new("kill")
            .args(["-s", signal, &program.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
        assert!(!program.wait().unwrap().success());
        assert_eq!(place.names(), ["input"]);
        assert_eq!(std::fs::read(place.at("input")).unwrap(), vec![7; 3 << 20]);
    }
}

/// Copies the input over and over, into an output in the making and into scratch.
fn be_killed(folder: &str) {
    let memory = Memory::new(16 << 20).unwrap();
    let io = io(ReadBy::Uring, true);
    let input = Input::open(&format!("{folder}/input"), &io).unwrap();
    let stripes = vec![folder.to_owned(), folder.to_owned()];
    let spec = spec(&format!("{folder}/set"), stripes, 65536);
    let output = Output::create(&spec, input.bytes(), &io).unwrap();
    let scratch = Scratch::create(&[folder.to_owned()], input.bytes(), &io).unwrap();
    let mut lanes =
        [WriteLane::open(&output, &io).unwrap(), WriteLane::open(&scratch, &io).unwrap()];
    loop {
        let mut chunks = Chunks::new(&input, 0..input.bytes(), &memory, &io).unwrap();
        while let Some((at, bytes)) = chunks.next().unwrap() {
            for lane in &mut lanes {
                let mut region = memory.take(CHUNK_BYTES).or_else(|_| lane.take()).unwrap();
                region[..bytes.len()].copy_from_slice(bytes);
                lane.submit(at, bytes.len(), region);
            }
        }
        println!("writing");
    }
}

#[test]
fn a_data_set_is_replaced_by_another_and_nothing_of_it_is_left() {
    let place = Place::new("lanes_replaced");
    let memory = Memory::new(16 << 20).unwrap();
    let io = io(ReadBy::Uring, true);
    let path = place.at("set");
    let two = vec![place.at(""), place.at("")];
    for (stripes, bytes) in [
        (vec![], 200_000),
        (two.clone(), 300_000),
        (two, 400_000),
        (vec![], 100_000),
        (vec![], 150_000),
    ] {
        let count = stripes.len();
        let spec = stream::Output { replace: true, ..spec(&path, stripes, 65536) };
        let output = Output::create(&spec, bytes, &io).unwrap();
        write(&output, bytes, &io, &memory);
        output.publish().unwrap();
        let input = Input::open(&path, &io).unwrap();
        assert_eq!(input.bytes(), bytes);
        check(&input, &io, &memory);
        assert_eq!(place.names().len(), if count == 0 { 1 } else { count + 1 });
    }
}
