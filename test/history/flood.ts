import { WebMQClient } from 'webmq-client'
import { WebSocket } from 'ws'
import type { TestNode } from './node.js'

/** Keys that are flooded; each publisher takes turns. */
export const FLOOD_KEYS = ['flood.a', 'flood.b']
/** Publishes of one publisher that wait for their answer. */
const WINDOW = 64

/** What a message of the flood says. */
export interface Drop {
  readonly publisher: number
  readonly number: number
}

/** A publisher on every node, each as fast as it is answered, without end. */
export class Flood {
  readonly #clients: readonly WebMQClient[]
  readonly #lanes: Promise<void>[] = []
  #isOn = true
  #acceptedCount = 0
  #failure: unknown

  constructor(nodes: readonly TestNode[]) {
    this.#clients = nodes.map(({ port }) => new WebMQClient({ url: `ws://127.0.0.1:${port}/ws`, WebSocket }))
    for (const [publisher, client] of this.#clients.entries()) {
      let number = 0
      const lane = async () => {
        while (this.#isOn) {
          const drop: Drop = { publisher, number }
          const key = FLOOD_KEYS[number++ % FLOOD_KEYS.length] ?? ''
          await client.publish(key, drop)
          this.#acceptedCount++
        }
      }
      for (let index = 0; index < WINDOW; index++) this.#lanes.push(lane().catch((error) => this.#fail(error)))
    }
  }

  get acceptedCount(): number {
    return this.#acceptedCount
  }

  /**
   * Ends it.
   * @throws What a publish has failed with.
   */
  async stop(): Promise<void> {
    this.#isOn = false
    await Promise.all(this.#lanes)
    await Promise.all(this.#clients.map((client) => client.close()))
    if (this.#failure !== undefined) throw this.#failure
  }

  #fail(error: unknown): void {
    this.#isOn = false
    this.#failure ??= error
  }
}
