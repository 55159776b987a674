//! Finds the sequence number and time of a message, first where the last message had them.

use memchr::memmem::Finder;

use crate::digits;

/// How far into a message to search.
pub(crate) const MAX_LOOKED_AT_BYTES: usize = 512;

const SEQ: &[u8; 6] = b"\"seq\":";
const TS_US: &[u8; 8] = b"\"ts_us\":";

/// Longest predicted number: with the byte after it, it fills a word.
const MAX_PREDICTED_DIGITS: usize = 7;

/// Intended time of a message in microseconds of `CLOCK_MONOTONIC`.
pub(crate) type SentUs = u64;

/// The bytes of the expected next number. A comparison costs a fraction of parsing.
struct Predicted {
    sequence: u64,
    digit_count: usize,
    /// Digits and the byte after them, the first in the lowest byte.
    text: u64,
    /// The bits of `text` that count.
    mask: u64,
    /// A one at the last digit.
    one: u64,
}

impl Predicted {
    /// Matches nothing: the text is all ones where no bit counts.
    const NOTHING: Self = Self { sequence: 0, digit_count: 0, text: u64::MAX, mask: 0, one: 0 };

    #[inline]
    fn is(&self, bytes: [u8; 8]) -> bool {
        u64::from_le_bytes(bytes) & self.mask == self.text
    }

    /// Predicts the number after `sequence`, which `bytes` begins with.
    #[inline]
    fn after(sequence: u64, digit_count: usize, bytes: &[u8]) -> Self {
        let Some(bytes) = bytes.first_chunk().filter(|_| digit_count <= MAX_PREDICTED_DIGITS) else {
            return Self::NOTHING;
        };
        let mask = u64::MAX >> (8 * (MAX_PREDICTED_DIGITS - digit_count));
        let text = u64::from_le_bytes(*bytes) & mask;
        let mut predicted = Self { sequence, digit_count, text, mask, one: 1 << (8 * (digit_count - 1)) };
        predicted.step();
        predicted
    }

    /// Increments the prediction; after a 9 there is none.
    #[inline]
    fn step(&mut self) {
        let digit = self.one * 0xff;
        if self.text & digit == self.one * u64::from(b'9') {
            *self = Self::NOTHING;
            return;
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.text += self.one;
    }
}

/// Finds `"seq":<digits>` and, after it, `"ts_us":<digits>`.
pub(crate) struct Fields {
    seq: Finder<'static>,
    ts_us: Finder<'static>,
    /// Where the digits of the last message's sequence number began.
    seq_at: usize,
    /// From the end of its sequence number to the digits of its time.
    ts_us_after: usize,
    predicted: Predicted,
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            seq: Finder::new(SEQ),
            ts_us: Finder::new(TS_US),
            seq_at: SEQ.len(),
            ts_us_after: TS_US.len(),
            predicted: Predicted::NOTHING,
        }
    }
}

impl Fields {
    /// The sequence number, and where its digits end.
    #[inline]
    pub(crate) fn sequence(&mut self, payload: &[u8]) -> Option<(u64, usize)> {
        let remembered = self.seq_at;
        if payload.len() < remembered || payload[remembered - SEQ.len()..remembered] != *SEQ {
            self.look_for_sequence(payload)?;
        }
        let digits_and_more = &payload[self.seq_at..];
        if digits_and_more.first_chunk().is_some_and(|bytes| self.predicted.is(*bytes)) {
            let (sequence, digit_count) = (self.predicted.sequence, self.predicted.digit_count);
            self.predicted.step();
            return Some((sequence, self.seq_at + digit_count));
        }
        let (sequence, digit_count) = digits::parse(digits_and_more);
        if digit_count == 0 {
            return None;
        }
        self.predicted = Predicted::after(sequence, digit_count, digits_and_more);
        Some((sequence, self.seq_at + digit_count))
    }

