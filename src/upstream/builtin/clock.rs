//! The clock: what time it is, what time it is elsewhere, and a timer that shows progress.

use std::time::Duration;

use futures_util::{Stream, stream};
use jiff::civil;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use crate::exchange::{Event, Reply};

use super::{Arguments, Outcome, Said, once, result};

const LONGEST_TIMER: u64 = 60;

pub(super) const INSTRUCTIONS: &str = "Tells the time in any zone, converts between zones, and waits. Zones are IANA names such as Europe/Berlin.";

pub(super) const TOOLS: [&str; 3] = [
    r#"{
  "name": "now",
  "title": "Current time",
  "description": "Tells the current date and time. Without a zone the answer is in UTC.",
  "inputSchema": {
    "type": "object",
    "properties": {
      "zone": { "type": "string", "description": "IANA time zone, such as Europe/Berlin; default UTC" }
    },
    "additionalProperties": false
  },
  "outputSchema": {
    "type": "object",
    "properties": {
      "time": { "type": "string", "format": "date-time", "description": "RFC 3339, with the zone's offset" },
      "zone": { "type": "string" },
      "weekday": { "type": "string" },
      "unix": { "type": "integer", "description": "Seconds since 1970 UTC" }
    },
    "required": ["time", "zone", "weekday", "unix"]
  },
  "annotations": { "readOnlyHint": true, "openWorldHint": false }
}"#,
    r#"{
  "name": "convert",
  "title": "Convert a time",
  "description": "Converts a date and time from one zone to another.",
  "inputSchema": {
    "type": "object",
    "properties": {
      "time": {
        "type": "string",
        "description": "2026-07-28T14:30, or 14:30 for today, or RFC 3339 with an offset (which wins over from)"
      },
      "from": { "type": "string", "description": "IANA time zone of the time given; default UTC" },
      "to": { "type": "string", "description": "IANA time zone that is wanted" }
    },
    "required": ["time", "to"],
    "additionalProperties": false
  },
  "outputSchema": {
    "type": "object",
    "properties": {
      "time": { "type": "string", "format": "date-time", "description": "RFC 3339, with the offset of the zone" },
      "zone": { "type": "string" },
      "weekday": { "type": "string" },
      "unix": { "type": "integer", "description": "Seconds since 1970 UTC" }
    },
    "required": ["time", "zone", "weekday", "unix"]
  },
  "annotations": { "readOnlyHint": true, "openWorldHint": false }
}"#,
    r#"{
  "name": "timer",
  "title": "Timer",
  "description": "Waits for a number of seconds and reports progress each second.",
  "inputSchema": {
    "type": "object",
    "properties": {
      "seconds": { "type": "integer", "minimum": 1, "maximum": 60, "description": "How long to wait" }
    },
    "required": ["seconds"],
    "additionalProperties": false
  },
  "outputSchema": {
    "type": "object",
    "properties": { "seconds": { "type": "integer" } },
    "required": ["seconds"]
  },
  "annotations": { "readOnlyHint": true, "openWorldHint": false }
}"#,
];

/// Calls one of the tools; `None` for a name that is none of them.
pub(super) fn call(name: &str, arguments: &Arguments, with_progress: bool) -> Option<Reply> {
    Some(match name {
        "now" => once(now(arguments, Timestamp::now())),
        "convert" => once(convert(arguments, Timestamp::now())),
        "timer" => match seconds(arguments) {
            Ok(seconds) => Box::pin(timer(seconds, with_progress)),
            Err(text) => once(Err(text)),
        },
        _ => return None,
    })
}

pub(super) fn now(arguments: &Arguments, at: Timestamp) -> Outcome {
    arguments.only(&["zone"])?;
    Ok(say(&at.to_zoned_datetime(zone(arguments, "zone")?)))
}

pub(super) fn convert(arguments: &Arguments, at: Timestamp) -> Outcome {
    arguments.only(&["time", "from", "to"])?;
    let time = arguments.required("time")?;
    arguments.required("to")?;
    let (from, to) = (zone(arguments, "from")?, zone(arguments, "to")?);
    let wanted = "time must look like 2026-07-28T14:30, 14:30 or 2026-07-28T14:30:00+02:00";
    let read = read_time(time, from, at).ok_or_else(|| wanted.to_owned())?;
    Ok(say(&read.to_zoned_datetime(to)))
}

/// Reads a moment: with an offset of its own, as date and time in a zone, or as a time of today in that zone.
fn read_time(text: &str, zone: TimeZone, at: Timestamp) -> Option<Timestamp> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment);
    }
    let date_time = match text.parse::<civil::DateTime>() {
        Ok(date_time) => date_time,
        Err(_) => at.to_zoned_datetime(zone.clone()).date().to_datetime(text.parse::<civil::Time>().ok()?),
    };
    Some(date_time.to_zoned_datetime(zone).ok()?.timestamp())
}

fn zone(arguments: &Arguments, key: &str) -> Result<TimeZone, String> {
    let Some(name) = arguments.text(key)? else { return Ok(TimeZone::UTC) };
    let known = if name.len() <= 64 { TimeZone::get(name).ok() } else { None };
    known.ok_or_else(|| {
        format!("{key} must be an IANA time zone such as Europe/Berlin or UTC; {name:.64?} is not known")
    })
}

fn say(time: &ZonedDateTime) -> Said {
    let written = time.timestamp().display_with_offset(time.offset()).to_string();
    let zone = time.time_zone().iana_name().unwrap_or("UTC");
    let weekday = format!("{:?}", time.weekday());
    Said {
        text: format!("{written} ({weekday}, {zone})"),
        structured: json!({
            "time": written,
            "zone": zone,
            "weekday": weekday,
            "unix": time.timestamp().as_second(),
        }),
    }
}

fn seconds(arguments: &Arguments) -> Result<u64, String> {
    arguments.only(&["seconds"])?;
    arguments.number("seconds", 1, LONGEST_TIMER)
}

/// Waits, with a progress event at each full second if one is wanted, then answers.
fn timer(seconds: u64, with_progress: bool) -> impl Stream<Item = Event> + Send {
    let start = Instant::now();
    let first = if with_progress { 1 } else { seconds + 1 };
    stream::unfold(first, move |second| async move {
        if second <= seconds {
            sleep_until(start + Duration::from_secs(second)).await;
            return Some((progress(second, seconds), second + 1));
        }
        if second > seconds + 1 {
            return None;
        }
        sleep_until(start + Duration::from_secs(seconds)).await;
        let text = format!("{seconds} s have passed");
        Some((result(Ok(Said { text, structured: json!({ "seconds": seconds }) })), second + 1))
    })
}

/// Raw params of `notifications/progress`; whoever passes them on puts the token in.
fn progress(done: u64, total: u64) -> Event {
    let message = format!("{} s left", total - done);
    Event::Progress(
        json!({ "progressToken": 0, "progress": done, "total": total, "message": message }).to_string(),
    )
}
