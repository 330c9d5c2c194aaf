//! What services may be called, and what their Services are called.

use super::*;
use crate::api::names::is_dns_1035_label;

/// What comes of a service with a name of so many letters.
fn named(letters: usize, size: u32, replicas: u32, rollout: &Value) -> Result<Workload, Refusal> {
    let mut spec = group(size);
    spec["replicas"] = json!(replicas);
    spec["rolloutStrategy"] = rollout.clone();
    build(&owner(&"a".repeat(letters), &NONE), &rendered(spec))
}

#[test]
fn a_group_index_leaves_less_room_for_the_name() {
    let none = Value::Null;
    let surge = |n: &str| json!({"rollingUpdate": {"maxSurge": serde_json::from_str::<Value>(n).unwrap()}});
    // Letters of the name, size, replicas, rollout; whether it is allowed, and whether a warning tells of growth.
    for (letters, size, replicas, rollout, allowed, warned) in [
        (52, 1, 5000, none.clone(), true, false),
        (53, 1, 1, none.clone(), false, false),
        (48, 2, 1, none.clone(), true, false),
        (49, 2, 1, none.clone(), true, true),
        (50, 2, 0, none.clone(), true, true),
        (50, 2, 10, none.clone(), true, true),
        (50, 2, 11, none.clone(), false, false),
        (51, 2, 5, none.clone(), false, false),
        (51, 2, 0, none.clone(), false, false),
        (49, 2, 100, none.clone(), true, true),
        (49, 2, 101, none.clone(), false, false),
        (48, 2, 1000, none.clone(), true, false),
        (48, 2, 1001, none.clone(), false, false),
        (47, 2, 10_000, none.clone(), true, false),
        (50, 2, 9, surge("1"), true, true),
        (50, 2, 10, surge("1"), false, false),
        (50, 2, 10, surge("\"1%\""), false, false),
        // A surge is capped at the replicas.
        (50, 2, 5, surge("100"), true, true),
    ] {
        let outcome = named(letters, size, replicas, &rollout);
        let what = format!("{letters} letters, size {size}, {replicas} replicas, {rollout}: {outcome:?}");
        match outcome {
            Ok(workload) => assert_eq!((true, !workload.warnings.is_empty()), (allowed, warned), "{what}"),
            Err(refusal) => assert_eq!((refusal.reason, false), (Reason::NameNotAllowed, allowed), "{what}"),
        }
    }
    assert!(named(50, 2, 1, &none).unwrap().warnings[0].contains("beyond 10 groups"));
    assert!(named(49, 2, 1, &none).unwrap().warnings[0].contains("beyond 100 groups"));
}

#[test]
fn i25_a_long_name_that_starts_with_a_digit_is_fine_until_it_names_groups() {
    let name = format!("70b-{}", "a".repeat(56));
    build(&owner(&name, &NONE), &rendered(minimal())).unwrap();
    let refusal = build(&owner(&name, &NONE), &rendered(group(2))).unwrap_err();
    assert_eq!(refusal.reason, Reason::NameNotAllowed);
    for part in [name.as_str(), "at most 50", "a letter first"] {
        assert!(refusal.message.contains(part), "{part:?} is not in {refusal}");
    }
}

#[test]
fn i25_a_group_is_named_like_a_service_and_a_deployment_like_most_objects() {
    for (name, deployment, lws) in [
        ("chat", true, true),
        ("70b-chat", true, false),
        ("chat.v2", true, false),
        ("Chat", false, false),
        ("chat-", false, false),
        ("a..b", false, false),
        ("", false, false),
    ] {
        for (spec, allowed) in [(minimal(), deployment), (group(2), lws)] {
            match build(&owner(name, &NONE), &rendered(spec)) {
                Ok(_) => assert!(allowed, "{name:?}"),
                Err(refusal) => {
                    assert!(!allowed && refusal.reason == Reason::NameNotAllowed, "{refusal}");
                    assert!(refusal.message.contains(&format!("{name:?}")), "{refusal}");
                }
            }
        }
    }
}

#[test]
fn a_service_is_named_after_the_service_or_after_its_hash() {
    let longest = "a".repeat(55);
    assert_eq!(service_name("chat"), "chat-service");
    assert_eq!(service_name(&longest), format!("{longest}-service"));
    let hash = |name: &str| crate::api::labels::digest(name, 5);
    assert_eq!(service_name("70b-chat"), format!("svc-70b-chat-{}", hash("70b-chat")));
    assert_eq!(service_name("chat.v2"), format!("svc-chat-v2-{}", hash("chat.v2")));
    let long = "a".repeat(56);
    assert_eq!(service_name(&long), format!("svc-{}-{}", "a".repeat(40), hash(&long)));
    assert_ne!(service_name("a.b"), service_name("a-b.c"));
    for name in ["70b", "a.b", &"9.".repeat(120), &long] {
        assert!(is_dns_1035_label(&service_name(name)), "{name}");
    }
}
