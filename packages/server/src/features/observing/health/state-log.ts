import type { Logger } from '../../../kernel/base/logger.js'
import { type Health, readinessOf } from './readiness.js'
import { NODE_STATES } from './states.js'

export interface StateLogContext {
  readonly health: () => Health
  readonly logger: Pick<Logger, 'info' | 'warn'>
  /** A clock that never goes back, in milliseconds. */
  readonly now?: () => number
}

const LOOK_INTERVAL_MS = 5_000
/** A state that lasts is said again after this time; one that comes and goes is said no more often. A sum that has not grown for so long is over. */
const REPEAT_MS = 300_000

interface Lasting {
  /** `undefined`: it is over. */
  sinceMs: number | undefined
  saidAtMs: number
  isSaid: boolean
  sum: number
  grewAtMs: number
}

/** Logs the states of a node that last, again and again with their length, and those that nobody else logs. */
export class StateLog {
  readonly #context: StateLogContext
  readonly #now: () => number
  /** By the names of {@link NODE_STATES}. */
  readonly #lasting = new Map<string, Lasting>()
  #timer: NodeJS.Timeout | undefined

  constructor(context: StateLogContext) {
    this.#context = context
    this.#now = context.now ?? (() => performance.now())
  }

  start(): void {
    this.#timer ??= setInterval(() => this.look(), LOOK_INTERVAL_MS).unref()
  }

  look(): void {
    const { health, logger } = this.#context
    const nowMs = this.#now()
    const readiness = readinessOf(health(), true)
    for (const { name: state, isLogged, textOf, sum: sumName, advice } of NODE_STATES) {
      const lasting = this.#lasting.get(state) ?? {
        sinceMs: undefined,
        saidAtMs: isLogged === true ? nowMs : Number.NEGATIVE_INFINITY,
        isSaid: false,
        sum: 0,
        grewAtMs: Number.NEGATIVE_INFINITY,
      }
      const sum = (sumName && readiness[sumName]) ?? 0
      if (sum > lasting.sum) Object.assign(lasting, { sum, grewAtMs: nowMs })
      const isOver = sum > 0 && nowMs - lasting.grewAtMs >= REPEAT_MS
      const text = textOf(isOver && sumName ? { ...readiness, [sumName]: undefined } : readiness)
      const forMs = Math.round(nowMs - (lasting.sinceMs ?? nowMs))
      if (text === undefined) {
        if (lasting.isSaid) logger.info({ state, forMs }, 'the state of the node is over')
        lasting.sinceMs = undefined
        lasting.isSaid = false
        continue
      }
      this.#lasting.set(state, lasting)
      if (lasting.sinceMs === undefined) {
        lasting.sinceMs = nowMs
        if (isLogged === true) lasting.saidAtMs = nowMs
      }
      if (nowMs - lasting.saidAtMs < REPEAT_MS) continue
      lasting.saidAtMs = nowMs
      lasting.isSaid = true
      logger.warn({ state, forMs }, `the state of the node: ${text}. ${advice}`)
    }
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
