//! Instructions of BPF (Linux, Documentation/bpf/standardization/instruction-set.rst).

#![forbid(unsafe_code)]

/// A register.
pub type Reg = u8;
pub const R0: Reg = 0;
pub const R1: Reg = 1;
pub const R2: Reg = 2;
pub const R3: Reg = 3;
pub const R4: Reg = 4;
pub const R6: Reg = 6;
pub const R7: Reg = 7;
pub const R8: Reg = 8;
pub const R9: Reg = 9;
/// Where the stack ends; it lies below.
pub const R10: Reg = 10;

/// How many bytes are moved.
#[derive(Clone, Copy)]
pub enum Size {
    U32 = 0x00,
    U64 = 0x18,
}

/// When a jump is taken.
#[derive(Clone, Copy)]
pub enum When {
    Always = 0x00,
    Equal = 0x10,
    NotEqual = 0x50,
    AtLeast = 0x30,
}

/// Somewhere to jump to.
#[derive(Clone, Copy)]
pub struct Label(usize);

/// Functions of the kernel (linux/bpf.h).
#[derive(Clone, Copy)]
pub enum Helper {
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    Time = 5,
    PidTgid = 14,
    Task = 35,
    ReadUser = 112,
    ReadKernel = 113,
    RingOutput = 130,
}

/// A program as it is written.
#[derive(Default)]
pub struct Asm {
    code: Vec<u64>,
    places: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

impl Asm {
    fn put(&mut self, op: u8, dst: Reg, src: Reg, offset: i16, value: i32) {
        let registers = dst | src << 4;
        self.code.push(
            u64::from(op)
                | u64::from(registers) << 8
                | u64::from(offset as u16) << 16
                | u64::from(value as u32) << 32,
        );
    }

    pub fn copy(&mut self, dst: Reg, src: Reg) {
        self.put(0xbf, dst, src, 0, 0);
    }

    pub fn set(&mut self, dst: Reg, value: i32) {
        self.put(0xb7, dst, 0, 0, value);
    }

    pub fn add(&mut self, dst: Reg, value: i32) {
        self.put(0x07, dst, 0, 0, value);
    }

    pub fn add_reg(&mut self, dst: Reg, src: Reg) {
        self.put(0x0f, dst, src, 0, 0);
    }

    pub fn sub_reg(&mut self, dst: Reg, src: Reg) {
        self.put(0x1f, dst, src, 0, 0);
    }

    pub fn and(&mut self, dst: Reg, value: i32) {
        self.put(0x57, dst, 0, 0, value);
    }

    pub fn shift_left(&mut self, dst: Reg, bits: i32) {
        self.put(0x67, dst, 0, 0, bits);
    }

    pub fn shift_right(&mut self, dst: Reg, bits: i32) {
        self.put(0x77, dst, 0, 0, bits);
    }

    pub fn load(&mut self, size: Size, dst: Reg, src: Reg, offset: i16) {
        self.put(0x61 | size as u8, dst, src, offset, 0);
    }

    pub fn store(&mut self, size: Size, dst: Reg, offset: i16, src: Reg) {
        self.put(0x63 | size as u8, dst, src, offset, 0);
    }

    pub fn store_value(&mut self, size: Size, dst: Reg, offset: i16, value: i32) {
        self.put(0x62 | size as u8, dst, 0, offset, value);
    }

    /// Adds to a u64 in memory, at once for all processors.
    pub fn add_to(&mut self, dst: Reg, offset: i16, src: Reg) {
        self.put(0xdb, dst, src, offset, 0);
    }

    /// The address of a map, by its descriptor.
    pub fn map(&mut self, dst: Reg, descriptor: i32) {
        self.put(0x18, dst, 1, 0, descriptor);
        self.code.push(0);
    }

    pub fn call(&mut self, helper: Helper) {
        self.put(0x85, 0, 0, 0, helper as i32);
    }

    pub fn exit(&mut self) {
        self.set(R0, 0);
        self.put(0x95, 0, 0, 0, 0);
    }

    pub fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// The label is here.
    pub fn place(&mut self, label: Label) {
        self.places[label.0] = Some(self.code.len());
    }

    pub fn jump(&mut self, when: When, reg: Reg, value: i32, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.put(0x05 | when as u8, reg, 0, 0, value);
    }

    pub fn jump_reg(&mut self, when: When, reg: Reg, other: Reg, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.put(0x0d | when as u8, reg, other, 0, 0);
    }

    /// A register becomes an address on the stack.
    pub fn on_stack(&mut self, dst: Reg, offset: i16) {
        self.copy(dst, R10);
        self.add(dst, i32::from(offset));
    }

    /// Reads so many bytes of the kernel's, from an address in a register, to the stack.
    pub fn read_kernel(&mut self, to: i16, bytes: i32, from: Reg, offset: u32) {
        self.copy(R3, from);
        self.add(R3, offset as i32);
        self.on_stack(R1, to);
        self.set(R2, bytes);
        self.call(Helper::ReadKernel);
    }

    /// Looks up what lies on the stack; the answer is in R0, 0 where there is none.
    pub fn look_up(&mut self, map: i32, key: i16) {
        self.map(R1, map);
        self.on_stack(R2, key);
        self.call(Helper::MapLookup);
    }

    /// The instructions; every label that is jumped to has to be placed.
    pub fn finish(mut self) -> Vec<u64> {
        for (at, label) in &self.jumps {
            let to = self.places[label.0].unwrap_or(0);
            let offset = to as i64 - *at as i64 - 1;
            self.code[*at] |= u64::from(offset as i16 as u16) << 16;
        }
        self.code
    }
}
