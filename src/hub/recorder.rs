//! Events beside services on the hub: one for each service and reason in a minute.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client, Resource as _};
use tokio::sync::mpsc;

use crate::api::labels::{FIELD_MANAGER, digest};
use crate::api::odin::InferenceService;
use crate::api::reason::Reason;
use crate::status::Notice;

/// Notes that may wait; more are dropped, since an event is for people and no part of the work.
const QUEUE: usize = 1024;
/// How long the first note of a kind waits for those that belong to it.
const GATHER: Duration = Duration::from_millis(500);
/// Least time between two events of one service and reason.
const INTERVAL: Duration = Duration::from_secs(60);
/// Most bytes of a note, by the API.
const NOTE_LIMIT: usize = 1024;
/// Characters of a service's name that its events bear: with time and reason they must fit into a name of 253.
const NAME_KEPT: usize = 200;

/// Takes notes for the task that writes events; cheap to clone, and never waits.
#[derive(Clone)]
pub(crate) struct Recorder {
    notes: mpsc::Sender<Note>,
}

/// What happened to a service, and in which member if it was one.
struct Note {
    service: ObjectReference,
    member: Option<String>,
    notice: Notice,
}

impl Recorder {
    /// Notes what happened to a service.
    pub(crate) fn tell(&self, service: &InferenceService, member: Option<&str>, notices: Vec<Notice>) {
        for notice in notices {
            let note = Note { service: service.object_ref(&()), member: member.map(str::to_owned), notice };
            if self.notes.try_send(note).is_err() {
                tracing::debug!("an event was dropped: too many wait");
            }
        }
    }
}

/// The task that writes events, to be run for as long as the hub does, and what gives it notes.
pub(crate) fn start(client: Client, hub_id: &str) -> (impl Future<Output = ()> + Send + use<>, Recorder) {
    let (notes, inbox) = mpsc::channel(QUEUE);
    (record(client, hub_id.to_owned(), inbox), Recorder { notes })
}

