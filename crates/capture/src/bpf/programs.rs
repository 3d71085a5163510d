//! The programs that the kernel runs: at the beginning and end of each system call of the watched
//! threads, and when these fork, exec and exit.
//!
//! What a descriptor means is looked up in the kernel's own tables when the call has ended, so that
//! nothing has to be followed and no file can be closed before it was looked at. Written by us for
//! this, and offered under Apache-2.0, BSD-2-Clause or GPL-2.0: the kernel asks that of programs that
//! read its memory (docs/decisions/0017-the-programs-in-the-kernel-are-dual-licensed.md).

#![forbid(unsafe_code)]

use super::asm::{Asm, Helper, Label, R0, R1, R2, R3, R4, R6, R7, R8, R9, Reg, Size, When};
use super::btf::Btf;
use crate::call::{LONG_BYTES, SHORT_BYTES};
use crate::calls::{NONE, REMOVES, RESULT, WANTED, Wanted};

/// Descriptors of the maps.
#[derive(Clone, Copy)]
pub struct Maps {
    /// Watched threads, and the call that each is in.
    pub threads: i32,
    /// By number of a call: what to do about it.
    pub wanted: i32,
    /// What is only counted.
    pub sums: i32,
    pub ring: i32,
    /// Pages of files that were used by mappings, by device and inode.
    pub mapped: i32,
}

/// Bytes of what is kept of a thread.
pub const THREAD_BYTES: u32 = 144;
/// Of the sums: lost, other bytes read, written, calls of 32 bits, threads beyond what is kept.
pub const SUMS_BYTES: u32 = 40;
const LOST: i16 = 0;
const OTHER_READ: i16 = 8;
const OTHER_WRITTEN: i16 = 16;
const OF_32_BITS: i16 = 24;
const TOO_MANY: i16 = 32;

const AT: i16 = 8;
const ARGUMENTS: i16 = 16;
const READ_BEFORE: i16 = 64;
const WRITTEN_BEFORE: i16 = 72;
const CLOSED: i16 = 80;
const FAULTS_BEFORE: i16 = 136;
const FILE_LONGS: i16 = 7;

/// What lies where on the stack.
const EVENT: i16 = -224;
const FIRST: i16 = EVENT + 112;
const SECOND: i16 = EVENT + 168;
const KEY: i16 = -232;
const ANY: i16 = -240;
const NUMBER: i16 = -248;
const PAIR: i16 = -264;
const REGISTERS: i16 = -408;
const REGISTERS_BYTES: i32 = 144;
/// `struct pt_regs` of x86-64: where the arguments are.
const IN_REGISTERS: [i16; 6] = [112, 104, 96, 56, 72, 64];
/// `TS_COMPAT` of asm/thread_info.h: this call is of 32 bits, whatever the program is.
const IS_OF_32_BITS: i32 = 2;

const AT_ITS_BEGINNING: i32 = 0x100;
const ALWAYS: i32 = 0x200;
const POINTERS: i32 = 10;
/// linux/bpf.h: nobody sleeps until something comes.
const NO_WAKEUP: i32 = 1;

/// Where fields are in this kernel.
pub struct Offsets {
    files: u32,
    pid: u32,
    status: u32,
    rchar: u32,
    wchar: u32,
    min_flt: u32,
    fdt: u32,
    max_fds: u32,
    fd: u32,
    f_inode: u32,
    f_pos: u32,
    f_flags: u32,
    i_mode: u32,
    i_ino: u32,
    i_generation: u32,
    i_rdev: u32,
    i_size: u32,
    i_sb: u32,
    s_dev: u32,
    s_magic: u32,
    host: u32,
    i_nlink: u32,
    d_inode: u32,
}

