import { contains, matches } from './keys.js'
import { placeOf } from './place.js'
import type { FaultRecord, MessageRecord, Received, RunRecord, Touched } from './record.js'
import type { Rules } from './rules.js'
import type { Report } from './violation.js'

/** A place of the log of which a publisher, a listener or a reader was told. */
export interface Entry {
  readonly offset: number
  readonly id: string
  readonly key: string
  /** When anybody was told. */
  readonly knownAtMs: number
}

/** A message with what its publisher knows of it. */
export interface Known extends MessageRecord {
  readonly publisher: string
  readonly firstSentAtMs: number
  /** When the first `ok` came; `undefined` if none did. */
  readonly ackedAtMs: number | undefined
  /** Whether it was refused once: it may have been stored then, or land late by its retry. */
  readonly wasRefused: boolean
}

/** A link that was cut is up again within this time. */
const RECONNECT_MS = 1_500

/** What all actors together know of the messages, the log and the faults of a run. */
export class Knowledge {
  readonly record: RunRecord
  readonly rules: Rules
  readonly messages = new Map<string, Known>()
  /** Per epoch, by offset. */
  readonly logs = new Map<string, readonly Entry[]>()
  /** Deliveries of acknowledged messages that were owed to listens, counted when they are examined. */
  owedCount = 0
  readonly #isLogged = new Map<string, boolean>()
  /** Times in which a fault was in effect, merged. */
  readonly #upset: readonly (readonly [fromMs: number, untilMs: number])[]
  /** Faults that follow each other before what the first one has cut is connected again. */
  readonly #spells: readonly (readonly [fromMs: number, untilMs: number])[]

  constructor(record: RunRecord, rules: Rules, report: Report) {
    this.record = record
    this.rules = rules
    for (const { name, messages } of record.publishers) {
      for (const message of messages) this.messages.set(message.id, know(name, message))
    }
    this.#upset = merge(record.faults, rules.settleMs)
    this.#spells = merge(record.faults, RECONNECT_MS)
    this.#readLogs(report)
  }

  isLogged(key: string): boolean {
    let isLogged = this.#isLogged.get(key)
    if (isLogged === undefined) {
      isLogged = this.rules.log !== 'none' && this.rules.logged.some((pattern) => matches(pattern, key))
      this.#isLogged.set(key, isLogged)
    }
    return isLogged
  }

  /** Whether every key of a pattern is logged. */
  isCovered(pattern: string): boolean {
    return this.rules.log !== 'none' && this.rules.logged.some((rule) => contains(rule, pattern))
  }

  /** How much of a time no fault was in effect. */
  quietMs(fromMs: number, untilMs: number): number {
    let quietMs = Math.max(0, untilMs - fromMs)
    for (const [from, until] of this.#upset) {
      quietMs -= Math.max(0, Math.min(until, untilMs) - Math.max(from, fromMs))
    }
    return quietMs
  }

  isUpset(atMs: number): boolean {
    return this.#upset.some(([from, until]) => from <= atMs && atMs <= until)
  }

