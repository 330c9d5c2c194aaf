//! What can only be refused once it is known where a service runs.

use super::observation::MemberObservation;
use crate::api::lws::EXCLUSIVE_TOPOLOGY;
use crate::api::odin::WorkloadKind;
use crate::api::reason::Reason;
use crate::placement::Plan;
use crate::render::Refusal;
use crate::workload::Workload;

/// Members that a message names one by one.
const NAMED: usize = 5;

/// Why a workload must not be applied to the members of its plan, although it could be built.
///
/// A partition counts the groups of one `LeaderWorkerSet` and means something else once they are in several. The
/// exclusive topology is no part of a revision: a change would restart leaders outside of any rollout, with no bound on
/// how many at once. A `LeaderWorkerSet` that is being deleted is no bar, as the next one is made with the new topology.
pub fn late_refusal(workload: &Workload, plan: &Plan, members: &[MemberObservation]) -> Option<Refusal> {
    let refuse = |reason, message| Some(Refusal { reason, message });
    let clusters: Vec<_> = plan.placements.keys().map(String::as_str).collect();
    if workload.partition > 0 && clusters.len() > 1 {
        let message = format!(
            "spec.rolloutStrategy.rollingUpdate.partition counts the groups of one cluster, and this service is placed in {}: \
             remove partition, or ask for no more replicas than one cluster holds",
            names(&clusters)
        );
        return refuse(Reason::RolloutNotSupported, message);
    }
    let live = |member: &'_ MemberObservation| {
        let view = member.workload.as_ref()?;
        let is_other = view.kind == WorkloadKind::LeaderWorkerSet
            && view.kind == workload.kind
            && view.deletion_timestamp.is_none()
            && view.exclusive_topology != workload.exclusive_topology;
        is_other.then(|| (member.cluster.clone(), view.exclusive_topology.clone()))
    };
    let (cluster, old) = members.iter().filter_map(live).min()?;
    let text = |key: Option<&String>| key.map_or_else(|| "no exclusive topology".to_owned(), |key| format!("exclusive topology {key:?}"));
    let message = format!(
        "the LeaderWorkerSet in {cluster} was made with {}, and the service now asks for {}: set its annotation {EXCLUSIVE_TOPOLOGY} back, \
         or delete the service and create it anew",
        text(old.as_ref()),
        text(workload.exclusive_topology.as_ref())
    );
    refuse(Reason::ExclusiveTopologyImmutable, message)
}

fn names(clusters: &[&str]) -> String {
    let named = clusters.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match clusters.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::render::Rendered;
    use crate::status::WorkloadView;
    use crate::workload::{Owner, build};

    fn workload(partition: u32, topology: Option<&str>) -> Workload {
        let none = BTreeMap::new();
        let owner =
            Owner { name: "chat", namespace: "demo", uid: "u", generation: 1, labels: &none, annotations: &none, pools: &[], hub_id: "h" };
        let spec = json!({"template": {"spec": {"containers": [{"name": "main", "image": "x"}]}}});
        let mut workload = build(&owner, &Rendered { spec, sources: Vec::new(), hash: String::new(), warnings: Vec::new() }).unwrap();
        workload.kind = WorkloadKind::LeaderWorkerSet;
        (workload.partition, workload.exclusive_topology) = (partition, topology.map(str::to_owned));
        workload
    }

    fn plan(placements: &[(&str, u32)]) -> Plan {
        Plan { placements: placements.iter().map(|(cluster, n)| ((*cluster).to_owned(), *n)).collect(), ..Plan::default() }
    }

    fn member(cluster: &str, kind: WorkloadKind, topology: Option<&str>) -> MemberObservation {
        let view = WorkloadView { kind, exclusive_topology: topology.map(str::to_owned), ..WorkloadView::default() };
        MemberObservation { cluster: cluster.to_owned(), workload: Some(view), ..MemberObservation::default() }
    }

    #[test]
    fn a_partition_is_for_one_cluster() {
        for (partition, placements, refused) in [
            (0, &[("gpu-a", 1), ("gpu-b", 1)][..], None),
            (1, &[("gpu-a", 2)][..], None),
            (1, &[("gpu-a", 1), ("gpu-b", 1)][..], Some("placed in gpu-a, gpu-b: remove partition")),
            (
                1,
                &[("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1), ("f", 1), ("g", 1)][..],
                Some("placed in a, b, c, d, e and 2 more: remove partition"),
            ),
        ] {
            let refusal = late_refusal(&workload(partition, None), &plan(placements), &[]);
            assert_eq!(refusal.as_ref().map(|r| r.reason), refused.map(|_| Reason::RolloutNotSupported));
            assert!(refusal.is_none_or(|r| r.message.contains(refused.unwrap())));
        }
    }

    #[test]
    fn an_exclusive_topology_stays_what_it_was() {
        use WorkloadKind::{Deployment, LeaderWorkerSet};
        for (wanted, there, kind, refused) in [
            (Some("rack"), Some("rack"), LeaderWorkerSet, None),
            (None, None, LeaderWorkerSet, None),
            (
                Some("zone"),
                Some("rack"),
                LeaderWorkerSet,
                Some("in gpu-a was made with exclusive topology \"rack\", and the service now asks for exclusive topology \"zone\""),
            ),
            (None, Some("rack"), LeaderWorkerSet, Some("\"rack\", and the service now asks for no exclusive topology")),
            (Some("rack"), None, LeaderWorkerSet, Some("made with no exclusive topology, and")),
            (Some("rack"), None, Deployment, None),
        ] {
            let members = [member("gpu-b", kind, there), member("gpu-a", kind, there)];
            let refusal = late_refusal(&workload(0, wanted), &plan(&[("gpu-a", 1)]), &members);
            assert_eq!(refusal.as_ref().map(|r| r.reason), refused.map(|_| Reason::ExclusiveTopologyImmutable), "{wanted:?} {there:?}");
            assert!(refusal.as_ref().is_none_or(|r| r.message.contains(refused.unwrap())), "{refusal:?}");
        }
        let mut going = member("gpu-a", LeaderWorkerSet, Some("rack"));
        going.workload.as_mut().unwrap().deletion_timestamp = Some(jiff::Timestamp::UNIX_EPOCH);
        assert_eq!(late_refusal(&workload(0, None), &plan(&[("gpu-a", 1)]), &[going]), None, "made anew with the new one");
    }
}
