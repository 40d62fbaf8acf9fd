//! Which of the two media types a client takes. Read leniently: no `Accept`, and anything that admits both, is both.

use http::{HeaderMap, header};

/// What a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accepts {
    /// JSON and event streams.
    Both,
    /// JSON only: no notifications reach this client.
    Json,
    /// Event streams only.
    Events,
    /// Neither.
    Nothing,
}

/// Reads every `Accept` line of a request (RFC 9110, section 12.5.1; the most specific range decides).
pub(super) fn read(headers: &HeaderMap) -> Accepts {
    /// What most clients write.
    const USUAL: &[u8] = b"application/json, text/event-stream";
    let mut all = headers.get_all(header::ACCEPT).iter();
    if all.next().is_some_and(|first| first.as_bytes() == USUAL) && all.next().is_none() {
        return Accepts::Both;
    }
    let lines: Vec<String> = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .map(str::to_ascii_lowercase)
        .collect();
    if lines.is_empty() {
        return Accepts::Both;
    }
    let ranges: Vec<(&str, bool)> = lines.iter().flat_map(|line| line.split(',')).filter_map(range).collect();
    match (takes(&ranges, "application/json"), takes(&ranges, "text/event-stream")) {
        (true, true) => Accepts::Both,
        (true, false) => Accepts::Json,
        (false, true) => Accepts::Events,
        (false, false) => Accepts::Nothing,
    }
}

/// A media range and whether its weight is above zero.
fn range(text: &str) -> Option<(&str, bool)> {
    let mut parts = text.split(';').map(str::trim);
    let media = parts.next().filter(|media| !media.is_empty())?;
    let weight = parts.find_map(|part| part.strip_prefix("q=")).and_then(|q| q.trim().parse::<f32>().ok());
    Some((media, weight.is_none_or(|q| q > 0.0)))
}

fn takes(ranges: &[(&str, bool)], media: &str) -> bool {
    let kind = media.split('/').next().unwrap_or_default();
    let wildcard = format!("{kind}/*");
    [media, wildcard.as_str(), "*/*"]
        .iter()
        .find_map(|wanted| ranges.iter().find(|(range, _)| range == wanted))
        .is_some_and(|(_, taken)| *taken)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, header};

    use super::{Accepts, read};

    #[test]
    fn c024_c025_accept_is_read_leniently() {
        let cases: [(&[&str], Accepts); 9] = [
            (&[], Accepts::Both),
            (&["*/*"], Accepts::Both),
            (&["application/json"], Accepts::Json),
            (&["text/event-stream"], Accepts::Events),
            (&["APPLICATION/JSON , Text/Event-Stream"], Accepts::Both),
            (&["application/*, text/*"], Accepts::Both),
            (&["application/json", "text/event-stream"], Accepts::Both),
            (&["text/html, */*;q=0.1"], Accepts::Both),
            (&["text/html"], Accepts::Nothing),
        ];
        for (lines, wanted) in cases {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::ACCEPT, HeaderValue::from_static(line));
            }
            assert_eq!(read(&headers), wanted, "{lines:?}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json;q=0, text/event-stream"));
        assert_eq!(read(&headers), Accepts::Events);
    }
}
