import type { IncomingMessage, ServerResponse } from 'node:http'
import type { WebMQError } from 'webmq-client/protocol'
import type { StaticFile } from './static-files.js'

/** Allows only files of this server and no inline scripts, so that text in keys and payloads never runs. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const COMMON_HEADERS = { 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' }

/** Sends a file, or 304 when the client has it. */
export async function sendFile(response: ServerResponse, request: IncomingMessage, file: StaticFile): Promise<void> {
  const headers = { ...COMMON_HEADERS, etag: file.etag, 'cache-control': 'no-cache' }
  if (request.headers['if-none-match'] === file.etag) {
    response.writeHead(304, headers).end()
    return
  }
  const body = request.method === 'HEAD' ? undefined : await file.read()
  response.writeHead(200, {
    ...headers,
    'content-type': file.contentType,
    'content-length': body?.length ?? file.byteCount,
    'content-security-policy': CONTENT_SECURITY_POLICY,
  })
  response.end(body)
}

/** Sends an error as JSON. */
export function sendError(response: ServerResponse, request: IncomingMessage, status: number, error: WebMQError): void {
  const { code, message, docs } = error
  sendJson(response, request, status, { code, message, docs })
}

/** Sends JSON that nobody keeps. */
export function sendJson(response: ServerResponse, request: IncomingMessage, status: number, json: object): void {
  sendText(response, request, status, 'application/json; charset=utf-8', `${JSON.stringify(json)}\n`)
}

/** Sends text that nobody keeps; its size only for HEAD. */
export function sendText(
  response: ServerResponse,
  request: IncomingMessage,
  status: number,
  contentType: string,
  body: string,
): void {
  response.writeHead(status, {
    ...COMMON_HEADERS,
    'content-type': contentType,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  })
  response.end(request.method === 'HEAD' ? undefined : body)
}