impl Offsets {
    /// None where this kernel has other structures.
    pub fn of(btf: &Btf<'_>) -> Option<Self> {
        let accounting = btf.offset("task_struct", "ioac")?;
        Some(Self {
            files: btf.offset("task_struct", "files")?,
            pid: btf.offset("task_struct", "pid")?,
            status: btf.offset("task_struct", "thread_info")?
                + btf.offset("thread_info", "status")?,
            rchar: accounting + btf.offset("task_io_accounting", "rchar")?,
            wchar: accounting + btf.offset("task_io_accounting", "wchar")?,
            min_flt: btf.offset("task_struct", "min_flt")?,
            fdt: btf.offset("files_struct", "fdt")?,
            max_fds: btf.offset("fdtable", "max_fds")?,
            fd: btf.offset("fdtable", "fd")?,
            f_inode: btf.offset("file", "f_inode")?,
            f_pos: btf.offset("file", "f_pos")?,
            f_flags: btf.offset("file", "f_flags")?,
            i_mode: btf.offset("inode", "i_mode")?,
            i_ino: btf.offset("inode", "i_ino")?,
            i_generation: btf.offset("inode", "i_generation")?,
            i_rdev: btf.offset("inode", "i_rdev")?,
            i_size: btf.offset("inode", "i_size")?,
            i_sb: btf.offset("inode", "i_sb")?,
            s_dev: btf.offset("super_block", "s_dev")?,
            s_magic: btf.offset("super_block", "s_magic")?,
            host: btf.offset("address_space", "host")?,
            i_nlink: btf.offset("inode", "i_nlink")?,
            d_inode: btf.offset("dentry", "d_inode")?,
        })
    }
}

/// What the map `wanted` says of a call.
pub fn said_of(call: &Wanted) -> u32 {
    let closes = matches!(call.does, crate::calls::Does::Close);
    let bits = if closes { AT_ITS_BEGINNING } else { 0 } | if call.always() { ALWAYS } else { 0 };
    u32::from(call.first)
        | u32::from(call.second) << 4
        | bits.cast_unsigned()
        | u32::from(call.pointers()) << POINTERS
}

/// Makes R6 what is kept of the current thread, or goes.
fn watched(asm: &mut Asm, maps: Maps, otherwise: Label) {
    asm.call(Helper::PidTgid);
    asm.copy(R7, R0);
    asm.store(Size::U32, 10, KEY, R0);
    asm.look_up(maps.threads, KEY);
    asm.jump(When::Equal, R0, 0, otherwise);
    asm.copy(R6, R0);
}

/// Adds a register, which has to outlive a call, to one of the sums.
fn count(asm: &mut Asm, maps: Maps, which: i16, reg: Reg) {
    let done = asm.label();
    asm.store_value(Size::U32, 10, KEY, 0);
    asm.look_up(maps.sums, KEY);
    asm.jump(When::Equal, R0, 0, done);
    asm.add_to(R0, which, reg);
    asm.place(done);
}

/// Goes from an address in R8 to the one that lies there.
fn follow(asm: &mut Asm, offset: u32) {
    asm.read_kernel(ANY, 8, R8, offset);
    asm.load(Size::U64, R8, 10, ANY);
}

fn no_file(asm: &mut Asm, to: i16) {
    (0..FILE_LONGS).for_each(|place| asm.store_value(Size::U64, 10, to + 8 * place, 0));
}

/// Says what descriptor R7 means; R8 is used up.
fn describe(asm: &mut Asm, at: &Offsets, to: i16) {
    let done = asm.label();
    asm.shift_left(R7, 32);
    asm.shift_right(R7, 32);
    asm.call(Helper::Task);
    asm.copy(R8, R0);
    follow(asm, at.files);
    asm.jump(When::Equal, R8, 0, done);
    follow(asm, at.fdt);
    asm.store_value(Size::U64, 10, ANY, 0);
    asm.read_kernel(ANY, 4, R8, at.max_fds);
    asm.load(Size::U64, R1, 10, ANY);
    asm.jump_reg(When::AtLeast, R7, R1, done);
    follow(asm, at.fd);
    asm.copy(R1, R7);
    asm.shift_left(R1, 3);
    asm.add_reg(R8, R1);
    follow(asm, 0);
    asm.jump(When::Equal, R8, 0, done);
    asm.read_kernel(to + 40, 8, R8, at.f_pos);
    asm.read_kernel(to + 48, 4, R8, at.f_flags);
    follow(asm, at.f_inode);
    describe_inode(asm, at, to);
    asm.place(done);
}

