import type {
  AcceptOptions,
  ConnectionId,
  FrameData,
  GroupId,
  GroupOverflow,
  OutboxLevel,
  Rejection,
  UpgradeId,
} from '../../../kernel/ports/transport.js'

/** Size of the buffer for commands. A turn with more than `MAX_WAITING_BYTES` is submitted in parts. */
const BUFFER_BYTES = 256 * 1024
const MAX_WAITING_BYTES = 64 * 1024
/** A payload of this size or more is submitted alone: the engine then refers to it instead of copying it. */
const LONE_PAYLOAD_BYTES = 64 * 1024
/** kind, flags, number, length, id: see `crates/engine/src/bridge/command.rs`. */
const HEADER_BYTES = 16
/** The engine writes the frame's header here, before the payload. */
const GAP_BYTES = 10
/** UTF-8 takes at most this many bytes per UTF-16 unit. */
const MAX_BYTES_PER_UNIT = 3
const NO_SUBPROTOCOL = 0xffff

const ACCEPT = 1
const REJECT = 2
const JOIN = 3
const LEAVE = 4
const SEND = 5
const MULTICAST = 6
const CLOSE = 7
const NOTIFY = 8
const PAUSE = 9
const RESUME = 10
const OVERFLOW = 11
const ANSWER = 12
const FLAG_BINARY = 1
const FLAG_EXCEPT = 2
const FLAG_TOPIC = 4
const FLAG_NOTICE = 8
const FLAG_URGENT = 16
const POLICIES = { 'drop-oldest': 1, latest: 2 } as const

/**
 * Packs the commands of a turn and submits them together, at the latest at the end of the turn.
 *
 * There is no object per command: commands are written into one buffer, which the engine copies once.
 */
export class NativeCommands {
  readonly #submit: (packed: Buffer, length: number) => void
  /** The usual buffer. A turn that needs more room gets a larger one. */
  readonly home = Buffer.allocUnsafeSlow(BUFFER_BYTES)
  #buffer = this.home
  /** A view of `#buffer`: writes numbers much faster than the methods of a Buffer. */
  #view = new DataView(this.#buffer.buffer)
  #length = 0
  #isScheduled = false
  #isHeld = false
  /** The prepared answer that the waiting commands end with. */
  #answer: string | undefined

  /** @param submit Gets the first `length` bytes of `packed`; MUST copy them before it returns. */
  constructor(submit: (packed: Buffer, length: number) => void) {
    this.#submit = submit
  }

  accept(upgrade: UpgradeId, { subprotocol, headers }: AcceptOptions): void {
    const nameLength = subprotocol === undefined ? NO_SUBPROTOCOL : Buffer.byteLength(subprotocol)
    const start = this.#begin(ACCEPT, 0, nameLength, upgrade)
    if (subprotocol !== undefined) this.#text(subprotocol)
    if (headers !== undefined) this.#headers(headers)
    this.#end(start)
  }

  reject(upgrade: UpgradeId, { status, headers = {}, body = '' }: Rejection): void {
    const start = this.#begin(REJECT, 0, status, upgrade)
    const sizeAt = this.#length
    this.#uint32(0)
    this.#headers(headers)
    this.#view.setUint32(sizeAt, this.#length - sizeAt - 4, true)
    this.#text(body)
    this.#end(start)
  }

  join(connection: ConnectionId, group: GroupId, kind = JOIN): void {
    const start = this.#begin(kind, 0, 0, connection)
    this.#uint32(group)
    this.#end(start)
  }

  leave(connection: ConnectionId, group: GroupId): void {
    this.join(connection, group, LEAVE)
  }

  send(connection: ConnectionId, data: FrameData, isBinary: boolean): void {
    const isLone = sizeOf(data) >= LONE_PAYLOAD_BYTES
    if (isLone) this.#flushPart()
    const start = this.#begin(SEND, isBinary && typeof data !== 'string' ? FLAG_BINARY : 0, 0, connection)
    this.#payload(data)
    this.#end(start)
    if (isLone) this.#flushPart()
  }

  multicast(
    groups: readonly GroupId[],
    data: FrameData,
    isBinary: boolean,
    except?: ConnectionId,
    topic?: number,
    isUrgent = false,
  ): void {
    if (groups.length === 0) return
    const isLone = sizeOf(data) >= LONE_PAYLOAD_BYTES
    if (isLone) this.#flushPart()
    const binaryFlag = isBinary && typeof data !== 'string' ? FLAG_BINARY : 0
    const exceptFlag = except === undefined ? 0 : FLAG_EXCEPT
    const topicFlag = topic === undefined ? 0 : FLAG_TOPIC
    const urgentFlag = isUrgent ? FLAG_URGENT : 0
    this.#answer = undefined
    const start = this.#begin(MULTICAST, binaryFlag | exceptFlag | topicFlag | urgentFlag, 0, except ?? 0)
    this.#groups(groups)
    if (topic !== undefined) this.#uint32(topic)
    this.#payload(data)
    this.#end(start)
    if (isLone) this.flush()
  }

  setOverflow(group: GroupId, overflow: GroupOverflow | undefined): void {
    const notice = overflow?.notice
    const policy = overflow === undefined ? 0 : POLICIES[overflow.policy]
    const start = this.#begin(OVERFLOW, notice === undefined ? 0 : FLAG_NOTICE, policy, 0)
    this.#uint32(group)
    if (notice !== undefined) this.#payload(notice)
    this.#end(start)
  }

