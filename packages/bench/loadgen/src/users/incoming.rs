//! The server messages that a user needs (docs/protocol.md).

use memchr::memchr;

use crate::digits;

/// One message of the server, borrowed from the read buffer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming<'a> {
    Welcome,
    Ok(Answer<'a>),
    Error {
        id: &'a [u8],
        code: &'a [u8],
    },
    /// A message that a user has sent.
    Message {
        /// `None`: the broker gives none.
        place: Option<Place<'a>>,
        is_replay: bool,
        sent_us: u64,
        number: u32,
    },
    /// `pong`, `bye` and all others.
    Other,
}

/// `ok`, and its options.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer<'a> {
    pub(super) id: &'a [u8],
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
    fn parse(text: &'a [u8]) -> Option<Self> {
        let colon = text.iter().rposition(|byte| *byte == b':')?;
        let offset = u64::from_str_radix(std::str::from_utf8(&text[colon + 1..]).ok()?, 36).ok()?;
        Some(Self { epoch: &text[..colon], offset })
    }
}

/// The payload of a user's message: its time, and its number in the ledger.
pub(super) fn payload(sent_us: u64, number: u32, user_number: u32) -> String {
    format!("{{\"ts\":{sent_us},\"content\":\"message {number} of user {user_number}\"}}")
}

const TS: &[u8] = b"{\"ts\":";
const CONTENT: &[u8] = b",\"content\":\"message ";

impl<'a> Incoming<'a> {
    /// Reads one message; `None` when it violates the protocol.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let line_end = memchr(b'\n', bytes).unwrap_or(bytes.len());
        let (line, body) = (&bytes[..line_end], bytes.get(line_end + 1..).unwrap_or_default());
        let mut fields = line.split(|byte| *byte == b' ');
        match fields.next()? {
            b"message" => {
                let place = match fields.nth(1)? {
                    b"-" => None,
                    position => Some(Place::parse(position)?),
                };
                let is_replay = fields.any(|option| option == b"replay");
                let (sent_us, rest) = number_after(TS, body)?;
                let (number, _) = number_after(CONTENT, rest)?;
                Some(Self::Message { place, is_replay, sent_us, number: u32::try_from(number).ok()? })
            }
            b"ok" => {
                let mut answer = Answer { id: fields.next()?, ..Answer::default() };
                for option in fields {
                    answer.read(option)?;
                }
                Some(Self::Ok(answer))
            }
            b"error" => Some(Self::Error { id: fields.next()?, code: fields.next()? }),
            b"welcome" => Some(Self::Welcome),
            _ => Some(Self::Other),
        }
    }
}

impl<'a> Answer<'a> {
    fn read(&mut self, option: &'a [u8]) -> Option<()> {
        if let Some(position) = option.strip_prefix(b"position=") {
            self.place = Some(Place::parse(position)?);
            self.position = position;
        } else if let Some(count) = option.strip_prefix(b"replayed=") {
            self.replayed_count = digits::parse(count).0;
        } else if option == b"more" {
            self.has_more = true;
        } else if option.starts_with(b"gap=") {
            self.has_gap = true;
        }
        Some(())
    }
}

fn number_after<'a>(prefix: &[u8], bytes: &'a [u8]) -> Option<(u64, &'a [u8])> {
    let rest = bytes.strip_prefix(prefix)?;
    let (number, count) = digits::parse(rest);
    (count > 0).then(|| (number, &rest[count..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_with_and_without_position() {
        let body = payload(1_234_567_890, 77, 3);
        let place = |text: &str| match Incoming::parse(format!("message bench.1 {text}\n{body}").as_bytes()) {
            Some(Incoming::Message { place, is_replay, sent_us: 1_234_567_890, number: 77 }) => {
                (place.map(|place| (place.epoch.to_vec(), place.offset)), is_replay)
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(place("m1:a-b:10"), (Some((b"m1:a-b".to_vec(), 36)), false));
        assert_eq!(place("e:zz replay"), (Some((b"e".to_vec(), 1_295)), true));
        assert_eq!(place("-"), (None, false));
    }

    #[test]
    fn answers_are_read_with_their_options() {
        let parsed = Incoming::parse(b"ok h1 position=e:1 replayed=20 more");
        let place = Some(Place { epoch: b"e", offset: 1 });
        let answer = Answer { id: b"h1", place, position: b"e:1", replayed_count: 20, has_more: true, has_gap: false };
        assert_eq!(parsed, Some(Incoming::Ok(answer)));
        assert!(matches!(Incoming::parse(b"ok 1 gap=limit"), Some(Incoming::Ok(Answer { has_gap: true, .. }))));
        let error = Incoming::Error { id: b"2", code: b"E_UNSUPPORTED" };
        assert_eq!(Incoming::parse(b"error 2 E_UNSUPPORTED\n{}"), Some(error));
        assert_eq!(Incoming::parse(b"welcome\n{}"), Some(Incoming::Welcome));
        assert_eq!(Incoming::parse(b"pong"), Some(Incoming::Other));
    }

    #[test]
    fn what_is_not_of_a_user_is_nothing() {
        assert_eq!(Incoming::parse(b"message bench.1 -\n{\"ts\":x}"), None);
        assert_eq!(Incoming::parse(b"message bench.1"), None);
        assert_eq!(Incoming::parse(format!("message bench.1 zz\n{}", payload(1, 2, 3)).as_bytes()), None);
        assert_eq!(Incoming::parse(b"ok"), None);
    }
}
