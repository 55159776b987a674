//! Packs commands as JavaScript does; for tests.

use webmq_websocket::MAX_FRAME_HEADER_BYTES;

use crate::fanout::OutboxLevel;

#[derive(Default)]
pub(crate) struct Packer(pub(crate) Vec<u8>);

impl Packer {
    fn command(&mut self, kind: u8, flags: u8, number: u16, id: f64, parts: &[&[u8]]) -> &mut Self {
        let len = 16 + parts.iter().map(|part| part.len()).sum::<usize>();
        self.0.extend_from_slice(&[kind, flags]);
        self.0.extend_from_slice(&number.to_le_bytes());
        self.0.extend_from_slice(&(len as u32).to_le_bytes());
        self.0.extend_from_slice(&id.to_le_bytes());
        parts.iter().for_each(|part| self.0.extend_from_slice(part));
        self
    }

    pub(crate) fn accept(&mut self, id: f64, subprotocol: Option<&str>) -> &mut Self {
        let number = subprotocol.map_or(0xffff, |text| text.len() as u16);
        self.command(1, 0, number, id, &[subprotocol.unwrap_or_default().as_bytes(), b"\x01\0\0\0\x02\0\0\0abc"])
    }

    pub(crate) fn reject(&mut self, id: f64, status: u16, body: &str) -> &mut Self {
        self.command(2, 0, status, id, &[&0_u32.to_le_bytes(), body.as_bytes()])
    }

    pub(crate) fn join(&mut self, id: f64, group: u32) -> &mut Self {
        self.command(3, 0, 0, id, &[&group.to_le_bytes()])
    }

    pub(crate) fn leave(&mut self, id: f64, group: u32) -> &mut Self {
        self.command(4, 0, 0, id, &[&group.to_le_bytes()])
    }

    pub(crate) fn send(&mut self, id: f64, data: &[u8]) -> &mut Self {
        self.command(5, 1, 0, id, &[&[0; MAX_FRAME_HEADER_BYTES], data])
    }

    pub(crate) fn multicast(&mut self, groups: &[u32], data: &[u8], except: Option<f64>) -> &mut Self {
        let packed: Vec<u8> = groups.iter().flat_map(|group| group.to_le_bytes()).collect();
        let count = (groups.len() as u32).to_le_bytes();
        let flags = if except.is_some() { 2 } else { 0 };
        self.command(6, flags, 0, except.unwrap_or(0.0), &[&count, &packed, &[0; MAX_FRAME_HEADER_BYTES], data])
    }

    pub(crate) fn urgent(&mut self, groups: &[u32], data: &[u8]) -> &mut Self {
        let packed: Vec<u8> = groups.iter().flat_map(|group| group.to_le_bytes()).collect();
        let count = (groups.len() as u32).to_le_bytes();
        self.command(6, 16, 0, 0.0, &[&count, &packed, &[0; MAX_FRAME_HEADER_BYTES], data])
    }

    pub(crate) fn topic(&mut self, groups: &[u32], data: &[u8], topic: u32) -> &mut Self {
        let packed: Vec<u8> = groups.iter().flat_map(|group| group.to_le_bytes()).collect();
        let count = (groups.len() as u32).to_le_bytes();
        let gap = [0; MAX_FRAME_HEADER_BYTES];
        self.command(6, 1 | 4, 0, 0.0, &[&count, &packed, &topic.to_le_bytes(), &gap, data])
    }

    pub(crate) fn overflow(&mut self, group: u32, policy: u16, notice: Option<&[u8]>) -> &mut Self {
        let gap: &[u8] = if notice.is_some() { &[0; MAX_FRAME_HEADER_BYTES] } else { &[] };
        let flags = if notice.is_some() { 8 } else { 0 };
        self.command(11, flags, policy, 0.0, &[&group.to_le_bytes(), gap, notice.unwrap_or_default()])
    }

    pub(crate) fn answer(&mut self, request: &[u8], answer: &[u8], valid_ms: u16) -> &mut Self {
        let len = (request.len() as u32).to_le_bytes();
        self.command(12, 0, valid_ms, 0.0, &[&len, request, &[0; MAX_FRAME_HEADER_BYTES], answer])
    }

    pub(crate) fn close(&mut self, id: f64, code: u16, reason: &str) -> &mut Self {
        self.command(7, 0, code, id, &[reason.as_bytes()])
    }

    pub(crate) fn notify(&mut self, id: f64, level: OutboxLevel) -> &mut Self {
        self.command(8, 0, u16::from(level == OutboxLevel::Low), id, &[])
    }

    pub(crate) fn pause(&mut self, id: f64) -> &mut Self {
        self.command(9, 0, 0, id, &[])
    }

    pub(crate) fn resume(&mut self, id: f64) -> &mut Self {
        self.command(10, 0, 0, id, &[])
    }
}
