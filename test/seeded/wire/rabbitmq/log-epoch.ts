import { LogEpoch } from '../../../../packages/broker-rabbitmq/src/log-epoch.js'
import type { EpochRecord } from '../../../../packages/broker-rabbitmq/src/log-record.js'
import type { RabbitmqModel } from './broker.js'
import { Stream } from './stream.js'

/** How far each stream was read. After a restart there is another one, which may have lost its end. */
const known = new WeakMap<Stream, { readonly epoch: LogEpoch; nextOffset: number }>()

/** Which epoch the log of a namespace is in, by the records that nodes write; empty before there is one. */
export function epochOfLog(model: RabbitmqModel, namespace: string): string {
  const stream = model.queues.get(`${namespace}.log`)
  if (!(stream instanceof Stream)) return ''
  const read = known.get(stream) ?? { epoch: new LogEpoch(0), nextOffset: 0 }
  known.set(stream, read)
  for (const { offset, message } of stream.entriesFrom(read.nextOffset)) {
    read.nextOffset = offset + 1
    if (message.exchange === '') read.epoch.recorded(JSON.parse(message.payload.toString()) as EpochRecord, offset)
  }
  return read.epoch.name ?? ''
}
