//! Where the running kernel has the fields of its structures: its own description of its types
//! (Linux, Documentation/bpf/btf.rst), from /sys/kernel/btf/vmlinux.

#![forbid(unsafe_code)]

const MAGIC: u32 = 0xeb9f;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
/// Unions without a name within each other, at most.
const DEPTH_MAX: u32 = 6;

/// A type's beginning, and where what follows it lies.
#[derive(Clone, Copy)]
struct Type {
    name: u32,
    info: u32,
    body: usize,
}

impl Type {
    fn kind(self) -> u32 {
        self.info >> 24 & 0x1f
    }

    fn members(self) -> usize {
        (self.info & 0xffff) as usize
    }
}

/// All types.
pub struct Btf<'a> {
    bytes: &'a [u8],
    names: usize,
    types: Vec<Type>,
}

impl<'a> Btf<'a> {
    /// None where it is not understood.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        if word(bytes, 0)? & 0xffff != MAGIC {
            return None;
        }
        let header = word(bytes, 4)? as usize;
        let from = header.checked_add(word(bytes, 8)? as usize)?;
        let end = from.checked_add(word(bytes, 12)? as usize)?;
        let names = header.checked_add(word(bytes, 16)? as usize)?;
        let mut types = Vec::new();
        let mut at = from;
        while at < end {
            let (name, info) = (word(bytes, at)?, word(bytes, at + 4)?);
            let found = Type { name, info, body: at + 12 };
            at = found.body.checked_add(bytes_after(found)?)?;
            types.push(found);
        }
        Some(Self { bytes, names, types })
    }

    /// Bytes from the beginning of a structure to a field of it.
    pub fn offset(&self, of: &str, field: &str) -> Option<u32> {
        self.types
            .iter()
            .filter(|each| matches!(each.kind(), STRUCT | UNION) && self.is_named(each.name, of))
            .find_map(|each| self.within(*each, field, DEPTH_MAX))
            .map(|bits| bits / 8)
    }

    fn within(&self, found: Type, field: &str, deeper: u32) -> Option<u32> {
        let fields_have_sizes = found.info >> 31 == 1;
        (0..found.members()).find_map(|place| {
            let at = found.body + 12 * place;
            let (name, kind) = (word(self.bytes, at)?, word(self.bytes, at + 4)?);
            let told = word(self.bytes, at + 8)?;
            let bits = if fields_have_sizes { told & 0xff_ffff } else { told };
            if name != 0 && self.is_named(name, field) {
                return Some(bits);
            }
            let unnamed = self.types.get((kind as usize).checked_sub(1)?)?;
            let inside = name == 0 && deeper > 0 && matches!(unnamed.kind(), STRUCT | UNION);
            let found = inside.then(|| self.within(*unnamed, field, deeper - 1)).flatten();
            found.map(|in_it| bits + in_it)
        })
    }

    fn is_named(&self, at: u32, name: &str) -> bool {
        let from = self.names + at as usize;
        let told = self.bytes.get(from..from + name.len() + 1);
        told.is_some_and(|told| told.strip_prefix(name.as_bytes()) == Some(&[0]))
    }
}

/// Bytes of a type beyond its first twelve.
fn bytes_after(found: Type) -> Option<usize> {
    Some(match found.kind() {
        1 | 14 | 17 => 4,
        2 | 7..=12 | 16 | 18 => 0,
        3 => 12,
        STRUCT | UNION | 15 | 19 => 12 * found.members(),
        6 | 13 => 8 * found.members(),
        _ => return None,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(four.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn this_kernel_says_where_its_fields_are_or_has_no_types() {
        let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else { return };
        let btf = Btf::parse(&bytes).unwrap();
        // Arrays and unions without names lie between; these two come first wherever they are.
        assert_eq!(btf.offset("list_head", "next"), Some(0));
        assert_eq!(btf.offset("list_head", "prev"), Some(8));
        assert_eq!(btf.offset("list_head", "nothing"), None);
        assert!(btf.offset("inode", "i_rdev").is_some_and(|at| at > 0));
        assert!(btf.offset("page", "mapping").is_some(), "a union without a name is gone into");
    }

    #[test]
    fn what_is_no_description_of_types_is_none() {
        assert!(Btf::parse(&[]).is_none());
        assert!(Btf::parse(&[0; 64]).is_none());
        let mut cut = vec![0x9f, 0xeb, 1, 0, 24, 0, 0, 0];
        cut.extend([0_u32, 400, 400, 10].map(u32::to_le_bytes).concat());
        assert!(Btf::parse(&cut).is_none());
    }
}
