//! The payload of a message, as in `src/load/payload.ts`: enough to find its latency, loss, duplicates and order.

use std::fmt::Write;

use super::plan::KeyPlan;
use crate::digits;
use crate::loadgen::protocol::plans::Publication;

/// Smallest message that holds the widest numbers of any run.
pub(super) const MIN_MESSAGE_BYTES: usize = 67;
/// Largest message of a run.
pub(super) const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// Makes payloads of exactly one size, and recognises them.
#[derive(Debug)]
pub(super) struct PayloadEncoder {
    padding: String,
}

/// What a payload says of its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) publisher: u32,
    /// Negative in the warm-up.
    pub(super) turn: i64,
    pub(super) key_sequence: u32,
    /// Intended send time after the start of the window.
    pub(super) at_us: i64,
}

impl PayloadEncoder {
    /// # Errors
    /// Messages of this size do not hold their numbers, or are too long.
    pub(super) fn new(padding: String) -> Result<Self, String> {
        if !padding.is_ascii() || !(MIN_MESSAGE_BYTES..=MAX_MESSAGE_BYTES).contains(&padding.len()) {
            return Err(format!("clients: padding has {MIN_MESSAGE_BYTES} to {MAX_MESSAGE_BYTES} bytes of ASCII"));
        }
        Ok(Self { padding })
    }

    pub(super) fn encode(&self, publication: &Publication) -> String {
        let Publication { client, turn, key_sequence, at_us, .. } = publication;
        let mut text = String::with_capacity(self.padding.len());
        // A string takes everything.
        let _ = write!(text, "{{\"p\":{client},\"n\":{turn},\"q\":{key_sequence},\"t\":{at_us},\"pad\":\"");
        let pad_bytes = self.padding.len().saturating_sub(text.len() + 2);
        text.push_str(&self.padding[..pad_bytes]);
        text.push_str("\"}");
        text
    }

    /// The stamp, or `None` when the payload is not one of this run or did not arrive whole.
    pub(super) fn decode(&self, payload: &[u8], plan: &KeyPlan) -> Option<Stamp> {
        if payload.len() != self.padding.len() {
            return None;
        }
        let (publisher, rest) = integer_after(b"{\"p\":", payload)?;
        let (turn, rest) = integer_after(b",\"n\":", rest)?;
        let (key_sequence, rest) = integer_after(b",\"q\":", rest)?;
        let (at_us, rest) = integer_after(b",\"t\":", rest)?;
        let pad = rest.strip_prefix(b",\"pad\":\"")?.strip_suffix(b"\"}")?;
        let is_of_the_run = (0..i64::from(plan.client_count())).contains(&publisher)
            && turn < plan.max_turn_count
            && (0..=turn.max(0)).contains(&key_sequence);
        (is_of_the_run && pad == &self.padding.as_bytes()[..pad.len()]).then_some(Stamp {
            publisher: publisher as u32,
            turn,
            key_sequence: key_sequence as u32,
            at_us,
        })
    }
}

fn integer_after<'a>(prefix: &[u8], bytes: &'a [u8]) -> Option<(i64, &'a [u8])> {
    let rest = bytes.strip_prefix(prefix)?;
    let (rest, sign) = rest.strip_prefix(b"-").map_or((rest, 1), |rest| (rest, -1));
    let (number, count) = digits::parse(rest);
    (1..=15).contains(&count).then(|| (sign * number as i64, &rest[count..]))
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::*;

    fn encoded(publication: &Publication) -> (PayloadEncoder, String) {
        let encoder = PayloadEncoder::new("ab".repeat(100)).expect("an encoder");
        let text = encoder.encode(publication);
        (encoder, text)
    }

    const PUBLICATION: Publication = Publication { client: 3, turn: 7, key: 3, key_sequence: 2, at_us: 1_234_568 };

    #[test]
    fn payloads_have_their_size_and_are_recognised() {
        let smallest = PayloadEncoder::new("a".repeat(MIN_MESSAGE_BYTES)).expect("an encoder");
        let widest = Publication {
            client: 9_999_999,
            turn: -99_999_999,
            key: 0,
            key_sequence: 99_999_999,
            at_us: -999_999_999_999,
        };
        assert_eq!(smallest.encode(&widest).len(), MIN_MESSAGE_BYTES);
        let (encoder, text) = encoded(&PUBLICATION);
        assert_eq!(text.len(), 200);
        let stamp = Stamp { publisher: 3, turn: 7, key_sequence: 2, at_us: 1_234_568 };
        assert_eq!(encoder.decode(text.as_bytes(), &plan()), Some(stamp));
        let (encoder, text) = encoded(&Publication { turn: -2, key_sequence: 0, at_us: -3, ..PUBLICATION });
        let stamp = Stamp { publisher: 3, turn: -2, key_sequence: 0, at_us: -3 };
        assert_eq!(encoder.decode(text.as_bytes(), &plan()), Some(stamp));
    }

    #[test]
    fn a_size_that_does_not_hold_the_numbers_is_refused() {
        assert!(PayloadEncoder::new("a".repeat(MIN_MESSAGE_BYTES - 1)).is_err());
        assert!(PayloadEncoder::new("a".repeat(MAX_MESSAGE_BYTES + 1)).is_err());
        assert!(PayloadEncoder::new("ä".repeat(100)).is_err());
    }

    #[test]
    fn payloads_of_other_runs_and_damaged_ones_are_not() {
        let (encoder, text) = encoded(&PUBLICATION);
        let refused = |text: &str| assert_eq!(encoder.decode(text.as_bytes(), &plan()), None, "{text}");
        refused("text");
        refused(&text[..199]);
        refused(&format!("{text} "));
        refused(&text.replace("\"p\":3,", "\"p\":x,"));
        refused(&text.replacen("\"pad\":\"", "\"pad\":\"_", 1)[..200]);
        let last = text.len() - 3;
        let damaged = format!("{}_{}", &text[..last], &text[last + 1..]);
        assert_eq!(damaged.len(), 200);
        refused(&damaged);
        for wrong in [
            Publication { client: plan().client_count(), ..PUBLICATION },
            Publication { turn: plan().max_turn_count, ..PUBLICATION },
            Publication { key_sequence: 8, ..PUBLICATION },
        ] {
            refused(&encoded(&wrong).1);
        }
    }
}
