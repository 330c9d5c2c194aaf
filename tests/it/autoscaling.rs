//! Autoscalers on the hub: one that does as they all do, and Kubernetes' own.

use anyhow::{Result, ensure};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use kube::api::{Patch, PatchParams};
use sandbox::proxy::{Answer, Gate, Matcher, RequestProxy, Settings};
use sandbox::{Cluster, eventually};
use serde_json::{Value, json};

use crate::world::{LIMIT, Space, amd, clusters, plain, world};

#[tokio::test]
async fn i23_what_an_autoscaler_writes_reaches_the_member_and_stays() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "scale-writes").await?;
    space.apply("chat", &amd(1, 1)).await?;
    space.until_ready("chat", 1).await?;

    let services = space.services();
    let scale = services.get_scale("chat").await?;
    let status = scale.status.expect("a status");
    ensure!(status.replicas == 1, "{status:?}");
    // An HPA refuses a target whose selector is empty, whatever metric it uses.
    ensure!(status.selector.as_deref() == Some("mif.moreh.io/inferenceservice=chat"), "{status:?}");

    // As an autoscaler writes it: the whole object, with the version that it read.
    let mut wanted = services.get_scale("chat").await?;
    wanted.spec = Some(k8s_openapi::api::autoscaling::v1::ScaleSpec { replicas: Some(3) });
    services.replace_scale("chat", &kube::api::PostParams::default(), &wanted).await?;
    let status = space.until_ready("chat", 3).await?;
    ensure!(clusters(&status) == "member-1:3", "{status:?}");

    // An edit of something else by a person who applies replicas no more.
    let label = Patch::Merge(json!({"metadata": {"labels": {"mif.moreh.io/aigateway": "main-gw"}}}));
    services.patch("chat", &PatchParams::default(), &label).await?;
    let member = world.fleet.member("member-1")?;
    eventually("the pods have the gateway's label", LIMIT, || async {
        let pods = space.pods(&member, "chat").await?;
        let labelled = pods.iter().filter(|pod| pod.metadata.labels.iter().flatten().any(|(key, _)| key == "mif.moreh.io/aigateway"));
        ensure!(labelled.count() == 3, "{}", pods.len());
        Ok(())
    })
    .await?;
    let scale = services.get_scale("chat").await?;
    ensure!(scale.spec.as_ref().and_then(|spec| spec.replicas) == Some(3), "the hub never resets it: {scale:?}");
    Ok(())
}

/// The group that serves metrics from outside of a cluster.
const METRICS: &str = "/apis/external.metrics.k8s.io/v1beta1";

fn answer(body: &Value) -> Answer {
    Answer::new(StatusCode::OK, &body.to_string()).header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
}

/// Serves one metric of one namespace beside the hub, as a metrics adapter does, until it is dropped.
async fn adapter(hub: &Cluster, namespace: &str) -> Result<RequestProxy> {
    let (certificate, key) = hub.issue_server_cert()?;
    let (name, server, ca) = ("metrics".to_owned(), hub.server(), hub.ca_pem().to_owned());
    let proxy = RequestProxy::start(Settings { name, server, ca, certificate, key, gate: Gate::new() }).await?;
    let resource = json!({"name": "waiting", "singularName": "", "namespaced": true, "kind": "ExternalMetricValueList", "verbs": ["get"]});
    let resources = json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "external.metrics.k8s.io/v1beta1", "resources": [resource],
    });
    let exactly = |path: String| Matcher::new(move |_, uri| uri.path() == path);
    proxy.always(exactly(METRICS.to_owned()), answer(&resources));
    let port = proxy.address().port();
    hub.apply_yaml(&format!(
        "{{apiVersion: v1, kind: Service, metadata: {{name: metrics, namespace: {namespace}}}, \
         spec: {{type: ExternalName, externalName: localhost, ports: [{{port: {port}}}]}}}}\n---\n\
         {{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {{name: v1beta1.external.metrics.k8s.io}}, \
         spec: {{group: external.metrics.k8s.io, version: v1beta1, groupPriorityMinimum: 100, versionPriority: 100, \
         insecureSkipTLSVerify: true, service: {{name: metrics, namespace: {namespace}, port: {port}}}}}}}"
    ))
    .await?;
    Ok(proxy)
}

fn tell(adapter: &RequestProxy, namespace: &str, waiting: u32) {
    let value =
        json!({"metricName": "waiting", "metricLabels": {}, "timestamp": jiff::Timestamp::now().to_string(), "value": waiting.to_string()});
    let list =
        json!({"kind": "ExternalMetricValueList", "apiVersion": "external.metrics.k8s.io/v1beta1", "metadata": {}, "items": [value]});
    let path = format!("{METRICS}/namespaces/{namespace}/waiting");
    adapter.always(Matcher::new(move |_, uri| uri.path() == path), answer(&list));
}

#[tokio::test]
async fn kubernetes_own_autoscaler_scales_a_service_by_an_external_metric() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "scale-hpa").await?;
    let hub = world.fleet.hub();
    let adapter = adapter(hub, "scale-hpa").await?;
    tell(&adapter, "scale-hpa", 10);
    space.apply("chat", &plain(1, "registry.example/engine:1")).await?;
    space.until_ready("chat", 1).await?;
    hub.apply_yaml(
        "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: chat, namespace: scale-hpa}, spec: {\
         scaleTargetRef: {apiVersion: odin.moreh.io/v1alpha1, kind: InferenceService, name: chat}, minReplicas: 1, maxReplicas: 5, \
         behavior: {scaleDown: {stabilizationWindowSeconds: 0}}, \
         metrics: [{type: External, external: {metric: {name: waiting}, target: {type: AverageValue, averageValue: \"10\"}}}]}}",
    )
    .await?;
    // Ten that wait for each replica.
    for (waiting, replicas) in [(40, 4), (20, 2)] {
        tell(&adapter, "scale-hpa", waiting);
        space.until_ready("chat", replicas).await?;
    }
    Ok(())
}
