import { WebSocket } from 'ws'
import type { Answer, ConnectionRecord, NodeAddress, Received, RequestRecord, RunRecord } from '../judging/record.js'
import { dialOptions } from './dial.js'
import { Breach, parse, type ServerMessage } from './wire.js'

const HANDSHAKE_TIMEOUT_MS = 2_000
/** A close frame that is not answered in this time is given up. */
const CLOSE_TIMEOUT_MS = 300
const WATCH_INTERVAL_MS = 100
/** A broken server must not fill the memory with the record of what it breaks. */
const MAX_BREACHES = 20

export interface ConnectionOptions {
  readonly owner: string
  readonly node: NodeAddress
  readonly record: RunRecord
  readonly nowMs: () => number
  readonly handlers: ConnectionHandlers
  readonly pingIntervalMs: number
  /** Ends the connection when nothing comes for so long after a ping. */
  readonly pongTimeoutMs: number
  /** Ends the connection when `welcome` or an answer does not come for so long. */
  readonly answerTimeoutMs: number
}

/** Called in the order in which the messages come, and never after the end. */
export interface ConnectionHandlers {
  /** `welcome` has come: requests may be sent. @param welcome Its JSON. */
  readonly opened: (welcome: Readonly<Record<string, unknown>>) => void
  /** A live message. */
  readonly message?: (message: Received) => void
  /** @param group Its name and its pattern. */
  readonly task?: (
    group: string,
    message: Received,
    task: { readonly request?: string; readonly payload: string },
  ) => void
  /** A live message of a stream. */
  readonly grown?: (stream: string, payload: string) => void
  readonly gap?: (pattern: string, reason: string) => void
  readonly pong?: (position: string | undefined) => void
  /** Called once. What waits for an answer will get none. */
  readonly ended: (retryAfterMs: number) => void
}

export interface AnswerHandlers {
  readonly ok: (answer: Answer, isDuplicate: boolean, result?: Readonly<Record<string, unknown>>) => void
  readonly refused: (code: string, isRetryable: boolean) => void
  readonly replayed?: (message: Received, payload: string) => void
  /** Of a `request`, after its `ok`. */
  readonly replied?: (isError: boolean) => void
  /** All replayed messages of the answer have come; after `ok` at once if there are none. */
  readonly complete?: (answer: Answer) => void
}

interface Waiting {
  readonly request: RequestRecord
  readonly handlers: AnswerHandlers
}

/** One WebSocket: pairs answers with requests, collects replays, pings, and writes everything down. */
export class Connection {
  readonly record: ConnectionRecord
  readonly #options: ConnectionOptions
  readonly #socket: WebSocket
  readonly #waiting = new Map<string, Waiting>()
  readonly #asked = new Map<string, AnswerHandlers>()
  /** Requests of other clients that this one has answered. */
  readonly #replied = new Set<string>()
  readonly #pings: RequestRecord[] = []
  readonly #watch: NodeJS.Timeout
  #replay: { readonly handlers: AnswerHandlers; readonly answer: Answer; left: number } | undefined
  #lastId = 0
  #lastPingMs: number
  #lastReceivedMs: number
  #isEnded = false

