import { STATUS_CODES } from 'node:http'
import type { Rejection } from 'webmq-server/ports'
import { rejectionOf } from 'webmq-server/transports'
import type { UwsResponse } from './module.js'

/** Answers a request with a valid rejection, and closes its connection. */
export function writeRejection(response: UwsResponse, { status, headers, body }: Required<Rejection>): void {
  response.cork(() => {
    response.writeStatus(statusLine(status))
    for (const [name, value] of Object.entries(headers)) response.writeHeader(name, value)
    response.end(body, true)
  })
}

/** Answers a request with an error and closes its connection. */
export function writeError(response: UwsResponse, ...error: Parameters<typeof rejectionOf>): void {
  writeRejection(response, rejectionOf(...error))
}

/** Status and phrase in the form of `writeStatus`. */
export function statusLine(status: number, phrase: string = STATUS_CODES[status] ?? ''): string {
  return `${status} ${phrase}`
}
