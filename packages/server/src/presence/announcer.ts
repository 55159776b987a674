import type { Broker } from '../ports/broker.js'
import { isPromise, type MaybePromise } from '../ports/maybe-promise.js'
import {
  type Departure,
  encodeChanges,
  encodeDeparture,
  encodeEntry,
  encodeLease,
  encodePart,
  encodeWant,
} from './node-message.js'
import { addressOf, type Entry, type Roster } from './roster.js'

/** The key on which nodes tell all others; that of one node alone has its name behind. */
export const PRESENCE_KEY = '$webmq.presence'

/** What an {@link Announcer} works with. */
export interface AnnouncerContext {
  /** Name of this node, as long as it lives. */
  readonly node: string
  readonly roster: Pick<Roster, 'entriesOf'>
  readonly broker: Pick<Broker, 'publish'>
  /** Bytes of one message to other nodes, unless a single member has more. */
  readonly maxMessageBytes: number
  /** For which a lease of this node is good. */
  readonly validMs: number
  readonly onError: (error: unknown) => void
}

/** What changes within this time goes out together, so that a crowd that comes at once is a few messages. */
export const BATCH_MS = 20
/** Members that changed and were not told of yet; beyond it they are forgotten, and the others ask for everything. */
const MAX_UNTOLD = 10_000
const ENVELOPE_BYTES = 256

/** Tells the other nodes what this node holds: changes as they come, leases, and everything to those who ask. */
export class Announcer {
  readonly #context: AnnouncerContext
  /** By address: members to tell of. */
  readonly #untold = new Map<string, Departure>()
  readonly #wants = new Map<string, number>()
  /** Those who are to get a lease, and those who are being sent everything, with the number that they have given it. */
  readonly #greeters = new Set<string>()
  readonly #askers = new Map<string, number>()
  /** Those to whom parts are on their way. */
  readonly #served = new Set<string>()
  #isLeaseDue = false
  #isAsking = false
  #isOpen = false
  #version = 0
  #timer: NodeJS.Timeout | undefined

  constructor(context: AnnouncerContext) {
    this.#context = context
  }

  /** From now on things go out. */
  open(): void {
    this.#isOpen = true
    this.#schedule()
  }

  /** Nothing goes out; what is to be told waits, as far as it is no question. */
  close(): void {
    this.#isOpen = false
    this.#wants.clear()
    this.#greeters.clear()
    this.#askers.clear()
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** A member of this node came, changed, or went. `stamp` as in {@link Departure}. */
  changed(key: string, id: string, stamp: number): void {
    this.#untold.set(addressOf(key, id), { key, id, stamp })
    if (this.#untold.size > MAX_UNTOLD) {
      this.#untold.clear()
      // A version that nobody hears of: with the next lease all others see that they have missed something.
      this.#version++
      this.#isLeaseDue = true
    }
    this.#schedule()
  }

  /** Says that this node lives; when it asks, all others answer with a lease. */
  lease(asks = false): void {
    this.#isLeaseDue = true
    this.#isAsking ||= asks
    this.#schedule()
  }

  /** Answers one who has asked with a lease. */
  greet(node: string): void {
    this.#greeters.add(node)
    this.#schedule()
  }

  /** Asks a node for everything. */
  want(node: string, round: number): void {
    this.#wants.set(node, round)
    this.#schedule()
  }

  /** Sends a node everything, in parts; a newer question ends an older one. */
  answer(node: string, round: number): void {
    if (!this.#isOpen) return
    this.#askers.set(node, round)
    if (this.#served.has(node)) return
    this.#served.add(node)
    // Never from within a call of the broker.
    setImmediate(() => void this.#serve(node))
  }

  /** The last word: what is left of this node ends after so long. */
  farewell(validMs: number): void {
    if (!this.#isOpen) return
    this.#tellChanges()
    void this.#publish(undefined, encodeLease(this.#context.node, this.#version, validMs, false))
    this.close()
  }

  #schedule(): void {
    if (this.#isOpen) this.#timer ??= setTimeout(() => this.#flush(), BATCH_MS).unref()
  }

  #flush(): void {
    const { node, validMs } = this.#context
    this.#timer = undefined
    this.#tellChanges()
    if (this.#isLeaseDue) void this.#publish(undefined, encodeLease(node, this.#version, validMs, this.#isAsking))
    for (const greeter of this.#greeters) void this.#publish(greeter, encodeLease(node, this.#version, validMs, false))
    for (const [peer, round] of this.#wants) void this.#publish(peer, encodeWant(node, round))
    this.#isLeaseDue = this.#isAsking = false
    this.#greeters.clear()
    this.#wants.clear()
  }

  #tellChanges(): void {
    const { node, roster, maxMessageBytes } = this.#context
    if (this.#untold.size === 0) return
    const held = roster.entriesOf(node)
    let entries: string[] = []
    let departures: string[] = []
    let bytes = ENVELOPE_BYTES
    const tell = () => {
      if (entries.length + departures.length === 0) return
      void this.#publish(undefined, encodeChanges(node, ++this.#version, entries.join(), departures.join()))
      entries = []
      departures = []
      bytes = ENVELOPE_BYTES
    }
    for (const [address, departure] of this.#untold) {
      const entry = held.get(address)
      const text = entry === undefined ? encodeDeparture(departure) : encodeEntry(entry)
      const textBytes = Buffer.byteLength(text) + 1
      if (bytes + textBytes > maxMessageBytes) tell()
      if (entry === undefined) departures.push(text)
      else entries.push(text)
      bytes += textBytes
    }
    tell()
    this.#untold.clear()
  }

  async #serve(asker: string): Promise<void> {
    for (let round = this.#askers.get(asker); round !== undefined; round = this.#askers.get(asker)) {
      await this.#sendAll(asker, round)
      if (this.#askers.get(asker) === round) this.#askers.delete(asker)
    }
    this.#served.delete(asker)
  }

  /** Goes through what this node holds while it changes: what is new meanwhile comes last, or as a change. */
  async #sendAll(asker: string, round: number): Promise<void> {
    const { node, roster, maxMessageBytes } = this.#context
    const held = roster.entriesOf(node)
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
      // One part at a time: a node with very many members fills no queue of the broker.
      if (bytes + Buffer.byteLength(text) + 1 > maxMessageBytes) {
        goesOn = await send(false)
        if (!goesOn) break
        // As it is now: a change that was told while the part was on its way comes before what is sent next.
        text = textOf(held.get(address))
      }
      if (text === '') continue
      entries.push(text)
      bytes += Buffer.byteLength(text) + 1
    }
    if (goesOn) await send(true)
  }

  /** What could not be published shows to the others as a version that is missing. Returns whether it could. */
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
