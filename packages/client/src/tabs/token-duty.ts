import type { Frame } from './frame.js'
import type { Session } from './session.js'

/** Longest time that one tab gets to renew the token. */
const MAX_TURN_MS = 10_000

/**
 * Decides which tab renews the token. One tab is asked after another, until one has done it: each asks the backend, and a
 * hidden one may sleep.
 */
export class TokenDuty {
  #timer: ReturnType<typeof setTimeout> | undefined

  /** @param tabs The tabs of that moment. */
  expiring(inMs: number, tabs: () => readonly Session[], frame: Frame): void {
    this.done()
    const asked = new Set<Session>()
    const next = () => {
      const tab = tabs().find((one) => !asked.has(one))
      if (!tab) return
      asked.add(tab)
      tab.send(frame)
      this.#timer = setTimeout(next, Math.min(MAX_TURN_MS, inMs / 4))
    }
    next()
  }

  /** The token was renewed, or the connection has ended. */
  done(): void {
    clearTimeout(this.#timer)
  }
}
