//! Keeping one kind of a member in step: list, watch, go on from where it was, list again when that is too long ago.
//!
//! kube's own watcher would do for a few objects; here whole Pods must never be built, and each failure must be told
//! with its verb.

use std::time::Duration;

use http::Request;
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Bytes};
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::sync::watch;
use tokio::time::timeout;

use super::backoff::Backoff;
use super::cache::{Cache, Change, Sink};
use super::client::{Failure, classify, of_status};
use super::lean::{Kind, Lean};
use crate::telemetry::metrics::{MemberMetrics, WatchEnd};

/// Pauses after a failure.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));
/// A watch that lasted for less than this is paused after, so that a server that ends each at once isn't hammered.
const SHORT: Duration = Duration::from_secs(5);
/// The server ends a watch after this long …
const WATCH_SECONDS: u64 = 300;
/// … and one on which nothing came for this long, not even a bookmark, is dead.
const IDLE: Duration = Duration::from_secs(WATCH_SECONDS + 10);
/// Most that the objects of a streaming list may be apart.
const LIST_IDLE: Duration = Duration::from_secs(60);
/// Largest object, in bytes; etcd holds none that is near it.
const MAX_LINE: usize = 16 << 20;
/// Largest answer that is an error, in bytes.
const MAX_ERROR: usize = 64 << 10;
/// Objects of one page of a list.
const PAGE: usize = 500;
/// Marks the end of the objects that were there when the watch began.
const INITIAL_END: &str = "k8s.io/initial-events-end";

/// One kind of a member.
pub(super) struct Watch<'a> {
    pub(super) client: &'a Client,
    pub(super) kind: Kind,
    /// Selectors, as a part of a query.
    pub(super) selector: String,
    pub(super) cache: &'a Cache,
    /// Changes when the member came back: no reason to wait any longer.
    pub(super) returned: watch::Receiver<u64>,
    pub(super) metrics: &'a MemberMetrics,
}

