/** The WebSocket subprotocol that a client offers and a server selects [P-1.2]. */
export const SUBPROTOCOL = 'webmq.v1'

/** An offered subprotocol with this prefix carries a token, for browsers, which cannot set headers [P-5.1]. */
export const BEARER_SUBPROTOCOL_PREFIX = 'webmq.bearer.'

/** Maximum bytes of a key or pattern [P-3.1]. An AMQP 0-9-1 routing key is a short string of at most 255 bytes. */
export const MAX_KEY_BYTES = 255

/**
 * Maximum bytes of a header line, without its `\n` [P-2.2]. Limits how much a receiver reads before it knows the verb.
 */
export const MAX_HEADER_BYTES = 2_048

/** Maximum characters of a request id [P-2.5]; a UUID fits. */
export const MAX_ID_CHARS = 36

/** Maximum characters of a message id [P-7.3]. */
export const MAX_MESSAGE_ID_CHARS = 64

/** Maximum characters of a position [P-8.1]. */
export const MAX_POSITION_CHARS = 70

/** Maximum characters of a joined position of an earlier server [P-8.1]. */
export const MAX_JOINED_POSITION_CHARS = 1_600

/** Maximum characters of a queue group's name [P-6.6]. */
export const MAX_GROUP_CHARS = 64

/** Maximum characters of a client's name for its member [P-14.3]. */
export const MAX_MEMBER_CHARS = 64

/** Maximum bytes of a token in `auth` [P-5.2]. */
export const MAX_TOKEN_BYTES = 8_192

/**
 * The malformed message with this number ends its connection with 4500 [P-10.3]. Stops a peer that does not speak this
 * protocol.
 */
export const MAX_MALFORMED_MESSAGES = 16

/** Bytes of a WebSocket message beyond its payload; a larger message ends its connection with 1009 [P-2.7]. */
export const MESSAGE_OVERHEAD_BYTES = 4_096
