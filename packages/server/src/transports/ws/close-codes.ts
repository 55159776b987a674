/** RFC 6455 §7.4.1. */
const PROTOCOL_ERROR = 1002
const INVALID_DATA = 1007
const POLICY_VIOLATION = 1008
const TOO_LARGE = 1009

const CODES: Readonly<Record<string, number>> = {
  WS_ERR_INVALID_UTF8: INVALID_DATA,
  WS_ERR_TOO_MANY_BUFFERED_PARTS: POLICY_VIOLATION,
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: TOO_LARGE,
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: TOO_LARGE,
}

/** The code that `ws` closes with after this error. Errors of zlib have codes of their own. */
export function closeCodeOf(error: NodeJS.ErrnoException): number {
  const { code = '' } = error
  return CODES[code] ?? (code.startsWith('WS_ERR_') ? PROTOCOL_ERROR : INVALID_DATA)
}
