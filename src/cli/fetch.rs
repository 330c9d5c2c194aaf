//! Reading objects of the hub, with errors that say what to do.

use std::marker::PhantomData;

use anyhow::{Context as _, anyhow};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, Client, Error, Resource};
use serde::de::DeserializeOwned;

/// Objects in one answer. A service with its rendered spec has some kilobytes.
const PAGE: u32 = 500;

/// Reads objects of one kind: of one namespace, or of the whole cluster.
pub(super) struct Reader<K> {
    api: Api<DynamicObject>,
    place: Place,
    kind: PhantomData<K>,
}

/// What is read, in words.
#[derive(Clone, Debug)]
struct Place {
    resource: ApiResource,
    namespace: Option<String>,
}

/// Objects that were asked for by name.
pub(super) struct Named {
    pub(super) found: Vec<DynamicObject>,
    /// One sentence for each that isn't there.
    pub(super) missing: Vec<String>,
}

impl<K: Resource<DynamicType = ()> + DeserializeOwned> Reader<K> {
    /// Objects of the whole cluster.
    pub(super) fn all(client: &Client) -> Self {
        let resource = ApiResource::erase::<K>(&());
        Self { api: Api::all_with(client.clone(), &resource), place: Place { resource, namespace: None }, kind: PhantomData }
    }

    /// Objects of one namespace.
    pub(super) fn namespaced(client: &Client, namespace: &str) -> Self {
        let resource = ApiResource::erase::<K>(&());
        let place = Place { resource, namespace: Some(namespace.to_owned()) };
        Self { api: Api::namespaced_with(client.clone(), namespace, &place.resource), place, kind: PhantomData }
    }

    /// All objects, page by page.
    pub(super) async fn list(&self) -> anyhow::Result<Vec<DynamicObject>> {
        let mut objects = Vec::new();
        let mut page = ListParams::default().limit(PAGE);
        loop {
            match self.api.list(&page).await {
                Ok(list) => {
                    objects.extend(list.items);
                    match list.metadata.continue_.filter(|token| !token.is_empty()) {
                        Some(token) => page = page.continue_token(&token),
                        None => break,
                    }
                }
                // The rest of a list is kept for minutes only: it is read anew, in one piece.
                Err(Error::Api(status)) if status.code == 410 && page.continue_token.is_some() => {
                    objects.clear();
                    page = ListParams::default();
                }
                Err(error) => return Err(self.place.told("list", error)),
            }
        }
        for object in &mut objects {
            self.complete(object);
        }
        Ok(objects)
    }

    /// The objects of these names, in their order.
    pub(super) async fn named(&self, names: &[String]) -> anyhow::Result<Named> {
        let mut named = Named { found: Vec::new(), missing: Vec::new() };
        for name in names {
            match self.api.get(name).await {
                Ok(mut object) => {
                    self.complete(&mut object);
                    named.found.push(object);
                }
                Err(Error::Api(status)) if is_missing_object(&status) => named.missing.push(self.place.no_such(name)),
                Err(error) => return Err(self.place.told("get", error)),
            }
        }
        Ok(named)
    }

    /// The object of this name.
    pub(super) async fn get(&self, name: &str) -> anyhow::Result<K> {
        let named = self.named(&[name.to_owned()]).await?;
        let found = named.found.first().ok_or_else(|| anyhow!(named.missing.join("; ")))?;
        typed(found)
    }

    /// Items of a list come without their kind. Who manages which field is nothing that people want to read.
    fn complete(&self, object: &mut DynamicObject) {
        if object.types.is_none() {
            object.types =
                Some(kube::core::TypeMeta { api_version: self.place.resource.api_version.clone(), kind: self.place.resource.kind.clone() });
        }
        object.metadata.managed_fields = None;
    }
}

/// An object as the type that this program knows.
pub(super) fn typed<K: DeserializeOwned>(object: &DynamicObject) -> anyhow::Result<K> {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let value = serde_json::to_value(object)?;
    serde_json::from_value(value).with_context(|| format!("{name} isn't as this program knows the kind; is it older than the hub?"))
}

/// Whether an answer says that the object isn't there; it may also be the kind that isn't.
fn is_missing_object(status: &kube::core::Status) -> bool {
    status.code == 404 && status.details.as_ref().is_some_and(|details| !details.name.is_empty())
}

impl Place {
    fn kind(&self) -> &str {
        &self.resource.kind
    }

    fn no_such(&self, name: &str) -> String {
        match &self.namespace {
            Some(namespace) => format!("there is no {} {name} in namespace {namespace}: name another namespace with -n", self.kind()),
            None => format!("there is no {} {name}", self.kind()),
        }
    }

