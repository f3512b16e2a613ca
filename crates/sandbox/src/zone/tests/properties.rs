//! Property tests on random trees with links: real paths are compared with the kernel's, and matches
//! with those of a simpler matcher.

use globset::GlobBuilder;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::real::{walk, without_links};
use super::*;

const GLOBS: &[&str] = &["**", "a/**", "b", "a/b", "*/b/**", "**/c", "b/*", "{a,c}/b/**", "c/**/a"];

/// `$EISEN_DIR` of these tests: what stands there, if anything, is random too.
const EISEN: &str = "ws/b/c";

#[derive(Clone, Debug)]
enum Entry {
    Folder(String),
    File(String),
    Link(String, String),
}

#[derive(Clone, Debug)]
struct Case {
    tree: Vec<Entry>,
    allowed: Vec<&'static str>,
    denied: Vec<&'static str>,
    requests: Vec<String>,
}

fn cases() -> impl Strategy<Value = Case> {
    let name = || select(vec!["a", "b", "c"]);
    let inside = || prop::collection::vec(name(), 1..4).prop_map(|names| names.join("/"));
    let step = || select(vec!["a", "b", "c", "a", "b", "c", "..", "..", ".", ""]);
    let steps = prop::collection::vec(step(), 0..6).prop_map(|steps| steps.join("/"));
    let start =
        select(vec!["a/", "b/", "c/", "../", "./", "@/ws/", "@/out/", "@/eisen/", "@/link/"]);
    let path = (start, steps).prop_map(|(start, steps)| format!("{start}{steps}"));
    let entry = prop_oneof![
        inside().prop_map(Entry::Folder),
        inside().prop_map(Entry::File),
        (inside(), path.clone()).prop_map(|(at, to)| Entry::Link(at, to)),
    ];
    let globs = |size| prop::collection::vec(select(GLOBS), size);
    let tree = prop::collection::vec(entry, 0..16);
    let requests = prop::collection::vec(path, 1..8);
    (tree, globs(1..4), globs(0..2), requests).prop_map(|(tree, allowed, denied, mut requests)| {
        // Random paths seldom exist: what was planted is asked for as well.
        requests.extend(tree.iter().map(|entry| entry.at().to_owned()));
        Case { tree, allowed, denied, requests }
    })
}

impl Entry {
    fn at(&self) -> &str {
        let (Self::Folder(at) | Self::File(at) | Self::Link(at, _)) = self;
        at
    }
}

impl Case {
    fn plant(&self) -> (Bed, Zone) {
        let bed = Bed::new(&["out/a/b", "out/c", "eisen/a", "eisen/b/c", "link -> ws"]);
        for entry in &self.tree {
            // An entry in the way of another makes that fail: the tree is as random without it.
            let _ = bed.plant(entry);
        }
        let mut spec = bed.spec(&self.allowed);
        spec.denied = bed.globs(&self.denied);
        spec.eisen_dir = bed.path(EISEN);
        let zone = Zone::compile(&spec).unwrap();
        (bed, zone)
    }

    /// Whether a path that the kernel resolved is in the zone.
    fn holds(&self, bed: &Bed, canonical: &Path) -> bool {
        let Ok(path) = canonical.strip_prefix(bed.path("ws")) else { return false };
        let eisen = bed.path(EISEN);
        let mut eisen = eisen.canonicalize().into_iter().chain([eisen]);
        !eisen.any(|eisen| canonical.starts_with(eisen))
            && any_matches(&self.allowed, path)
            && !path.ancestors().any(|above| any_matches(&self.denied, above))
    }
}

impl Bed {
    /// Plants an entry of the workspace with the folders above it. What links lead out of the bed
    /// stays unplanted: a test must not litter.
    fn plant(&self, entry: &Entry) -> std::io::Result<()> {
        let path = self.path("ws").join(entry.at());
        let parent = path.parent().unwrap();
        if !self.contains(parent) || !self.contains(&path) {
            return Ok(());
        }
        fs::create_dir_all(parent)?;
        match entry {
            Entry::Folder(_) => fs::create_dir_all(path),
            Entry::File(at) => fs::write(path, at),
            Entry::Link(_, to) => symlink(self.expand(to), path),
        }
    }

    /// Writes as the kernel resolves the path, unless that leads out of the bed or by an absolute
    /// link: a zone that is broken must not make the test write elsewhere.
    #[cfg(target_os = "linux")]
    fn write(&self, path: &str) -> nix::Result<()> {
        use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
        let root = fs::File::open(&self.root).unwrap();
        let path = path.strip_prefix("@/").map_or(format!("ws/{path}"), str::to_owned);
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC;
        let how = OpenHow::new().flags(flags).resolve(ResolveFlag::RESOLVE_BENEATH);
        openat2(&root, path.as_str(), how.mode(nix::sys::stat::Mode::S_IRWXU)).map(drop)
    }

