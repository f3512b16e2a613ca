//! Cuts large contents into chunks by what they have, and packs contents and chunks. A file that only
//! grows shares all chunks but its last ones with its earlier versions.

/// Contents from this size on are stored as chunks.
pub(super) const LEAST_CHUNKED: usize = 64 << 10;

/// Bytes of a chunk: at least, and at most.
const LEAST: usize = 4 << 10;
const MOST: usize = 64 << 10;

/// A chunk ends where so many bits of the rolling hash are zero: behind 16 KiB on average.
const BITS: u32 = 14;

/// Bytes of the hash of a chunk.
pub(super) const HASH_BYTES: usize = blake3::OUT_LEN;

/// The level of zstd for contents.
const LEVEL: i32 = 3;

/// Contents below this are stored as they are.
const LEAST_COMPRESSED: usize = 128;

/// Maximum bytes of a decompressed content.
const LARGEST_CONTENT: usize = 1 << 30;

/// A number for each byte, for the rolling hash. It never changes: chunks of old and new versions
/// would differ.
const GEAR: [u64; 256] = gear();

/// The numbers of `splitmix64`.
const fn gear() -> [u64; 256] {
    let mut gear = [0; 256];
    let (mut at, mut state) = (0, 0_u64);
    while at < gear.len() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        gear[at] = mixed ^ (mixed >> 31);
        at += 1;
    }
    gear
}

/// The chunks of a content, in order.
pub(super) fn chunks(mut content: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (chunk, rest) = content.split_at(end_of_chunk(content));
        content = rest;
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// Where the first chunk ends: behind bytes that say so, wherever they stand.
fn end_of_chunk(content: &[u8]) -> usize {
    let mut hash = 0_u64;
    for (at, byte) in content.iter().enumerate().take(MOST).skip(LEAST) {
        // The upper bits depend on the last 64 bytes.
        hash = (hash << 1).wrapping_add(GEAR[usize::from(*byte)]);
        if hash >> (u64::BITS - BITS) == 0 {
            return at + 1;
        }
    }
    content.len().min(MOST)
}

/// The encoding of some bytes, and the packed ones if they are fewer.
pub(super) fn packed(data: &[u8]) -> (&'static str, Option<Vec<u8>>) {
    let is_long = data.len() >= LEAST_COMPRESSED;
    let packed = is_long.then(|| zstd::bulk::compress(data, LEVEL).ok()).flatten();
    match packed.filter(|packed| packed.len() < data.len()) {
        Some(packed) => ("zstd", Some(packed)),
        None => ("raw", None),
    }
}

/// The original bytes; None for an encoding of a later version.
pub(super) fn unpacked(encoding: &str, size: usize, data: Vec<u8>) -> Option<Vec<u8>> {
    match encoding {
        "raw" => Some(data),
        "zstd" if size <= LARGEST_CONTENT => zstd::bulk::decompress(&data, size).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(bytes: usize) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(7);
        std::iter::repeat_with(|| random.u8(..)).take(bytes).collect()
    }

    #[test]
    fn chunks_are_the_content_within_their_bounds() {
        for content in [noise(300_000), vec![b'x'; 300_000], noise(LEAST), Vec::new()] {
            let all: Vec<_> = chunks(&content).collect();
            assert_eq!(all.concat(), content);
            assert!(all.iter().rev().skip(1).all(|it| (LEAST..=MOST).contains(&it.len())));
        }
    }

    #[test]
    fn what_is_added_or_put_in_leaves_the_other_chunks() {
        let old = noise(1 << 20);
        let grown = [&old[..], &noise(2000)].concat();
        let shifted = [&old[..1000], b"put in", &old[1000..]].concat();
        let known: std::collections::HashSet<_> = chunks(&old).collect();
        for new in [&grown, &shifted] {
            let news = chunks(new).filter(|chunk| !known.contains(chunk)).count();
            assert!(news <= 3, "{news} of {}", chunks(new).count());
        }
    }
}
