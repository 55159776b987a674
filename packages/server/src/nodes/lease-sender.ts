import type { NodeChannel } from './node-channel.js'

/** Settings of a {@link LeaseSender}. */
export interface LeaseSenderContext {
  readonly channel: Pick<NodeChannel, 'tell'>
  readonly topic: string
  /** What a lease says now. */
  readonly lease: () => object
  /** Names of the other nodes. */
  readonly peers: () => readonly string[]
  readonly isUp: () => boolean
}

/** Sends the leases of this node, those of one turn of the event loop as one. */
export class LeaseSender {
  readonly #context: LeaseSenderContext
  /** Nodes that get a lease of their own, because they asked. */
  readonly #askers = new Set<string>()
  #isDue = false
  #isAsking = false
  #isScheduled = false

  constructor(context: LeaseSenderContext) {
    this.#context = context
  }

  /** To all nodes. @param asks Every other node answers with a lease. */
  toAll(asks: boolean): void {
    this.#isDue = true
    this.#isAsking ||= asks
    this.#schedule()
  }

  /** To a node that has asked. */
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
      if (this.#context.isUp()) this.#send()
    })
  }

  #send(): void {
    const { channel, topic, lease, peers } = this.#context
    const fields = lease()
    if (this.#isDue) channel.tell(topic, 'lease', { ...fields, asks: this.#isAsking })
    // Who asks may be new, and learns of the others.
    for (const asker of this.#askers) channel.tell(topic, 'lease', { ...fields, peers: peers() }, asker)
    this.#isDue = this.#isAsking = false
    this.#askers.clear()
  }
}
