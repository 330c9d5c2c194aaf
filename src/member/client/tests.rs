//! The stack against servers that misbehave, all on loopback.

use std::time::{Duration, Instant};

use http::Request;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{Failure, Limits, build, classify};

fn limits() -> Limits {
    Limits {
        connect_timeout: Duration::from_millis(100),
        header_timeout: Duration::from_millis(200),
        call_timeout: Duration::from_millis(400),
        max_body: 1000,
        ..Limits::default()
    }
}

/// A server that does this with each connection.
async fn server<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> u16
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    port
}

/// Takes what comes and never answers.
async fn silent(mut stream: TcpStream) {
    let mut buffer = [0; 1024];
    while stream.read(&mut buffer).await.is_ok_and(|n| n > 0) {}
}

/// Reads the request and writes this, then stays.
async fn answer(mut stream: TcpStream, text: String) {
    let mut buffer = [0; 4096];
    let _ = stream.read(&mut buffer).await;
    let _ = stream.write_all(text.as_bytes()).await;
    silent(stream).await;
}

async fn get(scheme: &str, port: u16, path: &str) -> Result<String, Failure> {
    let config = kube::Config::new(format!("{scheme}://127.0.0.1:{port}").parse().unwrap());
    let client = build(&config, &limits()).unwrap();
    client.request_text(Request::get(path).body(Vec::new()).unwrap()).await.map_err(|e| classify(&e))
}

#[tokio::test]
async fn a_server_that_never_ends_the_handshake_is_unreachable() {
    let port = server(silent).await;
    let start = Instant::now();
    let failure = get("https", port, "/readyz").await.unwrap_err();
    assert_eq!(failure, Failure::Unreachable("no connection within 100ms".into()));
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_server_that_never_answers_leaves_the_outcome_unknown() {
    let port = server(silent).await;
    for path in ["/readyz", "/api/v1/pods?watch=true"] {
        assert_eq!(get("http", port, path).await, Err(Failure::Unknown("no answer within 200ms".into())), "{path}");
    }
}

#[tokio::test]
async fn a_body_that_never_ends_is_given_up_unless_it_is_a_watch() {
    let port = server(|s| answer(s, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".into())).await;
    assert_eq!(get("http", port, "/api").await, Err(Failure::Unknown("no complete answer within 400ms".into())));
    let watch = get("http", port, "/api/v1/pods?watch=true");
    assert!(tokio::time::timeout(Duration::from_millis(800), watch).await.is_err(), "a watch goes on");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_given_up() {
    let body = "x".repeat(1001);
    let port = server(move |s| answer(s, format!("HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n{body}"))).await;
    assert_eq!(get("http", port, "/api").await, Err(Failure::Broken("the answer is larger than 1000 bytes".into())));
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().port()
    };
    assert!(matches!(get("http", port, "/readyz").await, Err(Failure::Unreachable(_))));
}

#[tokio::test]
async fn a_busy_server_is_asked_only_once() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let port = server(move |s| {
        count.fetch_add(1, Ordering::SeqCst);
        answer(s, "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nbusy".into())
    })
    .await;
    assert_eq!(get("http", port, "/api").await, Err(Failure::Busy { message: "busy".into(), after: None }));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}
