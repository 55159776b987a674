import type { IncomingMessage, ServerResponse } from 'node:http'

const MAX_DROPPED_BYTES = 16 * 1_048_576
const MAX_DROP_MS = 5_000
/** Node calls back for each piece of a chunked body, about 1.1 us: a client that sends a body in single bytes is not one that uploads. */
const SMALL_PIECE_BYTES = 512
const MAX_DROPPED_SMALL_PIECES = 1_024

const prepared = new WeakSet<ServerResponse>()

/**
 * Call it before an answer that may come before the end of the body: what is left of the body is then dropped, within bounds of
 * bytes, pieces and time, before the connection ends. A connection that ends while its client still sends is reset, and the client loses
 * the answer: a proxy in between says 502.
 */
export function answerEarly(request: IncomingMessage, response: ServerResponse): void {
  if (!hasBody(request) || request.complete || response.headersSent || prepared.has(response)) return
  prepared.add(response)
  if (request.headers.expect !== undefined) {
    // Its client waits to be told to send it.
    response.shouldKeepAlive = false
    return
  }
  const isLast = !response.shouldKeepAlive
  if (isLast) {
    // Node would end the connection with the answer. Without the header, the client that asked for its end gets no other promise.
    response.shouldKeepAlive = true
    response.removeHeader('connection')
  }
  // Once the answer is flushed, Node drops what nobody has begun to read, without a bound.
  response.once('prefinish', () => dropRest(request, response, isLast))
}

/** The client has been told to send the body, so it does not wait any more: see {@link answerEarly}. */
export function askForBody(request: IncomingMessage, response: ServerResponse): void {
  if (request.headers.expect === undefined) return
  response.writeContinue()
  delete request.headers.expect
}

/** Whether a body follows the head of a request. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0
}

function dropRest(request: IncomingMessage, response: ServerResponse, isLast: boolean): void {
  const { socket } = request
  const end = () => {
    if (isLast) socket.destroySoon()
  }
  if (request.complete) {
    response.once('finish', end)
    return
  }
  let byteCount = 0
  let smallCount = 0
  const timer = setTimeout(() => socket.destroy(), MAX_DROP_MS)
  request.once('close', () => clearTimeout(timer)).once('end', end)
  request.on('data', (chunk: Buffer) => {
    byteCount += chunk.length
    if (chunk.length < SMALL_PIECE_BYTES) smallCount++
    if (byteCount > MAX_DROPPED_BYTES || smallCount > MAX_DROPPED_SMALL_PIECES) socket.destroy()
  })
  request.resume().read()
}
