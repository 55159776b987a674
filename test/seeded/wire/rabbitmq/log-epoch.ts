import { LogEpoch } from '../../../../packages/server/src/brokers/rabbitmq/log-epoch.js'
import type { EpochRecord } from '../../../../packages/server/src/brokers/rabbitmq/log-record.js'
import type { RabbitmqModel } from './broker.js'
import { Stream } from './stream.js'

/** Which epoch the log of a namespace is in, by the records that nodes write; empty before there is one. */
export class EpochOfLog {
  readonly #model: RabbitmqModel
  readonly #queue: string
  #stream: Stream | undefined
  #epoch = new LogEpoch(0)
  #nextOffset = 0

  constructor(model: RabbitmqModel, namespace: string) {
    this.#model = model
    this.#queue = `${namespace}.log`
  }

  get name(): string {
    const stream = this.#model.queues.get(this.#queue)
    if (!(stream instanceof Stream)) return ''
    // After a restart it may have lost its end.
    if (stream !== this.#stream) {
      this.#stream = stream
      this.#epoch = new LogEpoch(0)
      this.#nextOffset = 0
    }
    for (const { offset, message } of stream.entriesFrom(this.#nextOffset)) {
      this.#nextOffset = offset + 1
      if (message.exchange === '') this.#epoch.recorded(JSON.parse(message.payload.toString()) as EpochRecord, offset)
    }
    return this.#epoch.name ?? ''
  }
}
