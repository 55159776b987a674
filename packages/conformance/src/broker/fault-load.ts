import { matches } from 'webmq-client/protocol'
import type { Broker, BrokerSink, BrokerStatus, InboundMessage } from 'webmq-server/ports'

/** The outcome of a publish. */
type Outcome = 'pending' | 'accepted' | 'rejected'

/** Deliveries and gaps of a node, in order. */
type Entry = { readonly publisher: number; readonly key: string; readonly number: number } | 'gap'

const PUBLISH_INTERVAL_MS = 2
/** Publishes of one node that may be unanswered. */
const MAX_WAITING = 500
/** Keys that the load is published to. */
export const FAULT_KEYS = ['load.0', 'load.1', 'load.2', 'load.3']

/** Nothing but {@link QUIET_TEXT} is published to it, once: it is part of the state only. */
export const QUIET_KEY = 'quiet'
export const QUIET_TEXT = 'still here'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** A node that publishes numbers without end and records deliveries and gaps. */
export class FaultNode {
  readonly broker: Broker
  readonly diary: Entry[] = []
  /** By number, from 0. */
  readonly outcomes: Outcome[] = []
  status: BrokerStatus = 'down'
  readonly #index: number
  readonly #patterns: string[] = []
  readonly #arrived = new Set<string>()
  #waitingCount = 0
  #timer: NodeJS.Timeout | undefined

  constructor(broker: Broker, index: number) {
    this.broker = broker
    this.#index = index
  }

  /** The sink of the broker. */
  get sink(): BrokerSink {
    return {
      deliver: (message) => this.#deliver(message),
      gap: (_, isAffected = () => true) => {
        if (this.#patterns.some(isAffected)) this.diary.push('gap')
      },
      refused: () => this.diary.push('gap'),
      status: (status) => {
        this.status = status
      },
    }
  }

  get gapCount(): number {
    return this.diary.filter((entry) => entry === 'gap').length
  }

  async bind(pattern: string): Promise<void> {
    this.#patterns.push(pattern)
    await this.broker.bind(pattern)
  }

  begin(): void {
    this.#timer = setInterval(() => {
      if (this.#waitingCount < MAX_WAITING) void this.publish()
    }, PUBLISH_INTERVAL_MS)
  }

  pause(): void {
    clearInterval(this.#timer)
  }

  /** Publishes the next number; resolves to it once it was accepted or refused. */
  async publish(): Promise<number> {
    const number = this.outcomes.length
    const payload = encoder.encode(`${this.#index} ${number}`)
    this.outcomes.push('pending')
    this.#waitingCount++
    try {
      await this.broker.publish({ key: FAULT_KEYS[number % FAULT_KEYS.length] ?? '', payload, isBinary: false })
      this.outcomes[number] = 'accepted'
    } catch {
      // A refusal is one of the counted answers.
      this.outcomes[number] = 'rejected'
    }
    this.#waitingCount--
    return number
  }

  /** Whether this number of this publisher has come. */
  has(publisher: number, number: number): boolean {
    return this.#arrived.has(`${publisher} ${number}`)
  }

  /** The last message of each key. */
  async state(): Promise<Readonly<Record<string, string>>> {
    const { messages } = await this.broker.read({ isState: true }, ['#'])
    return Object.fromEntries(messages.map(({ key, payload }) => [key, decoder.decode(payload)]))
  }

  /** The last message of each key that was delivered. */
  lastDelivered(): Readonly<Record<string, string>> {
    const last: Record<string, string> = {}
    for (const entry of this.diary) if (entry !== 'gap') last[entry.key] = `${entry.publisher} ${entry.number}`
    return last
  }

  #deliver({ key, payload }: InboundMessage): boolean {
    if (key === QUIET_KEY) return true
    if (!this.#patterns.some((pattern) => matches(pattern, key))) return false
    const text = decoder.decode(payload)
    const [publisher, number] = text.split(' ').map(Number)
    if (publisher === undefined || number === undefined) throw new Error(`a message of nobody: ${text}`)
    this.#arrived.add(text)
    this.diary.push({ publisher, key, number })
    return true
  }
}

/** The total of all nodes, and the faults. */
export interface FaultReport {
  readonly acceptedCount: number
  readonly rejectedCount: number
  readonly deliveredCount: number
  /** Accepted messages that a listener did not get, with a gap in their place. */
  readonly missedCount: number
  readonly gapCount: number
  /** The first few messages that were silently missed, came twice, or came out of order, in words. */
  readonly violations: readonly string[]
}

const MAX_VIOLATIONS = 20

/** Compares the messages of every node with those that all nodes published. */
export function examine(nodes: readonly FaultNode[]): FaultReport {
  const violations: string[] = []
  const violate = (text: string) => violations.length < MAX_VIOLATIONS && violations.push(text)
  let missedCount = 0
  for (const [listener, { diary }] of nodes.entries()) {
    for (const [publisher, { outcomes }] of nodes.entries()) {
      for (const [keyIndex, key] of FAULT_KEYS.entries()) {
        let next = keyIndex
        let isGapTold = false
        for (const entry of diary) {
          if (entry === 'gap') isGapTold = true
          if (entry === 'gap' || entry.publisher !== publisher || entry.key !== key) continue
          const where = `node ${listener}, ${key} of node ${publisher}: ${entry.number}`
          if (entry.number < next) {
            violate(`${where} came after ${next - FAULT_KEYS.length}`)
            continue
          }
          for (; next < entry.number; next += FAULT_KEYS.length) {
            if (outcomes[next] !== 'accepted') continue
            missedCount++
            if (!isGapTold) violate(`${where} came without ${next} and without a gap before it`)
          }
          next = entry.number + FAULT_KEYS.length
          isGapTold = false
        }
        for (; next < outcomes.length; next += FAULT_KEYS.length) {
          if (outcomes[next] === 'accepted')
            violate(`node ${listener}, ${key} of node ${publisher}: ${next} never came`)
        }
      }
    }
  }
  const outcomes = nodes.flatMap((node) => node.outcomes)
  return {
    acceptedCount: outcomes.filter((outcome) => outcome === 'accepted').length,
    rejectedCount: outcomes.filter((outcome) => outcome === 'rejected').length,
    deliveredCount: nodes.reduce((sum, { diary }) => sum + diary.filter((entry) => entry !== 'gap').length, 0),
    missedCount,
    gapCount: nodes.reduce((sum, { gapCount }) => sum + gapCount, 0),
    violations,
  }
}
