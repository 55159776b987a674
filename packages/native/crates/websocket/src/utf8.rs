/// The bytes are not, and cannot become, UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotUtf8;

/// Validates `text` from `valid_len` on and returns up to where it is whole characters.
///
/// The rest is the start of a character, at most three bytes, and is checked again with the next piece. So a text in
/// pieces is read once and refused at its first bad byte.
pub(crate) fn extend_valid(text: &[u8], valid_len: usize) -> Result<usize, NotUtf8> {
    let fresh = text.get(valid_len..).unwrap_or_default();
    match simdutf8::compat::from_utf8(fresh) {
        Ok(_) => Ok(text.len()),
        Err(error) if error.error_len().is_none() => Ok(valid_len + error.valid_up_to()),
        Err(_) => Err(NotUtf8),
    }
}

/// Validates a complete text.
pub(crate) fn validate(text: &[u8]) -> Result<&str, NotUtf8> {
    simdutf8::basic::from_utf8(text).map_err(|_| NotUtf8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_character_cut_in_the_middle_waits_for_its_rest() {
        let text = "κό".as_bytes();
        assert_eq!(extend_valid(&text[..1], 0), Ok(0));
        assert_eq!(extend_valid(&text[..3], 0), Ok(2));
        assert_eq!(extend_valid(text, 2), Ok(4));
    }

    #[test]
    fn a_beginning_that_no_byte_can_complete_is_refused_at_once() {
        for bad in [
            &b"\xf4\x90"[..], // above U+10FFFF
            b"\xed\xa0",      // a surrogate
            b"\xe0\x80",      // overlong
            b"\xc0",          // never in UTF-8
            b"abc\xff",       // never in UTF-8
            b"\xce\xbax\x80", // a continuation byte alone
        ] {
            assert_eq!(extend_valid(bad, 0), Err(NotUtf8), "{bad:x?}");
        }
    }

    proptest! {
        #[test]
        fn pieces_are_valid_exactly_when_the_whole_is(
            text in prop_oneof![any::<String>().prop_map(String::into_bytes), prop::collection::vec(any::<u8>(), 0..20)],
            step in 1_usize..5,
        ) {
            let mut valid_len = 0;
            let mut refused = false;
            for end in (0..=text.len()).step_by(step).chain([text.len()]) {
                match extend_valid(&text[..end], valid_len) {
                    Ok(len) => valid_len = len,
                    Err(NotUtf8) => { refused = true; break }
                }
            }
            prop_assert_eq!(!refused && valid_len == text.len(), std::str::from_utf8(&text).is_ok());
        }
    }
}
