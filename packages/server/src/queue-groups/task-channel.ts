import type { Nodes } from '../nodes/index.js'
import { type TaskMessage, taskFields, taskMessageFrom } from './task-message.js'

const TOPIC = 'tasks'

/** Messages between two nodes about tasks. */
export class TaskChannel {
  readonly #nodes: Pick<Nodes, 'channel'>

  /** @param onMessage MUST NOT call the broker. */
  constructor(nodes: Pick<Nodes, 'channel' | 'handle'>, onMessage: (message: TaskMessage, node: string) => void) {
    this.#nodes = nodes
    nodes.handle(TOPIC, (message) => {
      const read = taskMessageFrom(message)
      if (read !== undefined) onMessage(read, message.node)
      return read !== undefined
    })
  }

  /**
   * Resolves once the broker has accepted it. The payload is copied before it returns.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE`
   */
  async send(message: TaskMessage, to: string): Promise<void> {
    const payload = 'payload' in message ? message.payload : undefined
    await this.#nodes.channel.send(TOPIC, message.kind, taskFields(message), to, payload)
  }
}
