import * as Y from 'yjs'
import { Asks } from './asks.js'

/** Somebody who has lacked something may lack more, of which others know. */
const MAX_ROUNDS = 5
/** Time for an answer, beside the random time before it. */
const ANSWER_MS = 500
/** Questions are answered together: many cost little more than one. */
const COLLECT_MS = 50

/** Collaborators of {@link Exchange}. */
export interface ExchangeContext {
  readonly doc: Y.Doc
  readonly random: () => number
  /** One of several clients that may do the same at once waits up to so long. */
  spreadMs(): number
  /** Sends this client's state to all others. */
  ask(state: Uint8Array): void
  /** Gives everybody what somebody lacks. */
  answer(update: Uint8Array): void
  /** Nobody has answered to the last question, or it is time to stop. */
  onQuiet(): void
}

/**
 * Clients tell each other what they have, and give what others lack: for what is in no log and no snapshot. Answers wait
 * for a random time: a client that sees the answer of another one saves its own.
 */
export class Exchange {
  readonly #context: ExchangeContext
  readonly #asks = new Asks()
  #answerTimer: ReturnType<typeof setTimeout> | undefined
  #askTimer: ReturnType<typeof setTimeout> | undefined
  #rounds = 0
  #hasGrown = false

  constructor(context: ExchangeContext) {
    this.#context = context
  }

  /** Asks all others for what this client lacks. */
  ask(): void {
    this.#rounds = 0
    this.#askIn(0)
  }

  /** Another client asks. @throws if it is no state. */
  take(state: Uint8Array): void {
    this.#asks.take(state)
    this.#answerTimer ??= setTimeout(() => this.#answer(), COLLECT_MS + this.#spread())
  }

  /** Everybody has got an update, of this client or of another one. */
  changed(update: Uint8Array): void {
    this.#hasGrown = true
    this.#asks.add(update)
  }

  stop(): void {
    clearTimeout(this.#answerTimer)
    clearTimeout(this.#askTimer)
    this.#answerTimer = this.#askTimer = undefined
    this.#asks.clear()
  }

  #answer(): void {
    this.#answerTimer = undefined
    const { answer, doc } = this.#context
    const { hasMore, update } = this.#asks.answer(doc)
    if (update) answer(update)
    if (hasMore && this.#askTimer === undefined) this.ask()
  }

  #askIn(inMs: number): void {
    clearTimeout(this.#askTimer)
    this.#askTimer = setTimeout(() => {
      const { ask, doc, spreadMs } = this.#context
      this.#hasGrown = false
      this.#rounds++
      ask(Y.encodeSnapshot(Y.snapshot(doc)))
      this.#askTimer = setTimeout(() => this.#answered(), spreadMs() + ANSWER_MS)
    }, inMs)
  }

  #answered(): void {
    this.#askTimer = undefined
    if (this.#hasGrown && this.#rounds < MAX_ROUNDS) this.#askIn(0)
    else this.#context.onQuiet()
  }

  #spread(): number {
    const { random, spreadMs } = this.#context
    return random() * spreadMs()
  }
}
