import type { Command, Redis } from 'ioredis'

/** More than this is not kept until the end of the turn. */
const MAX_KEPT_CHUNKS = 4_096

/** Where ioredis writes commands that belong together; of its types, the one for pipelines. */
type CommandStream = Exclude<Parameters<Redis['sendCommand']>[1], undefined>

/** Writes the commands of one turn of the event loop to a connection at once. */
export class TurnStream {
  readonly #redis: Redis
  readonly #stream: CommandStream
  #chunks: (string | Buffer)[] = []
  readonly #flush = () => this.flush()

  constructor(redis: Redis) {
    this.#redis = redis
    this.#stream = { isPipeline: true, destination: { redis }, write: (chunk: string | Buffer) => this.#keep(chunk) }
  }

  send(command: Command): void {
    this.#redis.sendCommand(command, this.#stream)
  }

  flush(): void {
    const chunks = this.#chunks
    if (chunks.length === 0) return
    this.#chunks = []
    const { stream } = this.#redis
    stream.cork()
    for (const chunk of chunks) stream.write(chunk)
    stream.uncork()
  }

  #keep(chunk: string | Buffer): void {
    if (this.#chunks.length === 0) setImmediate(this.#flush)
    this.#chunks.push(chunk)
    if (this.#chunks.length >= MAX_KEPT_CHUNKS) this.flush()
  }
}
