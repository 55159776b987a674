import { bodyOf, type Frame, fieldsOf, withId } from './frame.js'
import type { Session } from './session.js'

/** Longest time that one tab gets to renew the token. */
const MAX_TURN_MS = 10_000

/** The login of a connection. It greets each tab with the connection's `welcome`, and chooses the tab that renews the token. */
export class Login {
  readonly #sessions: ReadonlySet<Session>
  readonly #hasToken: boolean
  #welcome: Frame | undefined
  /** The JSON of the answer to the token; `undefined` until then. */
  #result: string | undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(sessions: ReadonlySet<Session>, hasToken: boolean) {
    this.#sessions = sessions
    this.#hasToken = hasToken
  }

  /** Greets a tab, as soon as the server has let the connection in. */
  greet(session: Session): void {
    if (this.#welcome === undefined || (this.#hasToken && this.#result === undefined)) return
    session.send(this.#welcome)
    if (session.authId !== undefined) session.send(`ok ${session.authId}\n${this.#result ?? '{}'}`)
  }

  welcomed(frame: Frame): void {
    this.#welcome = frame
    for (const session of this.#sessions) this.greet(session)
  }

  /** The server has answered to the first token. */
  answered(isAccepted: boolean, frame: Frame): void {
    if (isAccepted) this.#result = bodyOf(frame)
    for (const session of this.#sessions) {
      if (isAccepted) {
        this.greet(session)
        continue
      }
      // `bye` and the close code follow, for all.
      if (this.#welcome !== undefined) session.send(this.#welcome)
      session.send(withId(frame, fieldsOf(frame), session.authId ?? '-'))
    }
  }

  /** The server has accepted another token. */
  renewed(frame: Frame): void {
    this.#result = bodyOf(frame)
    this.end()
  }

  /**
   * The token expires. One tab is asked after another, until one has renewed it: each asks the backend, and a hidden one may
   * sleep.
   */
  expiring(inMs: number, frame: Frame): void {
    this.end()
    const asked = new Set<Session>()
    const next = () => {
      const tab = [...this.#sessions].find((one) => !asked.has(one))
      if (!tab) return
      asked.add(tab)
      tab.send(frame)
      this.#timer = setTimeout(next, Math.min(MAX_TURN_MS, inMs / 4))
    }
    next()
  }

  /** Asks no other tab. */
  end(): void {
    clearTimeout(this.#timer)
  }
}
