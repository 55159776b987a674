import { MessageRun, type RunMemory } from '../../../kernel/ports/message-run.js'
import type { ConnectionId, UpgradeId, UpgradeRequest } from '../../../kernel/ports/transport.js'
import { TextUpgradeRequest } from '../upgrade/text-request.js'

/** kind, flags, code, length, id: see `crates/engine/src/bridge/event.rs`. */
const HEADER_BYTES = 16

const UPGRADE = 1
const MESSAGES = 2
const CLOSED = 3
const HTTP = 4
const FAILED = 5
const QUIET = 6
const ENDED = 7
const DRAINED = 8
const FLAG_ENCRYPTED = 2
const FLAG_STREAM = 4
const LINE_END = 10

/**
 * Work of an event or a message beyond its bytes, in bytes of events: about 100 per microsecond. An upgrade costs 100 us with its session
 * and its `welcome`, an end 40 us.
 */
const WORK = { [UPGRADE]: 8_192, [MESSAGES]: 128, [CLOSED]: 4_096, [HTTP]: 512 } as const

/** Bytes of an event that count: a larger message costs less per byte, and waits for a turn where others wait. The clock counts all. */
const MAX_COUNTED_BYTES = 16_384

export interface NativeEventHandlers {
  upgrade(request: UpgradeRequest): void
  messageRun(connection: ConnectionId, run: MessageRun): void
  drained(connection: ConnectionId): void
  /** Once per upgrade that was not rejected, accepted or not. A connection has the number of its upgrade. */
  closed(connection: ConnectionId, code: number, reason: string): void
  /**
   * @param peer The client, if the socket does not tell of it: a proxy has, or it is a Unix socket, or relays plaintext.
   * @param read Borrowed: the bytes that were read from the socket.
   */
  http(token: number, peer: HttpPeer | undefined, read: Buffer): void
  failed(what: string): void
  /** A thread no longer accepts connections. */
  quiet(thread: number): void
  /** The last event of a thread. */
  ended(thread: number): void
}

export interface HttpPeer {
  readonly address: string
  readonly port: number
  readonly isEncrypted: boolean
}

/** Packed events, and which of them are still to be handled. */
export interface EventPortion {
  packed: Buffer
  /** Where the next event begins, in bytes. */
  start: number
  end: number
  readonly receivedMs: number
  /** Absent when `packed` is overwritten after the call. */
  readonly memory?: RunMemory
}

/**
 * Calls the handlers for the events of a portion, in order, until all are handled or the work is done. Handlers MUST NOT
 * throw.
 * @param maxWork In bytes of events. An event counts as its bytes and those of `WORK`.
 * @returns The work that was done.
 */
export function readEvents(portion: EventPortion, handlers: NativeEventHandlers, maxWork: number): number {
  const { packed, memory, receivedMs } = portion
  let work = 0
  while (portion.start < portion.end && work < maxWork) {
    const { start } = portion
    const end = start + packed.readUInt32LE(start + 4)
    const body = start + HEADER_BYTES
    const id = packed.readDoubleLE(start + 8)
    switch (packed[start]) {
      case MESSAGES:
        handlers.messageRun(id as ConnectionId, new MessageRun(packed, body, end, receivedMs, memory))
        work += ((packed[start + 2] ?? 0) + (packed[start + 3] ?? 0) * 256 - 1) * WORK[MESSAGES]
        break
      case UPGRADE:
        handlers.upgrade(
          new TextUpgradeRequest(
            id as UpgradeId,
            ((packed[start + 1] ?? 0) & FLAG_STREAM) !== 0 ? 'sse' : 'websocket',
            packed.readUInt32LE(body),
            packed.toString('latin1', body + 4, end),
          ),
        )
        break
      case DRAINED:
        handlers.drained(id as ConnectionId)
        break
      case CLOSED:
        handlers.closed(id as ConnectionId, packed.readUInt16LE(start + 2), packed.toString('utf8', body, end))
        break
      case HTTP:
        readHttp(packed.subarray(body, end), packed[start + 1] === FLAG_ENCRYPTED, handlers)
        break
      case FAILED:
        handlers.failed(packed.toString('utf8', body, end))
        break
      case QUIET:
        handlers.quiet(packed.readUInt16LE(start + 2))
        break
      case ENDED:
        handlers.ended(packed.readUInt16LE(start + 2))
        break
      default:
        handlers.failed(`event of unknown kind ${packed[start]}`)
    }
    work +=
      Math.min(MAX_COUNTED_BYTES, end - start) + ((WORK as Readonly<Record<number, number>>)[packed[start] ?? 0] ?? 0)
    portion.start = end
  }
  return work
}

/** Token, port and address of the client, a line end, and what was read. */
function readHttp(event: Buffer, isEncrypted: boolean, handlers: NativeEventHandlers): void {
  const addressEnd = event.indexOf(LINE_END, 8)
  const address = event.toString('latin1', 8, addressEnd)
  const peer = address === '' ? undefined : { address, port: event.readUInt32LE(4), isEncrypted }
  handlers.http(event.readUInt32LE(0), peer, event.subarray(addressEnd + 1))
}
