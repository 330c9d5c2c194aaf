use super::*;
use futures::{FutureExt, stream};
use http::HeaderValue;
use http_body_util::Full;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::sync::mpsc;

type Authority = CertifiedIssuer<'static, KeyPair>;
type TestClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for 127.0.0.1 and its key, PEM.
fn certificate(ca: &Authority) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, ca).unwrap();
    (certificate.pem(), key.serialize_pem())
}

fn roots(ca: &Authority) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(ca.der().clone()).unwrap();
    roots
}

/// Plays an API server: says what it was asked, and streams at `/watch` what the test sends.
struct Server {
    ca: Authority,
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    watch: mpsc::Sender<&'static str>,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn start() -> Self {
        let ca = authority();
        let (certificate, key) = certificate(&ca);
        let mut tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(vec![]));
        let (watch, pieces) = mpsc::channel(8);
        let pieces = Arc::new(Mutex::new(Some(pieces)));
        let mut tasks = JoinSet::new();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let log = asked.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, log, pieces) = (acceptor.clone(), log.clone(), pieces.clone());
                connections.spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(|request| answer(request, log.clone(), pieces.clone()));
                    let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self { ca, address, asked, watch, _tasks: tasks }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }

    async fn proxy(&self, name: &str, gate: &Gate) -> RequestProxy {
        let (certificate, key) = certificate(&self.ca);
        let settings = Settings {
            name: name.to_owned(),
            server: format!("https://{}", self.address),
            ca: self.ca.pem(),
            certificate,
            key,
            gate: gate.clone(),
        };
        RequestProxy::start(settings).await.unwrap()
    }

    fn client(&self, http2: bool) -> TestClient {
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots(&self.ca))
            .with_no_client_auth();
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_only();
        let connector = if http2 { builder.enable_http2().build() } else { builder.enable_http1().build() };
        Client::builder(TokioExecutor::new()).http2_only(http2).build(connector)
    }
}

async fn answer(
    request: Request<Incoming>,
    log: Arc<Mutex<Vec<String>>>,
    pieces: Arc<Mutex<Option<mpsc::Receiver<&'static str>>>>,
) -> Result<Response<Body>, BoxError> {
    if request.uri().path() == "/watch" {
        let pieces = pieces.lock().take().ok_or("one watch only")?;
        let frames = stream::unfold(pieces, |mut pieces| async move {
            let piece = pieces.recv().await?;
            Some((Ok::<_, BoxError>(hyper::body::Frame::data(Bytes::from(piece))), pieces))
        });
        return Ok(Response::new(StreamBody::new(frames).boxed_unsync()));
    }
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let who = head.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let text = format!("{} {} [{who}] {}", head.method, head.uri.path_and_query().ok_or("no path")?, String::from_utf8_lossy(&body));
    log.lock().push(text.clone());
    Ok(Response::new(boxed(text)))
}

fn request(proxy: &RequestProxy, method: &Method, path: &str, body: &str) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(format!("{}{path}", proxy.url()))
        .header(header::AUTHORIZATION, "Bearer t")
        .body(Full::from(body.to_owned()))
        .unwrap()
}

async fn send(client: &TestClient, proxy: &RequestProxy, method: &Method, path: &str) -> Result<(StatusCode, String), BoxError> {
    let answer = client.request(request(proxy, method, path, "")).await?;
    let status = answer.status();
    Ok((status, String::from_utf8(answer.into_body().collect().await?.to_bytes().to_vec())?))
}

#[tokio::test]
async fn requests_pass_over_both_protocols() {
    let server = Server::start().await;
    let proxy = server.proxy("hub", &Gate::new()).await;
    for http2 in [true, false] {
        let answer = server.client(http2).request(request(&proxy, &Method::PATCH, "/api/v1/x?force=true", "body")).await.unwrap();
        assert_eq!(answer.version() == Version::HTTP_2, http2);
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(String::from_utf8_lossy(&text), "PATCH /api/v1/x?force=true [Bearer t] body", "http2: {http2}");
    }
    assert_eq!(proxy.requests(), BTreeMap::from([(("PATCH".to_owned(), "/api/v1/x".to_owned()), 2)]));
    assert_eq!(proxy.gate().writes().iter().map(ToString::to_string).collect::<Vec<_>>(), ["hub PATCH /api/v1/x → 200"; 2]);
    assert_eq!(proxy.gate().writes_by_path().into_values().collect::<Vec<_>>(), [2]);
}

