//! One line of strace's output: who, when, which call, what came of it.

use crate::fields::{seconds_ns, whole};
use crate::record::UNKNOWN;

/// No process has a greater id (`PID_MAX_LIMIT`): a greater number at a line's beginning is a time.
const PID_MAX: u64 = 1 << 22;
/// Seconds below it are since the line before (`-r`), others since 1970 (`-ttt`).
const SINCE_1970_S: u64 = 100_000_000;
const NS: u64 = 1_000_000_000;
/// Arguments of a call that are told apart.
const ARGUMENTS_MAX: usize = 8;

/// When a line was written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Time {
    /// Not said.
    Unsaid,
    /// `-ttt`: since 1970.
    Absolute(u64),
    /// `-t`, `-tt`: since midnight.
    OfDay(u64),
    /// `-r`: since the line before.
    Since(u64),
}

/// How much of a call a line tells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    Whole,
    Unfinished,
    Resumed,
}

/// A line that is about a call.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Empty where only one process is traced.
    pub pid: &'a [u8],
    pub time: Time,
    pub stage: Stage,
    pub name: &'a [u8],
    pub arguments: &'a [u8],
    /// What stands behind the equals sign, without the time.
    pub returned: &'a [u8],
    pub took_ns: u64,
}

/// Who, when, and the rest of a line.
pub fn beginning(line: &[u8]) -> (&[u8], Time, &[u8]) {
    let (pid, rest) = pid_of(line.trim_ascii());
    let (time, rest) = time_of(rest);
    (pid, time, rest)
}

/// Reads a line; None when it is about no call, as of a signal or an exit.
pub fn parse(line: &[u8]) -> Option<Line<'_>> {
    let (pid, time, rest) = beginning(line);
    let none = &rest[..0];
    let told = |stage, name, arguments, returned, took_ns| {
        Some(Line { pid, time, stage, name, arguments, returned, took_ns })
    };
    if let Some(resumed) = rest.strip_prefix(b"<... ") {
        let name = until(resumed, b' ')?;
        let after = after(resumed, b"resumed>")?;
        let (arguments, returned, took_ns) = result_of(after)?;
        return told(Stage::Resumed, name, arguments, returned, took_ns);
    }
    let name = until(rest, b'(')?;
    if name.is_empty() || !name.iter().all(|sign| sign.is_ascii_alphanumeric() || *sign == b'_') {
        return None;
    }
    let inside = &rest[name.len() + 1..];
    if let Some(arguments) = inside.strip_suffix(b"<unfinished ...>") {
        return told(Stage::Unfinished, name, arguments.trim_ascii_end(), none, UNKNOWN);
    }
    let (arguments, returned, took_ns) = result_of(inside)?;
    told(Stage::Whole, name, arguments, returned, took_ns)
}

/// Whether a file that has this line may be strace's.
pub fn looks_like_one(line: &[u8]) -> bool {
    parse(line).is_some_and(|line| line.stage != Stage::Resumed)
}

fn pid_of(line: &[u8]) -> (&[u8], &[u8]) {
    if let Some(after) = line.strip_prefix(b"[pid ")
        && let Some(pid) = until(after, b']')
    {
        return (pid.trim_ascii(), after[pid.len() + 1..].trim_ascii_start());
    }
    match until(line, b' ') {
        Some(word) if whole(word).is_some_and(|pid| pid < PID_MAX) => {
            (word, line[word.len()..].trim_ascii_start())
        }
        _ => (&line[..0], line),
    }
}

fn time_of(line: &[u8]) -> (Time, &[u8]) {
    let Some(word) = until(line, b' ') else { return (Time::Unsaid, line) };
    let time = match seconds_ns(word) {
        Some(ns) if ns < SINCE_1970_S * NS => Time::Since(ns),
        Some(ns) => Time::Absolute(ns),
        None => match of_day_ns(word) {
            Some(ns) => Time::OfDay(ns),
            None => return (Time::Unsaid, line),
        },
    };
    (time, line[word.len()..].trim_ascii_start())
}

/// `12:34:56.789012`.
fn of_day_ns(word: &[u8]) -> Option<u64> {
    let mut parts = word.split(|&sign| sign == b':');
    let (hours, minutes) = (whole(parts.next()?)?, whole(parts.next()?)?);
    let seconds = seconds_ns(parts.next()?)?;
    let fits = hours < 24 && minutes < 60 && seconds < 61 * NS && parts.next().is_none();
    fits.then(|| (hours * 60 + minutes) * 60 * NS + seconds)
}

/// `3, "…"..., 4096) = 4096 <0.000010>`: arguments, what was returned, and how long it took.
fn result_of(text: &[u8]) -> Option<(&[u8], &[u8], u64)> {
    let equals = text.windows(3).rposition(|signs| signs == b" = ")?;
    let arguments = text[..equals].trim_ascii_end().strip_suffix(b")")?;
    let result = text[equals + 3..].trim_ascii();
    if let Some(inside) = result.strip_suffix(b">")
        && let Some(opens) = inside.iter().rposition(|&sign| sign == b'<')
        && let Some(took_ns) = seconds_ns(&inside[opens + 1..])
    {
        return Some((arguments, result[..opens].trim_ascii_end(), took_ns));
    }
    Some((arguments, result, UNKNOWN))
}

