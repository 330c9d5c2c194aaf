//! The proxy that understands requests.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use futures::StreamExt;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version, header, uri::PathAndQuery};
use http_body_util::{BodyExt, BodyStream, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Bytes, Incoming},
    service::service_fn,
};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use parking_lot::Mutex;
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use super::{
    Answer, Gate, Matcher,
    gate::{Cut, Passage},
};

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Body = UnsyncBoxBody<Bytes, BoxError>;
type ToServer = Client<HttpsConnector<HttpConnector>, Incoming>;

/// What a [`RequestProxy`] stands in front of, and as whom.
#[derive(Clone)]
pub struct Settings {
    /// A name for the log of writes, such as `member-1`.
    pub name: String,
    /// The API server: `https://HOST:PORT`.
    pub server: String,
    /// The CA that the API server's certificate is verified with, PEM.
    pub ca: String,
    /// The certificate chain that clients see, PEM: for 127.0.0.1, signed by a CA that they trust.
    pub certificate: String,
    /// Its private key, PEM.
    pub key: String,
    /// The gate that requests go through; several proxies may share one.
    pub gate: Gate,
}

/// An HTTPS reverse proxy on loopback in front of an API server, over HTTP/2 and HTTP/1.1 on both sides.
///
/// Bodies are streamed, so watches work. The `Authorization` header passes; client certificates end here, and so do
/// protocol upgrades (exec, attach, port-forward). Each client connection has its own connections to the server.
/// Dropping the proxy closes all of them.
#[derive(Debug)]
pub struct RequestProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    name: String,
    server: Uri,
    gate: Gate,
    to_server: ClientConfig,
    faults: Mutex<Vec<(Matcher, Answer)>>,
    standing: Mutex<Vec<(Matcher, Answer)>>,
    requests: Mutex<BTreeMap<(String, String), u64>>,
}

impl RequestProxy {
    /// Starts a proxy on a free port of 127.0.0.1, on the current tokio runtime.
    ///
    /// # Errors
    /// When the address, a certificate or the key cannot be read, or no port is free.
    pub async fn start(settings: Settings) -> anyhow::Result<Self> {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        for ca in CertificateDer::pem_slice_iter(settings.ca.as_bytes()) {
            roots.add(ca.context("CA of the API server")?).context("CA of the API server")?;
        }
        let to_server = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let chain = CertificateDer::pem_slice_iter(settings.certificate.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .context("certificate of the proxy")?;
        let key = PrivateKeyDer::from_pem_slice(settings.key.as_bytes()).context("key of the proxy")?;
        let mut to_client = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .context("certificate and key of the proxy")?;
        to_client.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];

        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let shared = Arc::new(Shared {
            name: settings.name,
            server: settings.server.parse().with_context(|| format!("address of the API server: {}", settings.server))?,
            gate: settings.gate,
            to_server,
            faults: Mutex::default(),
            standing: Mutex::default(),
            requests: Mutex::default(),
        });
        let address = listener.local_addr()?;
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, TlsAcceptor::from(Arc::new(to_client)), shared.clone()));
        Ok(Self { address, shared, _tasks: tasks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens, as the `server` of a kubeconfig.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Its gate.
    pub fn gate(&self) -> &Gate {
        &self.shared.gate
    }

    /// Answers the next request of a set with this, without asking the API server. Several calls are used up in their order.
    pub fn fail_next(&self, requests: Matcher, answer: Answer) {
        self.shared.faults.lock().push((requests, answer));
    }

    /// Takes back the answers of [`RequestProxy::fail_next`] that were not used; gives how many.
    pub fn forget_faults(&self) -> usize {
        std::mem::take(&mut *self.shared.faults.lock()).len()
    }

    /// Answers every request of a set with this from now on, without asking the API server; of several the newest that
    /// fits counts.
    pub fn always(&self, requests: Matcher, answer: Answer) {
        self.shared.standing.lock().insert(0, (requests, answer));
    }

    /// Takes back all answers of [`RequestProxy::always`].
    pub fn pass_again(&self) {
        self.shared.standing.lock().clear();
    }

    /// How often each method and path was asked for, held and failed requests included. The query does not count, but a
    /// watch has the method `WATCH`.
    pub fn requests(&self) -> BTreeMap<(String, String), u64> {
        self.shared.requests.lock().clone()
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, acceptor.clone(), shared.clone()));
                }
                // Out of file descriptors, say: others may be closed meanwhile.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    let passage = shared.gate.connection();
    let serving = async {
        stream.set_nodelay(true)?;
        let stream = acceptor.accept(stream).await?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let client = shared.client();
        let service = service_fn(|request| {
            let (shared, passage, client) = (shared.clone(), passage.clone(), client.clone());
            async move { shared.handle(request, &passage, &client).await }
        });
        let stream = TokioIo::new(stream);
        if http2 {
            hyper::server::conn::http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await?;
        } else {
            hyper::server::conn::http1::Builder::new().serve_connection(stream, service).await?;
        }
        Ok::<_, BoxError>(())
    };
    tokio::select! {
        result = serving => if let Err(error) = result {
            tracing::debug!(proxy = shared.name, %error, "connection ended");
        },
        () = passage.until_cut() => {}
    }
}

