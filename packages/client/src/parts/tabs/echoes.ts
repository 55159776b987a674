import { type Frame, isSameBody } from './frame.js'
import type { Session } from './session.js'

/** Messages of one tab that may be on their way back. Beyond it, the oldest is forgotten, and may be echoed. */
const MAX_EXPECTED = 1_024

interface Expected {
  readonly key: string
  readonly frame: Frame
  /** Known once the publish was answered, if the key is logged. */
  position?: string | undefined
  isAnswered?: boolean
}

/** The messages that their publisher's tab does not want back (`echo: false`), though other tabs of the connection do. */
export class Echoes {
  readonly #expected = new Map<Session, Expected[]>()

  expect(session: Session, key: string, frame: Frame): void {
    const list = this.#expected.get(session) ?? []
    this.#expected.set(session, list)
    list.push({ key, frame })
    if (list.length > MAX_EXPECTED) list.shift()
  }

  /**
   * The publish was answered. A message that the server has not taken, or had before, does not come.
   */
  answered(session: Session, key: string, frame: Frame, isComing: boolean, position: string | undefined): void {
    const list = this.#expected.get(session) ?? []
    const index = list.findIndex((one) => one.frame === frame && one.key === key && !one.isAnswered)
    const expected = list[index]
    if (!expected) return
    if (isComing) Object.assign(expected, { position, isAnswered: true })
    else list.splice(index, 1)
  }

  /** Whether this live message is one that the tab does not want back. */
  take(session: Session, key: string, position: string, frame: Frame): boolean {
    const list = this.#expected.get(session)
    if (!list || list.length === 0) return false
    // Before the answer, only the content tells; the same content of another publisher is as good.
    const index = list.findIndex(
      (one) =>
        one.key === key && (one.position === undefined ? isSameBody(one.frame, frame) : one.position === position),
    )
    if (index >= 0) list.splice(index, 1)
    return index >= 0
  }

  forget(session: Session): void {
    this.#expected.delete(session)
  }
}