#[tokio::test]
async fn a_watch_flows_piece_by_piece_and_stops_with_the_gate() {
    let server = Server::start().await;
    let proxy = server.proxy("hub", &Gate::new()).await;
    let client = server.client(true);
    let mut watch = client.request(request(&proxy, &Method::GET, "/watch?watch=1", "")).await.unwrap().into_body();
    let mut next = async |within| {
        let frame = tokio::time::timeout(Duration::from_millis(within), watch.frame()).await.ok()?;
        frame?.ok()?.into_data().ok()
    };
    for piece in ["one", "two"] {
        server.watch.send(piece).await.unwrap();
        assert_eq!(next(10_000).await.unwrap(), piece);
    }
    assert!(proxy.gate().after_writes(0).await);
    server.watch.send("three").await.unwrap();
    assert!(next(200).await.is_none(), "a piece went through a closed gate");
    proxy.gate().release();
    assert_eq!(next(10_000).await.unwrap(), "three");
    assert_eq!(proxy.requests(), BTreeMap::from([(("WATCH".to_owned(), "/watch".to_owned()), 1)]));
}

#[tokio::test]
async fn the_gate_stops_two_proxies_after_a_write_and_a_cut_drops_what_was_held() {
    let (hub, member) = (Server::start().await, Server::start().await);
    let gate = Gate::new();
    let (hub_proxy, member_proxy) = (hub.proxy("hub", &gate).await, member.proxy("member", &gate).await);
    let (hub_client, member_client) = (hub.client(true), member.client(false));
    let stop = gate.after_writes(2);
    send(&hub_client, &hub_proxy, &Method::POST, "/first").await.unwrap();
    send(&hub_client, &hub_proxy, &Method::GET, "/read").await.unwrap();

    let second = send(&member_client, &member_proxy, &Method::PUT, "/second");
    let mut second = std::pin::pin!(second);
    tokio::select! {
        _ = &mut second => panic!("the answer of the last write went through"),
        stopped = stop => assert!(stopped),
    }
    assert_eq!(member.asked(), ["PUT /second [Bearer t] "], "the server has it");
    let mut third = std::pin::pin!(send(&hub_client, &hub_proxy, &Method::POST, "/third"));
    assert!(tokio::time::timeout(Duration::from_millis(200), &mut third).await.is_err());

    gate.cut();
    assert!(second.await.is_err() && third.await.is_err(), "held requests end with their connections");
    assert_eq!(send(&hub_client, &hub_proxy, &Method::POST, "/fourth").await.unwrap().0, StatusCode::OK);
    assert_eq!(hub.asked(), ["POST /first [Bearer t] ", "GET /read [Bearer t] ", "POST /fourth [Bearer t] "]);
    assert_eq!(gate.writes().iter().map(|write| write.path.as_str()).collect::<Vec<_>>(), ["/first", "/second", "/fourth"]);
}

