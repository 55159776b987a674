import { matches } from '../../protocol/matching.js'
import { type Shown, shownOf, sizeOf } from './head.js'
import type { Frame } from './watched-socket.js'

const MAX_RECENT = 100
const MAX_ERRORS = 20
const MAX_SUBSCRIPTIONS = 200
/** Requests without an answer; a connection has fewer. */
const MAX_REQUESTS = 1_000

/** A listen, as the wire shows it. */
export interface ListenView {
  readonly pattern: string
  state: 'pending' | 'active'
  /** The last position that a message or an answer had. */
  position: string
  messageCount: number
  gapCount: number
  /** Reason of the last gap. */
  lastGap: string
}

/** A frame that was sent or received. */
export interface Seen extends Shown {
  readonly atMs: number
  readonly isSent: boolean
  readonly bytes: number
}

/** What went over the wire: totals, the last frames, the listens and their positions, errors. Bounded. */
export class Traffic {
  readonly listens = new Map<string, ListenView>()
  readonly recent: Seen[] = []
  readonly errors: Seen[] = []
  readonly totals = { sentCount: 0, sentBytes: 0, receivedCount: 0, receivedBytes: 0 }
  readonly #requests = new Map<string, string>()

  sent(frame: Frame): void {
    const [verb, id = '', pattern = ''] = this.#note(frame, true).split(' ')
    if (verb === 'listen') {
      if (this.#requests.size < MAX_REQUESTS) this.#requests.set(id, pattern)
      if (!this.listens.has(pattern) && this.listens.size < MAX_SUBSCRIPTIONS) {
        const view: ListenView = { pattern, state: 'pending', position: '', messageCount: 0, gapCount: 0, lastGap: '' }
        this.listens.set(pattern, view)
      }
    } else if (verb === 'unlisten') this.listens.delete(pattern)
  }

  received(frame: Frame): void {
    const head = this.#note(frame, false)
    const [verb, first = '', second = '', ...options] = head.split(' ')
    if (verb === 'message') this.#message(first, second)
    else if (verb === 'ok') this.#accepted(first, [second, ...options])
    else if (verb === 'gap') this.#gap(this.listens.get(first), second)
    else if (verb === 'error') {
      this.#requests.delete(first)
      push(this.errors, this.recent.at(-1), MAX_ERRORS)
    }
  }

  /** The connection is lost. */
  down(): void {
    this.#requests.clear()
    for (const listen of this.listens.values()) listen.state = 'pending'
  }

  #note(frame: Frame, isSent: boolean): string {
    const shown = shownOf(frame)
    const bytes = sizeOf(frame)
    push(this.recent, { atMs: Date.now(), isSent, ...shown, bytes }, MAX_RECENT)
    if (isSent) {
      this.totals.sentCount++
      this.totals.sentBytes += bytes
    } else {
      this.totals.receivedCount++
      this.totals.receivedBytes += bytes
    }
    return shown.head
  }

  #message(key: string, position: string): void {
    for (const listen of this.listens.values()) {
      if (!matches(listen.pattern, key)) continue
      listen.messageCount++
      if (position !== '-' && position !== '') listen.position = position
    }
  }

  #accepted(id: string, options: readonly string[]): void {
    const listen = this.listens.get(this.#requests.get(id) ?? '')
    this.#requests.delete(id)
    if (!listen) return
    if (!options.includes('more')) listen.state = 'active'
    const optionOf = (name: string) => options.find((option) => option.startsWith(`${name}=`))?.slice(name.length + 1)
    listen.position = optionOf('position') ?? listen.position
    const gap = optionOf('gap')
    if (gap !== undefined) this.#gap(listen, gap)
  }

  #gap(listen: ListenView | undefined, reason: string): void {
    if (!listen) return
    listen.gapCount++
    listen.lastGap = reason
  }
}

function push(list: Seen[], seen: Seen | undefined, max: number): void {
  if (seen) list.push(seen)
  if (list.length > max) list.shift()
}
