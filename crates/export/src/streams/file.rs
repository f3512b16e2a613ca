//! Appends lines to a file, and keeps the older ones under numbered names. What was not written as a
//! whole is taken back. Blocks its thread.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::kept::make_folder;

/// Bytes that are read at once when the end of a file is looked for.
const STEP: u64 = 64 << 10;

#[derive(Debug)]
pub(super) struct RotatingFile {
    path: PathBuf,
    max_bytes: u64,
    keep: u32,
    /// A line may have been torn before.
    is_doubtful: bool,
}

impl RotatingFile {
    pub(super) fn new(path: PathBuf, max_bytes: u64, keep: u32) -> Self {
        Self { path, max_bytes, keep, is_doubtful: true }
    }

    /// Appends lines, all or none, and waits for the disk.
    pub(super) fn append<'a>(
        &mut self,
        lines: impl Iterator<Item = &'a str>,
    ) -> Result<(), String> {
        let mut text = Vec::new();
        for line in lines {
            text.extend(line.as_bytes());
            text.push(b'\n');
        }
        let written = self.write(&text);
        self.is_doubtful = written.is_err();
        written.map_err(|error| format!("cannot write {}: {error}", self.path.display()))
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        let mut file = self.open()?;
        let mut size = file.metadata()?.len();
        if self.is_doubtful {
            size = mend(&mut file, size)?;
        }
        if size > 0 && size.saturating_add(text.len() as u64) > self.max_bytes {
            self.rotate()?;
            (file, size) = (self.open()?, 0);
        }
        let written = file.write_all(text).and_then(|()| file.sync_data());
        if written.is_err() {
            // What is left of it, a later write takes back.
            let _ = file.set_len(size);
        }
        written
    }

    fn open(&self) -> io::Result<File> {
        let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600).custom_flags(flags);
        let file = match options.open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let folder = self.path.parent().unwrap_or(Path::new("/"));
                make_folder(folder)?;
                options.open(&self.path)?
            }
            opened => opened?,
        };
        if file.metadata()?.is_file() { Ok(file) } else { Err(other("it is no plain file")) }
    }

    /// Gives each file the next number; the last one goes.
    fn rotate(&self) -> io::Result<()> {
        if self.keep == 0 {
            return fs::remove_file(&self.path);
        }
        let numbered = |number: u32| self.path.with_added_extension(number.to_string());
        for number in (1..self.keep).rev() {
            rename(&numbered(number), &numbered(number + 1))?;
        }
        rename(&self.path, &numbered(1))
    }
}

/// Takes a torn line off the end of a file; returns its size.
fn mend(file: &mut File, size: u64) -> io::Result<u64> {
    if size == 0 {
        return Ok(0);
    }
    let mut first = [0];
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut first)?;
    if first != *b"{" {
        return Err(other("it is not a file with lines of JSON"));
    }
    let mut end = size;
    while end > 0 {
        let from = end.saturating_sub(STEP);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        io::Read::by_ref(file).take(end - from).read_to_end(&mut bytes)?;
        if let Some(at) = memchr::memrchr(b'\n', &bytes) {
            end = from + at as u64 + 1;
            break;
        }
        end = from;
    }
    if end < size {
        file.set_len(end)?;
    }
    Ok(end)
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        renamed => renamed,
    }
}

fn other(why: &str) -> io::Error {
    io::Error::other(why)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt as _;

    use nix::sys::stat::Mode;

    use super::*;

    fn read(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn a_full_file_gets_a_number_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/events.ndjson");
        let mut file = RotatingFile::new(path.clone(), 20, 2);
        for batch in ["{\"a\":1}", "{\"b\":2}", "{\"c\":3}", "{\"d\":4}", "{\"e\":5}", "{\"f\":6}"]
        {
            file.append([batch].into_iter()).unwrap();
        }
        file.append(["{\"g\":\"longer than a whole file\"}"].into_iter()).unwrap();
        let name = |number: &str| path.with_added_extension(number);
        assert_eq!(read(&path), "{\"g\":\"longer than a whole file\"}\n");
        assert_eq!(read(&name("1")), "{\"e\":5}\n{\"f\":6}\n");
        assert_eq!(read(&name("2")), "{\"c\":3}\n{\"d\":4}\n");
        assert!(!name("3").exists());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_torn_line_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.ndjson");
        let torn = format!("{{\"b\":\"{}", "x".repeat(200_000));
        for (before, after) in [
            (format!("{{\"a\":1}}\n{torn}"), "{\"a\":1}\n{\"c\":3}\n"),
            (torn.clone(), "{\"c\":3}\n"),
            ("{\"a\":1}\n".to_owned(), "{\"a\":1}\n{\"c\":3}\n"),
        ] {
            fs::write(&path, before).unwrap();
            let mut file = RotatingFile::new(path.clone(), 1 << 20, 2);
            file.append(["{\"c\":3}"].into_iter()).unwrap();
            assert_eq!(read(&path), after);
        }
    }

    #[test]
    fn what_is_no_file_of_lines_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        fs::write(place("notes.txt"), "mine").unwrap();
        std::os::unix::fs::symlink(place("notes.txt"), place("link")).unwrap();
        nix::unistd::mkfifo(&place("pipe"), Mode::S_IRWXU).unwrap();
        for (name, why) in [
            ("notes.txt", "not a file with lines of JSON"),
            ("link", "symbolic link"),
            ("pipe", "pipe: it is no plain file"),
            ("notes.txt/x", "Not a directory"),
        ] {
            let mut file = RotatingFile::new(place(name), 1 << 20, 2);
            let error = file.append(["{}"].into_iter()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert_eq!(read(&place("notes.txt")), "mine");
    }
}
