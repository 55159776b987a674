/** The node that sends its leases. */
interface LeaseHolder {
  /** Whether messages to other nodes pass at present. */
  isUp(): boolean
  /** Other nodes that it names to those that ask. */
  names(): readonly string[]
  /** What a lease says now. */
  lease(): object
  sendAll(lease: object): void
  send(node: string, lease: object): void
}

/** Sends the leases of this node, those of one turn of the event loop as one. */
export class LeaseSender {
  readonly #holder: LeaseHolder
  /** Nodes that get a lease of their own, because they asked. */
  readonly #askers = new Set<string>()
  /** Nodes that are asked for theirs. */
  readonly #asked = new Set<string>()
  #isDue = false
  #isAsking = false
  #isScheduled = false

  constructor(holder: LeaseHolder) {
    this.#holder = holder
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
      if (this.#holder.isUp()) this.#send()
    })
  }

  #send(): void {
    const lease = this.#holder.lease()
    if (this.#isDue) this.#holder.sendAll({ ...lease, asks: this.#isAsking })
    for (const node of this.#asked) this.#holder.send(node, { ...lease, asks: true })
    // Who asks may be new, and learns of the others.
    const peers = this.#askers.size > 0 ? this.#holder.names() : []
    for (const asker of this.#askers) this.#holder.send(asker, { ...lease, peers })
    this.#isDue = this.#isAsking = false
    this.#askers.clear()
    this.#asked.clear()
  }
}
