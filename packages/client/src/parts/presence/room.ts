import type { ClientCore } from '../../core/client-part.js'
import { backoffMs } from '../../core/connection/backoff.js'
import type { Reply } from '../../core/listening/requests.js'
import { encodePresence } from '../../protocol/encode-client.js'
import { WebMQError } from '../../protocol/errors.js'
import type { PresenceOp, ServerMessage } from '../../protocol/messages.js'
import { differenceOf, type PresenceEvent } from './difference.js'
import type { Member } from './types.js'

type PresenceMessage = Extract<ServerMessage, { verb: 'presence' }>

/** Receiver of the events of a key. */
export interface Watcher {
  /** Whether it knows the present members. */
  isTold: boolean
  tell(event: PresenceEvent): void
}

/** A caller that waits for the client's entry, or for the members. */
interface Waiter<T> {
  resolve(value: T): void
  reject(error: WebMQError): void
}

/** The client's presence at one key, and the members that it knows. All handles of the key share it. */
export class Room {
  readonly key: string
  readonly #core: ClientCore
  /** The client's secret name for its member. */
  readonly #name: string
  readonly #watchers = new Set<Watcher>()
  /** Data of each handle that is present, as JSON; the last one counts. */
  readonly #sayings = new Map<object, string | undefined>()
  readonly #entering = new Set<Waiter<void>>()
  readonly #asking = new Set<Waiter<readonly Member[]>>()
  #members: ReadonlyMap<string, Member> = new Map()
  /** Whether the server sends every change. */
  #isSynced = false
  /** Whether a watch was requested and not refused. */
  #isWatched = false
  #failedAttempts = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  id: string | undefined

  constructor(key: string, name: string, core: ClientCore) {
    this.key = key
    this.#name = name
    this.#core = core
  }

  /** Whether nobody uses it. */
  get isIdle(): boolean {
    return this.#watchers.size + this.#sayings.size + this.#entering.size + this.#asking.size === 0
  }