/// A failure and what was tried.
type Failed = (&'static str, Failure);

/// How a watch ended.
enum End {
    /// The server ended it; it goes on from here.
    Resume(String),
    /// What came in between is no longer known: list again.
    Expired,
}

impl Watch<'_> {
    /// Runs for ever.
    pub(super) async fn run<T: Lean>(mut self)
    where
        Cache: Sink<T>,
    {
        let mut backoff = Backoff::new(RETRY.0, RETRY.1);
        let mut streaming = true;
        // Where the watch goes on; without it everything is listed.
        let mut version: Option<String> = None;
        loop {
            let start = tokio::time::Instant::now();
            // After a list the watch begins at once.
            let paged = version.is_none() && !streaming;
            let result = match (version.take(), streaming) {
                (Some(from), _) => match self.follow::<T>(&from, &mut backoff).await {
                    // The objects are known up to there.
                    Err(failed) => {
                        version = Some(from);
                        Err(failed)
                    }
                    ended => ended,
                },
                (None, true) => self.stream_list::<T>(&mut backoff).await,
                (None, false) => self.list::<T>().await,
            };
            if !paged || result.is_err() {
                self.metrics.watch_restarted(self.kind.plural(), cause(&result));
            }
            match result {
                Ok(End::Resume(from)) => {
                    version = Some(from);
                    if !paged && start.elapsed() < SHORT {
                        self.pause(&mut backoff).await;
                    }
                }
                Ok(End::Expired) => {
                    version = None;
                    if start.elapsed() < SHORT {
                        self.pause(&mut backoff).await;
                    }
                }
                // A server without streaming lists refuses their parameters.
                Err((_, Failure::Denied(_))) if streaming && version.is_none() => streaming = false,
                Err((_, Failure::Gone(_))) => {
                    version = None;
                    self.pause(&mut backoff).await;
                }
                Err((verb, failure)) => {
                    tracing::debug!(kind = self.kind.plural(), verb, failure = failure.message(), "watching a member failed");
                    self.cache.failed(self.kind, verb, &failure);
                    self.pause(&mut backoff).await;
                }
            }
        }
    }

    /// Waits, but not longer than until the member is well again: what failed before says nothing then.
    async fn pause(&mut self, backoff: &mut Backoff) {
        // The sender lives as long as the member; without it there is nothing to wait for but the time.
        let returned = async {
            if self.returned.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        if timeout(backoff.next(), returned).await.is_ok() {
            backoff.reset();
        }
    }

    fn uri(&self, query: &str) -> String {
        let separator = if self.selector.is_empty() { "" } else { "&" };
        format!("{}/{}?{}{separator}{query}", self.kind.api(), self.kind.plural(), self.selector)
    }

    /// Lists page by page.
    async fn list<T: Lean>(&self) -> Result<End, Failed>
    where
        Cache: Sink<T>,
    {
        let failed = |failure| ("list", failure);
        let mut all = Vec::new();
        let mut next = String::new();
        loop {
            let after = if next.is_empty() { String::new() } else { format!("&continue={}", encode(&next)) };
            let request = get(self.uri(&format!("limit={PAGE}{after}"))).map_err(failed)?;
            let page = self.client.request_text(request).await.map_err(|error| failed(classify(&error)))?;
            let meta: ListMeta = parse::<ListHead>(page.as_bytes()).map_err(failed)?.metadata;
            all.extend(T::of_list(page.as_bytes()).map_err(|_| failed(unreadable(self.kind)))?);
            all.truncate(self.kind.bound());
            next = meta.r#continue.unwrap_or_default();
            if next.is_empty() {
                self.cache.apply(Change::All(all));
                self.cache.listed(self.kind);
                return Ok(End::Resume(meta.resource_version.unwrap_or_default()));
            }
        }
    }

    /// Lists by a watch that begins with all objects, and stays on it.
    async fn stream_list<T: Lean>(&self, backoff: &mut Backoff) -> Result<End, Failed>
    where
        Cache: Sink<T>,
    {
        let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        let mut lines = self.open(query).await.map_err(|failure| ("list", failure))?;
        let mut all = Vec::new();
        loop {
            let Some(line) = lines.next(LIST_IDLE).await.map_err(|failure| ("list", failure))? else {
                return Err(("list", Failure::Unknown("the list ended before it was complete".to_owned())));
            };
            match read::<T>(self.kind, &line).map_err(|failure| ("list", failure))? {
                Line::Put(object) if all.len() < self.kind.bound() => all.push(object),
                Line::Put(_) | Line::Gone(_) | Line::Bookmark { end: false, .. } => {}
                Line::Bookmark { version, end: true } => {
                    self.cache.apply(Change::All(all));
                    self.cache.listed(self.kind);
                    backoff.reset();
                    return self.read_on(lines, version).await;
                }
                Line::Failed(failure) => return Err(("list", failure)),
            }
        }
    }

    /// Watches from a version on.
    async fn follow<T: Lean>(&self, from: &str, backoff: &mut Backoff) -> Result<End, Failed>
    where
        Cache: Sink<T>,
    {
        let lines = self.open(&format!("resourceVersion={}", encode(from))).await.map_err(|failure| ("watch", failure))?;
        self.cache.watching(self.kind);
        let start = tokio::time::Instant::now();
        let end = self.read_on(lines, from.to_owned()).await;
        if start.elapsed() >= SHORT {
            backoff.reset();
        }
        end
    }

    /// Reads an open watch to its end.
    async fn read_on<T: Lean>(&self, mut lines: Lines, mut version: String) -> Result<End, Failed>
    where
        Cache: Sink<T>,
    {
        loop {
            // Every end can be gone on from: a broken connection is noticed when the next one fails.
            let Ok(Some(line)) = lines.next(IDLE).await else { return Ok(End::Resume(version)) };
            match read::<T>(self.kind, &line).map_err(|failure| ("watch", failure))? {
                Line::Put(object) => {
                    object.resource_version().clone_into(&mut version);
                    self.cache.apply(Change::Put(object));
                }
                Line::Gone(object) => {
                    object.resource_version().clone_into(&mut version);
                    self.cache.apply(Change::Gone(object));
                }
                Line::Bookmark { version: mark, .. } => version = mark,
                Line::Failed(Failure::Gone(_)) => return Ok(End::Expired),
                Line::Failed(failure) => {
                    tracing::debug!(kind = self.kind.plural(), failure = failure.message(), "a watch ended");
                    return Ok(End::Resume(version));
                }
            }
        }
    }

    async fn open(&self, query: &str) -> Result<Lines, Failure> {
        let uri = self.uri(&format!("watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&{query}"));
        let request = get(uri)?.map(Body::from);
        let response = self.client.send(request).await.map_err(|error| classify(&error))?;
        let code = response.status().as_u16();
        let mut lines = Lines { body: response.into_body(), buffer: Vec::new(), start: 0 };
        if code < 300 {
            return Ok(lines);
        }
        Err(of_status(&lines.status(code).await))
    }
}

fn cause(ended: &Result<End, Failed>) -> WatchEnd {
    match ended {
        Ok(End::Resume(_)) => WatchEnd::Ended,
        Ok(End::Expired) | Err((_, Failure::Gone(_))) => WatchEnd::Expired,
        Err(_) => WatchEnd::Failed,
    }
}

fn get(uri: String) -> Result<Request<Vec<u8>>, Failure> {
    Request::get(uri).body(Vec::new()).map_err(|error| Failure::Broken(error.to_string()))
}

fn unreadable(kind: Kind) -> Failure {
    Failure::Broken(format!("an object among the {} is not of the expected form", kind.plural()))
}

fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Failure> {
    serde_json::from_slice(bytes).map_err(|_| Failure::Broken("the answer is no JSON of the expected form".to_owned()))
}

/// A value of a query with everything escaped that might mean something there.
pub(super) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            for digit in [byte >> 4, byte & 15] {
                out.extend(char::from_digit(digit.into(), 16).map(|digit| digit.to_ascii_uppercase()));
            }
        }
    }
    out
}

