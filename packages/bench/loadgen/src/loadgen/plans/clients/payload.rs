//! The payload of a message, as in `src/load/payload.ts`: enough to find its latency, loss, duplicates and order.

use std::fmt::Write;

use super::plan::Publication;
use crate::digits;
use crate::loadgen::plans::random::Random;
use crate::loadgen::protocol::plans::PlanOptions;

const PAD_ALPHABET: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-";
const PAD_STREAM: u32 = 0x7ad;
/// Smallest message that holds the widest numbers of any run.
pub(super) const MIN_MESSAGE_BYTES: usize = 67;
/// Largest message of a run.
pub(super) const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// Makes payloads of exactly one size, and recognises them.
#[derive(Debug)]
pub(super) struct PayloadEncoder {
    size_bytes: usize,
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
    pub(super) fn new(size_bytes: usize, seed: u32) -> Self {
        let mut random = Random::new(seed, PAD_STREAM);
        let padding = (0..size_bytes).map(|_| char::from(PAD_ALPHABET[random.integer(64) as usize])).collect();
        Self { size_bytes, padding }
    }

    pub(super) fn encode(&self, publication: &Publication) -> String {
        let Publication { client, turn, key_sequence, at_us, .. } = publication;
        // `Math.round` of TypeScript rounds halves up.
        let at_us = (at_us + 0.5).floor() as i64;
        let mut text = String::with_capacity(self.size_bytes);
        // A string takes everything.
        let _ = write!(text, "{{\"p\":{client},\"n\":{turn},\"q\":{key_sequence},\"t\":{at_us},\"pad\":\"");
        let pad_bytes = self.size_bytes.saturating_sub(text.len() + 2);
        text.push_str(&self.padding[..pad_bytes]);
        text.push_str("\"}");
        text
    }

    /// The stamp, or `None` when the payload is not one of this run or did not arrive whole.
    pub(super) fn decode(&self, payload: &[u8], options: &PlanOptions) -> Option<Stamp> {
        if payload.len() != self.size_bytes {
            return None;
        }
        let (publisher, rest) = integer_after(b"{\"p\":", payload)?;
        let (turn, rest) = integer_after(b",\"n\":", rest)?;
        let (key_sequence, rest) = integer_after(b",\"q\":", rest)?;
        let (at_us, rest) = integer_after(b",\"t\":", rest)?;
        let pad = rest.strip_prefix(b",\"pad\":\"")?.strip_suffix(b"\"}")?;
        let is_of_the_run = (0..i64::from(options.client_count)).contains(&publisher)
            && turn < options.max_turn_count()
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
    use super::super::plan::tests::options;
    use super::*;

    fn encoded(publication: &Publication) -> (PayloadEncoder, String) {
        let encoder = PayloadEncoder::new(200, 1);
        let text = encoder.encode(publication);
        (encoder, text)
    }

    const PUBLICATION: Publication = Publication { client: 3, turn: 7, key: 3, key_sequence: 2, at_us: 1_234_567.8 };

    #[test]
    fn payloads_have_their_size_and_are_recognised() {
        let smallest = PayloadEncoder::new(MIN_MESSAGE_BYTES, 1);
        let widest = Publication {
            client: 9_999_999,
            turn: -99_999_999,
            key: 0,
            key_sequence: 99_999_999,
            at_us: -999_999_999_999.0,
        };
        assert_eq!(smallest.encode(&widest).len(), MIN_MESSAGE_BYTES);
        let (encoder, text) = encoded(&PUBLICATION);
        assert_eq!(text.len(), 200);
        let stamp = Stamp { publisher: 3, turn: 7, key_sequence: 2, at_us: 1_234_568 };
        assert_eq!(encoder.decode(text.as_bytes(), &options()), Some(stamp));
        let (encoder, text) = encoded(&Publication { turn: -2, key_sequence: 0, at_us: -0.3, ..PUBLICATION });
        let stamp = Stamp { publisher: 3, turn: -2, key_sequence: 0, at_us: 0 };
        assert_eq!(encoder.decode(text.as_bytes(), &options()), Some(stamp));
    }

    #[test]
    fn payloads_of_other_runs_and_damaged_ones_are_not() {
        let (encoder, text) = encoded(&PUBLICATION);
        let refused = |text: &str| assert_eq!(encoder.decode(text.as_bytes(), &options()), None, "{text}");
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
            Publication { client: options().client_count, ..PUBLICATION },
            Publication { turn: options().max_turn_count(), ..PUBLICATION },
            Publication { key_sequence: 8, ..PUBLICATION },
        ] {
            refused(&encoded(&wrong).1);
        }
    }
}
