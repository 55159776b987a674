//! Frames to send, masked and encoded before the start.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use webmq_websocket::{Opcode, encode_masked_frame};

use super::protocol::{Frame, Frames};
use crate::header::mark_compressed;

/// RFC 6455 §5.3 wants an unpredictable mask, to protect proxies. Here it only needs to cost the server as much as any
/// other mask.
pub(crate) const MASK: [u8; 4] = [0x9d, 0x3c, 0x71, 0xe6];

const SEQ: &str = "$SEQ";
const TS_US: &str = "$TS_US";

#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) opcode: Opcode,
    pub(crate) is_compressed: bool,
    pub(crate) payload: Vec<u8>,
}

impl Message {
    pub(crate) fn text(text: &str) -> Self {
        Self { opcode: Opcode::Text, is_compressed: false, payload: text.as_bytes().to_vec() }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        encode_masked_frame(self.opcode, &self.payload, MASK, out);
        if self.is_compressed {
            mark_compressed(&mut out[start..]);
        }
    }
}

/// # Errors
/// There is no frame, or one is not base64.
pub(crate) fn messages(frames: &Frames) -> Result<Vec<Message>, String> {
    let messages: Vec<Message> = match frames {
        Frames::One(frame) => vec![message(frame)?],
        Frames::Many(frames) => frames.iter().map(message).collect::<Result<_, _>>()?,
    };
    if messages.is_empty() { Err("flood-in: a frame is needed".to_owned()) } else { Ok(messages) }
}

fn message(frame: &Frame) -> Result<Message, String> {
    match frame {
        Frame::Text(text) => Ok(Message::text(text)),
        Frame::Encoded(frame) => {
            let payload = STANDARD.decode(&frame.base64).map_err(|error| format!("flood-in: not base64: {error}"))?;
            let opcode = if frame.binary { Opcode::Binary } else { Opcode::Text };
            Ok(Message { opcode, is_compressed: frame.compressed, payload })
        }
    }
}

/// A masked frame with `text`.
pub(crate) fn text_frame(text: &str) -> Vec<u8> {
    let mut frame = Vec::new();
    Message::text(text).encode(&mut frame);
    frame
}

/// A message whose sequence number and time are filled in when it is sent.
#[derive(Debug)]
struct Template(Vec<Part>);

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Sequence,
    SentUs,
}

impl Template {
    /// `None` when there is nothing to fill in.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let (part, len) = match &rest[at..] {
                marked if marked.starts_with(SEQ) => (Part::Sequence, SEQ.len()),
                marked if marked.starts_with(TS_US) => (Part::SentUs, TS_US.len()),
                _ => (Part::Text("$".to_owned()), 1),
            };
            parts.push(Part::Text(rest[..at].to_owned()));
            parts.push(part);
            rest = &rest[at + len..];
        }
        parts.push(Part::Text(rest.to_owned()));
        parts.iter().any(|part| !matches!(part, Part::Text(_))).then_some(Self(parts))
    }

    fn fill(&self, sequence: u64, sent_us: u64) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Sequence => sequence.to_string(),
            Part::SentUs => sent_us.to_string(),
        };
        self.0.iter().map(part).collect()
    }
}

/// Consecutive whole frames, written repeatedly.
#[derive(Debug)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    frames: Vec<EncodedFrame>,
    template: Option<Template>,
}

/// The end of a frame in a batch, and its payload's size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EncodedFrame {
    end: usize,
    pub(crate) payload_bytes: usize,
}