  /** Each request that is handled in a turn prepares its answer: only the first is a command. */
  prepareAnswer(request: string, answer: string, validMs: number): void {
    if (this.#answer === answer) return
    this.#answer = answer
    const start = this.#begin(ANSWER, 0, validMs, 0)
    this.#uint32(Buffer.byteLength(request))
    this.#text(request)
    this.#payload(answer)
    this.#end(start)
  }

  close(connection: ConnectionId, code: number, reason: string): void {
    const start = this.#begin(CLOSE, 0, code, connection)
    this.#text(reason)
    this.#end(start)
  }

  notifyDrained(connection: ConnectionId, level: OutboxLevel): void {
    this.#end(this.#begin(NOTIFY, 0, level === 'empty' ? 0 : 1, connection))
  }

  pause(connection: ConnectionId): void {
    this.#end(this.#begin(PAUSE, 0, 0, connection))
  }

  resume(connection: ConnectionId): void {
    this.#end(this.#begin(RESUME, 0, 0, connection))
  }

  flush(): void {
    const length = this.#length
    if (length === 0) return
    this.#length = 0
    this.#answer = undefined
    const buffer = this.#buffer
    if (buffer !== this.home) this.#replace(this.home)
    this.#submit(buffer, length)
  }

  /** Suspends submitting at the end of the turn, until {@link release}. */
  hold(): void {
    this.#isHeld = true
  }

  release(): void {
    this.#isHeld = false
    this.flush()
  }

  /** Ends a {@link hold}; the commands stay at the start of {@link home}. Returns their length in bytes. */
  releaseHome(): number {
    this.#isHeld = false
    if (this.#buffer !== this.home) {
      this.flush()
      return 0
    }
    const length = this.#length
    this.#length = 0
    this.#answer = undefined
    return length
  }

  #begin(kind: number, flags: number, number: number, id: number): number {
    const start = this.#length
    this.#reserve(HEADER_BYTES)
    const buffer = this.#buffer
    buffer[start] = kind
    buffer[start + 1] = flags
    this.#view.setUint16(start + 2, number, true)
    this.#view.setFloat64(start + 8, id, true)
    this.#length = start + HEADER_BYTES
    return start
  }

  #end(start: number): void {
    this.#view.setUint32(start + 4, this.#length - start, true)
    if (this.#length >= MAX_WAITING_BYTES) this.#flushPart()
    else if (!this.#isScheduled && !this.#isHeld) {
      // After the microtasks of the turn, so that handlers that awaited a settled promise share the batch.
      this.#isScheduled = true
      process.nextTick(this.#turnEnds)
    }
  }

  /** Submits what the turn has so far. No prepared answer comes between that and the rest: the part withdraws it. */
  #flushPart(): void {
    if (this.#length === 0) return
    const start = this.#begin(ANSWER, 0, 0, 0)
    this.#uint32(0)
    this.#payload('')
    this.#view.setUint32(start + 4, this.#length - start, true)
    this.flush()
  }

  readonly #turnEnds = (): void => {
    this.#isScheduled = false
    if (!this.#isHeld) this.flush()
  }

  #headers(headers: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(headers)) {
      const [nameBytes, valueBytes] = [Buffer.from(name), Buffer.from(value)]
      this.#uint32(nameBytes.length)
      this.#uint32(valueBytes.length)
      this.#bytes(nameBytes)
      this.#bytes(valueBytes)
    }
  }

  #groups(groups: readonly GroupId[]): void {
    this.#reserve(4 + 4 * groups.length)
    this.#uint32(groups.length)
    for (const group of groups) this.#uint32(group)
  }

  #payload(data: FrameData): void {
    this.#reserve(GAP_BYTES)
    this.#length += GAP_BYTES
    if (typeof data === 'string') this.#text(data)
    else if (data instanceof Uint8Array) this.#bytes(data)
    else {
      const { byteLength } = data
      this.#reserve(byteLength)
      data.writeTo(this.#buffer, this.#length)
      this.#length += byteLength
    }
  }

  #text(text: string): void {
    const guess = text.length * MAX_BYTES_PER_UNIT
    this.#reserve(guess > BUFFER_BYTES ? Buffer.byteLength(text) : guess)
    this.#length += this.#buffer.write(text, this.#length)
  }

  #bytes(bytes: Uint8Array): void {
    this.#reserve(bytes.length)
    this.#buffer.set(bytes, this.#length)
    this.#length += bytes.length
  }

  #uint32(number: number): void {
    this.#reserve(4)
    this.#view.setUint32(this.#length, number, true)
    this.#length += 4
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes
    if (needed <= this.#buffer.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#buffer.length))
    this.#buffer.copy(larger, 0, 0, this.#length)
    this.#replace(larger)
  }

  #replace(buffer: Buffer<ArrayBuffer>): void {
    this.#buffer = buffer
    this.#view = new DataView(buffer.buffer)
  }
}

/** Bytes of binary data, UTF-16 units of text. */
function sizeOf(data: FrameData): number {
  return typeof data === 'string' ? data.length : data.byteLength
}
