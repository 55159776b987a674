/** Version, name of the header, and line ends. */
const HEADER_OVERHEAD_BYTES = 64
/** Ids that a header can hold unchanged: no `%` at the front, and no space at the ends, which would be trimmed. */
const PLAIN = /^[!-$&-~](?:[ -~]*[!-~])?$/
const ESCAPED_PREFIX = '%'

/** The message id as a header's value: ASCII on one line. Different ids have different values. */
export function headerValueOf(messageId: string): string {
  return PLAIN.test(messageId) ? messageId : ESCAPED_PREFIX + Buffer.from(messageId).toString('base64url')
}

/** Most bytes that the header with this id adds to a message. */
export function headerBytesOf(messageId: string): number {
  return HEADER_OVERHEAD_BYTES + headerValueOf(messageId).length
}
