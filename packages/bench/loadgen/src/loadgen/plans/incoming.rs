//! The server messages that a client needs (docs/protocol.md).

use std::borrow::Cow;

use memchr::{memchr, memmem};

use crate::digits;

/// A longer wait would end after the run.
const MAX_RETRY_MS: u64 = 60_000;

/// One message of the server, borrowed from the read buffer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming<'a> {
    Welcome,
    Ok {
        id: &'a [u8],
        /// For [`Answer::parse`].
        options: &'a [u8],
    },
    Error {
        id: &'a [u8],
        refusal: Refusal<'a>,
    },
    Message {
        key: &'a [u8],
        /// `-`: the broker gives none.
        position: &'a [u8],
        is_replay: bool,
        payload: &'a [u8],
    },
    Gap,
    /// `pong`, `bye`, and what later versions of the protocol add [P-11.2].
    Other,
}

/// Why a request was refused [P-4.3].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal<'a> {
    code: &'a [u8],
    /// JSON.
    body: &'a [u8],
}

const RETRY_AFTER: &[u8] = b"\"retryAfterMs\":";

impl<'a> Refusal<'a> {
    pub(super) fn code(self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.code)
    }

    /// Whether a publish is to be sent again [P-10.7].
    pub(super) fn is_for_a_time(self) -> bool {
        self.code == b"E_RATE_LIMIT" || self.retry_after_us() > 0
    }

    /// 0: the server names no time [P-10.7].
    pub(super) fn retry_after_us(self) -> u64 {
        let start = memmem::find(self.body, RETRY_AFTER).map(|at| at + RETRY_AFTER.len());
        let retry_after_ms = start.map_or(0, |start| digits::parse(&self.body[start..]).0);
        retry_after_ms.min(MAX_RETRY_MS) * 1_000
    }
}

/// The options of an `ok`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer<'a> {
    pub(super) place: Option<Place<'a>>,
    /// As it was written, to be sent back.
    pub(super) position: &'a [u8],
    pub(super) replayed_count: u64,
    pub(super) has_more: bool,
    pub(super) has_gap: bool,
}

/// A position [P-8.1].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place<'a> {
    pub(super) epoch: &'a [u8],
    pub(super) offset: u64,
}

impl<'a> Place<'a> {
    /// The place of a position that is not `-`; `None` when it violates the protocol.
    pub(super) fn parse(text: &'a [u8]) -> Option<Self> {
        let colon = text.iter().rposition(|byte| *byte == b':')?;
        // The fingerprint of the message stands behind the offset.
        let digits = text[colon + 1..].split(|byte| *byte == b'.').next()?;
        let offset = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 36).ok()?;
        Some(Self { epoch: &text[..colon], offset })
    }
}

impl<'a> Incoming<'a> {
    /// Reads one message; `None` when it violates the protocol.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let line_end = memchr(b'\n', bytes).unwrap_or(bytes.len());
        let (line, payload) = (&bytes[..line_end], bytes.get(line_end + 1..).unwrap_or_default());
        let mut fields = line.split(|byte| *byte == b' ');
        match fields.next()? {
            b"message" => {
                let (key, position) = (fields.next()?, fields.next()?);
                let is_replay = fields.any(|option| option == b"replay");
                Some(Self::Message { key, position, is_replay, payload })
            }
            b"ok" => {
                let id = fields.next()?;
                Some(Self::Ok { id, options: line.get(b"ok ".len() + id.len()..).unwrap_or_default() })
            }
            b"error" => {
                let (id, code) = (fields.next()?, fields.next()?);
                Some(Self::Error { id, refusal: Refusal { code, body: payload } })
            }
            b"welcome" => Some(Self::Welcome),
            b"gap" => Some(Self::Gap),
            b"" => None,
            _ => Some(Self::Other),
        }
    }
}

impl<'a> Answer<'a> {
    /// `None` when the options violate the protocol.
    pub(super) fn parse(options: &'a [u8]) -> Option<Self> {
        let mut answer = Self::default();
        for option in options.split(|byte| *byte == b' ') {
            if let Some(position) = option.strip_prefix(b"position=") {
                answer.place = Some(Place::parse(position)?);
                answer.position = position;
            } else if let Some(count) = option.strip_prefix(b"replayed=") {
                answer.replayed_count = digits::parse(count).0;
            } else if option == b"more" {
                answer.has_more = true;
            } else if option.starts_with(b"gap=") {
                answer.has_gap = true;
            }
        }
        Some(answer)
    }
}

/// The payload of a virtual user's message: its time, and its number in the ledger.
pub(super) fn payload(sent_us: u64, number: u32, user_number: u32) -> String {
    format!("{{\"ts\":{sent_us},\"content\":\"message {number} of user {user_number}\"}}")
}

const TS: &[u8] = b"{\"ts\":";
const CONTENT: &[u8] = b",\"content\":\"message ";