  constructor(options: ConnectionOptions) {
    this.#options = options
    const { owner, node, record, nowMs } = options
    const number = record.connections.length
    const beganAtMs = nowMs()
    this.record = { number, owner, node: node.name, beganAtMs, requests: [], stalls: [], breaches: [] }
    record.connections.push(this.record)
    this.#lastPingMs = this.#lastReceivedMs = beganAtMs
    this.#socket = new WebSocket(node.url, ['webmq.v1'], {
      ...dialOptions(node),
      perMessageDeflate: false,
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    })
    this.#socket.on('message', (data, isBinary) => this.#received(data.toString(), isBinary))
    this.#socket.on('error', (error) => {
      this.record.reason ??= error.message
    })
    this.#socket.on('close', (code) => this.#end(code, 'server'))
    this.#watch = setInterval(() => this.#look(), WATCH_INTERVAL_MS)
  }

  get isOpen(): boolean {
    return !this.#isEnded && this.record.welcomeAtMs !== undefined && this.record.bye === undefined
  }

  get isStalled(): boolean {
    const last = this.record.stalls.at(-1)
    return last !== undefined && last.untilMs === undefined
  }

  /**
   * Sends a request.
   * @param rest What follows the id in the header, with the body.
   */
  request(verb: Exclude<RequestRecord['verb'], 'ping'>, rest: string, handlers: AnswerHandlers): void {
    const id = String(++this.#lastId)
    const request: RequestRecord = { id, verb, sentAtMs: this.#options.nowMs() }
    this.record.requests.push(request)
    this.#waiting.set(id, { request, handlers })
    this.#socket.send(`${verb} ${id} ${rest}`)
  }

  /** Answers a request of another client. */
  reply(request: string, payload: string): void {
    this.#replied.add(request)
    this.#socket.send(`reply ${request}\n${payload}`)
  }

  /** Reads nothing until {@link resume}. */
  pause(): void {
    if (this.#isEnded || this.isStalled || this.#socket.readyState !== WebSocket.OPEN) return
    this.record.stalls.push({ fromMs: this.#options.nowMs() })
    this.#socket.pause()
  }

  resume(): void {
    const stall = this.record.stalls.at(-1)
    if (stall === undefined || stall.untilMs !== undefined) return
    stall.untilMs = this.#options.nowMs()
    // What has waited in the socket counts as late, not as missing.
    this.#lastReceivedMs = this.#lastPingMs = stall.untilMs
    this.#socket.resume()
  }

  /** Ends it without a close frame. */
  cut(reason: string): void {
    this.record.reason ??= reason
    this.#end(1006, 'client')
    this.#socket.terminate()
  }

  /** @param code 1000, or 1001 as of a page that is left. */
  close(reason: string, code = 1_000): void {
    this.record.reason ??= reason
    this.#end(code, 'client')
    this.#socket.resume()
    this.#socket.close(code)
    setTimeout(() => this.#socket.terminate(), CLOSE_TIMEOUT_MS)
  }

  #received(text: string, isBinary: boolean): void {
    if (this.#isEnded) return
    this.#lastReceivedMs = this.#options.nowMs()
    try {
      this.#handle(parse(text, isBinary))
    } catch (error) {
      if (!(error instanceof Breach)) throw error
      this.#breach(error.message)
    }
  }

  #handle(message: ServerMessage): void {
    const { record } = this
    if (record.bye !== undefined) throw new Breach(`${message.verb} after bye`)
    if (record.welcomeAtMs === undefined && !['welcome', 'bye'].includes(message.verb)) {
      throw new Breach(`${message.verb} before welcome`)
    }
    const isReplay = message.verb === 'message' && message.isReplay
    // `bye` may end a replay early: nothing is promised about what is lost with the connection.
    if (this.#replay !== undefined && !isReplay && message.verb !== 'bye') {
      this.#breach(`${message.verb} with ${this.#replay.left} replayed messages still to come`)
    }
    switch (message.verb) {
      case 'welcome':
        if (record.welcomeAtMs !== undefined) throw new Breach('welcome twice')
        record.welcomeAtMs = this.#options.nowMs()
        record.welcomeNode = message.node
        this.#options.handlers.opened(message.body)
        break
      case 'ok':
        this.#ok(message)
        break
      case 'error':
        // It came too late [P-16.8].
        if (message.code === 'E_TIMEOUT' && this.#replied.delete(message.id)) break
        this.#take(message.id).handlers.refused(message.code, message.isRetryable)
        break
      case 'message': {
        const { key, payload } = message
        const received = {
          key,
          position: message.position,
          id: idIn(payload),
          payloadBytes: Buffer.byteLength(payload),
        }
        if (isReplay) this.#replayed(received, payload)
        else if (message.stream !== undefined) this.#options.handlers.grown?.(message.stream, payload)
        else this.#options.handlers.message?.(received)
        break
      }
      case 'task': {
        const { group, key, payload } = message
        const received = { key, position: '-', id: idIn(payload), payloadBytes: Buffer.byteLength(payload) }
        this.#options.handlers.task?.(group, received, message)
        break
      }
      case 'reply': {
        const asked = this.#asked.get(message.id)
        if (asked === undefined) throw new Breach(`reply to ${message.id}, which asked for none`)
        this.#asked.delete(message.id)
        asked.replied?.(message.isError)
        break
      }
      case 'gap':
        this.#options.handlers.gap?.(message.pattern, message.reason)
        break
      case 'pong': {
        const ping = this.#pings.shift()
        if (ping === undefined) throw new Breach('pong without ping')
        ping.answeredAtMs = this.#options.nowMs()
        this.#options.handlers.pong?.(message.position)
        break
      }
      case 'bye':
        record.bye = { code: message.code, retryAfterMs: message.retryAfterMs, atMs: this.#options.nowMs() }
    }
  }

  #ok({ id, answer, isDuplicate, result }: Extract<ServerMessage, { verb: 'ok' }>): void {
    const { handlers } = this.#take(id)
    if (handlers.replied !== undefined) this.#asked.set(id, handlers)
    handlers.ok(answer, isDuplicate, result)
    if (answer.replayed > 0) this.#replay = { handlers, answer, left: answer.replayed }
    else handlers.complete?.(answer)
  }

  #replayed(message: Received, payload: string): void {
    const replay = this.#replay
    if (replay === undefined) throw new Breach(`replayed message that no answer has announced: ${message.position}`)
    replay.left--
    if (replay.left === 0) this.#replay = undefined
    replay.handlers.replayed?.(message, payload)
    if (replay.left === 0 && !this.#isEnded) replay.handlers.complete?.(replay.answer)
  }

  #take(id: string): Waiting {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) throw new Breach(`answer to ${id}, which waits for none`)
    this.#waiting.delete(id)
    waiting.request.answeredAtMs = this.#options.nowMs()
    return waiting
  }

  /** Pings, and finds out that nothing comes any more. */
  #look(): void {
    if (this.#isEnded || this.isStalled) return
    const { nowMs, pingIntervalMs } = this.#options
    const now = nowMs()
    const lost = this.#lost(now)
    if (lost !== undefined) this.cut(lost)
    else if (this.isOpen && this.#pings.length === 0 && now - this.#lastPingMs >= pingIntervalMs) this.#ping(now)
  }

  /** @returns Why the connection is given up. */
  #lost(now: number): string | undefined {
    const { answerTimeoutMs, pongTimeoutMs } = this.#options
    const { welcomeAtMs, beganAtMs, stalls } = this.record
    if (welcomeAtMs === undefined) return now - beganAtMs > answerTimeoutMs ? 'no welcome' : undefined
    const [oldest] = this.#waiting.values()
    const readsSinceMs = stalls.at(-1)?.untilMs ?? 0
    if (oldest !== undefined && now - Math.max(oldest.request.sentAtMs, readsSinceMs) > answerTimeoutMs)
      return 'no answer'
    const isQuiet = now - Math.max(this.#lastPingMs, this.#lastReceivedMs) > pongTimeoutMs
    return this.#pings.length > 0 && isQuiet ? 'no pong' : undefined
  }

  #ping(now: number): void {
    const ping: RequestRecord = { id: '-', verb: 'ping', sentAtMs: now }
    this.#lastPingMs = now
    this.#pings.push(ping)
    this.record.requests.push(ping)
    this.#socket.send('ping')
  }

  #breach(text: string): void {
    const { breaches } = this.record
    if (breaches.length < MAX_BREACHES) breaches.push({ atMs: this.#options.nowMs(), text })
  }

  #end(code: number, by: 'client' | 'server'): void {
    if (this.#isEnded) return
    this.#isEnded = true
    clearInterval(this.#watch)
    const atMs = this.#options.nowMs()
    this.record.closed = { code, by, atMs }
    const stall = this.record.stalls.at(-1)
    if (stall !== undefined) stall.untilMs ??= atMs
    this.#options.handlers.ended(this.record.bye?.retryAfterMs ?? 0)
  }
}

function idIn(payload: string): string {
  return /^\{"id":"([A-Za-z0-9_-]{1,64})","pad":"x*"\}$/.exec(payload)?.[1] ?? ''
}
