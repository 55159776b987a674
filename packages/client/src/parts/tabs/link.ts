import type { WebSocketConstructor, WebSocketLike } from '../../core/client-options.js'
import { SUBPROTOCOL } from '../../protocol/limits.js'
import { Echoes } from './echoes.js'
import { bodyOf, type Frame, fieldsOf, withFields, withId } from './frame.js'
import { Holdings, holdingOf, nameOfListen, nameOfPresence } from './holdings.js'
import { identityOf } from './identity.js'
import { Login } from './login.js'
import { ABNORMAL, GONE } from './port.js'
import type { Session } from './session.js'

const NORMAL = 1000
/** The client's heartbeat found the connection dead. */
const HEARTBEAT_TIMEOUT = 4003

/** Requests of one tab that may wait for answers. The client itself sends no more than 16,384 publishes. */
const MAX_REQUESTS = 20_000

/** Requests whose tab is remembered, for an error about its reply. */
const MAX_RESPONDERS = 1_024

/** Bytes in the buffer of the socket from which tabs are slowed down. */
const MAX_BUFFERED_BYTES = 1_048_576

/** A request that waits for its answer. */
interface PendingRequest {
  /** Who gets the answer; `undefined`: nobody. */
  readonly session: Session | undefined
  readonly fields: readonly string[]
  readonly frame: Frame
  /** What begins with the answer. */
  readonly holding: string | undefined
}

export interface LinkContext {
  readonly url: string
  readonly socketClass: WebSocketConstructor
  readonly token: string | undefined
  onEnd(): void
}

/** One connection to the server, for all tabs with the same URL and identity. */
export class Link {
  readonly #context: LinkContext
  readonly #socket: WebSocketLike
  readonly #sessions = new Set<Session>()
  readonly #holdings = new Holdings()
  readonly #echoes = new Echoes()
  readonly #login: Login
  /** By the id that each has on the connection. Those of a tab that has gone stay: a replay that follows is for nobody else. */
  readonly #pending = new Map<string, PendingRequest>()
  /** The tabs that were handed requests, by the server's names of these [P-16.5]. */
  readonly #responders = new Map<string, Session>()
  /** Tabs that wait for a `pong`. */
  #pinging = new Set<Session>()
  #replay: { readonly session: Session | undefined; left: number } | undefined
  #lastId = 0
  #isEnded = false

  constructor(context: LinkContext) {
    this.#context = context
    this.#login = new Login(this.#sessions, context.token !== undefined)
    this.#socket = new context.socketClass(context.url, [SUBPROTOCOL])
    this.#socket.binaryType = 'arraybuffer'
    this.#socket.onopen = () => context.token !== undefined && this.#send(`auth auth\n${context.token}`)
    this.#socket.onmessage = ({ data }: { data: Frame }) => this.#receive(data)
    this.#socket.onerror = () => undefined
    this.#socket.onclose = ({ code, reason }: { code: number; reason: string }) => this.end(code, reason)
  }

  /** Whether the socket has no room for more. */
  get isFull(): boolean {
    return this.#socket.bufferedAmount > MAX_BUFFERED_BYTES
  }

  add(session: Session): void {
    this.#sessions.add(session)
    this.#login.greet(session)
  }

