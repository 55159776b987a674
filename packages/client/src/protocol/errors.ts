import { isReconnectable } from './close-codes.js'
import { DOCS_URL } from './docs-url.js'

/** Who must solve the problem. */
export type ErrorSource = 'client' | 'server' | 'broker' | 'network' | 'operator'

/** One row of the error table. `docs/errors.md` adds the cause and the fix of each code. */
export interface ErrorSpec {
  readonly message: string
  readonly source: ErrorSource
  /** Whether the same call may succeed later without any change. */
  readonly retryable: boolean
  /** WebSocket close code, if the error ends the connection. 4000-4499: reconnect; 4500-4999: terminal. */
  readonly closeCode?: number
  /** HTTP status, if the error refuses an upgrade request. */
  readonly status?: number
}

/** Errors that end a connection, by code: all that a bundle for browsers has of {@link ERRORS}. A test compares them. */
export const CLOSE_CODES: Readonly<Record<string, number>> = {
  E_DRAIN: 4001,
  E_AUTH_TIMEOUT: 4002,
  E_HEARTBEAT_TIMEOUT: 4003,
  E_MESSAGE_TIMEOUT: 4004,
  E_SLOW_CONSUMER: 4008,
  E_TOKEN_EXPIRED: 4009,
  E_NODE_BEHIND: 4012,
  E_CONNECTION_LIMIT: 4013,
  E_HOOK_FAILED: 4014,
  E_INTERNAL: 4011,
  E_PROTOCOL_VIOLATION: 4500,
  E_TOKEN_INVALID: 4501,
  E_TOKEN_REVOKED: 4502,
  E_DISCONNECTED_BY_OPERATOR: 4503,
  E_CONNECTION_REFUSED: 4504,
  E_FRAME_INVALID: 1002,
  E_UTF8_INVALID: 1007,
  E_MESSAGE_TOO_LARGE: 1009,
}

/** Codes of the other retryable errors that a client raises or receives. */
export const RETRYABLE =
  /^E_(TIMEOUT|DISCONNECTED|OFFLINE|QUEUE_FULL|CONNECT_FAILED|NO_RESPONDERS|STREAM_BUSY|(RATE|PRESENCE|STATE)_LIMIT|(TOKEN|BROKER)_UNAVAILABLE)$/

/** The rows for lookups at run time: in a bundle for browsers, none. */
let table: Readonly<Record<string, ErrorSpec>> = {}

/**
 * Every error of WebMQ, by code. Code, docs, wire and the native engine share this table.
 *
 * "Pure" is for bundlers only: a bundle that does not read the table, as for a browser, omits this call and its rows.
 */
