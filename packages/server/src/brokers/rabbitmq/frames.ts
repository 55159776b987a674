/*
 * A frame is its type (1 byte), channel (2), size of the content (4), the content, and 0xCE. A message is a method frame, a header frame
 * and, unless it is empty, body frames. AMQP 0-9-1 §2.3.5, §4.2.6.
 */
export const METHOD = 1
export const HEADER = 2
export const BODY = 3
export const FRAME_END = 0xce
export const SIZE_AT = 3
export const FRAME_HEAD_BYTES = 7
export const FRAME_OVERHEAD_BYTES = FRAME_HEAD_BYTES + 1

/** The class of messages, and two of its methods: the first four bytes of a method's content. */
export const BASIC = 60
export const BASIC_PUBLISH = 40
export const BASIC_DELIVER = 60

/** In a header frame: the size of the payload, whose high half is before it, the flags of the properties, and these. */
export const PAYLOAD_SIZE_AT = FRAME_HEAD_BYTES + 8
export const FLAGS_AT = FRAME_HEAD_BYTES + 12
export const PROPERTIES_AT = FLAGS_AT + 2
/** What a node sets: content type, delivery mode, message id, in this order. */
export const OUR_FLAGS = 0x8000 | 0x1000 | 0x0080
/** For the log as well: content type, headers, delivery mode, message id. */
export const OUR_LOG_FLAGS = OUR_FLAGS | 0x2000

/** Marks of the types of values in a table of headers: a text with its length in four bytes, and an integer of eight bytes. */
export const LONG_TEXT = 0x53
export const LONG_INTEGER = 0x6c

/** A text as AMQP writes short ones: its length in a byte, then itself. */
export function shortText(text: string): Buffer {
  return Buffer.concat([Buffer.of(Buffer.byteLength(text)), Buffer.from(text)])
}