impl Shared {
    fn client(&self) -> ToServer {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(self.to_server.clone()).https_only().enable_all_versions().wrap_connector(tcp);
        Client::builder(TokioExecutor::new()).build(connector)
    }

    async fn handle(&self, request: Request<Incoming>, passage: &Passage, client: &ToServer) -> Result<Response<Body>, Cut> {
        self.count(&request);
        if let Some(answer) = self.fault(request.method(), request.uri()) {
            passage.pass().await?;
            return Ok(answer.response::<String>().map(boxed));
        }
        let ticket = passage.enter(&self.name, request.method(), request.uri()).await?;
        let answer = match self.forward(request, client).await {
            Ok(answer) => {
                ticket.answered(answer.status().as_u16());
                answer.map(|body| held(body, passage.clone()))
            }
            Err(error) => {
                drop(ticket);
                let message = format!("{} is not there: {error:#}", self.name);
                Answer::failure(StatusCode::BAD_GATEWAY, "BadGateway", &message).response::<String>().map(boxed)
            }
        };
        passage.pass().await?;
        Ok(answer)
    }

    async fn forward(&self, request: Request<Incoming>, client: &ToServer) -> anyhow::Result<Response<Incoming>> {
        let (mut head, body) = request.into_parts();
        let mut uri = self.server.clone().into_parts();
        uri.path_and_query = head.uri.path_and_query().cloned().or(Some(PathAndQuery::from_static("/")));
        head.uri = Uri::from_parts(uri)?;
        head.version = Version::HTTP_11;
        head.headers.remove(header::HOST);
        remove_hop_by_hop(&mut head.headers);
        let mut answer = client.request(Request::from_parts(head, body)).await?;
        remove_hop_by_hop(answer.headers_mut());
        *answer.version_mut() = Version::HTTP_11;
        Ok(answer)
    }

    fn count(&self, request: &Request<Incoming>) {
        let watches = request.uri().query().is_some_and(|query| query.split('&').any(|p| matches!(p, "watch=1" | "watch=true")));
        let method = if watches { "WATCH" } else { request.method().as_str() };
        *self.requests.lock().entry((method.to_owned(), request.uri().path().to_owned())).or_default() += 1;
    }

    fn fault(&self, method: &Method, uri: &Uri) -> Option<Answer> {
        let mut faults = self.faults.lock();
        if let Some(found) = faults.iter().position(|(requests, _)| requests.matches(method, uri)) {
            return Some(faults.remove(found).1);
        }
        let standing = self.standing.lock();
        standing.iter().find(|(requests, _)| requests.matches(method, uri)).map(|(_, answer)| answer.clone())
    }
}

fn boxed(text: String) -> Body {
    http_body_util::Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync()
}

/// A body each piece of which waits at the gate.
fn held(body: Incoming, passage: Passage) -> Body {
    let pieces = BodyStream::new(body).then(move |piece| {
        let passage = passage.clone();
        async move {
            passage.pass().await?;
            Ok(piece?)
        }
    });
    StreamBody::new(pieces).boxed_unsync()
}

/// Headers that speak of one connection only (RFC 9110, section 7.6.1).
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    for name in [header::CONNECTION, header::TE, header::TRAILER, header::TRANSFER_ENCODING, header::UPGRADE] {
        headers.remove(name);
    }
    headers.remove("keep-alive");
    headers.remove("proxy-connection");
}

#[cfg(test)]
mod tests;
