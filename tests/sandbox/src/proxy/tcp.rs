//! The proxy that understands only bytes.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

/// What happens to the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// Whether they pass at all.
    pub mode: Mode,
    /// How much later they arrive, in each direction.
    pub latency: Duration,
    /// How many pass in a second, per connection and direction; `None` is all.
    pub bandwidth: Option<u64>,
    /// After so many bytes of a connection, both directions together, no more pass and nobody is told; `None` is never.
    pub black_hole_after: Option<u64>,
}

/// Whether bytes pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// They do.
    #[default]
    Pass,
    /// Connections are accepted and stay open, but nothing passes on any, old or new. What is held passes when this ends.
    HalfOpen,
    /// Connections, old and new, are reset.
    Reset,
}

/// A proxy on loopback in front of any TCP address; how it behaves may change while it runs. Dropping it closes all
/// its connections.
#[derive(Debug)]
pub struct TcpProxy {
    address: SocketAddr,
    behaviour: watch::Sender<Behaviour>,
    _tasks: JoinSet<()>,
}

impl TcpProxy {
    /// Starts a proxy in front of `server` on a free port of 127.0.0.1, on the current tokio runtime.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let behaviour = watch::Sender::new(Behaviour::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, server, behaviour.subscribe()));
        Ok(Self { address, behaviour, _tasks: tasks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Behaves like this from now on, towards open connections too.
    pub fn set(&self, behaviour: Behaviour) {
        self.behaviour.send_replace(behaviour);
    }

    /// Changes some of the behaviour.
    pub fn update(&self, change: impl FnOnce(&mut Behaviour)) {
        self.behaviour.send_modify(change);
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, behaviour: watch::Receiver<Behaviour>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => {
                    connections.spawn(connection(client, server, behaviour.clone()));
                }
                // Out of file descriptors, say: others may be closed meanwhile.
                Err(_) => sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(mut client: TcpStream, server: SocketAddr, behaviour: watch::Receiver<Behaviour>) {
    let mut resets = behaviour.clone();
    let reset = tokio::select! {
        _ = resets.wait_for(|b| b.mode == Mode::Reset) => true,
        // A server that refuses or resets is passed on as a reset.
        result = relay(&mut client, server, behaviour) => result.is_err(),
    };
    if reset {
        // Without lingering the close is a reset.
        let _ = client.set_zero_linger();
    }
}

async fn relay(client: &mut TcpStream, server: SocketAddr, mut behaviour: watch::Receiver<Behaviour>) -> io::Result<()> {
    // A proxy that is dropped closes everything, so its sender is always there.
    let _ = behaviour.wait_for(|b| b.mode == Mode::Pass).await;
    let mut server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let relayed = Arc::new(AtomicU64::new(0));
    let (client_reads, client_writes) = client.split();
    let (server_reads, server_writes) = server.split();
    tokio::try_join!(
        one_way(client_reads, server_writes, behaviour.clone(), relayed.clone()),
        one_way(server_reads, client_writes, behaviour, relayed),
    )?;
    Ok(())
}

/// Carries bytes from one side to the other until the first has no more.
async fn one_way(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut behaviour: watch::Receiver<Behaviour>,
    relayed: Arc<AtomicU64>,
) -> io::Result<()> {
    // Bytes on their way: reading goes on while earlier ones are late.
    let (send, mut receive) = mpsc::channel::<(Instant, Vec<u8>)>(64);
    let latency = behaviour.clone();
    let reading = async move {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let count = from.read(&mut buffer).await?;
            let due = Instant::now() + latency.borrow().latency;
            // An empty piece is the end.
            if send.send((due, buffer.iter().take(count).copied().collect())).await.is_err() || count == 0 {
                return Ok(());
            }
        }
    };
    let writing = async move {
        while let Some((due, piece)) = receive.recv().await {
            sleep_until(due).await;
            if piece.is_empty() {
                let _ = behaviour.wait_for(|b| b.mode == Mode::Pass && b.black_hole_after.is_none()).await;
                break;
            }
            let mut rest = piece.as_slice();
            while !rest.is_empty() {
                let mut room = 0;
                let now = behaviour
                    .wait_for(|b| {
                        let limit = b.black_hole_after.unwrap_or(u64::MAX);
                        room = limit.saturating_sub(relayed.load(Ordering::Relaxed));
                        b.mode == Mode::Pass && room > 0
                    })
                    .await
                    .map_or_else(|_| Behaviour::default(), |b| *b);
                // In a hundred pieces a second, so that a narrow line flows evenly.
                let step = now.bandwidth.map_or(u64::MAX, |bandwidth| (bandwidth / 100).max(1)).min(room);
                let (piece, later) = rest.split_at(usize::try_from(step).unwrap_or(usize::MAX).min(rest.len()));
                let started = Instant::now();
                to.write_all(piece).await?;
                relayed.fetch_add(piece.len() as u64, Ordering::Relaxed);
                rest = later;
                if let Some(bandwidth) = now.bandwidth {
                    sleep_until(started + Duration::from_secs_f64(piece.len() as f64 / bandwidth.max(1) as f64)).await;
                }
            }
        }
        to.shutdown().await
    };
    tokio::try_join!(reading, writing).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that sends back what it gets.
    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut reads, mut writes) = stream.split();
                    let _ = tokio::io::copy(&mut reads, &mut writes).await;
                });
            }
        });
        address
    }

    async fn setup() -> (TcpProxy, TcpStream) {
        let proxy = TcpProxy::start(echo().await).await.unwrap();
        let client = TcpStream::connect(proxy.address()).await.unwrap();
        (proxy, client)
    }

    async fn ask(client: &mut TcpStream, text: &[u8]) -> io::Result<Vec<u8>> {
        client.write_all(text).await?;
        read(client, text.len()).await
    }

    async fn read(client: &mut TcpStream, count: usize) -> io::Result<Vec<u8>> {
        let mut answer = vec![0; count];
        client.read_exact(&mut answer).await.map(|_| answer)
    }

    async fn is_silent(client: &mut TcpStream) -> bool {
        tokio::time::timeout(Duration::from_millis(150), client.read_u8()).await.is_err()
    }

    #[tokio::test]
    async fn bytes_and_the_end_of_both_sides_pass() {
        let (_proxy, mut client) = setup().await;
        let text = vec![7; 300_000];
        let (mut reads, mut writes) = client.split();
        let sending = async {
            writes.write_all(&text).await.unwrap();
            writes.shutdown().await.unwrap();
        };
        let mut answer = vec![];
        let ((), read) = tokio::join!(sending, reads.read_to_end(&mut answer));
        read.unwrap();
        assert!(answer == text);
    }

    #[tokio::test]
    async fn latency_counts_in_each_direction_and_can_be_changed() {
        let (proxy, mut client) = setup().await;
        proxy.update(|b| b.latency = Duration::from_millis(200));
        let start = Instant::now();
        ask(&mut client, b"hello").await.unwrap();
        assert!(start.elapsed() >= Duration::from_millis(400), "{:?}", start.elapsed());
        proxy.set(Behaviour::default());
        let start = Instant::now();
        ask(&mut client, b"hello").await.unwrap();
        assert!(start.elapsed() < Duration::from_millis(400), "{:?}", start.elapsed());
    }

    #[tokio::test]
    async fn bandwidth() {
        let (proxy, mut client) = setup().await;
        proxy.update(|b| b.bandwidth = Some(100_000));
        let start = Instant::now();
        ask(&mut client, &vec![1; 20_000]).await.unwrap();
        assert!(start.elapsed() >= Duration::from_millis(190), "{:?}", start.elapsed());
    }

    #[tokio::test]
    async fn a_black_hole_swallows_what_comes_after_n_bytes() {
        let (proxy, mut client) = setup().await;
        proxy.update(|b| b.black_hole_after = Some(12));
        // 5 bytes there and back make 10; of the next 5 only 2 reach the server, and none comes back.
        assert_eq!(ask(&mut client, b"hello").await.unwrap(), b"hello");
        client.write_all(b"again").await.unwrap();
        assert!(is_silent(&mut client).await);
        proxy.update(|b| b.black_hole_after = None);
        assert_eq!(read(&mut client, 5).await.unwrap(), b"again", "lifted, it passes");
    }

    #[tokio::test]
    async fn half_open_connections_say_nothing() {
        let (proxy, mut old) = setup().await;
        ask(&mut old, b"hello").await.unwrap();
        proxy.update(|b| b.mode = Mode::HalfOpen);
        let mut new = TcpStream::connect(proxy.address()).await.unwrap();
        for client in [&mut old, &mut new] {
            client.write_all(b"hello").await.unwrap();
            assert!(is_silent(client).await);
        }
        proxy.update(|b| b.mode = Mode::Pass);
        for client in [&mut old, &mut new] {
            assert_eq!(read(client, 5).await.unwrap(), b"hello");
        }
    }

    #[tokio::test]
    async fn resets_strike_old_and_new_connections() {
        let (proxy, mut old) = setup().await;
        ask(&mut old, b"hello").await.unwrap();
        proxy.update(|b| b.mode = Mode::Reset);
        assert_eq!(old.read_u8().await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        let mut new = TcpStream::connect(proxy.address()).await.unwrap();
        assert_eq!(new.read_u8().await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        proxy.update(|b| b.mode = Mode::Pass);
        let mut healed = TcpStream::connect(proxy.address()).await.unwrap();
        assert_eq!(ask(&mut healed, b"hello").await.unwrap(), b"hello");
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_a_reset() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let proxy = TcpProxy::start(address).await.unwrap();
        let mut client = TcpStream::connect(proxy.address()).await.unwrap();
        assert_eq!(client.read_u8().await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }
}
