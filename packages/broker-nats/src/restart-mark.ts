import { randomBytes } from 'node:crypto'
import { explained, JETSTREAM_REASONS, type JetStreamClient, reasonOf } from './jetstream-errors.js'

/** Text of a note in the log that nodes pass over. */
const NOTE = 'run'
const ID_BYTES = 8
const MAX_WAIT_MS = 2_000

/**
 * A consumer of the log's stream that has been sent a message, and whose state only the memory of the servers holds that have
 * the stream. When they were all restarted, JetStream says that it was sent nothing (ADR 52). Its id is that of the run.
 */
export class RestartMark {
  readonly #client: JetStreamClient
  readonly #stream: string
  /** Why JetStream refuses the consumer. All marks then count as set. */
  refusal: string | undefined

  constructor(client: JetStreamClient, stream: string) {
    this.#client = client
    this.#stream = stream
  }

  async isSet(id: string): Promise<boolean> {
    if (this.refusal !== undefined) return true
    if (id === '') return false
    try {
      const { delivered } = await this.#consumers.info(this.#stream, nameOf(id))
      return delivered.consumer_seq > 0
    } catch (cause) {
      if (this.#reasonOf(cause) === JETSTREAM_REASONS.consumerNotFound) return false
      throw explained(cause, this.#client)
    }
  }

  /** Makes another one. Resolves to its id; '' when JetStream refuses it. */
  async set(): Promise<string> {
    const { jetStream, manager, connection, subjects } = this.#client
    const id = randomBytes(ID_BYTES).toString('hex')
    try {
      await this.#consumers.add(this.#stream, {
        durable_name: nameOf(id),
        description: 'WebMQ: tells whether all servers were restarted',
        deliver_policy: jetStream.DeliverPolicy.New,
        // Without acknowledgements a server keeps it for itself, and none has it when that one is restarted.
        ack_policy: jetStream.AckPolicy.Explicit,
        filter_subject: subjects.ofLog,
        mem_storage: true,
      })
      connection.publish(subjects.ofLog, NOTE)
      const consumer = await manager.jetstream().consumers.get(this.#stream, nameOf(id))
      if ((await consumer.next({ expires: MAX_WAIT_MS })) === null)
        throw new Error('JetStream sends no message in time')
      return id
    } catch (cause) {
      this.remove(id)
      // Not that it does not answer.
      if (this.#reasonOf(cause) === undefined) throw explained(cause, this.#client)
      this.refusal = String(cause)
      return ''
    }
  }

  /** Without waiting for it. */
  remove(id: string): void {
    this.#consumers.delete(this.#stream, nameOf(id)).catch(() => undefined)
  }

  get #consumers() {
    return this.#client.manager.consumers
  }

  #reasonOf(cause: unknown): number | undefined {
    return reasonOf(cause, this.#client.jetStream)
  }
}

function nameOf(id: string): string {
  return `run-${id}`
}
