//! The control planes' programs and Helm, built once from the pinned Go modules in `controlplane/` and `helm/` into a cache.
//!
//! One folder of the cache holds all that one state of a module gives; its name is a hash of the
//! module's files and of how they are built. It appears by a rename, so it is whole or not there.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail, ensure};
use sha2::{Digest, Sha256};

use crate::progress::{Progress, Task, run_counted, say};

/// Where cached builds and port locks lie, when it isn't the user's cache folder.
pub const CACHE_VARIABLE: &str = "ODIN_SANDBOX_CACHE";

/// Part of the cache's key: raise it when what this file does to build changes.
const RECIPE: &str = "1";

/// Files of the LWS module that a member needs: (path in the module, name in the cache).
const LWS_ASSETS: [(&str, &str); 4] = [
    ("config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml", "leaderworkersets.yaml"),
    ("config/crd/bases/disaggregatedset.x-k8s.io_disaggregatedsets.yaml", "disaggregatedsets.yaml"),
    ("config/rbac/role.yaml", "role.yaml"),
    ("config/webhook/manifests.yaml", "webhooks.yaml"),
];

/// Folders with the built programs and the manifests that belong to them.
#[derive(Clone, Debug)]
pub struct Programs {
    controlplane: PathBuf,
    helm: PathBuf,
}

impl Programs {
    /// Gives the programs, building them when the cache doesn't hold them. Blocks: a first build takes
    /// minutes, and tells its progress on stderr.
    pub fn ensure() -> Result<Self> {
        Self::ensure_with(&Progress::start())
    }

    /// [`Programs::ensure`], told beside other work.
    pub fn ensure_with(progress: &Progress) -> Result<Self> {
        let (modules, cache) = (Path::new(env!("CARGO_MANIFEST_DIR")), cache_folder()?);
        // In this order: Helm's module needs much that the control planes' have compiled already.
        let controlplane = cached(&modules.join("controlplane"), &cache, progress, build_controlplane)?;
        let helm = cached(&modules.join("helm"), &cache, progress, build_helm)?;
        Ok(Self { controlplane, helm })
    }

    /// etcd, kube-apiserver, kube-controller-manager and kube-scheduler: the first argument picks one.
    pub fn controlplane(&self) -> PathBuf {
        self.controlplane.join("controlplane")
    }

    /// The `LeaderWorkerSet` manager.
    pub fn lws_manager(&self) -> PathBuf {
        self.controlplane.join("lws-manager")
    }

    /// Helm.
    pub fn helm(&self) -> PathBuf {
        self.helm.join("helm")
    }

    /// A manifest of the `LeaderWorkerSet` module, such as `role.yaml`.
    pub(crate) fn lws_asset(&self, name: &str) -> Result<String> {
        let path = self.controlplane.join("lws").join(name);
        fs::read_to_string(&path).with_context(|| format!("{} (remove the folder to have it built again)", path.display()))
    }
}

/// `$ODIN_SANDBOX_CACHE`, else `odin-hub-sandbox` in the user's cache folder.
pub(crate) fn cache_folder() -> Result<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = set(CACHE_VARIABLE) {
        return std::path::absolute(folder).context(CACHE_VARIABLE);
    }
    let user = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    let user = user.ok_or_else(|| anyhow!("neither HOME nor XDG_CACHE_HOME is set: say by {CACHE_VARIABLE} where builds may be kept"))?;
    Ok(user.join("odin-hub-sandbox"))
}

/// The first 16 hex digits of a hash over the module's files and the recipe.
fn key(source: &Path) -> Result<String> {
    let listing = fs::read_dir(source).with_context(|| format!("folder {}", source.display()))?;
    let mut files: Vec<PathBuf> = listing.map(|entry| entry.map(|e| e.path())).collect::<io::Result<_>>()?;
    let counts =
        |path: &Path| path.file_name().is_some_and(|n| n == "go.mod" || n == "go.sum") || path.extension() == Some(OsStr::new("go"));
    files.retain(|path| counts(path));
    files.sort();
    let mut hash = Sha256::new();
    hash.update(RECIPE);
    for path in files {
        let content = fs::read(&path).with_context(|| path.display().to_string())?;
        hash.update(path.file_name().unwrap_or_default().as_encoded_bytes());
        hash.update([0]);
        hash.update((content.len() as u64).to_be_bytes());
        hash.update(content);
    }
    let digits = |text: String, byte: &u8| text + &format!("{byte:02x}");
    Ok(hash.finalize().iter().take(8).fold(String::new(), digits))
}

