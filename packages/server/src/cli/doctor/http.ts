import { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request as plainRequest } from 'node:http'
import { request as secureRequest } from 'node:https'
import { isIP } from 'node:net'
import type { DoctorTarget } from './target.js'
import { trustOf } from './tls.js'

/** More of a body is not read: it is an error page. */
const MAX_BODY_BYTES = 64 * 1024

/** An answer to a request. */
export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The beginning of the body. */
  readonly body: string
  /** Halfway between question and answer, Unix time. */
  readonly atMs: number
}

/** Sends one GET over a connection of its own. An answer with 101 ends the connection. */
export function ask(
  target: DoctorTarget,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const { host, port, isSecure, ca, timeoutMs, url } = target
  return new Promise((resolve, reject) => {
    const sentMs = Date.now()
    const options = { host, port, path, agent: false, headers: { host: url.host, ...headers } }
    const request: ClientRequest = isSecure
      ? secureRequest({
          ...options,
          // Certificates have findings of their own, and nothing secret is sent.
          rejectUnauthorized: false,
          ...(isIP(host) === 0 ? { servername: host } : {}),
          ...trustOf(ca),
        })
      : plainRequest(options)
    const timer = setTimeout(() => request.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs)
    const answered = ({ statusCode = 0, headers: received }: IncomingMessage, body: string) => {
      clearTimeout(timer)
      request.destroy()
      resolve({ status: statusCode, headers: received, body, atMs: (sentMs + Date.now()) / 2 })
    }
    request.on('upgrade', (response, socket) => {
      socket.destroy()
      answered(response, '')
    })
    request.on('response', (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text
        if (body.length > MAX_BODY_BYTES) answered(response, body)
      })
      response.on('end', () => answered(response, body))
      response.on('error', reject)
    })
    request.on('error', (error) => {
      clearTimeout(timer)
      reject(error)
    })
    request.end()
  })
}

/** The members of a JSON object; none for anything else. */
export function jsonOf({ body }: Answer): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
