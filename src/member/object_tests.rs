use super::*;
use crate::api::labels::{HUB, SOURCE};

fn stamp(uid: &str, generation: i64, version: u64) -> Stamp {
    Stamp { uid: uid.into(), generation, spec: String::new(), version }
}

fn record(put_back: Option<Instant>) -> Record {
    Record { print: "p".into(), stamp: stamp("u", 3, 30), put_back }
}

fn live(uid: &str, generation: i64, version: u64) -> Live {
    Live { stamp: stamp(uid, generation, version), bears: true, leaving: false }
}

#[test]
fn nothing_is_sent_while_the_member_holds_what_was_applied() {
    let minute = Duration::from_secs(60);
    let now = Instant::now() + Duration::from_secs(1000);
    let ago = |seconds| Some(now.checked_sub(Duration::from_secs(seconds)).unwrap());
    let unmarked = |version| Live { bears: false, ..live("u", 3, version) };
    let mut service = live("u", 3, 31);
    service.stamp.spec = "other".into();
    type Case = (&'static str, Option<Record>, &'static str, Option<Live>, bool, Step);
    let cases: Vec<Case> = vec![
        ("never applied since the start", None, "p", Some(live("u", 3, 30)), true, Step::Look),
        ("another manifest", Some(record(None)), "q", Some(live("u", 3, 30)), true, Step::Look),
        ("as applied", Some(record(None)), "p", Some(live("u", 3, 30)), true, Step::Holds),
        ("its status changed", Some(record(None)), "p", Some(live("u", 3, 40)), true, Step::Holds),
        ("the watch is late", Some(record(None)), "p", Some(live("u", 2, 20)), true, Step::Holds),
        ("the watch is late with the marks", Some(record(None)), "p", Some(unmarked(29)), true, Step::Holds),
        ("not listed yet", Some(record(None)), "p", None, false, Step::Holds),
        ("gone", Some(record(None)), "p", None, true, Step::Look),
        ("changed", Some(record(None)), "p", Some(live("u", 4, 31)), true, Step::Look),
        ("changed, without a generation", Some(record(None)), "p", Some(service), true, Step::Look),
        ("marks changed", Some(record(None)), "p", Some(unmarked(31)), true, Step::Look),
        ("being deleted", Some(record(None)), "p", Some(Live { leaving: true, ..live("u", 3, 31) }), true, Step::Look),
        ("replaced", Some(record(None)), "p", Some(live("v", 1, 5)), true, Step::Look),
        ("changed again soon", Some(record(ago(20))), "p", Some(live("u", 4, 31)), true, Step::Wait(Duration::from_secs(40))),
        ("changed again later", Some(record(ago(60))), "p", Some(live("u", 4, 31)), true, Step::Look),
    ];
    for (what, record, wanted, live, known, want) in cases {
        assert_eq!(step(record.as_ref(), wanted, live.as_ref(), known, minute, now), want, "{what}");
    }
}

#[test]
fn what_can_not_stand_side_by_side_is_named_on_both_sides() {
    let labels = BTreeMap::new();
    let manifest = json!({});
    let target = |kind, name| Target {
        kind,
        namespace: "team",
        name,
        manifest: &manifest,
        print: String::new(),
        service_uid: "s",
        namespace_labels: &labels,
        rival: None,
    };
    let helm = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"}}});
    let text = in_the_way(&target(Kind::LeaderWorkerSet, "chat"), Kind::Service, &helm, "h");
    assert!(text.starts_with("LeaderWorkerSet team/chat can't be made beside Service team/chat") && text.contains("Helm"), "{text}");
    let other = json!({"metadata": {"labels": {HUB: "h", SERVICE_UID: "t"}, "annotations": {SOURCE: "team/chat-service"}}});
    let text = in_the_way(&target(Kind::Service, "chat-service"), Kind::LeaderWorkerSet, &other, "h");
    assert!(text.contains("LeaderWorkerSet team/chat-service") && text.contains("(team/chat-service)"), "{text}");
}

#[test]
fn an_answer_tells_what_to_do_next() {
    let later = Some(Duration::from_secs(7));
    let cases = [
        (Failure::Conflict("uid mismatch".into()), Stop::Changed),
        (Failure::AlreadyExists("exists".into()), Stop::Changed),
        (Failure::Denied("metadata.uid: Invalid value: \"x\": field is immutable".into()), Stop::Changed),
        // What an API server says whose webhook is down.
        (
            Failure::Busy { message: "failed calling webhook".into(), after: None },
            Stop::Failed { reason: Reason::ApplyFailed, message: "failed calling webhook".into(), after: None },
        ),
        (Failure::Denied("admission webhook denied".into()), Stop::refused(Reason::ApplyDenied, "admission webhook denied")),
        (Failure::Forbidden("cannot create".into()), Stop::Silent { reason: Reason::ApplyDenied, message: "cannot create".into() }),
        (
            Failure::Busy { message: "slow".into(), after: later },
            Stop::Failed { reason: Reason::ApplyFailed, message: "slow".into(), after: later },
        ),
        (Failure::Unknown("no answer".into()), Stop::Silent { reason: Reason::ApplyFailed, message: "no answer".into() }),
        (Failure::Unreachable("refused".into()), Stop::Silent { reason: Reason::ApplyFailed, message: "refused".into() }),
        (Failure::Unauthorized("Unauthorized".into()), Stop::refused(Reason::CredentialInvalid, "Unauthorized")),
    ];
    for (failure, want) in cases {
        assert_eq!(Stop::from(failure.clone()), want, "{failure:?}");
    }
}
