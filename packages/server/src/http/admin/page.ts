import type { IncomingMessage, ServerResponse } from 'node:http'
import { WebMQError } from 'webmq-client/protocol'
import { statusOf } from '../api/statuses.js'
import type { Callers } from '../caller.js'
import { sendError, sendFile } from '../responses.js'
import { findStaticFile } from '../static-files.js'
import { type ListenLocally, Tails } from './tail.js'

/** What an {@link AdminPage} works with. */
export interface AdminPageContext {
  /** Folder of the page's files. */
  readonly folder: string
  readonly callers: Pick<Callers, 'assertOrigin' | 'callerOf'>
  readonly listen: ListenLocally
}

const TAIL_PATH = '/admin/tail'
/** Statuses of errors that no route of the API has. */
const OF_TAILS: Readonly<Record<string, number>> = { E_PATTERN_INVALID: 422, E_CONNECTION_LIMIT: 503 }

/**
 * The page for operators: files without secrets, and the tail of a pattern. All else it gets from the HTTP API, with the
 * key that the operator types in.
 */
export class AdminPage {
  readonly #context: AdminPageContext
  readonly #tails: Tails

  constructor(context: AdminPageContext) {
    this.#context = context
    this.#tails = new Tails(context.listen)
  }

  /** Answers a GET. Returns whether the path is one of the page. */
  async respond(path: string, request: IncomingMessage, response: ServerResponse): Promise<boolean> {
    if (path === TAIL_PATH) {
      await this.#tail(request, response)
      return true
    }
    const name = path === '/' || path === '/admin' ? 'index.html' : path.slice(1)
    const file = await findStaticFile(this.#context.folder, name)
    if (file === undefined) return false
    await sendFile(response, request, file)
    return true
  }

  async #tail(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { callers } = this.#context
    try {
      callers.assertOrigin(request)
      if ((await callers.callerOf(request)).door !== 'operator') {
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
