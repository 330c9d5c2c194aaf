//! Reasons in conditions, diagnostics and rejections: each word that a program may match on, in one place.

macro_rules! reasons {
    ($($name:ident $(= $text:literal)?),* $(,)?) => {
        /// Why a service is not ready, or a member can't take it. The text of each is part of the API.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "each is described in docs/reasons.md")]
        pub enum Reason { $($name),* }

        impl Reason {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The word as it stands in the API.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => reasons!(@text $name $($text)?)),* }
            }
        }
    };
    (@text $name:ident $text:literal) => { $text };
    (@text $name:ident) => { stringify!($name) };
}

reasons! {
    // What the hub itself refuses.
    TemplateNotFound,
    RuntimeBaseNotFound,
    RuntimeBaseConflict,
    MergeFailed,
    RenderFailed,
    NoPodTemplate,
    WorkerNeedsParallelism,
    ParallelismConflict,
    ParallelismRemainder,
    RolloutNotSupported,
    RolloutStuck,
    InvalidRendered,
    NameNotAllowed,
    ExclusiveTopologyImmutable,
    // What a member refuses.
    ApplyDenied,
    ApplyFailed,
    ObjectConflict,
    NamespaceNotAllowed,
    PodNotAllowed,
    WaitingForDeletion,
    // What goes wrong in a member.
    FailedCreate,
    ImagePullBackOff,
    ErrImagePull,
    InvalidImageName,
    CreateContainerConfigError,
    RunContainerError,
    OomKilled = "OOMKilled",
    CrashLoopBackOff,
    Error,
    Unschedulable,
    SchedulingGated,
    Evicted,
    Preempted,
    NodeLost,
    ProgressDeadlineExceeded,
    ProbeFailing,
    Starting,
    // Placement.
    Unplaced,
    NotReady,
    Suspended,
    TaintNotTolerated,
    NoLeaderWorkerSet,
    VersionTooOld,
    NoSuchAccelerator,
    LabelWithoutDevices,
    NodesTainted,
    NodesUnavailable,
    InsufficientRoom,
    Fragmented,
    Fragile,
    QuotaExceeded,
    CapacityUnknown,
    // A member as a whole.
    MemberUnreachable,
    CredentialInvalid,
    CredentialMissing,
    CredentialRefused,
    CredentialExpired,
    Unreachable,
    Forbidden,
    ClusterReplaced,
    Duplicate,
    NotSynced,
    // A rollout.
    RolloutNeedsSpare,
    // What an event tells of.
    Placed,
    ScaledMember,
    DriftCorrected,
    // Good news.
    AllReplicasReady,
    Rendered,
    AllPlaced,
    Applied,
    Reconciling,
    Progressing,
    Complete,
    Connected,
    Accepted,
    Synced,
    Available,
    NotInstalled,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Reason;

    #[test]
    fn each_reason_is_documented() {
        let documented = include_str!("../../docs/reasons.md");
        let rows: Vec<&str> = documented.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next()).collect();
        let words: Vec<&str> = rows.iter().flat_map(|row| row.split(", ")).collect();
        for reason in Reason::ALL {
            assert!(words.contains(&reason.as_str()), "docs/reasons.md has no row for {reason}");
        }
        for word in words.into_iter().filter(|word| !["reason", "---"].contains(word)) {
            assert!(
                Reason::ALL.iter().any(|reason| reason.as_str() == word),
                "docs/reasons.md has a row for {word}, which is told by nothing"
            );
        }
    }

    /// All of the program's code but the tests in it, this file, and the one that only ranks reasons.
    fn product(folder: &std::path::Path, text: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_string_lossy().replace('\\', "/");
            if path.is_dir() {
                product(&path, text);
            } else if !["api/reason.rs", "placement/plan.rs", "tests.rs"].iter().any(|end| name.ends_with(end)) && !name.contains("/tests/")
            {
                text.push_str(
                    std::fs::read_to_string(&path).unwrap_or_default().split("#[cfg(test)]\nmod tests {").next().unwrap_or_default(),
                );
            }
        }
    }

    #[test]
    fn each_reason_is_told_by_something() {
        let mut text = String::new();
        product(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut text);
        let words: std::collections::BTreeSet<&str> =
            text.split("Reason::").skip(1).filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next()).collect();
        for reason in Reason::ALL {
            assert!(words.contains(format!("{reason:?}").as_str()), "nothing tells {reason}: take it out, here and in docs/reasons.md");
        }
    }
}
