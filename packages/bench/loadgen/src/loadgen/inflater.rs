//! Inflates the start of compressed messages.

use flate2::{Decompress, FlushDecompress, Status};

use super::fields::MAX_LOOKED_AT_BYTES;

/// Inflates only the inspected part of a message. Each message has its own context, as negotiated
/// (RFC 7692 §7.1.1.1).
pub(crate) struct Inflater {
    inflate: Decompress,
    plain: [u8; MAX_LOOKED_AT_BYTES],
}

impl Default for Inflater {
    fn default() -> Self {
        Self { inflate: Decompress::new(false), plain: [0; MAX_LOOKED_AT_BYTES] }
    }
}

impl Inflater {
    /// The first inflated bytes of the message that begins with `deflated`; empty when it is not valid.
    pub(crate) fn plain(&mut self, deflated: &[u8]) -> &[u8] {
        self.inflate.reset(false);
        match self.inflate.decompress(deflated, &mut self.plain, FlushDecompress::Sync) {
            Ok(Status::Ok | Status::BufError | Status::StreamEnd) => {
                let len = (self.inflate.total_out() as usize).min(self.plain.len());
                &self.plain[..len]
            }
            Err(_) => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::{Compress, Compression, FlushCompress};

    use super::*;

    fn deflated(plain: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(2 * plain.len() + 1_024);
        let mut deflate = Compress::new(Compression::fast(), false);
        deflate.compress_vec(plain, &mut bytes, FlushCompress::Sync).expect("memory");
        // RFC 7692 §7.2.1: the end of a flushed block is not sent.
        assert!(bytes.ends_with(&[0, 0, 0xff, 0xff]));
        bytes.truncate(bytes.len() - 4);
        bytes
    }

    #[test]
    fn each_message_is_inflated_by_itself_up_to_what_is_looked_at() {
        let mut inflater = Inflater::default();
        assert_eq!(inflater.plain(&deflated(b"{\"seq\":1}")), b"{\"seq\":1}");
        let long: Vec<u8> = (0..40_000_u32).flat_map(|number| number.to_le_bytes()).collect();
        assert_eq!(inflater.plain(&deflated(&long)), &long[..MAX_LOOKED_AT_BYTES]);
        let beginning = &deflated(&long)[..MAX_LOOKED_AT_BYTES];
        let plain = inflater.plain(beginning).to_vec();
        assert!(plain.len() > 100 && long.starts_with(&plain));
        assert_eq!(inflater.plain(&[0xff, 0xff, 0xff]), b"");
        assert_eq!(inflater.plain(&deflated(b"again")), b"again");
    }
}
