import type { WebSocketLike } from '../../core/client-options.js'
import { randomName } from '../../core/publishing/random-name.js'
import { decodeClientMessage } from '../../protocol/decode-client.js'
import { encodeMessageFrame } from '../../protocol/encode-message.js'
import { encodeServerMessage, type TextServerMessage } from '../../protocol/encode-server.js'
import { closeCodeOf, WebMQError } from '../../protocol/errors.js'
import type { ClientMessage, Welcome } from '../../protocol/messages.js'
import { encodeMeta } from '../../protocol/meta.js'
import { parsePosition } from '../../protocol/position.js'
import { besideWebSocket, HttpError, request } from './http.js'
import { type StreamAnswer, type StreamListen, StreamListens, type StreamMessage } from './stream-listens.js'

/** RFC 6455 §7.4.1: no close frame was received. */
const ABNORMAL_CLOSURE = 1006
/** A stream gets a comment every 25 s; after twice that, it is asked for. */
const SILENT_MS = 50_000

/** The defaults of the server: over HTTP it names none before a request. */
const LIMITS: Welcome['limits'] = {
  maxPayloadBytes: 262_144,
  maxKeyBytes: 255,
  maxWords: 32,
  maxHashes: 3,
  maxListensPerConnection: 1_000,
  maxSearchListensPerConnection: 16,
  maxRequestsPerConnection: 0,
  maxPendingPublishBytes: 8_388_608,
  workPerSecond: 500_000,
  workBurst: 500_000,
  dedupeWindowMs: 120_000,
  dedupeMaxIds: 100_000,
}

/**
 * A WebSocket for the client that is none: listens by event streams, and publishes by `POST`. The client does not notice:
 * positions, gaps, retries and message ids are its own. Presence, history and `echo: false` are refused.
 */
export class SseSocket implements WebSocketLike {
  binaryType = ''
  onopen: ((event: never) => void) | null = null
  onmessage: ((event: never) => void) | null = null
  onerror: ((event: never) => void) | null = null
  onclose: ((event: never) => void) | null = null
  bufferedAmount = 0
  readonly #url: string
  readonly #end = new AbortController()
  readonly #listens: StreamListens
  #token: string | undefined
  #fresh: StreamListen[] = []
  /** One change of the stream after another. */
  #changes: Promise<void> = Promise.resolve()
  /** One publish after another keeps their order. */
  #publishes: Promise<void> = Promise.resolve()
  #aliveAtMs = 0

