//! The figures as text.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeMetric as _, MetricEncoder, prometheus_text, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::calls::{Counts, code};
use super::gauges::{Gauges, MemberGauges, ServiceGauges};
use super::member::MemberMetrics;
use super::{Calls, Metrics};
use crate::api::federation::Accelerator;

/// What the name of each metric begins with.
const PREFIX: &str = "odin_hub";
/// Kinds of devices that are told of one member: a hostile one could name a thousand models.
const MAX_ACCELERATORS: usize = 100;

/// In which of its two forms the text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Prometheus' own, which everything reads.
    Prometheus,
    /// `OpenMetrics`, for who asks for it.
    OpenMetrics,
}

impl Form {
    /// The form for who accepts these media types.
    pub fn accepted(accept: &str) -> Self {
        if accept.contains("application/openmetrics-text") { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// Its media type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => prometheus_text::CONTENT_TYPE,
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

impl Metrics {
    /// All figures as text.
    ///
    /// # Errors
    /// Never, as writing to a string doesn't fail.
    pub fn exposition(self: &Arc<Self>, form: Form) -> Result<String, fmt::Error> {
        let mut registry = Registry::with_prefix(PREFIX);
        registry.register_collector(Box::new(self.clone()));
        let mut out = String::new();
        match form {
            Form::Prometheus => prometheus_text::encode(&mut out, &registry)?,
            Form::OpenMetrics => text::encode(&mut out, &registry)?,
        }
        Ok(out)
    }
}

impl Collector for Metrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut sheet = Sheet(encoder);
        let about = ("reconcile_duration", "seconds", "Time that a pass of a controller takes.");
        sheet.metric(about, MetricType::Histogram, |metric| self.passes.encode(metric))?;
        let about = ("decision_duration", "seconds", "Time that it takes to decide where the replicas of a service go.");
        sheet.metric(about, MetricType::Histogram, |metric| self.decisions.encode(metric))?;
        let about = ("status_writes", "", "Status writes to the hub's API server.");
        sheet.metric(about, MetricType::Counter, |metric| self.status_writes.encode(metric))?;

        let members: Vec<_> = self.members.read().iter().map(|(name, member)| (name.clone(), member.clone())).collect();
        sheet.requests(&self.hub_calls, &members)?;
        sheet.counted(&members)?;
        let gauges = self.source.get().map(|ask| ask()).unwrap_or_default();
        sheet.standing(&gauges)?;
        sheet.accelerators(&gauges.members)?;
        sheet.services(&gauges.services)?;
        sheet.queues(&gauges)
    }
}

fn label(member: &MemberGauges) -> [(&'static str, &str); 1] {
    [("member", member.name.as_str())]
}

/// Where the figures are written, one metric after the other.
struct Sheet<'a>(DescriptorEncoder<'a>);

impl Sheet<'_> {
    /// Begins a metric. Without a unit it is a plain number.
    fn metric(
        &mut self,
        (name, unit, help): (&str, &str, &str),
        type_: MetricType,
        series: impl FnOnce(MetricEncoder<'_>) -> fmt::Result,
    ) -> fmt::Result {
        let unit = (!unit.is_empty()).then(|| Unit::Other(unit.to_owned()));
        series(self.0.encode_descriptor(name, help, unit.as_ref(), type_)?)
    }

    /// A gauge with one series for each item that has a value.
    fn gauge<'i, T: 'i, V: EncodeGaugeValue, const N: usize>(
        &mut self,
        about: (&str, &str, &str),
        items: impl IntoIterator<Item = T>,
        of: impl Fn(&T) -> Option<([(&'static str, &'i str); N], V)>,
    ) -> fmt::Result {
        self.metric(about, MetricType::Gauge, |mut metric| {
            for (labels, value) in items.into_iter().filter_map(|item| of(&item)) {
                ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
            }
            Ok(())
        })
    }

    /// Requests to all API servers; the hub's own has no name.
    fn requests(&mut self, hub: &Calls, members: &[(String, Arc<MemberMetrics>)]) -> fmt::Result {
        let members = members.iter().map(|(name, member)| (name.as_str(), member.calls().counts()));
        let servers: Vec<(&str, Counts)> = std::iter::once(("", hub.counts())).chain(members).collect();
        let about = ("requests", "", "Requests to API servers of members; without a member those to the hub's own.");
        self.metric(about, MetricType::Counter, |mut metric| {
            for (member, counts) in &servers {
                for ((verb, status), count) in &counts.requests {
                    let labels = [("member", *member), ("verb", *verb), ("code", code(status.as_ref()))];
                    ConstCounter::new(*count).encode(metric.encode_family(&labels)?)?;
                }
            }
            Ok(())
        })?;
        let about = ("request_duration", "seconds", "Time from sending a request to the head of its answer.");
        self.metric(about, MetricType::Histogram, |mut metric| {
            for (member, counts) in &servers {
                for (verb, times) in &counts.times {
                    times.encode(metric.encode_family(&[("member", *member), ("verb", *verb)])?)?;
                }
            }
            Ok(())
        })
    }

    /// What is counted for members apart from requests.
    fn counted(&mut self, members: &[(String, Arc<MemberMetrics>)]) -> fmt::Result {
        let about = ("watch_restarts", "", "Watches on members that were made anew, by kind and cause.");
        self.metric(about, MetricType::Counter, |mut metric| {
            for (name, member) in members {
                for ((kind, end), count) in member.watch_restarts.lock().iter() {
                    let labels = [("member", name.as_str()), ("kind", *kind), ("cause", end.as_str())];
                    ConstCounter::new(*count).encode(metric.encode_family(&labels)?)?;
                }
            }
            Ok(())
        })?;
        let about = ("apply_latency", "seconds", "Time from when the hub saw a change to when the member accepted what it asks for.");
        self.metric(about, MetricType::Histogram, |mut metric| {
            for (name, member) in members {
                member.apply_latency.encode(metric.encode_family(&[("member", name.as_str())])?)?;
            }
            Ok(())
        })
    }

    /// How members stand.
    fn standing(&mut self, gauges: &Gauges) -> fmt::Result {
        let members = || gauges.members.iter();
        let about = ("member_ready", "", "1 if the member takes services, else 0.");
        self.gauge(about, members(), |member| Some((label(member), i64::from(member.ready))))?;
        let about = ("member_reachable", "", "1 if the member's API server answers, else 0: then its tasks are parked.");
        self.gauge(about, members(), |member| Some((label(member), i64::from(member.reachable))))?;
        let about = ("member_last_seen_age", "seconds", "Time since the member last answered.");
        self.gauge(about, members(), |member| Some((label(member), gauges.now.duration_since(member.last_seen?).as_secs_f64().max(0.0))))?;
        let about = ("member_credential_expiry_timestamp", "seconds", "When the credential of the member ends, in Unix time.");
        self.gauge(about, members(), |member| Some((label(member), member.credential_end?.as_second())))?;
        let about = ("member_queue", "tasks", "Tasks that wait to be carried out in the member, or to be tried again.");
        self.gauge(about, members(), |member| Some((label(member), member.tasks.items)))?;
        let about = ("member_queue_oldest", "seconds", "Age of the oldest change that the member has not accepted yet; 0 without one.");
        self.gauge(about, members(), |member| Some((label(member), member.tasks.oldest.as_secs_f64())))
    }

    /// Devices of members.
    fn accelerators(&mut self, members: &[MemberGauges]) -> fmt::Result {
        type Count = fn(&Accelerator) -> i64;
        let counts: [(&str, &str, Count); 5] = [
            ("allocatable", "Devices that pods may ask for.", |devices| devices.allocatable),
            ("used", "Devices that assigned pods asked for.", |devices| devices.used),
            ("reserved", "Devices promised to services whose pods are not assigned yet.", |devices| devices.reserved),
            ("free", "Free devices on nodes that take pods.", |devices| devices.free),
            ("largest_free_node", "Most devices that are free on one node.", |devices| devices.largest_free_node),
        ];
        for (what, help, count) in counts {
            let name = format!("member_accelerator_{what}");
            let devices = members.iter().flat_map(|member| member.accelerators.iter().take(MAX_ACCELERATORS).map(move |one| (member, one)));
            self.gauge((&name, "devices", help), devices, |(member, devices)| {
                let labels = [
                    ("member", member.name.as_str()),
                    ("resource", devices.resource.as_str()),
                    ("vendor", devices.vendor.as_deref().unwrap_or_default()),
                    ("model", devices.model.as_deref().unwrap_or_default()),
                ];
                Some((labels, count(devices)))
            })?;
        }
        Ok(())
    }

    /// How services stand.
    fn services(&mut self, services: &[ServiceGauges]) -> fmt::Result {
        type Count = fn(&ServiceGauges) -> i64;
        let counts: [(&str, &str, Count); 4] = [
            ("wanted", "Groups that the service asks for.", |service| service.wanted),
            ("ready", "Groups that are ready, over all members.", |service| service.ready),
            ("placed", "Groups that members were chosen for.", |service| service.placed),
            ("unplaced", "Groups that are wanted and that no member can hold.", |service| service.unplaced),
        ];
        for (what, help, count) in counts {
            self.gauge((&format!("service_{what}"), "groups", help), services, |service| {
                let key = &service.service;
                Some(([("service_namespace", key.namespace.as_str()), ("service_name", key.name.as_str())], count(service)))
            })?;
        }
        Ok(())
    }

    /// What waits for the hub's controllers.
    fn queues(&mut self, gauges: &Gauges) -> fmt::Result {
        let about = ("queue", "items", "Objects that wait for a pass of their controller.");
        self.gauge(about, &gauges.queues, |(controller, backlog)| Some(([("controller", *controller)], backlog.items)))?;
        let about = ("queue_oldest", "seconds", "How long the oldest of them has waited; 0 without one.");
        self.gauge(about, &gauges.queues, |(controller, backlog)| Some(([("controller", *controller)], backlog.oldest.as_secs_f64())))
    }
}
