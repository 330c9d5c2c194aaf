//! The text that is served, and its document.

use std::collections::{BTreeMap, BTreeSet};

use http::{Request, StatusCode};
use jiff::Timestamp;
use sandbox::Exposition;

use super::*;
use crate::api::federation::Accelerator;
use crate::capacity::ServiceKey;

const NOW: i64 = 1_800_000_000;

fn accelerator(model: &str) -> Accelerator {
    Accelerator {
        resource: "amd.com/gpu".to_owned(),
        vendor: Some("amd".to_owned()),
        model: Some(model.to_owned()),
        nodes: 2,
        allocatable: 16,
        used: 5,
        reserved: 1,
        free: 11,
        largest_free_node: 8,
        free_by_node: Vec::new(),
    }
}

fn gauges() -> Gauges {
    let at = |second| Some(Timestamp::from_second(second).unwrap());
    let waits = |items, seconds| Backlog { items, oldest: Duration::from_secs(seconds) };
    let service = |name: &str, unplaced| ServiceGauges { service: ServiceKey::new("team", name), wanted: 4, ready: 2, placed: 3, unplaced };
    Gauges {
        now: at(NOW).unwrap(),
        members: vec![
            MemberGauges {
                name: "gpu-a".to_owned(),
                ready: true,
                reachable: true,
                last_seen: at(NOW - 7),
                credential_end: at(NOW + 60),
                accelerators: vec![accelerator("mi300x")],
                tasks: waits(3, 2),
            },
            MemberGauges { name: "gpu-b".to_owned(), ..MemberGauges::default() },
        ],
        services: vec![service("chat", 1), service("odd\"\\\nname", 0)],
        queues: vec![("service", waits(5, 1)), ("member", Backlog::default())],
    }
}

/// Figures of which each has a value.
fn filled() -> Arc<Metrics> {
    let metrics = Arc::new(Metrics::default());
    metrics.ask(gauges);
    metrics.passed(&Pass { controller: "service", result: "ok" }, Duration::from_millis(3));
    metrics.decided(Duration::from_micros(300));
    metrics.status_written("InferenceService");
    metrics.hub_calls().begin(&Request::get("/version").body(()).unwrap()).answered(StatusCode::OK);
    let member = metrics.member("gpu-a");
    drop(member.calls().begin(&Request::get("/readyz").body(()).unwrap()));
    member.watch_restarted("pods", WatchEnd::Expired);
    member.watch_restarted("pods", WatchEnd::Expired);
    member.applied(Duration::from_millis(20));
    metrics
}

fn read(metrics: &Arc<Metrics>) -> Exposition {
    Exposition::parse(&metrics.exposition(Form::Prometheus).unwrap()).unwrap()
}

#[test]
fn each_figure_is_told_with_its_labels() {
    let read = read(&filled());
    let device = [("member", "gpu-a"), ("resource", "amd.com/gpu"), ("vendor", "amd"), ("model", "mi300x")];
    let chat = [("service_namespace", "team"), ("service_name", "chat")];
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [f64]);
    let cases: &[Case<'_>] = &[
        ("odin_hub_member_ready", &[("member", "gpu-a")], &[1.0]),
        ("odin_hub_member_ready", &[("member", "gpu-b")], &[0.0]),
        ("odin_hub_member_reachable", &[], &[1.0, 0.0]),
        ("odin_hub_member_last_seen_age_seconds", &[], &[7.0]),
        ("odin_hub_member_credential_expiry_timestamp_seconds", &[], &[NOW as f64 + 60.0]),
        ("odin_hub_member_queue_tasks", &[("member", "gpu-a")], &[3.0]),
        ("odin_hub_member_queue_oldest_seconds", &[("member", "gpu-a")], &[2.0]),
        ("odin_hub_member_accelerator_allocatable_devices", &device, &[16.0]),
        ("odin_hub_member_accelerator_used_devices", &device, &[5.0]),
        ("odin_hub_member_accelerator_reserved_devices", &device, &[1.0]),
        ("odin_hub_member_accelerator_free_devices", &device, &[11.0]),
        ("odin_hub_member_accelerator_largest_free_node_devices", &device, &[8.0]),
        ("odin_hub_service_wanted_groups", &chat, &[4.0]),
        ("odin_hub_service_ready_groups", &chat, &[2.0]),
        ("odin_hub_service_placed_groups", &chat, &[3.0]),
        ("odin_hub_service_unplaced_groups", &chat, &[1.0]),
        ("odin_hub_service_wanted_groups", &[("service_name", "odd\"\\\nname")], &[4.0]),
        ("odin_hub_queue_items", &[("controller", "service")], &[5.0]),
        ("odin_hub_queue_oldest_seconds", &[("controller", "service")], &[1.0]),
        ("odin_hub_requests_total", &[("member", ""), ("verb", "get"), ("code", "200")], &[1.0]),
        ("odin_hub_requests_total", &[("member", "gpu-a"), ("verb", "get"), ("code", "error")], &[1.0]),
        ("odin_hub_request_duration_seconds_count", &[("member", "gpu-a"), ("verb", "get")], &[1.0]),
        ("odin_hub_watch_restarts_total", &[("member", "gpu-a"), ("kind", "pods"), ("cause", "expired")], &[2.0]),
        ("odin_hub_apply_latency_seconds_sum", &[("member", "gpu-a")], &[0.02]),
        ("odin_hub_reconcile_duration_seconds_sum", &[("controller", "service"), ("result", "ok")], &[0.003]),
        ("odin_hub_decision_duration_seconds_sum", &[], &[0.0003]),
        ("odin_hub_status_writes_total", &[("kind", "InferenceService")], &[1.0]),
    ];
    for (name, labels, want) in cases {
        assert_eq!(read.values(name, labels), *want, "{name} {labels:?}");
    }
}

