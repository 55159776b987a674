import { randomBytes } from 'node:crypto'
import type { Channel } from 'amqplib/callback_api'
import { type AmqpConnection, watchChannel } from './amqp-connection.js'
import { LogConsumer } from './log-consumer.js'
import { encodeMark, type LogMark, MARK_PROPERTIES } from './log-mark.js'

const NONCE_BYTES = 8

/** What a mark says, beside what all say. */
export type MarkContent = Pick<LogMark, 'epoch' | 'candidate' | 'denies'>

/** Writes marks into the log. */
export class LogMarker {
  readonly #channel: Channel
  readonly #consuming: AmqpConnection
  readonly #queue: string
  readonly #lost: (cause: Error) => void

  static async open(
    publishing: AmqpConnection,
    consuming: AmqpConnection,
    queue: string,
    lost: (cause: Error) => void,
  ): Promise<LogMarker> {
    return new LogMarker(await publishing.openChannel(), consuming, queue, lost)
  }

  private constructor(channel: Channel, consuming: AmqpConnection, queue: string, lost: (cause: Error) => void) {
    this.#channel = channel
    this.#consuming = consuming
    this.#queue = queue
    this.#lost = lost
    watchChannel(channel, lost)
    channel.on('return', () => lost(new Error('the log is gone')))
  }

  /** Writes one, without waiting for it. */
  write(content: MarkContent): string {
    const nonce = randomBytes(NONCE_BYTES).toString('hex')
    const mark = encodeMark({ nonce, timeMs: Date.now(), ...content })
    this.#channel.sendToQueue(this.#queue, mark, { ...MARK_PROPERTIES, mandatory: true })
    return nonce
  }

  /** Writes one; resolves to its offset in the queue. Everything that was accepted before the call stands before it. */
  async place(content: MarkContent): Promise<number> {
    let nonce = ''
    let tellPlace: (offset: number) => void = () => undefined
    const place = new Promise<number>((resolve) => {
      tellPlace = resolve
    })
    const consumer = await LogConsumer.open(this.#consuming, {
      queue: this.#queue,
      from: 'next',
      take: ({ mark, offset }) => {
        if (mark?.nonce === nonce) tellPlace(offset)
      },
      lost: this.#lost,
    })
    nonce = this.write(content)
    const offset = await place
    consumer.close()
    return offset
  }
}
