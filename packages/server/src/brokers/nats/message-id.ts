/** Beside the id: the version, the header's name, line ends. */
const HEADER_OVERHEAD_BYTES = 64
/** Ids that are a header's value as they are. The first character is not the mark of the others; the ends are not trimmed. */
const PLAIN = /^[!-$&-~](?:[ -~]*[!-~])?$/
const ESCAPED_MARK = '%'

/** The message id as the value of a header: ASCII on one line. Different ids have different values. */
export function headerValueOf(messageId: string): string {
  return PLAIN.test(messageId) ? messageId : ESCAPED_MARK + Buffer.from(messageId).toString('base64url')
}

/** Bytes that the header with this id adds to a message, at most. */
export function headerBytesOf(messageId: string): number {
  return HEADER_OVERHEAD_BYTES + headerValueOf(messageId).length
}
