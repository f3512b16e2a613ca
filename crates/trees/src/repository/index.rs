//! Reads and writes git's index: which content each file has, and by which marks git knows that it was not changed.
//!
//! Versions 2 to 4 are read, version 2 is written. Extensions are left out: git makes them again.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// The mode of a submodule's entry.
pub(crate) const TREE_LINK: u32 = 0o160_000;

/// The bytes of an entry before its name, and of a name of an object.
const FIXED: usize = 62;
const NAME: usize = 20;

/// Bits of an entry's flags.
const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;
const SKIPPED: u16 = 0x4000;

/// The marks of a file: times, number, owner and size, as the index has them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Stat {
    pub(crate) fields: [u32; 9],
}

/// Places in [`Stat::fields`]. The mode is apart, since git sets it.
const CTIME: usize = 0;
const MTIME: usize = 2;
const SIZE: usize = 8;

impl Stat {
    /// The second of its last change.
    pub(crate) fn modified(&self) -> u32 {
        self.fields[MTIME]
    }

    #[expect(clippy::cast_possible_truncation, reason = "the index has 32 bits of each")]
    #[expect(clippy::cast_sign_loss, reason = "the index has 32 bits of each")]
    pub(crate) fn of(file: &Metadata) -> Self {
        let fields = [
            file.ctime() as u32,
            file.ctime_nsec() as u32,
            file.mtime() as u32,
            file.mtime_nsec() as u32,
            file.dev() as u32,
            file.ino() as u32,
            file.uid(),
            file.gid(),
            file.size() as u32,
        ];
        Self { fields }
    }

    /// Whether a file has these marks. Parts of a second and the device count only where they were noted.
    pub(crate) fn is_of(&self, file: &Self) -> bool {
        const SUBSECONDS: [usize; 2] = [CTIME + 1, MTIME + 1];
        const DEVICE: usize = 4;
        (0..self.fields.len()).all(|at| {
            let (noted, found) = (self.fields[at], file.fields[at]);
            let may_lack = SUBSECONDS.contains(&at) && noted == 0 || at == DEVICE;
            noted == found || may_lack
        })
    }

    /// When its content changed, in seconds.
    pub(crate) fn changed(&self) -> u32 {
        self.fields[MTIME]
    }

    /// Whether git is to look at the content: the marks say nothing.
    pub(crate) fn is_unknown(&self) -> bool {
        self.fields[SIZE] == 0
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct IndexEntry {
    pub(crate) path: Vec<u8>,
    pub(crate) mode: u32,
    /// The name of its content.
    pub(crate) object: [u8; NAME],
    pub(crate) stat: Stat,
    /// Not in conflict, and not left out of the worktree.
    pub(crate) is_plain: bool,
}

#[derive(Clone, Default, Debug)]
pub(crate) struct Index {
    pub(crate) entries: Vec<IndexEntry>,
}

impl Index {
    /// Reads the bytes of an index; an error for one that is cut, or of another form.
    pub(crate) fn read(bytes: &[u8]) -> io::Result<Self> {
        let mut rest = Bytes(bytes);
        if rest.take(4)? != b"DIRC" {
            return Err(strange("it is no index"));
        }
        let (version, count) = (rest.number()?, rest.number()?);
        if !(2..=4).contains(&version) {
            return Err(strange("its version is unknown"));
        }
        let mut entries = Vec::new();
        let mut path = Vec::new();
        for _ in 0..count {
            let before = rest.0.len();
            let mut numbers = [0; 10];
            for number in &mut numbers {
                *number = rest.number()?;
            }
            let [times @ .., dev, ino, mode, uid, gid, size] = numbers;
            let [ctime, ctime_part, mtime, mtime_part] = times;
            let object = <[u8; NAME]>::try_from(rest.take(NAME)?).map_err(io::Error::other)?;
            let flags = rest.short()?;
            let further = if version > 2 && flags & EXTENDED != 0 { rest.short()? } else { 0 };
            if version == 4 {
                let cut = rest.varint()?;
                path.truncate(path.len().checked_sub(cut).ok_or_else(|| strange("a path is cut"))?);
                path.extend_from_slice(rest.until_zero()?);
            } else {
                path = rest.until_zero()?.to_vec();
                // One zero is read; entries begin at multiples of eight.
                let length = before - rest.0.len();
                rest.take(length.next_multiple_of(8) - length)?;
            }
            entries.push(IndexEntry {
                path: path.clone(),
                mode,
                object,
                stat: Stat {
                    fields: [ctime, ctime_part, mtime, mtime_part, dev, ino, uid, gid, size],
                },
                is_plain: flags & STAGE == 0 && further & SKIPPED == 0,
            });
        }
        Ok(Self { entries })
    }

    /// The bytes of version 2. Entries have to be in the order of their paths.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.entries.len() * (FIXED + 34) + 32);
        bytes.extend_from_slice(b"DIRC");
        bytes.extend(2_u32.to_be_bytes());
        bytes.extend(u32::try_from(self.entries.len()).unwrap_or(u32::MAX).to_be_bytes());
        for entry in &self.entries {
            let start = bytes.len();
            let [ctime, ctime_part, mtime, mtime_part, dev, ino, uid, gid, size] =
                entry.stat.fields;
            let numbers =
                [ctime, ctime_part, mtime, mtime_part, dev, ino, entry.mode, uid, gid, size];
            bytes.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
            bytes.extend_from_slice(&entry.object);
            let length = u16::try_from(entry.path.len()).unwrap_or(u16::MAX).min(0xFFF);
            bytes.extend(length.to_be_bytes());
            bytes.extend_from_slice(&entry.path);
            let length = bytes.len() - start;
            // One to eight zeros.
            bytes.resize(start + (length + 1).next_multiple_of(8), 0);
        }
        let checksum = digest(&SHA1_FOR_LEGACY_USE_ONLY, &bytes);
        bytes.extend_from_slice(checksum.as_ref());
        bytes
    }
}

/// Bytes that are read from their beginning.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(|| strange("it is cut"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> io::Result<u32> {
        let bytes = self.take(4)?.try_into().map_err(io::Error::other)?;
        Ok(u32::from_be_bytes(bytes))
    }

    fn short(&mut self) -> io::Result<u16> {
        let bytes = self.take(2)?.try_into().map_err(io::Error::other)?;
        Ok(u16::from_be_bytes(bytes))
    }

    /// A number as git packs offsets.
    fn varint(&mut self) -> io::Result<usize> {
        let mut value = 0_usize;
        for at in 0..5 {
            let byte = self.take(1)?[0];
            value = (value + usize::from(at > 0)) << 7 | usize::from(byte & 0x7F);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(strange("a number is too long"))
    }

    /// The bytes before the next zero, which is taken too.
    fn until_zero(&mut self) -> io::Result<&'a [u8]> {
        let end = memchr(self.0).ok_or_else(|| strange("it is cut"))?;
        let taken = self.take(end)?;
        self.take(1)?;
        Ok(taken)
    }
}

fn memchr(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == 0)
}

fn strange(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