impl Batch {
    /// Repeats the messages in turn, each at least once, up to `min_bytes`.
    ///
    /// # Panics
    /// Never: the caller refuses an empty batch.
    pub(crate) fn new(messages: &[Message], min_bytes: usize) -> Self {
        let mut batch = Self { bytes: Vec::new(), frames: Vec::new(), template: None };
        let first = messages.first().filter(|message| message.opcode == Opcode::Text && !message.is_compressed);
        batch.template = first.and_then(|message| std::str::from_utf8(&message.payload).ok()).and_then(Template::parse);
        loop {
            for message in messages {
                message.encode(&mut batch.bytes);
                let frame = EncodedFrame { end: batch.bytes.len(), payload_bytes: message.payload.len() };
                batch.frames.push(frame);
            }
            if batch.bytes.len() >= min_bytes || messages.is_empty() {
                return batch;
            }
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn is_template(&self) -> bool {
        self.template.is_some()
    }

    /// The frames that end after `from` and not after `to`.
    pub(crate) fn frames_between(&self, from: usize, to: usize) -> &[EncodedFrame] {
        let first = self.frames.partition_point(|frame| frame.end <= from);
        let last = self.frames.partition_point(|frame| frame.end <= to);
        &self.frames[first..last]
    }

    /// The end of the frame around `at`; `at` itself between two frames.
    pub(crate) fn frame_end(&self, at: usize) -> usize {
        if at == 0 {
            return 0;
        }
        let index = self.frames.partition_point(|frame| frame.end < at);
        self.frames.get(index).map_or(at, |frame| frame.end)
    }

    /// Appends the frame of a paced message and returns its payload's size.
    pub(crate) fn append(&self, number: u64, sent_us: u64, out: &mut Vec<u8>) -> usize {
        if let Some(template) = &self.template {
            let text = template.fill(number + 1, sent_us);
            Message::text(&text).encode(out);
            return text.len();
        }
        let index = (number % self.frames.len().max(1) as u64) as usize;
        let Some(frame) = self.frames.get(index) else { return 0 };
        let start = index.checked_sub(1).map_or(0, |before| self.frames[before].end);
        out.extend_from_slice(&self.bytes[start..frame.end]);
        frame.payload_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::Header;
    use webmq_websocket::unmask;

    fn payloads(mut bytes: &[u8]) -> Vec<String> {
        let mut payloads = Vec::new();
        while let Some(header) = Header::parse(bytes) {
            let (frame, rest) = bytes.split_at(header.frame_bytes() as usize);
            let mut payload = frame[usize::from(header.header_bytes)..].to_vec();
            unmask(&mut payload, header.mask.expect("clients mask"));
            payloads.push(String::from_utf8(payload).expect("text"));
            bytes = rest;
        }
        payloads
    }

    #[test]
    fn a_batch_repeats_its_messages_in_whole_frames() {
        let batch = Batch::new(&[Message::text("one"), Message::text("three")], 30);
        assert_eq!(payloads(batch.bytes()), ["one", "three", "one", "three"]);
        assert_eq!(batch.frames_between(0, batch.bytes().len()).len(), 4);
        assert_eq!((batch.frame_end(0), batch.frame_end(1), batch.frame_end(9), batch.frame_end(10)), (0, 9, 9, 20));
        assert_eq!(batch.frames_between(0, 8).len(), 0);
        assert_eq!(batch.frames_between(0, 9).len(), 1);
        assert_eq!(batch.frames_between(9, 20).len(), 1);
    }

    #[test]
    fn a_paced_message_is_the_next_of_the_batch() {
        let batch = Batch::new(&[Message::text("a"), Message::text("b")], 0);
        let mut out = Vec::new();
        (0..3).for_each(|number| assert_eq!(batch.append(number, 0, &mut out), 1));
        assert_eq!(payloads(&out), ["a", "b", "a"]);
    }

    #[test]
    fn number_and_time_are_filled_in() {
        let batch = Batch::new(&[Message::text("{\"seq\":$SEQ,\"ts_us\":$TS_US,\"px\":\"$5\"}")], 0);
        assert!(batch.is_template());
        let mut out = Vec::new();
        let payload_bytes = batch.append(0, 77, &mut out);
        assert_eq!(payloads(&out), ["{\"seq\":1,\"ts_us\":77,\"px\":\"$5\"}"]);
        assert_eq!(payload_bytes, payloads(&out)[0].len());
        assert!(!Batch::new(&[Message::text("$5")], 0).is_template());
    }

    #[test]
    fn compressed_messages_say_so() {
        let message = Message { opcode: Opcode::Text, is_compressed: true, payload: vec![1, 2, 3] };
        let batch = Batch::new(&[message], 0);
        assert!(Header::parse(batch.bytes()).is_some_and(Header::is_compressed));
    }
}
