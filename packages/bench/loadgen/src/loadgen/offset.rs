//! `offset`: how far the clock of an HTTP server is ahead of this machine's.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::protocol::number;
use crate::clock::{now_us, wall_us};

const MAX_ROUNDS: usize = 10_000;
/// The quickest of this many are believed: a slow round trip was delayed on one of its ways, nobody knows on which.
const ROUNDS_PER_BELIEVED: usize = 4;
const MAX_ANSWER_BYTES: usize = 64 << 10;
const MAX_HEADERS: usize = 64;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Offset {
    #[serde(default = "loopback")]
    host: IpAddr,
    port: u16,
    #[serde(default = "default_path")]
    path: String,
    #[serde(default = "default_field")]
    field: String,
    #[serde(default = "number::<_, 50>")]
    rounds: usize,
    #[serde(default = "number::<_, 2_000>")]
    timeout_ms: u64,
}

/// One question and its answer, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Round {
    round_trip_us: u64,
    /// Their clock less the middle of ours.
    offset_us: i64,
}

/// Asks for the time again and again. Blocks for at most `timeoutMs`.
///
/// # Errors
/// The server does not answer in time, or with something else.
pub(crate) fn measure(command: &Offset) -> Result<Value, String> {
    if !(1..=MAX_ROUNDS).contains(&command.rounds) {
        return Err(format!("offset: rounds is from 1 to {MAX_ROUNDS}"));
    }
    if command.path.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
        return Err("offset: the path has no spaces".to_owned());
    }
    let failed = |error| format!("offset: {error}");
    let deadline_us = now_us() + command.timeout_ms * 1_000;
    let address = SocketAddr::new(command.host, command.port);
    let mut stream = TcpStream::connect_timeout(&address, time_left(deadline_us)?).map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    let request = format!("GET {} HTTP/1.1\r\nhost: {address}\r\n\r\n", command.path);
    let mut rounds = Vec::with_capacity(command.rounds);
    for _ in 0..command.rounds {
        let asked_us = wall_us();
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let body = read_body(&mut stream, deadline_us)?;
        let answered_us = wall_us();
        rounds.push(round(asked_us, answered_us, time_of(&body, &command.field)?));
    }
    Ok(estimate(rounds))
}

fn time_left(deadline_us: u64) -> Result<Duration, String> {
    match deadline_us.saturating_sub(now_us()) {
        0 => Err("offset: the server did not answer in time".to_owned()),
        left_us => Ok(Duration::from_micros(left_us)),
    }
}

/// The body of one answer. The connection stays open for the next.
fn read_body(stream: &mut TcpStream, deadline_us: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut room = [0; 4_096];
    loop {
        let failed = |error| format!("offset: {error}");
        stream.set_read_timeout(Some(time_left(deadline_us)?)).map_err(failed)?;
        let count = stream.read(&mut room).map_err(failed)?;
        bytes.extend_from_slice(&room[..count]);
        if let Some((head_bytes, body_bytes)) = sizes(&bytes)?
            && bytes.len() >= head_bytes + body_bytes
        {
            return Ok(bytes.split_off(head_bytes));
        }
        if count == 0 || bytes.len() > MAX_ANSWER_BYTES {
            return Err("offset: the answer is not complete".to_owned());
        }
    }
}

/// Bytes of the head and of the body; `None` when the head is not complete.
fn sizes(bytes: &[u8]) -> Result<Option<(usize, usize)>, String> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let head = response.parse(bytes).map_err(|error| format!("offset: {error}"))?;
    let httparse::Status::Complete(head_bytes) = head else { return Ok(None) };
    if response.code != Some(200) {
        return Err(format!("offset: the answer is {}", response.code.unwrap_or(0)));
    }
    let length = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|header| std::str::from_utf8(header.value).ok()?.parse::<usize>().ok());
    match length {
        Some(length) if length <= MAX_ANSWER_BYTES => Ok(Some((head_bytes, length))),
        _ => Err("offset: the answer says no length, or a large one".to_owned()),
    }
}

fn time_of(body: &[u8], field: &str) -> Result<u64, String> {
    let value: Value = serde_json::from_slice(body).map_err(|error| format!("offset: {error}"))?;
    value[field].as_u64().ok_or_else(|| format!("offset: the answer has no number `{field}`"))
}

fn round(asked_us: u64, answered_us: u64, theirs_us: u64) -> Round {
    let round_trip_us = answered_us.saturating_sub(asked_us);
    let middle_us = asked_us.wrapping_add(round_trip_us / 2);
    Round { round_trip_us, offset_us: theirs_us.wrapping_sub(middle_us).cast_signed() }
}

/// The median offset of the quickest round trips. It is at most half the longest of them away from the truth.
fn estimate(mut rounds: Vec<Round>) -> Value {
    rounds.sort_unstable_by_key(|round| round.round_trip_us);
    let median_us = rounds[rounds.len() / 2].round_trip_us;
    let believed = &mut rounds[..];
    let count = believed.len().div_ceil(ROUNDS_PER_BELIEVED);
    let believed = &mut believed[..count];
    let longest_us = believed[count - 1].round_trip_us;
    let shortest_us = believed[0].round_trip_us;
    believed.sort_unstable_by_key(|round| round.offset_us);
    json!({
        "rounds": rounds.len(),
        "offsetUs": rounds[count / 2].offset_us,
        "uncertaintyUs": longest_us.div_ceil(2),
        "roundTripUs": { "min": shortest_us, "p50": median_us },
    })
}

fn loopback() -> IpAddr {
    Ipv4Addr::LOCALHOST.into()
}

fn default_path() -> String {
    "/time".to_owned()
}

fn default_field() -> String {
    "unixUs".to_owned()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_quickest_round_trips_decide_and_say_how_sure_they_are() {
        // A clock that is 500 us ahead. Some answers took long on one way.
        let mut rounds = vec![round(1_000, 1_100, 1_550), round(2_000, 2_080, 2_540), round(3_000, 3_060, 3_530)];
        rounds.extend((0..9).map(|late| round(9_000, 19_000 + late, 9_600)));
        let found = estimate(rounds);
        assert_eq!((&found["offsetUs"], &found["uncertaintyUs"]), (&json!(500), &json!(50)));
        assert_eq!((&found["rounds"], &found["roundTripUs"]["min"]), (&json!(12), &json!(60)));
        assert_eq!(estimate(vec![round(1_000, 1_100, 1_000)])["offsetUs"], json!(-50));
    }

    fn served(answer: &'static str) -> Result<Value, String> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut room = [0; 1_024];
            while stream.read(&mut room).is_ok_and(|count| count > 0) {
                if stream.write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
        });
        let fields = json!({ "port": port, "rounds": 3 });
        let found = measure(&Offset::deserialize(fields).expect("an offset"));
        server.join().expect("ended");
        found
    }

    #[test]
    fn a_server_is_asked_on_one_connection() {
        let found = served("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{\"unixUs\":5}").expect("a time");
        assert_eq!(found["rounds"], json!(3));
        assert!(found["offsetUs"].as_i64().is_some_and(|offset_us| offset_us < -1_000_000_000));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for answer in [
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
            "hello\r\n\r\n",
        ] {
            assert!(served(answer).is_err(), "{answer}");
        }
        let wrong = json!({ "port": 1, "rounds": 0 });
        assert!(measure(&Offset::deserialize(wrong).expect("an offset")).is_err());
        let spaced = json!({ "port": 1, "path": "/time HTTP/1.1\r\nx: y" });
        assert!(measure(&Offset::deserialize(spaced).expect("an offset")).is_err());
    }
}
