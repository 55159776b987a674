/// XORs `data` with the repeated `mask` (RFC 6455 §5.3), which masks plain bytes and unmasks masked ones.
///
/// Eight bytes at a time; a payload in several pieces needs the mask [`rotated`] between them.
// An AVX2 loop, chosen at run time, would need `unsafe`. This crate avoids that until a measurement justifies it.
#[inline]
pub fn unmask(data: &mut [u8], mask: [u8; 4]) {
    let [a, b, c, d] = mask;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (chunks, rest) = data.as_chunks_mut::<8>();
    for chunk in chunks {
        *chunk = (u64::from_ne_bytes(*chunk) ^ wide).to_ne_bytes();
    }
    let (halves, rest) = rest.as_chunks_mut::<4>();
    for half in halves {
        *half = (u32::from_ne_bytes(*half) ^ u32::from_ne_bytes(mask)).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(mask) {
        *byte ^= key;
    }
}

/// The mask for the bytes after `len` bytes.
#[inline]
pub(crate) fn rotated(mask: [u8; 4], len: usize) -> [u8; 4] {
    let mut mask = mask;
    mask.rotate_left(len % 4);
    mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unmask_byte_by_byte(data: &mut [u8], mask: [u8; 4]) {
        for (index, byte) in data.iter_mut().enumerate() {
            *byte ^= mask[index % 4];
        }
    }

    proptest! {
        #[test]
        fn unmasking_in_words_equals_unmasking_byte_by_byte(
            mut data in prop::collection::vec(any::<u8>(), 0..300),
            mask: [u8; 4],
            skip in 0_usize..9,
        ) {
            let skip = skip.min(data.len());
            let mut naive = data.clone();
            unmask_byte_by_byte(&mut naive[skip..], mask);
            unmask(&mut data[skip..], mask);
            prop_assert_eq!(data, naive);
        }

        #[test]
        fn unmasking_in_two_pieces_equals_unmasking_at_once(
            mut data in prop::collection::vec(any::<u8>(), 0..100),
            mask: [u8; 4],
            at in 0_usize..100,
        ) {
            let at = at.min(data.len());
            let mut whole = data.clone();
            unmask(&mut whole, mask);
            unmask(&mut data[..at], mask);
            unmask(&mut data[at..], rotated(mask, at));
            prop_assert_eq!(data, whole);
        }
    }
}