/// The folder with what `build` makes of a module; it is built when the cache doesn't hold it.
fn cached(source: &Path, cache: &Path, progress: &Progress, build: fn(&Path, &Path, &Progress) -> Result<()>) -> Result<PathBuf> {
    let folder = cache.join(format!("{}-{}-{}", key(source)?, env::consts::OS, env::consts::ARCH));
    if folder.is_dir() {
        return Ok(folder);
    }
    fs::create_dir_all(cache).with_context(|| format!("cache folder {}", cache.display()))?;
    let lock = File::create(cache.join("build.lock")).context("lock file of the build")?;
    if lock.try_lock().is_err() {
        say("another run builds the programs; waiting for it");
        lock.lock().context("lock file of the build")?;
    }
    if folder.is_dir() {
        return Ok(folder);
    }
    let began = Instant::now();
    check_go(source)?;
    let work = cache.join(".building");
    if work.exists() {
        // Left by a build that was killed; nobody else is at work here, by the lock.
        fs::remove_dir_all(&work).with_context(|| work.display().to_string())?;
    }
    fs::create_dir_all(&work).with_context(|| work.display().to_string())?;
    build(source, &work, progress)?;
    fs::rename(&work, &folder).with_context(|| folder.display().to_string())?;
    say(&format!("{} built in {} s", source.file_name().unwrap_or_default().display(), began.elapsed().as_secs()));
    Ok(folder)
}

/// The control planes' programs, and the manifests of the `LeaderWorkerSet` module.
fn build_controlplane(source: &Path, work: &Path, progress: &Progress) -> Result<()> {
    let flags = version_flags(&version(source, "k8s.io/kubernetes")?)?;
    let task = progress.task("control plane (some 5 minutes the first time)");
    go_build(source, ".", &flags, &work.join("controlplane"), &task).context("building the control plane")?;
    drop(task);
    let task = progress.task("LeaderWorkerSet manager");
    go_build(source, "sigs.k8s.io/lws/cmd", "-s -w", &work.join("lws-manager"), &task).context("building the LeaderWorkerSet manager")?;
    let module = PathBuf::from(go(source, &["list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/lws"])?);
    fs::create_dir_all(work.join("lws")).with_context(|| work.display().to_string())?;
    for (from, to) in LWS_ASSETS {
        let text = fs::read(module.join(from)).with_context(|| module.join(from).display().to_string())?;
        fs::write(work.join("lws").join(to), text).with_context(|| to.to_owned())?;
    }
    Ok(())
}

/// Helm, which says its version as a released one does.
fn build_helm(source: &Path, work: &Path, progress: &Progress) -> Result<()> {
    let flags = format!("-s -w -X helm.sh/helm/v4/internal/version.version={}", version(source, "helm.sh/helm/v4")?);
    go_build(source, "helm.sh/helm/v4/cmd/helm", &flags, &work.join("helm"), &progress.task("Helm")).context("building Helm")
}

/// Version of a module as `go.mod` pins it.
fn version(source: &Path, module: &str) -> Result<String> {
    go(source, &["list", "-m", "-f", "{{.Version}}", module])
}

fn go_build(source: &Path, package: &str, flags: &str, output: &Path, task: &Task) -> Result<()> {
    let mut command = Command::new("go");
    command.current_dir(source).stdout(Stdio::null()).args(["build", "-v", "-ldflags", flags, "-o"]).arg(output).arg(package);
    run_counted(command, task)
}

