import { type ErrorCode, isErrorCode } from 'webmq-client/protocol'
import type { ObservedAction, Observer } from '../../features/observing/observer.js'
import type { Actor } from '../identity/actor.js'

/** Counts the requests that were answered with an error, through whichever door they came, and tells the observer. */
export class Refusals {
  readonly #observer: Observer | undefined
  readonly #counts: { [Code in ErrorCode]?: number } = {}

  constructor(observer: Observer | undefined) {
    this.#observer = observer
  }

  /** By error code. Codes of applications, which are in no table, count as `E_FORBIDDEN`. */
  get counts(): Readonly<Partial<Record<ErrorCode, number>>> {
    return { ...this.#counts }
  }

  /** @param target The key or the pattern. */
  add(actor: Actor, action: ObservedAction, code: ErrorCode, target: string | undefined): void {
    // The label of a metric: applications refuse with any code.
    const counted = isErrorCode(code) ? code : 'E_FORBIDDEN'
    this.#counts[counted] = (this.#counts[counted] ?? 0) + 1
    this.#observer?.refused?.(actor, action, code, target)
  }
}
