//! Files that a prompt takes along: read once, kept with the run, and sent in the form that the agent takes.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Files of a prompt.
pub const MOST_FILES: usize = 100;

/// Bytes of one file.
const LONGEST: u64 = 4 << 20;

/// Bytes of its name, and of what else is said of it.
const LONGEST_NAME: usize = 16 << 10;

/// A file as it was when its run was asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RunFile")]
pub struct Attachment {
    /// Its path, as it was named.
    name: String,
    uri: String,
    mime_type: String,
    content: Content,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "RunFileContent")]
enum Content {
    Text(String),
    /// In Base64.
    Bytes(String),
}

/// The kinds of content that an agent takes in a prompt besides text.
#[derive(Clone, Copy, Default, Debug)]
pub struct Takes {
    pub resources: bool,
    pub images: bool,
}

impl Attachment {
    pub fn read(path: &Path) -> Result<Self, AttachmentError> {
        let name = path.display().to_string();
        let failed = |error| AttachmentError::Read(name.clone(), error);
        let file = File::open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(AttachmentError::NoFile(name));
        }
        let mut bytes = Vec::new();
        file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > LONGEST {
            return Err(AttachmentError::TooLong(name));
        }
        let real = path.canonicalize().map_err(failed)?;
        let uri = format!("file://{}", real.display());
        Ok(match String::from_utf8(bytes) {
            Ok(text) => {
                let mime_type = "text/plain".to_owned();
                Self { name, uri, mime_type, content: Content::Text(text) }
            }
            Err(error) => {
                let bytes = error.into_bytes();
                let mime_type = kind_of_bytes(&bytes).to_owned();
                Self { name, uri, mime_type, content: Content::Bytes(STANDARD.encode(bytes)) }
            }
        })
    }

    /// Checks one that another process has read.
    pub fn check(&self) -> Result<(), AttachmentError> {
        let Self { name, uri, mime_type, content } = self;
        if name.len() + uri.len() + mime_type.len() > LONGEST_NAME {
            return Err(AttachmentError::Name(LONGEST_NAME));
        }
        let bytes = match content {
            Content::Text(text) => text.len(),
            Content::Bytes(data) => match STANDARD.decode(data) {
                Ok(bytes) => bytes.len(),
                Err(_) => return Err(AttachmentError::NoBase64(name.clone())),
            },
        };
        if bytes as u64 > LONGEST {
            return Err(AttachmentError::TooLong(name.clone()));
        }
        Ok(())
    }

    /// Its bytes, as they are kept.
    pub fn bytes(&self) -> usize {
        match &self.content {
            Content::Text(text) | Content::Bytes(text) => text.len(),
        }
    }

    /// Its content block in a prompt.
    pub fn block(&self, takes: Takes) -> Result<Value, AttachmentError> {
        let Self { name, uri, mime_type, content } = self;
        match content {
            Content::Text(text) if takes.resources => Ok(json!({
                "type": "resource",
                "resource": { "uri": uri, "mimeType": mime_type, "text": text },
            })),
            Content::Text(text) => {
                Ok(json!({ "type": "text", "text": format!("The file {name}:\n\n{text}") }))
            }
            Content::Bytes(data) if takes.images && mime_type.starts_with("image/") => Ok(json!({
                "type": "image", "mimeType": mime_type, "data": data, "uri": uri,
            })),
            Content::Bytes(data) if takes.resources && !mime_type.starts_with("image/") => {
                Ok(json!({
                    "type": "resource",
                    "resource": { "uri": uri, "mimeType": mime_type, "blob": data },
                }))
            }
            Content::Bytes(_) => Err(AttachmentError::NotTaken(name.clone(), mime_type.clone())),
        }
    }
}

/// The media type of what is no text, by its first bytes.
fn kind_of_bytes(bytes: &[u8]) -> &'static str {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'%', b'P', b'D', b'F', ..] => "application/pdf",
        _ => "application/octet-stream",
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AttachmentError {
    #[error("cannot read the file {0}: {1}")]
    Read(String, std::io::Error),
    #[error("{0} is no file")]
    NoFile(String),
    #[error("the file {0} is longer than {most} MiB: the agent can read it itself if its zone has it", most = LONGEST >> 20)]
    TooLong(String),
    #[error("the name of a file may have at most {0} bytes, with its address and type")]
    Name(usize),
    #[error("what the file {0} has is no Base64")]
    NoBase64(String),
    #[error("the agent takes no {1} in a prompt, as {0} is one")]
    NotTaken(String, String),
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_file_is_sent_in_the_form_that_the_agent_takes() {
        let folder = tempfile::tempdir().unwrap();
        let made = |name: &str, bytes: &[u8]| {
            let file = folder.path().join(name);
            std::fs::write(&file, bytes).unwrap();
            Attachment::read(&file)
        };
        let all = Takes { resources: true, images: true };
        let text = made("a.rs", b"fn a() {}").unwrap();
        assert_eq!(text.block(all).unwrap()["resource"]["text"], "fn a() {}");
        let plain = text.block(Takes::default()).unwrap();
        assert!(plain["text"].as_str().unwrap().ends_with("a.rs:\n\nfn a() {}"), "{plain}");

        let image = made("a.png", b"\x89PNG\r\n\x1a\n\xff").unwrap();
        let block = image.block(all).unwrap();
        assert_eq!((&block["type"], &block["mimeType"]), (&"image".into(), &"image/png".into()));
        let error = image.block(Takes { images: false, ..all }).unwrap_err().to_string();
        assert!(error.contains("takes no image/png"), "{error}");

        let other = made("a.bin", b"\xff\xfe\x00").unwrap();
        assert_eq!(other.block(all).unwrap()["resource"]["blob"], "//4A");
        assert!(other.block(Takes::default()).is_err());
        assert!(matches!(made("big", &vec![b'a'; 5 << 20]), Err(AttachmentError::TooLong(_))));
        assert!(matches!(Attachment::read(folder.path()), Err(AttachmentError::NoFile(_))));
    }

    #[test]
    fn a_file_that_another_process_has_read_is_checked() {
        let check = |name: &str, content: Value| {
            let file = json!({ "name": name, "uri": "file:///a", "mime_type": "text/plain", "content": content });
            serde_json::from_value::<Attachment>(file).unwrap().check()
        };
        assert!(check("a", json!({ "text": "x" })).is_ok());
        assert!(check("a", json!({ "bytes": "//4A" })).is_ok());
        assert!(matches!(check("a", json!({ "bytes": "~" })), Err(AttachmentError::NoBase64(_))));
        let long = "x".repeat((4 << 20) + 1);
        assert!(matches!(check("a", json!({ "text": long })), Err(AttachmentError::TooLong(_))));
        let long = "x".repeat(LONGEST_NAME);
        assert!(matches!(check(&long, json!({ "text": "" })), Err(AttachmentError::Name(_))));
    }
}