    /// Whether the bed holds what the path leads to: of a missing one, the nearest that exists.
    fn contains(&self, path: &Path) -> bool {
        let exists = |above: &&Path| above.symlink_metadata().is_ok();
        let nearest = path.ancestors().find(exists).unwrap();
        nearest.canonicalize().is_ok_and(|real| real.starts_with(&self.root))
    }
}

fn any_matches(globs: &[&str], path: &Path) -> bool {
    let slashed = path.join("");
    globs.iter().any(|glob| {
        let glob = GlobBuilder::new(glob).literal_separator(true).build().unwrap();
        [path, &slashed].iter().any(|path| glob.compile_matcher().is_match(path))
    })
}

/// `path`, from the workspace, as the kernel takes it.
fn request(bed: &Bed, path: &str) -> PathBuf {
    bed.path("ws").join(bed.expand(path))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_permit_is_for_what_the_kernel_finds_and_the_patterns_allow(case in cases()) {
        let (bed, zone) = case.plant();
        // A link such as `a/` to a file leads nowhere, but the zone closes that file.
        let eisen = bed.path(EISEN).canonicalize();
        let is_wide = eisen.is_err_and(|error| error.kind() == std::io::ErrorKind::NotADirectory);
        for path in &case.requests {
            let verdict = zone.check(Path::new(&bed.expand(path)), Action::Read);
            let Ok(canonical) = request(&bed, path).canonicalize() else { continue };
            let holds = case.holds(&bed, &canonical);
            match verdict {
                Ok(permit) => {
                    prop_assert_eq!(&permit.real, &canonical);
                    prop_assert!(holds, "{} is outside", canonical.display());
                    if let Ok(by_name) = fold(&request(&bed, path)).canonicalize() {
                        prop_assert!(case.holds(&bed, &by_name), "{} is", by_name.display());
                    }
                }
                // By name, `..` may lead elsewhere; and a denied pattern may name a link.
                Err(denied) => prop_assert!(
                    !holds || path.contains("..") || !case.denied.is_empty() || is_wide,
                    "{path} is inside, yet {} is denied", denied.path
                ),
            }
        }
    }

    #[test]
    fn one_lookup_finds_what_the_walk_finds(case in cases()) {
        let (bed, _) = case.plant();
        for path in &case.requests {
            let path = request(&bed, path);
            if let Some(reported) = without_links(&path) {
                prop_assert_eq!(walk(&path), Some(reported));
            }
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_write_lands_where_it_was_judged(case in cases()) {
        let (bed, zone) = case.plant();
        for path in &case.requests {
            let Ok(permit) = zone.check(Path::new(&bed.expand(path)), Action::Write) else { continue };
            if bed.write(path).is_ok() {
                prop_assert_eq!(&request(&bed, path).canonicalize().unwrap(), &permit.real);
                permit.replace(b"by the permit").unwrap();
                prop_assert_eq!(fs::read(request(&bed, path)).unwrap(), b"by the permit");
            }
        }
    }

    #[test]
    fn nothing_is_opened_once_a_component_became_a_link(case in cases(), at in any::<prop::sample::Index>()) {
        let (bed, zone) = case.plant();
        for path in &case.requests {
            let [Ok(reading), Ok(writing)] = [Action::Read, Action::Write]
                .map(|action| zone.check(Path::new(&bed.expand(path)), action)) else { continue };
            let inside = reading.real.strip_prefix(bed.path("ws")).unwrap();
            if !reading.real.is_file() {
                continue;
            }
            let names: Vec<_> = inside.ancestors().filter(|above| *above != Path::new("")).collect();
            let swapped = bed.path("ws").join(at.get(&names));
            // The link stays in its folder and leads to the very same files: only that it is one
            // may count.
            let aside = swapped.with_file_name("aside");
            fs::rename(&swapped, &aside).unwrap();
            symlink("aside", &swapped).unwrap();
            prop_assert!(reading.real.is_file());
            prop_assert!(reading.open_read().is_err());
            prop_assert!(writing.replace(b"new").is_err());
            fs::remove_file(&swapped).unwrap();
            fs::rename(&aside, &swapped).unwrap();
            prop_assert!(reading.open_read().is_ok());
        }
    }

    #[test]
    fn no_bytes_bring_a_zone_down(bytes in prop::collection::vec(any::<u8>(), 0..64), globs in ".{0,24}") {
        use std::os::unix::ffi::OsStrExt;
        let bed = Bed::new(&["ws/a/b"]);
        let mut spec = bed.spec(&["**"]);
        spec.denied = vec![globs.clone()];
        spec.allowed.push(globs);
        let Ok(zone) = Zone::compile(&spec) else { return Ok(()) };
        let path = Path::new(std::ffi::OsStr::from_bytes(&bytes));
        if let Ok(permit) = zone.check(path, Action::Write) {
            prop_assert!(permit.real.starts_with(bed.path("ws")));
        }
        let _ = zone.check_cwd(path);
        let _ = zone.owns(&path.to_string_lossy());
    }
}
