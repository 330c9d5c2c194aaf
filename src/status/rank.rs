//! The order of causes: the nearer to the root, the better.

use crate::api::reason::Reason;

/// The hub itself refuses the service.
pub(super) const HUB_REFUSAL: u8 = 1;
/// A member didn't take an object.
pub(super) const MEMBER_REFUSAL: u8 = 2;
/// Pods can't be created.
pub(super) const FAILED_CREATE: u8 = 3;
/// There is no place.
pub(super) const UNPLACED: u8 = 7;
/// A member can't be seen.
pub(super) const MEMBER_UNSEEN: u8 = 8;

/// Rank of a reason: lower is nearer to the cause.
pub(super) fn rank(reason: Reason) -> u8 {
    use Reason as R;
    match reason {
        R::ApplyDenied
        | R::ApplyFailed
        | R::ObjectConflict
        | R::NamespaceNotAllowed
        | R::PodNotAllowed
        | R::WaitingForDeletion
        | R::Forbidden => MEMBER_REFUSAL,
        R::FailedCreate => FAILED_CREATE,
        R::ImagePullBackOff | R::ErrImagePull | R::InvalidImageName | R::CreateContainerConfigError | R::RunContainerError => 4,
        R::OomKilled | R::CrashLoopBackOff | R::Error => 5,
        R::Unschedulable | R::SchedulingGated | R::Evicted | R::Preempted | R::NodeLost => 6,
        R::Unplaced => UNPLACED,
        R::MemberUnreachable
        | R::CredentialInvalid
        | R::CredentialMissing
        | R::CredentialRefused
        | R::CredentialExpired
        | R::Unreachable
        | R::ClusterReplaced
        | R::Duplicate
        | R::NotSynced
        | R::NotReady => MEMBER_UNSEEN,
        R::ProgressDeadlineExceeded => 9,
        R::ProbeFailing | R::Starting => 10,
        R::RolloutNeedsSpare => 11,
        _ => HUB_REFUSAL,
    }
}

/// Whether a reason tells of something that runs, or tries to, in a member.
pub(super) fn is_about_pods(reason: Reason) -> bool {
    let rank = rank(reason);
    rank >= FAILED_CREATE && rank != UNPLACED && rank != MEMBER_UNSEEN
}