/// Says what the inode in R8 is, which is used up.
fn describe_inode(asm: &mut Asm, at: &Offsets, to: i16) {
    asm.read_kernel(to + 4, 2, R8, at.i_mode);
    asm.read_kernel(to + 8, 8, R8, at.i_ino);
    asm.read_kernel(to + 16, 4, R8, at.i_generation);
    asm.read_kernel(to + 20, 4, R8, at.i_rdev);
    asm.read_kernel(to + 32, 8, R8, at.i_size);
    follow(asm, at.i_sb);
    asm.read_kernel(to, 4, R8, at.s_dev);
    asm.read_kernel(to + 24, 8, R8, at.s_magic);
    asm.store_value(Size::U32, 10, to + 52, 1);
}

/// What the kernel counts of a thread: where, where it is kept during a call, and where it is told.
fn counters(at: &Offsets) -> [(u32, i16, i16); 3] {
    let faults = (at.min_flt, FAULTS_BEFORE, 104);
    [(at.rchar, READ_BEFORE, 88), (at.wchar, WRITTEN_BEFORE, 96), faults]
}

/// A call begins.
pub fn enter(at: &Offsets, maps: Maps) -> Vec<u64> {
    let mut asm = Asm::default();
    let (out, other, plain) = (asm.label(), asm.label(), asm.label());
    asm.copy(R9, R1);
    watched(&mut asm, maps, out);
    asm.call(Helper::Task);
    asm.copy(R8, R0);
    asm.read_kernel(ANY, 4, R8, at.status);
    asm.load(Size::U32, R1, 10, ANY);
    asm.and(R1, IS_OF_32_BITS);
    asm.jump(When::NotEqual, R1, 0, other);
    asm.load(Size::U64, R7, R9, 8);
    asm.store_value(Size::U64, R6, 0, 0);
    asm.store(Size::U32, 10, KEY, R7);
    asm.add(R7, 1);
    asm.store(Size::U64, 10, NUMBER, R7);
    asm.look_up(maps.wanted, KEY);
    asm.jump(When::Equal, R0, 0, out);
    asm.load(Size::U32, R7, R0, 0);
    asm.jump(When::Equal, R7, 0, out);
    asm.load(Size::U64, R8, R9, 0);
    asm.read_kernel(REGISTERS, REGISTERS_BYTES, R8, 0);
    for (place, within) in IN_REGISTERS.iter().enumerate() {
        asm.load(Size::U64, R1, 10, REGISTERS + within);
        asm.store(Size::U64, R6, ARGUMENTS + 8 * place as i16, R1);
    }
    asm.call(Helper::Task);
    asm.copy(R8, R0);
    for (field, kept, _) in counters(at) {
        asm.read_kernel(ANY, 8, R8, field);
        asm.load(Size::U64, R1, 10, ANY);
        asm.store(Size::U64, R6, kept, R1);
    }
    asm.and(R7, AT_ITS_BEGINNING);
    asm.jump(When::Equal, R7, 0, plain);
    no_file(&mut asm, FIRST);
    asm.load(Size::U64, R7, R6, ARGUMENTS);
    describe(&mut asm, at, FIRST);
    for place in 0..FILE_LONGS {
        asm.load(Size::U64, R1, 10, FIRST + 8 * place);
        asm.store(Size::U64, R6, CLOSED + 8 * place, R1);
    }
    asm.place(plain);
    asm.call(Helper::Time);
    asm.store(Size::U64, R6, AT, R0);
    asm.load(Size::U64, R1, 10, NUMBER);
    asm.store(Size::U64, R6, 0, R1);
    asm.place(out);
    asm.exit();
    asm.place(other);
    asm.set(R7, 1);
    count(&mut asm, maps, OF_32_BITS, R7);
    asm.exit();
    asm.finish()
}

