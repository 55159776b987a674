import type { IncomingMessage, ServerResponse } from 'node:http'
import { fileURLToPath } from 'node:url'
import { WebMQError } from 'webmq-client/protocol'
import type { LocalHandler } from '../../../kernel/routing/local-listeners.js'
import { statusOf } from '../api/statuses.js'
import type { Callers } from '../caller.js'
import type { ListenLocally } from '../context.js'
import { findStaticFile, sendError, sendFile } from '../responses.js'

const FOLDER = fileURLToPath(new URL('../../../../admin', import.meta.url))
/** Both pages look alike. */
const FOLDER_OF_DEMO = fileURLToPath(new URL('../../../../demo', import.meta.url))
const LOOK = 'look.css'
const TAIL_PATH = '/admin/tail'
/** Statuses of errors that no route of the API has. */
const OF_TAILS: Readonly<Record<string, number>> = { E_PATTERN_INVALID: 422, E_CONNECTION_LIMIT: 503 }

/** Each costs a listener; operators have few windows. */
const MAX_TAILS = 8
/** Output that may wait for one reader. Beyond it, messages are left out and a gap is told. */
const MAX_WAITING_BYTES = 1024 * 1024
const HEARTBEAT_MS = 15_000

/**
 * The page for operators: files without secrets, and the tail of a pattern. All else it gets from the HTTP API, with the
 * key that the operator types in.
 */
export class AdminPage {
  readonly #callers: Pick<Callers, 'assertOrigin' | 'callerOf'>
  readonly #listen: ListenLocally
  #tailCount = 0

  constructor(callers: Pick<Callers, 'assertOrigin' | 'callerOf'>, listen: ListenLocally) {
    this.#callers = callers
    this.#listen = listen
  }

  /** Answers a GET. Returns whether the path is one of the page. */
  async respond(path: string, request: IncomingMessage, response: ServerResponse): Promise<boolean> {
    if (path === TAIL_PATH) {
      await this.#tail(request, response)
      return true
    }
    const name = path === '/' || path === '/admin' ? 'index.html' : path.slice(1)
    const file = await findStaticFile(name === LOOK ? FOLDER_OF_DEMO : FOLDER, name)
    if (file === undefined) return false
    await sendFile(response, request, file)
    return true
  }

  async #tail(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      this.#callers.assertOrigin(request)
      if ((await this.#callers.callerOf(request)).door !== 'operator') {
        throw new WebMQError('E_FORBIDDEN', { detail: 'this needs an API key' })
      }
      const { searchParams } = new URL(request.url ?? '', 'http://localhost')
      await this.#follow(searchParams.get('pattern') ?? '', response)
    } catch (error) {
      if (!(error instanceof WebMQError)) throw error
      sendError(response, request, OF_TAILS[error.code] ?? statusOf(error.code), error)
    }
  }

  /**
   * Sends messages until the reader goes away; leaves out what a slow reader cannot take.
   * @throws {WebMQError} `E_PATTERN_INVALID`, `E_CONNECTION_LIMIT`, `E_NOT_RUNNING`; then nothing was sent.
   */
  async #follow(pattern: string, response: ServerResponse): Promise<void> {
    if (this.#tailCount >= MAX_TAILS) {
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
      try {
        write('message', { key, ...content, position })
      } catch {
        // It is nested so deeply that it cannot be written again.
        write('gap', { reason: 'refused' })
      }
    }
    const subscription = this.#listen(pattern, deliver, { onGap: ({ reason }) => write('gap', { reason }) })
    this.#tailCount++
    let heartbeat: NodeJS.Timeout | undefined
    response.once('close', () => {
      this.#tailCount--
      clearInterval(heartbeat)
      subscription.close()
    })
    await subscription.ready
    if (response.destroyed) return
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store, no-transform' })
    response.write(': listening\n\n')
    heartbeat = setInterval(() => response.write(': still here\n\n'), HEARTBEAT_MS)
  }
}
