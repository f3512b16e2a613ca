//! Stands in for the package `nkeys`, with the part that `async-nats` calls. The signatures are made by
//! `aws-lc-rs`.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use data_encoding::BASE32_NOPAD;

/// A seed in bytes: two that hold both kinds, the key, and the checksum.
const SEED: usize = 2 + 32 + 2;

/// The kind of each seed: `S`.
const SEED_KIND: u8 = 18 << 3;

/// A fault in a seed. Its text does not show the seed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("this is not base32 of {SEED} bytes")]
    Encoding,
    #[error("its checksum is wrong")]
    Checksum,
    #[error("this is not a seed")]
    Kind,
    #[error("this is not a key")]
    Key,
}

/// The key of a user, an account, or another part of NATS.
#[derive(Debug)]
pub struct KeyPair {
    /// The kind in a public key: a user, an account, or another.
    kind: u8,
    key: Ed25519KeyPair,
}

impl KeyPair {
    /// Reads a seed, such as `SUA…`.
    pub fn from_seed(seed: &str) -> Result<Self, Error> {
        let bytes = BASE32_NOPAD.decode(seed.as_bytes()).map_err(|_| Error::Encoding)?;
        let bytes = <[u8; SEED]>::try_from(bytes).map_err(|_| Error::Encoding)?;
        let (&checksum, rest) =
            bytes.split_last_chunk::<2>().map(|(rest, sum)| (sum, rest)).ok_or(Error::Encoding)?;
        if u16::from_le_bytes(checksum) != crc16(rest) {
            return Err(Error::Checksum);
        }
        let [first, second, key @ ..] = rest else { return Err(Error::Encoding) };
        // Five bits each: that it is a seed, and whose.
        if first & 0b1111_1000 != SEED_KIND {
            return Err(Error::Kind);
        }
        let kind = (first & 0b111) << 5 | second >> 3;
        let key = Ed25519KeyPair::from_seed_unchecked(key).map_err(|_| Error::Key)?;
        Ok(Self { kind, key })
    }

    /// The Ed25519 signature of some bytes.
    pub fn sign(&self, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.key.sign(bytes).as_ref().to_vec())
    }

    /// The public key, such as `UA…`.
    pub fn public_key(&self) -> String {
        let mut bytes = vec![self.kind];
        bytes.extend(self.key.public_key().as_ref());
        bytes.extend(crc16(&bytes).to_le_bytes());
        BASE32_NOPAD.encode(&bytes)
    }
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 { shifted } else { shifted ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};

    use super::*;

    /// An account, as the tool of NATS made it.
    const SEED: &str = "SAAPN4W3EG6KCJGUQTKTJ5GSB5NHK5CHAJL4DBGFUM3HHROI4XUEP4OBK4";
    const PUBLIC: &str = "ACODERUVFFAWZQDSS6SBIACUA5O6SXF7HJ3YTYXBALHZP3P7R4BUO4J2";

    #[test]
    fn a_seed_signs_and_has_its_public_key() {
        let pair = KeyPair::from_seed(SEED).unwrap();
        assert_eq!(pair.public_key(), PUBLIC);
        let signature = pair.sign(b"nonce").unwrap();
        let public = BASE32_NOPAD.decode(PUBLIC.as_bytes()).unwrap();
        let public = UnparsedPublicKey::new(&ED25519, &public[1..33]);
        public.verify(b"nonce", &signature).unwrap();
        public.verify(b"other", &signature).unwrap_err();
    }

    #[test]
    fn what_is_no_seed_is_refused_without_being_shown() {
        let wrong = SEED.replace("PN4W", "PN4X");
        let short = &SEED[..56];
        for (seed, why) in [
            ("", "this is not base32 of 36 bytes"),
            ("é", "this is not base32 of 36 bytes"),
            (&SEED.to_lowercase(), "this is not base32 of 36 bytes"),
            (short, "this is not base32 of 36 bytes"),
            (&format!("{SEED}AA"), "this is not base32 of 36 bytes"),
            (&wrong, "its checksum is wrong"),
            (&"A".repeat(58), "this is not a seed"),
        ] {
            assert_eq!(KeyPair::from_seed(seed).unwrap_err().to_string(), why, "{seed}");
        }
    }
}
