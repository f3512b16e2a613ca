//! Owns the calls to a plugin's instance, and gives the plugin up after too many errors in a row.

use eisen_plugin::{Record, records};
use tokio::sync::watch;

use super::reader::{CallError, CallOutput, InstanceCall, RecordReader};

/// Errors in a row after which a plugin is degraded, and after which it is given up.
const DEGRADED: usize = 5;
const DISABLED: usize = 10;

pub(super) struct Consulted {
    reader: Box<dyn RecordReader>,
    name: String,
    /// Why the plugin is degraded, shown with the agent's state.
    concern: watch::Sender<Option<String>>,
    /// Errors in a row.
    errors: usize,
}

impl Consulted {
    pub(super) fn new(
        reader: Box<dyn RecordReader>,
        name: String,
        concern: watch::Sender<Option<String>>,
    ) -> Self {
        Self { reader, name, concern, errors: 0 }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) async fn call(&mut self, call: InstanceCall<'_>) -> Result<CallOutput, CallError> {
        self.reader.call(call).await
    }

    /// Passes each record of an answer to `on_record`, and counts errors. A record that is accepted
    /// resets the count. The error says that the plugin is given up.
    pub(super) fn take(
        &mut self,
        answer: Result<CallOutput, CallError>,
        mut on_record: impl FnMut(Record<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let output = match answer {
            Ok(answer) => answer.output,
            Err(error) => return self.on_failure(&error.to_string()),
        };
        for record in records(&output) {
            match record {
                Ok(Record::Error { body }) => self.on_failure(&body)?,
                Ok(record) => match on_record(record) {
                    Ok(()) => self.on_success(),
                    Err(why) => self.on_failure(&why)?,
                },
                Err(malformed) => self.on_failure(&malformed.to_string())?,
            }
        }
        Ok(())
    }

    pub(super) fn on_failure(&mut self, why: &str) -> Result<(), String> {
        let name = &self.name;
        tracing::warn!(plugin = name, why, "a plugin failed");
        self.errors += 1;
        if self.errors >= DISABLED {
            return Err(format!("its plugin {name} failed {DISABLED} times in a row: {why}"));
        }
        if self.errors == DEGRADED {
            let concern = format!(
                "its plugin {name} is degraded (it failed {DEGRADED} times in a row, and {DISABLED} \
                 disable it): {why}"
            );
            self.concern.send_replace(Some(concern));
        }
        Ok(())
    }

    fn on_success(&mut self) {
        if std::mem::take(&mut self.errors) >= DEGRADED {
            self.concern.send_replace(None);
        }
    }
}

/// Returns the rest of a block that the answered call did not read. A lost instance leaves all of
/// it, so that no line counts as read by mistake.
pub(super) fn unread<'a>(block: &'a [u8], answer: &mut Result<CallOutput, CallError>) -> &'a [u8] {
    match answer {
        Ok(CallOutput { read, .. }) if (1..=block.len()).contains(read) => &block[*read..],
        Err(error) if error.is_loss() => block,
        Err(_) => &[],
        Ok(_) => {
            *answer = Err(CallError::Failed("it read nothing of a line".to_owned()));
            &[]
        }
    }
}