#[derive(Deserialize)]
struct ListHead {
    metadata: ListMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    resource_version: Option<String>,
    r#continue: Option<String>,
}

#[derive(Deserialize)]
struct LineHead<'a> {
    r#type: &'a str,
    #[serde(rename = "object")]
    _object: IgnoredAny,
}

#[derive(Deserialize)]
struct BookmarkLine {
    object: BookmarkObject,
}

#[derive(Deserialize)]
struct BookmarkObject {
    metadata: BookmarkMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMeta {
    resource_version: String,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct ErrorLine {
    object: Status,
}

/// One line of a watch.
enum Line<T> {
    Put(T),
    Gone(T),
    Bookmark { version: String, end: bool },
    Failed(Failure),
}

fn read<T: Lean>(kind: Kind, line: &[u8]) -> Result<Line<T>, Failure> {
    let object = || T::of_event(line).map_err(|_| unreadable(kind));
    match parse::<LineHead<'_>>(line)?.r#type {
        "ADDED" | "MODIFIED" => object().map(Line::Put),
        "DELETED" => object().map(Line::Gone),
        "BOOKMARK" => {
            let meta = parse::<BookmarkLine>(line)?.object.metadata;
            let end = meta.annotations.get(INITIAL_END).is_some_and(|end| end == "true");
            Ok(Line::Bookmark { version: meta.resource_version, end })
        }
        _ => Ok(Line::Failed(of_status(&parse::<ErrorLine>(line)?.object))),
    }
}

/// The lines of a response body.
struct Lines<B = Body> {
    body: B,
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
}

impl<B: HttpBody<Data = Bytes, Error = kube::Error> + Unpin> Lines<B> {
    /// The next line; `None` when the body has ended. A line that was cut off by the end is dropped.
    async fn next(&mut self, idle: Duration) -> Result<Option<Vec<u8>>, Failure> {
        // How much of the line is known to hold no end.
        let mut read = 0;
        loop {
            let rest = self.buffer.get(self.start..).unwrap_or_default();
            if let Some(at) = rest.get(read..).and_then(|unread| unread.iter().position(|byte| *byte == b'\n')) {
                let line = rest.get(..read + at).unwrap_or_default().to_vec();
                self.start += read + at + 1;
                return Ok(Some(line));
            }
            read = rest.len();
            if read > MAX_LINE {
                return Err(Failure::Broken(format!("an object is larger than {MAX_LINE} bytes")));
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            match timeout(idle, self.body.frame()).await {
                Err(_) => return Err(Failure::Unknown(format!("nothing came within {idle:?}"))),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(classify(&error)),
                Ok(Some(Ok(frame))) => self.buffer.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data)),
            }
        }
    }

    /// What a body that is no watch says.
    async fn status(&mut self, code: u16) -> Status {
        while self.buffer.len() < MAX_ERROR {
            match timeout(Duration::from_secs(10), self.body.frame()).await {
                Ok(Some(Ok(frame))) => self.buffer.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data)),
                _ => break,
            }
        }
        serde_json::from_slice(&self.buffer).unwrap_or_else(|_| Status::failure(&String::from_utf8_lossy(&self.buffer), "").with_code(code))
    }
}

#[cfg(test)]
mod tests {
    use futures::stream::{self, Iter};
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;

    #[test]
    fn queries_are_escaped() {
        assert_eq!(encode("status.phase!=Succeeded,a/b=c d"), "status.phase%21%3DSucceeded%2Ca%2Fb%3Dc%20d");
    }

    type Parts = StreamBody<Iter<std::vec::IntoIter<kube::Result<Frame<Bytes>>>>>;

    fn lines(parts: &[&'static str]) -> Lines<Parts> {
        let frames: Vec<_> = parts.iter().map(|part| Ok(Frame::data(Bytes::from_static(part.as_bytes())))).collect();
        Lines { body: StreamBody::new(stream::iter(frames)), buffer: Vec::new(), start: 0 }
    }

    #[tokio::test]
    async fn lines_are_found_however_the_body_is_cut() {
        for parts in [&["one\ntwo\n\nthr", "ee\ncut off"][..], &["o", "n", "e\n", "two", "\n\nthree", "\ncu"], &["one\ntwo\n\nthree\n"]] {
            let mut lines = lines(parts);
            let mut got = Vec::new();
            while let Some(line) = lines.next(Duration::from_secs(5)).await.unwrap() {
                got.push(String::from_utf8(line).unwrap());
            }
            assert_eq!(got, ["one", "two", "", "three"], "{parts:?}");
        }
    }
}
