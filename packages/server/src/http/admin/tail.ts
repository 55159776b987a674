import type { ServerResponse } from 'node:http'
import { WebMQError } from 'webmq-client/protocol'
import type { LocalGap, LocalHandler } from '../../routing/in-process/listeners.js'

/** A subscription of the process. */
export type ListenLocally = (
  pattern: string,
  handler: LocalHandler,
  options: { readonly onGap: (gap: LocalGap) => unknown },
) => { readonly ready: Promise<void>; close(): void }

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
   * Sends messages until the reader goes away; leaves out what a slow reader cannot take.
   * @throws {WebMQError} `E_PATTERN_INVALID`, `E_CONNECTION_LIMIT`, `E_NOT_RUNNING`; then nothing was sent.
   */
  async follow(pattern: string, response: ServerResponse): Promise<void> {
    if (this.#count >= MAX_TAILS) {
      throw new WebMQError('E_CONNECTION_LIMIT', { detail: `${MAX_TAILS} tails are open` })
    }
    // JSON has no line breaks, so one line is the data of one event.
    const write = (event: string, data: object) => {
      if (response.headersSent) response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
    }
    let isBehind = false
    const deliver: LocalHandler = (payload, { key, position }) => {
      if (response.writableLength > MAX_WAITING_BYTES) {
        isBehind = true
        return
      }
      if (isBehind) write('gap', { reason: 'slow-consumer' })
      isBehind = false
      const isBinary = payload instanceof Uint8Array
      const content = isBinary ? { payloadBase64: Buffer.from(payload).toString('base64') } : { payload }
      write('message', { key, ...content, position })
    }
    const subscription = this.#listen(pattern, deliver, { onGap: ({ reason }) => write('gap', { reason }) })
    this.#count++
    let heartbeat: NodeJS.Timeout | undefined
    response.once('close', () => {
      this.#count--
      clearInterval(heartbeat)
      subscription.close()
    })
    await subscription.ready
    if (response.destroyed) return
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
    response.write(': listening\n\n')
    heartbeat = setInterval(() => response.write(': still here\n\n'), HEARTBEAT_MS)
  }
}
