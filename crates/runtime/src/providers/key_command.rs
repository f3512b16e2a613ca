//! Runs the command that prints a provider's key, outside of all zones.

use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::time::timeout;
use zeroize::Zeroizing;

use crate::model::masked_line;

/// How long it may take: somebody may have to type a passphrase. Until it is said that it is waited for it takes less.
const DEADLINE: Duration = Duration::from_secs(60);
const SAY_AFTER: Duration = Duration::from_secs(1);

/// Bytes of its output, and of what it says on standard error.
const LONGEST_OUTPUT: u64 = 64 << 10;
const LONGEST_ERROR: u64 = 8 << 10;

/// The first line that a command prints, without blanks around it. Says when it takes long.
pub(super) async fn first_line(words: &[String], provider: &str) -> anyhow::Result<String> {
    let say = |program: &str| {
        let longest = DEADLINE.as_secs();
        tracing::warn!(
            "waits for `{program}`, the `key_command` of the provider `{provider}`: for {longest} s at most"
        );
    };
    within(words, (SAY_AFTER, DEADLINE), say).await
}

async fn within(
    words: &[String],
    (say_after, deadline): (Duration, Duration),
    say: impl FnOnce(&str),
) -> anyhow::Result<String> {
    let [program, args @ ..] = words else { bail!("its `key_command` is empty") };
    let run = async {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn()?;
        let (output, said) =
            (read(child.stdout.take(), LONGEST_OUTPUT), read(child.stderr.take(), LONGEST_ERROR));
        let (output, said) = tokio::try_join!(output, said)?;
        // One that prints more than is read would wait for ever.
        if output.len() as u64 == LONGEST_OUTPUT {
            return Ok((None, output, said));
        }
        Ok::<_, std::io::Error>((Some(child.wait().await?), output, said))
    };
    let mut run = pin!(timeout(deadline, run));
    let ran = if let Ok(ran) = timeout(say_after, &mut run).await {
        ran
    } else {
        say(program);
        run.await
    };
    let Ok(ran) = ran else {
        bail!(
            "`{program}` of its `key_command` did not end within {} s: it may wait for an answer that nobody can give it",
            deadline.as_secs()
        )
    };
    let (status, output, said) =
        ran.with_context(|| format!("cannot run `{program}` of its `key_command`"))?;
    let Some(status) = status else {
        bail!("`{program}` of its `key_command` prints more than {} KiB", LONGEST_OUTPUT >> 10)
    };
    if !status.success() {
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().rfind(|line| !line.trim().is_empty());
        let last = last.map(|line| format!(": {}", masked_line(line.trim()))).unwrap_or_default();
        bail!("`{program}` of its `key_command` failed ({status}){last}");
    }
    let end = output.iter().position(|byte| *byte == b'\n').unwrap_or(output.len());
    let Ok(line) = std::str::from_utf8(&output[..end]) else {
        bail!("`{program}` of its `key_command` does not print a text")
    };
    if line.trim().is_empty() {
        bail!("`{program}` of its `key_command` prints no key in its first line");
    }
    Ok(line.trim().to_owned())
}

/// Reads up to so many bytes. The memory has its size from the start: one that grew would leave copies behind.
async fn read(
    from: Option<impl AsyncRead + Unpin>,
    longest: u64,
) -> std::io::Result<Zeroizing<Vec<u8>>> {
    let mut read = Zeroizing::new(Vec::with_capacity(usize::try_from(longest).unwrap_or(0) + 64));
    if let Some(from) = from {
        from.take(longest).read_to_end(&mut read).await?;
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    async fn of(script: &str) -> Result<String, String> {
        let words = ["sh", "-c", script].map(str::to_owned);
        first_line(&words, "main").await.map_err(|error| format!("{error:#}"))
    }

    #[tokio::test]
    async fn the_first_line_is_the_key_and_what_fails_is_said_without_it() {
        assert_eq!(of("echo ' k-1 '; echo second").await.unwrap(), "k-1");
        assert_eq!(of("printf k-2").await.unwrap(), "k-2");
        let failed = of("echo k-3; echo 'no such entry' >&2; exit 3").await.unwrap_err();
        assert!(failed.contains("no such entry") && failed.contains('3'), "{failed}");
        assert!(!failed.contains("k-3"), "{failed}");
        assert!(of("true").await.unwrap_err().contains("prints no key"));
        assert!(of("yes").await.unwrap_err().contains("more than"));
        let words = ["/no/such/program".to_owned()];
        let missing = format!("{:#}", first_line(&words, "main").await.unwrap_err());
        assert!(missing.contains("cannot run `/no/such/program`"), "{missing}");
    }

    #[tokio::test]
    async fn a_command_that_takes_long_is_named_and_one_that_hangs_fails() {
        let folder = tempfile::tempdir().unwrap();
        let go = folder.path().join("go");
        // It ends once it was said that it is waited for.
        let script = format!("until test -e '{}'; do :; done; echo k", go.display());
        let words = ["sh", "-c", &script].map(str::to_owned);
        let mut said = Vec::new();
        let say = |program: &str| {
            said.push(program.to_owned());
            std::fs::write(&go, "").unwrap();
        };
        let key = within(&words, (Duration::from_millis(1), DEADLINE), say).await;
        assert_eq!((key.unwrap(), said), ("k".to_owned(), vec!["sh".to_owned()]));
        let hangs = ["sh", "-c", "while :; do :; done"].map(str::to_owned);
        let times = (Duration::from_millis(1), Duration::from_millis(2));
        let failed = within(&hangs, times, |_| ()).await.unwrap_err();
        assert!(format!("{failed:#}").contains("`sh` of its `key_command` did not end within"));
    }
}
