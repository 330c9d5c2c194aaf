//! Amounts by resource: what a node offers, what a pod asks for.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Number;

use super::quantity::{Quantity, QuantityError};

/// The resource that counts pods on a node.
pub const PODS: &str = "pods";
/// Processor time.
pub const CPU: &str = "cpu";
/// Memory.
pub const MEMORY: &str = "memory";

/// Amounts by resource, sorted by name, each above zero: thousandths of `cpu`, whole units (bytes, devices, pods) of
/// everything else. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resources(Arc<[(Arc<str>, i64)]>);

impl Default for Resources {
    fn default() -> Self {
        Self(Arc::from([]))
    }
}

impl Resources {
    /// The amount of one resource, 0 without it.
    pub fn get(&self, name: &str) -> i64 {
        let found = self.0.binary_search_by(|(other, _)| other.as_ref().cmp(name));
        found.ok().and_then(|at| self.0.get(at)).map_or(0, |(_, amount)| *amount)
    }

    /// All of them in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> + '_ {
        self.0.iter().map(|(name, amount)| (name.as_ref(), *amount))
    }

    /// None at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> + '_ {
        self.0.iter().map(|(name, _)| name)
    }

    /// Whether nobody else holds this very list.
    pub(super) fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

/// Later amounts of the same name are added; what is not above zero is left out.
impl FromIterator<(Arc<str>, i64)> for Resources {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, i64)>>(amounts: I) -> Self {
        let mut sums = Sums::default();
        for (name, amount) in amounts {
            sums.add(&name, amount);
        }
        sums.resources()
    }
}

/// A sum that grows and shrinks.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums(BTreeMap<Arc<str>, i64>);

impl Sums {
    pub(super) fn add(&mut self, name: &Arc<str>, amount: i64) {
        let sum = self.0.entry(name.clone()).or_default();
        *sum = sum.saturating_add(amount);
    }

    /// Adds all of `more`, times a sign of 1 or -1; what comes to nothing is dropped.
    pub(super) fn add_all(&mut self, more: &Resources, sign: i64) {
        for (name, amount) in more.0.iter() {
            self.add(name, amount.saturating_mul(sign));
        }
        if sign < 0 {
            self.0.retain(|_, sum| *sum != 0);
        }
    }

    pub(super) fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    pub(super) fn resources(&self) -> Resources {
        Resources(self.0.iter().filter(|(_, amount)| **amount > 0).map(|(name, amount)| (name.clone(), *amount)).collect())
    }
}

/// Whether a resource is extended: offered by a device plugin, counted in whole numbers, not overcommitted.
pub fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}

/// The resource that a bound of a quota is about: `cpu` for `requests.cpu`, `limits.cpu` and `cpu`.
pub(super) fn bounded(key: &str) -> &str {
    key.strip_prefix("requests.").or_else(|| key.strip_prefix("limits.")).unwrap_or(key)
}

/// What is free, for people: bytes are rounded down to whole GiB or MiB, since nobody reads thirteen digits.
pub(super) fn display_free(name: &str, amount: i64) -> String {
    const UNITS: [i64; 2] = [1 << 30, 1 << 20];
    let is_bytes = name != CPU && name != PODS && !is_extended(name);
    let unit = UNITS.into_iter().find(|unit| is_bytes && amount >= *unit).unwrap_or(1);
    display(name, amount - amount % unit)
}

/// An amount for people, as Kubernetes prints it.
pub(super) fn display(name: &str, amount: i64) -> String {
    match name {
        CPU => Quantity::thousandths(amount),
        _ if is_extended(name) || name == PODS => return amount.to_string(),
        _ => Quantity::bytes(amount),
    }
    .to_string()
}

/// Amounts as an object of the API holds them. A text that is no quantity is kept as such, so that one odd object
/// doesn't spoil a whole list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts(BTreeMap<Arc<str>, Result<Quantity, QuantityError>>);

impl<'de> Deserialize<'de> for Amounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Text {
            Text(String),
            Number(Number),
        }
        let texts = Option::<BTreeMap<String, Text>>::deserialize(deserializer)?.unwrap_or_default();
        let read = |text| match text {
            Text::Text(text) => Quantity::parse(text.trim()),
            Text::Number(number) => Quantity::parse(&number.to_string()),
        };
        Ok(Self(texts.into_iter().map(|(name, text)| (Arc::from(name), read(text))).collect()))
    }
}

impl Amounts {
    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> + '_ {
        self.0.keys()
    }

    /// The amount of one resource, or of one bound of a quota, if it is given.
    pub(super) fn get(&self, name: &str) -> Option<Result<i64, &QuantityError>> {
        self.0.get(name).map(|quantity| match quantity {
            Ok(quantity) if bounded(name) == CPU => Ok(quantity.milli_value().max(0)),
            Ok(quantity) => Ok(quantity.value().max(0)),
            Err(error) => Err(error),
        })
    }

    /// What a node offers; an amount that can't be read is not offered.
    pub(super) fn offered(&self) -> Resources {
        self.names().filter_map(|name| Some((name.clone(), self.get(name)?.ok()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_is_told_in_whole_units_and_never_as_more() {
        for (name, amount, told) in [
            (MEMORY, 2_196_875_771_902, "2045Gi"),
            (MEMORY, 1 << 30, "1Gi"),
            (MEMORY, (1 << 30) - 1, "1023Mi"),
            (MEMORY, 1000, "1k"),
            (MEMORY, 0, "0"),
            (MEMORY, -(1 << 31), "-2Gi"),
            (CPU, 191_998, "191998m"),
            (PODS, 2_000_000_000, "2000000000"),
            ("amd.com/gpu", 2_000_000_000, "2000000000"),
        ] {
            assert_eq!(display_free(name, amount), told, "{name} {amount}");
        }
    }
}
