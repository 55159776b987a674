import { encodeJson, isErrorCode, WebMQError } from 'webmq-client/protocol'
import { copyBytes } from '../../kernel/base/copy-bytes.js'
import { parseJson } from '../../kernel/base/parse-json.js'
import type { Reply } from '../../kernel/publishing/requests.js'
import type { GroupMember, GroupMessage, GroupName, RequestTicket } from './group-message.js'
import type { QueueGroups } from './queue-groups.js'
import { errorReply } from './requests.js'

/** Handles one message. The result, or what its promise resolves with, is the reply to a request. */
type Handle = (payload: unknown, message: { readonly key: string }) => unknown

/** @param isOwn The handler has failed; otherwise its publisher has sent what is no JSON. */
type MemberReport = (error: unknown, key: string, isOwn: boolean) => void

/** Bytes of messages whose handler has not settled; a member with more takes nothing. */
const MAX_WAITING_BYTES = 64 * 1_048_576
const OVERHEAD_BYTES = 256
/** A handler with this many promises that have not settled gets less while others have less. */
const LAG_COUNT = 64

/** A function of the process as a member of a queue group. It runs in a later turn than the one that delivers. */
export class LocalMember implements GroupMember {
  readonly #groups: Pick<QueueGroups, 'requests'>
  readonly #maxPayloadBytes: number
  readonly #handler: Handle
  readonly #onError: MemberReport
  #waitingBytes = 0
  #runningCount = 0
  #isClosed = false

  constructor(groups: Pick<QueueGroups, 'requests'>, maxPayloadBytes: number, handler: Handle, onError: MemberReport) {
    this.#groups = groups
    this.#maxPayloadBytes = maxPayloadBytes
    this.#handler = handler
    this.#onError = onError
  }

  get isLagging(): boolean {
    return this.#runningCount >= LAG_COUNT
  }

  take(_name: GroupName, { key, payload, isBinary }: GroupMessage, ticket: RequestTicket | undefined): boolean {
    const byteCount = payload.length + OVERHEAD_BYTES
    if (this.#isClosed || this.#waitingBytes + byteCount > MAX_WAITING_BYTES) return false
    this.#waitingBytes += byteCount
    this.#runningCount++
    const bytes = copyBytes(payload)
    setImmediate(() => {
      void this.#handle(key, bytes, isBinary, ticket).finally(() => {
        this.#waitingBytes -= byteCount
        this.#runningCount--
      })
    })
    return true
  }

  close(): void {
    this.#isClosed = true
  }

  async #handle(key: string, bytes: Uint8Array, isBinary: boolean, ticket: RequestTicket | undefined): Promise<void> {
    let isParsed = false
    try {
      const payload = isBinary ? bytes : parseJson(bytes)
      isParsed = true
      const result = await this.#handler(payload, { key })
      if (ticket !== undefined) this.#groups.requests.reply(this, ticket.id, replyOf(result, this.#maxPayloadBytes))
    } catch (error) {
      // A WebMQError is an answer; anything else is a bug of the application, which the requester must not see.
      if (ticket === undefined || !(error instanceof WebMQError)) this.#onError(error, key, isParsed)
      if (ticket !== undefined) this.#groups.requests.reply(this, ticket.id, refusalFrom(error))
    }
  }
}

/** @throws {WebMQError} `E_PAYLOAD_INVALID`, `E_PAYLOAD_TOO_LARGE` */
function replyOf(result: unknown, maxPayloadBytes: number): Reply {
  const isBinary = result instanceof Uint8Array
  // A handler that returns nothing has done its work.
  const payload = isBinary ? result : Buffer.from(encodeJson(result ?? null))
  if (payload.length > maxPayloadBytes) {
    throw new WebMQError('E_PAYLOAD_TOO_LARGE', { detail: `a reply of ${payload.length} bytes` })
  }
  return { payload, isBinary, isError: false }
}

function refusalFrom(error: unknown): Reply {
  const { code, message } = error instanceof WebMQError ? error : new WebMQError('E_RESPONSE')
  return errorReply(isErrorCode(code) ? code : 'E_RESPONSE', message.slice(0, MAX_REASON_CHARS))
}

const MAX_REASON_CHARS = 512
