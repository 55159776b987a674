import { STATUS_CODES, validateHeaderName, validateHeaderValue } from 'node:http'
import { ERRORS, type ErrorCode, WebMQError } from 'webmq-client/protocol'
import type { Rejection } from '../../ports/transport.js'
import type { UwsResponse } from './module.js'

/** Headers that uWebSockets.js writes; duplicates would contradict them. */
const OWN_HEADERS = new Set([
  'connection',
  'content-length',
  'sec-websocket-accept',
  'sec-websocket-extensions',
  'sec-websocket-protocol',
  'transfer-encoding',
])

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
 * Answers a request and closes its connection.
 * @throws {WebMQError} `E_OPTION_INVALID` when the status is no refusal or a header is invalid; nothing is written then.
 */
export function writeRejection(response: UwsResponse, { status, headers = {}, body = '' }: Rejection): void {
  if (!Number.isInteger(status) || status < 300 || status > 599) {
    throw new WebMQError('E_OPTION_INVALID', { detail: `status ${status} does not refuse` })
  }
  checkHeaders(headers)
  const hasContentType = body === '' || Object.keys(headers).some((name) => name.toLowerCase() === 'content-type')
  response.cork(() => {
    response.writeStatus(statusLine(status))
    for (const [name, value] of Object.entries(headers)) response.writeHeader(name, value)
    if (!hasContentType) response.writeHeader('content-type', 'text/plain; charset=utf-8')
    response.end(body, true)
  })
}

/** Details of an error answer; `status` replaces that of the error table. */
export interface RejectionDetails extends Partial<Omit<Rejection, 'body'>> {
  readonly detail?: string
}

/** The rejection for an error [P-1.4]. */
export function rejectionOf(code: ErrorCode, details: RejectionDetails = {}): Rejection {
  const { detail, status = statusOf(code), headers } = details
  const { message, docs } = new WebMQError(code, detail === undefined ? {} : { detail })
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: `${JSON.stringify({ code, message, docs })}\n`,
  }
}

/** Answers a request with an error and closes its connection. */
export function writeError(response: UwsResponse, code: ErrorCode, details?: RejectionDetails): void {
  writeRejection(response, rejectionOf(code, details))
}

/** Status and phrase in the form of `writeStatus`. */
export function statusLine(status: number, phrase: string = STATUS_CODES[status] ?? ''): string {
  return `${status} ${phrase}`
}

function statusOf(code: ErrorCode): number {
  const spec = ERRORS[code]
  return 'status' in spec ? spec.status : 500
}
