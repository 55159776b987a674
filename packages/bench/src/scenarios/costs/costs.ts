import { type Command, InvalidArgumentError } from 'commander'
import { UsageError } from '../../exit-codes.js'
import { positiveInteger } from '../../options.js'
import type { ResultColumn } from '../../results/result.js'
import { createTrialScenario } from '../../trials/create-trial-scenario.js'
import { checkTickSize, names } from '../../trials/trial-options.js'
import type { TrialScenario } from '../../trials/trial-scenario.js'
import { measureBroker } from './broker-costs.js'
import type { CostsConfig } from './config.js'
import { measureNode } from './node-costs.js'

const BROKERS: CostsConfig['brokers'] = ['memory', 'redis', 'nats', 'rabbitmq']

const us = (key: string, title: string): ResultColumn => ({ key, title, unit: 'us', format: 'number', better: 'lower' })
const bytes = (key: string, title: string): ResultColumn => ({
  key,
  title,
  unit: 'B',
  format: 'bytes',
  better: 'lower',
})

const costs: TrialScenario<CostsConfig> = {
  name: 'costs',
  summary: 'what a connection, a delivery and a message cost a node and each broker: the coefficients of the model',
  examples: [
    ['--json costs.json', 'all brokers, about 90 s; then: node benchmark.js model --costs costs.json'],
    ['--brokers memory,nats --repeat 3 --json costs.json', 'one broker, medians of three'],
  ],
  abilities: ['fan-out', 'tokens', 'ping', 'inbound', 'patterns', 'many-nodes'],
  defaults: { targets: ['webmq-native'], repeat: 1, duration: 1, payload: 100 },
  caseColumns: [],
  columns: [
    bytes('node.connectionBytes', 'Memory of a connection'),
    us('node.keepaliveUs', 'Keepalive us'),
    us('node.connectUs', 'Connect us'),
    us('node.clientPublishUs', 'Publish of a client us'),
    us('node.publishUs', 'Publish in the process us'),
    us('node.writeUs', 'Write us'),
    us('node.frameUs', 'Message in a write us'),
    { key: 'node.byteNs', title: 'Byte ns', unit: 'ns', format: 'number', better: 'lower' },
    bytes('node.frameBytes', 'Bytes beyond the payload'),
    us('broker.publisherUs', 'Publishing node us'),
    us('broker.publisherLoggedUs', 'logged us'),
    us('broker.listenerUs', 'Listening node us'),
    us('broker.listenerLoggedUs', 'logged, wanted or not us'),
    us('broker.brokerUs', 'Broker us'),
    us('broker.brokerCopyUs', 'per node us'),
    us('broker.brokerLoggedUs', 'Broker, logged us'),
    us('broker.brokerLoggedCopyUs', 'logged, per node us'),
    bytes('broker.publishBytes', 'Bytes to the broker beyond the payload'),
    bytes('broker.copyLoggedBytes', 'to each node, logged'),
    { key: 'broker.hopP50Ms', title: 'Hop p50', unit: 'ms', format: 'ms', better: 'lower' },
    { key: 'broker.hopP99Ms', title: 'Hop p99', unit: 'ms', format: 'ms', better: 'lower' },
    { key: 'verdict', title: 'Verdict', unit: '', format: 'text' },
  ],
  addOptions(command: Command) {
    command
      .option(
        '--brokers <names>',
        `one row each: ${BROKERS.join(', ')}; memory has the costs of a node`,
        brokers,
        BROKERS,
      )
      .option('--connections <n>', 'idle connections whose memory is measured', positiveInteger, 10_000)
      .option('--connects <n>', 'connects with a token', positiveInteger, 3_000)
      .option('--listeners <n>', 'connections that get every message of a window', positiveInteger, 1_000)
      .option('--rate <n>', 'messages per second through a broker', positiveInteger, 6_000)
  },
  readConfig(common, values) {
    checkTickSize(common)
    const config = {
      ...common,
      brokers: values.brokers as CostsConfig['brokers'],
      connections: Number(values.connections),
      connects: Number(values.connects),
      listeners: Number(values.listeners),
      rate: Number(values.rate),
    }
    if (config.targets.length > 1) throw new UsageError('--target takes one target: the model is of one server')
    return config
  },
  cases: ({ brokers, connections }) =>
    brokers.map((mode) => ({ mode, subscribers: mode === 'memory' ? connections : 0, fields: {} })),
  notes: ({ duration, rate }) => [
    `Windows of ${duration} s. The costs of writes, messages in a write and bytes are fitted over windows of different rates and payloads, those of a broker over windows with and without listeners, logged and not, at ${rate} messages/s. "residuals" in the JSON has the relative error of each fit.`,
    'A logged message costs every node that follows the log, whether anybody listens there or not.',
  ],
  measure: async (context) =>
    context.testCase.mode === 'memory' ? await measureNode(context) : await measureBroker(context),
}

/** Reads `memory,nats`. */
function brokers(text: string): CostsConfig['brokers'][number][] {
  return names(text).map((name, index, all) => {
    const kind = BROKERS.find((known) => known === name)
    if (kind === undefined) throw new InvalidArgumentError(`Allowed are ${BROKERS.join(', ')}.`)
    if (all.indexOf(name) !== index) throw new InvalidArgumentError(`It names ${name} twice.`)
    return kind
  })
}

/** The coefficients of `benchmark.js model`. */
export const costsScenario = createTrialScenario(costs)
