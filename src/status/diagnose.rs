//! The one cause of trouble, picked by rank: the nearer to the root, the better.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::counters::Share;
use super::observation::{ApplyState, MemberObservation, WorkloadView};
use super::rank::{HUB_REFUSAL, MEMBER_REFUSAL, MEMBER_UNSEEN, UNPLACED, rank};
use super::report::{Facts, second};
use super::text::{self, Cleaner};
use crate::api::odin::{Diagnostic, ObjectRef, Placement, Rejection};
use crate::api::reason::Reason;

/// Trouble somewhere, with how much of the service it touches.
#[derive(Clone, Debug)]
pub(super) struct Signal<'a> {
    pub(super) reason: Reason,
    rank: u8,
    text: String,
    at: Timestamp,
    object: ObjectRef,
    /// The member that it is in; nothing for trouble of the hub itself.
    pub(super) cluster: Option<&'a str>,
    container: Option<String>,
    extent: Extent,
}

/// How much of a service a signal touches.
#[derive(Clone, Copy, Debug)]
enum Extent {
    /// So many groups of the member, by an object that stands for all of them.
    Groups(u32),
    /// The group of this number; others may touch the same one.
    Group(u32),
    /// One pod that is a group of its own.
    Pod,
}

impl Signal<'_> {
    /// Whether a member refused an object.
    pub(super) fn is_refusal(&self) -> bool {
        self.rank == MEMBER_REFUSAL
    }

    /// Whether this is what a diagnostic tells, perhaps with other numbers.
    fn is_told_by(&self, told: &Diagnostic) -> bool {
        self.has_word(&told.reason)
            && self.cluster == told.cluster.as_deref()
            && self.object == told.involved_object
            && self.container == told.container
    }

    fn has_word(&self, reason: &str) -> bool {
        self.reason.as_str() == reason || other_word(self.reason).is_some_and(|other| other.as_str() == reason)
    }
}

/// Reason and text for a placement, which knows its cluster already: of the worst signals, which come first, the one
/// that is told already, else the first.
pub(super) fn for_placement(signals: &[Signal<'_>], before: Option<&Placement>) -> Option<(String, String)> {
    let first = signals.first()?;
    let told = before.and_then(|p| p.reason.as_ref().zip(p.message.as_ref()));
    let prefix = |signal: &Signal<'_>| format!("{}: ", signal.object.name);
    let is_told = |s: &&Signal<'_>| told.is_some_and(|(reason, message)| s.has_word(reason) && message.starts_with(&prefix(s)));
    let signal = signals.iter().take_while(|s| s.rank == first.rank).find(is_told).unwrap_or(first);
    if let Some((reason, message)) = told.filter(|(reason, _)| is_told(&signal) && *reason != signal.reason.as_str()) {
        return Some((reason.clone(), message.clone()));
    }
    let text = text::cut_bytes(format!("{}{}", prefix(signal), signal.text), text::PLACEMENT_LIMIT);
    Some((signal.reason.as_str().to_owned(), text))
}

/// All trouble of one share, worst first.
pub(super) fn of_share<'a>(facts: &Facts<'a>, share: &Share<'a>, cleaner: &Cleaner) -> Vec<Signal<'a>> {
    let mut signals = Vec::new();
    if !share.fresh {
        signals.push(unseen(facts, share, cleaner));
        return signals;
    }
    let Some(seen) = share.seen.filter(|_| !share.done) else { return signals };
    let signal = |rank, reason, text: &str, at, object: &ObjectRef, container: Option<&String>, extent| Signal {
        reason,
        rank,
        text: cleaner.clean(text),
        at: second(at),
        object: object.clone(),
        cluster: Some(share.cluster),
        container: container.cloned(),
        extent,
    };
    let all = Extent::Groups(share.wanted.max(1));
    let missing = |reason| {
        let counts = share.known();
        let there = if reason == Reason::FailedCreate { counts.current } else { counts.ready };
        Extent::Groups(share.wanted.saturating_sub(there).max(1))
    };
    if let ApplyState::Failed { reason, message, at, object } = &seen.applied {
        // Whatever word it bears: it was the member that didn't take the object.
        signals.push(signal(MEMBER_REFUSAL, *reason, message, *at, object, None, all));
    }
    if let Some(view) = share.view {
        let object = object_of(view);
        if let Some(at) = view.deletion_timestamp.filter(|_| !share.leaving) {
            signals.push(signal(MEMBER_REFUSAL, Reason::WaitingForDeletion, &deletion(seen), at, &object, None, all));
        }
        if share.observed {
            for (reason, text, at) in conditions(view) {
                signals.push(signal(rank(reason), reason, &text, at, &object, None, missing(reason)));
            }
        }
    }
    for found in &seen.signals {
        let extent = match found.group {
            Some(group) => Extent::Group(group),
            None if found.object.kind == "Pod" => Extent::Pod,
            None => missing(found.reason),
        };
        signals.push(signal(rank(found.reason), found.reason, &found.message, found.at, &found.object, found.container.as_ref(), extent));
    }
    signals.sort_by(order);
    signals
}

/// What is being deleted waits for its pods, and a pod on a silent node for that node.
fn deletion(seen: &MemberObservation) -> String {
    let text = "it is being deleted there, and is made anew when it is gone";
    let held = seen.signals.iter().filter(|s| s.reason == Reason::NodeLost).min_by(|a, b| a.object.name.cmp(&b.object.name));
    held.map_or_else(|| text.to_owned(), |held| format!("{text}; it waits for {} {}: {}", held.object.kind, held.object.name, held.message))
}

/// What the hub itself has to say: it refused, or it found no place.
pub(super) fn of_hub<'a>(facts: &Facts<'a>, unplaced: u32, cleaner: &Cleaner) -> Option<Signal<'a>> {
    let object = ObjectRef {
        kind: "InferenceService".to_owned(),
        namespace: facts.service.metadata.namespace.clone(),
        name: facts.service.metadata.name.clone().unwrap_or_default(),
    };
    let signal = |rank, reason, text: String, at, cluster, groups| Signal {
        reason,
        rank,
        text: cleaner.clean(&text),
        at: second(at),
        object,
        cluster,
        container: None,
        extent: Extent::Groups(groups),
    };
    if let Err(refusal) = facts.rendered {
        let at = since(facts, refusal.reason);
        return Some(signal(HUB_REFUSAL, refusal.reason, refusal.message.clone(), at, None, wanted(facts)));
    }
    if unplaced == 0 {
        return None;
    }
    let best = best_rejection(facts);
    let text = match best {
        Some(best) => format!("{}: {}", best.reason, best.message),
        None => "no cluster is registered and ready".to_owned(),
    };
    let cluster = best.map(|r| r.cluster.as_str());
    Some(signal(UNPLACED, Reason::Unplaced, text, since(facts, Reason::Unplaced), cluster, unplaced))
}

