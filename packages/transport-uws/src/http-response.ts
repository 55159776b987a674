import type { IncomingMessage } from 'node:http'
import type { UwsResponse } from './module.js'
import { statusLine } from './response.js'

/** RFC 9110 §7.6.1: headers of one connection. uWebSockets.js writes its own, and also `date` and `content-length`. */
const NOT_FORWARDED = new Set([
  'connection',
  'content-length',
  'date',
  'keep-alive',
  'proxy-connection',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Writes the response of an `http` server to a client of uWebSockets.js, at the pace of the client. */
export class UwsHttpResponse {
  readonly #response: UwsResponse
  #isStarted = false
  #isOver = false
  /** The rest of the body that `tryEnd` did not accept, and its offset. */
  #rest: Buffer | undefined
  #restOffset = 0

  /** @param onAborted Called when the client has disconnected. */
  constructor(response: UwsResponse, onAborted: () => void) {
    this.#response = response
    response.onAborted(() => {
      this.#isOver = true
      onAborted()
    })
  }

  /** The response is complete or its client has disconnected; writing is an error. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Aborts the exchange, so that the client sees a broken response instead of a short one. */
  abort(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#response.close()
  }

  /** Answers with `write` if nothing has been written yet; otherwise aborts. */
  fail(write: (response: UwsResponse) => void): void {
    if (this.#isStarted) this.abort()
    else this.#complete(write)
  }

  /** @param method Method of the request; a response to HEAD has a length and no body. */
  forward(incoming: IncomingMessage, method: string): void {
    if (this.#isOver) {
      incoming.destroy()
      return
    }
    this.#isStarted = true
    const { statusCode = 502, statusMessage } = incoming
    const length = incoming.headers['content-length']
    const totalBytes = length === undefined ? undefined : Number(length)
    this.#response.cork(() => {
      this.#response.writeStatus(statusLine(statusCode, statusMessage))
      for (const [name, value] of pairs(incoming.rawHeaders)) {
        if (!NOT_FORWARDED.has(name.toLowerCase())) this.#response.writeHeader(name, value)
      }
      // RFC 9110 §6.4.1: these never have a body, regardless of their headers.
      const isBodyless = method === 'HEAD' || statusCode === 204 || statusCode === 304
      if (isBodyless) this.#endWithoutBody(length)
      else if (totalBytes === 0) this.#complete((response) => response.endWithoutBody(0))
    })
    incoming.once('error', () => this.abort())
    if (this.#isOver) incoming.resume()
    else if (totalBytes === undefined) this.#pumpChunks(incoming)
    else this.#pumpBody(incoming, totalBytes)
  }

  #complete(write: (response: UwsResponse) => void): void {
    if (this.#isOver) return
    this.#isOver = true
    write(this.#response)
  }

  #endWithoutBody(length: string | undefined): void {
    this.#complete((response) => {
      // With a length, `endWithoutBody` would wait for that many bytes.
      if (length !== undefined) response.writeHeader('content-length', length)
      response.endWithoutBody()
    })
  }

  /** A body of unknown length, chunked. */
  #pumpChunks(incoming: IncomingMessage): void {
    this.#response.onWritable(() => {
      incoming.resume()
      return true
    })
    incoming.on('data', (chunk: Buffer) => {
      if (this.#isOver) return
      this.#response.cork(() => {
        // A chunk is always accepted; `false` means that it waits.
        if (!this.#response.write(chunk)) incoming.pause()
      })
    })
    incoming.once('end', () => this.#complete((response) => response.cork(() => response.end())))
  }

  /** A body of known length. */
  #pumpBody(incoming: IncomingMessage, totalBytes: number): void {
    this.#response.onWritable((offset) => {
      const rest = this.#rest?.subarray(offset - this.#restOffset)
      this.#rest = undefined
      const isTaken = rest === undefined || this.#tryEnd(rest, totalBytes)
      if (isTaken) incoming.resume()
      return isTaken
    })
    incoming.on('data', (chunk: Buffer) => {
      if (this.#isOver) return
      this.#response.cork(() => {
        if (!this.#tryEnd(chunk, totalBytes)) incoming.pause()
      })
    })
    incoming.once('end', () => {
      if (this.#rest === undefined) this.abort()
    })
  }

  #tryEnd(chunk: Buffer, totalBytes: number): boolean {
    const offset = this.#response.getWriteOffset()
    const [isTaken, isComplete] = this.#response.tryEnd(chunk, totalBytes)
    if (isComplete) this.#isOver = true
    else if (!isTaken) {
      this.#rest = chunk
      this.#restOffset = offset
    }
    return isTaken || isComplete
  }
}

function pairs(rawHeaders: readonly string[]): [string, string][] {
  return Array.from({ length: rawHeaders.length / 2 }, (_, index) => [
    rawHeaders[2 * index] ?? '',
    rawHeaders[2 * index + 1] ?? '',
  ])
}