/// What a call returned, when it is a number.
pub fn number(returned: &[u8]) -> Option<i64> {
    let end = returned.iter().position(|sign| b" <".contains(sign)).unwrap_or(returned.len());
    let word = &returned[..end];
    match word.strip_prefix(b"-") {
        Some(digits) => i64::try_from(whole(digits)?).ok().map(|number| -number),
        None => i64::try_from(whole(word)?).ok(),
    }
}

/// The arguments of a call, as far as they are told apart.
pub fn arguments(text: &[u8]) -> ([&[u8]; ARGUMENTS_MAX], usize) {
    let mut found = [&text[..0]; ARGUMENTS_MAX];
    let (mut count, mut from, mut depth) = (0, 0, 0_i32);
    let (mut quoted, mut escaped, mut named) = (false, false, false);
    for (at, &sign) in text.iter().enumerate() {
        if escaped {
            escaped = false;
            continue;
        }
        match sign {
            b'\\' if quoted || named => escaped = true,
            b'"' if !named => quoted = !quoted,
            _ if quoted => {}
            b'<' => named = true, // the path of a descriptor (-y)
            b'>' => named = false,
            _ if named => {}
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b',' if depth == 0 && count + 1 < ARGUMENTS_MAX => {
                found[count] = text[from..at].trim_ascii();
                (count, from) = (count + 1, at + 1);
            }
            _ => {}
        }
    }
    found[count] = text[from..].trim_ascii();
    (found, if text.is_empty() { 0 } else { count + 1 })
}

/// A descriptor, and the path that `-y` writes with it.
pub fn descriptor(argument: &[u8]) -> Option<(u32, Option<&[u8]>)> {
    let digits = argument.iter().take_while(|sign| sign.is_ascii_digit()).count();
    let number = u32::try_from(whole(&argument[..digits])?).ok()?;
    let path = argument[digits..].strip_prefix(b"<");
    Some((number, path.map(|path| path.strip_suffix(b">").unwrap_or(path))))
}

/// What stands between quotation marks.
pub fn quoted(argument: &[u8]) -> Option<&[u8]> {
    let inside = argument.strip_prefix(b"\"")?;
    Some(inside.strip_suffix(b"\"").unwrap_or(inside))
}

/// The number after a name, as `st_size=4096`.
pub fn field(text: &[u8], name: &[u8]) -> Option<u64> {
    let from = text.windows(name.len()).position(|signs| signs == name)? + name.len();
    let digits = text[from..].iter().take_while(|sign| sign.is_ascii_digit()).count();
    whole(&text[from..from + digits])
}

fn until(text: &[u8], sign: u8) -> Option<&[u8]> {
    Some(&text[..text.iter().position(|&each| each == sign)?])
}

fn after<'a>(text: &'a [u8], what: &[u8]) -> Option<&'a [u8]> {
    let at = text.windows(what.len()).position(|signs| signs == what)?;
    Some(&text[at + what.len()..])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_line_is_read_however_strace_was_asked_to_write_it() {
        let written =
            b"[pid  77] 01:02:03.000004 read(3</a, b>, \"x) = \\\"7\"..., 10) = 9 <0.000010>";
        let line = parse(written).unwrap();
        assert_eq!((line.pid, line.name, line.returned), (&b"77"[..], &b"read"[..], &b"9"[..]));
        assert_eq!((line.time, line.took_ns), (Time::OfDay(3_723_000_004_000), 10_000));
        let (arguments, count) = arguments(line.arguments);
        assert_eq!(arguments[..count], [&b"3</a, b>"[..], b"\"x) = \\\"7\"...", b"10"]);
        assert_eq!(descriptor(arguments[0]), Some((3, Some(&b"/a, b"[..]))));

        let line = parse(b"77 1699999999.000001 close(4)        = -1 EBADF (Bad file descriptor)")
            .unwrap();
        assert_eq!((line.time, line.took_ns), (Time::Absolute(1_699_999_999_000_001_000), UNKNOWN));
        assert_eq!(number(line.returned), Some(-1));
        assert_eq!(parse(b"     0.000123 getpid() = 7").unwrap().time, Time::Since(123_000));
    }

    #[test]
    fn a_call_may_be_told_in_two_parts() {
        let begun = parse(b"7 fsync(3 <unfinished ...>").unwrap();
        assert_eq!((begun.stage, begun.arguments), (Stage::Unfinished, &b"3"[..]));
        let ended = parse(b"7 <... fsync resumed>) = 0 <0.5>").unwrap();
        assert_eq!(
            (ended.stage, ended.name, ended.took_ns),
            (Stage::Resumed, &b"fsync"[..], 500_000_000)
        );
    }

    #[test]
    fn what_is_no_call_is_none() {
        for line in ["+++ exited with 0 +++", "--- SIGCHLD {si_signo=SIGCHLD} ---", "", "a = b"] {
            assert!(parse(line.as_bytes()).is_none(), "{line}");
        }
    }
}
