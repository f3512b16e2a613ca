//! The stream under an end. The library gives its requests ids that nobody else has; most agents and
//! editors count from 0, so that the same ids go both ways: so does this, in the library's place.

use std::io;
use std::sync::{Arc, Mutex};

use agent_client_protocol::{ConnectTo, Lines, Role};
use futures_util::{sink, stream};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

/// The library's id of each request of its end, in the order in which they were made.
#[derive(Clone, Default)]
struct Numbers(Arc<Mutex<Vec<Value>>>);

pub(super) fn numbered<R: Role>(
    hears: impl AsyncRead + Unpin + Send + 'static,
    says: impl AsyncWrite + Unpin + Send + 'static,
) -> impl ConnectTo<R> + 'static {
    let numbers = Numbers::default();
    let outgoing = {
        let numbers = numbers.clone();
        sink::unfold(says, move |mut says, line: String| {
            let line = numbers.said(&line);
            async move {
                says.write_all(line.as_bytes()).await?;
                says.flush().await?;
                io::Result::Ok(says)
            }
        })
    };
    let lines = BufReader::new(hears).lines();
    let incoming = stream::unfold((lines, numbers), async |(mut lines, numbers)| {
        let line = lines.next_line().await.transpose()?;
        let line = line.map(|line| numbers.heard(&line));
        Some((line, (lines, numbers)))
    });
    Lines::new(outgoing, incoming)
}

impl Numbers {
    fn said(&self, line: &str) -> String {
        let mut message: Value = serde_json::from_str(line).unwrap();
        let mut ids = self.0.lock().unwrap();
        if message.get("method").is_some_and(|method| method == "$/cancel_request") {
            let id = &mut message["params"]["requestId"];
            *id = ids.iter().position(|known| known == id).unwrap().into();
        } else if message.get("method").is_some()
            && let Some(id) = message.get_mut("id")
        {
            ids.push(id.take());
            *id = (ids.len() - 1).into();
        }
        format!("{message}\n")
    }

    fn heard(&self, line: &str) -> String {
        let mut message: Value = serde_json::from_str(line).unwrap();
        let ids = self.0.lock().unwrap();
        let own = |id: &Value| ids[usize::try_from(id.as_u64().unwrap()).unwrap()].clone();
        if message.get("method").is_none() {
            message["id"] = own(&message["id"]);
        } else if message["method"] == "elicitation/create"
            && let Some(id) = message["params"].get_mut("requestId")
        {
            *id = own(id);
        }
        message.to_string()
    }
}
