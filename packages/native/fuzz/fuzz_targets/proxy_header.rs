//! Any bytes as a header of the PROXY protocol.
//!
//! Input: one byte that says how the bytes begin (like version 2, like version 1, as they are), then the bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use webmq_engine::fuzzing::{MAX_PROXY_HEADER_BYTES, proxy_header};

const STARTS: [&[u8]; 4] = [b"\r\n\r\n\0\r\nQUIT\n", b"PROXY ", b"PROXY TCP4 ", b""];

fuzz_target!(|data: &[u8]| {
    let [start, rest @ ..] = data else { return };
    let bytes = [STARTS[usize::from(start % 4)], rest].concat();
    let whole = proxy_header(&bytes);
    if let Ok(Some((_, length))) = whole {
        assert!(length <= bytes.len() && length <= MAX_PROXY_HEADER_BYTES);
        assert_eq!(proxy_header(&bytes[..length]), whole, "what follows a header does not change it");
    }
    if whole == Ok(None) {
        assert!(bytes.len() < MAX_PROXY_HEADER_BYTES, "it is decided in time");
    }
    // Each part is undecided, or says what the whole says. Most of the decisions fall within the first 300 bytes.
    for length in (0..bytes.len()).take(300).chain(bytes.len().checked_sub(1)) {
        let part = proxy_header(&bytes[..length]);
        assert!(part == Ok(None) || part == whole, "{length} bytes");
    }
});
