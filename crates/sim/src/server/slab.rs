//! Things that come and go, in places that are used again.

/// The place of a thing.
pub(super) type Id = u32;

/// Things by their places.
#[derive(Debug)]
pub(super) struct Slab<T> {
    things: Vec<Option<T>>,
    free: Vec<Id>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { things: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Puts a thing somewhere.
    pub fn put(&mut self, thing: T) -> Id {
        if let Some(id) = self.free.pop() {
            self.things[id as usize] = Some(thing);
            return id;
        }
        self.things.push(Some(thing));
        self.things.len() as Id - 1
    }

    /// What is at a place.
    pub fn get(&mut self, id: Id) -> Option<&mut T> {
        self.things.get_mut(id as usize)?.as_mut()
    }

    /// Takes away what is at a place, which is free then.
    pub fn take(&mut self, id: Id) -> Option<T> {
        let thing = self.things.get_mut(id as usize)?.take();
        if thing.is_some() {
            self.free.push(id);
        }
        thing
    }

    /// All that is here now.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.things.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again_once_it_is_free() {
        let mut slab = Slab::default();
        let (one, two) = (slab.put('a'), slab.put('b'));
        assert_eq!(slab.take(one), Some('a'));
        assert_eq!(slab.take(one), None);
        assert_eq!(slab.get(one), None);
        assert_eq!(slab.put('c'), one);
        assert_eq!(slab.get(two), Some(&mut 'b'));
        assert_eq!(slab.iter().collect::<String>(), "cb");
    }
}