/// The most informative rejection: of the plan, else of the one that the status tells of.
pub(super) fn best_rejection<'a>(facts: &Facts<'a>) -> Option<&'a Rejection> {
    match facts.plan {
        Some(plan) => plan.rejections.first(),
        None => facts.service.status.as_ref()?.rejections.first(),
    }
}

/// The best of the signals, as it stands in the status: by rank, then by how many groups its reason touches in all
/// members together, then the newest, then by name. Of signals that are equal up to their time the one that is told
/// already stays: groups that crash in turn would take turns in the status.
pub(super) fn pick<'a>(signals: &[Signal<'a>], before: Option<&Diagnostic>) -> Option<Picked<'a>> {
    let rank = signals.iter().map(|s| s.rank).min()?;
    let is_news = |s: &Signal<'_>| !before.is_some_and(|b| s.is_told_by(b));
    let worst: Vec<_> = signals.iter().filter(|s| s.rank == rank).collect();
    let mut by_reason: BTreeMap<Reason, u32> = BTreeMap::new();
    let mut best: Option<(&Signal<'a>, u32)> = None;
    for signal in &worst {
        let word = signal.reason.as_str();
        let groups = *by_reason.entry(signal.reason).or_insert_with(|| touched(worst.iter().copied().filter(|s| s.has_word(word))));
        let better = best.is_none_or(|(other, others)| {
            let news = || is_news(signal).cmp(&is_news(other));
            groups.cmp(&others).reverse().then_with(news).then_with(|| order(signal, other)).is_lt()
        });
        if better {
            best = Some((signal, groups));
        }
    }
    let (signal, groups) = best?;
    let name = signal.object.name.as_str();
    let prefix = match signal.cluster {
        Some(cluster) => format!("{cluster}/{name}: "),
        None => String::new(),
    };
    let plural = if groups == 1 { "group" } else { "groups" };
    let diagnostic = Diagnostic {
        reason: signal.reason.as_str().to_owned(),
        message: text::compose(&prefix, &signal.text, &format!(" ({groups} {plural} affected)")),
        observed_at: Time(signal.at),
        involved_object: signal.object.clone(),
        cluster: signal.cluster.map(str::to_owned),
        container: signal.container.clone(),
    };
    Some(Picked { reason: signal.reason, cluster: signal.cluster, diagnostic })
}

/// Groups that signals touch together, each once.
fn touched<'s, 'a: 's>(signals: impl Iterator<Item = &'s Signal<'a>>) -> u32 {
    #[derive(Default)]
    struct Touched {
        whole: u32,
        groups: BTreeSet<u32>,
        pods: u32,
    }
    let mut members: BTreeMap<Option<&str>, Touched> = BTreeMap::new();
    for signal in signals {
        let member = members.entry(signal.cluster).or_default();
        match signal.extent {
            // A condition and an event tell of the same groups.
            Extent::Groups(groups) => member.whole = member.whole.max(groups),
            Extent::Group(group) => {
                member.groups.insert(group);
            }
            Extent::Pod => member.pods = member.pods.saturating_add(1),
        }
    }
    members.into_values().fold(0, |sum: u32, member| {
        let groups = u32::try_from(member.groups.len()).unwrap_or(u32::MAX);
        sum.saturating_add(member.whole).saturating_add(groups).saturating_add(member.pods)
    })
}

