import type { WebSocketConstructor, WebSocketLike } from '../client-options.js'
import { type ErrorCode, SUBPROTOCOL, WebMQError } from '../protocol/index.js'
import { Echoes } from './echoes.js'
import { bodyOf, type Frame, fieldsOf, withFields } from './frame.js'
import { isOfGroup, SharedGroups } from './groups.js'
import { identityOf } from './identity.js'
import { SharedListens } from './listens.js'
import { PendingRequests } from './pending-requests.js'
import { SharedPresence } from './presence.js'
import type { Session } from './session.js'
import { TokenDuty } from './token-duty.js'

/** Close code for a tab that ends without goodbye: members of presence linger [P-14.6]. */
const GONE = 3000
const NORMAL = 1000
/** RFC 6455 §7.4.1: no close frame was received. */
const ABNORMAL = 1006
/** The client's heartbeat found the connection dead. */
const HEARTBEAT_TIMEOUT = 4003

/** Requests whose tab is remembered, for an error about its reply. */
const MAX_RESPONDERS = 1_024

/** Bytes in the buffer of the socket from which tabs are slowed down. */
const MAX_BUFFERED_BYTES = 1_048_576

/** Options of a link, and the receiver of its end. */
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
  readonly #listens = new SharedListens()
  readonly #groups = new SharedGroups()
  readonly #presence = new SharedPresence()
  readonly #echoes = new Echoes()
  readonly #duty = new TokenDuty()
  readonly #pending = new PendingRequests()
  /** The tabs that were handed requests, by the server's names of these [P-16.5]. */
  readonly #responders = new Map<string, Session>()
  /** Tabs that wait for a `pong`. */
  #pinging = new Set<Session>()
  #replay: { readonly session: Session; left: number } | undefined
  #welcome: Frame | undefined
  /** The JSON of the answer to the token; `undefined` until then. */
  #authResult: string | undefined
  #lastId = 0
  #isEnded = false

  constructor(context: LinkContext) {
    this.#context = context
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

  get isEmpty(): boolean {
    return this.#sessions.size === 0
  }

  add(session: Session): void {
    this.#sessions.add(session)
    if (this.#isLive) this.#greet(session)
  }

  /** A tab has gone. Ends what only it needed and, after the last one, the connection. */
  remove(session: Session, code: number): void {
    if (!this.#sessions.delete(session)) return
    this.#pending.forget(session)
    this.#echoes.forget(session)
    // The tab got no answer to its ping: the connection is dead for all.
    const isDead = code === HEARTBEAT_TIMEOUT && this.#pinging.has(session)
    this.#pinging.delete(session)
    if (isDead) this.end(ABNORMAL, 'the server does not answer')
    if (this.#isEnded) return
    if (this.isEmpty) {
      this.#close(code === NORMAL ? NORMAL : GONE)
      return
    }
    for (const pattern of this.#listens.patternsOf(session)) {
      if (this.#listens.drop(session, pattern) === 'last') this.#ask(undefined, ['unlisten', '', pattern])
    }
    for (const fields of [...this.#presence.forget(session), ...this.#groups.forget(session)]) {
      this.#ask(undefined, fields)
    }
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
    const [verb, id = '-', name = '', ...options] = fields
    if (verb === 'ping') {
      this.#pinging.add(session)
      if (this.#pinging.size === 1) this.#send('ping')
      return
    }
    if (verb === 'auth') {
      this.#renew(session, frame)
      return
    }
    if (id !== '-' && this.#pending.isFull(session)) {
      refuse(session, id, 'E_RATE_LIMIT', 'too many requests wait for answers')
      return
    }
    switch (verb) {
      case 'listen':
        if (isOfGroup(options)) {
          this.#groups.join(session, name, options)
          this.#ask(session, fields)
        } else this.#ask(session, [verb, id, name, ...this.#listens.hold(session, name, options)])
        return
      case 'unlisten': {
        const left = isOfGroup(options) ? this.#groups.leave(session, name, options) : this.#listens.drop(session, name)
        if (left === 'last') this.#ask(session, fields)
        else if (left === 'others') session.send(`ok ${id}`)
        else refuse(session, id, 'E_NOT_LISTENING', name)
        return
      }
      case 'presence': {
        const request = this.#presence.ask(session, fields)
        if (request) this.#ask(session, request, frame)
        else session.send(`ok ${id}`)
        return
      }
      case 'publish':
        this.#publish(session, fields, frame)
        return
      case 'reply':
        // The server has named the request.
        this.#send(frame)
        return
      default:
        this.#ask(session, fields, frame)
    }
  }

  get #isLive(): boolean {
    return this.#welcome !== undefined && (this.#context.token === undefined || this.#authResult !== undefined)
  }

  #greet(session: Session): void {
    if (this.#welcome !== undefined) session.send(this.#welcome)
    if (session.authId !== undefined) session.send(`ok ${session.authId}\n${this.#authResult ?? '{}'}`)
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
    if (isExcluding && this.#listens.find(key).includes(session)) this.#echoes.expect(session, key, frame)
    if (id === '-') this.#send(withFields(frame, kept))
    else this.#ask(session, kept, frame)
  }

  /** Sends a request with an id of the link's own. @param session Who gets the answer; `undefined`: nobody. */
  #ask(session: Session | undefined, fields: readonly string[], frame: Frame = ''): void {
    const id = `t${++this.#lastId}`
    if (session) this.#pending.add(id, { session, fields, frame })
    this.#send(withFields(frame, withId(fields, id)))
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
        this.#welcome = frame
        if (this.#isLive) for (const session of this.#sessions) this.#greet(session)
        return
      case 'pong': {
        const waiting = this.#pinging
        this.#pinging = new Set()
        for (const session of waiting) session.send(frame)
        return
      }
      case 'gap':
        for (const session of this.#listens.at(first)) session.send(frame)
        return
      case 'presence':
        for (const session of this.#presence.watchers(first)) session.send(frame)
        return
      case 'task':
        this.#hand(frame, fields)
        return
      case 'ended':
        for (const session of this.#groups.end(second, [`group=${first}`, ...fields.slice(3)])) session.send(frame)
        return
      case 'reply': {
        const pending = this.#pending.settle(first)
        pending?.session.send(withFields(frame, withId(fields, pending.fields[1] ?? '')))
        return
      }
      case 'expiring':
        this.#duty.expiring(Number(first), () => [...this.#sessions], frame)
        return
      default:
        for (const session of this.#sessions) session.send(frame)
    }
  }

  #deliver(frame: Frame, key: string, position: string, isReplayed: boolean): void {
    if (isReplayed) {
      const replay = this.#replay
      if (!replay) return
      replay.session.send(frame)
      if (--replay.left === 0) this.#replay = undefined
      return
    }
    for (const session of this.#listens.find(key)) {
      if (!this.#echoes.take(session, key, position, frame)) session.send(frame)
    }
  }

  #answer(frame: Frame, fields: readonly string[]): void {
    const [verb, id = ''] = fields
    if (id === 'auth') {
      this.#authenticated(verb === 'ok', frame)
      return
    }
    const isReplyExpected = verb === 'ok' && this.#pending.get(id)?.fields[0] === 'request'
    const pending = isReplyExpected ? this.#pending.get(id) : this.#pending.settle(id)
    if (!pending) {
      const responder = this.#responders.get(id)
      if (responder) responder.send(frame)
      else if (verb === 'error') this.#revoked(frame)
      return
    }
    const { session } = pending
    const [asked, ownId = '', name = ''] = pending.fields
    const option = (prefix: string) => fields.find((field) => field.startsWith(prefix))?.slice(prefix.length)
    const replayedCount = Number(option('replayed=') ?? 0)
    // Also for a tab that has gone: its replay is for nobody else.
    if (replayedCount > 0) this.#replay = { session, left: replayedCount }
    if (asked === 'listen') {
      const options = pending.fields.slice(3)
      if (isOfGroup(options)) {
        if (verb === 'error') this.#groups.leave(session, name, options)
      } else if (verb === 'error') this.#listens.refused(session, name)
      else if (!fields.includes('more')) this.#listens.live(session, name)
    } else if (asked === 'presence' && verb === 'error') this.#presence.refused(session, pending.fields)
    else if (asked === 'publish') {
      const hasNewCopy = verb === 'ok' && !fields.includes('duplicate')
      this.#echoes.answered(session, name, pending.frame, hasNewCopy, option('position='))
    } else if (asked === 'auth' && verb === 'ok') {
      this.#authResult = bodyOf(frame)
      this.#duty.done()
    }
    if (!session.isClosed) session.send(withFields(frame, withId(fields, ownId)))
  }

  /** Hands a message of a queue group, or a request, to the tab whose turn it is. */
  #hand(frame: Frame, [, group, pattern = '', , ...options]: readonly string[]): void {
    const request = options.find((option) => option.startsWith('request='))?.slice('request='.length)
    const session = this.#groups.next(pattern, [`group=${group}`, ...(request === undefined ? [] : ['respond'])])
    if (!session) return
    session.send(frame)
    if (request === undefined) return
    this.#responders.set(request, session)
    const [oldest = ''] = this.#responders.keys()
    if (this.#responders.size > MAX_RESPONDERS) this.#responders.delete(oldest)
  }

  #authenticated(isAccepted: boolean, frame: Frame): void {
    if (isAccepted) {
      this.#authResult = bodyOf(frame)
      if (this.#welcome !== undefined) for (const session of this.#sessions) this.#greet(session)
      return
    }
    // `bye` and the close code follow, for all.
    for (const session of this.#sessions) {
      if (this.#welcome !== undefined) session.send(this.#welcome)
      session.send(withFields(frame, withId(fieldsOf(frame), session.authId ?? '-')))
    }
  }

  /** An error without a request: the server has ended a listen or presence, or refuses a publish without an id. */
  #revoked(frame: Frame): void {
    const { pattern, key } = JSON.parse(bodyOf(frame)) as { pattern?: string; key?: string }
    let concerned: Iterable<Session> = this.#sessions
    if (pattern !== undefined) {
      concerned = this.#listens.at(pattern)
      this.#listens.end(pattern)
    } else if (key !== undefined) concerned = this.#presence.end(key)
    for (const session of concerned) session.send(frame)
  }

  #send(frame: Frame): void {
    this.#socket.send((typeof frame === 'string' ? frame : new Uint8Array(frame)) as never)
  }

  #close(code: number): void {
    this.#isEnded = true
    this.#duty.done()
    this.#socket.onopen = this.#socket.onmessage = this.#socket.onclose = null
    this.#socket.close(code)
    this.#context.onEnd()
  }
}

function withId([verb = '', , ...rest]: readonly string[], id: string): readonly string[] {
  return [verb, id, ...rest]
}

/** Answers a request that the hub cannot pass on. */
function refuse(session: Session, id: string, code: ErrorCode, detail: string): void {
  const { message, retryable, docs } = new WebMQError(code, { detail })
  session.send(`error ${id} ${code}\n${JSON.stringify({ message, retryable, docs })}`)
}