export const ERRORS = /* @__PURE__ */ complete({
  // Errors that a client raises, receives, or is closed with.

  // A refused protocol message; the connection stays open.
  E_MESSAGE_INVALID: { message: 'protocol message is malformed', source: 'client', retryable: false },
  E_VERB_UNKNOWN: { message: 'verb is not known', source: 'client', retryable: false },
  E_KEY_INVALID: { message: 'key is not valid', source: 'client', retryable: false },
  E_PATTERN_INVALID: { message: 'pattern is not valid', source: 'client', retryable: false },
  E_POSITION_INVALID: { message: 'position is not valid', source: 'client', retryable: false },
  E_PAYLOAD_TOO_LARGE: { message: 'payload exceeds the limit', source: 'client', retryable: false },
  E_UNAUTHENTICATED: { message: 'authenticate first', source: 'client', retryable: false },
  E_FORBIDDEN: { message: 'not granted to this identity', source: 'client', retryable: false },
  E_LISTEN_LIMIT: { message: 'too many listens on this connection', source: 'client', retryable: false },
  E_NOT_LISTENING: { message: 'connection does not listen with this pattern', source: 'client', retryable: false },
  E_STATE_LIMIT: { message: 'too many keys are retained', source: 'client', retryable: true },
  E_STREAM_BUSY: { message: 'another stream of the key has not ended', source: 'client', retryable: true },
  E_STREAM_ENDED: { message: 'the stream has ended', source: 'client', retryable: false },
  E_STREAM_SEQUENCE: { message: 'not the next message of the stream', source: 'client', retryable: false },
  E_STREAM_LIMIT: { message: 'stream limit exceeded', source: 'client', retryable: false },
  E_NO_RESPONDERS: { message: 'nobody responds to this key', source: 'client', retryable: true },
  E_RESPONSE: { message: 'the responder failed', source: 'client', retryable: false },
  E_PRESENCE_LIMIT: { message: 'presence limit exceeded', source: 'client', retryable: true },
  E_UNSUPPORTED: { message: 'not supported by this server or its broker', source: 'client', retryable: false },
  E_RATE_LIMIT: { message: 'connection asks for too much at once', source: 'client', retryable: true },
  E_BROKER_UNAVAILABLE: { message: 'broker is unreachable or takes no messages', source: 'broker', retryable: true },

  // An error that ends the connection, after which the client reconnects.
  E_DRAIN: { message: 'server is draining', source: 'server', retryable: true, closeCode: 4001, status: 503 },
  E_AUTH_TIMEOUT: { message: 'no token arrived in time', source: 'client', retryable: true, closeCode: 4002 },
  E_HEARTBEAT_TIMEOUT: { message: 'nothing arrived in time', source: 'network', retryable: true, closeCode: 4003 },
  E_MESSAGE_TIMEOUT: { message: 'message took too long', source: 'network', retryable: true, closeCode: 4004 },
  E_SLOW_CONSUMER: { message: 'client reads too slowly', source: 'client', retryable: true, closeCode: 4008 },
  E_TOKEN_EXPIRED: { message: 'token has expired', source: 'client', retryable: true, closeCode: 4009 },
  E_NODE_BEHIND: { message: 'node is behind', source: 'server', retryable: true, closeCode: 4012 },
  E_CONNECTION_LIMIT: {
    message: 'server holds as many connections as it may',
    source: 'server',
    retryable: true,
    closeCode: 4013,
    status: 503,
  },
  E_HOOK_FAILED: { message: 'a hook of the server failed', source: 'operator', retryable: true, closeCode: 4014 },
  E_INTERNAL: { message: 'internal error', source: 'server', retryable: true, closeCode: 4011, status: 500 },

  // An error that ends the connection for good.
  E_PROTOCOL_VIOLATION: { message: 'too many malformed messages', source: 'client', retryable: false, closeCode: 4500 },
  E_TOKEN_INVALID: { message: 'token is not valid', source: 'client', retryable: false, closeCode: 4501 },
  E_TOKEN_REVOKED: { message: 'token has been revoked', source: 'client', retryable: false, closeCode: 4502 },
  E_DISCONNECTED_BY_OPERATOR: {
    message: 'operator ended the connection',
    source: 'operator',
    retryable: false,
    closeCode: 4503,
  },
  E_CONNECTION_REFUSED: {
    message: 'a hook of the server refuses the connection',
    source: 'client',
    retryable: false,
    closeCode: 4504,
  },

  // A WebSocket protocol error (RFC 6455 §7.4.1).
  E_FRAME_INVALID: { message: 'WebSocket frame is malformed', source: 'client', retryable: false, closeCode: 1002 },
  E_UTF8_INVALID: { message: 'text is not UTF-8', source: 'client', retryable: false, closeCode: 1007 },
  E_MESSAGE_TOO_LARGE: {
    message: 'WebSocket message exceeds the limit',
    source: 'client',
    retryable: false,
    closeCode: 1009,
  },

  // Raised by the client library.
  E_TIMEOUT: { message: 'no answer in time', source: 'network', retryable: true },
  E_DISCONNECTED: { message: 'connection was lost', source: 'network', retryable: true },
  E_OFFLINE: { message: 'not connected, and queueing is off', source: 'network', retryable: true },
  E_QUEUE_FULL: { message: 'offline queue is full', source: 'client', retryable: true },
  E_CLOSED: { message: 'client is closed', source: 'client', retryable: false },
  E_ABORTED: { message: 'aborted by its signal', source: 'client', retryable: false },
  E_BUFFER_OVERFLOW: { message: 'iterator reads too slowly', source: 'client', retryable: false },
  E_CONNECT_FAILED: { message: 'could not connect', source: 'network', retryable: true },
  E_TOKEN_UNAVAILABLE: { message: 'token() failed', source: 'client', retryable: true },
  E_PAYLOAD_INVALID: { message: 'payload cannot be encoded or decoded', source: 'client', retryable: false },

  // Raised by client and server to their operator.
  E_OPTION_INVALID: { message: 'option is not valid', source: 'operator', retryable: false },

  // Errors that clients never see as such: a browser does not tell scripts why an upgrade was refused.

  // A refused upgrade request.
  E_HANDSHAKE_INVALID: {
    message: 'request is not a WebSocket handshake',
    source: 'client',
    retryable: false,
    status: 400,
  },
  E_SUBPROTOCOL_UNSUPPORTED: {
    message: 'no offered subprotocol is supported',
    source: 'client',
    retryable: false,
    status: 400,
  },
  E_ORIGIN_FORBIDDEN: { message: 'origin is not allowed', source: 'client', retryable: false, status: 403 },
  E_PATH_NOT_FOUND: { message: 'no WebSocket endpoint at this path', source: 'client', retryable: false, status: 404 },
  E_HANDSHAKE_TIMEOUT: { message: 'handshake took too long', source: 'network', retryable: true, status: 408 },
  E_HEADERS_TOO_LARGE: { message: 'request headers exceed the limit', source: 'client', retryable: false, status: 431 },

  // An answer of the HTTP API alone.
  E_REQUEST_INVALID: { message: 'HTTP request is malformed', source: 'client', retryable: false },
  E_STREAM_NOT_FOUND: { message: 'there is no stream at this key', source: 'client', retryable: false },
  E_STREAM_GONE: { message: 'the log no longer has the whole stream', source: 'client', retryable: false },

  // Raised by the server to the process that runs it.
  E_INSECURE: { message: 'refusing an insecure configuration', source: 'operator', retryable: false, status: 403 },
  E_ADDRESS_IN_USE: { message: 'address is in use', source: 'operator', retryable: true },
  E_ADDRESS_UNAVAILABLE: { message: 'address cannot be bound', source: 'operator', retryable: false },
  E_TRANSPORT_MISSING: { message: 'transport module is not installed', source: 'operator', retryable: false },
  E_TRANSPORT_FAILED: { message: 'transport failed', source: 'server', retryable: true },
  E_BROKER_MISSING: { message: 'broker module is not installed', source: 'operator', retryable: false },
  E_BROKER_REFUSED: { message: 'broker refuses this server', source: 'operator', retryable: false },
  E_NOT_RUNNING: { message: 'server is not running', source: 'operator', retryable: false },
})

