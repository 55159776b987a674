//! Any header names and values in a response: refused, or exactly these headers and no other.
//!
//! Input: one byte of status (0: accept), then lines of name, `=`, value. A line ends with byte 0xff, which no UTF-8 has.
#![no_main]

use libfuzzer_sys::fuzz_target;
use webmq_websocket::handshake::{AcceptKey, encode_response, encode_switching_protocols};

fuzz_target!(|data: &[u8]| {
    let [status, text @ ..] = data else { return };
    let lines: Option<Vec<(&str, &str)>> =
        text.split(|byte| *byte == 0xff).take(20).map(|line| std::str::from_utf8(line).ok()?.split_once('=')).collect();
    let Some(headers) = lines else { return };

    let mut out = Vec::new();
    let (written, own_count) = if *status == 0 {
        let accept_key = AcceptKey::from_key(b"dGhlIHNhbXBsZSBub25jZQ==").expect("valid key");
        (encode_switching_protocols(&accept_key, None, None, headers.iter().copied(), &mut out), 3)
    } else {
        (encode_response(300 + u16::from(*status), headers.iter().copied(), "", &mut out), 2)
    };
    if written.is_err() {
        assert!(out.is_empty());
        return;
    }
    let mut parsed = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut parsed);
    assert_eq!(response.parse(&out), Ok(httparse::Status::Complete(out.len())));
    assert_eq!(response.headers.len(), headers.len() + own_count);
    for (name, value) in &headers {
        let is_there = |header: &&mut httparse::Header<'_>| {
            header.name == *name && header.value == value.trim_matches([' ', '\t']).as_bytes()
        };
        assert!(response.headers.iter_mut().any(|header| is_there(&header)), "{name}: {value:?}");
    }
});
