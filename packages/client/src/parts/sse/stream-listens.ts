import { errorOfServer } from '../../core/connection/server-error.js'
import { matches } from '../../protocol/matching.js'
import type { GapReason } from '../../protocol/messages.js'
import type { MessageMeta } from '../../protocol/meta.js'
import { parsePosition } from '../../protocol/position.js'
import { readEvents, type StreamEvent } from './events.js'
import { besideWebSocket, HttpError, request } from './http.js'

/** A `listen` of the client. */
export interface StreamListen {
  readonly id: string
  readonly pattern: string
  readonly since?: string
  readonly last?: number
  readonly rewindMs?: number
  readonly meta?: true
}

/** A message of a stream. */
export interface StreamMessage {
  readonly key: string
  readonly position: string | undefined
  readonly meta: MessageMeta | undefined
  readonly payload: string | Uint8Array
}

/** The answer to a `listen`. */
export interface StreamAnswer {
  readonly position: string | undefined
  readonly gap: GapReason | undefined
  /** Absent: none were asked for. */
  readonly messages: readonly StreamMessage[] | undefined
}

export interface StreamListensContext {
  readonly url: string
  readonly token: () => string | undefined
  onMessage(message: StreamMessage): void
  onGap(pattern: string, reason: GapReason): void
  onAnswer(listen: StreamListen, answer: StreamAnswer): void
  /** `expiring` and `bye`. */
  onEvent(event: StreamEvent): void
  onBytes(): void
  /** The stream has ended. */
  onEnd(): void
}

interface Replayed {
  readonly messages: StreamMessage[]
  readonly gaps: Map<string, GapReason>
  position: string | undefined
}

/** Listens with one stream at a time. To add a listen, it opens the next stream where the last one stopped. */
export class StreamListens {
  readonly #context: StreamListensContext
  readonly #patterns = new Set<string>()
  /** Everything up to here has come. */
  #position: string | undefined
  #stream: AbortController | undefined
  /** A listen has asked for meta: the stream has it. */
  #hasMeta = false

  constructor(context: StreamListensContext) {
    this.#context = context
  }

  /** Patterns that are live. */
  get size(): number {
    return this.#patterns.size
  }

  /** Whether a stream is open. */
  get isOpen(): boolean {
    return this.#stream !== undefined
  }