/// Linker flags that make `/version` tell the truth: a plain build says `v0.0.0-master`, and clients that look at it go astray.
/// No -trimpath: it is part of Go's own cache key.
fn version_flags(version: &str) -> Result<String> {
    let mut parts = version.trim_start_matches('v').split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    ensure!(!major.is_empty() && !minor.is_empty(), "version {version:?} of k8s.io/kubernetes");
    let package = "k8s.io/component-base/version";
    Ok(format!(
        "-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor} -X {package}.gitTreeState=clean"
    ))
}

/// Refuses a machine without Go, or with one that is too old and can't fetch a newer one by itself.
fn check_go(source: &Path) -> Result<()> {
    let module = fs::read_to_string(source.join("go.mod")).context("go.mod")?;
    let needed = module.lines().find_map(|line| line.strip_prefix("go ")).unwrap_or("1.26.0").trim();
    let how = format!("Go {needed} or newer is needed to build the control planes and Helm: https://go.dev/dl");
    let output = match Command::new("go").current_dir(source).args(["env", "GOVERSION"]).output() {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!("no `go` in PATH. {how}"),
        Err(error) => return Err(error).context(format!("cannot run `go`. {how}")),
    };
    let found = text(&output.stdout);
    ensure!(output.status.success(), "{}. {how}", text(&output.stderr));
    ensure!(release(&found) >= release(needed), "this is {found}. {how}");
    Ok(())
}

/// `go1.26.8` and `1.26` as numbers that compare.
fn release(version: &str) -> Vec<u32> {
    let numbers = version.trim_start_matches("go").split(|c: char| !c.is_ascii_digit());
    numbers.take(3).map_while(|number| number.parse().ok()).collect()
}

/// The first line that a short `go` command prints.
fn go(source: &Path, args: &[&str]) -> Result<String> {
    let Output { status, stdout, stderr } = Command::new("go").current_dir(source).args(args).output().context("go")?;
    ensure!(status.success(), "go {}: {}", args.join(" "), text(&stderr));
    Ok(text(&stdout))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn releases_compare_by_number() {
        for (older, newer) in [("go1.9.7", "1.26.0"), ("1.26.0", "go1.26.8"), ("go1.26", "go1.26.1"), ("go1.26rc1", "1.27.0")] {
            assert!(release(older) < release(newer), "{older} < {newer}");
        }
    }

    #[test]
    fn the_version_flags_name_major_and_minor() {
        let flags = version_flags("v1.36.3").unwrap();
        assert!(flags.contains(".gitVersion=v1.36.3 ") && flags.contains(".gitMajor=1 ") && flags.contains(".gitMinor=36 "), "{flags}");
        assert!(version_flags("devel").is_err());
    }

    #[test]
    fn the_key_follows_the_sources_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| fs::write(folder.path().join(name), content).unwrap();
        write("go.mod", "module m");
        write("main.go", "package main");
        let first = key(folder.path()).unwrap();
        write("notes.txt", "x");
        assert_eq!(first, key(folder.path()).unwrap());
        write("main.go", "package other");
        assert_ne!(first, key(folder.path()).unwrap());
    }

    /// `name => name version` of each replacement in a module's go.mod.
    fn replaced(module: &str) -> BTreeMap<String, String> {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(module).join("go.mod")).unwrap();
        let pairs = text.lines().filter_map(|line| line.trim().trim_start_matches("replace ").split_once(" => "));
        pairs.map(|(_, new)| new.split_once(' ').unwrap()).map(|(name, version)| (name.to_owned(), version.to_owned())).collect()
    }

    #[test]
    fn helm_is_built_with_the_control_planes_versions_of_what_both_need() {
        let theirs = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("controlplane/go.mod")).unwrap();
        let pinned = replaced("helm");
        assert!(pinned.len() > 15, "{pinned:?}");
        for (name, version) in pinned {
            assert!(theirs.contains(&format!("{name} {version}")), "{name} {version} is not what controlplane/go.mod names");
        }
    }

    #[test]
    fn a_too_old_go_is_named_with_the_version_that_is_needed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("go.mod"), "module m\n\ngo 1.999.0\n").unwrap();
        let error = check_go(folder.path()).unwrap_err().to_string();
        assert!(error.contains("Go 1.999.0 or newer is needed"), "{error}");
    }
}
