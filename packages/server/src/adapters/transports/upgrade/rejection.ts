import { type ServerResponse, STATUS_CODES, validateHeaderName, validateHeaderValue } from 'node:http'
import type { Duplex } from 'node:stream'
import { ERRORS, type ErrorCode, WebMQError } from 'webmq-client/protocol'
import { answerEarly } from '../../../kernel/base/answer-early.js'
import type { Rejection } from '../../../kernel/ports/transport.js'

/** Headers that the transport writes; duplicates would contradict them. */
const OWN_HEADERS = new Set([
  'connection',
  'content-length',
  'sec-websocket-accept',
  'sec-websocket-extensions',
  'sec-websocket-protocol',
  'transfer-encoding',
])

const TEXT = 'text/plain; charset=utf-8'

/**
 * Checks headers before anything is written. A line break in a value would start a new header or response.
 * @throws {WebMQError} `E_OPTION_INVALID`.
 */
export function checkHeaders(headers: Readonly<Record<string, string>> = {}): void {
  for (const [name, value] of Object.entries(headers)) {
    try {
      validateHeaderName(name)
      validateHeaderValue(name, value)
    } catch (cause) {
      throw new WebMQError('E_OPTION_INVALID', { detail: `header ${JSON.stringify(name)} is not valid`, cause })
    }
    if (OWN_HEADERS.has(name.toLowerCase())) {
      throw new WebMQError('E_OPTION_INVALID', { detail: `header ${name} is written by the transport` })
    }
  }
}

/**
 * Checks a rejection, and names the type of its body.
 * @throws {WebMQError} `E_OPTION_INVALID` when the status is no refusal or a header is invalid.
 */
export function checkRejection({ status, headers = {}, body = '' }: Rejection): Required<Rejection> {
  if (!Number.isInteger(status) || status < 300 || status > 599) {
    throw new WebMQError('E_OPTION_INVALID', { detail: `status ${status} does not refuse` })
  }
  checkHeaders(headers)
  const hasContentType = body === '' || Object.keys(headers).some((name) => name.toLowerCase() === 'content-type')
  return { status, headers: hasContentType ? headers : { ...headers, 'content-type': TEXT }, body }
}

/** Details of an error answer; `status` replaces that of the error table. */
export interface RejectionDetails extends Partial<Omit<Rejection, 'body'>> {
  readonly detail?: string
}

/** The rejection for an error [P-1.4]. */
export function rejectionOf(code: ErrorCode, details: RejectionDetails = {}): Required<Rejection> {
  const { detail, status = statusOf(code), headers } = details
  const { message, docs } = new WebMQError(code, detail === undefined ? {} : { detail })
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: `${JSON.stringify({ code, message, docs })}\n`,
  }
}

/** Time that a client has to end its side after it was refused. A reset before it reads would destroy the answer. */
const LINGER_MS = 1_000

/** Answers a request with a valid rejection, and ends its connection. */
export function refuse(socket: Duplex, { status, headers, body }: Required<Rejection>): void {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const length = Buffer.byteLength(body)
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}Connection: close\r\nContent-Length: ${length}\r\n\r\n`
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.on('error', () => socket.destroy())
  socket.once('close', () => clearTimeout(timer))
  socket.end(head + body)
  // Later input is dropped.
  socket.resume()
}

/** Answers a request of Node, and ends its connection. */
export function answerWith(response: ServerResponse, { status, headers, body }: Required<Rejection>): void {
  response.shouldKeepAlive = false
  answerEarly(response.req, response)
  response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) }).end(body)
}

function statusOf(code: ErrorCode): number {
  const spec = ERRORS[code]
  return 'status' in spec ? spec.status : 500
}
