use proptest::prelude::*;

use super::{Header, MAX_BYTES, parse, v2};

/// Bytes of which many become headers.
fn nearly_headers() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop::collection::vec(any::<u8>(), 0..300);
    let binary = (prop::sample::select(vec![0x20, 0x21, 0x11, 0x22]), any::<u8>(), 0_u16..300, bytes.clone()).prop_map(
        |(command, family, length, rest)| [v2::SIGNATURE, &[command, family], &length.to_be_bytes(), &rest].concat(),
    );
    let text = "PROXY (TCP4|TCP6|UNKNOWN) [0-9a-f.: ]{0,60}\r?\n?".prop_map(String::into_bytes);
    prop_oneof![bytes, binary, text]
}

proptest! {
    #[test]
    fn parts_agree_with_the_whole(bytes in nearly_headers()) {
        let whole = parse(&bytes);
        if let Ok(Header::Complete { length, .. }) = whole {
            prop_assert!(length <= bytes.len() && length <= MAX_BYTES);
            // What follows a header does not change it.
            prop_assert_eq!(parse(&bytes[..length]), whole);
        }
        for length in 0..bytes.len() {
            match parse(&bytes[..length]) {
                Ok(Header::Incomplete) => {}
                decided => prop_assert_eq!(decided, whole, "{} bytes", length),
            }
        }
    }
}
