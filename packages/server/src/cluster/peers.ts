import type { NodeSummary } from './control-message.js'

/** Most nodes, so that forged names from the broker cannot fill the memory. */
const MAX_PEERS = 1_024
/** A node that has not answered so many rounds is gone. */
const MISSED_ROUNDS = 3

interface Peer {
  /** The latest round that it answered. */
  round: number
  summary: NodeSummary | undefined
}

/** The other nodes that this node has heard of, and what they tell of themselves. */
export class Peers {
  readonly #peers = new Map<string, Peer>()
  readonly #waiting = new Set<() => void>()
  #round = 0
  #ignoredCount = 0

  get size(): number {
    return this.#peers.size
  }

  /** Messages of nodes above the limit. */
  get ignoredCount(): number {
    return this.#ignoredCount
  }

  /** A message of this node has arrived. */
  seen(node: string): void {
    if (this.#peers.has(node)) return
    if (this.#peers.size >= MAX_PEERS) this.#ignoredCount++
    else this.#peers.set(node, { round: this.#round, summary: undefined })
  }

  /** A node says that it stops. */
  left(node: string): void {
    this.#peers.delete(node)
    this.#checkComplete()
  }

  /** Begins a round of summaries, and forgets nodes that are silent. */
  nextRound(): number {
    this.#round++
    for (const [node, { round }] of this.#peers) {
      if (round < this.#round - MISSED_ROUNDS) this.#peers.delete(node)
    }
    return this.#round
  }

  /** Takes the answer of a node. */
  answered(node: string, round: number, summary: NodeSummary): void {
    const peer = this.#peers.get(node)
    if (peer === undefined || round > this.#round) return
    peer.round = Math.max(peer.round, round)
    peer.summary = summary
    this.#checkComplete()
  }

  /** Resolves when all known nodes have answered the present round, at the latest after `limitMs`. */
  async whenAnswered(limitMs: number): Promise<void> {
    if (this.#isComplete) return
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.#waiting.delete(done)
        resolve()
      }
      const timer = setTimeout(done, limitMs)
      this.#waiting.add(done)
    })
  }

  /** The latest answers; a node without one is left out. */
  summaries(): readonly NodeSummary[] {
    return [...this.#peers.values()].flatMap(({ summary }) => (summary === undefined ? [] : [summary]))
  }

  get #isComplete(): boolean {
    for (const { round } of this.#peers.values()) if (round < this.#round) return false
    return true
  }

  #checkComplete(): void {
    if (this.#waiting.size > 0 && this.#isComplete) for (const done of [...this.#waiting]) done()
  }
}