  /** Whether faults that follow each other had lasted for that long, or had when they were mended a moment ago. */
  isUpsetFor(spanMs: number, atMs: number): boolean {
    return this.#spells.some(
      ([from, until]) => from <= atMs && atMs <= until + this.rules.settleMs && until - from >= spanMs,
    )
  }

  /** Whether a fault of one of these kinds had begun. */
  hadFault(beforeMs: number, touches: readonly Touched[]): boolean {
    return this.record.faults.some(
      ({ fromMs, touches: touched }) => fromMs <= beforeMs && touched.some((one) => touches.includes(one)),
    )
  }

  /**
   * Whether a link to the broker that broke between these times may have held a message, which came at `atMs`: until its fault
   * was over.
   */
  mayBeHeld(fromMs: number, untilMs: number, atMs: number): boolean {
    return this.record.faults.some(
      (fault) =>
        (fault.touches.includes('broker') || fault.touches.includes('broker-links')) &&
        fault.fromMs <= untilMs &&
        fault.untilMs >= fromMs &&
        atMs <= fault.untilMs + RECONNECT_MS,
    )
  }

  /** Whether a log has lost nothing that anybody knew of: after a fault it goes on behind its last known place. */
  hasGoneOn(epoch: string | undefined, fromMs: number, untilMs: number): boolean {
    const entries = this.logs.get(epoch ?? '') ?? []
    const last = entries.findLast(({ knownAtMs }) => knownAtMs < fromMs)
    const next = entries.find(({ knownAtMs }) => knownAtMs > untilMs)
    return last !== undefined && next !== undefined && next.offset > last.offset
  }

  /** Whether anybody learnt of a place in any log meanwhile. */
  hasLearnt(fromMs: number, untilMs: number): boolean {
    const isMeanwhile = (atMs: number) => atMs >= fromMs && atMs < untilMs
    return [...this.logs.values()].some((log) => log.some(({ knownAtMs }) => isMeanwhile(knownAtMs)))
  }

  /** Messages that the log of an epoch has got after an offset, at most. */
  countAfter(epoch: string, offset: number, untilMs: number): number {
    const entries = this.logs.get(epoch) ?? []
    const before = new Set(entries.filter((entry) => entry.offset <= offset).map(({ id }) => id))
    let count = 0
    // Each attempt may have been stored, as far as anybody knows.
    for (const { id, key, attempts } of this.messages.values()) {
      if (!this.isLogged(key) || before.has(id)) continue
      count += attempts.filter(({ sentAtMs }) => sentAtMs <= untilMs).length
    }
    return count
  }

  /** Whether all attempts to publish a message lie within the window in which the server knows its id. */
  isWithinWindow({ attempts }: MessageRecord): boolean {
    const { windowMs, maxIds } = this.rules.dedupe
    const spanMs = (attempts.at(-1)?.sentAtMs ?? 0) - (attempts[0]?.sentAtMs ?? 0)
    return spanMs < windowMs && this.messages.size <= maxIds
  }

  /** Whether a second publish may be a second message: on a node that does not know ids of keys that are not logged. */
  mayComeAgain({ key, attempts }: MessageRecord): boolean {
    return attempts.length > 1 && !this.rules.dedupe.coversUnlogged && !this.isLogged(key)
  }

  /**
   * Whether a copy may have another place than the message: at a node of a mesh that was cut off from the one which had it
   * first, and told a gap for that.
   */
  mayHaveTwoPlaces(message: MessageRecord): boolean {
    if (this.mayComeAgain(message)) return true
    const { attempts } = message
    const atMs = attempts.at(-1)?.sentAtMs ?? 0
    return attempts.length > 1 && this.rules.log === 'per-node' && this.hadFault(atMs, ['peer-links'])
  }

  #readLogs(report: Report): void {
    const byPosition = new Map<string, Entry>()
    const offsets = new Map<string, string>()
    const logs = new Map<string, Entry[]>()
    const tell = (
      owner: string,
      atMs: number,
      position: string | undefined,
      { id, key }: Pick<Received, 'id' | 'key'>,
    ) => {
      const place = placeOf(position)
      if (place === undefined || position === undefined || id === '' || !this.isLogged(key)) return
      const known = byPosition.get(position)
      if (known !== undefined) {
        if (known.id !== id) report('position-reused', atMs, owner, `${id} is at ${position}, where ${known.id} is`)
        return
      }
      const entry = { offset: place.offset, id, key, knownAtMs: atMs }
      byPosition.set(position, entry)
      const other = offsets.get(`${id} ${place.epoch}`)
      if (other !== undefined) {
        const message = this.messages.get(id)
        if (message === undefined || this.isWithinWindow(message)) {
          report('position-moved', atMs, owner, `${id} is at ${position}, and at ${other}`)
        }
        // The first copy has the place of the message; the second one would be out of order everywhere.
        return
      }
      offsets.set(`${id} ${place.epoch}`, position)
      const log = logs.get(place.epoch)
      if (log === undefined) logs.set(place.epoch, [entry])
      else log.push(entry)
    }
    for (const { publisher, attempts, ...message } of this.messages.values()) {
      for (const { position, settledAtMs = 0 } of attempts) tell(publisher, settledAtMs, position, message)
    }
    for (const { name, events } of this.record.listeners) {
      for (const event of events) if (event.what === 'message') tell(name, event.atMs, event.position, event)
    }
    for (const { owner, pages } of this.record.reads) {
      for (const { messages, askedAtMs, settledAtMs = askedAtMs } of pages) {
        for (const message of messages) tell(owner, settledAtMs, message.position, message)
      }
    }
    for (const [epoch, entries] of logs) {
      entries.sort((one, other) => one.offset - other.offset)
      this.logs.set(epoch, entries)
    }
  }
}

function know(publisher: string, message: MessageRecord): Known {
  const acks = message.attempts.flatMap(({ outcome, settledAtMs }) => (outcome === 'ok' ? [settledAtMs ?? 0] : []))
  return {
    ...message,
    publisher,
    firstSentAtMs: message.attempts[0]?.sentAtMs ?? Number.POSITIVE_INFINITY,
    ackedAtMs: acks.length === 0 ? undefined : Math.min(...acks),
    wasRefused: message.attempts.some(({ outcome }) => outcome === 'refused'),
  }
}

function merge(faults: readonly FaultRecord[], settleMs: number): [number, number][] {
  const merged: [number, number][] = []
  const spans = faults.map(({ fromMs, untilMs }): [number, number] => [fromMs, untilMs + settleMs])
  for (const [from, until] of spans.sort(([one], [other]) => one - other)) {
    const last = merged.at(-1)
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], until)
    else merged.push([from, until])
  }
  return merged
}
