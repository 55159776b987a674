//! Decimal numbers at memory speed.

const ZEROS: u64 = 0x3030_3030_3030_3030;
const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The number at the start of `bytes`, and its count of digits (0: no number). It wraps beyond `u64`.
///
/// Parses eight digits at a time: a sequence number costs about as much as a cache hit.
#[inline]
pub(crate) fn parse(bytes: &[u8]) -> (u64, usize) {
    let mut value: u64 = 0;
    let mut rest = bytes;
    while let Some((chunk, after)) = rest.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk) ^ ZEROS;
        // A digit is 0-9 now. The upper half of a byte is not zero when the byte, or the byte and six, exceeds 9. A
        // carry out of a byte only reaches bytes after one that is no digit.
        let others = (word | word.wrapping_add(0x0606_0606_0606_0606)) & 0xf0f0_f0f0_f0f0_f0f0;
        let count = others.trailing_zeros() as usize / 8;
        if count == 8 {
            value = value.wrapping_mul(100_000_000).wrapping_add(join(word));
            rest = after;
            continue;
        }
        if count > 0 {
            // Shifted up, the missing leading digits are zeros.
            let joined = join(word << (8 * (8 - count)));
            value = value.wrapping_mul(POWERS[count]).wrapping_add(joined);
        }
        return (value, bytes.len() - rest.len() + count);
    }
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    for byte in &rest[..count] {
        value = value.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
    }
    (value, bytes.len() - rest.len() + count)
}

/// Eight digits, one per byte, the first in the lowest byte.
#[inline]
fn join(word: u64) -> u64 {
    let pairs = (word.wrapping_mul(10).wrapping_add(word >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100).wrapping_add(pairs >> 16)) & 0x0000_ffff_0000_ffff;
    (fours.wrapping_mul(10_000).wrapping_add(fours >> 32)) & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_number_is_read_whatever_follows_it(value: u64, after in "[^0-9].{0,12}|") {
            let text = format!("{value}{after}");
            prop_assert_eq!(parse(text.as_bytes()), (value, value.to_string().len()));
        }

        #[test]
        fn what_is_no_digit_ends_it(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let count = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
            prop_assert_eq!(parse(&bytes).1, count);
        }
    }

    #[test]
    fn no_digits_are_no_number() {
        assert_eq!(parse(b""), (0, 0));
        assert_eq!(parse(b"}"), (0, 0));
        assert_eq!(parse(b"\"12345678\""), (0, 0));
    }
}