  /** @param saying JSON. */
  enter(holder: object, saying: string | undefined): Promise<void> {
    this.#sayings.delete(holder)
    this.#sayings.set(holder, saying)
    const entered = new Promise<void>((resolve, reject) => {
      const closedBy = this.#core.closedBy()
      if (closedBy) reject(closedBy)
      else this.#entering.add({ resolve, reject })
    })
    if (this.#core.sender.isLive) this.#sendEnter()
    return entered
  }

  leave(holder: object): Promise<void> {
    if (!this.#sayings.delete(holder)) return Promise.resolve()
    if (this.#sayings.size > 0) {
      if (this.#core.sender.isLive) this.#sendEnter()
      return Promise.resolve()
    }
    this.#settleEntering(new WebMQError('E_ABORTED', { message: `left ${this.key} before the answer` }))
    this.id = undefined
    return this.#tellServer('leave')
  }

  get(): Promise<readonly Member[]> {
    if (this.#isSynced) return Promise.resolve([...this.#members.values()])
    const closedBy = this.#core.closedBy()
    if (closedBy) return Promise.reject(closedBy)
    return new Promise((resolve, reject) => {
      const { sender, options } = this.#core
      const settle = () => {
        clearTimeout(timer)
        this.#asking.delete(waiter)
      }
      const waiter: Waiter<readonly Member[]> = {
        resolve: (members) => {
          settle()
          resolve(members)
        },
        reject: (error) => {
          settle()
          reject(error)
        },
      }
      const timer = setTimeout(
        () => waiter.reject(new WebMQError('E_TIMEOUT', { detail: this.key })),
        options.ackTimeoutMs,
      )
      this.#asking.add(waiter)
      // With a watch, the answer is on its way, or the watch will be retried.
      if (sender.isLive && !this.#isWatched) this.#sendGet()
    })
  }

  watch(watcher: Watcher): void {
    this.#watchers.add(watcher)
    if (!this.#isWatched && this.#core.sender.isLive) this.#sendWatch()
    // In a microtask, after the caller has added all its handlers.
    if (this.#isSynced) queueMicrotask(() => this.#introduce(watcher))
  }

  unwatch(watcher: Watcher): void {
    if (!this.#watchers.delete(watcher) || this.#watchers.size > 0) return
    this.#isSynced = this.#isWatched = false
    this.#members = new Map()
    void this.#tellServer('unwatch')
  }

  up(): void {
    this.#failedAttempts = 0
    if (this.#sayings.size > 0) this.#sendEnter()
    if (this.#watchers.size > 0) this.#sendWatch()
    else if (this.#asking.size > 0) this.#sendGet()
  }

  down(): void {
    clearTimeout(this.#timer)
    this.#isSynced = this.#isWatched = false
  }

  receive({ enter = [], update = [], leave = [] }: PresenceMessage): void {
    // From a watch that has ended, or sent before the answer to a watch, which includes this change.
    if (!this.#isSynced) return
    const members = new Map(this.#members)
    for (const id of leave) members.delete(id)
    for (const member of [...enter, ...update]) members.set(member.id, member)
    this.#become(members)
  }

  /** The server has ended the entry, the watch or both: the answers tell which. */
  revoked(): void {
    this.#isSynced = false
    this.id = undefined
    this.up()
  }

  close(error: WebMQError): void {
    this.down()
    this.#settleEntering(error)
    for (const { reject } of [...this.#asking]) reject(error)
  }

  #sendEnter(): void {
    const data = [...this.#sayings.values()].at(-1)
    const waiting = [...this.#entering]
    const request = { verb: 'presence', key: this.key, op: 'enter', member: this.#name, data } as const
    this.#core.requests.send(
      (id) => encodePresence({ ...request, id }),
      (answer) => {
        if (!(answer instanceof WebMQError)) {
          if (this.#sayings.size > 0) this.id = (answer.result as Member | undefined)?.id
          for (const waiter of waiting) if (this.#entering.delete(waiter)) waiter.resolve()
        } else if (isLater(answer)) this.#retry()
        else if (waiting.some((waiter) => this.#entering.has(waiter)) || !answer.retryable) {
          // The client is not present, with what it said before neither. The app gets the error and decides.
          this.#sayings.clear()
          this.#settleEntering(answer)
          if (this.id !== undefined) void this.#tellServer('leave')
          this.id = undefined
          this.#tellError(answer)
        } else {
          this.#tellError(answer)
          this.#retry()
        }
      },
    )
  }

  #sendWatch(): void {
    this.#isWatched = true
    this.#core.requests.send(this.#encoder('watch'), (answer) => {
      if (this.#watchers.size === 0) return
      if (answer instanceof WebMQError) this.#unanswered(answer)
      else {
        this.#isSynced = true
        this.#failedAttempts = 0
        const members = membersIn(answer)
        for (const waiter of [...this.#asking]) waiter.resolve(members)
        this.#become(new Map(members.map((member) => [member.id, member])))
        for (const watcher of this.#watchers) {
          if (watcher.isTold) watcher.tell(['sync', members])
          else this.#introduce(watcher)
        }
      }
    })
  }

  #sendGet(): void {
    const waiting = [...this.#asking]
    this.#core.requests.send(this.#encoder('get'), (answer) => {
      if (answer instanceof WebMQError) {
        // After a lost connection, the next one asks again.
        if (answer.code !== 'E_DISCONNECTED') for (const { reject } of waiting) reject(answer)
      } else for (const { resolve } of waiting) resolve(membersIn(answer))
    })
  }

  #unanswered(error: WebMQError): void {
    if (isLater(error)) this.#retry()
    else if (error.retryable) {
      this.#tellError(error)
      this.#retry()
    } else this.#watchRefused(error)
  }

  /** Its own entry has an answer of its own. */
  #watchRefused(error: WebMQError): void {
    this.#isWatched = false
    for (const { reject } of [...this.#asking]) reject(error)
    this.#tellError(error)
  }

  #retry(): void {
    const { sender, options } = this.#core
    if (!sender.isLive) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(
      () => {
        if (this.#sayings.size > 0) this.#sendEnter()
        if (this.#watchers.size > 0 && !this.#isSynced) this.#sendWatch()
      },
      backoffMs(this.#failedAttempts++, options),
    )
  }

  #tellServer(op: 'leave' | 'unwatch'): Promise<void> {
    return new Promise((resolve) => {
      if (this.#core.sender.isLive) this.#core.requests.send(this.#encoder(op), () => resolve())
      else resolve()
    })
  }

  #encoder(op: PresenceOp): (id: string) => string {
    return (id) => encodePresence({ verb: 'presence', id, key: this.key, op })
  }

  #become(members: ReadonlyMap<string, Member>): void {
    const events = differenceOf(this.#members, members)
    this.#members = members
    for (const watcher of [...this.#watchers]) {
      if (watcher.isTold) for (const event of events) watcher.tell(event)
    }
  }

  /** Sends the present members to a new watcher. */
  #introduce(watcher: Watcher): void {
    if (watcher.isTold || !this.#isSynced || !this.#watchers.has(watcher)) return
    watcher.isTold = true
    for (const event of differenceOf(new Map(), this.#members)) watcher.tell(event)
    watcher.tell(['sync', [...this.#members.values()]])
  }

  #settleEntering(error: WebMQError): void {
    for (const { reject } of [...this.#entering]) reject(error)
    this.#entering.clear()
  }

  #tellError(error: WebMQError): void {
    for (const watcher of [...this.#watchers]) watcher.tell(['error', error])
    this.#core.report({ error, key: this.key })
  }
}

/** Whether it continues by itself: with the next connection, or when the server answers again. */
function isLater({ code }: WebMQError): boolean {
  return code === 'E_DISCONNECTED' || code === 'E_TIMEOUT'
}

function membersIn({ result }: Exclude<Reply, WebMQError>): readonly Member[] {
  return (result as { readonly members?: readonly Member[] } | undefined)?.members ?? []
}
