//! Owns the task between an agent's process and its relay, which makes the agent speak ACP.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;

use super::consulted::{Consulted, unread};
use super::reader::{CallError, CallOutput, InstanceCall, RecordReader};
use super::translation::{Conversation, Intent, Translated, Translation};
use crate::line::{Framer, MAX_LINE, content, lines};

/// Bytes that may wait for an agent that does not read; past that it is given up.
const MOST_WAITING: usize = 64 * 1024 * 1024;

/// The translation of one run of an agent.
pub struct Translator {
    plugin: Consulted,
    translation: Translation,
    /// Bytes that the agent has not read.
    waiting: BytesMut,
    /// The instance replaces one that was lost.
    is_new: bool,
}

impl Translator {
    /// `name` is the plugin's, `model` the model for the agent; `conversation` is shared by the
    /// agent's runs.
    pub fn new(
        name: String,
        model: Option<String>,
        conversation: Conversation,
        reader: Box<dyn RecordReader>,
        concern: watch::Sender<Option<String>>,
    ) -> Self {
        Self {
            translation: Translation::new(name.clone(), model, conversation),
            plugin: Consulted::new(reader, name, concern),
            waiting: BytesMut::new(),
            is_new: false,
        }
    }

    /// Translates until the agent's output ends. On a failure `breaks` gets the reason, before the
    /// agent can notice.
    pub async fn run<AR, AW, RR, RW>(
        mut self,
        (mut from_agent, to_agent): (AR, AW),
        mut relay: (RR, RW),
        breaks: impl FnOnce(String),
    ) where
        AR: AsyncRead + Unpin + Send,
        AW: AsyncWrite + Unpin + Send,
        RR: AsyncRead + Unpin + Send,
        RW: AsyncWrite + Unpin + Send,
    {
        let mut to_agent = Some(to_agent);
        let translated = self.translate((&mut from_agent, &mut to_agent), &mut relay).await;
        translated.unwrap_or_else(breaks);
    }

    async fn translate<AR, AW, RR, RW>(
        &mut self,
        (from_agent, to_agent): (&mut AR, &mut Option<AW>),
        (from_relay, to_relay): &mut (RR, RW),
    ) -> Result<(), String>
    where
        AR: AsyncRead + Unpin + Send,
        AW: AsyncWrite + Unpin + Send,
        RR: AsyncRead + Unpin + Send,
        RW: AsyncWrite + Unpin + Send,
    {
        let (mut agent, mut relay) = (Framer::new(MAX_LINE), Framer::new(MAX_LINE));
        let mut is_open = true;
        loop {
            let mut said = Translated::default();
            tokio::select! {
                read = from_agent.read_buf(agent.space()) => {
                    let block = block(&mut agent, &read).map_err(|why| format!("its output {why}"))?;
                    let ended = block.1;
                    if let Some(block) = block.0 {
                        self.read(&block, to_relay).await?;
                    }
                    if ended {
                        return Ok(());
                    }
                }
                read = from_relay.read_buf(relay.space()), if is_open => {
                    let (block, ended) = block(&mut relay, &read)?;
                    for line in block.iter().flat_map(|block| lines(block)) {
                        self.translation.on_client_line(content(line), &mut said);
                    }
                    is_open = !ended;
                }
                wrote = write(to_agent, &self.waiting), if !self.waiting.is_empty() => {
                    match wrote {
                        Ok(wrote) if wrote > 0 => self.waiting.advance(wrote),
                        // The agent stopped reading; its output is still translated.
                        _ => (*to_agent, self.waiting) = (None, BytesMut::new()),
                    }
                }
            }
            self.deliver(said, to_relay).await?;
            if !is_open && self.waiting.is_empty() {
                *to_agent = None;
            }
        }
    }

    /// Has the plugin read the agent's output, and passes on the result.
    async fn read(
        &mut self,
        mut block: &[u8],
        to_relay: &mut (impl AsyncWrite + Unpin + Send),
    ) -> Result<(), String> {
        while !block.is_empty() {
            let mut answer = self.call(InstanceCall::Read { block }).await;
            block = unread(block, &mut answer);
            let mut said = Translated::default();
            self.take(answer, &mut said)?;
            self.deliver(said, to_relay).await?;
        }
        Ok(())
    }

    /// Sends the lines of a translation, and has the plugin fulfil its intents.
    async fn deliver(
        &mut self,
        mut said: Translated,
        to_relay: &mut (impl AsyncWrite + Unpin + Send),
    ) -> Result<(), String> {
        let mut intents: VecDeque<_> = std::mem::take(&mut said.intents).into();
        loop {
            self.send(&mut said).await?;
            // An error means that the relay is gone, which drops this task.
            let _ = to_relay.write_all(&said.to_client).await;
            said.to_client.clear();
            let Some(intent) = intents.pop_front() else { return Ok(()) };
            self.fulfil(intent, &mut said).await?;
            intents.extend(said.intents.drain(..));
        }
    }

