import type { RabbitmqModel } from './broker.js'
import { ClassicQueue } from './classic-queue.js'
import { assertSame, Exchange, isExchangeType } from './exchanges.js'
import type { FieldsOf, Method, MethodName } from './methods.js'
import type { Queue } from './queue.js'
import { Refusal } from './refusal.js'
import { Stream } from './stream.js'

/** @throws {Refusal} also for the default exchange, which takes no changes. */
function exchangeOf(broker: RabbitmqModel, name: string): Exchange {
  if (name === '') throw new Refusal(403, 'operation not permitted on the default exchange')
  const exchange = broker.exchanges.get(name)
  if (exchange === undefined) throw new Refusal(404, `no exchange '${name}' in vhost '/'`)
  return exchange
}

/** @throws {Refusal} also for one that only another connection may use. */
export function queueOf(broker: RabbitmqModel, connection: object, name: string): Queue {
  const queue = broker.queues.get(name)
  if (queue === undefined) throw new Refusal(404, `no queue '${name}' in vhost '/'`)
  const { owner } = queue.options
  if (owner !== undefined && owner !== connection) {
    throw new Refusal(405, `cannot obtain exclusive access to locked queue '${name}' in vhost '/'`)
  }
  return queue
}

function declareExchange(broker: RabbitmqModel, method: FieldsOf<'exchange.declare'>): void {
  const { exchange: name, type, isDurable, isPassive, isAutoDelete } = method
  if (isPassive) {
    exchangeOf(broker, name)
    return
  }
  if (name === '') throw new Refusal(403, 'operation not permitted on the default exchange')
  const known = broker.exchanges.get(name)
  if (known !== undefined) {
    assertSame('type', name, type, known.type)
    assertSame('durable', name, isDurable, known.isDurable)
    return
  }
  if (name.startsWith('amq.')) throw new Refusal(403, `exchange name '${name}' contains reserved prefix 'amq.*'`)
  if (!isExchangeType(type) || isAutoDelete) throw new Refusal(540, `the model has no exchange of type ${type}`)
  broker.exchanges.set(name, new Exchange(name, type, isDurable))
}

function declareQueue(broker: RabbitmqModel, connection: object, method: FieldsOf<'queue.declare'>): Queue {
  const { isPassive, isDurable, isExclusive, isAutoDelete, args } = method
  const name = method.queue === '' ? broker.newQueueName() : method.queue
  const known = broker.queues.get(name)
  if (known !== undefined || isPassive) {
    const queue = queueOf(broker, connection, name)
    if (!isPassive) queue.assertSame(isDurable, isExclusive, isAutoDelete, args)
    return queue
  }
  const options = {
    name,
    isDurable,
    isAutoDelete,
    owner: isExclusive ? connection : undefined,
    args,
    timing: broker.timing,
    hasTextHeaders: broker.version !== '3.10.8',
    remove: (queue: Queue) => broker.removeQueue(queue),
  }
  const type = args['x-queue-type'] ?? 'classic'
  if (type !== 'classic' && type !== 'stream') throw new Refusal(540, `the model has no queue of type ${String(type)}`)
  const queue =
    type === 'stream'
      ? new Stream(options)
      : new ClassicQueue({
          ...options,
          deadLetter: (exchange, { key }) => broker.deadLetterQueues(exchange, key),
          policy: broker.policy,
        })
  broker.queues.set(name, queue)
  return queue
}

/** A change that the database makes; what it gives is its answer. */
export type Change = () => (send: <N extends MethodName>(name: N, fields: FieldsOf<N>) => void) => void

/** @returns `undefined` for a method that changes nothing there. */
export function changeOf(broker: RabbitmqModel, connection: object, method: Method): Change | undefined {
  switch (method.name) {
    case 'exchange.declare':
      return () => {
        declareExchange(broker, method)
        return (send) => send('exchange.declare-ok', {})
      }
    case 'exchange.delete':
      return () => {
        broker.exchanges.delete(method.exchange)
        return (send) => send('exchange.delete-ok', {})
      }
    case 'queue.declare':
      return () => {
        const { options, messageCount, consumers } = declareQueue(broker, connection, method)
        const fields = { queue: options.name, messageCount, consumerCount: consumers.length }
        return (send) => send('queue.declare-ok', fields)
      }
    case 'queue.bind':
      return () => {
        const exchange = exchangeOf(broker, method.exchange)
        exchange.bind(method.key, queueOf(broker, connection, method.queue))
        return (send) => send('queue.bind-ok', {})
      }
    case 'queue.unbind':
      return () => {
        const queue = queueOf(broker, connection, method.queue)
        exchangeOf(broker, method.exchange).unbind((each) => each.queue === queue && each.key === method.key)
        return (send) => send('queue.unbind-ok', {})
      }
    case 'queue.delete':
      return () => {
        const queue = broker.queues.get(method.queue) && queueOf(broker, connection, method.queue)
        const messageCount = queue?.messageCount ?? 0
        if (method.ifEmpty && messageCount > 0) throw new Refusal(406, `queue '${method.queue}' in vhost '/' not empty`)
        if (queue !== undefined) broker.removeQueue(queue)
        return (send) => send('queue.delete-ok', { messageCount })
      }
    default:
      return undefined
  }
}
