import type { Wire } from '../connection/sender.js'
import { errorOfServer } from '../connection/server-error.js'
import { type ClientMessage, type PresenceOp, type ServerMessage, WebMQError } from '../protocol/index.js'

type From<V extends ServerMessage['verb']> = Extract<ServerMessage, { verb: V }>

/** What became of a question: the server's `ok`, its error, `E_TIMEOUT` or `E_DISCONNECTED`. */
export type Answer = From<'ok'> | WebMQError

/** A request before it has an id. Options that are `undefined` are left out. */
export type Question =
  | ({ readonly verb: 'listen' | 'unlisten'; readonly pattern: string } & Start)
  | ({ readonly verb: 'history'; readonly key: string } & Start & {
        readonly limit?: number | undefined
        readonly reverse?: true | undefined
      })
  | {
      readonly verb: 'presence'
      readonly key: string
      readonly op: 'enter' | PresenceOp
      readonly member?: string
      readonly data?: string | undefined
    }

/** Where a replay is to begin; at most one of them for a listen. */
export interface Start {
  readonly since?: string | undefined
  readonly last?: number | undefined
  readonly rewindMs?: number | undefined
}

/** Requests that wait for their answers. Each gets exactly one: from the server, from its timer, or from the lost connection. */
export class Questions {
  readonly #wire: Wire
  readonly #timeoutMs: number
  readonly #waiting = new Map<string, (answer: Answer) => void>()
  #lastId = 0

  constructor(wire: Wire, timeoutMs: number) {
    this.#wire = wire
    this.#timeoutMs = timeoutMs
  }

  /** Sends a request; the connection must be live. */
  ask(question: Question, onAnswer: (answer: Answer) => void): void {
    const id = `l${++this.#lastId}`
    const settle = (answer: Answer) => {
      clearTimeout(timer)
      this.#waiting.delete(id)
      onAnswer(answer)
    }
    const timer = setTimeout(() => settle(new WebMQError('E_TIMEOUT')), this.#timeoutMs)
    this.#waiting.set(id, settle)
    // The encoder leaves out options that are undefined.
    this.#wire.send({ ...question, id } as ClientMessage)
  }

  /** Takes a message of the server; returns whether it was an answer to one of these. */
  answer(message: From<'ok'> | From<'error'>): boolean {
    const settle = this.#waiting.get(message.id ?? '')
    settle?.(message.verb === 'ok' ? message : errorOfServer(message))
    return settle !== undefined
  }

  /** The connection is gone. */
  down(): void {
    for (const settle of [...this.#waiting.values()]) settle(new WebMQError('E_DISCONNECTED'))
  }
}
