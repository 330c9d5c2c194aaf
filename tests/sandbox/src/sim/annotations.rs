//! The annotations that steer the simulator, on pods and nodes.

use std::{collections::BTreeMap, fmt, str::FromStr, time::Duration};

use jiff::SignedDuration;

/// On a pod: how long after its start it turns Ready, such as `2s` or `1m30s`.
pub const READY_AFTER: &str = "sim.odin-hub/ready-after";
/// On a pod: what goes wrong with it, the text of a [`FaultKind`].
pub const FAIL: &str = "sim.odin-hub/fail";
/// On a pod: how long after its start the fault begins; until then the pod is well.
pub const FAIL_AFTER: &str = "sim.odin-hub/fail-after";
/// On a pod: the container that fails; without it the first one.
pub const CONTAINER: &str = "sim.odin-hub/container";
/// On a pod: how long its termination takes, at most the grace period; without it no time.
pub const LINGER: &str = "sim.odin-hub/linger";
/// On a node, `true`: no lease, no status, pods left alone, as if the machine were dead.
pub const SILENT: &str = "sim.odin-hub/silent";
/// On a node, `true`: the kubelet lives and reports Ready=False.
pub const NOT_READY: &str = "sim.odin-hub/not-ready";

/// What goes wrong with a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// It exits with 1 again and again: `CrashLoopBackOff`.
    Crash,
    /// As `Crash`, but killed for its memory: `OOMKilled`, exit 137.
    Oom,
    /// Its image cannot be pulled: `ErrImagePull`, then `ImagePullBackOff`; the pod stays Pending.
    Image,
    /// A Secret that it names is missing: `CreateContainerConfigError`.
    Config,
    /// It runs, but its readiness probe fails.
    Unready,
    /// It restarts a single time and is Ready again.
    Once,
    /// The kubelet evicts the pod: phase Failed, reason Evicted.
    Evict,
}

impl FaultKind {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Crash, "crash"),
        (Self::Oom, "oom"),
        (Self::Image, "image"),
        (Self::Config, "config"),
        (Self::Unready, "unready"),
        (Self::Once, "once"),
        (Self::Evict, "evict"),
    ];
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL.iter().find(|(kind, _)| kind == self).map_or("", |(_, text)| text))
    }
}

/// A value of an annotation that means nothing to the simulator.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownFault(String);

impl fmt::Display for UnknownFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = FaultKind::ALL.iter().map(|(_, text)| *text).collect();
        write!(f, "{FAIL}: {:?} is no fault; use one of {}", self.0, known.join(", "))
    }
}

impl std::error::Error for UnknownFault {}

impl FromStr for FaultKind {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        FaultKind::ALL.iter().find(|(_, t)| *t == text).map(|(kind, _)| *kind).ok_or_else(|| UnknownFault(text.to_owned()))
    }
}

/// A fault of a pod: what, when and in which container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// How long after the pod's start it begins.
    pub after: Duration,
    /// In which container; `None` is the first one.
    pub container: Option<String>,
}

impl Fault {
    /// A fault of the first container, from the pod's start on.
    pub fn new(kind: FaultKind) -> Self {
        Self { kind, after: Duration::ZERO, container: None }
    }

    /// Begins this long after the pod's start instead.
    pub fn after(self, after: Duration) -> Self {
        Self { after, ..self }
    }

    /// Strikes the container of this name instead of the first one.
    pub fn container(self, name: &str) -> Self {
        Self { container: Some(name.to_owned()), ..self }
    }

    /// The annotations that bring the fault about, for a pod template or a live pod.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let mut out = BTreeMap::from([(FAIL.to_owned(), self.kind.to_string())]);
        if !self.after.is_zero() {
            out.insert(FAIL_AFTER.to_owned(), format!("{}ms", self.after.as_millis()));
        }
        if let Some(name) = &self.container {
            out.insert(CONTAINER.to_owned(), name.clone());
        }
        out
    }

    /// The fault that a pod's annotations ask for.
    ///
    /// # Errors
    /// When [`FAIL`] holds a text that is no fault.
    pub fn from_annotations(annotations: Option<&BTreeMap<String, String>>) -> Result<Option<Self>, UnknownFault> {
        let Some(kind) = text(annotations, FAIL) else { return Ok(None) };
        Ok(Some(Self {
            kind: kind.parse()?,
            after: duration(annotations, FAIL_AFTER).unwrap_or_default(),
            container: text(annotations, CONTAINER).map(str::to_owned),
        }))
    }
}

fn text<'a>(annotations: Option<&'a BTreeMap<String, String>>, key: &str) -> Option<&'a str> {
    annotations?.get(key).map(String::as_str).filter(|value| !value.is_empty())
}

/// A length of time in an annotation; what cannot be read or is negative counts as absent.
pub(super) fn duration(annotations: Option<&BTreeMap<String, String>>, key: &str) -> Option<Duration> {
    text(annotations, key)?.parse::<SignedDuration>().ok()?.try_into().ok()
}

/// Whether an annotation says `true`.
pub(super) fn flag(annotations: Option<&BTreeMap<String, String>>, key: &str) -> bool {
    text(annotations, key) == Some("true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_survives_its_annotations() {
        for (kind, text) in FaultKind::ALL {
            let fault = Fault::new(kind).after(Duration::from_millis(1500)).container("sidecar");
            let annotations = fault.annotations();
            assert_eq!(annotations[FAIL], text);
            assert_eq!(Fault::from_annotations(Some(&annotations)), Ok(Some(fault)));
        }
        assert_eq!(Fault::from_annotations(None), Ok(None));
    }

    #[test]
    fn an_unknown_fault_names_the_known_ones() {
        let annotations = BTreeMap::from([(FAIL.to_owned(), "explode".to_owned())]);
        let error = Fault::from_annotations(Some(&annotations)).unwrap_err().to_string();
        assert_eq!(error, "sim.odin-hub/fail: \"explode\" is no fault; use one of crash, oom, image, config, unready, once, evict");
    }

    #[test]
    fn durations_are_those_of_kubernetes() {
        for (text, want) in [
            ("2s", Some(2000)),
            ("300ms", Some(300)),
            ("1m30s", Some(90_000)),
            ("1.5s", Some(1500)),
            ("-2s", None),
            ("soon", None),
            ("", None),
        ] {
            let annotations = BTreeMap::from([(LINGER.to_owned(), text.to_owned())]);
            assert_eq!(duration(Some(&annotations), LINGER), want.map(Duration::from_millis), "{text:?}");
        }
    }
}