#[tokio::test]
async fn a_released_gate_lets_go_on_what_it_held() {
    let server = Server::start().await;
    let proxy = server.proxy("hub", &Gate::new()).await;
    let client = server.client(true);
    let stop = proxy.gate().after(1, Matcher::path("/held"));
    let (answers, ()) = tokio::join!(
        async { tokio::join!(send(&client, &proxy, &Method::POST, "/held/1"), send(&client, &proxy, &Method::POST, "/held/2")) },
        async {
            assert!(stop.await);
            assert_eq!(server.asked().len(), 1);
            proxy.gate().release();
        }
    );
    assert_eq!((answers.0.unwrap().0, answers.1.unwrap().0), (StatusCode::OK, StatusCode::OK));
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn chosen_answers_come_once_and_never_reach_the_server() {
    let server = Server::start().await;
    let proxy = server.proxy("hub", &Gate::new()).await;
    let client = server.client(true);
    let busy = Answer::failure(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", "slow down")
        .header(header::RETRY_AFTER, HeaderValue::from_static("1"));
    proxy.fail_next(Matcher::writes(), busy);
    proxy.fail_next(Matcher::writes(), Answer::new(StatusCode::INTERNAL_SERVER_ERROR, "oops"));
    assert_eq!(send(&client, &proxy, &Method::GET, "/a").await.unwrap().0, StatusCode::OK);
    let answer = client.request(request(&proxy, &Method::POST, "/a", "")).await.unwrap();
    assert_eq!((answer.status(), answer.headers()[header::RETRY_AFTER].to_str().unwrap()), (StatusCode::TOO_MANY_REQUESTS, "1"));
    let status: serde_json::Value = serde_json::from_slice(&answer.into_body().collect().await.unwrap().to_bytes()).unwrap();
    assert_eq!((status["reason"].as_str(), status["code"].as_u64()), (Some("TooManyRequests"), Some(429)));
    assert_eq!(send(&client, &proxy, &Method::POST, "/a").await.unwrap(), (StatusCode::INTERNAL_SERVER_ERROR, "oops".to_owned()));
    assert_eq!(send(&client, &proxy, &Method::POST, "/a").await.unwrap().0, StatusCode::OK);
    assert_eq!(server.asked().len(), 2);
    assert_eq!(proxy.gate().writes().len(), 1, "only the server's answers count as writes");
    proxy.fail_next(Matcher::any(), Answer::new(StatusCode::CONFLICT, ""));
    assert_eq!(proxy.forget_faults(), 1);
    for (body, times) in [("one", 2), ("two", 1)] {
        proxy.always(Matcher::path("/a"), Answer::new(StatusCode::OK, body));
        for _ in 0..times {
            assert_eq!(send(&client, &proxy, &Method::GET, "/a").await.unwrap(), (StatusCode::OK, body.to_owned()));
        }
    }
    assert_eq!(server.asked().len(), 2, "nor do those that stay");
}

#[tokio::test]
async fn a_server_that_cannot_be_trusted_or_reached_gets_nothing() {
    let (server, other) = (Server::start().await, Server::start().await);
    let (certificate, key) = certificate(&server.ca);
    let settings = |server: String| Settings {
        name: "member-1".to_owned(),
        server,
        ca: server_ca(&other),
        certificate: certificate.clone(),
        key: key.clone(),
        gate: Gate::new(),
    };
    let gone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap();
    for address in [server.address, gone] {
        let proxy = RequestProxy::start(settings(format!("https://{address}"))).await.unwrap();
        let stop = proxy.gate().after_writes(1);
        let (status, text) = send(&server.client(true), &proxy, &Method::POST, "/a").await.unwrap();
        assert_eq!(status, StatusCode::BAD_GATEWAY);
        assert!(text.contains("member-1 is not there"), "{text}");
        assert!(stop.now_or_never().is_none(), "it counted");
    }
    assert!(server.asked().is_empty());
}

fn server_ca(server: &Server) -> String {
    server.ca.pem()
}

#[tokio::test]
async fn what_a_dead_client_left_at_the_gate_never_reaches_the_server() {
    let server = Server::start().await;
    let proxy = server.proxy("hub", &Gate::new()).await;
    for http2 in [true, false] {
        let client = server.client(http2);
        let stop = proxy.gate().after(1, Matcher::path("/last"));
        let left = ["/last", "/left"].map(|path| {
            let (client, request) = (client.clone(), request(&proxy, &Method::POST, path, ""));
            tokio::spawn(async move { client.request(request).await.map(drop) })
        });
        assert!(stop.await);
        // Both requests are there; the second may have passed before the gate closed, so a third one is sure to be held.
        let third = tokio::time::timeout(Duration::from_millis(100), send(&client, &proxy, &Method::POST, "/held")).await;
        assert!(third.is_err());
        for request in left {
            request.abort();
        }
        drop(client);
        tokio::time::sleep(Duration::from_millis(100)).await;
        proxy.gate().release();
    }
    send(&server.client(true), &proxy, &Method::GET, "/end").await.unwrap();
    assert!(!server.asked().iter().any(|asked| asked.contains("/held")), "{:?}", server.asked());
}

#[tokio::test]
async fn dropping_the_proxy_closes_its_connections() {
    let server = Server::start().await;
    let proxy = server.proxy("hub", &Gate::new()).await;
    let client = server.client(true);
    let mut watch = client.request(request(&proxy, &Method::GET, "/watch", "")).await.unwrap().into_body();
    drop(proxy);
    let end = tokio::time::timeout(Duration::from_secs(10), watch.frame()).await.expect("the connection stays open");
    assert!(end.is_none_or(|frame| frame.is_err()));
}
