//! Objects by UID that are found by the UID of their owner too.

use std::collections::{HashMap, HashSet};

#[derive(Debug)]
pub(super) struct Owned<T> {
    items: HashMap<String, (Option<String>, T)>,
    by_owner: HashMap<String, HashSet<String>>,
}

impl<T> Default for Owned<T> {
    fn default() -> Self {
        Self { items: HashMap::new(), by_owner: HashMap::new() }
    }
}

impl<T> Owned<T> {
    /// Puts an object in, in the place of the one with that UID, which is given back.
    pub(super) fn put(&mut self, uid: &str, owner: Option<&str>, item: T) -> Option<T> {
        let old = self.remove(uid);
        if let Some(owner) = owner {
            self.by_owner.entry(owner.to_owned()).or_default().insert(uid.to_owned());
        }
        self.items.insert(uid.to_owned(), (owner.map(str::to_owned), item));
        old
    }

    pub(super) fn remove(&mut self, uid: &str) -> Option<T> {
        let (owner, item) = self.items.remove(uid)?;
        if let Some(owner) = owner
            && let Some(uids) = self.by_owner.get_mut(&owner)
        {
            uids.remove(uid);
            if uids.is_empty() {
                self.by_owner.remove(&owner);
            }
        }
        Some(item)
    }

    pub(super) fn get(&self, uid: &str) -> Option<&T> {
        self.items.get(uid).map(|(_, item)| item)
    }

    /// The owner of an object that is there.
    pub(super) fn owner(&self, uid: &str) -> Option<&str> {
        self.items.get(uid)?.0.as_deref()
    }

    /// The objects of an owner, in no order.
    pub(super) fn of<'a>(&'a self, owner: &str) -> impl Iterator<Item = (&'a str, &'a T)> + use<'a, T> {
        let uids = self.by_owner.get(owner).into_iter().flatten();
        uids.filter_map(|uid| Some((uid.as_str(), self.get(uid)?)))
    }

    /// All of them, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.items.iter().map(|(uid, (_, item))| (uid.as_str(), item))
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_by_their_owner_until_they_go_or_change_hands() {
        let mut owned = Owned::default();
        let of = |owned: &Owned<u8>, owner: &str| {
            let mut found: Vec<_> = owned.of(owner).map(|(uid, item)| (uid.to_owned(), *item)).collect();
            found.sort();
            found
        };
        assert_eq!(owned.put("a", Some("o"), 1), None);
        owned.put("b", Some("o"), 2);
        owned.put("c", None, 3);
        assert_eq!(of(&owned, "o"), [("a".to_owned(), 1), ("b".to_owned(), 2)]);
        assert_eq!(owned.put("a", Some("p"), 4), Some(1));
        assert_eq!((of(&owned, "o"), of(&owned, "p"), owned.owner("a")), (vec![("b".to_owned(), 2)], vec![("a".to_owned(), 4)], Some("p")));
        assert_eq!((owned.remove("b"), owned.remove("b"), owned.len()), (Some(2), None, 2));
        assert!(of(&owned, "o").is_empty() && owned.by_owner.len() == 1);
    }
}
