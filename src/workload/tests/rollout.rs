//! Rollout strategies, for whole services and for shares.

use super::*;

fn with(mut spec: Value, strategy: &Value) -> Workload {
    spec["rolloutStrategy"] = strategy.clone();
    build(&owner("chat", &NONE), &rendered(spec)).unwrap()
}

fn update(surge: impl Into<Value>, unavailable: impl Into<Value>) -> Value {
    json!({"maxSurge": surge.into(), "maxUnavailable": unavailable.into()})
}

#[test]
fn percentages_become_whole_groups_of_the_share_of_a_deployment() {
    for (written, share, want) in [
        (update("25%", "25%"), 1, update(1, 0)),
        (update("25%", "25%"), 4, update(1, 1)),
        (update("25%", "25%"), 5, update(2, 1)),
        (update("25%", "25%"), 8, update(2, 2)),
        (update(0, "25%"), 3, update(0, 1)),
        (update("25%", "25%"), 0, update(0, 1)),
        (update("0%", "100%"), 3, update(0, 3)),
        (update(2, 0), 1, update(2, 0)),
        (update("200%", 0), 2, update(4, 0)),
        (json!({"maxUnavailable": "50%"}), 3, json!({"maxUnavailable": 1})),
        (json!({"maxSurge": "50%"}), 3, json!({"maxSurge": 2})),
    ] {
        let object = with(minimal(), &json!({"type": "RollingUpdate", "rollingUpdate": written})).manifest(share);
        assert_eq!(object["spec"]["strategy"], json!({"type": "RollingUpdate", "rollingUpdate": want}), "{written} of {share}");
    }
    let object = with(minimal(), &json!({"type": "Recreate"})).manifest(2);
    assert_eq!(object["spec"]["strategy"], json!({"type": "Recreate"}));
}

#[test]
fn percentages_become_whole_groups_of_the_share_of_a_leader_worker_set() {
    for (written, share, want) in [
        (update("25%", "30%"), 3, update(1, 0)),
        (update(0, "30%"), 3, update(0, 1)),
        (update(0, "30%"), 4, update(0, 1)),
        (update(0, "50%"), 4, update(0, 2)),
        // Without a word of it nothing may exist in addition.
        (json!({"maxUnavailable": "30%"}), 3, json!({"maxUnavailable": 1})),
        (json!({"maxSurge": "30%"}), 3, json!({"maxSurge": 1})),
        // No more may exist in addition than there are.
        (update("200%", 0), 2, update(2, 0)),
        (update(5, 0), 2, update(2, 0)),
        (update(1, 0), 0, update(0, 1)),
        (json!({"maxUnavailable": 1, "maxSurge": 0, "partition": 3}), 2, json!({"maxUnavailable": 1, "maxSurge": 0, "partition": 3})),
        (json!({"partition": 0}), 2, json!({"partition": 0})),
    ] {
        let workload = with(group(2), &json!({"type": "RollingUpdate", "rollingUpdate": written}));
        let want = json!({"type": "RollingUpdate", "rollingUpdateConfiguration": want});
        assert_eq!(workload.manifest(share)["spec"]["rolloutStrategy"], want, "{written} of {share}");
    }
    let alone = with(group(2), &json!({"type": "RollingUpdate"}));
    assert_eq!(alone.manifest(2)["spec"]["rolloutStrategy"], json!({"type": "RollingUpdate"}));
    assert_eq!(with(group(2), &json!({"rollingUpdate": {"partition": 3}})).partition, 3);
    assert_eq!((with(group(2), &Value::Null).partition, with(minimal(), &Value::Null).partition), (0, 0));
}

#[test]
fn a_rollout_that_takes_nothing_away_first_needs_spare_room() {
    let rolling = |update: Value| json!({"type": "RollingUpdate", "rollingUpdate": update});
    for (strategy, share, deployment, lws) in [
        (Value::Null, 0, 0, 0),
        (Value::Null, 1, 1, 0),
        (Value::Null, 2, 1, 0),
        (Value::Null, 3, 1, 0),
        (Value::Null, 4, 0, 0),
        (rolling(update(0, 1)), 1, 0, 0),
        (rolling(update("50%", 0)), 8, 1, 1),
        (rolling(update(3, 0)), 8, 1, 1),
        (rolling(update(0, "25%")), 1, 0, 0),
        (rolling(json!({"maxUnavailable": "25%"})), 3, 1, 0),
        (rolling(json!({"maxSurge": 1})), 3, 1, 0),
    ] {
        let spare = |spec| with(spec, &strategy).rollout_spare(share);
        assert_eq!((spare(minimal()), spare(group(2))), (deployment, lws), "{strategy} of {share}");
    }
    assert_eq!(with(minimal(), &json!({"type": "Recreate"})).rollout_spare(1), 0);
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    fn bound() -> impl Strategy<Value = Option<Value>> {
        prop_oneof![Just(None), (0..5_u32).prop_map(|n| Some(json!(n))), (0..=100_u32).prop_map(|n| Some(json!(format!("{n}%"))))]
    }

    proptest! {
        #[test]
        fn shares_differ_in_replicas_and_whole_bounds_alone(surge in bound(), unavailable in bound(), lws: bool, share in 0..50_u32) {
            let mut update = json!({});
            for (field, bound) in [("maxSurge", &surge), ("maxUnavailable", &unavailable)] {
                if let Some(bound) = bound {
                    update[field] = bound.clone();
                }
            }
            let strategy = json!({"type": "RollingUpdate", "rollingUpdate": update});
            let workload = with(if lws { group(2) } else { minimal() }, &strategy);
            let (field, inner) = if lws { ("rolloutStrategy", "rollingUpdateConfiguration") } else { ("strategy", "rollingUpdate") };

            let (mut one, mut other) = (workload.manifest(share), workload.manifest(share + 1));
            prop_assert_eq!(&one["spec"]["replicas"], share);
            prop_assert_eq!(&one["spec"][field], &workload.rollout.for_share(share).unwrap());
            let resolved = one["spec"][field][inner].clone();
            for object in [&mut one, &mut other] {
                let spec = object["spec"].as_object_mut().unwrap();
                spec.remove("replicas");
                spec.remove(field);
            }
            prop_assert_eq!(one, other);

            let number = |name: &str| resolved.get(name).map(|value| value.as_u64().unwrap());
            let (surge_now, unavailable_now) = (number("maxSurge"), number("maxUnavailable"));
            prop_assert_eq!((surge_now.is_some(), unavailable_now.is_some()), (surge.is_some(), unavailable.is_some()));
            // What a LeaderWorkerSet's webhook refuses, with its own default of no surge.
            let surges = surge_now.unwrap_or(u64::from(!lws));
            prop_assert!(surges > 0 || unavailable_now.unwrap_or(1) > 0, "{}", resolved);
            if lws {
                prop_assert!(surges <= u64::from(share));
            }
            let missing = unavailable_now.unwrap_or(if lws { 1 } else { u64::from(share) / 4 });
            prop_assert_eq!(workload.rollout_spare(share) > 0, share > 0 && missing == 0 && surges > 0);
        }
    }
}
