//! Cuts a stream of server-sent events into the data of each. Bounded: the other end may be hostile.

/// Bytes of the longest event. The longest of a real server have a tool's whole output or a file.
pub(super) const MOST_EVENT: usize = 8 * 1024 * 1024;

#[derive(PartialEq, Eq, Debug)]
pub(super) enum Cut {
    Data(Vec<u8>),
    /// One past the limit was left out.
    TooLong,
}

#[derive(Default, Debug)]
pub(super) struct Cutter {
    /// Bytes of the current line, without its end.
    line: Vec<u8>,
    data: Vec<u8>,
    is_too_long: bool,
}

impl Cutter {
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Vec<Cut> {
        let mut cuts = Vec::new();
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.take(&bytes[..end]);
            bytes = &bytes[end + 1..];
            cuts.extend(self.end_of_line());
        }
        self.take(bytes);
        cuts
    }

    fn take(&mut self, bytes: &[u8]) {
        if self.is_too_long || self.data.len() + self.line.len() + bytes.len() > MOST_EVENT {
            // That it is not empty still says that the event goes on.
            self.is_too_long = true;
            self.data = Vec::new();
            self.line.extend(bytes.iter().take(1));
            self.line.truncate(1);
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_of_line(&mut self) -> Option<Cut> {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            if std::mem::take(&mut self.is_too_long) {
                return Some(Cut::TooLong);
            }
            return (!data.is_empty()).then_some(Cut::Data(data));
        }
        if let Some(data) = line.strip_prefix(b"data:")
            && !self.is_too_long
        {
            if !self.data.is_empty() {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(text: &str) -> Cut {
        Cut::Data(text.as_bytes().to_vec())
    }

    #[test]
    fn events_are_cut_wherever_the_bytes_are() {
        let text = b": hello\n\ndata: {\"a\":1}\n\nevent: x\r\ndata:b\r\ndata: c\r\n\r\nid: 1\n\n";
        let all = [data("{\"a\":1}"), data("b\nc")];
        for at in 0..text.len() {
            let mut cutter = Cutter::default();
            let mut cuts = cutter.feed(&text[..at]);
            cuts.extend(cutter.feed(&text[at..]));
            assert_eq!(cuts, all, "{at}");
        }
    }

    #[test]
    fn one_that_is_too_long_is_left_out_and_the_next_one_is_read() {
        let mut cutter = Cutter::default();
        let mut cuts = cutter.feed(b"data: ");
        for _ in 0..20 {
            cuts.extend(cutter.feed(&vec![b'x'; MOST_EVENT / 10]));
            assert!(cutter.line.len() + cutter.data.len() <= MOST_EVENT);
        }
        cuts.extend(cutter.feed(b"\ndata: more\n\ndata: next\n\n"));
        assert_eq!(cuts, [Cut::TooLong, data("next")]);
    }
}
