import type { ServerResponse } from 'node:http'
import { WebMQError } from 'webmq-client/protocol'
import type { LocalGap, LocalHandler } from '../../routing/in-process/listeners.js'

/** A subscription of the process. */
export type ListenLocally = (
  pattern: string,
  handler: LocalHandler,
  options: { readonly onGap: (gap: LocalGap) => unknown },
) => { readonly ready: Promise<void>; unlisten(): void }

/** Each costs a listener; operators have few windows. */
const MAX_TAILS = 8
/** Output that may wait for one reader. Beyond it, messages are left out and a gap is told. */
const MAX_WAITING_BYTES = 1024 * 1024
const HEARTBEAT_MS = 15_000

/** Streams the messages of patterns to operators, as server-sent events. */
export class Tails {
  readonly #listen: ListenLocally
  #count = 0

  constructor(listen: ListenLocally) {
    this.#listen = listen
  }

  /**
   * Sends messages until the reader goes away.
   * @throws {WebMQError} `E_PATTERN_INVALID`, `E_CONNECTION_LIMIT`, `E_NOT_RUNNING`; then nothing was sent.
   */
  async follow(pattern: string, response: ServerResponse): Promise<void> {
    if (this.#count >= MAX_TAILS) {
      throw new WebMQError('E_CONNECTION_LIMIT', { detail: `${MAX_TAILS} tails are open` })
    }
    const reader = new TailReader(response)
    const subscription = this.#listen(pattern, (payload, message) => reader.message(payload, message), {
      onGap: ({ reason }) => reader.gap(reason),
    })
    this.#count++
    let heartbeat: NodeJS.Timeout | undefined
    response.once('close', () => {
      this.#count--
      clearInterval(heartbeat)
      subscription.unlisten()
    })
    await subscription.ready
    if (response.destroyed) return
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
    response.write(': listening\n\n')
    heartbeat = setInterval(() => response.write(': still here\n\n'), HEARTBEAT_MS)
  }
}

/** Writes events, and leaves out what a slow reader cannot take. */
class TailReader {
  readonly #response: ServerResponse
  #isBehind = false

  constructor(response: ServerResponse) {
    this.#response = response
  }

  message(payload: unknown, message: { readonly key: string; readonly position?: string }): void {
    if (this.#response.writableLength > MAX_WAITING_BYTES) {
      this.#isBehind = true
      return
    }
    if (this.#isBehind) this.gap('slow-consumer')
    this.#isBehind = false
    const content =
      payload instanceof Uint8Array ? { payloadBase64: Buffer.from(payload).toString('base64') } : { payload }
    const { key, position } = message
    this.#write('message', { key, ...content, ...(position === undefined ? {} : { position }) })
  }

  gap(reason: string): void {
    this.#write('gap', { reason })
  }

  /** JSON has no line breaks, so one line is the data of one event. */
  #write(event: string, data: object): void {
    if (this.#response.headersSent) this.#response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
  }
}
