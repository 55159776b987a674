import { refusalOf, type WebMQError } from 'webmq-client/protocol'
import type { Deadlines } from '../../kernel/base/deadlines.js'
import { HookRefusal } from '../../kernel/base/hook-refusal.js'
import { LogPace } from '../../kernel/base/log-pace.js'
import type { Logger } from '../../kernel/base/logger.js'
import type { MaybePromise } from '../../kernel/base/maybe-promise.js'
import type { HookName, HookOutcome } from '../../kernel/identity/hook-port.js'
import { NonsenseError } from './answers.js'

export interface Link<Request> {
  /** Where it comes from, for the log. */
  readonly source: string
  /** Time for a promise that it returns. */
  readonly timeoutMs: number
  readonly call: (request: Request) => unknown
}

export interface ChainContext<Request> {
  readonly name: HookName
  readonly links: readonly Link<Request>[]
  /** Reads an answer into the request. Throws a {@link HookRefusal}, or any other error when it makes no sense. */
  readonly take: (request: Request, answer: unknown) => void
  /** A function takes its time: what the request has borrowed is copied. */
  readonly keep?: (request: Request) => void
  /** Fields for a log line. */
  readonly describe: (request: Request) => object
  /** Nothing can wait: a promise is a failure. */
  readonly isImmediate?: boolean
  readonly deadlines: Pick<Deadlines, 'now' | 'set' | 'clear'>
  readonly logger: Pick<Logger, 'error'>
}

/** Clients decide how often a hook fails. */
const LOG_INTERVAL_MS = 1_000

/** Asks the functions of one hook, in order. Each sees what those before it have changed. */
export class Chain<Request extends object> {
  readonly #context: ChainContext<Request>
  readonly #counts: Record<HookOutcome, number> = { ok: 0, refused: 0, failed: 0 }
  readonly #pace = new LogPace(LOG_INTERVAL_MS)
  /** Gets the time that each question took; absent: nobody measures. */
  onTime: ((name: HookName, durationMs: number) => void) | undefined

  constructor(context: ChainContext<Request>) {
    this.#context = context
  }

  get counts(): Readonly<Record<HookOutcome, number>> {
    return { ...this.#counts }
  }

  /**
   * Asks every function, until one refuses. Costs no promise while all answer at once.
   * @throws {WebMQError} A {@link HookRefusal}, or `E_HOOK_FAILED`.
   */
  ask(request: Request): MaybePromise<void> {
    if (this.onTime === undefined) return this.#ask(request, 0)
    const startMs = performance.now()
    const measure = () => this.onTime?.(this.#context.name, performance.now() - startMs)
    let pending: MaybePromise<void>
    try {
      pending = this.#ask(request, 0)
    } catch (error) {
      measure()
      throw error
    }
    if (pending === undefined) measure()
    else return (pending as Promise<void>).finally(measure)
  }

  #ask(request: Request, from: number): MaybePromise<void> {
    const { links, take } = this.#context
    for (let index = from; index < links.length; index++) {
      const link = links[index] as Link<Request>
      try {
        const answer = link.call(request)
        if (isThenable(answer)) return this.#askLater(request, index, answer)
        take(request, answer)
      } catch (error) {
        throw this.#errorOf(error, link, request)
      }
    }
    this.#counts.ok++
  }

  /** Not `async`: `keep` and the check of an immediate hook belong to the call that has asked. */
  #askLater(request: Request, index: number, answer: PromiseLike<unknown>): Promise<void> {
    const { links, take, keep, isImmediate } = this.#context
    const link = links[index] as Link<Request>
    if (isImmediate === true) {
      answer.then(undefined, () => undefined)
      throw new NonsenseError('it must answer at once, not with a promise')
    }
    keep?.(request)
    return this.#inTime(answer, link.timeoutMs)
      .then((value) => take(request, value))
      .then(
        () => this.#ask(request, index + 1),
        (error: unknown) => {
          throw this.#errorOf(error, link, request)
        },
      )
  }

  #inTime(answer: PromiseLike<unknown>, timeoutMs: number): Promise<unknown> {
    const { deadlines } = this.#context
    return new Promise((resolve, reject) => {
      const deadline = deadlines.set(deadlines.now() + timeoutMs, () =>
        reject(new Error(`it did not answer within ${timeoutMs} ms`)),
      )
      const end = <T>(settle: (value: T) => void) => {
        return (value: T) => {
          deadlines.clear(deadline)
          settle(value)
        }
      }
      answer.then(end(resolve), end(reject))
    })
  }

  #errorOf(error: unknown, { source }: Link<Request>, request: Request): WebMQError {
    if (error instanceof HookRefusal) {
      this.#counts.refused++
      return error
    }
    this.#counts.failed++
    this.#log(error, source, request)
    return refusalOf('E_HOOK_FAILED')
  }

  #log(err: unknown, source: string, request: Request): void {
    const { logger, name, describe } = this.#context
    const others = this.#pace.take()
    if (others === undefined) return
    logger.error({ hook: name, source, ...describe(request), err, others }, 'a hook failed')
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
