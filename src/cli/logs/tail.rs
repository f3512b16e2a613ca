//! The log of one agent, read across rotations.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum bytes of a line; longer lines are split.
const LONGEST_LINE: usize = 1 << 20;

/// Bytes per read.
const CHUNK: u64 = 1 << 20;

/// Follows the log of one agent. The log is rotated: a full file is renamed to `.1`, replacing the
/// previous one.
pub(super) struct Tail {
    agent: String,
    path: PathBuf,
    /// None while the file does not exist.
    file: Option<Open>,
    /// The beginning of an incomplete line.
    begun: Vec<u8>,
}

struct Open {
    file: File,
    id: FileId,
    /// Bytes read so far.
    at: u64,
}

type FileId = (u64, u64);

fn id_of(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

impl Tail {
    pub(super) fn new(folder: &Path, agent: &str) -> Self {
        Self::of_file(agent, folder.join(format!("{agent}.log")))
    }

    /// The tail of a file that is shown under a name of its own.
    pub(super) fn of_file(name: &str, path: PathBuf) -> Self {
        Self { agent: name.to_owned(), path, file: None, begun: Vec::new() }
    }

    /// The beginning of a line whose end will not come.
    pub(super) fn unfinished(&mut self) -> Option<Vec<u8>> {
        (!self.begun.is_empty()).then(|| std::mem::take(&mut self.begun))
    }

    pub(super) fn agent(&self) -> &str {
        &self.agent
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the log, the rotated file first; only the `last` lines if given. An incomplete last
    /// line counts as a line.
    pub(super) fn begin(&mut self, last: Option<usize>) -> io::Result<Vec<Vec<u8>>> {
        self.file = Open::at(&self.path)?;
        let mut lines = self.rotated()?;
        lines.extend(self.read()?);
        if !self.begun.is_empty() {
            lines.push(std::mem::take(&mut self.begun));
        }
        let first = last.map_or(0, |last| lines.len().saturating_sub(last));
        Ok(lines.split_off(first))
    }

    /// Reads the complete lines that were added since.
    pub(super) fn advance(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut lines = self.read()?;
        while let Some(next) = Open::at(&self.path)? {
            match &mut self.file {
                Some(file) if file.id == next.id => {
                    // The file was truncated.
                    if next.file.metadata()?.len() < file.at {
                        *file = next;
                        lines.extend(self.read()?);
                    }
                    break;
                }
                _ => {}
            }
            // The rest of the old file, and of one that was rotated in the meantime.
            lines.extend(self.read()?);
            lines.extend(self.rotated()?);
            self.file = Some(next);
            lines.extend(self.read()?);
        }
        Ok(lines)
    }

    /// Reads the rotated file, unless it was read before its rotation.
    fn rotated(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut path = self.path.clone().into_os_string();
        path.push(".1");
        match Open::at(Path::new(&path))? {
            Some(mut rotated) if self.file.as_ref().is_none_or(|file| file.id != rotated.id) => {
                read(&mut rotated, &mut self.begun)
            }
            _ => Ok(Vec::new()),
        }
    }

    fn read(&mut self) -> io::Result<Vec<Vec<u8>>> {
        match &mut self.file {
            Some(file) => read(file, &mut self.begun),
            None => Ok(Vec::new()),
        }
    }
}

impl Open {
    fn at(path: &Path) -> io::Result<Option<Self>> {
        match File::open(path) {
            Ok(file) => {
                let id = id_of(&file.metadata()?);
                Ok(Some(Self { file, id, at: 0 }))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Reads to the end; keeps an incomplete last line in `begun`.
fn read(open: &mut Open, begun: &mut Vec<u8>) -> io::Result<Vec<Vec<u8>>> {
    let mut lines = Vec::new();
    loop {
        let read = (&mut open.file).take(CHUNK).read_to_end(begun)?;
        if read == 0 {
            return Ok(lines);
        }
        open.at += read as u64;
        while let Some(end) = memchr::memchr(b'\n', begun) {
            let rest = begun.split_off(end + 1);
            let mut line = std::mem::replace(begun, rest);
            line.pop();
            lines.push(line);
        }
        if begun.len() > LONGEST_LINE {
            lines.push(std::mem::take(begun));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs::{OpenOptions, rename, write};
    use std::io::Write;

    use super::*;

    struct Log(tempfile::TempDir);

    impl Log {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn append(&self, text: &str) {
            let path = self.path("ui.log");
            let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }

        fn rotate(&self) {
            rename(self.path("ui.log"), self.path("ui.log.1")).unwrap();
        }

        fn tail(&self) -> Tail {
            Tail::new(self.0.path(), "ui")
        }
    }

    fn text(lines: io::Result<Vec<Vec<u8>>>) -> String {
        String::from_utf8(lines.unwrap().join(&b'|')).unwrap()
    }

    #[test]
    fn it_begins_with_the_rotated_file_and_the_last_lines_reach_into_it() {
        let log = Log::new();
        assert_eq!(text(log.tail().begin(None)), "");
        log.append("1\n2\n");
        log.rotate();
        assert_eq!(text(log.tail().begin(None)), "1|2");
        log.append("3\n4");
        assert_eq!(text(log.tail().begin(None)), "1|2|3|4");
        assert_eq!(text(log.tail().begin(Some(3))), "2|3|4");
        assert_eq!(text(log.tail().begin(Some(0))), "");
        assert_eq!(text(log.tail().begin(Some(9))), "1|2|3|4");
    }

    #[test]
    fn it_goes_on_over_rotations() {
        let log = Log::new();
        let mut tail = log.tail();
        assert_eq!(text(tail.begin(None)), "");
        log.append("1\n2");
        assert_eq!(text(tail.advance()), "1");
        log.append("2\n");
        assert_eq!(text(tail.advance()), "22");
        log.append("3\n");
        log.rotate();
        assert_eq!(text(tail.advance()), "3");
        log.append("4\n");
        assert_eq!(text(tail.advance()), "4");
        // Two rotations between two reads.
        log.append("5\n");
        log.rotate();
        log.append("6\n");
        log.rotate();
        log.append("7\n");
        assert_eq!(text(tail.advance()), "5|6|7");
        assert_eq!(text(tail.advance()), "");
        write(log.path("ui.log"), "8\n").unwrap();
        assert_eq!(text(tail.advance()), "");
        write(log.path("ui.log"), "").unwrap();
        assert_eq!(text(tail.advance()), "");
        log.append("9\n");
        assert_eq!(text(tail.advance()), "9");
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let log = Log::new();
        log.append(&"x".repeat(LONGEST_LINE * 2 + 7));
        let mut tail = log.tail();
        let lengths: Vec<_> = tail.begin(None).unwrap().iter().map(Vec::len).collect();
        assert_eq!(lengths.iter().sum::<usize>(), LONGEST_LINE * 2 + 7);
        assert!(lengths.len() > 1, "{lengths:?}");
    }
}