    /// What an answer means, and what to do about it.
    fn told(&self, verb: &str, error: Error) -> anyhow::Error {
        let kind = self.kind();
        let resource = format!("{}.{}", self.resource.plural, self.resource.group);
        let place = self.namespace.as_ref().map_or_else(|| "the whole cluster".to_owned(), |namespace| format!("namespace {namespace}"));
        match &error {
            Error::Api(status) if status.code == 404 => anyhow!(
                "the cluster doesn't serve the kind {kind} ({resource}): if it is the hub, `odin-hub crds --apply` installs the kinds; \
                 else name the hub with --kubeconfig or --context"
            ),
            Error::Api(status) if status.code == 403 => {
                anyhow!("you may not {verb} {kind}s: ask the hub's administrator for the verb {verb} on {resource} in {place}")
            }
            Error::Api(status) if status.code == 401 => {
                anyhow!("the hub doesn't accept the credential in the kubeconfig: log in again, or name another with --context")
            }
            _ => anyhow::Error::new(error).context(format!("reading {kind}s of the hub")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kube::client::Body;
    use kube::core::Status;
    use kube::core::response::StatusDetails;
    use parking_lot::Mutex;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::federation::MemberCluster;
    use crate::api::odin::InferenceService;

    fn status(code: u16, name: &str) -> Status {
        let details: StatusDetails = serde_json::from_value(json!({"name": name})).unwrap();
        Status::failure("not found", "NotFound").with_code(code).with_details(details)
    }

    #[test]
    fn an_error_says_what_to_do() {
        let services = Place { resource: ApiResource::erase::<InferenceService>(&()), namespace: Some("demo".to_owned()) };
        let members = Place { resource: ApiResource::erase::<MemberCluster>(&()), namespace: None };
        assert_eq!(services.no_such("chat"), "there is no InferenceService chat in namespace demo: name another namespace with -n");
        assert_eq!(members.no_such("gpu-a"), "there is no MemberCluster gpu-a");
        for (place, code, wanted) in [
            (&services, 404, "`odin-hub crds --apply` installs the kinds"),
            (
                &services,
                403,
                "you may not list InferenceServices: ask the hub's administrator for the verb list on inferenceservices.odin.moreh.io in namespace demo",
            ),
            (&members, 403, "memberclusters.federation.odin.moreh.io in the whole cluster"),
            (&members, 401, "log in again"),
            (&members, 500, "reading MemberClusters of the hub"),
        ] {
            let told = format!("{:#}", place.told("list", Error::Api(status(code, "").boxed())));
            assert!(told.contains(wanted), "{told}");
        }
    }

    /// A list in pages, of which the third has expired when it is asked for.
    #[tokio::test]
    async fn a_list_has_all_pages() {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        let server = tower::service_fn(move |request: http::Request<Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            seen.lock().push(query.clone());
            let tries = seen.lock().iter().filter(|query| query.contains("continue=")).count();
            let expired = query.contains("continue=") && tries == 2;
            let (names, next): (&[&str], _) = match query.as_str() {
                _ if query.contains("continue=two") => (&["c", "d"], "three"),
                _ if query.contains("continue=three") => (&["e"], ""),
                _ if query.contains("limit=") => (&["a", "b"], "two"),
                _ => (&["a", "b", "c", "d", "e"], ""),
            };
            let items: Vec<Value> = names.iter().map(|name| json!({"metadata": {"name": name, "managedFields": []}})).collect();
            let body = if expired {
                json!({"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410})
            } else {
                json!({"apiVersion": "v1", "kind": "List", "metadata": {"continue": next}, "items": items})
            };
            let response = http::Response::builder().status(if expired { 410 } else { 200 });
            async move { response.body(Body::from(body.to_string().into_bytes())) }
        });
        let objects = Reader::<MemberCluster>::all(&Client::new(server, "default")).list().await.unwrap();
        let names: Vec<&str> = objects.iter().filter_map(|object| object.metadata.name.as_deref()).collect();
        assert_eq!(names, ["a", "b", "c", "d", "e"]);
        assert!(objects.iter().all(|object| object.types.as_ref().is_some_and(|types| types.kind == "MemberCluster")));
        assert!(objects.iter().all(|object| object.metadata.managed_fields.is_none()));
        let pages: Vec<bool> = asked.lock().iter().map(|query| query.contains("limit=500")).collect();
        assert_eq!(pages, [true, true, true, false], "{:?}", asked.lock());
    }

    #[test]
    fn a_missing_kind_is_no_missing_object() {
        assert!(is_missing_object(&status(404, "chat")));
        assert!(!is_missing_object(&status(404, "")));
        assert!(!is_missing_object(&status(403, "chat")));
        assert!(!is_missing_object(&Status::failure("404 page not found", "Failed to parse error data").with_code(404)));
    }
}
