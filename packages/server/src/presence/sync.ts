import type { Broker } from '../ports/broker.js'
import { isPromise, type MaybePromise } from '../ports/maybe-promise.js'
import { addressOf, type Entry, type Members } from './members.js'
import {
  type Departure,
  encodeChanges,
  encodeDeparture,
  encodeEntry,
  encodeLease,
  encodePart,
  encodeWant,
} from './node-message.js'

/** The key for messages to all nodes. For messages to one node, its name is appended. */
export const PRESENCE_KEY = '$webmq.presence'

/** What a {@link PresenceSync} works with. */
export interface PresenceSyncContext {
  /** Name of this node, new with every start. */
  readonly node: string
  readonly members: Pick<Members, 'entriesOf'>
  readonly broker: Pick<Broker, 'publish'>
  /** Bytes of one message to other nodes; only a single large member may exceed it. */
  readonly maxMessageBytes: number
  /** Time for which a lease of this node is valid. */
  readonly validMs: number
  readonly onError: (error: unknown) => void
}

/** Changes within this time go out together, so that a crowd that arrives at once costs few messages. */
export const BATCH_MS = 20
/** Most pending changes. Beyond it they are dropped, and the other nodes ask for a full copy. */
const MAX_PENDING = 10_000
const ENVELOPE_BYTES = 256

/** Keeps the other nodes in sync with this node's members: sends changes, leases and, on request, full copies. */
export class PresenceSync {
  readonly #context: PresenceSyncContext
  /** Members that changed, by address. */
  readonly #pending = new Map<string, Departure>()
  /** Nodes to ask for a full copy, with the number of the request. */
  readonly #wants = new Map<string, number>()
  /** Nodes that asked for a lease. */
  readonly #leaseAskers = new Set<string>()
  /** Nodes that asked for a full copy, with the number of their request. */
  readonly #askers = new Map<string, number>()
  /** Nodes that are being sent a full copy. */
  readonly #served = new Set<string>()
  #isLeaseDue = false
  #isAsking = false
  #isOpen = false
  #version = 0
  #timer: NodeJS.Timeout | undefined

  constructor(context: PresenceSyncContext) {
    this.#context = context
  }

  /** Begins to publish. */
  open(): void {
    this.#isOpen = true
    this.#schedule()
  }

