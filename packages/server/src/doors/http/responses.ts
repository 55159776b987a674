import { readFile, stat } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { extname, resolve, sep } from 'node:path'
import type { WebMQError } from 'webmq-client/protocol'
import { encodeWithTexts } from '../../kernel/base/json-text.js'

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

export const COMMON_HEADERS = { 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' }

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

export function sendError(
  response: ServerResponse,
  request: IncomingMessage,
  status: number,
  error: WebMQError,
  members?: object,
): void {
  const { code, message, docs } = error
  sendJson(response, request, status, { code, message, docs, ...members })
}

/** Sends JSON that nobody keeps. What others have sent is a `JsonText` in it. */
export function sendJson(response: ServerResponse, request: IncomingMessage, status: number, json: object): void {
  sendText(response, request, status, 'application/json; charset=utf-8', `${encodeWithTexts(json)}\n`)
}

/** Sends text that nobody keeps; its size only for HEAD. */
export function sendText(
  response: ServerResponse,
  request: IncomingMessage,
  status: number,
  contentType: string,
  body: string | Uint8Array,
): void {
  response.writeHead(status, {
    ...COMMON_HEADERS,
    'content-type': contentType,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  })
  response.end(request.method === 'HEAD' ? undefined : body)
}

/** Time for which a browser keeps the answer to a preflight request. */
const PREFLIGHT_MAX_AGE_S = 600

/** What an answer without JSON says about its stream. */
const STREAM_HEADERS = ['webmq-stream', 'webmq-status', 'webmq-position', 'webmq-cut'] as const

/** Lets the page that asked read the answer. Call it only for an allowed origin. */
export function allowOrigin(request: IncomingMessage, response: ServerResponse): void {
  const { origin } = request.headers
  response.setHeader('vary', 'origin')
  if (origin === undefined) return
  response.setHeader('access-control-allow-origin', origin)
  response.setHeader('access-control-expose-headers', `retry-after, ${STREAM_HEADERS.join(', ')}`)
}

/** Answers the question of a browser whether a page may send a request with these methods. Call it only for an allowed origin. */
export function answerPreflight(
  request: IncomingMessage,
  response: ServerResponse,
  methods: readonly string[],
  headers = '',
): void {
  allowOrigin(request, response)
  response.writeHead(204, {
    allow: methods.join(', '),
    'access-control-allow-methods': methods.join(', '),
    'access-control-allow-headers': `authorization, content-type, idempotency-key, last-event-id, traceparent${headers}`,
    'access-control-max-age': `${PREFLIGHT_MAX_AGE_S}`,
  })
  response.end()
}

/** Served file types. Other files, such as TypeScript sources, are not found. */
const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

export interface StaticFile {
  readonly contentType: string
  /** Changes with the file. */
  readonly etag: string
  readonly byteCount: number
  read(): Promise<Uint8Array>
}

/**
 * Finds a file below a folder.
 *
 * @param folder Absolute path of the folder. Targets of links in it count as inside.
 * @param urlPath Path below the folder, percent-encoded, without a leading slash.
 * @returns `undefined` when the file does not exist, its type is not served, or the path leaves the folder.
 */
export async function findStaticFile(folder: string, urlPath: string): Promise<StaticFile | undefined> {
  const relative = decode(urlPath)
  if (relative === undefined || /[\\\0]/.test(relative)) return undefined
  // Dot files are never served.
  if (relative.split('/').some((name) => name.startsWith('.'))) return undefined
  const path = resolve(folder, relative)
  const contentType = CONTENT_TYPES[extname(path)]
  if (contentType === undefined || !path.startsWith(folder + sep)) return undefined
  const stats = await stat(path).catch(() => undefined)
  if (stats === undefined || !stats.isFile()) return undefined
  return {
    contentType,
    etag: `W/"${stats.size.toString(36)}-${Math.round(stats.mtimeMs).toString(36)}"`,
    byteCount: stats.size,
    read: () => readFile(path),
  }
}

function decode(urlPath: string): string | undefined {
  try {
    return decodeURIComponent(urlPath)
  } catch {
    return undefined
  }
}
