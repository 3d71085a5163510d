//! Names numbered as they come.

use std::collections::HashMap;

use crate::record::Refused;

/// More files than this, or processes, and the trace is refused.
const NAMES_MAX: u32 = 1 << 22;
/// And so are more bytes of names.
const BYTES_MAX: usize = 1 << 29;

/// Numbers of names.
#[derive(Debug)]
pub struct Names {
    what: &'static str,
    numbers: HashMap<Box<[u8]>, u32>,
    next: u32,
    bytes: usize,
    last: (Vec<u8>, u32),
}

impl Names {
    /// None yet; `what` is what they are of, in the plural.
    pub fn of(what: &'static str) -> Self {
        Self { what, numbers: HashMap::new(), next: 0, bytes: 0, last: (Vec::new(), u32::MAX) }
    }

    /// The number of a name.
    ///
    /// # Errors
    ///
    /// There are too many.
    pub fn number(&mut self, name: &[u8]) -> Result<u32, Refused> {
        if self.last.1 != u32::MAX && self.last.0 == name {
            return Ok(self.last.1);
        }
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None => {
                let number = self.fresh()?;
                self.bytes += name.len();
                if self.bytes > BYTES_MAX {
                    return Err(Refused(format!(
                        "the names of its {} are longer than half a GiB together, which is more \
                         than is kept: characterise a part of it",
                        self.what
                    )));
                }
                self.numbers.insert(name.into(), number);
                number
            }
        };
        self.last.0.clear();
        self.last.0.extend_from_slice(name);
        self.last.1 = number;
        Ok(number)
    }

    /// A number that no name has.
    ///
    /// # Errors
    ///
    /// There are too many.
    pub fn fresh(&mut self) -> Result<u32, Refused> {
        if self.next >= NAMES_MAX {
            return Err(Refused(format!(
                "it names more than {NAMES_MAX} {}, which is more than is kept: characterise a \
                 part of it",
                self.what
            )));
        }
        self.next += 1;
        Ok(self.next - 1)
    }

    /// How many there are.
    pub fn len(&self) -> u32 {
        self.next
    }

    /// What has this name from now on is another thing; what had it until now.
    pub fn forget(&mut self, name: &[u8]) -> Option<u32> {
        self.last.1 = u32::MAX;
        self.numbers.remove(name)
    }

    /// What had the first name has the second.
    pub fn rename(&mut self, from: &[u8], to: &[u8]) {
        self.last.1 = u32::MAX;
        if let Some(number) = self.numbers.remove(from) {
            self.numbers.insert(to.into(), number);
        }
    }
}