#[test]
fn a_member_that_is_gone_leaves_nothing_behind() {
    let metrics = filled();
    let late = metrics.member("gpu-a");
    metrics.forget("gpu-a");
    late.applied(Duration::ZERO);
    for name in ["odin_hub_requests_total", "odin_hub_request_duration_seconds_count", "odin_hub_apply_latency_seconds_count"] {
        assert!(read(&metrics).values(name, &[("member", "gpu-a")]).is_empty(), "{name}");
    }
}

#[test]
fn a_hostile_member_makes_no_flood_of_series() {
    let metrics = Arc::new(Metrics::default());
    metrics.ask(|| {
        let accelerators = (0..5000).map(|n| accelerator(&n.to_string())).collect();
        Gauges { members: vec![MemberGauges { accelerators, ..MemberGauges::default() }], ..Gauges::default() }
    });
    assert_eq!(read(&metrics).values("odin_hub_member_accelerator_free_devices", &[]).len(), 100);
}

#[test]
fn who_asks_for_openmetrics_gets_it() {
    for (accept, form) in [
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.2", Form::OpenMetrics),
        ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", Form::Prometheus),
        ("", Form::Prometheus),
    ] {
        assert_eq!(Form::accepted(accept), form, "{accept}");
    }
    let text = filled().exposition(Form::OpenMetrics).unwrap();
    assert!(text.ends_with("\n# EOF\n") && text.contains("# UNIT odin_hub_service_ready_groups groups\n"), "{text}");
}

/// Type, unit and labels of a metric.
type Shape = (String, String, BTreeSet<String>);

fn documented() -> BTreeMap<String, Shape> {
    let rows = include_str!("../../../docs/metrics.md").lines().filter_map(|line| line.strip_prefix("| odin_hub_"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split(" |").map(str::trim).collect();
        let [name, type_, unit, labels, ..] = cells.as_slice() else { panic!("{row}") };
        let labels = labels.split(", ").filter(|label| !label.is_empty()).map(str::to_owned).collect();
        (format!("odin_hub_{name}"), ((*type_).to_owned(), (*unit).to_owned(), labels))
    })
    .collect()
}

#[test]
fn the_document_names_each_metric_and_no_other() {
    let metrics = filled();
    let open = metrics.exposition(Form::OpenMetrics).unwrap();
    let units: BTreeMap<&str, &str> = open.lines().filter_map(|line| line.strip_prefix("# UNIT ")?.split_once(' ')).collect();
    let served: BTreeMap<String, Shape> = read(&metrics)
        .0
        .into_iter()
        .map(|(name, metric)| {
            let unit = units.get(name.as_str()).copied().unwrap_or_default().to_owned();
            let labels = metric.samples.into_iter().flat_map(|sample| sample.labels.into_keys()).filter(|key| key != "le");
            (name, (metric.type_, unit, labels.collect()))
        })
        .collect();
    assert_eq!(documented(), served);
}