  /**
   * Adds listens; resolves when they are live. Without any, opens the stream again.
   * @throws {HttpError} None of them listens, and the stream is closed.
   */
  async add(fresh: readonly StreamListen[]): Promise<void> {
    this.close()
    const stream = new AbortController()
    this.#stream = stream
    const hasMeta = this.#hasMeta || fresh.some(({ meta }) => meta)
    try {
      const own = new Map<StreamListen, Replayed>()
      // A position of the same log can be that of the whole stream. Everything else is read before.
      const epoch = epochOf(this.#position ?? fresh.find(({ since }) => since !== undefined)?.since)
      for (const listen of fresh) {
        const isRanged = listen.last !== undefined || listen.rewindMs !== undefined
        if (isRanged || (listen.since !== undefined && epochOf(listen.since) !== epoch)) {
          own.set(listen, await this.#replay([listen.pattern], rangeOf(listen, hasMeta), stream.signal))
        }
      }
      const starts = fresh.map((listen) => own.get(listen)?.position ?? listen.since)
      const since = earliest([...(this.#patterns.size > 0 ? [this.#position] : []), ...starts])
      const patterns = [...this.#patterns, ...fresh.map(({ pattern }) => pattern)]
      const events = await this.#open(
        patterns,
        { ...(since !== undefined && { since }), ...(hasMeta && { meta: '' }) },
        stream.signal,
      )
      const replay = await collect(events)
      if (stream.signal.aborted) return
      this.#catchUp(replay)
      for (const [index, listen] of fresh.entries()) this.#answer(listen, starts[index], own.get(listen), replay)
      this.#position = replay.position ?? this.#position
      for (const { pattern } of fresh) this.#patterns.add(pattern)
      this.#hasMeta = hasMeta
      void this.#follow(events, stream)
    } catch (error) {
      if (!stream.signal.aborted) this.close()
      throw error
    }
  }

  /** Does not listen any more; `false` if it did not. The stream goes on for the others. */
  remove(pattern: string): boolean {
    const isKnown = this.#patterns.delete(pattern)
    if (isKnown && this.#patterns.size === 0) this.close()
    return isKnown
  }

  close(): void {
    this.#stream?.abort()
    this.#stream = undefined
  }

  /** Messages and gaps between two streams, for the listens that are live. */
  #catchUp({ messages, gaps, position }: Replayed): void {
    if (this.#patterns.size === 0) return
    for (const pattern of this.#patterns) {
      const reason = gaps.get(pattern) ?? (this.#position === undefined ? 'no-history' : undefined)
      if (reason) this.#context.onGap(pattern, reason)
    }
    if (position === undefined) return
    for (const message of messages) {
      const isMissed = isAfter(message.position, this.#position)
      if (isMissed && [...this.#patterns].some((pattern) => matches(pattern, message.key)))
        this.#context.onMessage(message)
    }
  }

  #answer(listen: StreamListen, since: string | undefined, own: Replayed | undefined, joint: Replayed): void {
    const { position } = joint
    const isAsked = listen.since !== undefined || own !== undefined
    if (!isAsked) {
      this.#context.onAnswer(listen, { position, gap: undefined, messages: undefined })
      return
    }
    const later = joint.messages.filter(
      ({ key, position: at }) => matches(listen.pattern, key) && (since === undefined || isAfter(at, since)),
    )
    const gap = own?.gaps.get(listen.pattern) ?? joint.gaps.get(listen.pattern)
    this.#context.onAnswer(listen, { position, gap, messages: [...(own?.messages ?? []), ...later] })
  }

  async #replay(patterns: readonly string[], range: Record<string, string>, signal: AbortSignal): Promise<Replayed> {
    const events = await this.#open(patterns, range, signal)
    try {
      return await collect(events)
    } finally {
      await events.return(undefined)
    }
  }

  async #open(patterns: readonly string[], range: Record<string, string>, signal: AbortSignal) {
    const { url, token, onBytes } = this.#context
    const target = besideWebSocket(url, 'sse')
    for (const pattern of new Set(patterns)) target.searchParams.append('listen', pattern)
    for (const [name, value] of Object.entries(range)) target.searchParams.set(name, value)
    const { body } = await request(target, token(), { signal })
    if (!body) throw new Error('this runtime streams no responses')
    return readEvents(body, onBytes)
  }

  async #follow(events: AsyncGenerator<StreamEvent>, stream: AbortController): Promise<void> {
    try {
      for await (const event of events) {
        if (stream.signal.aborted) return
        this.#position = event.id ?? this.#position
        if (event.name === 'message') this.#context.onMessage(messageOf(event))
        else if (event.name === 'gap') this.#context.onGap(event.data.pattern as string, event.data.reason as GapReason)
        else this.#context.onEvent(event)
      }
    } catch {
      // A broken response ends the stream as its end does.
    }
    if (!stream.signal.aborted) this.#context.onEnd()
  }
}

/**
 * Reads a stream up to `live`.
 * @throws {HttpError} The server refuses the listens.
 */
async function collect(events: AsyncGenerator<StreamEvent>): Promise<Replayed> {
  const replayed: Replayed = { messages: [], gaps: new Map(), position: undefined }
  for (;;) {
    const { value: event, done } = await events.next()
    if (done) throw new Error('ended before it was live')
    if (event.name === 'message') replayed.messages.push(messageOf(event))
    else if (event.name === 'gap') replayed.gaps.set(event.data.pattern as string, event.data.reason as GapReason)
    else if (event.name === 'refused') throw new HttpError(errorOfServer(event.data as never))
    else if (event.name === 'live') {
      replayed.position = event.id
      return replayed
    }
  }
}

function messageOf({ id, data }: StreamEvent): StreamMessage {
  const { key, payload, text, base64, ...rest } = data as {
    key: string
    payload?: unknown
    text?: string
    base64?: string
  }
  const bytes = base64 === undefined ? undefined : Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))
  // What is left is meta, perhaps beside members of later versions.
  const meta = 'timeMs' in rest ? (rest as MessageMeta) : undefined
  return { key, position: id, meta, payload: bytes ?? text ?? JSON.stringify(payload) }
}

function rangeOf({ since, last, rewindMs }: StreamListen, hasMeta: boolean): Record<string, string> {
  const meta = hasMeta ? { meta: '' } : {}
  if (since !== undefined) return { since, ...meta }
  return last === undefined ? { rewind: `${rewindMs}`, ...meta } : { last: `${last}`, ...meta }
}

function epochOf(position: string | undefined): string | undefined {
  return position?.slice(0, position.lastIndexOf(':'))
}

function offsetOf(position: string): number {
  return parsePosition(position)?.offset ?? 0
}

/** A position of another epoch is later: its log has just begun. */
function isAfter(position: string | undefined, other: string | undefined): boolean {
  if (position === undefined || other === undefined) return false
  return epochOf(position) !== epochOf(other) || offsetOf(position) > offsetOf(other)
}

function earliest(positions: readonly (string | undefined)[]): string | undefined {
  const known = positions.filter((position) => position !== undefined)
  return known.reduce<string | undefined>(
    (least, at) => (least === undefined || isAfter(least, at) ? at : least),
    undefined,
  )
}
