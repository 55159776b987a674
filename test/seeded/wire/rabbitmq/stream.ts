import type { Table } from './fields.js'
import { withHeader, withTextHeaders } from './frames.js'
import { after } from './lane.js'
import { type Delivery, type Message, Queue, type QueueClient, type QueueConsumer, type QueueOptions } from './queue.js'
import { Refusal } from './refusal.js'

interface Entry {
  readonly offset: number
  readonly message: Message
}

/** A file of the stream: whole ones are dropped, the oldest first. */
interface Segment {
  readonly entries: Entry[]
  readonly firstOffset: number
  bytes: number
  lastMs: number
}

/** Header of a chunk, and what AMQP 1.0 adds to a message: from the files of RabbitMQ 3.10. */
const ENTRY_BYTES = 130
const DEFAULT_SEGMENT_BYTES = 500_000_000
const UNIT_MS: Readonly<Record<string, number>> = {
  Y: 31_536_000_000,
  M: 2_592_000_000,
  D: 86_400_000,
  h: 3_600_000,
  m: 60_000,
  s: 1_000,
}

export class Stream extends Queue {
  #segments: Segment[] = [{ entries: [], firstOffset: 0, bytes: 0, lastMs: 0 }]
  #nextOffset = 0
  readonly #maxBytes: number
  readonly #maxSegmentBytes: number
  readonly #maxAgeMs: number

  constructor(options: QueueOptions) {
    super(options)
    const { args, name, isDurable, owner } = options
    if (!isDurable) throw new Refusal(406, `invalid property 'non-durable' for queue '${name}' in vhost '/'`)
    if (owner !== undefined)
      throw new Refusal(406, `invalid property 'exclusive-owner' for queue '${name}' in vhost '/'`)
    const number = (arg: string, otherwise: number) => (typeof args[arg] === 'number' ? args[arg] : otherwise)
    this.#maxBytes = number('x-max-length-bytes', Number.POSITIVE_INFINITY)
    this.#maxSegmentBytes = number('x-stream-max-segment-size-bytes', DEFAULT_SEGMENT_BYTES)
    const [, count, unit = ''] = /^(\d+)([YMDhms])$/.exec(String(args['x-max-age'] ?? '')) ?? []
    this.#maxAgeMs = count === undefined ? Number.POSITIVE_INFINITY : Number(count) * (UNIT_MS[unit] ?? 0)
  }

  get messageCount(): number {
    return this.#segments.reduce((sum, { entries }) => sum + entries.length, 0)
  }

  enqueue(message: Message, client: QueueClient | undefined, tag: number): void {
    if (this.isDeleted) {
      this.settle(client, tag, true)
      return
    }
    this.#append(message)
    after(this.options.timing.writeMs(), () => {
      this.settle(client, tag, true)
      for (const consumer of this.consumers) this.#tell(consumer)
    })
  }

  acked(consumer: QueueConsumer, count: number): void {
    consumer.unackedCount -= count
    this.#tell(consumer)
  }

  requeue(consumer: QueueConsumer, deliveries: readonly Delivery[]): void {
    this.acked(consumer, deliveries.length)
  }

  lose(count: number): void {
    for (let lost = 0; lost < count; lost++) {
      const last = this.#segments.at(-1)
      if (last === undefined || this.#segments.length + last.entries.length <= 1) break
      if (last.entries.length === 0) this.#segments.pop()
      this.#segments.at(-1)?.entries.pop()
    }
    const last = this.#segments.at(-1)
    if (count > 0 && last !== undefined) {
      last.bytes = last.entries.reduce((sum, { message }) => sum + bytesOf(message), 0)
      this.#nextOffset = (last.entries.at(-1)?.offset ?? last.firstOffset - 1) + 1
    }
  }

  entriesFrom(offset: number): readonly Entry[] {
    if (offset >= this.#nextOffset) return []
    return this.#segments.flatMap(({ entries }) => entries.filter((entry) => entry.offset >= offset))
  }

  copy(): Queue {
    const stream = new Stream(this.options)
    stream.#segments = this.#segments.map((segment) => ({ ...segment, entries: [...segment.entries] }))
    stream.#nextOffset = this.#nextOffset
    return stream
  }

  protected begin(consumer: QueueConsumer, args: Table): void {
    const name = this.options.name
    if (consumer.noAck) throw new Refusal(540, `consuming from a stream without acknowledgements, queue '${name}'`)
    if (consumer.prefetchCount === 0)
      throw new Refusal(406, `consumer prefetch count is not set for 'queue '${name}' in vhost '/''`)
    consumer.nextOffset = this.#offsetOf(args['x-stream-offset'] ?? 'next')
    this.consumers.push(consumer)
    this.#tell(consumer)
  }

  #offsetOf(from: Table[string]): number {
    // Also one that is still to come.
    if (typeof from === 'number') return from
    if (from === 'first') return 0
    if (from === 'next') return this.#nextOffset
    if (from === 'last') return Math.max(0, this.#nextOffset - 1)
    throw new Refusal(406, `'x-stream-offset' is ${String(from)}`)
  }

  #append(message: Message): void {
    let segment = this.#segments.at(-1)
    if (segment === undefined || segment.bytes >= this.#maxSegmentBytes) {
      segment = { entries: [], firstOffset: this.#nextOffset, bytes: 0, lastMs: 0 }
      this.#segments.push(segment)
      this.#retain()
      // RabbitMQ begins a further file with what it knows of publishers.
      this.#nextOffset++
    }
    segment.entries.push({ offset: this.#nextOffset++, message })
    segment.bytes += bytesOf(message)
    segment.lastMs = Date.now()
  }

  /** Only when a segment begins; the newest stay. */
  #retain(): void {
    let bytes = this.#segments.reduce((sum, segment) => sum + segment.bytes, 0)
    const oldestMs = Date.now() - this.#maxAgeMs
    for (let [first] = this.#segments; first !== undefined && this.#segments.length > 1; [first] = this.#segments) {
      if (bytes <= this.#maxBytes && first.lastMs >= oldestMs) return
      bytes -= first.bytes
      this.#segments.shift()
    }
  }

  /** Tells the channel that there is more: it reads by itself, as far as the consumer may have messages. */
  #tell(consumer: QueueConsumer): void {
    const endOffset = this.#nextOffset
    consumer.client.inbox.send(() => this.#give(consumer, endOffset))
  }

  #give(consumer: QueueConsumer, endOffset: number): void {
    if (this.isDeleted || !this.consumers.includes(consumer)) return
    for (const { entries } of this.#segments) {
      const last = entries.at(-1)
      if (last === undefined || last.offset < consumer.nextOffset) continue
      const from = Math.max(0, consumer.nextOffset - (entries[0]?.offset ?? 0))
      for (let at = from; at < entries.length; at++) {
        const { offset, message } = entries[at] as Entry
        if (offset >= endOffset || consumer.unackedCount >= consumer.prefetchCount) return
        consumer.nextOffset = offset + 1
        consumer.unackedCount++
        const stored = this.options.hasTextHeaders ? withTextHeaders(message.properties) : message.properties
        const properties = withHeader(stored, 'x-stream-offset', offset)
        consumer.client.deliver(consumer, { message: { ...message, properties }, isRedelivered: false })
      }
    }
  }
}

function bytesOf({ properties, payload, key, exchange }: Message): number {
  return ENTRY_BYTES + properties.length + payload.length + key.length + exchange.length
}
