//! The one cause of trouble, picked by rank: the nearer to the root, the better.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::counters::Share;
use super::observation::{ApplyState, WorkloadView};
use super::report::{Facts, second};
use super::text::{self, Cleaner};
use crate::api::odin::{Diagnostic, ObjectRef, Placement, Rejection};
use crate::api::reason::Reason;

/// Rank of a reason: lower is nearer to the cause.
pub(super) fn rank(reason: Reason) -> u8 {
    use Reason as R;
    match reason {
        R::ApplyDenied | R::ApplyFailed | R::ObjectConflict | R::NamespaceNotAllowed | R::WaitingForDeletion | R::Forbidden => {
            MEMBER_REFUSAL
        }
        R::FailedCreate => FAILED_CREATE,
        R::ImagePullBackOff | R::ErrImagePull | R::InvalidImageName | R::CreateContainerConfigError | R::RunContainerError => 4,
        R::OomKilled | R::CrashLoopBackOff | R::Error => 5,
        R::Unschedulable | R::SchedulingGated | R::Evicted | R::NodeLost => 6,
        R::Unplaced => UNPLACED,
        R::MemberUnreachable
        | R::CredentialInvalid
        | R::CredentialMissing
        | R::CredentialRefused
        | R::CredentialExpired
        | R::Unreachable
        | R::ClusterReplaced
        | R::Duplicate
        | R::NotSynced
        | R::NotReady => MEMBER_UNSEEN,
        R::ProgressDeadlineExceeded => 9,
        R::ProbeFailing | R::Starting => 10,
        _ => HUB_REFUSAL,
    }
}

/// Whether a reason tells of something that runs, or tries to, in a member.
pub(super) fn is_about_pods(reason: Reason) -> bool {
    let rank = rank(reason);
    rank >= FAILED_CREATE && rank != UNPLACED && rank != MEMBER_UNSEEN
}

const HUB_REFUSAL: u8 = 1;
const MEMBER_REFUSAL: u8 = 2;
const FAILED_CREATE: u8 = 3;
const UNPLACED: u8 = 7;
const MEMBER_UNSEEN: u8 = 8;

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
    groups: u32,
}

impl Signal<'_> {
    /// Whether a member refused an object.
    pub(super) fn is_refusal(&self) -> bool {
        self.rank == MEMBER_REFUSAL
    }

    /// Reason and text for a placement, which knows its cluster already, held as steady as the diagnostic.
    pub(super) fn for_placement(&self, before: Option<&Placement>) -> (String, String) {
        let prefix = format!("{}: ", self.object.name);
        if let Some((reason, message)) = before.and_then(|p| p.reason.as_ref().zip(p.message.as_ref()))
            && other_word(self.reason).is_some_and(|r| r.as_str() == reason)
            && message.starts_with(&prefix)
        {
            return (reason.clone(), message.clone());
        }
        (self.reason.as_str().to_owned(), text::cut_bytes(format!("{prefix}{}", self.text), text::PLACEMENT_LIMIT))
    }
}

/// All trouble of one share, worst first.
pub(super) fn of_share<'a>(facts: &Facts<'a>, share: &Share<'a>, cleaner: &Cleaner) -> Vec<Signal<'a>> {
    let mut signals = Vec::new();
    if !share.fresh {
        signals.push(unseen(facts, share, cleaner));
        return signals;
    }
    let Some(seen) = share.seen.filter(|_| !share.done) else { return signals };
    let signal = |rank, reason, text: &str, at, object: &ObjectRef, container: Option<&String>, groups| Signal {
        reason,
        rank,
        text: cleaner.clean(text),
        at: second(at),
        object: object.clone(),
        cluster: Some(share.cluster),
        container: container.cloned(),
        groups,
    };
    if let ApplyState::Failed { reason, message, at, object } = &seen.applied {
        // Whatever word it bears: it was the member that didn't take the object.
        signals.push(signal(MEMBER_REFUSAL, *reason, message, *at, object, None, share.wanted.max(1)));
    }
    if let Some(view) = &seen.workload {
        let object = object_of(view);
        if let Some(at) = view.deletion_timestamp.filter(|_| !share.leaving) {
            let text = "it is being deleted there, and is made anew when it is gone";
            signals.push(signal(MEMBER_REFUSAL, Reason::WaitingForDeletion, text, at, &object, None, share.wanted.max(1)));
        }
        if share.observed {
            for (reason, text, at) in conditions(view) {
                let missing = if reason == Reason::FailedCreate { view.replicas } else { view.ready };
                let groups = share.wanted.saturating_sub(missing).max(1);
                signals.push(signal(rank(reason), reason, &text, at, &object, None, groups));
            }
        }
    }
    for pod in &seen.pods {
        signals.push(signal(rank(pod.reason), pod.reason, &pod.message, pod.at, &pod.object, pod.container.as_ref(), 1));
    }
    signals.sort_by(order);
    signals
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
        groups,
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
/// members together, then the newest, then by name.
pub(super) fn pick<'a>(signals: &[Signal<'a>]) -> Option<Picked<'a>> {
    let touched = |s: &Signal<'_>| {
        let alike = |o: &Signal<'_>| o.rank == s.rank && (o.reason == s.reason || other_word(o.reason) == Some(s.reason));
        signals.iter().filter(|o| alike(o)).fold(0_u32, |sum, o| sum.saturating_add(o.groups))
    };
    let rank = signals.iter().map(|s| s.rank).min()?;
    let mut best: Option<(&Signal<'a>, u32)> = None;
    for signal in signals.iter().filter(|s| s.rank == rank) {
        let groups = touched(signal);
        let better = best.is_none_or(|(other, others)| groups.cmp(&others).reverse().then_with(|| order(signal, other)).is_lt());
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
        groups: share.wanted.max(1),
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