/// A call ends.
pub fn leave(at: &Offsets, maps: Maps) -> Vec<u64> {
    let mut asm = Asm::default();
    let (out, tell, sum) = (asm.label(), asm.label(), asm.label());
    asm.copy(R9, R1);
    watched(&mut asm, maps, out);
    asm.load(Size::U64, R8, R6, 0);
    asm.jump(When::Equal, R8, 0, out);
    asm.store_value(Size::U64, R6, 0, 0);
    asm.add(R8, -1);
    asm.load(Size::U64, R9, R9, 8);
    begin_event(&mut asm, at);
    asm.look_up(maps.wanted, KEY);
    asm.jump(When::Equal, R0, 0, out);
    asm.load(Size::U32, R9, R0, 0);
    offsets(&mut asm);
    files(&mut asm, at);
    asm.copy(R1, R9);
    asm.and(R1, ALWAYS);
    asm.jump(When::NotEqual, R1, 0, tell);
    for file in [FIRST, SECOND] {
        asm.load(Size::U32, R1, 10, file + 4);
        asm.and(R1, 0xf000);
        asm.jump(When::Equal, R1, 0x8000, tell);
        asm.jump(When::Equal, R1, 0x6000, tell);
        asm.jump(When::Equal, R1, 0x4000, tell);
    }
    asm.place(sum);
    asm.load(Size::U64, R7, 10, EVENT + 88);
    count(&mut asm, maps, OTHER_READ, R7);
    asm.load(Size::U64, R7, 10, EVENT + 96);
    count(&mut asm, maps, OTHER_WRITTEN, R7);
    asm.jump(When::Always, 0, 0, out);
    asm.place(tell);
    output(&mut asm, maps);
    asm.place(out);
    asm.exit();
    asm.finish()
}

/// All of an event but its files: R6 the thread, R7 who, R8 the call's number, R9 what it returned.
fn begin_event(asm: &mut Asm, at: &Offsets) {
    asm.store(Size::U32, 10, KEY, R8);
    asm.store(Size::U32, 10, EVENT + 20, R7);
    asm.shift_right(R7, 32);
    asm.store(Size::U32, 10, EVENT + 16, R7);
    asm.store(Size::U32, 10, EVENT + 24, R8);
    asm.store_value(Size::U32, 10, EVENT + 28, 0);
    asm.store(Size::U64, 10, EVENT + 32, R9);
    asm.call(Helper::Time);
    asm.load(Size::U64, R1, R6, AT);
    asm.store(Size::U64, 10, EVENT, R1);
    asm.sub_reg(R0, R1);
    asm.store(Size::U64, 10, EVENT + 8, R0);
    for place in 0..6 {
        asm.load(Size::U64, R1, R6, ARGUMENTS + 8 * place);
        asm.store(Size::U64, 10, EVENT + 40 + 8 * place, R1);
    }
    asm.call(Helper::Task);
    asm.copy(R8, R0);
    for (field, kept, to) in counters(at) {
        asm.read_kernel(ANY, 8, R8, field);
        asm.load(Size::U64, R1, 10, ANY);
        asm.load(Size::U64, R2, R6, kept);
        asm.sub_reg(R1, R2);
        asm.store(Size::U64, 10, EVENT + to, R1);
    }
}

/// Puts offsets in the place of the arguments that point to them.
fn offsets(asm: &mut Asm) {
    for place in 1..4_i16 {
        let next = asm.label();
        let bit = 1 << (POINTERS + i32::from(place));
        asm.copy(R1, R9);
        asm.and(R1, bit);
        asm.jump(When::Equal, R1, 0, next);
        let slot = EVENT + 40 + 8 * place;
        asm.load(Size::U64, R3, 10, slot);
        asm.jump(When::Equal, R3, 0, next);
        asm.on_stack(R1, slot);
        asm.set(R2, 8);
        asm.call(Helper::ReadUser);
        asm.load(Size::U32, R1, 10, EVENT + 28);
        asm.add(R1, 1 << place);
        asm.store(Size::U32, 10, EVENT + 28, R1);
        asm.place(next);
    }
}

