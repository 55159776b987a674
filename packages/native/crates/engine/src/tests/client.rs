use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use webmq_websocket::{Decoder, Event, Inflater, Opcode, Role, encode_masked_frame};

/// What a client received.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Message(Vec<u8>),
    Ping,
    Pong(Vec<u8>),
    Close(Option<u16>, String),
    End,
}

/// A blocking WebSocket client.
pub(crate) struct Client<S = TcpStream> {
    pub(crate) socket: S,
    decoder: Decoder,
    /// Present when it offers permessage-deflate.
    inflater: Option<Inflater>,
    received: std::collections::VecDeque<Received>,
}

impl Client {
    pub(crate) const HANDSHAKE: &str = "GET /ws?a=1 HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

    /// Connects and sends a handshake; `finish` reads the answer.
    pub(crate) fn begin(address: SocketAddr) -> Self {
        Self::begin_with(address, None)
    }

    /// The same with an offer of extensions; compressed messages are read when there is one.
    pub(crate) fn begin_with(address: SocketAddr, extensions: Option<&str>) -> Self {
        let socket = TcpStream::connect(address).expect("connects");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        let line = extensions.map(|offer| format!("Sec-WebSocket-Extensions: {offer}\r\n\r\n"));
        let handshake = Self::HANDSHAKE.strip_suffix("\r\n").expect("ends with an empty line");
        let handshake = format!("{handshake}{}", line.as_deref().unwrap_or("\r\n"));
        (&socket).write_all(handshake.as_bytes()).expect("sends");
        Self { inflater: extensions.map(|_| Inflater::default()), ..Self::over(socket) }
    }
}

impl<S: Read + Write> Client<S> {
    /// A client whose handshake has been sent.
    pub(crate) fn over(socket: S) -> Self {
        Self { socket, decoder: Decoder::new(Role::Client, 1 << 26), inflater: None, received: Default::default() }
    }

    /// Reads the answer to the handshake, byte by byte, and returns it.
    pub(crate) fn finish(&mut self) -> String {
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.socket.read_exact(&mut byte).expect("an answer");
            answer.push(byte[0]);
        }
        String::from_utf8(answer).expect("a text")
    }

    pub(crate) fn send(&mut self, opcode: Opcode, payload: &[u8]) {
        let mut frame = Vec::new();
        encode_masked_frame(opcode, payload, [1, 2, 3, 4], &mut frame);
        self.socket.write_all(&frame).expect("sends");
    }

    /// The next thing that arrives; a ping is answered only if the test does so.
    pub(crate) fn receive(&mut self) -> Received {
        let mut buffer = [0; 16_384];
        loop {
            if let Some(received) = self.received.pop_front() {
                return received;
            }
            match self.socket.read(&mut buffer) {
                Ok(0) => return Received::End,
                Ok(count) => {
                    let Self { decoder, inflater, received, .. } = self;
                    let mut push = |event: Event<'_>| {
                        received.push_back(match event {
                            Event::Message { data, .. } => Received::Message(data.to_vec()),
                            Event::Ping(_) => Received::Ping,
                            Event::Pong(payload) => Received::Pong(payload.to_vec()),
                            Event::Close { code, reason } => {
                                Received::Close(code.map(webmq_websocket::CloseCode::value), reason.to_owned())
                            }
                        });
                    };
                    decoder.decode(&mut buffer[..count], inflater.as_mut(), &mut push).expect("valid frames");
                }
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return Received::End,
                Err(error) => panic!("nothing came: {error}"),
            }
        }
    }

    /// The answer to a ping, whatever comes before it.
    pub(crate) fn pong(&mut self) -> Vec<u8> {
        loop {
            if let Received::Pong(payload) = self.receive() {
                return payload;
            }
        }
    }

    pub(crate) fn message(&mut self) -> Vec<u8> {
        match self.receive() {
            Received::Message(message) => message,
            other => panic!("{other:?} instead of a message"),
        }
    }
}