    /// The time; `after` is where the digits of the sequence number end.
    #[inline]
    pub(crate) fn sent_us(&mut self, payload: &[u8], after: usize) -> Option<SentUs> {
        let remembered = after + self.ts_us_after;
        if payload.len() < remembered || payload[remembered - TS_US.len()..remembered] != *TS_US {
            self.look_for_sent_us(payload, after)?;
        }
        let (sent_us, digit_count) = digits::parse(&payload[after + self.ts_us_after..]);
        (digit_count > 0).then_some(sent_us)
    }

    #[cold]
    fn look_for_sequence(&mut self, payload: &[u8]) -> Option<()> {
        let looked_at = &payload[..payload.len().min(MAX_LOOKED_AT_BYTES)];
        self.seq_at = self.seq.find(looked_at)? + SEQ.len();
        Some(())
    }

    #[cold]
    fn look_for_sent_us(&mut self, payload: &[u8], after: usize) -> Option<()> {
        let looked_at = payload.get(after..payload.len().min(MAX_LOOKED_AT_BYTES))?;
        self.ts_us_after = self.ts_us.find(looked_at)? + TS_US.len();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(fields: &mut Fields, message: &str) -> (Option<u64>, Option<SentUs>) {
        let payload = message.as_bytes();
        match fields.sequence(payload) {
            Some((sequence, after)) => (Some(sequence), fields.sent_us(payload, after)),
            None => (None, None),
        }
    }

    #[test]
    fn the_message_of_the_seed_has_both() {
        let message = r#"{"t":"fanout_tick","p":{"seq":17,"ts_us":123456789,"s":"ES","px":5234.75,"q":2}}"#;
        assert_eq!(both(&mut Fields::default(), message), (Some(17), Some(123_456_789)));
    }

    #[test]
    fn fields_that_move_are_found_again() {
        let mut fields = Fields::default();
        for seq in [9, 10, 99, 100, 12_345_678, 123_456_789] {
            for position in ["1-1:9", "1-1:10", "1-1:123456"] {
                let message = format!("message bench.tick {position}\n{{\"seq\":{seq},\"ts_us\":{}}}", seq * 7);
                assert_eq!(both(&mut fields, &message), (Some(seq), Some(seq * 7)), "{message}");
                let other = format!("{{\"x\":1,\"seq\":{seq},\"between\":[1],\"ts_us\":5}}");
                assert_eq!(both(&mut fields, &other), (Some(seq), Some(5)));
            }
        }
    }

    #[test]
    fn a_number_is_read_right_whether_it_was_predicted_or_not() {
        let mut fields = Fields::default();
        let runs = [0..250, 98..1_111, 5..7, 99_999_995..100_000_005, 999_999_999_999_990..1_000_000_000_000_010];
        for seq in runs.into_iter().flatten().chain([u64::MAX, 3, 3, 4, 40, 5]) {
            assert_eq!(both(&mut fields, &format!("{{\"seq\":{seq},\"ts_us\":77}}")), (Some(seq), Some(77)));
        }
        // Another digit, or another byte after it, does not match the prediction.
        for (text, seq) in [("4,", 4), ("55,", 55), ("6}", 6), ("7]", 7), ("8x,", 8), ("9,", 9)] {
            let message = format!("{{\"seq\":{text}\"padding padding\"");
            assert_eq!(fields.sequence(message.as_bytes()).map(|(sequence, _)| sequence), Some(seq), "{text}");
        }
    }

    #[test]
    fn messages_without_them_have_none() {
        let mut fields = Fields::default();
        assert_eq!(both(&mut fields, "welcome\n{}"), (None, None));
        assert_eq!(both(&mut fields, ""), (None, None));
        assert_eq!(both(&mut fields, "{\"seq\":\"1\"}"), (None, None));
        assert_eq!(both(&mut fields, "{\"seq\":1"), (Some(1), None));
        let far = format!("{}\"seq\":1", " ".repeat(MAX_LOOKED_AT_BYTES));
        assert_eq!(both(&mut fields, &far), (None, None));
    }
}
