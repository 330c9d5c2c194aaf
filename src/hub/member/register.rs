//! A labelled Secret registers a member: the hub makes the `MemberCluster` of the same name.

use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt as _};

use crate::api::federation::{MemberCluster, MemberClusterSpec, SecretRef};

/// Makes the `MemberCluster` of a Secret, unless there is one. Returns whether it was made.
pub(crate) async fn register(client: &Client, secret: &Secret) -> kube::Result<bool> {
    let name = secret.name_any();
    let spec = MemberClusterSpec { secret_ref: SecretRef { name: name.clone(), key: None }, ..MemberClusterSpec::default() };
    let api: Api<MemberCluster> = Api::all(client.clone());
    match api.create(&PostParams::default(), &MemberCluster::new(&name, spec)).await {
        Ok(_) => {
            tracing::info!(member = %name, "registered by its Secret");
            Ok(true)
        }
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(false),
        Err(error) => Err(error),
    }
}
