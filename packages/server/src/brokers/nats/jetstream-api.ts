import { WebMQError } from 'webmq-client/protocol'
import type { NatsWire } from './wire.js'

const PREFIX = '$JS.API.'
/** Requests that wait for their answers at a time; a link makes them one after the other. */
const MAX_REQUESTS = 16
/** In a cluster whoever was asked may be gone, and nobody says so. */
const REQUEST_TIMEOUT_MS = 3_000

/** What JetStream answers to what it does not do. */
export class JetStreamError extends Error {
  /** Its own number for the reason. */
  readonly reason: number

  constructor(description: string, reason: number) {
    super(`JetStream: ${description}`)
    this.reason = reason
  }
}

/** The numbers of JetStream's reasons that are looked at. */
export const JETSTREAM_REASONS = {
  insufficientResources: 10_023,
  notEnabledForAccount: 10_039,
  noStorage: 10_047,
  invalidConfig: 10_052,
  nameInUse: 10_058,
  streamNotFound: 10_059,
  subjectsOverlap: 10_065,
  tooManyReplicas: 10_074,
  notEnabled: 10_076,
} as const

/** Trying again is of no use: somebody has to change something at the server. */
const FINAL_REASONS: ReadonlySet<number> = new Set([
  JETSTREAM_REASONS.insufficientResources,
  JETSTREAM_REASONS.notEnabledForAccount,
  JETSTREAM_REASONS.noStorage,
  JETSTREAM_REASONS.invalidConfig,
  JETSTREAM_REASONS.subjectsOverlap,
  JETSTREAM_REASONS.tooManyReplicas,
  JETSTREAM_REASONS.notEnabled,
])

interface Waiter {
  resolve(answer: object): void
  reject(cause: Error): void
}

/** Requests to JetStream and their answers, over one link. */
export class JetStreamApi {
  readonly #wire: NatsWire
  readonly #replyPrefix: string
  readonly #waiters = new Map<number, Waiter>()
  #lastRequest = 0

  /** @param replyPrefix Where answers go to, with a number behind it. */
  constructor(wire: NatsWire, replyPrefix: string) {
    this.#wire = wire
    this.#replyPrefix = replyPrefix
  }

  /**
   * Asks, and resolves with the answer.
   * @param name `STREAM.INFO.chat-log`
   * @throws {JetStreamError} for what it does not do; {WebMQError} `E_BROKER_REFUSED` where that is final; anything else after 3 s.
   */
  async ask(name: string, body: object): Promise<object> {
    if (this.#waiters.size >= MAX_REQUESTS)
      throw new Error(`JetStream leaves ${this.#waiters.size} requests unanswered`)
    const request = ++this.#lastRequest
    let timer: NodeJS.Timeout | undefined
    const answer = await new Promise<object>((resolve, reject) => {
      this.#waiters.set(request, { resolve, reject })
      timer = setTimeout(() => reject(new Error(`JetStream does not answer to ${name}`)), REQUEST_TIMEOUT_MS)
      this.#wire.say(`${PREFIX}${name}`, `${this.#replyPrefix}${request}`, JSON.stringify(body))
    }).finally(() => {
      clearTimeout(timer)
      this.#waiters.delete(request)
    })
    if (!('error' in answer)) return answer
    const { error } = answer as { error: { description?: unknown; err_code?: unknown } }
    const failure = new JetStreamError(String(error.description), Number(error.err_code ?? 0))
    throw FINAL_REASONS.has(failure.reason) ? refused(failure.message, failure) : failure
  }

  /** @param request What stands behind the prefix in the subject of an answer. */
  answered(request: number, text: string): void {
    const answer: unknown = JSON.parse(text)
    if (typeof answer === 'object' && answer !== null) this.#waiters.get(request)?.resolve(answer)
  }

  /** Nobody takes a request. */
  unanswered(request: number): void {
    const waiter = this.#waiters.get(request)
    if (this.#wire.serverHasJetStream) waiter?.reject(new Error('JetStream does not answer yet'))
    else {
      const detail =
        'history needs JetStream, and it is not enabled: put `jetstream {}` into the configuration of nats-server, or start it with -js'
      waiter?.reject(refused(detail))
    }
  }

  /** Ends all that wait; a cause that is final ends the start of a node. */
  failAll(cause: Error): void {
    for (const { reject } of this.#waiters.values()) reject(cause)
  }

  get isWaiting(): boolean {
    return this.#waiters.size > 0
  }
}

function refused(detail: string, cause?: Error): WebMQError {
  return new WebMQError('E_BROKER_REFUSED', { detail, cause })
}
