//! Which format a scraper asks for, by its header `Accept`.

/// A text format of metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Format {
    /// Prometheus's, version 0.0.4.
    Text,
    OpenMetrics,
}

/// Ranges of one header that are read.
const MOST_RANGES: usize = 32;

/// `OpenMetrics` where that is named, and asked for no less than the text format.
pub(super) fn format(accept: Option<&str>) -> Format {
    let (mut open_metrics, mut text) = (0.0, 0.0);
    for range in accept.unwrap_or_default().split(',').take(MOST_RANGES) {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let (mut quality, mut version) = (1.0_f32, None);
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match name.trim().to_ascii_lowercase().as_str() {
                "q" => quality = value.parse().unwrap_or(0.0),
                "version" => version = Some(value),
                _ => {}
            }
        }
        match (kind.as_str(), version) {
            ("application/openmetrics-text", None | Some("1.0.0")) => {
                open_metrics = quality.max(open_metrics);
            }
            ("text/plain", None | Some("0.0.4")) | ("text/*" | "*/*", _) => {
                text = quality.max(text);
            }
            _ => {}
        }
    }
    if open_metrics > 0.0 && open_metrics >= text { Format::OpenMetrics } else { Format::Text }
}

#[cfg(test)]
mod tests {
    use super::Format::{OpenMetrics, Text};
    use super::*;

    #[test]
    fn the_text_format_is_the_default() {
        for (accept, expected) in [
            (None, Text),
            (Some(""), Text),
            (Some("*/*"), Text),
            (Some("text/html, application/json"), Text),
            (Some("text/plain;version=0.0.4"), Text),
            (Some("application/openmetrics-text"), OpenMetrics),
            (Some("Application/OpenMetrics-Text; Version=\"1.0.0\"; charset=utf-8"), OpenMetrics),
            (Some("application/openmetrics-text; version=9.9.9"), Text),
            (Some("application/openmetrics-text;q=0.1, text/plain;q=0.9"), Text),
            (Some("application/openmetrics-text;q=0"), Text),
            (Some("application/openmetrics-text;q=NaN"), Text),
            (Some(";;;=,,q=,\u{0}"), Text),
            // Prometheus 2.
            (
                Some(
                    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;\
                     version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                ),
                OpenMetrics,
            ),
            // Prometheus 3.
            (
                Some(
                    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                     application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;\
                     escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                ),
                OpenMetrics,
            ),
        ] {
            assert_eq!(format(accept), expected, "{accept:?}");
        }
    }
}
