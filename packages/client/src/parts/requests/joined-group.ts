import type { ClientCore } from '../../core/client-part.js'
import { backoffMs } from '../../core/connection/backoff.js'
import { callSafely } from '../../core/events/call-safely.js'
import { decodePayload, encodePayload } from '../../core/publishing/payload.js'
import { encodeListen, encodeUnlisten } from '../../protocol/encode-client.js'
import { WebMQError } from '../../protocol/errors.js'
import type { ServerMessage } from '../../protocol/messages.js'
import { encodeReply, membership } from '../../protocol/tasks.js'
import type { Membership } from './types.js'

type Task = Extract<ServerMessage, { verb: 'task' }>

/** A handler of messages, or of requests. */
export type Handler = (payload: unknown, message: { readonly key: string }) => unknown

type Report = (error: unknown) => void

/** One membership of the client: the server counts it once, and its handlers take turns. */
export class JoinedGroup {
  readonly group: string
  readonly pattern: string
  readonly isResponder: boolean
  readonly #core: ClientCore
  readonly #onEmpty: () => void
  readonly members: LiveMembership[] = []
  isActive = false
  #turn = 0
  #attempt = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  /** The last member, until the server knows that it has left: what is on its way is for it. */
  #leaving: LiveMembership | undefined

  /** @param onEmpty It has no member any more. */
  constructor(core: ClientCore, group: string, pattern: string, isResponder: boolean, onEmpty: () => void) {
    this.#core = core
    this.group = group
    this.pattern = pattern
    this.isResponder = isResponder
    this.#onEmpty = onEmpty
  }

  add(member: LiveMembership): void {
    this.members.push(member)
    if (this.isActive) member.became('active')
    else if (this.members.length === 1 && this.#core.sender.isLive) this.up()
  }

  /** Ends one member; with the last one, the server is told. */
  remove(member: LiveMembership): Promise<void> {
    const index = this.members.indexOf(member)
    if (index >= 0) this.members.splice(index, 1)
    if (index < 0 || this.members[0]) return Promise.resolve()
    clearTimeout(this.#timer)
    this.isActive = false
    this.#leaving = member
    const left = () => {
      if (this.#leaving !== member) return
      this.#leaving = undefined
      if (!this.members[0]) this.#onEmpty()
    }
    const { sender, requests } = this.#core
    if (!sender.isLive) return Promise.resolve(left())
    const encode = (id: string) => encodeUnlisten(id, this.pattern) + this.#options
    return new Promise((resolve) => requests.send(encode, () => resolve(left())))
  }

  up(): void {
    clearTimeout(this.#timer)
    const { requests, options } = this.#core
    requests.send(
      (id) => encodeListen({ id, pattern: this.pattern }) + this.#options,
      (answer) => {
        if (!this.members[0]) return
        if (!(answer instanceof WebMQError)) {
          this.isActive = true
          this.#attempt = 0
          for (const member of this.members) member.became('active')
        } else if (!answer.retryable) this.end(answer)
        else if (answer.code !== 'E_DISCONNECTED') {
          this.#timer = setTimeout(() => this.up(), backoffMs(this.#attempt++, options))
        }
      },
    )
  }

  down(): void {
    clearTimeout(this.#timer)
    this.isActive = false
    for (const member of this.members) member.became('pending')
  }

  /** The server has ended it, or does not allow it, or the client is closed. */
  end(error: WebMQError): void {
    clearTimeout(this.#timer)
    this.isActive = false
    this.#leaving = undefined
    for (const member of this.members.splice(0)) member.ended(error)
    this.#onEmpty()
  }

  /** @param isHere Whether the client still has the connection of the task: another server does not know a request. */
  take(task: Task, isHere: () => boolean): void {
    const member = this.members[this.#turn++ % this.members.length] ?? this.#leaving
    if (member === undefined) return
    const { key, request } = task
    const handle = () => member.handler(decodePayload(task.payload, this.#core.options.codec), { key })
    const report: Report = (error) => this.#core.report({ error, key, pattern: this.pattern })
    if (request === undefined) callSafely(handle, report)
    else void this.#respond(request, handle, report, isHere)
  }

  async #respond(id: string, handle: () => unknown, report: Report, isHere: () => boolean): Promise<void> {
    const { sender, options } = this.#core
    let frame: ReturnType<typeof encodeReply>
    try {
      // A handler that returns nothing has done its work.
      frame = encodeReply({ id, isError: false, payload: encodePayload((await handle()) ?? null, options.codec) })
    } catch (error) {
      const isAnswer = error instanceof WebMQError
      if (!isAnswer) report(error)
      // Other errors are bugs of the app, which the requester must not see.
      const { code, message } = isAnswer ? error : new WebMQError('E_RESPONSE', { message: 'the responder failed' })
      const payload = JSON.stringify({ code, message: message.slice(0, MAX_REASON_CHARS) })
      frame = encodeReply({ id, isError: true, payload })
    }
    if (isHere()) sender.send(frame, false)
  }

  get #options(): string {
    return membership({ group: this.group, ...(this.isResponder && { respond: true }) })
  }
}

/** Longest reason of a responder. */
const MAX_REASON_CHARS = 512

/** What `work` and `respond` return. */
export class LiveMembership implements Membership {
  readonly handler: Handler
  readonly #joined: JoinedGroup
  #state: Membership['state'] = 'pending'
  #ready: Promise<void>
  #settle: { resolve(): void; reject(error: WebMQError): void } = NOTHING
  #error: WebMQError | undefined
  readonly #signal: AbortSignal | undefined
  readonly #abort = () => void this.close()

  /** @param signal Leaves the group. */
  constructor(joined: JoinedGroup, handler: Handler, signal?: AbortSignal) {
    this.#joined = joined
    this.handler = handler
    this.#ready = this.#wait()
    this.#signal = signal
    signal?.addEventListener('abort', this.#abort)
  }

  get pattern(): string {
    return this.#joined.pattern
  }

  get group(): string {
    return this.#joined.group
  }

  get state(): Membership['state'] {
    return this.#state
  }

  get ready(): Promise<void> {
    return this.#ready
  }

  get error(): WebMQError | undefined {
    return this.#error
  }

  became(state: 'pending' | 'active'): void {
    if (this.#state === state) return
    this.#state = state
    if (state === 'active') this.#settle.resolve()
    else this.#ready = this.#wait()
  }

  ended(error: WebMQError): void {
    if (this.#state === 'active') this.#ready = this.#wait()
    this.#signal?.removeEventListener('abort', this.#abort)
    this.#state = 'closed'
    this.#error = error
    this.#settle.reject(error)
  }

  close(): Promise<void> {
    if (this.#state === 'closed') return Promise.resolve()
    this.ended(new WebMQError('E_ABORTED', { message: `left the group ${this.group}` }))
    this.#error = undefined
    return this.#joined.remove(this)
  }

  [Symbol.dispose](): void {
    void this.close()
  }

  #wait(): Promise<void> {
    const ready = new Promise<void>((resolve, reject) => {
      this.#settle = { resolve, reject }
    })
    ready.catch(() => undefined)
    return ready
  }
}

const NOTHING = { resolve: () => undefined, reject: () => undefined }
