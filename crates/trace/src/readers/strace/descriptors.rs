//! What each process's descriptors mean: files, where in them it is, and what is shared by whom.

use std::rc::Rc;

use crate::hash::ByNumber;
use crate::names::Names;
use crate::record::Refused;

/// What an open file is.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    /// None of a pipe, a socket, a terminal.
    pub file: Option<u32>,
    /// Where the next read or write goes.
    pub position: u64,
    /// Every write goes to the end.
    pub append: bool,
}

/// A process's name for an open file.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    open: usize,
    close_on_exec: bool,
}

type Table = ByNumber<u32, Descriptor>;

/// Descriptors of all tables that are kept: 64 MB. A child's table is its parent's until one of the
/// two changes, so that only a trace made to fill memory has more.
const ENTRIES_MAX: usize = 1 << 22;
/// Processes that are about to have a child.
const PARENTS_MAX: usize = 1 << 10;

/// All processes' descriptors.
#[derive(Debug)]
pub struct Descriptors {
    pub files: Names,
    opens: Vec<Open>,
    tables: Vec<Rc<Table>>,
    /// Of tables, those that are shared counted once.
    entries: usize,
    /// Processes that have each table.
    users: Vec<u32>,
    table_of: ByNumber<u32, usize>,
    /// Processes that are about to have a child, and whether it will share.
    parents: Vec<(u32, bool)>,
    /// Bytes of a file, as far as they are known.
    sizes: ByNumber<u32, u64>,
}

impl Descriptors {
    /// Nothing is known.
    pub fn new() -> Self {
        Self {
            files: Names::of("files"),
            opens: Vec::new(),
            tables: Vec::new(),
            entries: 0,
            users: Vec::new(),
            table_of: ByNumber::default(),
            parents: Vec::new(),
            sizes: ByNumber::default(),
        }
    }

    /// Refuses a trace of more descriptors than are kept.
    ///
    /// # Errors
    ///
    /// It is one.
    pub fn require_few(&self) -> Result<(), Refused> {
        if self.entries <= ENTRIES_MAX {
            return Ok(());
        }
        Err(Refused(format!(
            "its processes have more than {ENTRIES_MAX} files open at once, which is more than is \
             kept: characterise a part of it"
        )))
    }

    /// A table that is about to change, no longer shared.
    fn table(&mut self, index: usize) -> &mut Table {
        let table = &mut self.tables[index];
        if Rc::strong_count(table) > 1 {
            self.entries += table.len();
        }
        Rc::make_mut(table)
    }

    fn insert(&mut self, index: usize, number: u32, descriptor: Descriptor) {
        let fresh = self.table(index).insert(number, descriptor).is_none();
        self.entries += usize::from(fresh);
    }

    fn remove(&mut self, index: usize, number: u32) -> Option<Descriptor> {
        self.tables[index].get(&number)?;
        self.entries -= 1;
        self.table(index).remove(&number)
    }

    /// Somebody asks for a child, which may be seen before the call is done.
    pub fn expect_child(&mut self, process: u32, shares: bool) {
        if self.parents.len() == PARENTS_MAX {
            self.parents.remove(0); // its child was never seen
        }
        self.parents.push((process, shares));
    }

    /// A child is there, or there will be none.
    pub fn have_child(&mut self, process: u32, child: Option<u32>, shares: bool) {
        if let Some(place) = self.parents.iter().rposition(|(each, _)| *each == process) {
            self.parents.remove(place);
        }
        if let Some(child) = child.filter(|child| !self.table_of.contains_key(child)) {
            self.inherit(process, child, shares);
        }
    }

    fn inherit(&mut self, parent: u32, child: u32, shares: bool) {
        let own = self.table_index(parent);
        if shares {
            self.users[own] += 1;
            self.table_of.insert(child, own);
        } else {
            self.give(child, Rc::clone(&self.tables[own]));
        }
    }

    /// A process has a table of its own.
    fn give(&mut self, process: u32, table: Rc<Table>) {
        self.tables.push(table);
        self.users.push(1);
        self.table_of.insert(process, self.tables.len() - 1);
    }

    /// A process has ended, or wants another table; one that nobody has is forgotten.
    pub fn end(&mut self, process: u32) {
        if let Some(table) = self.table_of.remove(&process) {
            self.users[table] -= 1;
            if self.users[table] == 0 {
                let gone = std::mem::take(&mut self.tables[table]);
                if Rc::strong_count(&gone) == 1 {
                    self.entries -= gone.len();
                }
            }
        }
    }

    fn table_index(&mut self, process: u32) -> usize {
        if let Some(table) = self.table_of.get(&process) {
            return *table;
        }
        if let Some((parent, shares)) = self.parents.last().copied()
            && parent != process
        {
            self.inherit(parent, process, shares);
        } else {
            self.give(process, Rc::default());
        }
        self.table_of[&process]
    }

    /// What was opened has this number now.
    pub fn open(&mut self, process: u32, number: u32, open: Open, close_on_exec: bool) {
        self.opens.push(open);
        let table = self.table_index(process);
        let descriptor = Descriptor { open: self.opens.len() - 1, close_on_exec };
        self.insert(table, number, descriptor);
    }

    /// A second number for the same.
    pub fn duplicate(&mut self, process: u32, from: u32, to: u32, close_on_exec: bool) {
        let table = self.table_index(process);
        match self.tables[table].get(&from).copied() {
            Some(known) => self.insert(table, to, Descriptor { close_on_exec, ..known }),
            None => {
                self.remove(table, to);
            }
        }
    }

    /// It is closed; what it was.
    pub fn close(&mut self, process: u32, number: u32) -> Option<Open> {
        let table = self.table_index(process);
        self.remove(table, number).map(|gone| self.opens[gone.open])
    }

    /// Another program runs.
    pub fn exec(&mut self, process: u32) {
        let table = self.table_index(process);
        let mut own = Rc::clone(&self.tables[table]);
        if own.values().any(|descriptor| descriptor.close_on_exec) {
            let kept = own.iter().filter(|(_, descriptor)| !descriptor.close_on_exec);
            own = Rc::new(kept.map(|(number, each)| (*number, *each)).collect());
            self.entries += own.len();
        }
        self.end(process);
        self.give(process, own);
    }

    /// What a number means; None where nothing was seen of it.
    pub fn find(&mut self, process: u32, number: u32) -> Option<&mut Open> {
        let table = self.table_index(process);
        let open = self.tables[table].get(&number)?.open;
        self.opens.get_mut(open)
    }

    /// A file that was open before the trace began, whose name is not known either.
    pub fn unnamed(&mut self, process: u32, number: u32) -> Result<&mut Open, Refused> {
        let file = Some(self.files.fresh()?);
        self.open(process, number, Open { file, position: 0, append: false }, false);
        let last = self.opens.len() - 1;
        Ok(&mut self.opens[last])
    }

    /// How long a file is, as far as it was seen.
    pub fn size(&self, file: u32) -> u64 {
        self.sizes.get(&file).copied().unwrap_or(0)
    }

    /// It is at least so long.
    pub fn at_least(&mut self, file: u32, bytes: u64) {
        let known = self.sizes.entry(file).or_insert(0);
        *known = bytes.max(*known);
    }
}
