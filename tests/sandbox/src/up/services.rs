//! Waiting for members and services, and telling why one fits nowhere.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use kube::Client;
use sandbox::{Cluster, eventually};
use serde_json::Value;

/// Label of a service that says which state is expected of it; without it, `ready`.
const EXPECT: &str = "odin-hub.sandbox/expect";

const SERVICES: &str = "/apis/odin.moreh.io/v1alpha1/inferenceservices";
const MEMBERS: &str = "/apis/federation.odin.moreh.io/v1alpha1/memberclusters";

/// Waits until the hub says Ready of each member.
pub(super) async fn members_ready(client: &Client, members: &[Arc<Cluster>], limit: Duration, say: impl Fn(&str)) -> Result<()> {
    let told = RefCell::new(BTreeSet::new());
    eventually("every member is Ready", limit, async || {
        let objects = list(client, MEMBERS).await?;
        let mut waiting = Vec::new();
        for member in members.iter().map(|member| member.name()) {
            let object = objects.iter().find(|object| object.pointer("/metadata/name").is_some_and(|name| name == member));
            match object.map(|object| condition(object, "Ready")) {
                Some(Condition { status, .. }) if status == "True" => {
                    if told.borrow_mut().insert(member.to_owned()) {
                        say(&format!("{member} is Ready"));
                    }
                }
                Some(other) => waiting.push(format!("{member} has {other}")),
                None => waiting.push(format!("there is no MemberCluster {member}")),
            }
        }
        ensure!(waiting.is_empty(), "{}", waiting.join("; "));
        Ok(())
    })
    .await
}

/// Waits until each service of the hub is in the state that its label says.
pub(super) async fn expected(client: &Client, limit: Duration, say: impl Fn(&str)) -> Result<()> {
    let told = RefCell::new(BTreeSet::new());
    eventually("every service is in its expected state", limit, async || {
        let objects = list(client, SERVICES).await?;
        ensure!(!objects.is_empty(), "there are no services");
        let mut waiting = Vec::new();
        for object in &objects {
            let name = name(object);
            match judge(object) {
                Ok(state) => {
                    if told.borrow_mut().insert(name.clone()) {
                        say(&format!("{name} is {state}"));
                    }
                }
                Err(why) => waiting.push(format!("{name}: {why}")),
            }
        }
        ensure!(waiting.is_empty(), "\n  {}", waiting.join("\n  "));
        Ok(())
    })
    .await
}

/// Waits until the figures of the members have followed: they are written at most every ten seconds.
pub(super) async fn counted(client: &Client, limit: Duration) -> Result<()> {
    let sum = |objects: &[Value], of: &dyn Fn(&Value) -> usize| objects.iter().map(of).sum::<usize>();
    eventually("the members count their services", limit, async || {
        let placed = sum(&list(client, SERVICES).await?, &|service| {
            service.pointer("/status/placements").and_then(Value::as_array).map_or(0, Vec::len)
        });
        let counted = sum(&list(client, MEMBERS).await?, &|member| {
            member.pointer("/status/services").and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
        });
        ensure!(counted == placed, "{counted} are counted, {placed} are placed");
        Ok(())
    })
    .await
}

/// The state that a service has reached if it is the expected one, else what is seen instead.
fn judge(object: &Value) -> Result<String> {
    let expected = object.pointer("/metadata/labels").and_then(|labels| labels.get(EXPECT)).and_then(Value::as_str).unwrap_or("ready");
    let (wanted, status) = match expected {
        "ready" => ("Ready", "True"),
        "unplaced" => ("Placed", "False"),
        other => return Err(anyhow!("label {EXPECT}: {other:?} is neither ready nor unplaced")),
    };
    let seen = condition(object, wanted);
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
    ensure!(
        seen.generation.is_none() || seen.generation == generation,
        "{seen} of generation {:?}, but it is {generation:?}",
        seen.generation
    );
    ensure!(seen.status == status, "{seen}, not {status}");
    if expected == "ready" {
        let clusters = object.pointer("/status/clusters").and_then(Value::as_str).unwrap_or("unknown");
        return Ok(format!("Ready on {clusters}"));
    }
    let rejections = object.pointer("/status/rejections").and_then(Value::as_array).map_or(0, Vec::len);
    ensure!(rejections > 0, "{seen}, but without rejections");
    Ok(format!("unplaced; rejections: {rejections}"))
}

