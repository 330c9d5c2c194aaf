//! The rollout strategy, with percentages resolved for one member's share.
//!
//! A percentage is of the service's replicas, of which a member holds only some; and one that becomes zero on both
//! sides for a small share would be refused by the member, or would stop every later edit there.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Map, Value, json};

use super::refuse;
use crate::api::odin::RolloutStrategy;
use crate::api::reason::Reason;
use crate::render::Refusal;

/// A bound of a rolling update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Groups(u32),
    Percent(u32),
}

/// Which way a percentage is rounded.
#[derive(Clone, Copy)]
enum Rounding {
    Up,
    Down,
}

/// How a new revision replaces the old one in one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rollout {
    type_: Option<String>,
    max_surge: Option<Bound>,
    max_unavailable: Option<Bound>,
}

impl Rollout {
    /// Reads `rolloutStrategy` of a merged spec.
    ///
    /// # Errors
    /// `InvalidRendered` for a bound that is neither a number nor a percentage, `RolloutNotSupported` for a partition.
    pub(super) fn from_spec(spec: &Value) -> Result<Option<Self>, Refusal> {
        let Some(value) = spec.get("rolloutStrategy").filter(|v| !v.is_null()) else {
            return Ok(None);
        };
        let strategy: RolloutStrategy = serde_json::from_value(value.clone())
            .map_err(|e| refuse(Reason::InvalidRendered, format!("spec.rolloutStrategy can't be read: {e}")))?;
        let update = strategy.rolling_update.unwrap_or_default();
        if update.partition.is_some() {
            return Err(refuse(
                Reason::RolloutNotSupported,
                "spec.rolloutStrategy.rollingUpdate.partition is for a LeaderWorkerSet: a Deployment has none, remove it",
            ));
        }
        Ok(Some(Self {
            type_: strategy.type_,
            max_surge: bound("maxSurge", update.max_surge.as_ref())?,
            max_unavailable: bound("maxUnavailable", update.max_unavailable.as_ref())?,
        }))
    }

    /// As the service has it: what the hash covers.
    pub(super) fn as_written(&self) -> Value {
        self.value(self.max_surge.map(Bound::as_written), self.max_unavailable.map(Bound::as_written))
    }

    /// In whole groups of a share.
    pub(super) fn for_share(&self, replicas: u32) -> Value {
        let surge = self.max_surge.map(|b| b.of(replicas, Rounding::Up));
        let mut unavailable = self.max_unavailable.map(|b| b.of(replicas, Rounding::Down));
        if surge == Some(0) && unavailable == Some(0) {
            unavailable = Some(1);
        }
        self.value(surge.map(Value::from), unavailable.map(Value::from))
    }

    fn value(&self, surge: Option<Value>, unavailable: Option<Value>) -> Value {
        let mut update = Map::new();
        if let Some(surge) = surge {
            update.insert("maxSurge".to_owned(), surge);
        }
        if let Some(unavailable) = unavailable {
            update.insert("maxUnavailable".to_owned(), unavailable);
        }
        let mut strategy = Map::new();
        if let Some(type_) = &self.type_ {
            strategy.insert("type".to_owned(), json!(type_));
        }
        if !update.is_empty() {
            strategy.insert("rollingUpdate".to_owned(), Value::Object(update));
        }
        Value::Object(strategy)
    }
}

impl Bound {
    fn as_written(self) -> Value {
        match self {
            Self::Groups(n) => json!(n),
            Self::Percent(p) => json!(format!("{p}%")),
        }
    }

    fn of(self, replicas: u32, rounding: Rounding) -> u32 {
        match self {
            Self::Groups(n) => n,
            Self::Percent(p) => {
                let hundredths = u64::from(p) * u64::from(replicas);
                let groups = match rounding {
                    Rounding::Up => hundredths.div_ceil(100),
                    Rounding::Down => hundredths / 100,
                };
                u32::try_from(groups).unwrap_or(u32::MAX)
            }
        }
    }
}

fn bound(field: &str, value: Option<&IntOrString>) -> Result<Option<Bound>, Refusal> {
    let parsed = match value {
        None => return Ok(None),
        Some(IntOrString::Int(n)) => u32::try_from(*n).ok().map(Bound::Groups),
        Some(IntOrString::String(text)) => {
            text.strip_suffix('%').filter(|p| p.bytes().all(|b| b.is_ascii_digit())).and_then(|p| p.parse().ok()).map(Bound::Percent)
        }
    };
    match parsed {
        Some(bound) => Ok(Some(bound)),
        None => Err(refuse(
            Reason::InvalidRendered,
            format!(
                "spec.rolloutStrategy.rollingUpdate.{field} must be a number of groups that isn't negative, or a percentage such as 25%"
            ),
        )),
    }
}
