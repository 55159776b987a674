import { parseArgs } from 'node:util'
import { BROKER_NAMES, type BrokerName } from '../churn/options.js'
import { brokersOf, numberOf, secondsOf } from '../play-options.js'

export interface DeploysOptions {
  readonly brokers: readonly BrokerName[]
  /** Of each broker, without the measurement of the capacity. */
  readonly seconds: number
  /** Between two deploys. */
  readonly everySeconds: number
  /** Without load, before anything is compared. */
  readonly restSeconds: number
  readonly publisherCount: number
  readonly listenerCount: number
  /** That the log keeps. */
  readonly logMessages: number
  /** Of what these clients got through on this machine. */
  readonly share: number
}

export const USAGE = `npm run test:deploys -- [options]

Three nodes with each broker, one broker after the other. First the play measures how many messages its clients get through.
Then they publish a share of that at a steady rate, while all nodes are replaced in turn, again and again: SIGTERM, drain, start.
Says what was lost, doubled and out of order, and RSS, descriptors and log of each node by deploy. Ends with 1 when a message
that was accepted is missing without a gap, or came twice, or when something is left after the load, as in test:churn.

  --minutes <number>     Of each broker. Default: 120.
  --seconds <number>     In place of minutes.
  --every <seconds>      Between two deploys. Default: 600.
  --rest <seconds>       Without load, before anything is compared. Default: 90.
  --broker <name,…>      ${BROKER_NAMES.filter((name) => name !== 'memory').join(', ')}. Default: redis,nats,rabbitmq.
  --publishers <number>  Default: 8.
  --listeners <number>   Default: 6.
  --log <messages>       That are kept, at least for the time that a client is away. Default: 300000.
  --share <number>       Of the capacity. Default: 0.5.
`

/** @throws {Error} for what it does not know. */
export function readOptions(args: readonly string[]): DeploysOptions | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '120' },
      seconds: { type: 'string' },
      every: { type: 'string', default: '600' },
      rest: { type: 'string', default: '90' },
      broker: { type: 'string', default: 'redis,nats,rabbitmq' },
      publishers: { type: 'string', default: '8' },
      listeners: { type: 'string', default: '6' },
      log: { type: 'string', default: '300000' },
      share: { type: 'string', default: '0.5' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return undefined
  return {
    // One node with the embedded broker has nothing that outlives it.
    brokers: brokersOf(
      values.broker,
      BROKER_NAMES.filter((name) => name !== 'memory'),
    ),
    seconds: secondsOf(values),
    everySeconds: numberOf('every', values.every),
    restSeconds: numberOf('rest', values.rest),
    publisherCount: numberOf('publishers', values.publishers),
    listenerCount: numberOf('listeners', values.listeners),
    logMessages: numberOf('log', values.log),
    share: numberOf('share', values.share),
  }
}
