//! From an administrator's kubeconfig of a member to the one that the hub gets. Pure but for the CA file.

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{Cluster, Kubeconfig};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

/// Where a member's API server is and how to tell that it is the right one. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) server: String,
    /// PEM, base64-encoded. Without it the public CA roots count.
    pub(super) authority: Option<String>,
    pub(super) tls_server_name: Option<String>,
    pub(super) proxy_url: Option<String>,
}

impl Endpoint {
    /// The endpoint that a context of a kubeconfig names, the current one by default.
    pub(super) fn of(kubeconfig: &Kubeconfig, context: Option<&str>) -> anyhow::Result<Self> {
        let Some(context) = context.or(kubeconfig.current_context.as_deref()) else {
            bail!("it has no current-context: name one with --context");
        };
        let named = kubeconfig.contexts.iter().find(|named| named.name == context);
        let Some(cluster) = named.and_then(|named| named.context.as_ref()).map(|context| &context.cluster) else {
            let known: Vec<&str> = kubeconfig.contexts.iter().map(|named| named.name.as_str()).collect();
            bail!("it has no context {context}; it has: {}", known.join(", "));
        };
        let named = kubeconfig.clusters.iter().find(|named| named.name == *cluster);
        let Some(cluster) = named.and_then(|named| named.cluster.as_ref()) else {
            bail!("context {context} names the cluster {cluster}, which is not in the file");
        };
        Self::from_cluster(cluster)
    }

    fn from_cluster(cluster: &Cluster) -> anyhow::Result<Self> {
        let server = cluster.server.clone().unwrap_or_default();
        ensure!(
            server.starts_with("https://"),
            "the cluster's server is {server:?}: the hub sends its credential over https only; use a server that starts with https://"
        );
        ensure!(
            cluster.insecure_skip_tls_verify != Some(true),
            "insecure-skip-tls-verify is set, and the hub always checks the server's certificate: remove it and set certificate-authority-data"
        );
        let authority = match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
            (Some(data), _) => Some(data.clone()),
            (None, Some(file)) => {
                let pem = std::fs::read(file).with_context(|| format!("certificate-authority {file}"))?;
                Some(STANDARD.encode(pem))
            }
            (None, None) => None,
        };
        Ok(Self { server, authority, tls_server_name: cluster.tls_server_name.clone(), proxy_url: cluster.proxy_url.clone() })
    }

    /// A kubeconfig that holds everything inline and nothing that would have to be run or read. It is a secret.
    pub(super) fn kubeconfig(&self, member: &str, token: &SecretString) -> SecretString {
        let mut cluster = json!({"server": self.server});
        let optional =
            [("certificate-authority-data", &self.authority), ("tls-server-name", &self.tls_server_name), ("proxy-url", &self.proxy_url)];
        for (field, value) in optional {
            if let (Some(value), Value::Object(cluster)) = (value, &mut cluster) {
                cluster.insert(field.to_owned(), json!(value));
            }
        }
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": member,
            "clusters": [{"name": member, "cluster": cluster}],
            "contexts": [{"name": member, "context": {"cluster": member, "user": super::account::SERVICE_ACCOUNT}}],
            "users": [{"name": super::account::SERVICE_ACCOUNT, "user": {"token": token.expose_secret()}}],
        });
        // JSON is YAML.
        format!("{kubeconfig:#}\n").into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(cluster: &str) -> Kubeconfig {
        let text = format!(
            "{{apiVersion: v1, kind: Config, current-context: one,
              contexts: [{{name: one, context: {{cluster: c, user: u}}}}, {{name: two, context: {{cluster: gone, user: u}}}}],
              users: [{{name: u, user: {{exec: {{command: never, apiVersion: client.authentication.k8s.io/v1}}}}}}],
              clusters: [{{name: c, cluster: {cluster}}}]}}"
        );
        Kubeconfig::from_yaml(&text).unwrap()
    }

    #[test]
    fn what_is_taken_and_what_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let pem = folder.path().join("ca.pem");
        std::fs::write(&pem, "PEM").unwrap();
        let by_file = format!("{{server: 'https://a', certificate-authority: {}}}", pem.display());
        type Wanted<'a> = Result<(&'a str, Option<&'a str>), &'a str>;
        let cases: &[(&str, Option<&str>, Wanted<'_>)] = &[
            ("{server: 'https://a:6443', certificate-authority-data: UEVN}", None, Ok(("https://a:6443", Some("UEVN")))),
            (&by_file, None, Ok(("https://a", Some("UEVN")))),
            ("{server: 'https://a'}", Some("one"), Ok(("https://a", None))),
            ("{server: 'http://a'}", None, Err("https only")),
            ("{}", None, Err("https only")),
            ("{server: 'https://a', insecure-skip-tls-verify: true}", None, Err("insecure-skip-tls-verify is set")),
            ("{server: 'https://a', certificate-authority: /does/not/exist}", None, Err("certificate-authority /does/not/exist")),
            ("{server: 'https://a'}", Some("two"), Err("the cluster gone, which is not in the file")),
            ("{server: 'https://a'}", Some("three"), Err("no context three; it has: one, two")),
        ];
        for (cluster, context, wanted) in cases {
            let got = Endpoint::of(&file(cluster), *context).map_err(|error| format!("{error:#}"));
            match (got, wanted) {
                (Ok(got), Ok((server, authority))) => {
                    assert_eq!((got.server.as_str(), got.authority.as_deref()), (*server, *authority), "{cluster}");
                }
                (Err(got), Err(wanted)) => assert!(got.contains(wanted), "{cluster}: {got}"),
                (got, wanted) => panic!("{cluster}: {got:?}, not {wanted:?}"),
            }
        }
        let mut no_current = file("{server: 'https://a'}");
        no_current.current_context = None;
        assert!(Endpoint::of(&no_current, None).unwrap_err().to_string().contains("--context"));
    }

    #[test]
    fn the_hubs_kubeconfig_reads_back() {
        let endpoint = Endpoint {
            server: "https://a:6443".to_owned(),
            authority: Some("UEVN".to_owned()),
            tls_server_name: Some("b".to_owned()),
            proxy_url: None,
        };
        let text = endpoint.kubeconfig("member-1", &"the-token".to_owned().into());
        let back = Kubeconfig::from_yaml(text.expose_secret()).unwrap();
        assert_eq!(Endpoint::of(&back, None).unwrap(), endpoint);
        let user = back.auth_infos.first().unwrap();
        assert_eq!(user.auth_info.as_ref().unwrap().token.as_ref().unwrap().expose_secret(), "the-token");
    }
}