/// Says of both descriptors of an event what they mean; R9 is what `wanted` says.
fn files(asm: &mut Asm, at: &Offsets) {
    let (walk, second, done) = (asm.label(), asm.label(), asm.label());
    no_file(asm, FIRST);
    no_file(asm, SECOND);
    let later = asm.label();
    asm.copy(R1, R9);
    asm.and(R1, AT_ITS_BEGINNING);
    asm.jump(When::Equal, R1, 0, later);
    for place in 0..FILE_LONGS {
        asm.load(Size::U64, R1, R6, CLOSED + 8 * place);
        asm.store(Size::U64, 10, FIRST + 8 * place, R1);
    }
    asm.jump(When::Always, 0, 0, done);
    asm.place(later);
    for place in [0_u8, 1, 4, RESULT] {
        let next = asm.label();
        asm.copy(R1, R9);
        asm.and(R1, 15);
        asm.jump(When::NotEqual, R1, i32::from(place), next);
        let from = if place == RESULT { 32 } else { 40 + 8 * i16::from(place) };
        asm.load(Size::U64, R7, 10, EVENT + from);
        asm.jump(When::Always, 0, 0, walk);
        asm.place(next);
    }
    asm.jump(When::Always, 0, 0, second);
    asm.place(walk);
    describe(asm, at, FIRST);
    asm.place(second);
    let found = asm.label();
    for place in [0_i16, 2] {
        let next = asm.label();
        asm.copy(R1, R9);
        asm.and(R1, 0xf0);
        asm.jump(When::NotEqual, R1, i32::from(place) << 4, next);
        asm.load(Size::U64, R7, 10, EVENT + 40 + 8 * place);
        asm.jump(When::Always, 0, 0, found);
        asm.place(next);
    }
    asm.jump(When::Always, 0, 0, done);
    asm.place(found);
    describe(asm, at, SECOND);
    asm.place(done);
}

fn output(asm: &mut Asm, maps: Maps) {
    let (short, sent) = (asm.label(), asm.label());
    asm.copy(R1, R9);
    asm.and(R1, 0xf0);
    asm.jump(When::Equal, R1, i32::from(NONE) << 4, short);
    asm.set(R3, LONG_BYTES as i32);
    asm.jump(When::Always, 0, 0, sent);
    asm.place(short);
    asm.set(R3, SHORT_BYTES as i32);
    asm.place(sent);
    send(asm, maps);
}

/// Tells the event, of R3 bytes.
fn send(asm: &mut Asm, maps: Maps) {
    let done = asm.label();
    asm.map(R1, maps.ring);
    asm.on_stack(R2, EVENT);
    asm.set(R4, NO_WAKEUP);
    asm.call(Helper::RingOutput);
    asm.jump(When::Equal, R0, 0, done);
    asm.set(R7, 1);
    count(asm, maps, LOST, R7);
    asm.place(done);
}

/// A thread has a child.
pub fn fork(at: &Offsets, maps: Maps) -> Vec<u64> {
    let mut asm = Asm::default();
    let out = asm.label();
    asm.copy(R9, R1);
    asm.load(Size::U64, R8, R9, 0);
    asm.read_kernel(KEY, 4, R8, at.pid);
    asm.look_up(maps.threads, KEY);
    asm.jump(When::Equal, R0, 0, out);
    asm.load(Size::U64, R8, R9, 8);
    asm.read_kernel(KEY, 4, R8, at.pid);
    let value = -400;
    let longs = (THREAD_BYTES / 8) as i16;
    (0..longs).for_each(|place| asm.store_value(Size::U64, 10, value + 8 * place, 0));
    asm.map(R1, maps.threads);
    asm.on_stack(R2, KEY);
    asm.on_stack(R3, value);
    asm.set(R4, 0);
    asm.call(Helper::MapUpdate);
    asm.jump(When::Equal, R0, 0, out);
    asm.set(R7, 1);
    count(&mut asm, maps, TOO_MANY, R7);
    asm.place(out);
    asm.exit();
    asm.finish()
}