/** What ends every message of this process: nothing, or a link in a client's build for development. */
let ending = (_code: ErrorCode, _message: string): string => ''

/** Sets what ends the messages of all errors. */
export function endMessages(by: typeof ending): void {
  ending = by
}

/** A detail of an error as messages have it: as it is or, in a client's build for development, as a sentence. */
let explained = (_code: ErrorCode, detail: string): string => detail

/** Sets what makes sentences of the details of all errors. */
export function explainDetails(by: typeof explained): void {
  explained = by
}

function complete<const T extends Record<string, ErrorSpec>>(rows: T): T {
  table = rows
  return rows
}

/** A code of the error table. */
export type ErrorCode = keyof typeof ERRORS

/** Codes that clients never see as such. */
const UNSEEN: ReadonlySet<string> = /* @__PURE__ */ new Set<ErrorCode>([
  'E_HANDSHAKE_INVALID',
  'E_SUBPROTOCOL_UNSUPPORTED',
  'E_ORIGIN_FORBIDDEN',
  'E_PATH_NOT_FOUND',
  'E_HANDSHAKE_TIMEOUT',
  'E_HEADERS_TOO_LARGE',
  'E_REQUEST_INVALID',
  'E_STREAM_NOT_FOUND',
  'E_STREAM_GONE',
  'E_INSECURE',
  'E_ADDRESS_IN_USE',
  'E_ADDRESS_UNAVAILABLE',
  'E_TRANSPORT_MISSING',
  'E_TRANSPORT_FAILED',
  'E_BROKER_MISSING',
  'E_BROKER_REFUSED',
  'E_NOT_RUNNING',
])

/** Whether clients of this version know the code. Only a server needs it: it brings {@link ERRORS} along. */
export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code) && !UNSEEN.has(code)
}

/** The close code of an error; `undefined` for an error that does not end the connection. */
export function closeCodeOf(code: ErrorCode): number | undefined {
  return CLOSE_CODES[code]
}

/** The error of a close code, to report a close like any error; `undefined` for codes that are not in the table. */
export function errorOfCloseCode(closeCode: number): ErrorCode | undefined {
  return (Object.keys(CLOSE_CODES) as ErrorCode[]).find((code) => CLOSE_CODES[code] === closeCode)
}

/** Options of a {@link WebMQError}. */
export interface WebMQErrorOptions {
  /** The exact problem; appended to the table's message. Never contains a secret. */
  readonly detail?: string | undefined
  /** The whole message, instead of the table's and `detail`; for messages of a server. */
  readonly message?: string
  /** The error of the layer below. */
  readonly cause?: unknown
  /** Id of the refused protocol message, if it was readable; an `error` reply answers to it. */
  readonly requestId?: string | undefined
  /** Whether the same call may succeed later; for errors of a server. Default: as in the table. */
  readonly retryable?: boolean
}

/** Every error that WebMQ throws, rejects with or reports. */
export class WebMQError extends Error {
  override readonly name = 'WebMQError'
  readonly code: ErrorCode
  /** Id of the refused protocol message, if it was readable. */
  readonly requestId: string | undefined
  readonly #retryable: boolean | undefined

  constructor(code: ErrorCode, options: WebMQErrorOptions = {}) {
    const { detail, message, cause, requestId, retryable } = options
    // Without the table: the code, with the link.
    const general = table[code]?.message ?? `${code} (${docsOf(code)})`
    const text = message ?? (detail === undefined ? general : `${general}: ${explained(code, detail)}`)
    super(text + ending(code, text), cause === undefined ? {} : { cause })
    this.code = code
    this.requestId = requestId
    this.#retryable = retryable
  }

  /** Whether the same call may succeed later without any change. */
  get retryable(): boolean {
    const { code } = this
    const closeCode = CLOSE_CODES[code]
    return (
      this.#retryable ?? (closeCode ? isReconnectable(closeCode) : (table[code]?.retryable ?? RETRYABLE.test(code)))
    )
  }

  /** Link to the cause and the fix. */
  get docs(): string {
    return docsOf(this.code)
  }
}

/** Link to the cause and the fix of an error. */
export function docsOf(code: string): string {
  return `${DOCS_URL}errors.md#${code.toLowerCase()}`
}
