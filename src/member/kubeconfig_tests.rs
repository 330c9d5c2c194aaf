use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use super::*;

/// Texts that stand for secrets: none of them may come out anywhere.
const TOKEN: &str = "canary-token-5a1f";
const PASSWORD: &str = "canary-password-77";

struct Issue {
    certificate: String,
    key: String,
}

fn issue() -> Issue {
    let made = rcgen::generate_simple_self_signed(["member".to_owned()]).unwrap();
    Issue { certificate: STANDARD.encode(made.cert.pem()), key: STANDARD.encode(made.signing_key.serialize_pem()) }
}

/// A good kubeconfig with a token.
fn good() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "other", "context": {"cluster": "none", "user": "none"}}, {"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://10.0.0.1:6443", "certificate-authority-data": issue().certificate}}],
        "users": [{"name": "x", "user": {"exec": {"command": "true"}}}, {"name": "u", "user": {"token": TOKEN}}],
    })
}

/// `good` with one value set.
fn with(pointer: &str, value: Value) -> Value {
    let mut config = good();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match config.pointer_mut(parent).unwrap() {
        Value::Object(fields) => {
            fields.insert(key.to_owned(), value);
        }
        Value::Array(entries) => entries[key.parse::<usize>().unwrap()] = value,
        other => panic!("{other}"),
    }
    config
}

fn parse(config: &Value) -> Result<Credential, KubeconfigError> {
    parse_kubeconfig(serde_json::to_string(config).unwrap().as_bytes())
}

#[test]
fn each_refused_form_names_its_field_and_what_to_do() {
    let made = issue();
    let other = issue();
    let user = "/users/1/user/";
    let cluster = "/clusters/0/cluster/";
    let cases: Vec<(Value, &str, &str)> = vec![
        (
            with(&format!("{user}exec"), json!({"command": "aws", "args": [PASSWORD]})),
            "users[1].user.exec",
            "odin-hub join NAME --kubeconfig F",
        ),
        (with(&format!("{user}auth-provider"), json!({"name": "gcp"})), "users[1].user.auth-provider", "odin-hub join"),
        (with(&format!("{user}tokenFile"), json!("/canary-token-file")), "users[1].user.tokenFile", "into token"),
        (with(&format!("{user}client-certificate"), json!("/canary")), "users[1].user.client-certificate", "client-certificate-data"),
        (with(&format!("{user}client-key"), json!("/canary")), "users[1].user.client-key", "client-key-data"),
        (with(&format!("{user}username"), json!("canary")), "users[1].user.username", "odin-hub join"),
        (with(&format!("{user}password"), json!(PASSWORD)), "users[1].user.password", "odin-hub join"),
        (with(&format!("{user}as"), json!("canary")), "users[1].user.as", "odin-hub join"),
        (with(&format!("{user}as-uid"), json!("canary")), "users[1].user.as-uid", "odin-hub join"),
        (with(&format!("{user}as-groups"), json!(["canary"])), "users[1].user.as-groups", "odin-hub join"),
        (with(&format!("{user}as-user-extra"), json!({"canary": []})), "users[1].user.as-user-extra", "odin-hub join"),
        (with(&format!("{user}token"), json!("canary token")), "users[1].user.token", "spaces"),
        (with(&format!("{user}token"), json!(12345)), "users[1].user.token", "quotes"),
        (with("/users/1/user", json!({})), "users[1].user", "neither token nor client-certificate-data"),
        (with("/users/1/user", json!({"client-certificate-data": made.certificate})), "users[1].user.client-key-data", "missing"),
        (with("/users/1/user", json!({"client-key-data": made.key})), "users[1].user.client-certificate-data", "missing"),
        (
            with("/users/1/user", json!({"client-certificate-data": "canary!", "client-key-data": made.key})),
            "users[1].user.client-certificate-data",
            "base64",
        ),
        (
            with("/users/1/user", json!({"client-certificate-data": "Y2FuYXJ5", "client-key-data": made.key})),
            "users[1].user.client-certificate-data",
            "PEM",
        ),
        (
            with("/users/1/user", json!({"client-certificate-data": made.certificate, "client-key-data": "Y2FuYXJ5"})),
            "users[1].user.client-key-data",
            "PEM",
        ),
        (
            with("/users/1/user", json!({"client-certificate-data": made.certificate, "client-key-data": other.key})),
            "users[1].user.client-key-data",
            "private key of the certificate",
        ),
        (with(&format!("{cluster}server"), json!("http://canary:80")), "clusters[0].cluster.server", "https"),
        (with(&format!("{cluster}server"), json!("canary")), "clusters[0].cluster.server", "URL"),
        (with(&format!("{cluster}server"), json!("https://canary:canary@h")), "clusters[0].cluster.server", "user"),
        (with(&format!("{cluster}server"), json!("https://h/?canary")), "clusters[0].cluster.server", "query"),
        (with(&format!("{cluster}server"), json!("")), "clusters[0].cluster.server", "missing"),
        (
            with(&format!("{cluster}insecure-skip-tls-verify"), json!(true)),
            "clusters[0].cluster.insecure-skip-tls-verify",
            "certificate-authority-data",
        ),
        (
            with(&format!("{cluster}certificate-authority"), json!("/canary")),
            "clusters[0].cluster.certificate-authority",
            "certificate-authority-data",
        ),
        (with(&format!("{cluster}certificate-authority-data"), json!("Y2FuYXJ5")), "clusters[0].cluster.certificate-authority-data", "PEM"),
        (with(&format!("{cluster}tls-server-name"), json!("canary canary")), "clusters[0].cluster.tls-server-name", "host name"),
        (with(&format!("{cluster}proxy-url"), json!("https://canary:canary@p")), "clusters[0].cluster.proxy-url", "socks5://"),
        (with("/current-context", json!(null)), "current-context", "several contexts"),
        (with("/current-context", json!("canary")), "current-context", "names no entry"),
        (with("/contexts", json!([])), "contexts", "empty"),
        (with("/contexts", json!("canary")), "contexts", "list"),
        (with("/contexts/1", json!({"name": "c"})), "contexts[1].context", "mapping"),
        (with("/contexts/1/context/user", json!("canary")), "contexts[1].context.user", "users"),
        (with("/contexts/1/context/cluster", json!(null)), "contexts[1].context.cluster", "missing"),
        (json!(["canary"]), "kubeconfig", "mapping"),
    ];
    for (config, field, advice) in cases {
        let error = parse(&config).map(|_| ()).expect_err(field);
        assert_eq!(error.field, field, "{error}");
        assert!(error.to_string().contains(advice), "{error}");
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?} holds text of the kubeconfig");
    }
}