/// Time and number of such a payload; `None` for others.
pub(super) fn stamp(payload: &[u8]) -> Option<(u64, u32)> {
    let (sent_us, rest) = number_after(TS, payload)?;
    let (number, _) = number_after(CONTENT, rest)?;
    Some((sent_us, u32::try_from(number).ok()?))
}

fn number_after<'a>(prefix: &[u8], bytes: &'a [u8]) -> Option<(u64, &'a [u8])> {
    let rest = bytes.strip_prefix(prefix)?;
    let (number, count) = digits::parse(rest);
    (count > 0).then(|| (number, &rest[count..]))
}

/// The number of a key of the pool, such as 17 of `bench.17`; `None` for other keys.
pub(super) fn key_number(key: &[u8], prefix: &[u8]) -> Option<u32> {
    let text = key.strip_prefix(prefix)?.strip_prefix(b".")?;
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit) && (text == b"0" || text[0] != b'0');
    if is_number { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_server_are_read_whatever_options_they_have() {
        let message =
            |position, is_replay, payload| Incoming::Message { key: b"bench.1", position, is_replay, payload };
        assert_eq!(Incoming::parse(b"message bench.1 m:1 replay\n{}"), Some(message(b"m:1", true, b"{}")));
        assert_eq!(Incoming::parse(b"message bench.1 -"), Some(message(b"-", false, b"")));
        let ok = Incoming::Ok { id: b"p2", options: b" position=a:1" };
        assert_eq!(Incoming::parse(b"ok p2 position=a:1"), Some(ok));
        assert_eq!(Incoming::parse(b"ok p2"), Some(Incoming::Ok { id: b"p2", options: b"" }));
        let refusal = Refusal { code: b"E_FORBIDDEN", body: b"{}" };
        assert_eq!(Incoming::parse(b"error p2 E_FORBIDDEN\n{}"), Some(Incoming::Error { id: b"p2", refusal }));
        assert_eq!(Incoming::parse(b"gap bench.1 restart"), Some(Incoming::Gap));
        assert_eq!(Incoming::parse(b"welcome\n{}"), Some(Incoming::Welcome));
        assert_eq!(Incoming::parse(b"pong"), Some(Incoming::Other));
        for wrong in [&b""[..], b"message", b"message bench.1", b"ok", b"error p2", b" "] {
            assert_eq!(Incoming::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_rate_limit_says_when_to_come_again() {
        let refusal = |code, body| Refusal { code, body };
        let limited = refusal(b"E_RATE_LIMIT", b"{\"retryable\":true,\"retryAfterMs\":1250}");
        assert!(limited.is_for_a_time() && !refusal(b"E_FORBIDDEN", b"{}").is_for_a_time());
        assert!(refusal(b"E_TIMEOUT", b"{\"retryAfterMs\":800}").is_for_a_time());
        assert_eq!(limited.retry_after_us(), 1_250_000);
        assert_eq!(refusal(b"E_RATE_LIMIT", b"{}").retry_after_us(), 0);
        assert_eq!(refusal(b"E_RATE_LIMIT", b"{\"retryAfterMs\":99999999999}").retry_after_us(), 60_000_000);
    }

    #[test]
    fn positions_are_an_epoch_and_a_number() {
        let place = |text| Place::parse(text).map(|place| (place.epoch, place.offset));
        assert_eq!(place(b"m1:a.b:10.abc-_"), Some((&b"m1:a.b"[..], 36)));
        assert_eq!(place(b"e:zz.AAAAB"), Some((&b"e"[..], 1_295)));
        assert_eq!(place(b"zz"), None);
    }

    #[test]
    fn answers_are_read_with_their_options() {
        let place = Some(Place { epoch: b"e", offset: 1 });
        let answer = Answer { place, position: b"e:1", replayed_count: 20, has_more: true, has_gap: false };
        assert_eq!(Answer::parse(b" position=e:1 replayed=20 more"), Some(answer));
        assert_eq!(Answer::parse(b" gap=limit"), Some(Answer { has_gap: true, ..Answer::default() }));
        assert_eq!(Answer::parse(b""), Some(Answer::default()));
        assert_eq!(Answer::parse(b" position=zz"), None);
    }

    #[test]
    fn payloads_of_users_say_their_time_and_number_and_others_nothing() {
        assert_eq!(stamp(payload(1_234_567_890, 77, 3).as_bytes()), Some((1_234_567_890, 77)));
        for wrong in ["{\"ts\":x}", "", "{\"ts\":1}", "{\"ts\":1,\"content\":\"message 4294967296 of user 1\"}"] {
            assert_eq!(stamp(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn keys_of_the_pool_have_a_number_and_others_have_none() {
        assert_eq!(key_number(b"bench.0", b"bench"), Some(0));
        assert_eq!(key_number(b"bench.170", b"bench"), Some(170));
        for wrong in [&b"bench"[..], b"bench.", b"bench.01", b"bench.1a", b"bench.-1", b"other.1", b"bench.99999999999"]
        {
            assert_eq!(key_number(wrong, b"bench"), None, "{wrong:?}");
        }
    }
}