    async fn fulfil(&mut self, intent: Intent, said: &mut Translated) -> Result<(), String> {
        let call = match &intent {
            Intent::Start { settings, .. } => InstanceCall::Start { settings },
            Intent::Prompt { text } => InstanceCall::Prompt { text },
            Intent::Cancel => InstanceCall::Cancel,
            Intent::Deny { ask, why } => InstanceCall::Deny { id: ask, why },
            Intent::Allow { ask } => InstanceCall::Allow { id: ask },
        };
        let mut answer = self.call(call).await;
        // The process may have died of an earlier line, so the call is repeated once. A process
        // that hung did so in this call.
        if let Err(CallError::Died(why)) = &answer {
            self.plugin.on_failure(why).map_err(restartable)?;
            answer = self.call(call).await;
        }
        let failed = answer.as_ref().err().map(ToString::to_string);
        self.take(answer, said)?;
        if intent == Intent::Cancel && said.to_agent.is_empty() {
            return Err(match failed {
                Some(why) => {
                    format!("its plugin {} can't cancel its turn: {why}", self.plugin.name())
                }
                None => "its turn was cancelled, which it only understands by ending: \
                         `eisen-core agent start` brings it back"
                    .to_owned(),
            });
        }
        // Without a line the agent would wait for its answer for ever.
        if let Intent::Deny { .. } | Intent::Allow { .. } = &intent
            && (failed.is_some() || said.to_agent.is_empty())
        {
            let (name, why) =
                (self.plugin.name(), failed.as_deref().unwrap_or("it puts no line for that"));
            return Err(format!("its plugin {name} can't answer what it asked: {why}"));
        }
        self.translation.fulfilled(intent, failed.map_or(Ok(()), Err), said);
        Ok(())
    }

    /// Queues lines for the agent, and has the plugin observe them.
    async fn send(&mut self, said: &mut Translated) -> Result<(), String> {
        for line in std::mem::take(&mut said.to_agent) {
            if self.waiting.len() + line.len() > MOST_WAITING {
                return Err("it does not read what it is sent".to_owned());
            }
            self.waiting.extend_from_slice(&line);
            self.waiting.extend_from_slice(b"\n");
            let answer = self.call(InstanceCall::Sent { line: &line }).await;
            self.take(answer, said)?;
        }
        Ok(())
    }

    /// Makes a call. An instance that replaces a lost one first gets the conversation that it
    /// resumes; the agent has those lines already, so they are not sent again.
    async fn call(&mut self, call: InstanceCall<'_>) -> Result<CallOutput, CallError> {
        if self.is_new
            && let Some(settings) = self.translation.resume_settings()
        {
            match self.plugin.call(InstanceCall::Start { settings: &settings }).await {
                Err(lost) if lost.is_loss() => return Err(lost),
                Err(error) => {
                    tracing::warn!(plugin = self.plugin.name(), %error, "a plugin can't resume its conversation");
                }
                Ok(_) => {}
            }
        }
        let answer = self.plugin.call(call).await;
        self.is_new = answer.as_ref().is_err_and(CallError::is_loss);
        answer
    }

    /// Processes the output of a call.
    fn take(
        &mut self,
        answer: Result<CallOutput, CallError>,
        said: &mut Translated,
    ) -> Result<(), String> {
        let Self { plugin, translation, .. } = self;
        plugin.take(answer, |record| translation.translate(record, said)).map_err(restartable)
    }
}

/// Adds the command that restarts an agent whose plugin is lost.
fn restartable(why: String) -> String {
    why + " (`eisen-core agent start` tries again)"
}

/// Returns the read whole lines, and whether the input ended.
fn block(
    framer: &mut Framer,
    read: &std::io::Result<usize>,
) -> Result<(Option<Bytes>, bool), String> {
    match read {
        Ok(0) | Err(_) => Ok((framer.rest(), true)),
        Ok(_) => Ok((framer.block().map_err(|error| error.to_string())?, false)),
    }
}

/// Writes part of the waiting bytes; 0 if the agent has stopped reading.
async fn write(to: &mut Option<impl AsyncWrite + Unpin>, bytes: &[u8]) -> std::io::Result<usize> {
    match to {
        Some(to) => to.write(bytes).await,
        None => Ok(0),
    }
}

#[cfg(test)]
mod tests;
