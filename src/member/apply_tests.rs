use super::*;
use crate::api::labels::{GENERATION, RENDERED_HASH};

fn record(put_back: Option<Instant>) -> Record {
    Record { print: "p".into(), uid: "u".into(), generation: 3, put_back }
}

fn live(uid: &str, generation: i64) -> Deployment {
    serde_json::from_value(
        json!({"metadata": {"name": "chat", "namespace": "team", "uid": uid, "resourceVersion": "1", "generation": generation}}),
    )
    .unwrap()
}

#[test]
fn nothing_is_sent_while_the_member_holds_what_was_applied() {
    let minute = Duration::from_secs(60);
    let now = Instant::now() + Duration::from_secs(1000);
    let ago = |seconds| Some(now.checked_sub(Duration::from_secs(seconds)).unwrap());
    type Case = (&'static str, Option<Record>, &'static str, Option<(Deployment, bool)>, bool, Step);
    let cases: Vec<Case> = vec![
        ("never applied since the start", None, "p", Some((live("u", 3), true)), true, Step::Look),
        ("another manifest", Some(record(None)), "q", Some((live("u", 3), true)), true, Step::Look),
        ("as applied", Some(record(None)), "p", Some((live("u", 3), true)), true, Step::Holds),
        ("the watch is late", Some(record(None)), "p", Some((live("u", 2), false)), true, Step::Holds),
        ("not listed yet", Some(record(None)), "p", None, false, Step::Holds),
        ("gone", Some(record(None)), "p", None, true, Step::Look),
        ("changed", Some(record(None)), "p", Some((live("u", 4), true)), true, Step::Look),
        ("marks changed", Some(record(None)), "p", Some((live("u", 3), false)), true, Step::Look),
        ("replaced", Some(record(None)), "p", Some((live("v", 1), true)), true, Step::Look),
        ("changed again soon", Some(record(ago(20))), "p", Some((live("u", 4), true)), true, Step::Wait(Duration::from_secs(40))),
        ("changed again later", Some(record(ago(60))), "p", Some((live("u", 4), true)), true, Step::Look),
    ];
    for (what, record, wanted, live, known, want) in cases {
        let live = live.as_ref().map(|(live, bears)| (live, *bears));
        assert_eq!(step(record.as_ref(), wanted, live, known, minute, now), want, "{what}");
    }
}

fn object(labels: &Value, more: &Value) -> Value {
    let mut object = json!({"metadata": {"labels": labels}});
    for (key, value) in more.as_object().unwrap() {
        object["metadata"][key] = value.clone();
    }
    object
}

#[test]
fn an_object_that_is_not_ours_names_its_owner() {
    let cases = [
        (object(&json!({HUB: "h", SERVICE_UID: "s"}), &json!({})), None),
        (object(&json!({HUB: "other", SERVICE_UID: "s"}), &json!({})), Some("the hub other")),
        (object(&json!({HUB: "h", SERVICE_UID: "t"}), &json!({"annotations": {SOURCE: "team/old"}})), Some("UID t (team/old)")),
        (object(&json!({SERVICE_UID: "s"}), &json!({})), Some("no mark of this hub")),
        (object(&json!({}), &json!({"ownerReferences": [{"kind": "Rollout", "name": "chat"}]})), Some("Rollout chat")),
        (object(&json!({"app.kubernetes.io/managed-by": "Helm"}), &json!({})), Some("managed by Helm")),
        (
            object(&json!({}), &json!({"managedFields": [{"manager": "kube-controller-manager"}, {"manager": "kubectl"}]})),
            Some("written by kubectl"),
        ),
        (json!({}), Some("no mark of this hub")),
    ];
    for (object, want) in cases {
        let got = foreign_owner(&object, "h", "s");
        match want {
            None => assert_eq!(got, None),
            Some(part) => assert!(got.as_ref().is_some_and(|got| got.contains(part)), "{got:?} for {object}"),
        }
    }
}

#[test]
fn an_answer_tells_what_to_do_next() {
    let later = Some(Duration::from_secs(7));
    let cases = [
        (Failure::Conflict("uid mismatch".into()), Stop::Changed),
        (Failure::AlreadyExists("exists".into()), Stop::Changed),
        (Failure::Denied("metadata.uid: Invalid value: \"x\": field is immutable".into()), Stop::Changed),
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

#[test]
fn marks_are_compared_apart_from_the_generation() {
    let manifest = json!({"metadata": {"labels": {HUB: "h"}, "annotations": {RENDERED_HASH: "a", GENERATION: "2"}}});
    let cases = [
        (json!({"metadata": {"labels": {HUB: "h", "more": "x"}, "annotations": {RENDERED_HASH: "a", GENERATION: "2", "more": "x"}}}), true),
        (json!({"metadata": {"labels": {HUB: "h"}, "annotations": {RENDERED_HASH: "a", GENERATION: "1"}}}), false),
        (json!({"metadata": {"annotations": {RENDERED_HASH: "a", GENERATION: "2"}}}), false),
    ];
    for (object, want) in cases {
        assert_eq!(has_marks_of(&object, &manifest), want, "{object}");
    }
}

#[test]
fn what_holds_a_deletion_is_named() {
    assert_eq!(holders(&json!({"metadata": {"finalizers": ["foregroundDeletion", "x/y"]}})), " and waits for foregroundDeletion, x/y");
    assert_eq!(holders(&json!({"metadata": {}})), "");
}
