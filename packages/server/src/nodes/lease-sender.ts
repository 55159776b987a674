import type { Nodes } from './nodes.js'

/** The topic of the nodes themselves. */
export const TOPIC = 'nodes'

/** Sends the leases of this node, those of one turn of the event loop as one. */
export class LeaseSender {
  readonly #nodes: Nodes
  readonly #lease: () => object
  /** Nodes that get a lease of their own, because they asked. */
  readonly #askers = new Set<string>()
  #isDue = false
  #isAsking = false
  #isScheduled = false

  /** @param lease What a lease says now. */
  constructor(nodes: Nodes, lease: () => object) {
    this.#nodes = nodes
    this.#lease = lease
  }

  /** To all nodes. @param asks Every other node answers with a lease. */
  toAll(asks: boolean): void {
    this.#isDue = true
    this.#isAsking ||= asks
    this.#schedule()
  }

  to(node: string): void {
    this.#askers.add(node)
    this.#schedule()
  }

  /** Later: the sink of a broker must not call it. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      if (this.#nodes.isUp) this.#send()
    })
  }

  #send(): void {
    const { channel } = this.#nodes
    const fields = this.#lease()
    if (this.#isDue) channel.tell(TOPIC, 'lease', { ...fields, asks: this.#isAsking })
    // Who asks may be new, and learns of the others.
    for (const asker of this.#askers) channel.tell(TOPIC, 'lease', { ...fields, peers: this.#nodes.peers() }, asker)
    this.#isDue = this.#isAsking = false
    this.#askers.clear()
  }
}
