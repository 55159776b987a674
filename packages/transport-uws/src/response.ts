import { STATUS_CODES } from 'node:http'
import type { ErrorCode } from 'webmq-client/protocol'
import type { Rejection } from 'webmq-server/ports'
import { checkRejection, type RejectionDetails, rejectionOf } from 'webmq-server/transports'
import type { UwsResponse } from './module.js'

/**
 * Answers a request and closes its connection.
 * @throws {WebMQError} `E_OPTION_INVALID` when the status is no refusal or a header is invalid; nothing is written then.
 */
export function writeRejection(response: UwsResponse, rejection: Rejection): void {
  const { status, headers, body } = checkRejection(rejection)
  response.cork(() => {
    response.writeStatus(statusLine(status))
    for (const [name, value] of Object.entries(headers)) response.writeHeader(name, value)
    response.end(body, true)
  })
}

/** Answers a request with an error and closes its connection. */
export function writeError(response: UwsResponse, code: ErrorCode, details?: RejectionDetails): void {
  writeRejection(response, rejectionOf(code, details))
}

/** Status and phrase in the form of `writeStatus`. */
export function statusLine(status: number, phrase: string = STATUS_CODES[status] ?? ''): string {
  return `${status} ${phrase}`
}