/// A thread has become another program, and may have got the number of its process's first.
pub fn exec(maps: Maps) -> Vec<u64> {
    let mut asm = Asm::default();
    let out = asm.label();
    asm.load(Size::U64, R7, R1, 8);
    asm.store(Size::U32, 10, KEY, R7);
    asm.call(Helper::PidTgid);
    asm.store(Size::U32, 10, ANY, R0);
    asm.load(Size::U32, R8, 10, ANY);
    asm.load(Size::U32, R7, 10, KEY);
    asm.jump_reg(When::Equal, R7, R8, out);
    asm.look_up(maps.threads, KEY);
    asm.jump(When::Equal, R0, 0, out);
    asm.copy(R3, R0);
    asm.map(R1, maps.threads);
    asm.on_stack(R2, ANY);
    asm.set(R4, 0);
    asm.call(Helper::MapUpdate);
    asm.map(R1, maps.threads);
    asm.on_stack(R2, KEY);
    asm.call(Helper::MapDelete);
    asm.place(out);
    asm.exit();
    asm.finish()
}

/// A thread ends: its number may become another's.
pub fn exit(maps: Maps) -> Vec<u64> {
    let mut asm = Asm::default();
    asm.call(Helper::PidTgid);
    asm.store(Size::U32, 10, KEY, R0);
    asm.map(R1, maps.threads);
    asm.on_stack(R2, KEY);
    asm.call(Helper::MapDelete);
    asm.exit();
    asm.finish()
}

/// Pages of a file are used by a mapping: one, or those from one number to another.
pub fn mapped(at: &Offsets, maps: Maps, several: bool) -> Vec<u64> {
    let mut asm = Asm::default();
    let (out, known) = (asm.label(), asm.label());
    asm.copy(R9, R1);
    watched(&mut asm, maps, out);
    asm.set(R7, 1);
    if several {
        asm.load(Size::U64, R7, R9, 16);
        asm.load(Size::U64, R1, R9, 8);
        asm.sub_reg(R7, R1);
        asm.add(R7, 1);
    }
    asm.load(Size::U64, R8, R9, 0);
    follow(&mut asm, at.host);
    asm.store_value(Size::U64, 10, PAIR, 0);
    asm.read_kernel(PAIR + 8, 8, R8, at.i_ino);
    follow(&mut asm, at.i_sb);
    asm.read_kernel(PAIR, 4, R8, at.s_dev);
    asm.look_up(maps.mapped, PAIR);
    asm.jump(When::NotEqual, R0, 0, known);
    asm.store(Size::U64, 10, ANY, R7);
    asm.map(R1, maps.mapped);
    asm.on_stack(R2, PAIR);
    asm.on_stack(R3, ANY);
    asm.set(R4, 0);
    asm.call(Helper::MapUpdate);
    asm.jump(When::Always, 0, 0, out);
    asm.place(known);
    asm.add_to(R0, 0, R7);
    asm.place(out);
    asm.exit();
    asm.finish()
}

/// The name of the directory entry that is the second argument is removed: told if it is the file's
/// last.
pub fn removed(at: &Offsets, maps: Maps) -> Vec<u64> {
    let mut asm = Asm::default();
    let out = asm.label();
    asm.copy(R9, R1);
    watched(&mut asm, maps, out);
    asm.load(Size::U64, R8, R9, 8);
    follow(&mut asm, at.d_inode);
    asm.jump(When::Equal, R8, 0, out);
    asm.store_value(Size::U64, 10, ANY, 0);
    asm.read_kernel(ANY, 4, R8, at.i_nlink);
    asm.load(Size::U64, R1, 10, ANY);
    asm.jump(When::NotEqual, R1, 1, out);
    (EVENT..FIRST).step_by(8).for_each(|place| asm.store_value(Size::U64, 10, place, 0));
    no_file(&mut asm, FIRST);
    describe_inode(&mut asm, at, FIRST);
    asm.store(Size::U32, 10, EVENT + 20, R7);
    asm.shift_right(R7, 32);
    asm.store(Size::U32, 10, EVENT + 16, R7);
    asm.store_value(Size::U32, 10, EVENT + 24, REMOVES as i32);
    asm.call(Helper::Time);
    asm.store(Size::U64, 10, EVENT, R0);
    asm.set(R3, SHORT_BYTES as i32);
    send(&mut asm, maps);
    asm.place(out);
    asm.exit();
    asm.finish()
}

/// What is told to the map `wanted`: numbers of calls and what to do about them.
pub fn all_wanted() -> impl Iterator<Item = (u32, u32)> {
    WANTED.iter().map(|call| (call.number, said_of(call)))
}