async fn record(client: Client, hub_id: String, mut inbox: mpsc::Receiver<Note>) {
    let mut pace = Pace::default();
    loop {
        let next = async {
            match pace.next() {
                Some(due) => tokio::time::sleep_until(due.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            note = inbox.recv() => {
                let Some(note) = note else { return std::future::pending().await };
                pace.note(note, Instant::now());
            }
            () = next => {}
        }
        for (service, notice) in pace.due(Instant::now()) {
            write(&client, &hub_id, service, &notice).await;
        }
    }
}

async fn write(client: &Client, hub_id: &str, service: ObjectReference, notice: &Notice) {
    let namespace = service.namespace.clone().unwrap_or_default();
    let event = event(hub_id, service, notice, Timestamp::now());
    let api: Api<Event> = Api::namespaced(client.clone(), &namespace);
    if let Err(error) = api.create(&PostParams::default(), &event).await {
        tracing::debug!(%error, namespace, reason = %notice.reason, "an event could not be written");
    }
}

fn event(hub_id: &str, service: ObjectReference, notice: &Notice, now: Timestamp) -> Event {
    let kept: String = service.name.iter().flat_map(|name| name.chars()).take(NAME_KEPT).collect();
    // Two reasons of one moment must not meet in one name.
    let name = format!("{}.{:x}.{}", kept.trim_end_matches(['-', '.']), now.as_nanosecond(), digest(notice.reason.as_str(), 2));
    let mut text = notice.message.clone();
    let mut end = text.len().min(NOTE_LIMIT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    Event {
        metadata: ObjectMeta { name: Some(name), namespace: service.namespace.clone(), ..ObjectMeta::default() },
        event_time: Some(MicroTime(now)),
        reporting_controller: Some(FIELD_MANAGER.to_owned()),
        reporting_instance: Some(hub_id.to_owned()),
        action: Some("Reconcile".to_owned()),
        reason: Some(notice.reason.to_string()),
        type_: Some(if notice.warning { "Warning" } else { "Normal" }.to_owned()),
        note: Some(text),
        regarding: Some(service),
        ..Event::default()
    }
}

/// UID of a service and what happened to it.
type Kind = (String, Reason);

/// Which events are due when.
#[derive(Default)]
struct Pace {
    entries: BTreeMap<Kind, Entry>,
}

struct Entry {
    service: ObjectReference,
    /// When the last event of the kind was written.
    written: Option<Instant>,
    /// When what waits is due.
    due: Instant,
    /// The newest note, and the members that it and those before it were about.
    waiting: Option<(Notice, BTreeSet<String>)>,
}

impl Pace {
    fn note(&mut self, note: Note, now: Instant) {
        let kind = (note.service.uid.clone().unwrap_or_default(), note.notice.reason);
        let entry = self.entries.entry(kind).or_insert_with(|| Entry { service: note.service, written: None, due: now, waiting: None });
        if entry.waiting.is_none() {
            let earliest = entry.written.map_or(now, |written| written + INTERVAL);
            entry.due = earliest.max(now + GATHER);
        }
        let mut members = entry.waiting.take().map(|(_, members)| members).unwrap_or_default();
        members.extend(note.member);
        entry.waiting = Some((note.notice, members));
    }

    /// When the next event is due.
    fn next(&self) -> Option<Instant> {
        self.entries.values().filter(|entry| entry.waiting.is_some()).map(|entry| entry.due).min()
    }

    /// The events that are due, with the number of members where there are several.
    fn due(&mut self, now: Instant) -> Vec<(ObjectReference, Notice)> {
        let mut due = Vec::new();
        for entry in self.entries.values_mut().filter(|entry| entry.due <= now) {
            if let Some((mut notice, members)) = entry.waiting.take() {
                if members.len() > 1 {
                    notice.message = format!("{} (in {} clusters)", notice.message, members.len());
                }
                entry.written = Some(now);
                due.push((entry.service.clone(), notice));
            }
        }
        self.entries.retain(|_, entry| entry.waiting.is_some() || entry.written.is_some_and(|written| now < written + INTERVAL));
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(uid: &str, reason: Reason, member: &str, message: &str) -> Note {
        let service = ObjectReference { uid: Some(uid.to_owned()), name: Some("chat".to_owned()), ..ObjectReference::default() };
        let notice = Notice { reason, warning: true, message: message.to_owned() };
        Note { service, member: Some(member.to_owned()), notice }
    }

    #[test]
    fn one_event_a_minute_for_each_service_and_reason_with_members_summed() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let at = |ms: u64| start + Duration::from_millis(ms);
        let told = |pace: &mut Pace, ms: u64| -> Vec<String> { pace.due(at(ms)).into_iter().map(|(_, notice)| notice.message).collect() };
        assert_eq!(pace.next(), None);
        pace.note(note("1", Reason::ApplyDenied, "a", "no"), at(0));
        pace.note(note("1", Reason::ApplyDenied, "b", "never"), at(100));
        pace.note(note("1", Reason::Placed, "a", "there"), at(100));
        pace.note(note("2", Reason::ApplyDenied, "a", "nor here"), at(100));
        assert_eq!(told(&mut pace, 499), [""; 0]);
        assert_eq!(told(&mut pace, 600), ["never (in 2 clusters)", "there", "nor here"]);
        for second in [1, 30, 59] {
            pace.note(note("1", Reason::ApplyDenied, "a", "again"), at(second * 1000));
        }
        assert_eq!(pace.next(), Some(at(60_600)), "a minute after the last");
        assert_eq!(told(&mut pace, 60_599), [""; 0]);
        assert_eq!(told(&mut pace, 60_600), ["again"]);
        assert_eq!(pace.next(), None);
        assert!(pace.due(at(200_000)).is_empty() && pace.entries.is_empty(), "nothing is remembered for ever");
    }

    #[test]
    fn an_event_stands_beside_its_service_and_fits() {
        let service = ObjectReference { namespace: Some("team".to_owned()), name: Some("chat".to_owned()), ..ObjectReference::default() };
        let notice = Notice { reason: Reason::ApplyDenied, warning: true, message: "ä".repeat(1000) };
        let event = event("hub-1", service, &notice, Timestamp::UNIX_EPOCH);
        assert_eq!((event.metadata.namespace.as_deref(), event.type_.as_deref()), (Some("team"), Some("Warning")));
        assert_eq!(event.note.map(|note| note.len()), Some(1024));
    }

    #[test]
    fn the_event_of_a_service_with_a_long_name_has_a_name_that_is_allowed() {
        let service = ObjectReference { name: Some(format!("{}-{}", "a".repeat(199), "b".repeat(53))), ..ObjectReference::default() };
        let notice = Notice { reason: Reason::Placed, warning: false, message: String::new() };
        let name = event("hub-1", service, &notice, "2030-01-01T00:00:00Z".parse().unwrap()).metadata.name.unwrap();
        assert!(crate::api::names::is_subdomain(&name), "{name}");
    }
}
