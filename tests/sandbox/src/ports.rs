//! Free ports below the ephemeral range.
//!
//! A port inside that range can be taken by any outgoing connection while its API server is down,
//! and then the server can't start again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::ops::Range;

use anyhow::{Context, Result, bail};
use parking_lot::Mutex;

use crate::programs::cache_folder;

const RANGE: Range<u16> = 20_000..32_000;

/// Ports that this process has handed out, each with its locked file: another run of the same user
/// sees the lock also in the moments when nothing listens there.
static TAKEN: Mutex<BTreeMap<u16, File>> = Mutex::new(BTreeMap::new());

/// A port on 127.0.0.1 that nothing listens on and no other sandbox has been given.
pub fn free_port() -> Result<u16> {
    let folder = cache_folder()?.join("ports");
    fs::create_dir_all(&folder).with_context(|| format!("folder {}", folder.display()))?;
    let mut taken = TAKEN.lock();
    for _ in 0..1_000 {
        let span = u64::from(RANGE.end - RANGE.start);
        let port = RANGE.start + u16::try_from(RandomState::new().hash_one(taken.len()) % span)?;
        if taken.contains_key(&port) {
            continue;
        }
        let file = File::options().create(true).append(true).open(folder.join(port.to_string()))?;
        if file.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            taken.insert(port, file);
            return Ok(port);
        }
    }
    bail!("no free port between {} and {}", RANGE.start, RANGE.end)
}