/// Why services that are expected to fit nowhere don't, for people.
pub(super) async fn rejections(client: &Client) -> Result<String> {
    let mut text = String::new();
    for object in list(client, SERVICES).await? {
        let Some(rejections) = object.pointer("/status/rejections").and_then(Value::as_array).filter(|all| !all.is_empty()) else {
            continue;
        };
        let part = |rejection: &Value, key: &str| rejection.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        writeln!(text, "\nWhy {} is not placed", name(&object))?;
        for rejection in rejections {
            writeln!(text, "  {}: {}: {}", part(rejection, "cluster"), part(rejection, "reason"), part(rejection, "message"))?;
        }
    }
    Ok(text)
}

async fn list(client: &Client, path: &str) -> Result<Vec<Value>> {
    let mut answer: Value = client.request(http::Request::get(path).body(Vec::new())?).await.with_context(|| path.to_owned())?;
    match answer.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => Ok(items),
        other => Err(anyhow!("{path}: no list of items but {other:?}")),
    }
}

fn name(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!("{}/{}", text("/metadata/namespace"), text("/metadata/name"))
}

/// A condition as it is seen; all empty when there is none.
struct Condition {
    kind: String,
    status: String,
    reason: String,
    message: String,
    generation: Option<i64>,
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.status.is_empty() {
            return write!(f, "no condition {}", self.kind);
        }
        write!(f, "{}={} {}", self.kind, self.status, self.reason)?;
        if self.message.is_empty() { Ok(()) } else { write!(f, " ({})", self.message) }
    }
}

fn condition(object: &Value, kind: &str) -> Condition {
    let all = object.pointer("/status/conditions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let found = all.iter().find(|condition| condition.get("type").is_some_and(|found| found == kind));
    let text = |key: &str| found.and_then(|condition| condition.get(key)?.as_str()).unwrap_or_default().to_owned();
    Condition {
        kind: kind.to_owned(),
        status: text("status"),
        reason: text("reason"),
        message: text("message"),
        generation: found.and_then(|condition| condition.get("observedGeneration")?.as_i64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn services_are_judged_by_what_is_expected_of_them() {
        let service = |expect: Option<&str>, condition: Value, rejections: usize| {
            json!({
                "metadata": {"name": "a", "namespace": "n", "generation": 2, "labels": expect.map(|e| json!({EXPECT: e}))},
                "status": {"clusters": "m:1", "conditions": [condition], "rejections": vec![json!({}); rejections]},
            })
        };
        let ready =
            |status: &str, generation: i64| json!({"type": "Ready", "status": status, "reason": "R", "observedGeneration": generation});
        let placed = |status: &str| json!({"type": "Placed", "status": status, "reason": "P", "message": "m"});
        let cases = [
            (service(None, ready("True", 2), 0), Ok("Ready on m:1")),
            (service(Some("ready"), ready("True", 2), 0), Ok("Ready on m:1")),
            (service(None, ready("True", 1), 0), Err("of generation Some(1)")),
            (service(None, ready("False", 2), 0), Err("Ready=False R, not True")),
            (service(None, placed("True"), 0), Err("no condition Ready, not True")),
            (service(Some("unplaced"), placed("False"), 2), Ok("unplaced; rejections: 2")),
            (service(Some("unplaced"), placed("False"), 0), Err("without rejections")),
            (service(Some("unplaced"), placed("True"), 0), Err("Placed=True P (m), not False")),
            (service(Some("redy"), placed("True"), 0), Err("neither ready nor unplaced")),
        ];
        for (object, expected) in cases {
            match (judge(&object), expected) {
                (Ok(state), Ok(expected)) => assert_eq!(state, expected),
                (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}, not {expected}"),
                (judged, expected) => panic!("{judged:?}, not {expected:?}: {object}"),
            }
        }
    }
}
