//! What the hub knows of `LeaderWorkerSet`: the keys that its controller puts on objects and the releases that differ.

/// Label on the `StatefulSets`, the Service and all pods of a `LeaderWorkerSet`: its name.
pub const NAME: &str = "leaderworkerset.sigs.k8s.io/name";
/// Label on all its pods: the place in the group, 0 for the leader.
pub const WORKER_INDEX: &str = "leaderworkerset.sigs.k8s.io/worker-index";
/// Label on its pods and worker `StatefulSets`: the number of the group.
pub const GROUP_INDEX: &str = "leaderworkerset.sigs.k8s.io/group-index";
/// Label on its pods: the same for all pods of one group and for no others.
pub const GROUP_KEY: &str = "leaderworkerset.sigs.k8s.io/group-key";
/// Annotation on a `LeaderWorkerSet` (and on a service, from which it is copied): key of the node label of which each
/// value holds one group at most.
pub const EXCLUSIVE_TOPOLOGY: &str = "leaderworkerset.sigs.k8s.io/exclusive-topology";

/// Releases of `LeaderWorkerSet` that the hub tells apart. The API has no version field: they are known by the fields
/// of the installed definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Release {
    /// Before 0.7: no partition, an immutable size, and a first revision that can block its own replacement.
    Before0_7,
    /// 0.7: known by `partition`.
    V0_7,
    /// 0.8: known by `volumeClaimTemplates`.
    V0_8,
    /// 0.9 or later: known by `status.observedGeneration`. Only here ready groups have ready workers.
    V0_9,
}
