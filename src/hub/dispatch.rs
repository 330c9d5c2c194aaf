//! Who is woken by what: events of members, new Secrets, and objects that are gone.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kube::runtime::reflector::ObjectRef;
use tokio::sync::{Notify, mpsc};

use super::context::Context;
use super::member;
use super::tasks::Tasks;
use crate::api::condition::Truth;
use crate::api::odin;
use crate::api::reason::Reason;
use crate::capacity::ServiceKey;
use crate::member::Event;
use crate::status::Notice;

/// Services that wait for room are decided anew at most this often while capacity changes without giving room: so that
/// the numbers in their rejections stay true. Room itself is acted on at once.
const REFRESH: Duration = Duration::from_secs(5);
/// Pause after a Secret could not be registered.
const RETRY: Duration = Duration::from_secs(2);

/// Starts the tasks.
pub(crate) fn start(context: &Arc<Context>, inbox: mpsc::Receiver<Event>, tasks: &mut Tasks) {
    let stale = Arc::new(Notify::new());
    tasks.spawn("events of members", member_events(inbox, context.clone(), stale.clone()));
    tasks.spawn("services that wait for room", refresh(context.clone(), stale));
    tasks.spawn("registrations", registrations(context.clone()));
    tasks.spawn("services that are gone", gone_services(context.clone()));
    tasks.spawn("members that are gone", gone_members(context.clone()));
}

async fn member_events(mut inbox: mpsc::Receiver<Event>, context: Arc<Context>, stale: Arc<Notify>) {
    let mut seen: HashMap<String, (Truth, Truth, bool, bool, bool)> = HashMap::new();
    while let Some(event) = inbox.recv().await {
        match event {
            Event::Service(service) => context.service_trigger.push(service),
            Event::Room(_) => context.retry_waiting(),
            Event::Corrected { member, service, object, recreated } => corrected(&context, &member, &service, &object, recreated),
            Event::Member(name) => {
                if let Some(entry) = context.members.get(&name)
                    && let Ok(member) = &entry.runtime
                {
                    let view = member.view();
                    let refused = (view.workloads_refused.is_some(), view.leader_worker_sets_refused.is_some());
                    let now = (view.reachable.truth, view.credential_valid.truth, view.capacity_known, refused.0, refused.1);
                    if seen.insert(name.clone(), now) != Some(now) {
                        seen.retain(|name, _| context.members.get(name).is_some());
                        // Whether a member can be seen is part of the status of every service in it.
                        context.touch_services_in(&name);
                        context.retry_waiting();
                    }
                }
                context.member_trigger.push(name);
                stale.notify_one();
            }
        }
    }
}

fn corrected(context: &Context, member: &str, service: &ServiceKey, object: &odin::ObjectRef, recreated: bool) {
    let what = if recreated { "was missing and was made anew" } else { "had been changed and was put back" };
    let message = format!("{member}/{}: the {} {what}", object.name, object.kind);
    tracing::info!(%service, message, "a change by others was put back");
    if let Some(found) = context.services.get(&ObjectRef::new(&service.name).within(&service.namespace)) {
        context.recorder.tell(&found, Some(member), vec![Notice { reason: Reason::DriftCorrected, warning: true, message }]);
    }
}

async fn refresh(context: Arc<Context>, stale: Arc<Notify>) {
    loop {
        stale.notified().await;
        tokio::time::sleep(REFRESH).await;
        context.retry_waiting();
    }
}

async fn registrations(context: Arc<Context>) {
    let mut secrets = std::pin::pin!(context.secret_trigger.clone().stream());
    while let Some(name) = secrets.next().await {
        let Some(secret) = context.secrets.get(&ObjectRef::new(&name).within(&context.settings.namespace)) else { continue };
        if context.is_registered(&name) {
            continue;
        }
        if let Err(error) = member::register(&context.client, &secret).await {
            tracing::warn!(secret = name, %error, "its MemberCluster can't be made; trying again");
            let trigger = context.secret_trigger.clone();
            tokio::spawn(async move {
                tokio::time::sleep(RETRY).await;
                trigger.push(name);
            });
        }
    }
}

async fn gone_services(context: Arc<Context>) {
    let mut gone = std::pin::pin!(context.gone_services.clone().stream());
    while let Some((service, uid)) = gone.next().await {
        if context.forget(&service, &uid).await.is_err() {
            return;
        }
        context.retry_waiting();
    }
}

async fn gone_members(context: Arc<Context>) {
    let mut gone = std::pin::pin!(context.gone_members.clone().stream());
    while let Some((name, uid)) = gone.next().await {
        member::detach(&name, &uid, &context);
        // A labelled Secret of that name registers it again.
        context.secret_trigger.push(name);
    }
}
