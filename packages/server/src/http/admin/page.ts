import type { IncomingMessage, ServerResponse } from 'node:http'
import { fileURLToPath } from 'node:url'
import { WebMQError } from 'webmq-client/protocol'
import { statusOf } from '../api/statuses.js'
import type { Callers } from '../caller.js'
import { sendError, sendFile } from '../responses.js'
import { findStaticFile } from '../static-files.js'
import { type ListenLocally, Tails } from './tail.js'

const FOLDER = fileURLToPath(new URL('../../../admin', import.meta.url))
const TAIL_PATH = '/admin/tail'
/** Statuses of errors that no route of the API has. */
const OF_TAILS: Readonly<Record<string, number>> = { E_PATTERN_INVALID: 422, E_CONNECTION_LIMIT: 503 }

/**
 * The page for operators: files without secrets, and the tail of a pattern. All else it gets from the HTTP API, with the
 * key that the operator types in.
 */
export class AdminPage {
  readonly #callers: Pick<Callers, 'assertOrigin' | 'callerOf'>
  readonly #tails: Tails

  constructor(callers: Pick<Callers, 'assertOrigin' | 'callerOf'>, listen: ListenLocally) {
    this.#callers = callers
    this.#tails = new Tails(listen)
  }

  /** Answers a GET. Returns whether the path is one of the page. */
  async respond(path: string, request: IncomingMessage, response: ServerResponse): Promise<boolean> {
    if (path === TAIL_PATH) {
      await this.#tail(request, response)
      return true
    }
    const name = path === '/' || path === '/admin' ? 'index.html' : path.slice(1)
    const file = await findStaticFile(FOLDER, name)
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
      await this.#tails.follow(searchParams.get('pattern') ?? '', response)
    } catch (error) {
      if (!(error instanceof WebMQError)) throw error
      sendError(response, request, OF_TAILS[error.code] ?? statusOf(error.code), error)
    }
  }
}