  /** A tab has gone. Ends what only it needed and, after the last one, the connection. */
  remove(session: Session, code: number): void {
    if (!this.#sessions.delete(session)) return
    this.#echoes.forget(session)
    // The tab got no answer to its ping: the connection is dead for all.
    const isDead = code === HEARTBEAT_TIMEOUT && this.#pinging.has(session)
    this.#pinging.delete(session)
    if (isDead) this.end(ABNORMAL, 'the server does not answer')
    if (this.#isEnded) return
    if (this.#sessions.size === 0) this.#close(code === NORMAL ? NORMAL : GONE)
    else for (const name of this.#holdings.forget(session)) this.#ask(undefined, name.split(' '))
  }

  /** Ends the connection, and that of every tab. */
  end(code: number, reason: string): void {
    if (this.#isEnded) return
    this.#close(GONE)
    for (const session of this.#sessions) session.close(code, reason)
  }

  /** Handles what a tab sends. */
  receive(session: Session, frame: Frame): void {
    const fields = fieldsOf(frame)
    const [verb, id = '-'] = fields
    if (verb === 'ping') {
      this.#pinging.add(session)
      if (this.#pinging.size === 1) this.#send('ping')
    } else if (verb === 'auth') this.#renew(session, frame)
    // The server has named the request.
    else if (verb === 'reply') this.#send(frame)
    else if (id !== '-' && session.requestCount >= MAX_REQUESTS) {
      session.refuse(id, 'E_RATE_LIMIT', 'too many requests wait for answers')
    } else if (verb === 'publish') this.#publish(session, fields, frame)
    else this.#pass(session, fields, frame)
  }

  /** Passes a request on, unless it ends what other tabs still hold. */
  #pass(session: Session, fields: readonly string[], frame: Frame): void {
    const [verb = '', id = '', subject = '', ...options] = fields
    const holding = holdingOf(fields)
    if (holding === undefined) this.#ask(session, fields, frame)
    else if (holding !== withId('', fields, '')) {
      const shared = this.#holdings.hold(session, holding, options)
      this.#ask(session, [verb, id, subject, ...shared], frame, holding)
    } else {
      const left = this.#holdings.drop(session, holding)
      if (left === 'last') this.#ask(session, fields)
      else if (left === 'none' && verb === 'unlisten') session.refuse(id, 'E_NOT_LISTENING', subject)
      else session.send(`ok ${id}`)
    }
  }

  /** A token on the live connection. One of another login needs another connection: the tab gets it by reconnecting. */
  #renew(session: Session, frame: Frame): void {
    if (identityOf(bodyOf(frame)) === identityOf(this.#context.token)) this.#ask(session, fieldsOf(frame), frame)
    else session.close(ABNORMAL, 'the token has other claims')
  }

  /** `noecho` excludes a connection [P-7.5]; here it excludes a tab. */
  #publish(session: Session, fields: readonly string[], frame: Frame): void {
    const [, id, key = ''] = fields
    const isExcluding = fields.includes('noecho', 3)
    const kept = isExcluding ? fields.filter((field, index) => index < 3 || field !== 'noecho') : fields
    if (isExcluding && this.#holdings.find(key).includes(session)) this.#echoes.expect(session, key, frame)
    if (id === '-') this.#send(withFields(frame, kept))
    else this.#ask(session, kept, frame)
  }

  /** Sends a request with an id of the link's own. */
  #ask(session: Session | undefined, fields: readonly string[], frame: Frame = '', holding?: string): void {
    const id = `t${++this.#lastId}`
    if (session) session.requestCount++
    this.#pending.set(id, { session, fields, frame, holding })
    this.#send(withId(frame, fields, id))
  }

  /** The request has its last answer. */
  #settle(id: string): PendingRequest | undefined {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    if (pending?.session) pending.session.requestCount--
    return pending
  }

  #receive(frame: Frame): void {
    const fields = fieldsOf(frame)
    const [verb, first = '', second = ''] = fields
    switch (verb) {
      case 'message':
        this.#deliver(frame, first, second, fields.includes('replay', 3))
        return
      case 'ok':
      case 'error':
        this.#answer(frame, fields)
        return
      case 'welcome':
        this.#login.welcomed(frame)
        return
      case 'task':
        this.#hand(frame, fields)
        return
      case 'reply': {
        const { session, fields: asked = [] } = this.#settle(first) ?? {}
        session?.send(withId(frame, fields, asked[1] ?? ''))
        return
      }
      case 'expiring':
        this.#login.expiring(Number(first), frame)
        return
      default:
        for (const session of this.#concerned(fields)) session.send(frame)
    }
  }

  /** The tabs that get a message which belongs to no request of theirs. A verb of a later version is for all. */
  #concerned([verb, first = '', second = '', ...options]: readonly string[]): Iterable<Session> {
    switch (verb) {
      case 'pong': {
        const waiting = this.#pinging
        this.#pinging = new Set()
        return waiting
      }
      case 'gap':
        return this.#holdings.at(nameOfListen(first))
      case 'presence':
        return this.#holdings.at(nameOfPresence(first, 'op=unwatch'))
      case 'ended':
        return this.#holdings.end(nameOfListen(second, `group=${first}`, ...options))
      default:
        return this.#sessions
    }
  }

  #deliver(frame: Frame, key: string, position: string, isReplayed: boolean): void {
    if (isReplayed) {
      const replay = this.#replay
      if (!replay) return
      replay.session?.send(frame)
      if (--replay.left === 0) this.#replay = undefined
      return
    }
    for (const session of this.#holdings.find(key)) {
      if (!this.#echoes.take(session, key, position, frame)) session.send(frame)
    }
  }

  #answer(frame: Frame, fields: readonly string[]): void {
    const [verb, id = ''] = fields
    if (id === 'auth') {
      this.#login.answered(verb === 'ok', frame)
      return
    }
    const waiting = this.#pending.get(id)
    if (!waiting) {
      const responder = this.#responders.get(id)
      if (responder) responder.send(frame)
      else if (verb === 'error') this.#revoked(frame)
      return
    }
    const { session, holding } = waiting
    const [asked, ownId = '', subject = ''] = waiting.fields
    // The last answer to a request is its reply.
    if (verb === 'error' || asked !== 'request') this.#settle(id)
    const option = (prefix: string) => fields.find((field) => field.startsWith(prefix))?.slice(prefix.length)
    const replayedCount = Number(option('replayed=') ?? 0)
    // Also for a tab that has gone: its replay is for nobody else.
    if (replayedCount > 0) this.#replay = { session, left: replayedCount }
    if (asked === 'auth' && verb === 'ok') this.#login.renewed(frame)
    if (!session || session.isClosed) return
    if (holding !== undefined) {
      if (verb === 'error') this.#holdings.refused(session, holding)
      else if (!fields.includes('more')) this.#holdings.live(session, holding)
    } else if (asked === 'publish') {
      const hasNewCopy = verb === 'ok' && !fields.includes('duplicate')
      this.#echoes.answered(session, subject, waiting.frame, hasNewCopy, option('position='))
    }
    session.send(withId(frame, fields, ownId))
  }

  /** Hands a message of a queue group, or a request, to the tab whose turn it is. */
  #hand(frame: Frame, [, group, pattern = '', , ...options]: readonly string[]): void {
    const request = options.find((option) => option.startsWith('request='))?.slice('request='.length)
    const membership = [`group=${group}`, ...(request === undefined ? [] : ['respond'])]
    const session = this.#holdings.next(nameOfListen(pattern, ...membership))
    if (!session) return
    session.send(frame)
    if (request === undefined) return
    this.#responders.set(request, session)
    const [oldest = ''] = this.#responders.keys()
    if (this.#responders.size > MAX_RESPONDERS) this.#responders.delete(oldest)
  }

  /** An error without a request: the server has ended a listen or presence, or refuses a publish without an id. */
  #revoked(frame: Frame): void {
    const { pattern, key } = aboutOf(frame)
    const names =
      pattern !== undefined
        ? [nameOfListen(pattern)]
        : key !== undefined && [nameOfPresence(key, 'op=leave'), nameOfPresence(key, 'op=unwatch')]
    const concerned = names ? new Set(names.flatMap((name) => this.#holdings.end(name))) : this.#sessions
    for (const session of concerned) session.send(frame)
  }

  #send(frame: Frame): void {
    this.#socket.send((typeof frame === 'string' ? frame : new Uint8Array(frame)) as never)
  }

  #close(code: number): void {
    this.#isEnded = true
    this.#login.end()
    this.#socket.onopen = this.#socket.onmessage = this.#socket.onclose = null
    this.#socket.close(code)
    this.#context.onEnd()
  }
}

/** What an error is about; nothing, if its body is no JSON: then it is for all tabs, as one of a later version. */
function aboutOf(frame: Frame): { readonly pattern?: string; readonly key?: string } {
  try {
    return Object(JSON.parse(bodyOf(frame)))
  } catch {
    return {}
  }
}