  constructor(url: string) {
    this.#url = url
    this.#listens = new StreamListens({
      url,
      token: () => this.#token,
      onMessage: (message) => this.#deliver(message, false),
      onGap: (pattern, reason) => this.#tell({ verb: 'gap', pattern, reason }),
      onAnswer: (listen, answer) => this.#answer(listen, answer),
      onEvent: ({ name, data }) => {
        if (name === 'expiring') this.#tell({ verb: 'expiring', inMs: Number(data.inMs) })
        else if (name === 'bye') this.#close(Number(data.closeCode), String(data.code))
      },
      onBytes: () => {
        this.#aliveAtMs = performance.now()
      },
      onEnd: () => this.#close(ABNORMAL_CLOSURE, 'the stream has ended'),
    })
    this.#greet().catch((error: unknown) => this.#fail(error))
  }

  send(data: string | Uint8Array): void {
    const isBinary = typeof data !== 'string'
    this.#handle(decodeClientMessage(isBinary ? data : new TextEncoder().encode(data), isBinary), isBinary)
  }

  close(): void {
    this.#end.abort()
    this.#listens.close()
  }

  /** Says that the server is there, as a WebSocket's handshake does. */
  async #greet(): Promise<void> {
    const { signal } = this.#end
    const response = await request(besideWebSocket(this.#url, 'health'), undefined, { signal })
    const health = (await response.json()) as { server?: unknown }
    if (health.server !== 'webmq') throw new HttpError()
    if (signal.aborted) return
    this.onopen?.({} as never)
    const node = { session: randomName(), node: 'sse', version: '', heartbeatMs: 25_000 }
    this.#tell({ verb: 'welcome', protocol: 'webmq.v1', auth: 'none', ...node, limits: LIMITS })
  }

  #handle(message: ClientMessage, isBinary: boolean): void {
    switch (message.verb) {
      case 'auth': {
        const isRenewed = this.#token !== undefined && this.#listens.isOpen
        this.#token = message.token
        if (isRenewed) this.#change([])
        this.#tell({ verb: 'ok', id: message.id })
        return
      }
      case 'listen':
        if (message.group !== undefined) break
        // Those of one turn share a stream.
        if (this.#fresh.push(message) === 1) queueMicrotask(() => this.#change(this.#fresh.splice(0)))
        return
      case 'unlisten':
        this.#listens.remove(message.pattern)
        this.#tell({ verb: 'ok', id: message.id })
        return
      case 'publish':
        this.bufferedAmount += message.payload.length
        this.#publishes = this.#publishes.then(() => this.#publish(message, isBinary))
        return
      case 'ping':
        this.#ping().catch((error: unknown) => this.#fail(error))
        return
    }
    const what = 'pattern' in message ? 'group' : message.verb
    this.#refuse(message.id, new WebMQError('E_UNSUPPORTED', { message: `${what} needs a WebSocket` }))
  }

  #change(fresh: readonly StreamListen[]): void {
    this.#changes = this.#changes.then(() => this.#add(fresh)).catch((error: unknown) => this.#fail(error))
  }

  async #add(fresh: readonly StreamListen[]): Promise<void> {
    if (this.#end.signal.aborted) return
    try {
      await this.#listens.add(fresh)
    } catch (cause) {
      const error = cause instanceof HttpError ? cause.error : undefined
      if (!error || error.retryable || closeCodeOf(error.code) !== undefined || fresh.length === 0) throw cause
      // One of them is refused, and the answer does not say which.
      if (fresh.length > 1) for (const listen of fresh) await this.#add([listen])
      else {
        for (const { id } of fresh) this.#refuse(id, error)
        if (this.#listens.size > 0) await this.#listens.add([])
      }
    }
  }

  #answer({ id, since }: StreamListen, { position, gap, messages }: StreamAnswer): void {
    this.#tell({
      verb: 'ok',
      id,
      ...(position !== undefined && { position }),
      ...(since !== undefined && gap === undefined && { recovered: true }),
      ...(gap !== undefined && { gap }),
      ...(messages && { replayed: messages.length }),
    })
    for (const message of messages ?? []) this.#deliver(message, true)
  }

  async #publish(message: Extract<ClientMessage, { verb: 'publish' }>, isBinary: boolean): Promise<void> {
    const { id, key, messageId, echo, ephemeral, payload } = message
    this.bufferedAmount -= payload.length
    if (this.#end.signal.aborted) return
    try {
      if (!echo) throw new HttpError(new WebMQError('E_UNSUPPORTED', { message: 'echo: false needs a WebSocket' }))
      const target = besideWebSocket(this.#url, 'api/publish')
      const headers: Record<string, string> = { 'content-type': `application/${isBinary ? 'octet-stream' : 'json'}` }
      if (messageId !== undefined) headers['idempotency-key'] = messageId
      if (isBinary) target.searchParams.set('key', key)
      if (ephemeral) target.searchParams.set('ephemeral', 'true')
      const text = typeof payload === 'string' ? payload : new TextDecoder().decode(payload)
      const body = isBinary ? (payload as BodyInit) : `{"key":${JSON.stringify(key)},"payload":${text || '""'}}`
      const response = await request(target, this.#token, { method: 'POST', headers, body, signal: this.#end.signal })
      const { position, duplicate } = (await response.json()) as { position?: string; duplicate?: boolean }
      if (id === undefined) return
      this.#tell({ verb: 'ok', id, ...(position !== undefined && { position }), ...(duplicate && { duplicate }) })
    } catch (cause) {
      const error = cause instanceof HttpError ? cause.error : undefined
      // Without an answer, the client sends it again, with the same id.
      if (error && closeCodeOf(error.code) === undefined) this.#refuse(id, error)
      else this.#fail(cause)
    }
  }

  async #ping(): Promise<void> {
    const isSilent = !this.#listens.isOpen || performance.now() - this.#aliveAtMs > SILENT_MS
    // Never answered within `send`: the client would not know yet that it has sent, and ping again.
    await (isSilent && request(besideWebSocket(this.#url, 'health'), undefined, { signal: this.#end.signal }))
    this.#tell({ verb: 'pong' })
  }

  #deliver({ key, position, meta, payload }: StreamMessage, replayed: boolean): void {
    if (typeof payload === 'string') {
      this.#tell({ verb: 'message', key, replayed, meta, payload, ...(position !== undefined && { position }) })
      return
    }
    const at = position === undefined ? undefined : parsePosition(position)
    this.#emit(encodeMessageFrame(key, at, replayed, payload, meta && encodeMeta(meta)).buffer)
  }

  #refuse(id: string | undefined, { code, message, retryable, docs }: WebMQError): void {
    this.#tell({ verb: 'error', code, message, retryable, docs, ...(id !== undefined && { id }) })
  }

  #tell(message: TextServerMessage): void {
    this.#emit(encodeServerMessage(message))
  }

  #emit(data: unknown): void {
    if (!this.#end.signal.aborted) this.onmessage?.({ data } as never)
  }

  #fail(cause: unknown): void {
    const error = cause instanceof HttpError ? cause.error : undefined
    this.#close(
      (error && closeCodeOf(error.code)) ?? ABNORMAL_CLOSURE,
      error?.message ?? 'the server cannot be reached',
    )
  }

  #close(code: number, reason: string): void {
    if (this.#end.signal.aborted) return
    const { onclose } = this
    this.close()
    onclose?.({ code, reason } as never)
  }
}