/// The picked signal.
#[derive(Clone, Debug)]
pub(super) struct Picked<'a> {
    pub(super) reason: Reason,
    pub(super) cluster: Option<&'a str>,
    pub(super) diagnostic: Diagnostic,
}

/// Keeps a diagnostic from flapping between two words for one state of one container.
pub(super) fn steady(picked: &mut Picked<'_>, before: Option<&Diagnostic>) {
    let groups = |message: &str| message.rsplit_once(" (").map(|(_, tail)| tail.to_owned());
    let same_place =
        |a: &Diagnostic, b: &Diagnostic| a.cluster == b.cluster && a.container == b.container && a.involved_object == b.involved_object;
    let now = &picked.diagnostic;
    let Some(before) = before.filter(|b| same_place(b, now) && groups(&b.message) == groups(&now.message)) else { return };
    if let Some(reason) = other_word(picked.reason).filter(|r| r.as_str() == before.reason) {
        picked.reason = reason;
        picked.diagnostic = before.clone();
    }
}

/// The kubelet says `ErrImagePull` while it tries and `ImagePullBackOff` while it waits: two words for one state.
fn other_word(reason: Reason) -> Option<Reason> {
    match reason {
        Reason::ErrImagePull => Some(Reason::ImagePullBackOff),
        Reason::ImagePullBackOff => Some(Reason::ErrImagePull),
        _ => None,
    }
}

/// Worst first: rank, then the newest, then by name, so that equal facts are always told alike.
fn order(a: &Signal<'_>, b: &Signal<'_>) -> std::cmp::Ordering {
    let name = |s: &Signal<'_>| (s.cluster.map(str::to_owned), s.object.name.clone(), s.reason, s.container.clone());
    a.rank.cmp(&b.rank).then_with(|| b.at.cmp(&a.at)).then_with(|| name(a).cmp(&name(b)))
}

fn unseen<'a>(facts: &Facts<'a>, share: &Share<'a>, cleaner: &Cleaner) -> Signal<'a> {
    let trouble = share.seen.and_then(|s| s.trouble.as_ref());
    let reason = trouble.map_or(Reason::MemberUnreachable, |t| t.reason);
    let text = match (trouble, share.seen) {
        (Some(trouble), _) => trouble.message.clone(),
        (None, Some(_)) => "the cluster doesn't answer".to_owned(),
        (None, None) => "the cluster isn't registered any more".to_owned(),
    };
    let at = trouble.map_or_else(|| share.last_seen(facts.now), |t| t.since);
    Signal {
        reason,
        rank: MEMBER_UNSEEN,
        text: cleaner.clean(&text),
        at: second(at),
        object: ObjectRef { kind: "MemberCluster".to_owned(), namespace: None, name: share.cluster.to_owned() },
        cluster: Some(share.cluster),
        container: None,
        extent: Extent::Groups(share.wanted.max(1)),
    }
}

/// Conditions of a workload that name a cause. Others are copied, never believed: some keep the words of the state
/// that they have left.
fn conditions(view: &WorkloadView) -> Vec<(Reason, String, Timestamp)> {
    let field = |condition: &Value, key: &str| condition.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    view.conditions
        .iter()
        .filter_map(|condition| {
            let (type_, status, reason) = (field(condition, "type"), field(condition, "status"), field(condition, "reason"));
            let reason = match (type_.as_str(), status.as_str(), reason.as_str()) {
                ("ReplicaFailure", "True", "FailedCreate") => Reason::FailedCreate,
                ("Progressing", "False", "ProgressDeadlineExceeded") => Reason::ProgressDeadlineExceeded,
                _ => return None,
            };
            let at = field(condition, "lastTransitionTime").parse().unwrap_or(Timestamp::UNIX_EPOCH);
            Some((reason, field(condition, "message"), at))
        })
        .collect()
}

fn object_of(view: &WorkloadView) -> ObjectRef {
    ObjectRef { kind: view.kind.as_str().to_owned(), namespace: Some(view.namespace.clone()), name: view.name.clone() }
}

fn wanted(facts: &Facts<'_>) -> u32 {
    super::report::wanted(facts.service)
}

/// Since when the hub has said so: what the status has, else now. Only for what has its rank to itself, since a time
/// that isn't stored must not decide between two signals.
fn since(facts: &Facts<'_>, reason: Reason) -> Timestamp {
    let before = facts.service.status.as_ref().and_then(|s| s.workload.as_ref()?.diagnostic.as_ref());
    before.filter(|d| d.reason == reason.as_str()).map_or(facts.now, |d| d.observed_at.0)
}