  /** Stops publishing. Changes wait until `open`; requests and answers are dropped. */
  close(): void {
    this.#isOpen = false
    this.#wants.clear()
    this.#leaseAskers.clear()
    this.#askers.clear()
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** A member of this node entered, changed or left. For `stamp` see {@link Departure}. */
  changed(key: string, id: string, stamp: number): void {
    this.#pending.set(addressOf(key, id), { key, id, stamp })
    if (this.#pending.size > MAX_PENDING) {
      this.#pending.clear()
      // Skips a version: the next lease shows the other nodes that they have missed changes.
      this.#version++
      this.#isLeaseDue = true
    }
    this.#schedule()
  }

  /** Tells all nodes that this node is alive. With `asks`, every other node answers with a lease. */
  lease(asks = false): void {
    this.#isLeaseDue = true
    this.#isAsking ||= asks
    this.#schedule()
  }

  /** Sends a lease to a node that asked for one. */
  leaseTo(node: string): void {
    this.#leaseAskers.add(node)
    this.#schedule()
  }

  /** Asks a node for a full copy. */
  want(node: string, round: number): void {
    this.#wants.set(node, round)
    this.#schedule()
  }

  /** Sends a node a full copy, in parts; a newer request ends an older one. */
  serve(node: string, round: number): void {
    if (!this.#isOpen) return
    this.#askers.set(node, round)
    if (this.#served.has(node)) return
    this.#served.add(node)
    // Later: never publish from within a call of the broker.
    setImmediate(() => void this.#serve(node))
  }

  /** Sends the last lease: this node's members end after this time. */
  farewell(validMs: number): void {
    if (!this.#isOpen) return
    this.#sendChanges()
    void this.#publish(undefined, encodeLease(this.#context.node, this.#version, validMs, false))
    this.close()
  }

  #schedule(): void {
    if (this.#isOpen) this.#timer ??= setTimeout(() => this.#flush(), BATCH_MS).unref()
  }

  #flush(): void {
    const { node, validMs } = this.#context
    this.#timer = undefined
    this.#sendChanges()
    if (this.#isLeaseDue) void this.#publish(undefined, encodeLease(node, this.#version, validMs, this.#isAsking))
    for (const asker of this.#leaseAskers) void this.#publish(asker, encodeLease(node, this.#version, validMs, false))
    for (const [peer, round] of this.#wants) void this.#publish(peer, encodeWant(node, round))
    this.#isLeaseDue = this.#isAsking = false
    this.#leaseAskers.clear()
    this.#wants.clear()
  }

  #sendChanges(): void {
    const { node, members, maxMessageBytes } = this.#context
    if (this.#pending.size === 0) return
    const held = members.entriesOf(node)
    let entries: string[] = []
    let departures: string[] = []
    let bytes = ENVELOPE_BYTES
    const send = () => {
      if (entries.length + departures.length === 0) return
      void this.#publish(undefined, encodeChanges(node, ++this.#version, entries.join(), departures.join()))
      entries = []
      departures = []
      bytes = ENVELOPE_BYTES
    }
    for (const [address, departure] of this.#pending) {
      const entry = held.get(address)
      const text = entry === undefined ? encodeDeparture(departure) : encodeEntry(entry)
      const textBytes = Buffer.byteLength(text) + 1
      if (bytes + textBytes > maxMessageBytes) send()
      if (entry === undefined) departures.push(text)
      else entries.push(text)
      bytes += textBytes
    }
    send()
    this.#pending.clear()
  }

  async #serve(asker: string): Promise<void> {
    for (let round = this.#askers.get(asker); round !== undefined; round = this.#askers.get(asker)) {
      await this.#sendAll(asker, round)
      if (this.#askers.get(asker) === round) this.#askers.delete(asker)
    }
    this.#served.delete(asker)
  }

  /** Walks the live entries while they may change: new ones come last in the walk, or go out as changes. */
  async #sendAll(asker: string, round: number): Promise<void> {
    const { node, members, maxMessageBytes } = this.#context
    const held = members.entriesOf(node)
    let index = 0
    let entries: string[] = []
    let bytes = ENVELOPE_BYTES
    const send = async (isLast: boolean) => {
      const head = { round, index: index++, version: this.#version, isLast }
      const text = encodePart(node, head, entries.join())
      entries = []
      bytes = ENVELOPE_BYTES
      const isSent = await this.#publish(asker, text)
      return isSent && this.#askers.get(asker) === round
    }
    let goesOn = true
    for (const address of held.keys()) {
      let text = textOf(held.get(address))
      // One part at a time, so that a node with very many members does not fill the broker's queues.
      if (bytes + Buffer.byteLength(text) + 1 > maxMessageBytes) {
        goesOn = await send(false)
        if (!goesOn) break
        // Encoded anew: a change that went out while the part was being published precedes the next part.
        text = textOf(held.get(address))
      }
      if (text === '') continue
      entries.push(text)
      bytes += Buffer.byteLength(text) + 1
    }
    if (goesOn) await send(true)
  }

  /** Returns whether the message was published. Other nodes notice a lost message by its missing version. */
  #publish(to: string | undefined, text: string): MaybePromise<boolean> {
    const key = to === undefined ? PRESENCE_KEY : `${PRESENCE_KEY}.${to}`
    const fail = (error: unknown) => {
      this.#context.onError(error)
      return false
    }
    try {
      const accepted = this.#context.broker.publish({ key, payload: Buffer.from(text), isBinary: false })
      return isPromise(accepted) ? accepted.then(() => true, fail) : true
    } catch (error) {
      return fail(error)
    }
  }
}

function textOf(entry: Entry | undefined): string {
  return entry === undefined ? '' : encodeEntry(entry)
}
