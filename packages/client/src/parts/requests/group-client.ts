import { checkKey, checkPattern, checks } from '../../core/checks.js'
import type { ClientCore, ClientPart } from '../../core/client-part.js'
import { nowMs } from '../../core/connection/clock.js'
import { partOf } from '../../core/of-client.js'
import { invalid } from '../../core/options.js'
import { decodePayload, encodePayload } from '../../core/publishing/payload.js'
import { type ErrorCode, WebMQError } from '../../protocol/errors.js'
import { isGroup } from '../../protocol/fields.js'
import type { ServerMessage } from '../../protocol/messages.js'
import type { RawMessage } from '../../protocol/raw-message.js'
import { decodeEnded, decodeReply, decodeTask, encodeRequest } from '../../protocol/tasks.js'
import { type Handler, JoinedGroup, LiveMembership } from './joined-group.js'
import type { RequestOptions } from './types.js'

type ReplyMessage = Extract<ServerMessage, { verb: 'reply' }>

interface Asking {
  readonly key: string
  readonly payload: string | Uint8Array
  readonly endMs: number
  /** Its id on the wire, once it was sent. */
  id: string | undefined
  settle(outcome: ReplyMessage | WebMQError): void
}

const DEFAULT_TIMEOUT_MS = 10_000
const MAX_TIMEOUT_MS = 300_000

/** The queue groups and requests of one client. */
class GroupClient implements ClientPart {
  readonly #core: ClientCore
  readonly #joined = new Map<string, JoinedGroup>()
  readonly #asking = new Set<Asking>()
  /** Those of them that were sent. */
  readonly #sent = new Map<string, Asking>()
  #connectionCount = 0

  constructor(core: ClientCore) {
    this.#core = core
  }

  /**
   * Becomes a member of a queue group.
   * @throws {WebMQError} `E_PATTERN_INVALID`, `E_OPTION_INVALID`.
   */
  join(pattern: string, handler: Handler, group: string, isResponder: boolean, signal?: AbortSignal): LiveMembership {
    checkPattern(pattern)
    checks.receiver?.(handler)
    if (!isGroup(group ?? '')) throw invalid(`group ${group}`)
    const id = idOf(group, pattern, isResponder)
    const onEmpty = () => this.#joined.delete(id)
    const joined = this.#joined.get(id) ?? new JoinedGroup(this.#core, group, pattern, isResponder, onEmpty)
    const member = new LiveMembership(joined, handler, signal)
    const closedBy = signal?.aborted ? new WebMQError('E_ABORTED') : this.#core.closedBy()
    if (closedBy) member.ended(closedBy)
    else {
      this.#joined.set(id, joined)
      joined.add(member)
    }
    return member
  }

  /** Implements `request`. @param codec `null`: the payload is JSON, whatever the client's codec. */
  async ask(key: string, value: unknown, options: RequestOptions = {}, codec?: null): Promise<unknown> {
    const { sender, options: clientOptions } = this.#core
    const { timeoutMs = DEFAULT_TIMEOUT_MS, signal } = options
    checkKey(key)
    if (!(timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS)) throw invalid(`timeoutMs ${timeoutMs}`)
    const payload = encodePayload(value, codec === null ? undefined : clientOptions.codec)
    const closedBy = signal?.aborted ? aborted(signal) : this.#core.closedBy()
    if (closedBy) throw closedBy
    if (this.#asking.size >= clientOptions.maxMessages) {
      throw new WebMQError('E_QUEUE_FULL', { detail: `${clientOptions.maxMessages} requests wait` })
    }
    const reply = await new Promise<ReplyMessage>((resolve, reject) => {
      const asking: Asking = {
        key,
        payload,
        endMs: nowMs() + timeoutMs,
        id: undefined,
        settle: (outcome) => {
          clearTimeout(timer)
          signal?.removeEventListener('abort', abort)
          this.#asking.delete(asking)
          if (asking.id !== undefined) this.#sent.delete(asking.id)
          if (outcome instanceof WebMQError) reject(outcome)
          else resolve(outcome)
        },
      }
      const abort = () => asking.settle(aborted(signal))
      const timer = setTimeout(
        () => asking.settle(new WebMQError('E_TIMEOUT', { detail: `request ${key}` })),
        timeoutMs,
      )
      signal?.addEventListener('abort', abort)
      this.#asking.add(asking)
      if (sender.isLive) this.#send(asking)
    })
    if (reply.isError) throw errorOf(reply)
    try {
      return decodePayload(reply.payload, clientOptions.codec)
    } catch (cause) {
      throw new WebMQError('E_RESPONSE', { detail: `request ${key}`, cause })
    }
  }

  up(): void {
    for (const joined of this.#joined.values()) joined.up()
    for (const asking of this.#asking) this.#send(asking)
  }

  down(): void {
    this.#connectionCount++
    for (const joined of this.#joined.values()) joined.down()
    // A responder may have it. Only the app knows whether it may be handled twice.
    for (const asking of [...this.#sent.values()]) {
      asking.settle(new WebMQError('E_DISCONNECTED', { detail: `request ${asking.key}` }))
    }
  }

  receive(raw: RawMessage): void {
    switch (raw.verb) {
      case 'task': {
        const task = decodeTask(raw)
        const { group, pattern, request } = task
        const connection = this.#connectionCount
        const isHere = () => this.#core.sender.isLive && connection === this.#connectionCount
        this.#joined.get(idOf(group, pattern, request !== undefined))?.take(task, isHere)
        break
      }
      case 'reply': {
        const reply = decodeReply(raw)
        this.#sent.get(reply.id)?.settle(reply)
        break
      }
      case 'ended': {
        const { group, pattern, respond = false, message } = decodeEnded(raw)
        const error = new WebMQError('E_FORBIDDEN', { message })
        this.#joined.get(idOf(group, pattern, respond))?.end(error)
        this.#core.report({ error, pattern })
      }
    }
  }

  close(error: WebMQError): void {
    for (const joined of [...this.#joined.values()]) joined.end(error)
    for (const asking of [...this.#asking]) asking.settle(error)
  }

  #send(asking: Asking): void {
    const { key, payload, endMs } = asking
    const withinMs = Math.max(1, Math.ceil(endMs - nowMs()))
    this.#core.requests.send(
      (id) => {
        asking.id = id
        this.#sent.set(id, asking)
        return encodeRequest({ id, key, withinMs, payload })
      },
      (answer) => {
        if (answer instanceof WebMQError) asking.settle(answer)
      },
    )
  }
}

export const groupsOf = partOf((core) => new GroupClient(core))

function idOf(group: string, pattern: string, isResponder: boolean): string {
  return `${isResponder} ${group} ${pattern}`
}

function aborted(signal: AbortSignal | undefined): WebMQError {
  return new WebMQError('E_ABORTED', { cause: signal?.reason })
}

/** The error of a responder. Its text is of another client: bounded, and not trusted to have a form. */
function errorOf({ payload }: ReplyMessage): WebMQError {
  let json: { readonly code?: unknown; readonly message?: unknown }
  try {
    json = Object(JSON.parse(typeof payload === 'string' ? payload : new TextDecoder().decode(payload)))
  } catch (cause) {
    return new WebMQError('E_RESPONSE', { cause })
  }
  const { code, message } = json
  return new WebMQError(
    typeof code === 'string' && /^E_[A-Z\d_]{1,40}$/.test(code) ? (code as ErrorCode) : 'E_RESPONSE',
    typeof message === 'string' ? { message: message.slice(0, 512) } : {},
  )
}