#[test]
fn bytes_that_are_no_kubeconfig_are_refused() {
    let large = format!("a: {}", "canary ".repeat(MAX_BYTES / 6));
    let bomb = "canary: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c]\n\
                e: &e [*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f]\n";
    let cases: [(&[u8], &str); 6] = [
        (b"\xff\xfecanary", "UTF-8"),
        (b"users: [canary", "not YAML"),
        (b"users: canary\nusers: canary\n", "not YAML"),
        (large.as_bytes(), "1 MiB"),
        (b"", "mapping"),
        (bomb.as_bytes(), ""),
    ];
    for (bytes, part) in cases {
        let error = parse_kubeconfig(bytes).map(|_| ()).expect_err(part);
        assert!(error.message.contains(part), "{error}: {:?}", String::from_utf8_lossy(bytes.get(..40).unwrap_or(bytes)));
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
    }
}

#[test]
fn good_forms_are_taken() {
    let made = issue();
    let pair = json!({"client-certificate-data": made.certificate, "client-key-data": made.key});
    let cases = [
        (good(), CredentialKind::Token),
        (with("/users/1/user", pair), CredentialKind::ClientCertificate),
        (with("/clusters/0/cluster/proxy-url", json!("socks5://u:p@127.0.0.1:1080")), CredentialKind::Token),
        (with("/clusters/0/cluster/tls-server-name", json!("kubernetes")), CredentialKind::Token),
        (with("/clusters/0/cluster/insecure-skip-tls-verify", json!(false)), CredentialKind::Token),
        (with("/clusters/0/cluster/certificate-authority-data", json!(null)), CredentialKind::Token),
        (with("/clusters/0/cluster/server", json!("https://rancher.example/k8s/clusters/c-1")), CredentialKind::Token),
        (with("/clusters/0/cluster/certificate-authority", json!("")), CredentialKind::Token),
    ];
    for (config, kind) in cases {
        let credential = parse(&config).unwrap_or_else(|e| panic!("{e}: {config}"));
        assert_eq!(credential.kind(), kind);
        assert!(!credential.config().default_retry);
    }
}

#[test]
fn the_only_context_needs_not_be_named() {
    let mut config = with("/current-context", json!(null));
    config["contexts"].as_array_mut().unwrap().remove(0);
    assert!(parse(&config).is_ok());
}

#[test]
fn yaml_as_people_write_it_is_taken() {
    let yaml = format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: k\n  cluster:\n    server: https://h:6443\n    certificate-authority-data: |\n      {}\n\
         contexts:\n- name: c\n  context: {{cluster: k, user: u}}\ncurrent-context: c\nusers:\n- name: u\n  user: {{token: {TOKEN}}}\n",
        issue().certificate
    );
    assert!(parse_kubeconfig(yaml.as_bytes()).is_ok());
}

#[test]
fn debug_prints_nothing_of_a_credential() {
    let credential = parse(&with("/clusters/0/cluster/proxy-url", json!(format!("http://u:{PASSWORD}@h")))).unwrap();
    assert_eq!(format!("{credential:?}"), "…");
    assert_eq!(format!("{:#?}", Some(credential)).matches("canary").count(), 0);
}

#[test]
fn status_tells_type_and_end_but_not_the_credential() {
    let claims = URL_SAFE_NO_PAD.encode(r#"{"exp":1767225600}"#);
    let credential = parse(&with("/users/1/user/token", json!(format!("canary.{claims}.canary")))).unwrap();
    let at = |text: &str| credential.status(text.parse().unwrap());
    let status = at("2025-12-02T12:00:00Z");
    assert_eq!((status.type_.as_str(), status.expires_in.as_deref()), ("token", Some("29d")));
    assert_eq!(status.expires_at.as_ref().map(|t| t.0.to_string()).as_deref(), Some("2026-01-01T00:00:00Z"));
    assert_eq!(at("2026-01-01T00:00:00Z").expires_in.as_deref(), Some("expired"));
    assert!(!format!("{status:?}").contains("canary"));

    let made = issue();
    let credential =
        parse(&with("/users/1/user", json!({"client-certificate-data": made.certificate, "client-key-data": made.key}))).unwrap();
    assert!(credential.expires_at().is_some());
}
