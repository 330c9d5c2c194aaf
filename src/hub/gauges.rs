//! How the fleet stands, for metrics: read from what the hub knows anyway, and writing nothing.

use std::sync::Arc;

use jiff::Timestamp;
use kube::runtime::reflector::ObjectRef;

use super::context::Context;
use super::roll::Listed;
use super::service::placements;
use crate::api::federation::MemberClusterStatus;
use crate::api::odin::InferenceService;
use crate::capacity::ServiceKey;
use crate::telemetry::metrics::{Gauges, MemberGauges, ServiceGauges};

/// Lets the metrics ask the hub for as long as it is there.
pub(super) fn offer(context: &Arc<Context>) {
    let asked = Arc::downgrade(context);
    context.metrics.ask(move || asked.upgrade().map(|context| gauges(&context)).unwrap_or_default());
}

fn gauges(context: &Context) -> Gauges {
    let roll = context.fleet.roll();
    let status_of = |name: &str| context.clusters.get(&ObjectRef::new(name)).and_then(|cluster| cluster.status.clone());
    Gauges {
        now: Timestamp::now(),
        members: roll.iter().map(|(name, listed)| member(name, listed, status_of(name).unwrap_or_default())).collect(),
        services: context.services.state().iter().map(|one| service(one)).collect(),
        queues: vec![("service", context.service_trigger.backlog()), ("member", context.member_trigger.backlog())],
    }
}

/// Devices are told as the status has them: that is what people see, and it keeps what was last known.
fn member(name: &str, listed: &Listed, status: MemberClusterStatus) -> MemberGauges {
    let gauges = MemberGauges {
        name: name.to_owned(),
        ready: listed.standing.is_ready(),
        accelerators: status.accelerators,
        ..MemberGauges::default()
    };
    let Ok(connected) = &listed.seen else { return gauges };
    MemberGauges {
        reachable: connected.view.reachable.holds(),
        last_seen: connected.view.last_seen,
        credential_end: connected.view.credential.expires_at.as_ref().map(|end| end.0),
        tasks: connected.member.backlog(),
        ..gauges
    }
}

fn service(service: &InferenceService) -> ServiceGauges {
    let status = service.status.as_ref();
    let count = |count: Option<i32>| count.map_or(0, i64::from);
    ServiceGauges {
        service: ServiceKey::from(service),
        wanted: i64::from(service.spec.replicas.unwrap_or(1)),
        ready: count(status.and_then(|status| status.ready_replicas)),
        placed: placements(status).values().map(|groups| i64::from(*groups)).sum(),
        unplaced: count(status.and_then(|status| status.unplaced_replicas)),
    }
}
