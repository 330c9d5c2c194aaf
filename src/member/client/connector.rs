//! How a connection is made: TCP without delay, through a proxy if there is one, then TLS; all of it in bounded time.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::TokioIo;
use kube::client::ConfigExt as _;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tower::{BoxError, Service};

use super::bounds::{Phase, TimedOut};

type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// The way to the server: straight or through its proxy.
#[derive(Clone, Debug)]
pub(super) enum Route {
    Direct(HttpConnector),
    Http(Tunnel<HttpConnector>),
    Socks(SocksV5<HttpConnector>),
}

impl Route {
    fn new(proxy: Option<&Uri>) -> Result<Self, BoxError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        // Without it each request with a body waits 40 ms for an acknowledgement that the server delays.
        tcp.set_nodelay(true);
        let Some(proxy) = proxy else { return Ok(Self::Direct(tcp)) };
        let login = proxy.authority().and_then(|a| a.as_str().rsplit_once('@')).map(|(login, _)| decode_percent(login));
        match proxy.scheme_str() {
            Some("http") => {
                let tunnel = Tunnel::new(proxy.clone(), tcp);
                Ok(Self::Http(match login {
                    Some(login) => {
                        let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(login)))?;
                        value.set_sensitive(true);
                        tunnel.with_auth(value)
                    }
                    None => tunnel,
                }))
            }
            Some("socks5") => {
                let socks = SocksV5::new(proxy.clone(), tcp);
                let login = login.map(|login| String::from_utf8_lossy(&login).into_owned());
                Ok(Self::Socks(match login.as_deref().and_then(|login| login.split_once(':')) {
                    Some((user, password)) => socks.with_auth(user.to_owned(), password.to_owned()),
                    None => socks,
                }))
            }
            _ => Err("the proxy is neither http:// nor socks5://".into()),
        }
    }
}

impl Service<Uri> for Route {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Self::Direct(route) => route.poll_ready(cx).map_err(Into::into),
            Self::Http(route) => route.poll_ready(cx).map_err(Into::into),
            Self::Socks(route) => route.poll_ready(cx).map_err(Into::into),
        }
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        match self {
            Self::Direct(route) => boxed(route.call(to)),
            Self::Http(route) => boxed(route.call(to)),
            Self::Socks(route) => boxed(route.call(to)),
        }
    }
}

fn boxed<T, E: Into<BoxError>>(connecting: impl Future<Output = Result<T, E>> + Send + 'static) -> Connecting<T> {
    Box::pin(async move { connecting.await.map_err(Into::into) })
}

/// Gives up on a connection that isn't there in time: a frozen server takes TCP connections but never ends a handshake.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    inner: HttpsConnector<Route>,
    timeout: Duration,
}

impl Connector {
    pub(super) fn new(config: &kube::Config, timeout: Duration) -> Result<Self, BoxError> {
        let builder = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
        let builder = match &config.tls_server_name {
            Some(name) => builder.with_server_name_resolver(FixedServerNameResolver::new(ServerName::try_from(name.clone())?)),
            None => builder,
        };
        let inner = builder.enable_all_versions().wrap_connector(Route::new(config.proxy_url.as_ref())?);
        Ok(Self { inner, timeout })
    }
}

impl Service<Uri> for Connector {
    type Response = <HttpsConnector<Route> as Service<Uri>>::Response;
    type Error = BoxError;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (connecting, limit) = (self.inner.call(to), self.timeout);
        Box::pin(async move {
            match tokio::time::timeout(limit, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(TimedOut { phase: Phase::Connect, limit }.into()),
            }
        })
    }
}

/// The bytes behind `%XX` escapes; what is no escape stays as it is.
fn decode_percent(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digit = |at: usize| tail.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        if first == b'%'
            && let (Some(high), Some(low)) = (digit(0), digit(1))
        {
            out.push((high << 4 | low) as u8);
            rest = tail.get(2..).unwrap_or_default();
        } else {
            out.push(first);
            rest = tail;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_in_a_proxy_login_are_decoded() {
        for (text, want) in [("user:p%40ss", "user:p@ss"), ("a%", "a%"), ("a%4", "a%4"), ("a%zz", "a%zz"), ("%41%42", "AB"), ("", "")] {
            assert_eq!(decode_percent(text), want.as_bytes(), "{text}");
        }
    }

    #[test]
    fn only_known_proxies_are_taken() {
        for (proxy, good) in
            [("http://a:1", true), ("http://u:p@a:1", true), ("socks5://u:p@a:1", true), ("https://a:1", false), ("ftp://a", false)]
        {
            assert_eq!(Route::new(Some(&proxy.parse().unwrap())).is_ok(), good, "{proxy}");
        }
    }
}
