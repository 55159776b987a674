import type { WebMQClient } from '../../core/client.js'
import { isSeen } from '../../core/listening/position.js'
import { WebMQError } from '../../protocol/errors.js'
import { type StateStore, state } from '../state/index.js'
import type { Channel } from './channel.js'
import { Joiner, MAX_CHUNKS } from './frames.js'

/** The document up to a position of the log. */
export interface Snapshot {
  /** Empty if the broker keeps no log. */
  readonly position: string
  readonly update: Uint8Array
}

/** Collaborators of {@link Snapshots}. */
export interface SnapshotsContext {
  readonly client: WebMQClient
  readonly channel: Channel
  readonly key: string
  /** Limit of a snapshot. */
  readonly maxBytes: number
  report(error: unknown): void
}

/** A snapshot is written beside the last one, so that one of them is whole at any time. */
const SLOTS = ['a', 'b'] as const
/** [P-8.1] */
const MAX_POSITION_BYTES = 64

/** The snapshots of a document: retained messages, one for each chunk. */
export class Snapshots {
  readonly #context: SnapshotsContext
  #store: StateStore<unknown> | undefined
  #isKept = true
  #next = 0

  constructor(context: SnapshotsContext) {
    this.#context = context
  }

  /** Whether the server retains them, as far as is known. */
  get isKept(): boolean {
    return this.#isKept
  }

  /** Returns the snapshots that are whole. To apply an older one, too, does no harm. */
  async read(): Promise<readonly Snapshot[]> {
    const { key, maxBytes } = this.#context
    const retained = await this.#retained()
    const found = SLOTS.map((slot) => {
      const joiner = new Joiner(maxBytes)
      const payloads = retained.filter(([name]) => name.startsWith(`${key}.${slot}.`)).map(([, payload]) => payload)
      return payloads.flatMap((payload) => this.#snapshotOf(payload, joiner) ?? [])
    })
    const [a, b] = found.map((snapshots) => snapshots[0]?.position)
    this.wasWritten(a !== undefined && !isSeen(a, b) ? 0 : 1)
    return found.flat()
  }

  /** Ends a read. */
  stop(): void {
    this.#store?.close()
  }

  /** Writes a snapshot. Resolves with its slot once the broker has it. */
  async write(snapshot: Snapshot): Promise<number> {
    const { channel, key } = this.#context
    const slot = this.#next
    await channel.publish(
      { kind: 'snapshot', bytes: encodeSnapshot(snapshot) },
      (index) => `${key}.${SLOTS[slot]}.${index}`,
    )
    this.wasWritten(slot)
    return slot
  }

  async #retained(): Promise<readonly [key: string, payload: unknown][]> {
    const { client, key, maxBytes } = this.#context
    this.stop()
    const store = state(`${key}.*.*`, { client, maxKeys: MAX_CHUNKS * SLOTS.length, maxBytes: maxBytes * SLOTS.length })
    this.#store = store
    try {
      await store.ready
      this.#isKept = true
      return [...store.entries()]
    } catch (error) {
      if (!(error instanceof WebMQError && error.code === 'E_UNSUPPORTED')) throw error
      this.#isKept = false
      return []
    } finally {
      store.close()
    }
  }

  #snapshotOf(payload: unknown, joiner: Joiner): Snapshot | undefined {
    try {
      const frame = this.#context.channel.read(payload, joiner, ['snapshot'])
      return frame && decodeSnapshot(frame.bytes)
    } catch (error) {
      // Anybody with a grant may write anything. The log and the other clients may have the document.
      this.#context.report(error)
      return undefined
    }
  }

  /** Somebody has written a snapshot: the next one must not replace it. */
  wasWritten(slot: number): void {
    this.#next = slot === 0 ? 1 : 0
  }
}

function encodeSnapshot({ position, update }: Snapshot): Uint8Array {
  const head = new TextEncoder().encode(position)
  const bytes = new Uint8Array(1 + head.length + update.length)
  bytes[0] = head.length
  bytes.set(head, 1)
  bytes.set(update, 1 + head.length)
  return bytes
}

function decodeSnapshot(bytes: Uint8Array): Snapshot {
  const [length = 0] = bytes
  if (length > MAX_POSITION_BYTES || length >= bytes.length)
    throw new WebMQError('E_PAYLOAD_INVALID', { detail: 'no snapshot' })
  return { position: new TextDecoder().decode(bytes.subarray(1, 1 + length)), update: bytes.subarray(1 + length) }
}
