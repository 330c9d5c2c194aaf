//! The rollout strategy, with percentages resolved for one member's share.
//!
//! A percentage is of the service's replicas, of which a member holds only some; and one that becomes zero on both
//! sides for a small share would be refused by the member, or would stop every later edit there.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{present, refuse};
use crate::api::odin::{RolloutStrategy, WorkloadKind};
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
    kind: WorkloadKind,
    /// What the service says; without it nothing is written.
    own: Option<Own>,
}

/// What a service says of its rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Own {
    type_: Option<String>,
    max_surge: Option<Bound>,
    max_unavailable: Option<Bound>,
    partition: Option<u32>,
}

impl Rollout {
    /// Reads `rolloutStrategy` of a merged spec, in which everything suits the kind.
    ///
    /// # Errors
    /// `InvalidRendered` for a bound that is neither a number nor a percentage, and for a partition below 0.
    pub(super) fn of(spec: &Value, kind: WorkloadKind) -> Result<Self, Refusal> {
        let Some(value) = present(spec, "rolloutStrategy") else {
            return Ok(Self { kind, own: None });
        };
        let invalid = |message| refuse(Reason::InvalidRendered, message);
        let strategy = RolloutStrategy::deserialize(value).map_err(|e| invalid(format!("spec.rolloutStrategy can't be read: {e}")))?;
        let update = strategy.rolling_update.unwrap_or_default();
        let partition = update.partition.map(u32::try_from).transpose();
        let own = Own {
            type_: strategy.type_,
            max_surge: bound("maxSurge", update.max_surge.as_ref())?,
            max_unavailable: bound("maxUnavailable", update.max_unavailable.as_ref())?,
            partition: partition.map_err(|_| invalid("spec.rolloutStrategy.rollingUpdate.partition must not be negative".to_owned()))?,
        };
        Ok(Self { kind, own: Some(own) })
    }

    /// The field of the workload's `spec` that it is written to.
    pub(super) fn field(&self) -> &'static str {
        match self.kind {
            WorkloadKind::Deployment => "strategy",
            WorkloadKind::LeaderWorkerSet => "rolloutStrategy",
        }
    }

    /// Groups with a lower index keep the old revision.
    pub(super) fn partition(&self) -> u32 {
        self.own.as_ref().and_then(|own| own.partition).unwrap_or(0)
    }

    /// As the service has it: what the hash covers.
    pub(super) fn as_written(&self) -> Option<Value> {
        let own = self.own.as_ref()?;
        Some(self.value(own, own.max_surge.map(Bound::as_written), own.max_unavailable.map(Bound::as_written)))
    }

    /// In whole groups of a share.
    pub(super) fn for_share(&self, replicas: u32) -> Option<Value> {
        let own = self.own.as_ref()?;
        let (surge, unavailable) = self.bounds(replicas);
        Some(self.value(own, own.max_surge.map(|_| surge.into()), own.max_unavailable.map(|_| unavailable.into())))
    }

    /// Groups of a share that may exist in addition, and that may be missing, the member's defaults included. Never both
    /// 0: an update that can do neither would never end, and a `LeaderWorkerSet` that came to it by scaling would refuse
    /// every later edit.
    fn bounds(&self, replicas: u32) -> (u32, u32) {
        let (default_surge, default_unavailable) = match self.kind {
            WorkloadKind::Deployment => (Bound::Percent(25), Bound::Percent(25)),
            WorkloadKind::LeaderWorkerSet => (Bound::Groups(0), Bound::Groups(1)),
        };
        let own = self.own.as_ref();
        let mut surge = own.and_then(|own| own.max_surge).unwrap_or(default_surge).of(replicas, Rounding::Up);
        if self.kind == WorkloadKind::LeaderWorkerSet {
            surge = surge.min(replicas);
        }
        let unavailable = own.and_then(|own| own.max_unavailable).unwrap_or(default_unavailable).of(replicas, Rounding::Down);
        if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable) }
    }

    /// Index of the last group of so many, in a rollout too.
    pub(super) fn highest_index(&self, replicas: u32) -> u32 {
        replicas.saturating_add(self.bounds(replicas).0).saturating_sub(1)
    }

    /// Groups that must fit beside the running ones for a rollout of the share to start.
    pub(super) fn spare(&self, replicas: u32) -> u32 {
        let recreated = self.own.as_ref().and_then(|own| own.type_.as_deref()) == Some("Recreate");
        u32::from(replicas > 0 && !recreated && self.bounds(replicas).1 == 0)
    }

    fn value(&self, own: &Own, surge: Option<Value>, unavailable: Option<Value>) -> Value {
        let (field, partition) = match self.kind {
            WorkloadKind::Deployment => ("rollingUpdate", None),
            WorkloadKind::LeaderWorkerSet => ("rollingUpdateConfiguration", own.partition),
        };
        let bounds = [("maxSurge", surge), ("maxUnavailable", unavailable), ("partition", partition.map(Value::from))];
        let update: Map<_, _> = bounds.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        let mut strategy = Map::new();
        if let Some(type_) = &own.type_ {
            strategy.insert("type".to_owned(), json!(type_));
        }
        if !update.is_empty() {
            strategy.insert(field.to_owned(), Value::Object(update));
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
