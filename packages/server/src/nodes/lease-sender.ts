import type { Nodes } from './nodes.js'

export const TOPIC = 'nodes'

/** Sends the leases of this node, those of one turn of the event loop as one. */
export class LeaseSender {
  readonly #nodes: Nodes
  /** Nodes that get a lease of their own, because they asked. */
  readonly #askers = new Set<string>()
  /** Nodes that are asked for theirs. */
  readonly #asked = new Set<string>()
  #isDue = false
  #isAsking = false
  #isScheduled = false

  constructor(nodes: Nodes) {
    this.#nodes = nodes
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

  /** To one node, which answers with a lease. */
  ask(node: string): void {
    this.#asked.add(node)
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
    const { channel, attention, report } = this.#nodes
    const fields = this.#nodes.ownLease()
    if (this.#isDue) {
      const sentAtMs = this.#nodes.now()
      const sent = channel.send(TOPIC, 'lease', JSON.stringify({ ...fields, asks: this.#isAsking }))
      sent.then(
        () => attention.leased(sentAtMs),
        (error: unknown) => report(error, TOPIC),
      )
    }
    for (const node of this.#asked) channel.tell(TOPIC, 'lease', { ...fields, asks: true }, node)
    // Who asks may be new, and learns of the others.
    for (const asker of this.#askers) channel.tell(TOPIC, 'lease', { ...fields, peers: this.#nodes.peers() }, asker)
    this.#isDue = this.#isAsking = false
    this.#askers.clear()
    this.#asked.clear()
  }
}
