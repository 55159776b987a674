import type { RabbitmqService } from '../../../../packages/services/src/index.js'
import { serveWire } from '../serve.js'
import { RabbitmqModel } from './broker.js'

/** What `rabbitmqctl` is asked by our tests; everything else is refused. */
function answer(broker: RabbitmqModel, [command, ...args]: readonly string[]): string {
  const [first = '', second = ''] = args
  const bindings = [...broker.exchanges.values()].flatMap(({ name, bindings }) =>
    bindings.map(({ key, queue }) => ({ source: name, key, queue: queue.options.name })),
  )
  if (command === 'eval' && first.includes('rabbit_amqqueue:list_names')) {
    const lines = [...broker.queues.keys(), ...bindings.map(({ queue }) => queue), ...broker.connectionNames()]
    return lines.join('\n')
  }
  if (command === 'eval' && first.includes('queue:delete(Q')) {
    const [, name = ''] = /queue, <<"([^"]+)">>/.exec(first) ?? []
    const queue = broker.queues.get(name)
    if (queue !== undefined) broker.removeQueue(queue)
    return ''
  }
  if (command === 'eval' && first.includes('rabbit_exchange:delete')) {
    const [, name = ''] = /exchange, <<"([^"]+)">>/.exec(first) ?? []
    broker.exchanges.delete(name)
    return ''
  }
  if (command === 'list_queues') return [...broker.queues.keys()].join('\n')
  if (command === 'list_bindings') return bindings.map(({ source, key }) => `${source}\t${key}`).join('\n')
  if (command === 'set_vm_memory_high_watermark') broker.setAlarm(Number(first) < 0.01 ? 'low on memory' : undefined)
  else if (command === 'close_all_connections') broker.closeConnections(first)
  else if (command === 'set_policy') broker.policy.maxCount = Number(JSON.parse(args[2] ?? '')['max-length'])
  else if (command === 'clear_policy') broker.policy.maxCount = Number.POSITIVE_INFINITY
  else throw new Error(`the model does not know rabbitmqctl ${command} ${first} ${second}`)
  return ''
}

/** A RabbitMQ that is the model, on a port of its own: in place of one of `webmq-services`. */
export async function startModel(): Promise<RabbitmqService> {
  const broker = new RabbitmqModel()
  const { port, close } = await serveWire(broker)
  const service = {
    kind: 'rabbitmq',
    source: 'url',
    url: `amqp://guest:guest@127.0.0.1:${port}`,
    ctl: async (...args: readonly string[]) => answer(broker, args),
    cpuSeconds: () => undefined,
    peakRssBytes: () => undefined,
    kill: async () => broker.kill(0),
    restart: async () => {
      broker.kill(0)
      broker.start()
    },
    keepData: async () => broker.keepData(),
    restoreData: async () => {
      broker.restoreData()
      broker.start()
    },
    wipe: async () => {
      broker.wipe()
      broker.start()
    },
    freeze: refuse,
    thaw: refuse,
    stop: close,
    [Symbol.asyncDispose]: close,
  } as const
  return service
}

async function refuse(): Promise<never> {
  throw new Error('the model does not stand still')
}
